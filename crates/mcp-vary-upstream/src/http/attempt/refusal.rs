//! What a refusal means: an answer of the server, or that it may have lost the session.
//!
//! Servers report a lost session in many ways (`docs/internals/faults.md`), so a refusal alone proves little. What can
//! be read from it is decided here; the handshaker then finds out whether the session is gone.

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{Response, StatusCode};
use mcp_vary::error_code::{METHOD_NOT_FOUND, SERVER_ERROR, SESSION_NOT_FOUND};
use mcp_vary::json::Members;
use mcp_vary_wire::server_message::{self, ServerMessage};
use mcp_vary_wire::sse::Parser;

use super::super::collect::is_web_page;
use super::super::headers::is_stream;
use super::super::session::Session;
use super::super::stream::data_of_message;
use super::{Attempt, State, begin};
use crate::error::{UpstreamError, error_code};
use crate::handshake::is_modern_error;
use crate::message::{Answer, Message, RequestKind};

/// A refusal of a request, after which its session may be gone.
pub(in crate::http) struct Refusal {
    /// What the caller receives unless the request is sent again.
    pub(in crate::http) outcome: Result<Answer, UpstreamError>,
    /// Whether it shows that the request did not run, so that it can be sent again in a new session.
    pub(in crate::http) did_not_run: bool,
    /// Whether the session is gone by the specification, so that nothing else has to show it.
    pub(in crate::http) is_conclusive: bool,
}

/// The head of a response that is not a success.
#[derive(Clone, Copy)]
pub(in crate::http) struct RefusalHead {
    pub(in crate::http) status: StatusCode,
    is_stream: bool,
    has_challenge: bool,
}

/// A JSON-RPC error in the body of a refusal.
pub(in crate::http) struct RpcRefusal {
    /// The id of the request; `None` if the server could not read it, or does not say.
    pub(in crate::http) id: Option<u64>,
    pub(in crate::http) answer: Answer,
}

impl RefusalHead {
    pub(in crate::http) fn of<B>(response: &Response<B>) -> Self {
        Self {
            status: response.status(),
            is_stream: is_stream(response.headers()),
            has_challenge: response.headers().contains_key(WWW_AUTHENTICATE),
        }
    }

    /// Whether the refusal is about credentials, whatever its body contains.
    ///
    /// The error of a call is for its client, unless the response has a challenge, which is for the operator.
    pub(in crate::http) fn is_about_credentials(self, is_call: bool) -> bool {
        matches!(self.status.as_u16(), 401 | 403 | 407) && (self.has_challenge || !is_call)
    }

    /// The first JSON-RPC error in `body`; one with the id `own_id` comes first.
    pub(in crate::http) fn read_error(self, body: &Bytes, own_id: u64) -> Option<RpcRefusal> {
        let data = if self.is_stream {
            // The body was bounded when it was read.
            let events = Parser::new(body.len()).feed(body).unwrap_or_default();
            events.into_iter().filter_map(data_of_message).collect()
        } else {
            vec![body.clone()]
        };
        let messages = data.into_iter().flat_map(server_message::messages);
        let errors = messages.filter_map(|message| match ServerMessage::read(&message) {
            Ok(ServerMessage::Response { id, outcome, .. }) if outcome.is_error => {
                let answer = Answer::new(message.clone(), outcome);
                Some(RpcRefusal { id, answer })
            }
            _ => None,
        });
        errors.min_by_key(|error| error.id != Some(own_id))
    }
}

impl Attempt {
    /// Handles an HTTP error: its body is the answer if it is a JSON-RPC error with the id of the request.
    pub(super) fn on_error_body(
        &mut self,
        head: RefusalHead,
        body: &Bytes,
    ) -> Result<(), UpstreamError> {
        let status = head.status;
        let kind = self.call.kind;
        let is_not_found = status == StatusCode::NOT_FOUND;
        // Notes a loop, whatever the body.
        let failure = self.shared.endpoint.status_error(status, body);
        let error = head.read_error(body, self.call.id);
        let text = error
            .as_ref()
            .and_then(|error| error.answer.outcome().err());
        let mentions = mentions_session(text.map_or(&body[..], str::as_bytes));
        let is_modern = text.is_some_and(is_modern_error);
        let is_expired = text.is_some_and(|text| is_session_expired(status, text));
        let id = error.as_ref().map(|error| error.id);
        let is_own = id == Some(Some(self.call.id));
        let is_doubtful = text.is_some_and(|text| self.doubts_session(text));
        // A server that does not find the health check, which it answered before, was replaced by another.
        let is_unfindable = is_not_found && kind == RequestKind::HealthCheck;
        let is_answer = (is_own || is_modern && id == Some(None))
            && !is_unfindable
            && !head.is_about_credentials(kind == RequestKind::Call);
        let refusal = Refusal {
            did_not_run: mentions || shows_not_run(status),
            is_conclusive: is_expired || is_not_found && !is_own,
            outcome: match error {
                Some(error) if is_answer => Ok(error.answer),
                _ => Err(failure),
            },
        };
        let may_be_lost = if is_answer {
            is_doubtful
        } else {
            may_mean_lost(status)
        };
        if (may_be_lost || refusal.is_conclusive) && self.can_renew(mentions) {
            self.state = State::Refused(Box::new(refusal));
            return Ok(());
        }
        let is_other_era = is_not_found || is_modern && self.session.is_legacy();
        if is_other_era || is_own && self.session.id.is_some() {
            self.suspect();
        }
        self.finish(refusal.outcome)
    }

