//! What is kept for a legacy session: its tagging peers, and which variant a subscription is of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_vary::variant::VariantId;
use rmcp::RoleServer;
use rmcp::model::InitializeRequestParams;
use rmcp::service::Peer;

use super::face::Face;
use super::tag::{Outlet, TaggingPeer, tagging_peer};

/// The sessions that one handler serves. That is one, unless someone shares the handler itself.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<Session>>);

struct Session {
    /// The handshake of the session. As an allocation it is unlike that of any other session.
    info: Arc<InitializeRequestParams>,
    client: Peer<RoleServer>,
    peers: BTreeMap<VariantId, TaggingPeer>,
    subscriptions: BTreeMap<String, VariantId>,
}

/// Why a subscription cannot be bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Unbound {
    /// The client is subscribed to the same URI in this other variant.
    Elsewhere(VariantId),
    /// The session has as many subscriptions as are kept.
    TooMany,
}

impl Sessions {
    /// The client as the handler of `variant` is to see it.
    pub(super) fn peer(
        &self,
        client: &Peer<RoleServer>,
        variant: &VariantId,
        face: &Face,
    ) -> Peer<RoleServer> {
        self.with(client, |session| {
            let peer = session.peers.entry(variant.clone()).or_insert_with(|| {
                tagging_peer(
                    client,
                    Outlet::Client(client.clone()),
                    variant.clone(),
                    face.view.clone(),
                )
            });
            peer.peer().clone()
        })
        .unwrap_or_else(|| client.clone())
    }

    /// Binds the subscription to `uri` to `variant`, and says whether it is a new one.
    pub(super) fn subscribe(
        &self,
        client: &Peer<RoleServer>,
        uri: &str,
        variant: &VariantId,
    ) -> Result<bool, Unbound> {
        self.with(client, |session| match session.subscriptions.get(uri) {
            Some(bound) if bound == variant => Ok(false),
            Some(bound) => Err(Unbound::Elsewhere(bound.clone())),
            None if session.subscriptions.len() >= MAX_SUBSCRIPTIONS => Err(Unbound::TooMany),
            None => {
                session
                    .subscriptions
                    .insert(uri.to_owned(), variant.clone());
                Ok(true)
            }
        })
        .unwrap_or(Ok(false))
    }

    /// Ends the subscription to `uri`, and says which variant it was of.
    pub(super) fn unsubscribe(&self, client: &Peer<RoleServer>, uri: &str) -> Option<VariantId> {
        self.with(client, |session| session.subscriptions.remove(uri))
            .flatten()
    }

    /// None where there was no handshake.
    fn with<T>(&self, client: &Peer<RoleServer>, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let info = client.peer_info()?;
        let mut sessions = self.lock();
        let at = sessions
            .iter()
            .position(|session| Arc::ptr_eq(&session.info, &info));
        if at.is_none() {
            sessions.retain(|session| !session.client.is_transport_closed());
            sessions.push(Session {
                info,
                client: client.clone(),
                peers: BTreeMap::new(),
                subscriptions: BTreeMap::new(),
            });
        }
        let session = match at {
            Some(at) => sessions.get_mut(at),
            None => sessions.last_mut(),
        };
        session.map(act)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.lock().len()).finish()
    }
}

/// How many subscriptions of a session are kept.
const MAX_SUBSCRIPTIONS: usize = 1024;
