//! What goes to a server, and what comes back.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use mcp_vary::json::{MAX_DEPTH, Members};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::server_message::{self, Frame, Outcome};
use mcp_vary_wire::task_dialect::TASK_STATUS;

use crate::server_requests::ServerRequest;

/// Who a call is made for; an opaque tag, one per session of a client.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "a tag is its number")]
pub struct Owner(pub u64);

/// A request to a server.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Cow<'static, str>,
    /// The JSON text of the parameters, complete: for a modern server with what
    /// [`client_meta`](super::Upstream::client_meta) says in `_meta`.
    pub params: Option<String>,
    /// The JSON text of `params._meta.progressToken`, unique on this connection.
    pub progress_token: Option<String>,
    /// What the `Mcp-Name` header says; encoded here, sent to modern HTTP servers only.
    pub name: Option<String>,
    /// `Mcp-Param-*` headers (see [`header_value`](mcp_vary_wire::headers::header_value)), sent to modern HTTP servers only.
    pub param_headers: Vec<(HeaderName, HeaderValue)>,
    /// Whom the call is made for.
    pub owner: Option<Owner>,
    /// Who hears what the server says beside the call, where that cannot be for anybody else.
    pub beside: Beside,
}

/// Who hears what names no call.
#[derive(Clone, Debug, Default)]
pub enum Beside {
    /// It is dropped.
    #[default]
    Nobody,
    /// Who waits for the call: it comes among what belongs to it.
    Call,
    /// One client receives it.
    Client(Weak<dyn Hears>),
}

impl Beside {
    /// What receives messages for the client between its calls.
    pub(super) const fn client(&self) -> Option<&Weak<dyn Hears>> {
        match self {
            Self::Client(client) => Some(client),
            Self::Nobody | Self::Call => None,
        }
    }
}

/// Somebody who hears what names no call.
pub trait Hears: fmt::Debug + Send + Sync {
    /// Takes a notification, the whole message as it was sent.
    fn hear(&self, message: &Bytes);
}

impl Request {
    /// A request with neither token, name nor owner.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Option<String>) -> Self {
        Self {
            method: method.into(),
            params,
            progress_token: None,
            name: None,
            param_headers: Vec::new(),
            owner: None,
            beside: Beside::Nobody,
        }
    }

    /// The same request; progress with this token belongs to it.
    #[must_use]
    pub fn with_progress_token(mut self, token: impl Into<String>) -> Self {
        self.progress_token = Some(token.into());
        self
    }

    /// The same request about this tool, prompt or resource.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same request with these `Mcp-Param-*` headers.
    #[must_use]
    pub fn with_param_headers(mut self, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        self.param_headers = headers;
        self
    }

    /// The same request, made for `owner`.
    #[must_use]
    pub fn with_owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }
}

/// What a call is to the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// A client's call.
    Call,
    /// The gateway's own: a handshake, which must not be cancelled.
    Handshake,
    /// The gateway's own: a subscription, which may stay silent for ever.
    Subscription,
    /// The gateway's own: a question whether the server is there; whoever asks knows how long to wait.
    Pulse,
    /// The gateway's own: something that the server answers when it is there, however late.
    Wait,
}

impl Purpose {
    /// Whether the server is told when the answer is not wanted any more.
    pub(super) const fn may_be_cancelled(self) -> bool {
        matches!(self, Self::Call | Self::Subscription | Self::Wait)
    }

    /// Whether silence ends it; the gateway's own have limits of their own.
    pub(super) const fn may_time_out(self) -> bool {
        matches!(self, Self::Call)
    }
}

/// What comes back for a request: notifications and requests, then exactly one answer.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no fourth kind")]
pub enum Message {
    /// A notification that belongs to the request, the whole message as it was sent.
    Notification(Bytes),
    /// What the server asks of the client that made the request, on a connection that it has alone.
    Request(ServerRequest),
    /// The answer; nothing follows.
    Answer(Answer),
}

/// The whole message that answers a request, as it was sent.
///
/// # Properties
///
/// It is UTF-8, one JSON object, and has a `result` or an `error`. Its `id` is the connection's own.
#[derive(Clone, Debug)]
pub struct Answer {
    message: Bytes,
    outcome: Outcome,
}

