//! Requests to a server, and the messages that come back.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use mcp_vary::error_code::INTERNAL_ERROR;
use mcp_vary::json::{MAX_DEPTH, Members, string};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::server_message::{self, ResponseOutcome, ServerMessage};
use mcp_vary_wire::task_dialect::TASK_STATUS_METHODS;

use crate::answer_memory::AnswerMemory;
use crate::server_requests::ServerRequest;

/// Identifies the client for which a call is made; one per session.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CallerId(pub u64);

/// A request to a server.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Cow<'static, str>,
    /// The JSON text of the parameters, complete: for a modern server `_meta` contains
    /// [`client_meta`](super::UpstreamConnection::client_meta).
    pub params: Option<String>,
    /// The JSON text of `params._meta.progressToken`, unique on this connection.
    pub progress_token: Option<String>,
    /// The value of the `Mcp-Name` header, not yet encoded; sent to modern HTTP servers only.
    pub name: Option<Arc<str>>,
    /// `Mcp-Param-*` headers (see [`header_value`](mcp_vary_wire::headers::header_value)), sent to modern HTTP servers only.
    pub param_headers: Vec<(HeaderName, HeaderValue)>,
    /// The headers with the context of its trace, sent to HTTP servers only.
    pub trace_headers: Vec<(HeaderName, HeaderValue)>,
    /// The client for which the call is made.
    pub caller: Option<CallerId>,
    /// The access token of that client, for servers to which it is exchanged. It is never sent.
    pub token: Option<CallerToken>,
    /// The receiver of messages without a call, if they can only be for this client.
    pub out_of_band: OutOfBand,
    /// The memory that a large answer takes; without it, its size alone is bounded.
    pub memory: Option<Arc<dyn AnswerMemory>>,
}

/// The receiver of messages without a call.
#[derive(Clone, Debug, Default)]
pub enum OutOfBand {
    /// They are dropped.
    #[default]
    Discard,
    /// They are delivered together with the messages of the call.
    Call,
    /// One client receives them, between its calls as well.
    Client(Weak<dyn NotificationSink>),
}

impl OutOfBand {
    /// The receiver of messages for the client between its calls.
    pub(super) const fn client(&self) -> Option<&Weak<dyn NotificationSink>> {
        match self {
            Self::Client(client) => Some(client),
            Self::Discard | Self::Call => None,
        }
    }
}

/// Receives notifications without a call.
pub trait NotificationSink: Send + Sync {
    /// Receives one notification of `server`: the whole message as it was sent.
    fn receive(&self, server: &str, message: &Bytes);
}

mcp_vary_base::debug_by_name!(dyn NotificationSink);

impl Request {
    /// A request without progress token, name and caller.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Option<String>) -> Self {
        Self {
            method: method.into(),
            params,
            progress_token: None,
            name: None,
            param_headers: Vec::new(),
            trace_headers: Vec::new(),
            caller: None,
            token: None,
            out_of_band: OutOfBand::Discard,
            memory: None,
        }
    }

    /// The same request about this tool, prompt or resource.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same request with these `Mcp-Param-*` headers.
    #[must_use]
    pub fn with_param_headers(mut self, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        self.param_headers = headers;
        self
    }
}

/// The purpose of a request, which decides its time limit and its cancellation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RequestKind {
    /// A client's call.
    Call,
    /// A list that the gateway reads.
    List,
    /// A handshake by the gateway, which must not be cancelled.
    Handshake,
    /// A subscription by the gateway, which may stay silent for ever.
    Subscription,
    /// A health check by the gateway, which has its own time limit.
    HealthCheck,
    /// A request by the gateway without a time limit.
    Unbounded,
}

impl RequestKind {
    /// Whether the server is notified when the request is cancelled.
    pub(super) const fn is_cancellable(self) -> bool {
        matches!(
            self,
            Self::Call | Self::List | Self::Subscription | Self::Unbounded
        )
    }

    /// Whether the server works at it: `limits.idle` applies, and failures are logged.
    pub(super) const fn is_work(self) -> bool {
        matches!(self, Self::Call | Self::List)
    }
}

/// A message of the server about a request: notifications and requests, then exactly one answer.
#[derive(Clone, Debug)]
pub enum Message {
    /// A notification that belongs to the request, the whole message as it was sent.
    Notification(Bytes),
    /// A request of the server to the client that made the call, on a dedicated connection.
    Request(ServerRequest),
    /// The answer; nothing follows.
    Answer(Answer),
}

/// The whole message that answers a request, as it was sent.
///
/// # Properties
///
/// It is UTF-8, one JSON object, and has a `result` or an `error`. Its `id` is the one that the gateway chose.
#[derive(Clone, Debug)]
pub struct Answer {
    message: Bytes,
    outcome: ResponseOutcome,
    memory: Option<Arc<Lease>>,
}

impl Answer {
    /// Parses `message`; `None` when it is not an answer, or has no id.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_upstream::Answer;
    ///
    /// let answer = Answer::parse(r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1.10}}"#.into()).unwrap();
    /// assert_eq!(answer.outcome(), Ok(r#"{"a": 1.10}"#));
    ///
    /// // A line of a JSON logger is not an answer.
    /// assert!(Answer::parse(r#"{"level":30,"msg":"ready"}"#.into()).is_none());
    /// ```
    pub fn parse(message: Bytes) -> Option<Self> {
        match ServerMessage::read(&message) {
            Ok(ServerMessage::Response { outcome, .. }) => Some(Self::new(message, outcome)),
            _ => None,
        }
    }

