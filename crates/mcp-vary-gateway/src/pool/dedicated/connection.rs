//! One dedicated connection.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_vary_access::PrincipalId;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::{SupervisedConnection, UpstreamConfig};
use mcp_vary_wire::client_id::ClientId;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_lists::DedicatedLists;
use super::mirror::SubscriptionMirror;
use crate::pool::connections::eviction::Evictions;
use crate::pool::connections::last_use::LastUse;
use crate::pool::connections::server::PooledServer;
use crate::pool::lists::ids::ConnectionId;
use mcp_vary_session::Session;

/// One dedicated connection.
#[derive(Debug)]
pub(super) struct DedicatedConnection {
    pub(super) id: ConnectionId,
    pub(super) upstream: Arc<SupervisedConnection>,
    /// The only principal that uses it; `None` where clients are not authenticated.
    pub(super) principal: Option<PrincipalId>,
    /// Whether the class of its session reads its lists on it, too.
    pub(super) is_adopted: bool,
    /// The session that used it last.
    pub(super) session: watch::Sender<Weak<Session>>,
    /// Its resource updates, if requests lease it.
    pub(super) mirror: Option<Arc<SubscriptionMirror>>,
    /// Its lists, if the class reads its lists on another connection.
    pub(super) lists: Option<Arc<DedicatedLists>>,
    pub(super) in_use: AtomicUsize,
    /// The number of leases that keep it open without a running request.
    pub(super) keep_alive: AtomicUsize,
    /// The number of leases whose callers are gone without a word.
    pub(super) abandoned: AtomicUsize,
    /// Whether the server has asked for roots, which it remembers.
    pub(super) has_roots: AtomicBool,
    /// Cancelled when its place is given to another client.
    pub(super) evicted: CancellationToken,
    /// The evictions of its server.
    pub(super) evictions: Option<Arc<Lock<Evictions<Option<ClientId>>>>>,
    pub(super) used: LastUse,
    /// Stops its background tasks when dropped.
    pub(super) _listening: DropGuard,
}

/// Identifies a dedicated connection: one server, one owner.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct DedicatedKey {
    /// The number of the server.
    pub(super) server: usize,
    pub(super) owner: Owner,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Owner {
    /// All clients, since the server has one process.
    All,
    /// Leased to one request at a time; each has its own number.
    Request(usize),
    Session(ClientId),
}

/// The parameters of a connection to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectSpec<'a> {
    pub(crate) server: &'a PooledServer,
    /// The configuration of the server for the client.
    pub(crate) config: &'a UpstreamConfig,
    /// The capabilities to declare, JSON text.
    pub(crate) capabilities: &'a str,
    /// The only principal that uses the connection; `None` where clients are not authenticated.
    pub(crate) principal: Option<PrincipalId>,
    /// Whether to try `initialize` first on a server of both eras.
    pub(crate) legacy_first: bool,
}

impl Owner {
    /// By what evictions know it.
    pub(super) const fn session(self) -> Option<ClientId> {
        match self {
            Self::Session(session) => Some(session),
            Self::All | Self::Request(_) => None,
        }
    }
}

impl DedicatedConnection {
    /// Whether all that use it are requests whose callers are gone.
    pub(super) fn is_abandoned(&self) -> bool {
        let in_use = self.in_use.load(Ordering::Relaxed);
        in_use > 0
            && in_use == self.abandoned.load(Ordering::Relaxed)
            && self.keep_alive.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_used(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > 0 || self.keep_alive.load(Ordering::Relaxed) > 0
    }

    /// Notes the session that uses it.
    pub(super) fn set_session(&self, session: &Arc<Session>) {
        self.session.send_if_modified(|known| {
            let is_other = !std::ptr::eq(known.as_ptr(), Arc::as_ptr(session));
            if is_other {
                *known = Arc::downgrade(session);
            }
            is_other
        });
    }

    /// Whether this session used it last.
    pub(super) fn is_of_session(&self, client: ClientId) -> bool {
        let session = self.session.borrow().upgrade();
        session.is_some_and(|session| session.client == client)
    }

    /// Whether it stays open although no request uses it.
    pub(super) fn is_kept_open(&self) -> bool {
        let idle_timeout = self.upstream.config().limits.idle_timeout;
        let lists = self.lists.as_ref();
        let is_tainted = lists.is_some_and(|lists| lists.is_tainted());
        let is_listed_from = self.is_adopted && Arc::strong_count(&self.upstream) > 1;
        let is_recent = !is_tainted && self.used.elapsed() < idle_timeout;
        self.is_used() || is_listed_from || is_recent
    }

    /// Counts as used for this long from now on.
    pub(super) fn keep_for(&self, time: Duration) {
        self.used.extend(time);
    }

    /// Whether it declares the same capabilities and has the same headers.
    pub(super) fn is_for(&self, spec: &ConnectSpec<'_>) -> bool {
        let config = self.upstream.config();
        config.capabilities == spec.capabilities && config.target == spec.config.target
    }

    /// Whether the lists are those of the whole class, as far as is known.
    pub(super) fn has_shared_lists(&self) -> bool {
        let lists = self.lists.as_ref();
        lists.is_none_or(|lists| lists.is_shared())
    }

    /// Whether the lists are for `client` only.
    pub(super) fn belongs_to(&self, client: Option<ClientId>) -> bool {
        let lists = self.lists.as_ref();
        lists.is_some_and(|lists| lists.belongs_to(client))
    }
}