impl Answer {
    /// The answer that `message` is; `None` when it is none, or answers nobody's request.
    ///
    /// # Examples
    ///
    /// ```
    /// use crate::Answer;
    ///
    /// let answer = Answer::parse(r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1.10}}"#.into()).unwrap();
    /// assert_eq!(answer.outcome(), Ok(r#"{"a": 1.10}"#));
    ///
    /// // What a logger writes to standard output is JSON, but no answer.
    /// assert!(Answer::parse(r#"{"level":30,"msg":"ready"}"#.into()).is_none());
    /// ```
    #[must_use]
    pub fn parse(message: Bytes) -> Option<Self> {
        match Frame::read(&message) {
            Ok(Frame::Answer { outcome, .. }) => Some(Self { outcome, message }),
            _ => None,
        }
    }

    pub(super) const fn new(message: Bytes, outcome: Outcome) -> Self {
        Self { message, outcome }
    }

    /// The error that takes the place of an answer to the request `id` that nests too deep.
    pub(super) fn too_deep(server: &str, id: u64) -> Self {
        let why = format!(
            "the answer of server `{server}` nests deeper than {MAX_DEPTH} levels, so it is not passed on"
        );
        tracing::warn!(server, levels = MAX_DEPTH, "answer nests too deep");
        let error = server_message::error(INTERNAL_ERROR, &why);
        let message = server_message::write_answer(&id.to_string(), Err(&error));
        let start = message.len() - 1 - error.len();
        let payload = start..message.len() - 1;
        let outcome = Outcome {
            is_error: true,
            payload,
        };
        Self { message, outcome }
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
    #[must_use]
    pub const fn message(&self) -> &Bytes {
        &self.message
    }
}

/// What a server tells without being asked.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server said that a list changed.
    ListChanged(Kind),
    /// A list may have changed unheard: whenever changes begin to be heard, at the start or after an
    /// interruption, this is told of all lists.
    ListMayHaveChanged(Kind),
    /// It asks its client something that belongs to no call. Told of a connection that one client has alone.
    Asked(ServerRequest),
    /// A notification that belongs to no call, the whole message as it was sent. Likewise.
    Told(Bytes),
    /// A resource that is subscribed to changed, or may have: when a subscription holds again after an
    /// interruption, that is told of its resource, too.
    ResourceUpdated {
        /// The server's own URI of the resource.
        uri: Arc<str>,
        /// The parameters of the notification, JSON text.
        params: Arc<str>,
    },
    /// A task stands otherwise than before, in whichever form the server said so.
    TaskChanged {
        /// What the server calls the task.
        id: Arc<str>,
        /// The parameters of the notification, JSON text.
        params: Arc<str>,
    },
    /// A connection was made, the first or another one: what is known of the server may be old.
    /// Told by a [`Line`](super::Line) alone.
    Connected,
    /// The connection is gone; another one is being made. Told by a [`Line`](super::Line) alone.
    Lost {
        /// How it ended.
        reason: String,
    },
    /// The connection is gone; nothing follows.
    Closed {
        /// How it ended.
        reason: String,
    },
}

impl Event {
    /// What a notification with these parameters tells; `None` when they name no resource.
    pub(super) fn updated(params: Option<&str>) -> Option<Self> {
        let params = params?;
        let uri = Members::parse(params).ok()?.get_str("uri")?;
        Some(Self::ResourceUpdated {
            uri: uri.into(),
            params: params.into(),
        })
    }

    /// What a notification tells of a task; `None` when it names none.
    pub(super) fn task_changed(params: Option<&str>) -> Option<Self> {
        let params = params?;
        let id = Members::parse(params).ok()?.get_str("taskId")?;
        Some(Self::TaskChanged {
            id: id.into(),
            params: params.into(),
        })
    }

    /// What a notification tells of a resource or a task; `None` for all others.
    pub(super) fn changed_by(method: &str, params: Option<&str>) -> Option<Self> {
        match method {
            RESOURCE_UPDATED => Self::updated(params),
            _ if TASK_STATUS.contains(&method) => Self::task_changed(params),
            _ => None,
        }
    }

    /// What was told nowhere: the resource `uri` may have changed.
    pub(super) fn may_be_updated(uri: &Arc<str>) -> Self {
        let params = format!(r#"{{"uri":{}}}"#, mcp_vary::json::string(uri));
        Self::ResourceUpdated {
            uri: Arc::clone(uri),
            params: params.into(),
        }
    }
}

const INTERNAL_ERROR: i32 = -32603;

/// The notification that a server logs something.
pub(super) const LOG_MESSAGE: &str = "notifications/message";

/// The notification that a resource changed.
pub(super) const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// The parameters of `notifications/cancelled`.
pub(super) fn cancel_params(id: u64, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(r#","reason":{}"#, mcp_vary::json::string(reason)));
    format!(r#"{{"requestId":{id}{}}}"#, reason.unwrap_or_default())
}
