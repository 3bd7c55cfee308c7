//! What is kept for a legacy session: its tagging peers, which variant a subscription is of, and where it stands.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_vary::variant::VariantId;
use rmcp::RoleServer;
use rmcp::model::InitializeRequestParams;
use rmcp::service::Peer;

use super::offers::Active;
use super::selection::Asker;
use super::tag::{Outlet, TaggingPeer, tagging_peer};
use super::watch::{Watch, Watching};

/// The sessions that one handler serves. That is one, unless someone shares the handler itself.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<Session>>);

struct Session {
    /// The handshake of the session. As an allocation it is unlike that of any other session.
    info: Arc<InitializeRequestParams>,
    client: Peer<RoleServer>,
    seats: BTreeMap<VariantId, Seat>,
    subscriptions: BTreeMap<String, VariantId>,
    asker: Asker,
}

/// What a session has for each variant that was used in it.
struct Seat {
    peer: TaggingPeer,
    watch: Watching,
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
    /// The client as the handler of the active variant is to see it.
    pub(super) fn peer(&self, client: &Peer<RoleServer>, active: &Active<'_>) -> Peer<RoleServer> {
        let seated = self.seated(client, active, |seat| seat.peer.peer().clone());
        seated.unwrap_or_else(|| client.clone())
    }

    /// What the client is subscribed to in the active variant.
    pub(super) fn watch(&self, client: &Peer<RoleServer>, active: &Active<'_>) -> Option<Watching> {
        self.seated(client, active, |seat| Arc::clone(&seat.watch))
    }

    fn seated<T>(
        &self,
        client: &Peer<RoleServer>,
        active: &Active<'_>,
        act: impl FnOnce(&Seat) -> T,
    ) -> Option<T> {
        let variant = active.variant?;
        self.with(client, |session| {
            let seat = session.seats.entry(variant.clone()).or_insert_with(|| {
                let watch = Watch::new(active.face.clone(), active.permits.cloned());
                let watch = Arc::new(watch);
                let outlet = Outlet::Client(client.clone());
                let peer = tagging_peer(client, outlet, variant.clone(), Arc::clone(&watch));
                Seat { peer, watch }
            });
            act(seat)
        })
    }

    /// Binds the subscription to `uri` to `variant`, and says whether it is a new one.
    pub(super) fn subscribe(
        &self,
        client: &Peer<RoleServer>,
        uri: &str,
        variant: &VariantId,
    ) -> Result<bool, Unbound> {
        self.with(client, |session| {
            session.forget_gone();
            match session.subscriptions.get(uri) {
                Some(bound) if bound == variant => Ok(false),
                Some(bound) => Err(Unbound::Elsewhere(bound.clone())),
                None if session.subscriptions.len() >= MAX_SUBSCRIPTIONS => Err(Unbound::TooMany),
                None => {
                    session
                        .subscriptions
                        .insert(uri.to_owned(), variant.clone());
                    Ok(true)
                }
            }
        })
        .unwrap_or(Ok(false))
    }

    /// Ends the subscription to `uri`, and says which variant it was of.
    pub(super) fn unsubscribe(&self, client: &Peer<RoleServer>, uri: &str) -> Option<VariantId> {
        self.with(client, |session| {
            let variant = session.subscriptions.remove(uri)?;
            if let Some(seat) = session.seats.get(&variant) {
                seat.watch.remove(uri);
            }
            Some(variant)
        })
        .flatten()
    }

    /// Where the session of `client` stands.
    pub(super) fn asker<T>(
        &self,
        client: &Peer<RoleServer>,
        act: impl FnOnce(&mut Asker) -> T,
    ) -> Option<T> {
        self.with(client, |session| act(&mut session.asker))
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
                seats: BTreeMap::new(),
                subscriptions: BTreeMap::new(),
                asker: Asker::default(),
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

impl Session {
    /// Ends the subscriptions to what is no longer there.
    fn forget_gone(&mut self) {
        let seats = &self.seats;
        self.subscriptions.retain(|uri, variant| {
            let seat = seats.get(variant);
            seat.is_none_or(|seat| !seat.watch.is_gone(uri))
        });
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.lock().len()).finish()
    }
}

/// How many subscriptions of a session are kept.
const MAX_SUBSCRIPTIONS: usize = 1024;
