//! The connections of a class: followed for its catalog, and open for as long as they are in use.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::{CapabilityClass, lock};
use crate::pool::live_catalog::{self, Catalogs, LiveCatalog};
use crate::pool::source::ServerSource;
use crate::subscriptions::{SubscriptionHub, source_id};
use crate::tasks::{self, TaskRegistry};

/// The connections of a class, in the order of configuration. They can outlive the class: after a reload, the next
/// class takes over the connections to unchanged servers.
#[derive(Debug)]
pub(super) struct ClassConnections {
    pub(super) followers: Vec<Arc<ListFollower>>,
    used: Mutex<Instant>,
}

impl ClassConnections {
    pub(super) fn new(followers: Vec<Arc<ListFollower>>) -> Self {
        Self {
            followers,
            used: Mutex::new(Instant::now()),
        }
    }

    /// The ones that `are_wanted`, with the same time of last use; none if there are none.
    pub(super) fn only(&self, are_wanted: impl Fn(&ListFollower) -> bool) -> Option<Self> {
        let followers = self.followers.iter().filter(|it| are_wanted(it));
        let followers: Vec<_> = followers.cloned().collect();
        let used = Mutex::new(*lock(&self.used));
        (!followers.is_empty()).then_some(Self { followers, used })
    }

    pub(super) fn sources(&self) -> Vec<Arc<ServerSource>> {
        let sources = self.followers.iter().map(|it| Arc::clone(&it.source));
        sources.collect()
    }

    /// Notifies `catalog` of changes from now on.
    pub(super) fn set_views(&self, catalog: &Arc<LiveCatalog>) {
        for follower in &self.followers {
            let mut catalogs = lock(&follower.catalogs);
            catalogs.retain(|catalog| catalog.strong_count() > 0);
            catalogs.push(Arc::downgrade(catalog));
        }
    }

    pub(super) fn note_use(&self) {
        self.keep_for(Duration::ZERO);
    }

    /// Counts them as used for this long from now on.
    fn keep_for(&self, time: Duration) {
        let mut used = lock(&self.used);
        *used = used.max(Instant::now() + time);
    }

    /// The time since their last use.
    pub(super) fn idle(&self) -> Duration {
        lock(&self.used).elapsed()
    }

    /// Whether they are in use, or were within `unused`.
    pub(super) fn are_used(self: &Arc<Self>, unused: Duration) -> bool {
        Arc::strong_count(self) > 1 || lock(&self.used).elapsed() < unused
    }
}

/// A class in use: its connections stay open until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionUse(Arc<ClassConnections>);

impl ConnectionUse {
    pub(crate) fn new(class: &CapabilityClass) -> Self {
        Self(Arc::clone(&class.connections))
    }

    /// Counts them as used for this long, even after this is dropped.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.0.keep_for(time);
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.note_use();
    }
}

/// One server on one connection, followed for each catalog that shows it.
#[derive(Debug)]
pub(crate) struct ListFollower {
    pub(crate) source: Arc<ServerSource>,
    catalogs: Catalogs,
    /// Stops following when dropped.
    _following: Option<DropGuard>,
}

impl ListFollower {
    /// A follower of a source whose events another task [follows](live_catalog::follow_on).
    pub(crate) fn of(source: Arc<ServerSource>) -> Self {
        Self {
            source,
            catalogs: Catalogs::default(),
            _following: None,
        }
    }

    /// The catalogs that show the source.
    pub(crate) fn catalogs(&self) -> &Catalogs {
        &self.catalogs
    }

    /// Starts to follow a server.
    pub(super) fn begin(line: Arc<SupervisedConnection>, background: &PoolContext) -> Arc<Self> {
        let following = background.stop.child_token();
        let follower = Arc::new(Self {
            source: Arc::new(ServerSource::new(line, Arc::clone(&background.shared))),
            catalogs: Arc::default(),
            _following: Some(following.clone().drop_guard()),
        });
        let (source, catalogs) = (&follower.source, &follower.catalogs);
        let audience = Arc::clone(&background.hub);
        let follow = live_catalog::follow(Arc::clone(source), Arc::clone(catalogs), audience);
        let stop = following.clone();
        let follow = following.run_until_cancelled_owned(follow);
        background.tasks.spawn(follow);
        let (line, of) = (Arc::clone(&source.connection), source_id(source));
        let (server, events) = (source.name().into(), line.events());
        // A server without sessions sends updates on each connection for what is subscribed to there.
        let is_modern = move || {
            let upstream = line.current();
            upstream.is_some_and(|upstream| upstream.handshake().era() == Era::Modern)
        };
        let made = Arc::clone(&background.task_registry);
        let follow = tasks::follow(server, events, made, move || is_modern().then_some(of));
        let follow = stop.run_until_cancelled_owned(follow);
        background.tasks.spawn(follow);
        follower
    }
}

/// What the pool's background tasks need.
#[derive(Clone, Debug)]
pub(super) struct PoolContext {
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    pub(super) hub: Arc<SubscriptionHub>,
    pub(super) task_registry: Arc<TaskRegistry>,
    /// What several classes share.
    pub(super) shared: Arc<SharedLists>,
}
