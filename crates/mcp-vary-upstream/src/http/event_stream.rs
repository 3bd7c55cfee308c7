//! The transport of 2024-11-05 (HTTP with SSE): all messages of the server are on one stream, and those of the client are
//! posted to the address that the stream names first.
//!
//! Source: MCP 2024-11-05, basic/transports, "HTTP with SSE"; 2025-11-25, basic/transports, "Backwards Compatibility".

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Uri;
use mcp_vary_base::lock::ScopedLock;
use tokio::sync::oneshot;

use crate::message::Answer;

/// An open stream: where messages are posted, and the requests that it has not answered yet.
///
/// # Properties
///
/// The connection ends with the stream, as with the process of a server, and the supervisor opens another one.
pub(super) struct EventStream {
    /// It has the id of the session, so any client that knows it can post.
    pub(super) uri: Uri,
    unanswered: Arc<Unanswered>,
}

/// Where the answer to each request goes.
type Unanswered = ScopedLock<BTreeMap<u64, oneshot::Sender<Answer>>>;

/// The answer to one request. Dropping it forgets the request.
pub(super) struct PendingAnswer {
    id: u64,
    unanswered: Arc<Unanswered>,
    answer: oneshot::Receiver<Answer>,
}

mcp_vary_base::debug_by_name!(EventStream);

impl EventStream {
    /// The stream whose messages are posted to `uri`.
    pub(super) fn new(uri: Uri) -> Self {
        Self {
            uri,
            unanswered: Arc::default(),
        }
    }

    /// The answer to the request `id`, which is about to be sent.
    pub(super) fn expect(&self, id: u64) -> PendingAnswer {
        let (sender, answer) = oneshot::channel();
        self.unanswered.lock().insert(id, sender);
        PendingAnswer {
            id,
            unanswered: Arc::clone(&self.unanswered),
            answer,
        }
    }

    /// Delivers an answer; `false` if its request is not in flight.
    pub(super) fn deliver(&self, id: u64, answer: Answer) -> bool {
        let sender = self.unanswered.lock().remove(&id);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

impl PendingAnswer {
    /// Waits for the answer; `None` if it was received before. Safe to drop while it waits.
    pub(super) async fn receive(&mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.unanswered.lock().remove(&self.id);
    }
}
