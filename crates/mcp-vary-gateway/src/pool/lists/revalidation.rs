//! The lists to read or to merge although the server announced no change.

use std::collections::BTreeSet;

use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::listing::ListKind;
use tokio::sync::Notify;

/// The lists of one connection to read or to merge although the server announced no change.
#[derive(Debug, Default)]
pub(super) struct Revalidation {
    waiting: Lock<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Expired, and to be read again.
    stale: BTreeSet<ListKind>,
    /// Requested by clients although the server does not declare them, while it was not connected.
    requested: BTreeSet<ListKind>,
    /// Found although the server does not declare them, and to be merged.
    found: BTreeSet<ListKind>,
}

impl Revalidation {
    /// Waits until there are lists to [read](Self::stale) or to [merge](Self::take_found).
    pub(super) async fn notified(&self) {
        self.wake.notified().await;
    }

    /// Has a list read again.
    pub(super) fn add_stale(&self, kind: ListKind) {
        if self.waiting.lock().stale.insert(kind) {
            self.wake.notify_one();
        }
    }

    /// The lists to read again.
    pub(super) fn stale(&self) -> BTreeSet<ListKind> {
        self.waiting.lock().stale.clone()
    }

    /// Notes that lists were read again.
    pub(super) fn remove_stale(&self, kinds: &BTreeSet<ListKind>) {
        self.waiting
            .lock()
            .stale
            .retain(|kind| !kinds.contains(kind));
    }

    /// Has lists requested once the server is connected.
    pub(super) fn add_requested(&self, kinds: impl IntoIterator<Item = ListKind>) {
        self.waiting.lock().requested.extend(kinds);
    }

    /// The lists to request from the connected server.
    pub(super) fn take_requested(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut self.waiting.lock().requested)
    }

    /// Has a list merged that was found.
    pub(super) fn add_found(&self, kind: ListKind) {
        self.waiting.lock().found.insert(kind);
        self.wake.notify_one();
    }

    /// The lists to merge.
    pub(super) fn take_found(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut self.waiting.lock().found)
    }
}
