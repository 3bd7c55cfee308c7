//! Server variants: what clients get that switch too often.

use crate::prelude::*;

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "SV-21/limits-name-the-variant", level: Level::Should, source: source::RATE_LIMITS,
        sentence: "If rate-limiting triggers, servers SHOULD return a standard JSON-RPC error appropriate to the transport and include `activeVariant` in error data when helpful.",
        does: "If the server refused a request of the other checks because there were too many: the refusal is a JSON-RPC error with `activeVariant`.",
        scope: Scope::Variants, eras: BOTH, test: Test::Survey(limits_name_the_variant) },
];

fn limits_name_the_variant(survey: &Survey) -> Verdict {
    let Some(error) = survey.limit.get() else {
        return not_applicable("the server refused no request because there were too many");
    };
    let names_variant = text_at(&error.data, &["activeVariant"]).is_some();
    ensure!(
        error.code.is_some() && names_variant,
        "a request too many was answered with {}",
        error.describe()
    );
    Ok(())
}
