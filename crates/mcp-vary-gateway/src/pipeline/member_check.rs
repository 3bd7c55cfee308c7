//! Members of a request that a server may read differently than the gateway.
//!
//! The gateway checks what a request may reach by the members that it reads, and forwards the members that it does not
//! know. A server that ignores case, or that reads the other one of two equal keys, would act on values that were never
//! checked. Such requests are refused.
//! Source: CVE-2026-27896; docs/decisions/0021-lookalike-members.md.

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::json::{Members, is_lookalike};
use mcp_vary_wire::era::{LOG_LEVEL, PROGRESS_TOKEN};
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SUBSCRIPTION_ID};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::task_dialect::RELATED_TASK_META;

use crate::pipeline::request::MethodAction;

/// The members of `params` that decide what a request of the protocol reaches.
const PARAMS: &[&str] = &[
    "name",
    "arguments",
    "_meta",
    "uri",
    "ref",
    "argument",
    "context",
    "cursor",
    "level",
    "task",
    "taskId",
    "requestState",
    "inputResponses",
];

/// The keys of `_meta` that the gateway reads, in addition to those of its extensions.
const META: &[&str] = &[
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    LOG_LEVEL,
    RELATED_TASK_META,
    SUBSCRIPTION_ID,
];

/// Refuses `params` that a server may read differently than the gateway.
///
/// For methods that are not of the protocol the gateway reads `_meta` only.
///
/// # Errors
///
/// When a member imitates a known one, or when an object that is checked repeats a key.
pub(crate) fn check(action: MethodAction, params: &Params<'_>) -> Result<(), ParamsError> {
    let known: &[&str] = match action {
        MethodAction::Extension => &["_meta"],
        _ => PARAMS,
    };
    check_members("params", &params.members, known)?;
    check_meta(&params.meta)?;
    match action {
        MethodAction::Complete => {
            check_object(params, "ref", &["type", "name", "uri"])?;
            check_object(params, "argument", &["name", "value"])?;
            check_object(params, "context", &["arguments"])
        }
        MethodAction::CallTool => check_object(params, "task", &["ttl"]),
        _ => Ok(()),
    }
}

fn check_meta(meta: &Members<'_>) -> Result<(), ParamsError> {
    for (key, _) in meta.iter() {
        let is_of_an_extension = || EXTENSIONS.iter().any(|it| it.meta.contains(&key));
        if META.contains(&key) || is_of_an_extension() {
            continue;
        }
        let of_extensions = EXTENSIONS.iter().flat_map(|extension| extension.meta);
        let mut known = META.iter().chain(of_extensions);
        if let Some(known) = known.find(|known| is_lookalike(key, known)) {
            return Err(ParamsError::lookalike("params._meta", key, known));
        }
    }
    Ok(())
}

/// Checks the member `key` if it is an object. Other values are checked where they are read.
fn check_object(params: &Params<'_>, key: &str, known: &[&str]) -> Result<(), ParamsError> {
    let object = params.members.get(key);
    let Some(object) = object.filter(|value| value.starts_with('{')) else {
        return Ok(());
    };
    let members = Members::parse(object).map_err(|error| ParamsError::unreadable(key, &error))?;
    check_members(key, &members, known)
}

fn check_members(object: &str, members: &Members<'_>, known: &[&str]) -> Result<(), ParamsError> {
    for (key, _) in members.iter() {
        if known.contains(&key) {
            continue;
        }
        if let Some(known) = known.iter().find(|known| is_lookalike(key, known)) {
            return Err(ParamsError::lookalike(object, key, known));
        }
    }
    Ok(())
}