    /// Requests a health check after a strange answer to a call: the server may have lost the session without saying so, or
    /// one of the other era may have replaced it.
    fn suspect(&self) {
        if self.call.kind.is_work() {
            self.shared.endpoint.liveness.suspect();
        }
    }

    /// Whether an error that answers the request may be about the session.
    fn doubts_session(&self, error: &str) -> bool {
        match self.call.kind {
            RequestKind::HealthCheck => is_strange_for_probe(error),
            _ => mentions_session(error.as_bytes()),
        }
    }

    /// Receives an error that answers the request, unless it may say that the session is gone.
    pub(super) fn on_error_answer(&mut self, answer: Answer) {
        let error = answer.outcome().err().unwrap_or_default();
        let is_doubtful = self.doubts_session(error);
        let mentions = mentions_session(error.as_bytes());
        if is_doubtful && self.can_renew(mentions) {
            self.refuse(Ok(answer), mentions);
            return;
        }
        if self.session.id.is_some() {
            self.suspect();
        }
        self.received.push(Message::Answer(answer));
    }

    /// Fails, since the response contains no answer. In a session, the handshaker first finds out whether the server has lost it.
    pub(super) fn on_no_answer(
        &mut self,
        failure: UpstreamError,
        mentions_session: bool,
    ) -> Result<(), UpstreamError> {
        if !self.can_renew(mentions_session) {
            return Err(failure);
        }
        self.refuse(Err(failure), mentions_session);
        Ok(())
    }

    /// Waits until the handshaker knows whether the session is gone, which only the refusal itself suggests.
    pub(super) fn refuse(&mut self, outcome: Result<Answer, UpstreamError>, did_not_run: bool) {
        self.state = State::Refused(Box::new(Refusal {
            outcome,
            did_not_run,
            is_conclusive: false,
        }));
    }

    /// Whether a refusal is a reason to find out whether the session is gone: once for each request. A server without
    /// session ids has to mention the session.
    pub(super) fn can_renew(&self, mentions_session: bool) -> bool {
        let Session { id, stream, .. } = &*self.session;
        let has_session = id.is_some() || mentions_session && stream.is_none();
        let can_expire = self.session.is_legacy() && has_session && !self.is_running;
        if !can_expire || self.call.kind == RequestKind::Handshake {
            return false;
        }
        if self.was_resent {
            self.shared.session.note_useless_renewal();
        }
        !self.was_resent
    }

    /// Goes on after a refusal: sends the request again, once, if a new session has replaced the lost one and the request
    /// did not run.
    pub(in crate::http) fn on_renewal(&mut self, is_renewed: bool) -> Result<(), UpstreamError> {
        let State::Refused(refusal) = std::mem::replace(&mut self.state, State::Finished) else {
            return Ok(());
        };
        self.touch();
        if !(is_renewed && refusal.did_not_run) {
            return self.finish(refusal.outcome);
        }
        self.was_resent = true;
        self.session = self.shared.session.load();
        self.state = begin(&self.shared, &self.session, &self.call);
        Ok(())
    }
}

/// Whether a status can mean that the session is gone: not if it speaks of the load, of a proxy's credentials or of a loop.
pub(in crate::http) fn may_mean_lost(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 407 | 408 | 429 | 508)
}

/// Whether a request that was refused with `status` did not run.
pub(in crate::http) fn shows_not_run(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 401 | 403 | 404 | 410)
}

/// Whether an error, or the body of a refusal, speaks of a session, or of a server that is not initialized.
pub(in crate::http) fn mentions_session(body: &[u8]) -> bool {
    let start = &body[..body.len().min(MENTION_BYTES)];
    let text = String::from_utf8_lossy(start).to_lowercase();
    !is_web_page(body)
        && ["session", "initiali"]
            .iter()
            .any(|word| text.contains(word))
}

/// Whether a server that answers a request without parameters with this error may have lost the session.
pub(in crate::http) fn is_strange_for_probe(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    error_code(&members) != Some(METHOD_NOT_FOUND) || mentions_session(error.as_bytes())
}

/// Whether an error means that the session is gone: servers on the official SDKs send 404 with -32001, those written after
/// an early example 400 with -32000.
pub(in crate::http) fn is_session_expired(status: StatusCode, error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    let message = members.get_str("message").unwrap_or_default();
    let is_code = matches!(
        (status.as_u16(), error_code(&members)),
        (400, Some(SERVER_ERROR)) | (404, Some(SESSION_NOT_FOUND))
    );
    is_code && message.to_lowercase().contains("session")
}

/// How much of a body is searched for words.
const MENTION_BYTES: usize = 2048;
