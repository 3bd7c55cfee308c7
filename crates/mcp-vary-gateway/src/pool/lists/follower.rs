//! Follows one server, and merges what it changes into the catalogs that show it.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::{Event, SupervisedConnection};
use mcp_vary_wire::revision::Era;
use tokio::sync::broadcast;
use tokio_util::sync::DropGuard;

use super::changes::Changes;
use super::live_catalog::LiveCatalog;
use super::observer::{ListObserver, PoolContext};
use super::source::ServerSource;
use super::{following, task_events, undeclared};

/// One server on one connection, followed for each catalog that shows it.
#[derive(Debug)]
pub(crate) struct ListFollower {
    pub(crate) source: Arc<ServerSource>,
    catalogs: Catalogs,
    /// Stops following when dropped.
    _following: Option<DropGuard>,
}

/// The catalogs that show a source.
type Catalogs = Arc<Lock<Vec<Weak<LiveCatalog>>>>;

impl ListFollower {
    /// A follower of a source whose lists have been read, and whose events another task
    /// [follows](Self::follow_on).
    pub(crate) fn of(source: ServerSource) -> Self {
        Self {
            source: Arc::new(source),
            catalogs: Catalogs::default(),
            _following: None,
        }
    }

    /// Starts to follow a server.
    pub(crate) fn begin(connection: Arc<SupervisedConnection>, context: &PoolContext) -> Arc<Self> {
        let source = ServerSource::new(connection, Arc::clone(&context.shared_lists));
        Self::start(source, Catalogs::default(), context)
    }

    /// Starts to follow a server on a connection that is called, and shows the lists of `other`.
    pub(crate) fn with_lists_of(
        other: &Self,
        connection: Arc<SupervisedConnection>,
        context: &PoolContext,
    ) -> Arc<Self> {
        let source = ServerSource::with_lists_of(&other.source, connection);
        Self::start(source, Arc::clone(&other.catalogs), context)
    }

    fn start(source: ServerSource, catalogs: Catalogs, context: &PoolContext) -> Arc<Self> {
        let stop = context.shutdown.child_token();
        let follower = Arc::new(Self {
            source: Arc::new(source),
            catalogs,
            _following: Some(stop.clone().drop_guard()),
        });
        let (source, catalogs) = (Arc::clone(&follower.source), Arc::clone(&follower.catalogs));
        let (connection, id) = (Arc::clone(&source.connection), source.id);
        let (server, events) = (source.name().into(), connection.events());
        let observer = Arc::clone(&context.observer);
        let lists = async move {
            let merge = |changes| merge(&source, &catalogs, &*observer, changes);
            if source.shares_lists() {
                following::follow_resources(&source, merge).await;
            } else {
                following::follow(&source, merge).await;
            }
        };
        let lists = stop.clone().run_until_cancelled_owned(lists);
        context.background_tasks.spawn(lists);
        let is_modern = move || {
            let upstream = connection.current();
            upstream.is_some_and(|upstream| upstream.handshake().era() == Era::Modern)
        };
        let observer = Arc::clone(&context.observer);
        let notifications = task_events::follow(server, events, observer, Some(id), is_modern);
        let notifications = stop.run_until_cancelled_owned(notifications);
        context.background_tasks.spawn(notifications);
        follower
    }

    /// Follows the `events` since the lists were read, until the connection is closed.
    pub(crate) async fn follow_on(
        &self,
        events: broadcast::Receiver<Event>,
        observer: &dyn ListObserver,
    ) {
        let merge = |changes| merge(&self.source, &self.catalogs, observer, changes);
        following::follow_after(&self.source, None, events, merge).await;
    }

    /// Notifies `catalog` of changes from now on.
    pub(crate) fn notify(&self, catalog: &Arc<LiveCatalog>) {
        let mut catalogs = self.catalogs.lock();
        catalogs.retain(|catalog| catalog.strong_count() > 0);
        catalogs.push(Arc::downgrade(catalog));
    }
}

async fn merge(
    source: &Arc<ServerSource>,
    catalogs: &Catalogs,
    observer: &dyn ListObserver,
    changes: Changes,
) {
    let living: Vec<_> = {
        let mut known = catalogs.lock();
        known.retain(|catalog| catalog.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    };
    let lists = &changes.lists;
    if !lists.is_empty() {
        join_all(living.iter().map(|catalog| catalog.rebuild(lists))).await;
    }
    if !changes.announced.is_empty() {
        for catalog in living.iter().filter(|it| it.repeats_announcements()) {
            observer.lists_changed(catalog.id, &catalog.all_of(&changes.announced));
        }
    }
    observer.resources_changed(source.id, &changes.updates);
    undeclared::send_requested(source);
}
