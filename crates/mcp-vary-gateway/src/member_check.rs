//! Members of a request that another reader may take for others than the gateway did.
//!
//! The gateway decides by the members that it reads what a request may reach, and sends on those it does not know.
//! A server that ignores case, or that takes the other one of two equal keys, would act on something that was
//! never checked. Such requests are refused.
//! Source: CVE-2026-27896; docs/decisions/0021-lookalike-members.md.

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::json::{JsonError, Members, is_lookalike};
use mcp_vary_view::Fault;

use crate::bridge::{LOG_LEVEL, PROGRESS_TOKEN};
use crate::counters::{Counter, Counters};
use crate::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SUBSCRIPTION_ID};
use crate::params::Params;
use crate::reply::Failure;
use crate::route::Action;
use crate::tasks::RELATED;

/// Why the params of a request are refused, and what counts that.
#[derive(Debug)]
pub(crate) struct Refusal {
    counter: Option<Counter>,
    reason: String,
}

impl Refusal {
    /// `place` cannot be read as an object with unique keys.
    pub(crate) fn unreadable(place: &str, error: &JsonError) -> Self {
        let is_repeated = error.repeated_key().is_some();
        Self {
            counter: is_repeated.then_some(Counter::RefusedDuplicateMembers),
            reason: format!("`{place}`: {error}"),
        }
    }

    /// A key in `place` that a reader may take for `known`; a client's key is cut.
    fn lookalike(place: &str, key: &str, known: &str) -> Self {
        let key: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedLookalikeMembers),
            reason: format!(
                "`{place}` has a member {key:?}, which some servers read as {known:?}; leave it out"
            ),
        }
    }

    /// Two keys of a request with a state that a reader may take for the same.
    pub(crate) fn ambiguous(key: &str) -> Self {
        let key: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedDuplicateMembers),
            reason: format!(
                "`arguments`: the key {key:?} is given twice; with a `requestState` each is given once, in one spelling"
            ),
        }
    }

    /// The refusal of arguments for `faults`, where one of them is about how keys are spelled or repeated.
    pub(crate) fn of_arguments(faults: &[Fault]) -> Option<Self> {
        faults.iter().find_map(|fault| {
            let counter = match fault {
                Fault::Lookalike { .. } => Counter::RefusedLookalikeMembers,
                Fault::RepeatedKey { .. } => Counter::RefusedDuplicateMembers,
                _ => return None,
            };
            Some(Self {
                counter: Some(counter),
                reason: format!("invalid arguments: {fault}"),
            })
        })
    }

    /// Counts it, and makes it the error that the client gets.
    pub(crate) fn counted(self, counters: &Counters) -> Failure {
        if let Some(counter) = self.counter {
            counters.increment(counter);
        }
        self.into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::invalid_params(refusal.reason)
    }
}

/// The members of `params` that decide what a request of the protocol reaches or means.
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

/// The keys of `_meta` that the gateway acts on, beside those of its extensions.
const META: &[&str] = &[
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    LOG_LEVEL,
    RELATED,
    SUBSCRIPTION_ID,
];

/// Refuses `params` that a server may read otherwise than the gateway does.
///
/// Of a method that the protocol does not have the gateway reads `_meta` alone.
///
/// # Errors
///
/// When a member imitates a known one, or when an object that is checked repeats a key.
pub(crate) fn check(action: Action, params: &Params<'_>) -> Result<(), Refusal> {
    let known: &[&str] = match action {
        Action::OfExtension => &["_meta"],
        _ => PARAMS,
    };
    check_members("params", &params.members, known)?;
    check_meta(&params.meta)?;
    match action {
        Action::Complete => {
            check_object(params, "ref", &["type", "name", "uri"])?;
            check_object(params, "argument", &["name", "value"])?;
            check_object(params, "context", &["arguments"])
        }
        Action::Call => check_object(params, "task", &["ttl"]),
        _ => Ok(()),
    }
}

fn check_meta(meta: &Members<'_>) -> Result<(), Refusal> {
    for (key, _) in meta.iter() {
        let is_of_an_extension = || EXTENSIONS.iter().any(|it| it.meta.contains(&key));
        if META.contains(&key) || is_of_an_extension() {
            continue;
        }
        let of_extensions = EXTENSIONS.iter().flat_map(|extension| extension.meta);
        let mut known = META.iter().chain(of_extensions);
        if let Some(known) = known.find(|known| is_lookalike(key, known)) {
            return Err(Refusal::lookalike("params._meta", key, known));
        }
    }
    Ok(())
}

/// Checks the object that the member `key` is; another value is checked where it is read.
fn check_object(params: &Params<'_>, key: &str, known: &[&str]) -> Result<(), Refusal> {
    let object = params.members.get(key);
    let Some(object) = object.filter(|value| value.starts_with('{')) else {
        return Ok(());
    };
    let members = Members::parse(object).map_err(|error| Refusal::unreadable(key, &error))?;
    check_members(key, &members, known)
}

fn check_members(place: &str, members: &Members<'_>, known: &[&str]) -> Result<(), Refusal> {
    for (key, _) in members.iter() {
        if known.contains(&key) {
            continue;
        }
        if let Some(known) = known.iter().find(|known| is_lookalike(key, known)) {
            return Err(Refusal::lookalike(place, key, known));
        }
    }
    Ok(())
}