    pub(super) const fn new(message: Bytes, outcome: ResponseOutcome) -> Self {
        Self {
            message,
            outcome,
            memory: None,
        }
    }

    /// The same answer, which has taken this memory.
    pub(super) fn in_memory(self, memory: Option<Arc<Lease>>) -> Self {
        Self { memory, ..self }
    }

    /// The memory that it has taken, for whoever holds what is made of it; `None` for a small answer.
    pub const fn memory(&self) -> Option<&Arc<Lease>> {
        self.memory.as_ref()
    }

    /// The error that takes the place of an answer to the request `id` that nests too deep.
    pub(super) fn too_deep(server: &str, id: u64) -> Self {
        let why = format!(
            "the answer of server `{server}` nests deeper than {MAX_DEPTH} levels and is not forwarded"
        );
        tracing::warn!(server, levels = MAX_DEPTH, "answer nests too deep");
        let error = server_message::error_json(INTERNAL_ERROR, &why);
        let message = server_message::write_response(&id.to_string(), Err(&error));
        let start = message.len() - 1 - error.len();
        let payload = start..message.len() - 1;
        let outcome = ResponseOutcome {
            is_error: true,
            payload,
        };
        Self::new(message, outcome)
    }

    /// The JSON text of `result`, or that of `error`.
    ///
    /// # Errors
    ///
    /// The error that the server answered.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the bytes were checked when they were read"
    )]
    pub fn outcome(&self) -> Result<&str, &str> {
        let payload = &self.message[self.outcome.payload.clone()];
        let text = std::str::from_utf8(payload).expect("an answer is UTF-8");
        if self.outcome.is_error {
            Err(text)
        } else {
            Ok(text)
        }
    }

    /// The same without the check that it is UTF-8: a slice of the message, not copied.
    ///
    /// # Errors
    ///
    /// The error that the server answered.
    pub fn payload(&self) -> Result<Bytes, Bytes> {
        let payload = self.message.slice(self.outcome.payload.clone());
        if self.outcome.is_error {
            Err(payload)
        } else {
            Ok(payload)
        }
    }

    /// The whole message.
    pub const fn message(&self) -> &Bytes {
        &self.message
    }
}

/// Something that happened on a connection outside of a call.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server announced that a list changed.
    ListChanged(Kind),
    /// A list may have changed without an announcement. Sent for all lists whenever the gateway begins to receive
    /// announcements: at the start, and after an interruption.
    ListMayHaveChanged(Kind),
    /// A request of the server that belongs to no call. Only on dedicated connections.
    ServerRequest(ServerRequest),
    /// A notification that belongs to no call, the whole message as it was sent. On connections that are not dedicated,
    /// only those of extensions.
    Notification(Bytes),
    /// A subscribed resource changed, or may have changed: this is also sent when a subscription is active again after an
    /// interruption.
    ResourceUpdated {
        /// The URI of the resource at the server.
        uri: Arc<str>,
        /// The parameters of the notification, JSON text; `None` if the resource may have changed without one.
        params: Option<Arc<str>>,
    },
    /// The status of a task changed.
    TaskChanged {
        /// The server's id of the task.
        id: Arc<str>,
        /// The parameters of the notification, JSON text.
        params: Arc<str>,
    },
    /// A connection was established, the first or a later one: cached data about the server may be stale.
    /// Only sent by a [`SupervisedConnection`](super::SupervisedConnection).
    Connected,
    /// The connection was lost and is being re-established. Only sent by a
    /// [`SupervisedConnection`](super::SupervisedConnection).
    Lost {
        /// How it ended.
        reason: String,
    },
    /// The connection is closed; nothing follows.
    Closed {
        /// How it ended.
        reason: String,
    },
}

impl Event {
    /// The event of `notifications/resources/updated`; `None` when `params` names no resource.
    pub(super) fn resource_updated(params: Option<&str>) -> Option<Self> {
        let written = params?;
        let uri = Members::parse(written).ok()?.get_str("uri")?;
        Some(Self::ResourceUpdated {
            uri: uri.into(),
            params: Some(written.into()),
        })
    }

    /// The event of a task notification; `None` when `params` names no task.
    pub(super) fn task_changed(params: Option<&str>) -> Option<Self> {
        let written = params?;
        let id = Members::parse(written).ok()?.get_str("taskId")?;
        Some(Self::TaskChanged {
            id: id.into(),
            params: written.into(),
        })
    }

    /// The event of a notification about a resource or a task; `None` for all others.
    pub(super) fn from_notification(method: &str, params: Option<&str>) -> Option<Self> {
        match method {
            RESOURCE_UPDATED => Self::resource_updated(params),
            _ if TASK_STATUS_METHODS.contains(&method) => Self::task_changed(params),
            _ => None,
        }
    }

    /// The resource `uri` may have changed without a notification.
    pub(super) fn resource_may_have_changed(uri: &Arc<str>) -> Self {
        Self::ResourceUpdated {
            uri: Arc::clone(uri),
            params: None,
        }
    }
}

/// How many events are buffered for a subscriber before it misses the oldest.
pub(super) const EVENT_CAPACITY: usize = 256;

/// The notification that carries a log message.
pub(super) const LOG_MESSAGE: &str = "notifications/message";

/// The notification that a resource changed.
pub(super) const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// The parameters of `notifications/cancelled`.
pub(super) fn cancel_params(id: u64, reason: Option<&str>) -> String {
    let mut params = Members::from_iter([("requestId", id.to_string())]);
    if let Some(reason) = reason {
        params.set("reason", string(reason));
    }
    params.to_json()
}
