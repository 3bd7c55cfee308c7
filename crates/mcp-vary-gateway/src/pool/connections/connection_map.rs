//! The open connections to one server, by the clients that share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use http::HeaderValue;
use mcp_vary_access::PrincipalId;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;

use super::capabilities::is_part_of;

/// Identifies a connection: clients of the same key share it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ConnectionKey {
    /// The capabilities that it declares.
    pub(super) capabilities: String,
    /// Its only user, if it is not shared.
    pub(super) owner: Option<ConnectionOwner>,
    /// The values of headers from the claims of its user.
    pub(super) claims: Box<[HeaderValue]>,
    /// The era of its clients.
    pub(super) era: Era,
}

/// The only user of a connection that is not shared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ConnectionOwner {
    Session(ClientId),
    Principal(PrincipalId),
}

/// The open connections to one server. Classes of clients keep them open.
#[derive(Debug, Default)]
pub(super) struct ConnectionMap(BTreeMap<ConnectionKey, Weak<SupervisedConnection>>);

impl ConnectionMap {
    /// The connection of exactly this key.
    pub(super) fn get(&self, key: &ConnectionKey) -> Option<Arc<SupervisedConnection>> {
        self.0.get(key).and_then(Weak::upgrade)
    }

    /// The connection for clients of the era of `key`, or of the other era if the server supports `only` one.
    pub(super) fn find(
        &self,
        key: &ConnectionKey,
        only: Option<Era>,
    ) -> Option<Arc<SupervisedConnection>> {
        let of_era = |era| self.get(&ConnectionKey { era, ..key.clone() });
        match only {
            Some(Era::Legacy) => of_era(Era::Legacy).or_else(|| of_era(Era::Modern)),
            Some(Era::Modern) => of_era(Era::Modern).or_else(|| of_era(Era::Legacy)),
            None => of_era(key.era),
        }
    }

    /// The connection with the most of the capabilities of `key` and no others, for the same user; also one of the other
    /// era with `any_era`.
    pub(super) fn nearest(
        &self,
        key: &ConnectionKey,
        any_era: bool,
    ) -> Option<Arc<SupervisedConnection>> {
        let is_fitting = |known: &ConnectionKey| {
            known.owner == key.owner
                && known.claims == key.claims
                && (known.era == key.era || any_era)
                && is_part_of(&known.capabilities, &key.capabilities)
        };
        let fitting = self.0.iter().filter(|(known, _)| is_fitting(known));
        let nearest = fitting.max_by_key(|(known, _)| known.capabilities.len());
        nearest.and_then(|(_, connection)| connection.upgrade())
    }

    pub(super) fn insert(&mut self, key: ConnectionKey, connection: &Arc<SupervisedConnection>) {
        self.0.insert(key, Arc::downgrade(connection));
    }

    /// Gives the connection of `key` another key.
    pub(super) fn rename(&mut self, key: &ConnectionKey, new: ConnectionKey) {
        if let Some(connection) = self.0.remove(key) {
            self.0.insert(new, connection);
        }
    }

    /// Removes a connection. Returns its key.
    pub(super) fn remove(
        &mut self,
        connection: &Arc<SupervisedConnection>,
    ) -> Option<ConnectionKey> {
        let mut known = self.0.iter();
        let found = known.find(|(_, known)| known.as_ptr() == Arc::as_ptr(connection));
        let key = found.map(|(key, _)| key.clone())?;
        self.0.remove(&key);
        Some(key)
    }

    /// Drops the keys of closed connections.
    pub(super) fn retain_open(&mut self) {
        self.0.retain(|_, connection| connection.strong_count() > 0);
    }

    /// The number of keys, also those of connections that were closed since [`retain_open`](Self::retain_open).
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of connections of a principal.
    pub(super) fn count_of(&self, owner: Option<ConnectionOwner>) -> usize {
        match owner {
            Some(ConnectionOwner::Principal(_)) => {
                self.0.keys().filter(|key| key.owner == owner).count()
            }
            Some(ConnectionOwner::Session(_)) | None => 0,
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ConnectionKey> {
        self.0.keys()
    }

    /// The open connections.
    pub(super) fn open(&self) -> impl Iterator<Item = (&ConnectionKey, Arc<SupervisedConnection>)> {
        let connections = self.0.iter();
        connections.filter_map(|(key, connection)| Some((key, connection.upgrade()?)))
    }
}
