//! What a check works with: the transport, the era, and what the survey found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::check::{Era, Objection};
use crate::client::{Client, NEGOTIATION, VARIANTS};
use crate::http::{Http, Reply};
use crate::survey::Survey;
use crate::traffic::{Exchange, Traffic};

/// One check at work on one server in one era.
#[derive(Debug)]
pub(crate) struct Probe<'a> {
    http: &'a Http,
    era: Era,
    survey: &'a Survey,
    traffic: Traffic,
    sessions: Mutex<Vec<HeaderValue>>,
    last_id: AtomicU64,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(http: &'a Http, era: Era, survey: &'a Survey) -> Self {
        Self {
            http,
            era,
            survey,
            traffic: Traffic::default(),
            sessions: Mutex::default(),
            last_id: AtomicU64::new(0),
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
        Client::connect(self, json!({ "extensions": extensions })).await
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
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn note_session(&self, session: HeaderValue) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push(session);
    }

    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        message: &Value,
        id: Option<u64>,
    ) -> Result<Reply, Objection> {
        let sent = message.to_string();
        let reply = self.http.post(headers, sent.clone(), id).await;
        match &reply {
            Ok(reply) => self.traffic.record(
                &sent,
                format!("HTTP {} {}", reply.status, reply.body).trim_end(),
            ),
            Err(error) => self.traffic.record(&sent, error),
        }
        reply.map_err(Objection::NoAnswer)
    }

    /// Ends the sessions that the check opened.
    pub(crate) async fn end_sessions(&self) {
        let sessions =
            std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        for session in sessions {
            self.http.end_session(session).await;
        }
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.traffic.into_exchanges()
    }
}
