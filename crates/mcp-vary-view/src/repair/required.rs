//! The names in `required`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mcp_vary::json::Json;

use super::Members;

/// Adds names to `required`.
pub(super) fn add_required<'a>(members: &mut Members<'a>, names: Vec<Cow<'a, str>>) {
    let strings = names.into_iter().map(Json::String);
    let known = members.iter_mut().find(|(key, _)| key == "required");
    match known {
        Some((_, Json::Array(known))) => {
            known.extend(strings);
            keep_first_names(known);
        }
        _ => members.push(("required".into(), Json::Array(strings.collect()))),
    }
}

/// Removes each name that is there twice.
pub(super) fn keep_first_names(names: &mut Vec<Json<'_>>) {
    let mut seen = BTreeSet::new();
    names.retain(|name| {
        name.as_str()
            .is_some_and(|name| seen.insert(name.to_owned()))
    });
}
