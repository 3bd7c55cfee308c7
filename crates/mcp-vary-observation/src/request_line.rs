//! The line in the log about a request that a server worked on, or that was refused.

use std::time::Duration;

use mcp_vary_audit::{Outcome, Record, TargetKind, Text};
use mcp_vary_traces::session_digest;

/// Whether the log shows requests: at the level `info`.
pub(crate) fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Writes the line. `server` is the one that worked on the request, if there is one.
///
/// It has neither arguments nor results, and of a URI nothing that may be a secret. Strings are recorded as such, so
/// that the log escapes their control characters.
pub(super) fn write(server: Option<&str>, record: &Record) {
    let target = record.target.as_ref();
    let name = |kind| {
        target
            .filter(|target| target.kind == kind)
            .map(|target| target.name.as_str())
    };
    let client = record.client.as_ref();
    let product = client.map(|it| match (it.name.as_str(), it.version.as_str()) {
        (name, "") => name.to_owned(),
        (name, version) => format!("{name}/{version}"),
    });
    tracing::info!(
        target: TARGET,
        method = record.method.as_ref().map(Text::as_str),
        client = product,
        variant = record.variant.as_ref().map(|variant| variant.id.as_str()),
        server,
        tool = name(TargetKind::Tool),
        prompt = name(TargetKind::Prompt),
        resource = name(TargetKind::Resource).map(without_secrets),
        skill = name(TargetKind::Skill).map(without_secrets),
        task = name(TargetKind::Task),
        ms = record.duration.map(milliseconds),
        waited_ms = record.waited.map(milliseconds),
        upstream_ms = record.upstream_duration.map(milliseconds),
        outcome = outcome_name(record.outcome),
        code = record.code,
        bytes_in = record.bytes_in,
        bytes_out = record.bytes_out,
        principal = record.actor.as_ref().map(|actor| actor.id.as_str()),
        session = record.session.as_ref().map(|id| session_digest(id.secret())),
        id = record.request_id.as_ref().map(Text::as_str),
        trace_id = record.trace_id.map(|id| format!("{:032x}", u128::from_be_bytes(id))),
        "request finished"
    );
}

/// The outcome in the words of the protocol.
const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Allowed => "ok",
        Outcome::ToolError => "isError",
        Outcome::Denied => "denied",
        Outcome::Cancelled => "cancelled",
        _ => "error",
    }
}

/// A URI without its user, query and fragment.
pub(super) fn without_secrets(uri: &str) -> String {
    let end = uri.find(['?', '#']).unwrap_or(uri.len());
    let (shown, _) = uri.split_at(end);
    let Some((scheme, location)) = shown.split_once("://") else {
        return shown.to_owned();
    };
    let authority = location.find('/').unwrap_or(location.len());
    let (authority, path) = location.split_at(authority);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// A duration in milliseconds, with a digit for each microsecond.
#[expect(
    clippy::cast_precision_loss,
    reason = "a duration of 2^53 microseconds is 285 years"
)]
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

/// The target of the line in filters of the log.
const TARGET: &str = "mcp_vary_gateway::requests";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_shown_without_what_may_be_a_secret() {
        for (uri, shown) in [
            ("place:spot", "place:spot"),
            ("file:///srv/notes.txt", "file:///srv/notes.txt"),
            ("https://u:p@h.example/a@b?key=1#x", "https://h.example/a@b"),
            ("https://u:p@h.example", "https://h.example"),
            ("db:?password=x", "db:"),
        ] {
            assert_eq!(without_secrets(uri), shown, "{uri}");
        }
    }

    #[test]
    fn milliseconds_have_three_decimals() {
        let shown = milliseconds(Duration::from_nanos(12_345_678)).to_string();
        assert_eq!(shown, "12.345");
    }
}
