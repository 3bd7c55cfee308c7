//! The sessions of a connection that has one client: the one that `initialize` opened, and that of modern requests.

use std::sync::Arc;

use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::caller::Caller;
use mcp_vary_session::{BASE_CLASS, Negotiated, Session};

/// The sessions of one stdio client.
pub(crate) struct ConnectionSessions {
    /// Opened by `initialize`.
    legacy: Option<LegacySession>,
    /// Has the modern requests in flight, so that they can be cancelled.
    modern: Arc<Session>,
    /// Previous legacy sessions with requests in flight.
    former: Vec<Arc<Session>>,
    /// The latest legacy session, until its messages are written.
    opened: Option<Arc<Session>>,
}

struct LegacySession {
    session: Arc<Session>,
    /// The params of `initialize`, to initialize again when a variant of the session was removed.
    params: String,
}

impl ConnectionSessions {
    pub(crate) fn new(snapshot: &ConfigSnapshot) -> Self {
        let principal = snapshot.config.stdio_principal.as_ref();
        let stateless = Negotiated {
            revision: Revision::LATEST_MODERN,
            features: None,
            order: Vec::new(),
            declares_variants: false,
            class: BASE_CLASS.into(),
            client: ClientName::default(),
            principal: principal.map(|principal| principal.id()),
            reason: VariantReason::default(),
        };
        Self {
            legacy: None,
            modern: snapshot.services.sessions.open_stdio(stateless),
            former: Vec::new(),
            opened: None,
        }
    }

    /// All sessions that may have requests in flight.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.legacy()
            .into_iter()
            .chain(&self.former)
            .chain([&self.modern])
    }

    /// The session that `initialize` opened.
    pub(crate) fn legacy(&self) -> Option<&Arc<Session>> {
        self.legacy.as_ref().map(|legacy| &legacy.session)
    }

    /// The session of modern requests.
    pub(super) fn modern(&self) -> &Arc<Session> {
        &self.modern
    }

    /// The legacy session if it was opened since the last call. Its messages are not written yet.
    pub(crate) fn take_opened(&mut self) -> Option<Arc<Session>> {
        self.opened.take()
    }

    /// Sets the session that `initialize` opened, with its `params` as written.
    pub(super) fn open(&mut self, session: &Arc<Session>, params: &str) {
        self.opened = Some(Arc::clone(session));
        self.former.retain(|session| Arc::strong_count(session) > 1);
        let former = self.legacy.replace(LegacySession {
            session: Arc::clone(session),
            params: params.to_owned(),
        });
        self.former.extend(former.map(|former| former.session));
    }

    /// Opens another legacy session if a variant of the one that `initialize` opened was removed.
    ///
    /// # Errors
    ///
    /// When that is so. Over HTTP the client would open a new session. Here it cannot, so it gets
    /// one error and is then served as if it had.
    pub(crate) async fn renegotiate(&mut self, snapshot: &ConfigSnapshot) -> Result<(), RpcError> {
        let is_removed =
            |legacy: &&LegacySession| snapshot.placements.order_of(&legacy.session).is_none();
        let Some(legacy) = self.legacy.as_ref().filter(is_removed) else {
            return Ok(());
        };
        let written = legacy.params.clone();
        let params = Params::read(Some(&written))?;
        let principal = snapshot.config.stdio_principal.as_ref();
        let (negotiated, _) = initialize(snapshot, &Caller::of_stdio(principal), &params).await?;
        let session = legacy.session.renegotiated(negotiated);
        session.remember_principal(principal);
        self.open(&session, &written);
        Err(RpcError::invalid_request(REINITIALIZED))
    }
}

/// The error for the first request after a variant of its session was removed from the configuration.
const REINITIALIZED: &str = "the variants of this session are no longer offered; it continues as if `initialize` had just been \
     sent: list what there is now, then ask again";
