//! The connections of a class, followed for its catalog.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::SupervisedConnection;

use super::usage::ClassUsage;
use crate::pool::lists::follower::ListFollower;
use crate::pool::lists::live_catalog::LiveCatalog;
use crate::pool::lists::source::ServerSource;

/// The connections of a class, in the order of configuration. They can outlive the class: after a reload, the next
/// class takes over the connections to unchanged servers.
#[derive(Debug)]
pub(crate) struct ClassConnections {
    pub(crate) followers: Vec<Arc<ListFollower>>,
    pub(crate) usage: Arc<ClassUsage>,
}

impl ClassConnections {
    pub(crate) fn new(followers: Vec<Arc<ListFollower>>, usage: Arc<ClassUsage>) -> Self {
        Self { followers, usage }
    }

    /// The ones that `are_wanted`, with the same usage; none if there are none.
    pub(crate) fn only(&self, are_wanted: impl Fn(&ListFollower) -> bool) -> Option<Self> {
        let wanted = self.followers.iter().filter(|it| are_wanted(it));
        let followers: Vec<_> = wanted.cloned().collect();
        let usage = Arc::clone(&self.usage);
        (!followers.is_empty()).then_some(Self { followers, usage })
    }

    /// Whether `connection` is one of them.
    pub(crate) fn has(&self, connection: &Arc<SupervisedConnection>) -> bool {
        let mut sources = self.followers.iter().map(|follower| &follower.source);
        sources.any(|source| Arc::ptr_eq(&source.connection, connection))
    }

    pub(crate) fn sources(&self) -> Vec<Arc<ServerSource>> {
        let sources = self.followers.iter().map(|follower| &follower.source);
        sources.map(Arc::clone).collect()
    }

    /// Notifies `catalog` of changes from now on.
    pub(crate) fn notify(&self, catalog: &Arc<LiveCatalog>) {
        for follower in &self.followers {
            follower.notify(catalog);
        }
    }

    pub(crate) fn note_use(&self) {
        self.usage.extend(Duration::ZERO);
    }

    /// The time since their last use.
    pub(crate) fn idle(&self) -> Duration {
        self.usage.idle()
    }

    /// Whether they are in use, or were within `unused`.
    pub(crate) fn are_used(self: &Arc<Self>, unused: Duration) -> bool {
        Arc::strong_count(self) > 1 || self.usage.idle() < unused
    }
}
