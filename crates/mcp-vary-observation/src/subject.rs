//! What a request is about: its target, and the arguments of its call.

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary_audit::{Arguments, LongText, Target, TargetKind};
use mcp_vary_wire::envelope;
use mcp_vary_wire::params::Params;

/// The methods that name a target, and where in their params.
const TARGETS: &[(&str, TargetKind, &str)] = &[
    ("tools/call", TargetKind::Tool, "name"),
    ("prompts/get", TargetKind::Prompt, "name"),
    ("resources/read", TargetKind::Resource, "uri"),
    ("resources/subscribe", TargetKind::Resource, "uri"),
    ("resources/unsubscribe", TargetKind::Resource, "uri"),
    ("skills/get", TargetKind::Skill, "uri"),
    ("resources/directory/read", TargetKind::Skill, "uri"),
    ("tasks/get", TargetKind::Task, "taskId"),
    ("tasks/update", TargetKind::Task, "taskId"),
    ("tasks/cancel", TargetKind::Task, "taskId"),
    ("tasks/result", TargetKind::Task, "taskId"),
];

/// The methods whose arguments are recorded.
const CALLS: &[&str] = &["tools/call", "prompts/get"];

/// The target of a request, by the name or URI that the client sent.
pub(super) fn target(method: &str, params: &Params<'_>) -> Option<Target> {
    if method == "completion/complete" {
        return reference(params.members.get("ref")?);
    }
    let (_, kind, key) = TARGETS.iter().find(|(name, ..)| *name == method)?;
    let name = params.members.get_text(key)?;
    Some(Target::new(*kind, LongText::new(name)))
}

/// The prompt or resource template of a completion.
fn reference(written: &str) -> Option<Target> {
    let text = |key| serde_json::from_str::<String>(edit::get(written, key)?).ok();
    let (kind, name) = match text("name") {
        Some(name) => (TargetKind::Prompt, name),
        None => (TargetKind::Resource, text("uri")?),
    };
    Some(Target::new(kind, LongText::new(&name)))
}

/// The arguments of a call. They are copied only if they are not a part of `message`.
pub(super) fn arguments(
    method: &str,
    params: &Params<'_>,
    message: Option<&Bytes>,
) -> Option<Arguments> {
    let written = params
        .members
        .get("arguments")
        .filter(|_| CALLS.contains(&method))?;
    let shared = message.and_then(|message| envelope::slice_of(message, written));
    let bytes = shared.unwrap_or_else(|| Bytes::copy_from_slice(written.as_bytes()));
    Some(Arguments::new(bytes))
}
