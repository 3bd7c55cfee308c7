//! A request as it was received, and how its method is handled.

use bytes::Bytes;
use http::HeaderMap;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_session::client_uses::{ClientUses, DeclaredClient};
use mcp_vary_wire::envelope::{self, Message};
use mcp_vary_wire::meta::CLIENT_INFO;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use std::sync::Arc;

/// In place of the id of a notification. Requests must not have it.
const NO_ID: &str = "null";

/// A request or notification from a client, its parts as written.
#[derive(Debug)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The client, if the request itself names it.
    pub(crate) client: Option<Arc<DeclaredClient>>,
    /// The headers of a modern HTTP request, which must agree with the body.
    pub(crate) headers: Option<&'a HeaderMap>,
    /// The message that the parts were read from, if they may be shared with it.
    pub(crate) message: Option<&'a Bytes>,
}

impl<'a> IncomingRequest<'a> {
    /// The request or notification in a `message`, which was read from `body`.
    pub(crate) fn new(message: &'a Message<'a>, params: Params<'a>, body: &'a Bytes) -> Self {
        Self {
            id: message.id.unwrap_or(NO_ID),
            method: message.method.as_deref().unwrap_or_default(),
            params,
            client: None,
            headers: None,
            message: Some(body),
        }
    }

    /// Finds the client that the request itself names: with `initialize`, or as modern requests do.
    pub(crate) fn find_client(&mut self, known: &ClientUses) {
        let info = match self.method {
            "initialize" => self.params.members.get("clientInfo"),
            _ => self.params.meta.get(CLIENT_INFO),
        };
        self.client = info.map(|info| known.client_in(info));
    }

    /// Whether it has no response.
    pub(crate) fn is_notification(&self) -> bool {
        self.id == NO_ID
    }

    /// A part as it was written, owned; copied only if it cannot be shared.
    pub(crate) fn retain(&self, part: &str) -> Bytes {
        let shared = self
            .message
            .and_then(|message| envelope::slice_of(message, part));
        shared.unwrap_or_else(|| Bytes::copy_from_slice(part.as_bytes()))
    }
}

/// How a method is handled.
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
    /// A method of an extension that the gateway does not know.
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

/// The request about a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskAction {
    Get,
    Update,
    Cancel,
    /// Its result alone, as if the call had just been answered.
    Result,
}

/// The error for a method that does not exist, or is not forwarded.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    let why = if method.starts_with("tasks/") {
        ": no server behind this gateway offers tasks to such a client"
    } else {
        ""
    };
    let cut: String = method.chars().take(128).collect();
    RpcError::method_not_found(format!("Method not found: {cut}{why}"))
}
