//! The connections of the clients of one check, and what was sent over them.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;

use crate::answer::ErrorAnswer;
use crate::era::Era;
use crate::objection::Objection;
use crate::traffic::{Exchange, Traffic};
use crate::transport::message::{Outgoing, Reply};
use crate::transport::{Connection, Transport};

/// The connections that one check has opened to a server in one era.
#[derive(Debug)]
pub(crate) struct Connections<'a> {
    transport: &'a Transport,
    era: Era,
    /// The first refusal of a request in this era because there were too many.
    limit: &'a OnceLock<ErrorAnswer>,
    traffic: Traffic,
    open: Mutex<Vec<Connection>>,
}

impl<'a> Connections<'a> {
    pub(crate) fn new(
        transport: &'a Transport,
        era: Era,
        limit: &'a OnceLock<ErrorAnswer>,
    ) -> Self {
        Self {
            transport,
            era,
            limit,
            traffic: Traffic::default(),
            open: Mutex::default(),
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.era
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.transport.next_id()
    }

    /// The connection of a client that declares `capabilities`. All modern clients of a check share one.
    pub(crate) fn open(&self, capabilities: &Value) -> Result<Connection, Objection> {
        let mut connections = self.lock();
        if let (Era::Modern, Some(shared)) = (self.era, connections.first()) {
            return Ok(shared.clone());
        }
        let opened = self.transport.open(self.era, capabilities);
        let connection = opened.map_err(Objection::NoAnswer)?;
        connections.push(connection.clone());
        Ok(connection)
    }

    /// The connection of a client of the other principal, if one is known.
    pub(crate) fn open_other(&self) -> Option<Connection> {
        self.transport.open_other()
    }

    /// Adds a connection that has a session now, so that it is ended.
    pub(crate) fn add_session(&self, connection: &Connection) {
        self.lock().push(connection.clone());
    }

    /// Records that the server refused a request because there were too many.
    pub(crate) fn record_limit(&self, error: &ErrorAnswer) {
        // A check reads the first.
        _ = self.limit.set(error.clone());
    }

    pub(crate) async fn send(
        &self,
        connection: &Connection,
        message: &Outgoing<'_>,
    ) -> Result<Reply, Objection> {
        let reply = self.transport.send(connection, message).await;
        match &reply {
            Ok(reply) => {
                let received = format!("{} {}", reply.status, reply.body);
                self.traffic.record(&message.text, received.trim_end());
            }
            Err(error) => self.traffic.record(&message.text, error),
        }
        reply.map_err(Objection::NoAnswer)
    }

    /// Ends the connections, and lets no other check use them.
    pub(crate) async fn discard(&self) {
        for connection in self.take() {
            self.transport.discard(connection).await;
        }
    }

    /// Ends the connections.
    pub(crate) async fn close(&self) {
        for connection in self.take() {
            self.transport.close(connection).await;
        }
    }

    /// The last lines that the processes of the connections wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        let connections = self.lock();
        let outputs = connections.iter().map(Connection::stderr);
        let texts: Vec<String> = outputs.filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.traffic.into_exchanges()
    }

    fn take(&self) -> Vec<Connection> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
