//! State of legacy sessions: the peers that tag notifications, and the variant of each subscription.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::variant::VariantId;
use mcp_vary_base::lock::Lock;
use rmcp::RoleServer;
use rmcp::model::InitializeRequestParams;
use rmcp::service::Peer;

use super::resource_watch::ResourceWatch;
use super::selected_handler::SelectedHandler;
use super::tagging_peer::{NotificationSender, TaggingPeer, tagging_peer};

/// The sessions that one handler serves. That is one, unless several connections share the handler
/// itself.
#[derive(Default)]
pub(super) struct Sessions(Lock<Vec<Session>>);

struct Session {
    /// The handshake of the session. Its allocation identifies the session.
    info: Arc<InitializeRequestParams>,
    client: Peer<RoleServer>,
    variant_peers: BTreeMap<VariantId, VariantPeer>,
    subscriptions: BTreeMap<String, VariantId>,
}

/// The state of a session for one variant that was used in it.
struct VariantPeer {
    peer: TaggingPeer,
    watch: Arc<ResourceWatch>,
}

/// Why a subscription cannot be bound to a variant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum BindError {
    /// The client is subscribed to the same URI in this other variant.
    OtherVariant(VariantId),
    /// The session has the largest number of subscriptions.
    TooManySubscriptions,
}

impl Sessions {
    /// The client's peer for the selected handler: it tags notifications with the variant.
    pub(super) fn peer_for(
        &self,
        client: &Peer<RoleServer>,
        active: &SelectedHandler<'_>,
    ) -> Peer<RoleServer> {
        let peer = self.with_variant_peer(client, active, |variant_peer| {
            variant_peer.peer.peer().clone()
        });
        peer.unwrap_or_else(|| client.clone())
    }

    /// The client's subscriptions in the selected variant.
    pub(super) fn watch_for(
        &self,
        client: &Peer<RoleServer>,
        active: &SelectedHandler<'_>,
    ) -> Option<Arc<ResourceWatch>> {
        self.with_variant_peer(client, active, |variant_peer| {
            Arc::clone(&variant_peer.watch)
        })
    }

    fn with_variant_peer<T>(
        &self,
        client: &Peer<RoleServer>,
        active: &SelectedHandler<'_>,
        act: impl FnOnce(&VariantPeer) -> T,
    ) -> Option<T> {
        let variant = active.variant?;
        self.with_session(client, |session| {
            let variant_peer = session
                .variant_peers
                .entry(variant.clone())
                .or_insert_with(|| {
                    let watch = Arc::new(ResourceWatch::new(active.handler.clone()));
                    let outlet = NotificationSender::Client(client.clone());
                    let peer = tagging_peer(client, outlet, variant.clone(), Arc::clone(&watch));
                    VariantPeer { peer, watch }
                });
            act(variant_peer)
        })
    }

    /// Binds the subscription to `uri` to `variant`. Returns whether it is new.
    pub(super) fn bind_subscription(
        &self,
        client: &Peer<RoleServer>,
        uri: &str,
        variant: &VariantId,
    ) -> Result<bool, BindError> {
        self.with_session(client, |session| {
            session.drop_removed_resources();
            match session.subscriptions.get(uri) {
                Some(bound) if bound == variant => Ok(false),
                Some(bound) => Err(BindError::OtherVariant(bound.clone())),
                None if session.subscriptions.len() >= MAX_SUBSCRIPTIONS => {
                    Err(BindError::TooManySubscriptions)
                }
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

    /// Removes the subscription to `uri`, and returns its variant.
    pub(super) fn remove_subscription(
        &self,
        client: &Peer<RoleServer>,
        uri: &str,
    ) -> Option<VariantId> {
        self.with_session(client, |session| {
            let variant = session.subscriptions.remove(uri)?;
            if let Some(variant_peer) = session.variant_peers.get(&variant) {
                variant_peer.watch.remove(uri);
            }
            Some(variant)
        })
        .flatten()
    }

    /// `None` if there was no handshake.
    fn with_session<T>(
        &self,
        client: &Peer<RoleServer>,
        act: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        let info = client.peer_info()?;
        let mut sessions = self.0.lock();
        let at = sessions
            .iter()
            .position(|session| Arc::ptr_eq(&session.info, &info));
        if at.is_none() {
            sessions.retain(|session| !session.client.is_transport_closed());
            sessions.push(Session {
                info,
                client: client.clone(),
                variant_peers: BTreeMap::new(),
                subscriptions: BTreeMap::new(),
            });
        }
        let session = match at {
            Some(at) => sessions.get_mut(at),
            None => sessions.last_mut(),
        };
        session.map(act)
    }
}

impl Session {
    /// Removes the subscriptions to resources that were removed.
    fn drop_removed_resources(&mut self) {
        let variant_peers = &self.variant_peers;
        self.subscriptions.retain(|uri, variant| {
            let variant_peer = variant_peers.get(variant);
            variant_peer.is_none_or(|variant_peer| !variant_peer.watch.is_removed(uri))
        });
    }
}

mcp_vary_base::debug_by_name!(Sessions);

/// The largest number of subscriptions of a session.
const MAX_SUBSCRIPTIONS: usize = 1024;
