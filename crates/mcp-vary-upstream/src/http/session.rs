//! The session of a connection: what the handshake fixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use mcp_vary_http_client::headers::set_common_headers;
use mcp_vary_wire::headers::{SESSION_ID, VERSION};
use mcp_vary_wire::revision::{Era, Revision};
use tokio::sync::watch;

use super::event_stream::EventStream;
use super::headers::{JSON, JSON_OR_STREAM};

/// A session of the endpoint, or for a modern one the headers alone.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) era: Era,
    /// All headers that each request carries.
    pub(super) headers: Arc<HeaderMap>,
    pub(super) id: Option<HeaderValue>,
    /// The stream on which the server answers, in the transport of 2024-11-05.
    pub(super) stream: Option<Arc<EventStream>>,
    /// Its number on the connection.
    pub(super) generation: u64,
}

impl Session {
    /// The session before the handshake has fixed one; requests have the header of `revision` if it `is_agreed`.
    pub(super) fn blank(configured: &HeaderMap, revision: Revision, is_agreed: bool) -> Self {
        let mut headers = configured.clone();
        // The copy of each request has as much room.
        headers.reserve(ROOM);
        headers.insert(ACCEPT, JSON_OR_STREAM);
        headers.insert(CONTENT_TYPE, JSON);
        set_common_headers(&mut headers);
        // Earlier revisions do not know the header, and `initialize` itself comes without.
        if is_agreed && revision >= Revision::V2025_06_18 {
            let version = HeaderValue::from_static(revision.as_str());
            headers.insert(VERSION, version);
        }
        Self {
            era: revision.era(),
            headers: Arc::new(headers),
            id: None,
            stream: None,
            generation: 0,
        }
    }

    /// The session with this id, if the server gave one.
    pub(super) fn started(mut self, id: Option<&HeaderValue>, generation: u64) -> Self {
        self.generation = generation;
        self.id = id.cloned().map(|mut id| {
            // Any client that knows it can send requests in the session.
            id.set_sensitive(true);
            Arc::make_mut(&mut self.headers).insert(SESSION_ID, id.clone());
            id
        });
        self
    }

    /// Whether the server may forget the session, and a lost connection does not cancel requests.
    pub(super) fn is_legacy(&self) -> bool {
        self.era == Era::Legacy
    }
}

/// The headers that a session and most of its requests have beside the configured ones.
const ROOM: usize = 12;

/// The current session of a connection, which a new one replaces when the server has forgotten it.
pub(super) struct CurrentSession {
    session: ArcSwap<Session>,
    generation: watch::Sender<u64>,
    /// Whether a request was refused in the session as it was in the one before.
    was_useless: AtomicBool,
}

impl CurrentSession {
    pub(super) fn new(session: Session) -> Self {
        Self {
            generation: watch::Sender::new(session.generation),
            session: ArcSwap::from_pointee(session),
            was_useless: AtomicBool::new(false),
        }
    }

    pub(super) fn load(&self) -> Arc<Session> {
        self.session.load_full()
    }

    pub(super) fn replace(&self, session: Arc<Session>) {
        let generation = session.generation;
        self.session.store(session);
        self.was_useless.store(false, Ordering::Relaxed);
        self.generation.send_replace(generation);
    }

    /// Notes that a request was refused in the current session as it was in the one before.
    pub(super) fn note_useless_renewal(&self) {
        self.was_useless.store(true, Ordering::Relaxed);
    }

    /// Whether the last renewal did not help.
    pub(super) fn was_renewed_in_vain(&self) -> bool {
        self.was_useless.load(Ordering::Relaxed)
    }

    /// The number of the current session, which changes when a new one begins.
    pub(super) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}
