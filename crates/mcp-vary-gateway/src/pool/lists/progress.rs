//! The progress of reading the changes that a server announces.

use std::time::Duration;

use tokio::sync::watch;

/// How far the announced changes of one connection were read. Requests wait for it.
#[derive(Debug, Default)]
pub(super) struct ReadingProgress(watch::Sender<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Whether an announced change has not been read yet.
    is_pending: bool,
    /// Whether a request has waited for it until the timeout.
    is_late: bool,
    /// The number of readings of announced changes.
    readings: u64,
}

impl ReadingProgress {
    /// Whether announced changes are not read yet. Requests do not wait for a late reader.
    pub(super) fn has_pending(&self) -> bool {
        let state = *self.0.borrow();
        state.is_pending && !state.is_late
    }

    /// Notes whether an announced change is to be read.
    pub(super) fn set_pending(&self, is_pending: bool) {
        self.0.send_modify(|state| state.is_pending = is_pending);
    }

    /// Calls `announce`, which announces a change, under the lock: the follower sees both changes or neither.
    pub(super) fn announce(&self, announce: impl FnOnce()) {
        self.0.send_if_modified(|state| {
            announce();
            let was_pending = std::mem::replace(&mut state.is_pending, true);
            !was_pending
        });
    }

    /// Notes that announced changes were read; `are_more_pending` says whether others have arrived meanwhile.
    pub(super) fn note_reading(&self, are_more_pending: bool) {
        self.0.send_modify(|state| {
            state.is_pending = are_more_pending;
            state.is_late = false;
            state.readings += 1;
        });
    }

    /// Waits for the first reading. Returns `false` if the follower has stopped.
    pub(super) async fn first_reading(&self) -> bool {
        let mut states = self.0.subscribe();
        states.wait_for(|state| state.readings > 0).await.is_ok()
    }

    /// Waits until nothing is pending and `is_met`, or until the follower has stopped.
    pub(super) async fn settled(&self, is_met: impl Fn() -> bool) {
        let mut states = self.0.subscribe();
        let _ = states.wait_for(|state| !state.is_pending && is_met()).await;
    }

    /// Waits until all announced changes are read. Returns `false` after `limit`.
    ///
    /// If a server announces changes without end, this returns after two readings: the second one began after the call.
    /// If a server is slow, only the first caller waits.
    pub(super) async fn drained(&self, limit: Duration) -> bool {
        let mut states = self.0.subscribe();
        let before = states.borrow().readings;
        let is_drained =
            |state: &State| !state.is_pending || state.is_late || state.readings >= before + 2;
        let drained = tokio::time::timeout(limit, states.wait_for(is_drained)).await;
        if drained.is_err() {
            self.0.send_modify(|state| state.is_late = state.is_pending);
        }
        drained.is_ok()
    }
}
