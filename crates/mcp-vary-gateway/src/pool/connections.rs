//! The connections of a class: followed for its catalog, and open for as long as they are in use.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::revision::Era;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::class::CapabilityClass;
use super::live_catalog::{self, Catalogs, LiveCatalog};
use super::observer::ConnectionObserver;
use super::source::ServerSource;
use super::task_events;
use super::usage::ClassUsage;

/// The connections of a class, in the order of configuration. They can outlive the class: after a reload, the next
/// class takes over the connections to unchanged servers.
#[derive(Debug)]
pub(super) struct ClassConnections {
    pub(super) followers: Vec<Arc<ListFollower>>,
    pub(super) usage: Arc<ClassUsage>,
}

impl ClassConnections {
    pub(super) fn new(followers: Vec<Arc<ListFollower>>, usage: Arc<ClassUsage>) -> Self {
        Self { followers, usage }
    }

    /// The ones that `are_wanted`, with the same usage; none if there are none.
    pub(super) fn only(&self, are_wanted: impl Fn(&ListFollower) -> bool) -> Option<Self> {
        let followers = self.followers.iter().filter(|it| are_wanted(it));
        let followers: Vec<_> = followers.cloned().collect();
        let usage = Arc::clone(&self.usage);
        (!followers.is_empty()).then_some(Self { followers, usage })
    }

    /// Whether `connection` is one of them.
    pub(super) fn has(&self, connection: &Arc<SupervisedConnection>) -> bool {
        let mut followers = self.followers.iter();
        followers.any(|it| Arc::ptr_eq(&it.source.connection, connection))
    }

    pub(super) fn sources(&self) -> Vec<Arc<ServerSource>> {
        let sources = self.followers.iter().map(|it| Arc::clone(&it.source));
        sources.collect()
    }

    /// Notifies `catalog` of changes from now on.
    pub(super) fn notify(&self, catalog: &Arc<LiveCatalog>) {
        for follower in &self.followers {
            let mut catalogs = follower.catalogs.lock();
            catalogs.retain(|catalog| catalog.strong_count() > 0);
            catalogs.push(Arc::downgrade(catalog));
        }
    }

    pub(super) fn note_use(&self) {
        self.keep_for(Duration::ZERO);
    }

    /// Counts them as used for this long from now on.
    fn keep_for(&self, time: Duration) {
        self.usage.extend(time);
    }

    /// The time since their last use.
    pub(super) fn idle(&self) -> Duration {
        self.usage.idle()
    }

    /// Whether they are in use, or were within `unused`.
    pub(super) fn are_used(self: &Arc<Self>, unused: Duration) -> bool {
        Arc::strong_count(self) > 1 || self.usage.idle() < unused
    }
}

/// A class in use: its connections stay open, and are not evicted, until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionUse(Arc<ClassConnections>);

impl ConnectionUse {
    pub(crate) fn new(class: &CapabilityClass) -> Self {
        class.connections.usage.begin();
        Self(Arc::clone(&class.connections))
    }

    /// Counts them as used for this long, even after this is dropped.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.0.keep_for(time);
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.usage.end();
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
    pub(super) fn begin(connection: Arc<SupervisedConnection>, context: &PoolContext) -> Arc<Self> {
        let stop = context.shutdown.child_token();
        let source = ServerSource::new(connection, Arc::clone(&context.shared_lists));
        let follower = Arc::new(Self {
            source: Arc::new(source),
            catalogs: Arc::default(),
            _following: Some(stop.clone().drop_guard()),
        });
        let (source, catalogs) = (&follower.source, &follower.catalogs);
        let observer = Arc::clone(&context.observer);
        let lists = live_catalog::follow(Arc::clone(source), Arc::clone(catalogs), observer);
        let lists = stop.clone().run_until_cancelled_owned(lists);
        context.background_tasks.spawn(lists);
        let (connection, id) = (Arc::clone(&source.connection), source.id);
        let (server, events) = (source.name().into(), connection.events());
        // A server without sessions sends updates on each connection for the resources that are subscribed to there.
        let is_modern = move || {
            let upstream = connection.current();
            upstream.is_some_and(|upstream| upstream.handshake().era() == Era::Modern)
        };
        let observer = Arc::clone(&context.observer);
        let tasks =
            task_events::follow(server, events, observer, move || is_modern().then_some(id));
        let tasks = stop.run_until_cancelled_owned(tasks);
        context.background_tasks.spawn(tasks);
        follower
    }
}

/// The parts of the gateway that are needed to follow servers.
#[derive(Clone, Debug)]
pub(crate) struct PoolContext {
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
    pub(crate) observer: Arc<dyn ConnectionObserver>,
    /// The parts that several classes share.
    pub(crate) shared_lists: Arc<SharedLists>,
}
