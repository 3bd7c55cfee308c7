//! One server, and its connections for all classes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use super::told::declared;
use super::{ClassKey, lock};
use crate::asking::Askable;
use crate::own::OwnLines;
use crate::reply::Failure;
use crate::session::ClientId;
use crate::upstream::{Isolation, Line, Places, UpstreamConfig};

/// One server and its connections.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: UpstreamConfig,
    /// Tells one from another.
    pub(super) number: usize,
    /// Places for calls, on all connections together.
    pub(super) places: Arc<Places>,
    lines: Mutex<BTreeMap<LineKey, Weak<Line>>>,
}

/// What a connection declares, and the session that it is for alone.
type LineKey = (String, Option<ClientId>);

impl Server {
    pub(super) fn new(config: UpstreamConfig, number: usize) -> Self {
        Self {
            number,
            places: Arc::new(Places::new(&config.limits)),
            config,
            lines: Mutex::default(),
        }
    }

    /// The connection for clients that can do nothing particular.
    pub(super) fn first_line(&self) -> Arc<Line> {
        let key = (self.config.capabilities.clone(), None);
        let mut lines = lock(&self.lines);
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        let line = Line::sharing(self.config.clone(), Arc::clone(&self.places));
        lines.insert(key, Arc::downgrade(&line));
        line
    }

    /// The connection for clients of a class, which others may share.
    pub(super) fn line(&self, key: &ClassKey, own: &Arc<OwnLines>) -> Result<Arc<Line>, Failure> {
        let config = &self.config;
        let session = key
            .session
            .filter(|_| config.isolation == Isolation::Session);
        let capabilities = declared(&config.capabilities, &key.capabilities, &config.mirrored);
        let mut lines = lock(&self.lines);
        lines.retain(|_, line| line.strong_count() > 0);
        let found = |capabilities: &str, session| {
            let key = (capabilities.to_owned(), session);
            lines.get(&key).and_then(Weak::upgrade)
        };
        if let Some(line) = found(&capabilities, session) {
            return Ok(line);
        }
        // Where sessions share nothing, clients without one share the first connection, whatever they can do.
        if config.isolation == Isolation::Session && session.is_none() {
            let first = found(&config.capabilities, None);
            return first.ok_or_else(|| no_connection_left(config));
        }
        if lines.len() >= config.limits.connections.max(1) {
            let shared = found(&config.capabilities, None).filter(|_| session.is_none());
            return shared.ok_or_else(|| no_connection_left(config));
        }
        let mut config = config.clone().with_capabilities(capabilities.clone());
        // Where sessions share nothing, this is the connection that the client has alone.
        let alone = session.filter(|_| Askable::of(&key.capabilities).is_any());
        config.is_held = alone.is_some();
        config.legacy_first = alone.is_some();
        let line = Line::sharing(config, Arc::clone(&self.places));
        if let Some(session) = alone {
            own.adopt(self.number, session, &line);
        }
        lines.insert((capabilities, session), Arc::downgrade(&line));
        Ok(line)
    }

    pub(super) fn open_lines(&self) -> Vec<Arc<Line>> {
        lock(&self.lines)
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

fn no_connection_left(config: &UpstreamConfig) -> Failure {
    Failure::internal(format!(
        "server `{}` serves each session on a connection of its own, and all {} are in use; \
         end a session, or try again later",
        config.name, config.limits.connections
    ))
}
