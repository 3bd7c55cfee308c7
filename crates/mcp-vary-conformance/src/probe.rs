//! What a check works with: the transport, the era, and what the survey found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::check::{Era, Objection, not_applicable, violation};
use crate::client::{Client, NEGOTIATION, VARIANTS};
use crate::survey::Survey;
use crate::traffic::{Exchange, Traffic};
use crate::transport::{Connection, Outgoing, Reply, Transport};

/// One check at work on one server in one era.
#[derive(Debug)]
pub(crate) struct Probe<'a> {
    transport: &'a Transport,
    era: Era,
    survey: &'a Survey,
    traffic: Traffic,
    connections: Mutex<Vec<Connection>>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(transport: &'a Transport, era: Era, survey: &'a Survey) -> Self {
        Self {
            transport,
            era,
            survey,
            traffic: Traffic::default(),
            connections: Mutex::default(),
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.era
    }

    pub(crate) fn survey(&self) -> &'a Survey {
        self.survey
    }

    /// A client that declares these extensions and nothing else.
    pub(crate) async fn connect(&self, extensions: Value) -> Result<Client<'_>, Objection> {
        Client::connect(self, self.survey.declaring(&extensions)).await
    }

    /// A client of the other principal.
    pub(crate) async fn connect_other(&self, extensions: Value) -> Result<Client<'_>, Objection> {
        let Some(connection) = self.transport.open_other() else {
            return not_applicable(
                "no second principal is known; `--other-header` has its credentials",
            );
        };
        let capabilities = self.survey.declaring(&extensions);
        let client = Client::connect_over(self, connection, capabilities).await?;
        client.or_else(|error| {
            violation(format!(
                "the other principal was refused with {}",
                error.describe()
            ))
        })
    }

    /// A client that declares server variants, without hints.
    pub(crate) async fn connect_with_variants(&self) -> Result<Client<'_>, Objection> {
        self.connect(json!({ VARIANTS: {} })).await
    }

    /// A client that declares content negotiation with these tags.
    pub(crate) async fn connect_with_features(
        &self,
        features: Value,
    ) -> Result<Client<'_>, Objection> {
        self.connect(json!({ NEGOTIATION: {"version": "1.0", "features": features} }))
            .await
    }

    /// A client that declares server variants with these hints.
    pub(crate) async fn connect_with_hints(&self, hints: Value) -> Result<Client<'_>, Objection> {
        self.connect(json!({ VARIANTS: {"variantHints": {"hints": hints}} }))
            .await
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
        let opened = opened.map_err(Objection::NoAnswer)?;
        connections.push(opened.clone());
        Ok(opened)
    }

    /// Remembers that a connection has a session, so that it is ended.
    pub(crate) fn note_session(&self, connection: &Connection) {
        self.lock().push(connection.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

    /// Ends the connections that the check opened, and lets no other check use them.
    pub(crate) async fn discard(&self) {
        let connections = std::mem::take(&mut *self.lock());
        for connection in connections {
            self.transport.discard(connection).await;
        }
    }

    /// Ends the connections that the check opened.
    pub(crate) async fn close(&self) {
        let connections = std::mem::take(&mut *self.lock());
        for connection in connections {
            self.transport.close(connection).await;
        }
    }

    /// The last lines that the processes of this check wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        let connections = self.lock();
        let texts = connections.iter().map(Connection::stderr);
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.traffic.into_exchanges()
    }
}
