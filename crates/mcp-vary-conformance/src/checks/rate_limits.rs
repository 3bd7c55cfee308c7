//! Server variants: what clients get that switch too often.

use crate::check::{BOTH, Check, Level, Scope, Test, Verdict, not_applicable, require};
use crate::json::text_at;
use crate::probe::Probe;
use crate::source;

pub(crate) const CHECKS: &[Check] = &[Check {
    id: "SV-21/limits-name-the-variant",
    level: Level::Should,
    source: source::RATE_LIMITS,
    sentence: "If rate-limiting triggers, servers SHOULD return a standard JSON-RPC error appropriate to the transport and include `activeVariant` in error data when helpful.",
    does: "If the server refused a request of the other checks because there were too many: the refusal is a JSON-RPC error with `activeVariant`.",
    scope: Scope::Variants,
    eras: BOTH,
    test: Test::Server(|probe| Box::pin(limits_name_the_variant(probe))),
}];

async fn limits_name_the_variant(probe: &Probe<'_>) -> Verdict {
    let Some(error) = probe.survey().limit() else {
        return not_applicable("the server refused no request because there were too many");
    };
    let names_variant = text_at(&error.data, &["activeVariant"]).is_some();
    require(error.code.is_some() && names_variant, || {
        format!("a request too many was answered with {}", error.describe())
    })
}
