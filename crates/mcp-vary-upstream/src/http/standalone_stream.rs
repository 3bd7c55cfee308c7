//! What is known about the standalone stream of a legacy server.

use std::time::Duration;

use tokio::sync::watch;

/// The standalone stream of one connection.
#[derive(Debug, Default)]
pub(super) struct StandaloneStream {
    /// How often it was opened; messages before the latest time were missed.
    openings: watch::Sender<u64>,
    answer: watch::Sender<StreamAnswer>,
}

/// The server's answer to the request for the stream.
#[derive(Debug, Default)]
struct StreamAnswer {
    /// The generation of the latest session in which the server answered.
    generation: u64,
    /// Whether the server offers no stream, or not in this session. Some servers send the head of the response only with
    /// the first message, so until then the stream may be there.
    is_refused: bool,
}

impl StandaloneStream {
    /// Whether messages may arrive on it during a request that is sent now.
    pub(super) fn may_be_open(&self) -> bool {
        self.was_open() || !self.answer.borrow().is_refused
    }

    /// Whether it was open before, in this session or another.
    pub(super) fn was_open(&self) -> bool {
        *self.openings.borrow() > 0
    }

    /// How often it was opened.
    pub(super) fn openings(&self) -> watch::Receiver<u64> {
        self.openings.subscribe()
    }

    pub(super) fn record_opening(&self) {
        self.openings.send_modify(|count| *count += 1);
    }

    pub(super) fn record_answer(&self, generation: u64) {
        self.answer
            .send_modify(|answer| answer.generation = generation);
    }

    pub(super) fn set_refused(&self, is_refused: bool) {
        self.answer
            .send_modify(|answer| answer.is_refused = is_refused);
    }

    /// Waits until the server has answered in the session `generation`, for at most `limit`.
    pub(super) async fn wait_for_answer(&self, generation: u64, limit: Duration) {
        let mut answer = self.answer.subscribe();
        let answered = answer.wait_for(|answer| answer.generation >= generation);
        // Some servers send the response head only with the first message.
        let _ = tokio::time::timeout(limit.min(ANSWER_TIMEOUT), answered).await;
    }
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
