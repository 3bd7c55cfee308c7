//! The method table: the gateway on one screen.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::envelope;
use mcp_vary_wire::methods::is_of_the_protocol;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;

use crate::pipeline::exchange::Running;
use crate::pipeline::member_check;
use crate::pipeline::methods::Call;
use crate::pipeline::snapshot::Setup;
use crate::session::client::Client;
use crate::subscriptions::Listener;

/// A request from a client, its parts as written.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The headers of a modern HTTP request, which must agree with the body.
    pub(crate) headers: Option<&'a HeaderMap>,
    /// The message that the parts were read from, where it may outlast their reading.
    pub(crate) message: Option<&'a Bytes>,
}

impl Asked<'_> {
    /// A part as it was written, for as long as it is needed; copied only where it cannot be shared.
    pub(crate) fn keep(&self, part: &str) -> Bytes {
        let shared = self
            .message
            .and_then(|message| envelope::slice_of(message, part));
        shared.unwrap_or_else(|| Bytes::copy_from_slice(part.as_bytes()))
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The gateway answered.
    Done(Reply),
    /// The server works on it.
    Running(Box<Running>),
    /// The client hears of changes, until it leaves or the gateway ends it.
    Listening(Box<Listener>),
}

/// In which eras a method exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum In {
    Legacy,
    Modern,
    Both,
}

/// What is done for a method.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Ping,
    Discover,
    SetLevel,
    List(ListKind),
    Call,
    Read,
    Prompt,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
    ListTasks,
    Task(TaskAction),
    /// A method that the protocol does not have: of an extension, of which the gateway knows nothing.
    OfExtension,
}

/// What is asked about a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskAction {
    Get,
    Update,
    Cancel,
    /// Its result alone, as if the call had just been answered.
    Result,
}

/// `initialize` and notifications belong to the fronts, since they make and use sessions.
const METHODS: &[(&str, In, Action)] = &[
    ("ping", In::Legacy, Action::Ping),
    ("server/discover", In::Modern, Action::Discover),
    ("logging/setLevel", In::Legacy, Action::SetLevel),
    ("tools/list", In::Both, Action::List(ListKind::Tools)),
    ("tools/call", In::Both, Action::Call),
    (
        "resources/list",
        In::Both,
        Action::List(ListKind::Resources),
    ),
    (
        "resources/templates/list",
        In::Both,
        Action::List(ListKind::Templates),
    ),
    ("resources/read", In::Both, Action::Read),
    ("prompts/list", In::Both, Action::List(ListKind::Prompts)),
    ("prompts/get", In::Both, Action::Prompt),
    ("completion/complete", In::Both, Action::Complete),
    ("resources/subscribe", In::Legacy, Action::Subscribe),
    ("resources/unsubscribe", In::Legacy, Action::Unsubscribe),
    ("subscriptions/listen", In::Modern, Action::Listen),
    ("tasks/get", In::Both, Action::Task(TaskAction::Get)),
    ("tasks/update", In::Both, Action::Task(TaskAction::Update)),
    ("tasks/cancel", In::Both, Action::Task(TaskAction::Cancel)),
    ("tasks/result", In::Legacy, Action::Task(TaskAction::Result)),
    ("tasks/list", In::Legacy, Action::ListTasks),
];

/// Known methods that this gateway does not carry, and what it says.
const NOT_CARRIED: &[(&str, &str)] = &[(
    "tasks/",
    "no server behind this gateway offers tasks to such a client",
)];

/// Answers a request, or hands it to the server.
pub(crate) async fn dispatch(gateway: &Arc<Setup>, client: &Client, asked: Asked<'_>) -> Outcome {
    let id = asked.id;
    let outcome = match action(asked.method, client.era()) {
        Ok(action) => act(gateway, client, asked, action).await,
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| Outcome::Done(failure.reply(Some(id), client.era())))
}

pub(crate) fn action(method: &str, era: Era) -> Result<Action, RpcError> {
    let row = METHODS.iter().find(|(name, _, _)| *name == method);
    match row {
        Some((_, In::Both, action)) => Ok(*action),
        Some((_, In::Legacy, action)) if era == Era::Legacy => Ok(*action),
        Some((_, In::Modern, action)) if era == Era::Modern => Ok(*action),
        None if !is_of_the_protocol(method) => Ok(Action::OfExtension),
        _ => Err(unknown(method)),
    }
}

/// The error for a method that does not exist, or is not carried.
pub(crate) fn unknown(method: &str) -> RpcError {
    let known = NOT_CARRIED
        .iter()
        .find(|(name, _)| method.starts_with(name));
    let cut: String = method.chars().take(128).collect();
    RpcError::method_not_found(match known {
        Some((_, why)) => format!("Method not found: {cut}: {why}"),
        None => format!("Method not found: {cut}"),
    })
}

async fn act(
    gateway: &Arc<Setup>,
    client: &Client,
    asked: Asked<'_>,
    action: Action,
) -> Result<Outcome, RpcError> {
    member_check::check(action, &asked.params)
        .map_err(|refusal| refusal.into_counted_error(&gateway.lasting.counters))?;
    let class = gateway
        .classes
        .of_client(client.class.as_ref(), client.connection);
    let class = class.await?;
    let call = Call {
        gateway,
        catalog: class.catalog.current(),
        class,
        client,
        asked,
        action,
    };
    // What is asked rarely has its room elsewhere: a request is moved about, with all that it may wait for.
    match action {
        Action::Ping => Ok(call.answer("{}")),
        Action::Discover => call.discover(),
        Action::SetLevel => Box::pin(call.set_level()).await,
        Action::List(kind) => call.list(kind).await,
        Action::Call => call.tool().await,
        Action::Read => Box::pin(call.read()).await,
        Action::Prompt => Box::pin(call.prompt()).await,
        Action::Complete => Box::pin(call.complete()).await,
        Action::ListTasks => Box::pin(call.list_tasks()).await,
        Action::Task(_) => Box::pin(call.task()).await,
        Action::OfExtension => Box::pin(call.of_extension()).await,
        Action::Subscribe => Box::pin(call.subscribe()).await,
        Action::Unsubscribe => call.unsubscribe(),
        Action::Listen => Box::pin(call.listen()).await,
    }
}
