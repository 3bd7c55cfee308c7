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

use crate::pipeline::exchange::InFlightRequest;
use crate::pipeline::member_check;
use crate::pipeline::methods::RequestContext;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::client::Client;
use crate::subscriptions::ListenStream;

/// A request from a client, its parts as written.
#[derive(Debug)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The headers of a modern HTTP request, which must agree with the body.
    pub(crate) headers: Option<&'a HeaderMap>,
    /// The message that the parts were read from, where it may outlast their reading.
    pub(crate) message: Option<&'a Bytes>,
}

impl IncomingRequest<'_> {
    /// A part as it was written, for as long as it is needed; copied only where it cannot be shared.
    pub(crate) fn retain(&self, part: &str) -> Bytes {
        let shared = self
            .message
            .and_then(|message| envelope::slice_of(message, part));
        shared.unwrap_or_else(|| Bytes::copy_from_slice(part.as_bytes()))
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Dispatch {
    /// The gateway answered.
    Done(Reply),
    /// The server works on it.
    InFlight(Box<InFlightRequest>),
    /// The client hears of changes, until it leaves or the gateway ends it.
    Listen(Box<ListenStream>),
}

/// In which eras a method exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Eras {
    Legacy,
    Modern,
    Both,
}

/// What is done for a method.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MethodAction {
    Ping,
    Discover,
    SetLevel,
    List(ListKind),
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
    ListTasks,
    Task(TaskAction),
    /// A method that the protocol does not have: of an extension, of which the gateway knows nothing.
    Extension,
}

impl MethodAction {
    /// The method, if its requests may take several round trips.
    ///
    /// > Servers MUST NOT send `InputRequiredResult` responses on any other client requests.
    /// > (MCP 2026-07-28, basic/patterns/mrtr, "Supported Requests")
    pub(crate) const fn round_trip_method(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("tools/call"),
            Self::ReadResource => Some("resources/read"),
            Self::GetPrompt => Some("prompts/get"),
            _ => None,
        }
    }
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
const METHODS: &[(&str, Eras, MethodAction)] = &[
    ("ping", Eras::Legacy, MethodAction::Ping),
    ("server/discover", Eras::Modern, MethodAction::Discover),
    ("logging/setLevel", Eras::Legacy, MethodAction::SetLevel),
    (
        "tools/list",
        Eras::Both,
        MethodAction::List(ListKind::Tools),
    ),
    ("tools/call", Eras::Both, MethodAction::CallTool),
    (
        "resources/list",
        Eras::Both,
        MethodAction::List(ListKind::Resources),
    ),
    (
        "resources/templates/list",
        Eras::Both,
        MethodAction::List(ListKind::Templates),
    ),
    ("resources/read", Eras::Both, MethodAction::ReadResource),
    (
        "prompts/list",
        Eras::Both,
        MethodAction::List(ListKind::Prompts),
    ),
    ("prompts/get", Eras::Both, MethodAction::GetPrompt),
    ("completion/complete", Eras::Both, MethodAction::Complete),
    ("resources/subscribe", Eras::Legacy, MethodAction::Subscribe),
    (
        "resources/unsubscribe",
        Eras::Legacy,
        MethodAction::Unsubscribe,
    ),
    ("subscriptions/listen", Eras::Modern, MethodAction::Listen),
    ("tasks/get", Eras::Both, MethodAction::Task(TaskAction::Get)),
    (
        "tasks/update",
        Eras::Both,
        MethodAction::Task(TaskAction::Update),
    ),
    (
        "tasks/cancel",
        Eras::Both,
        MethodAction::Task(TaskAction::Cancel),
    ),
    (
        "tasks/result",
        Eras::Legacy,
        MethodAction::Task(TaskAction::Result),
    ),
    ("tasks/list", Eras::Legacy, MethodAction::ListTasks),
];

/// Known methods that this gateway does not carry, and what it says.
const NOT_CARRIED: &[(&str, &str)] = &[(
    "tasks/",
    "no server behind this gateway offers tasks to such a client",
)];

/// Answers a request, or hands it to the server.
pub(crate) async fn dispatch(
    gateway: &Arc<ConfigSnapshot>,
    client: &Client,
    asked: IncomingRequest<'_>,
) -> Dispatch {
    let id = asked.id;
    let outcome = match method_action(asked.method, client.era()) {
        Ok(action) => handle(gateway, client, asked, action).await,
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| Dispatch::Done(failure.reply(Some(id), client.era())))
}

pub(crate) fn method_action(method: &str, era: Era) -> Result<MethodAction, RpcError> {
    let row = METHODS.iter().find(|(name, _, _)| *name == method);
    match row {
        Some((_, Eras::Both, action)) => Ok(*action),
        Some((_, Eras::Legacy, action)) if era == Era::Legacy => Ok(*action),
        Some((_, Eras::Modern, action)) if era == Era::Modern => Ok(*action),
        None if !is_of_the_protocol(method) => Ok(MethodAction::Extension),
        _ => Err(method_not_found(method)),
    }
}

/// The error for a method that does not exist, or is not carried.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    let known = NOT_CARRIED
        .iter()
        .find(|(name, _)| method.starts_with(name));
    let cut: String = method.chars().take(128).collect();
    RpcError::method_not_found(match known {
        Some((_, why)) => format!("Method not found: {cut}: {why}"),
        None => format!("Method not found: {cut}"),
    })
}

async fn handle(
    gateway: &Arc<ConfigSnapshot>,
    client: &Client,
    asked: IncomingRequest<'_>,
    action: MethodAction,
) -> Result<Dispatch, RpcError> {
    member_check::check(action, &asked.params)
        .map_err(|refusal| refusal.into_counted_error(&gateway.services.counters))?;
    let class = gateway
        .pool
        .of_client(client.class.as_ref(), client.connection);
    let class = class.await?;
    let call = RequestContext {
        snapshot: gateway,
        catalog: class.catalog.current(),
        class,
        client,
        request: asked,
        action,
    };
    // What is asked rarely has its room elsewhere: a request is moved about, with all that it may wait for.
    match action {
        MethodAction::Ping => Ok(call.answer("{}")),
        MethodAction::Discover => call.discover(),
        MethodAction::SetLevel => Box::pin(call.set_level()).await,
        MethodAction::List(kind) => call.list(kind).await,
        MethodAction::CallTool => call.tool().await,
        MethodAction::ReadResource => Box::pin(call.read()).await,
        MethodAction::GetPrompt => Box::pin(call.prompt()).await,
        MethodAction::Complete => Box::pin(call.complete()).await,
        MethodAction::ListTasks => Box::pin(call.list_tasks()).await,
        MethodAction::Task(_) => Box::pin(call.task()).await,
        MethodAction::Extension => Box::pin(call.extension_request()).await,
        MethodAction::Subscribe => Box::pin(call.subscribe()).await,
        MethodAction::Unsubscribe => call.unsubscribe(),
        MethodAction::Listen => Box::pin(call.listen()).await,
    }
}
