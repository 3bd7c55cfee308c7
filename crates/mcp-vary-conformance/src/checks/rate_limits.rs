//! Server variants: what clients get that switch too often.

use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("rate_limits.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-21/limits-name-the-variant", Test::Survey(limits_name_the_variant)),
];

fn limits_name_the_variant(survey: &Survey) -> Verdict {
    let Some(error) = survey.limit.get() else {
        return not_applicable("the server refused no request because there were too many");
    };
    let names_variant = text_at(&error.data, &["activeVariant"]).is_some();
    let is_right = error.code.is_some() && names_variant;
    error.unless(is_right, "a request too many")
}
