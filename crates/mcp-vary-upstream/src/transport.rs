//! The transport of a connection, and one request on it until its answer.

use std::sync::Arc;

use tokio::sync::watch;

use crate::answer_memory::AnswerLease;
use crate::error::UpstreamError;
use crate::liveness::{CallGuard, Liveness};
use crate::message::{Answer, Message, Request, RequestKind};
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;
use crate::{http, stdio};

/// The transport of a connection.
#[derive(Debug)]
pub(crate) enum Transport {
    Stdio(stdio::Connection),
    Http(Arc<http::Connection>),
}

impl Transport {
    pub(crate) async fn request(
        &self,
        request: Request,
        kind: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        let memory = AnswerLease::of(request.memory.clone());
        let inner = match self {
            Self::Stdio(connection) => Inner::Stdio(connection.request(request, kind).await?),
            Self::Http(connection) => Inner::Http(connection.request(request, kind)?),
        };
        Ok(Exchange {
            inner,
            memory,
            _running: kind.is_work().then(|| self.liveness().begin_call()),
        })
    }

    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), UpstreamError> {
        match self {
            Self::Stdio(connection) => connection.notify(method, params).await,
            Self::Http(connection) => connection.notify(method, params).await,
        }
    }

    /// Ends the process or the session, and waits until that is done.
    pub(crate) async fn close(&self) {
        match self {
            Self::Stdio(connection) => connection.close().await,
            Self::Http(connection) => connection.close().await,
        }
    }

    pub(crate) fn without_secrets(&self, text: &str) -> String {
        match self {
            Self::Stdio(connection) => connection.without_secrets(text),
            Self::Http(connection) => connection.without_secrets(text),
        }
    }

    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        match self {
            Self::Stdio(connection) => connection.stderr_lines(),
            Self::Http(_) => Vec::new(),
        }
    }

    pub(crate) fn liveness(&self) -> &Arc<Liveness> {
        match self {
            Self::Stdio(connection) => connection.liveness(),
            Self::Http(connection) => connection.liveness(),
        }
    }

    pub(crate) fn server_requests(&self) -> &Arc<ServerRequests> {
        match self {
            Self::Stdio(connection) => connection.server_requests(),
            Self::Http(connection) => connection.server_requests(),
        }
    }

    /// The log level of a legacy server.
    pub(crate) fn log_level(&self) -> Arc<ServerLogLevel> {
        match self {
            Self::Stdio(_) => Arc::default(),
            Self::Http(connection) => Arc::clone(connection.log_level()),
        }
    }

    /// Changes whenever a new session replaced the server's session, whose state is lost; `None` where that cannot happen.
    pub(crate) fn session_renewed(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(connection) => Some(connection.session_renewed()),
        }
    }

    /// Changes whenever the stream for messages that belong to no request is opened; earlier messages were missed.
    /// `None` where none can be missed.
    pub(crate) fn stream_opened(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(connection) => Some(connection.stream_opened()),
        }
    }
}

/// One request, until its answer.
///
/// # Properties
///
/// Notifications come in the order in which the server sent them, then exactly one answer or error.
/// Dropping it before that cancels the request at the server: on stdio and in legacy HTTP with
/// `notifications/cancelled`, in modern HTTP by closing its connection.
#[derive(Debug)]
pub struct Exchange {
    inner: Inner,
    /// For an answer that came with others, and has taken none before.
    memory: AnswerLease,
    _running: Option<CallGuard>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost each call an allocation"
)]
enum Inner {
    Stdio(stdio::Exchange),
    Http(http::Exchange),
}

impl Exchange {
    /// The next message. Safe to drop while it waits: nothing is lost.
    ///
    /// # Errors
    ///
    /// When the call has failed; nothing follows then.
    pub async fn next(&mut self) -> Result<Message, UpstreamError> {
        let (message, server) = match &mut self.inner {
            Inner::Stdio(exchange) => (exchange.next().await?, exchange.server()),
            Inner::Http(exchange) => (exchange.next().await?, exchange.server()),
        };
        Ok(match message {
            Message::Answer(answer) if answer.memory().is_none() => {
                let room = self.memory.grow_to(answer.message().len());
                room.map_err(|_| UpstreamError::NoRoom {
                    server: Arc::clone(server),
                })?;
                Message::Answer(answer.in_memory(self.memory.take()))
            }
            message => message,
        })
    }

    /// The answer; notifications before it are dropped.
    ///
    /// # Errors
    ///
    /// When the call has failed.
    pub async fn answer(mut self) -> Result<Answer, UpstreamError> {
        loop {
            if let Message::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Cancels the request at the server, as dropping does, and sends the reason where the protocol has a place for it.
    pub fn cancel(mut self, reason: Option<&str>) {
        match &mut self.inner {
            Inner::Stdio(exchange) => exchange.cancel(reason),
            Inner::Http(exchange) => exchange.cancel(reason),
        }
    }
}
