//! The record of one request, from its arrival to its outcome.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary::json::unquoted;
use mcp_vary::variant::VariantId;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_audit::{
    Actor, ClientInfo, Event, LongText, Outcome, PendingRecord, Permit, QueueFull, Record,
    SessionId, Text, Transport, VariantChoice, trace_id,
};
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_metrics::{Code, METHODS};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::Reply;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;

use crate::audit_service::{AuditService, ClientKey};
use crate::origin::{Origin, actor};
use crate::outcome::{code_of, failure_text, outcome};
use crate::people::Person;
use crate::recorded_call::EndedCall;
use crate::request_feed::{ReportedCall, shown_error};
use crate::{request_line, subject};

/// A request that is to be recorded.
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct AuditedRequest<'a> {
    /// From where it comes.
    pub origin: &'a Origin,
    /// Who sent it; `None` where clients are not authenticated.
    pub principal: Option<&'a Arc<Principal>>,
    /// The era of the client.
    pub era: Era,
    /// The method of JSON-RPC.
    pub method: &'a str,
    /// The id as written.
    pub id: &'a str,
    /// Its parameters.
    pub params: &'a Params<'a>,
    /// The client, if the request itself names it.
    pub client: Option<Arc<ClientInfo>>,
    /// The message that the params were read from, if they may be shared with it.
    pub message: Option<&'a Bytes>,
    /// The length of the message.
    pub length: usize,
    /// The digest of the configuration.
    pub config: Option<&'a Arc<str>>,
    /// What gets it when it has ended, if it is a call that is watched or recorded.
    pub reported: Option<ReportedCall>,
    /// For whom it counts; `None` for anonymous clients and for the operator.
    pub person: Option<Arc<Person>>,
}

// Omits what the request is about.
mcp_vary_base::debug_by_name!(AuditedRequest<'_>);

/// What ranked the variants of a client.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct RankingDetails {
    /// The client's hints: `contextSize=compact useCase=planning`.
    pub hints: Option<LongText>,
    /// The variants that it is offered, with their points: `compact=60 standard=20`.
    pub order: Option<LongText>,
}

/// The record of one request.
///
/// # Properties
///
/// It is submitted and logged once: with the first outcome that it gets, or as cancelled if it is dropped without one.
pub struct RequestRecord {
    /// `None` for a request that is not in the audit log.
    service: Option<Arc<AuditService>>,
    /// `None` unless it is a call that is watched or recorded.
    reported: Option<ReportedCall>,
    arrived: Instant,
    principal: Option<PrincipalId>,
    progress: Progress,
    /// `None` after the outcome.
    pending: ScopedLock<Option<Pending>>,
}

struct Pending {
    record: PendingRecord,
    /// The server that has the target.
    server: Option<Arc<str>>,
    /// Whether the HTTP status was sent before the outcome was known.
    has_status: bool,
    /// Whether the client's list does not have the tool.
    is_unknown_tool: bool,
}

/// How far a request has come. The task that handles it writes this, without a lock.
#[derive(Debug, Default)]
struct Progress {
    /// Whether the request was forwarded to its server.
    is_forwarded: AtomicBool,
    /// After how many nanoseconds the server got it; 0 before that.
    sent: AtomicU64,
    /// After how many the server answered.
    answered: AtomicU64,
}

impl Progress {
    /// The time until the server got it, and that until the server answered from then on.
    fn times(&self) -> (Option<Duration>, Option<Duration>) {
        let [sent, answered] =
            [&self.sent, &self.answered].map(|time| time.load(Ordering::Relaxed));
        let waited = (sent > 0).then(|| Duration::from_nanos(sent));
        let is_known = sent > 0 && answered > 0;
        let at_server = is_known.then(|| Duration::from_nanos(answered.saturating_sub(sent)));
        (waited, at_server)
    }
}

// Omits what the request is about.
mcp_vary_base::debug_by_name!(RequestRecord);

impl RequestRecord {
    /// The record of a request that is not in the audit log.
    pub(crate) fn unaudited(request: &mut AuditedRequest<'_>) -> Arc<Self> {
        Arc::new(Self::new(None, request))
    }

    /// Begins the record of a request in the audit log, before the request does anything.
    ///
    /// # Errors
    ///
    /// When the queue of records is full, so that the request must be refused.
    pub(super) async fn begin(
        service: &Arc<AuditService>,
        request: &mut AuditedRequest<'_>,
    ) -> Result<Arc<Self>, QueueFull> {
        let log = Some((Arc::clone(service), service.reserve().await?));
        Ok(Arc::new(Self::new(log, request)))
    }

    /// The record of a request, which has room in the audit log if there is one. It takes what it shares with the request.
    fn new(log: Option<(Arc<AuditService>, Permit)>, request: &mut AuditedRequest<'_>) -> Self {
        let (service, permit) = log.unzip();
        let AuditedRequest {
            origin,
            principal,
            method,
            params,
            ..
        } = *request;
        let actor = match (&request.person, &origin.oauth_client) {
            (Some(person), None) => person.actor(),
            (_, client) => principal.and_then(|principal| actor(principal, client.as_ref())),
        };
        let method_text = match METHODS.entry(method) {
            known if known == method => Text::from_static(known),
            _ => Text::new(method),
        };
        let arguments = match service {
            Some(_) => subject::arguments(method, params, request.message),
            None => None,
        };
        let has_log = service.is_some() || request_line::is_enabled();
        let record = Record {
            actor,
            client: request.client.take(),
            address: origin.address,
            era: Some(request.era),
            transport: Some(origin.transport),
            method: Some(method_text),
            target: subject::target(method, params),
            arguments,
            bytes_in: Some(request.length as u64),
            // The outcome is filled in when it is known.
            ..Record::new(Event::Request, Outcome::Cancelled)
        };
        let pending = Pending {
            record: PendingRecord::new(record, permit),
            server: None,
            has_status: origin.transport == Transport::Stdio,
            is_unknown_tool: false,
        };
        let this = Self {
            service,
            reported: request.reported.take(),
            arrived: Instant::now(),
            principal: principal.map(|principal| principal.id()),
            progress: Progress::default(),
            pending: ScopedLock::new(Some(pending)),
        };
        if has_log {
            this.change(|pending| fill_for_logs(pending.record.record_mut(), request));
        }
        this
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        if let Some(pending) = &mut *self.pending.lock() {
            change(pending);
        }
    }

    /// Sets the client of a session, if it gave itself a name.
    pub fn set_client(&self, client: Option<&Arc<ClientInfo>>) {
        if let Some(client) = client {
            self.change(|pending| pending.record.record_mut().client = Some(Arc::clone(client)));
        }
    }

    /// The operator sends the request from the page.
    pub(super) fn set_operator(&self) {
        let operator = Actor::new(Text::from_static("operator's page"));
        self.change(|pending| pending.record.record_mut().actor = Some(Arc::new(operator)));
    }

    /// Sets the id of the session that the request opened.
    pub fn set_session(&self, id: &str) {
        self.change(|pending| {
            pending.record.record_mut().session = Some(SessionId::new(id.into()));
        });
    }

    /// The status of the response was sent before its outcome was known.
    pub(crate) fn status_sent(&self) {
        self.change(|pending| pending.has_status = true);
    }

    /// Sets the server that has the target, and its name or URI there.
    pub fn set_server(&self, server: &Arc<str>, upstream_name: Option<&Arc<str>>) {
        self.change(|pending| {
            pending.server = Some(Arc::clone(server));
            if let Some(target) = &mut pending.record.record_mut().target {
                target.server = Some(Text::shared(server));
                target.upstream_name = upstream_name.map(LongText::shared);
                // It often is the client's own name of the tool, whose text then need not stay.
                if let Some(same) = target
                    .upstream_name
                    .as_ref()
                    .filter(|name| **name == target.name)
                {
                    target.name = same.clone();
                }
            }
        });
    }

    /// The client's list does not have the tool that the request calls.
    pub fn set_unknown_tool(&self) {
        self.change(|pending| pending.is_unknown_tool = true);
    }

    /// The request is to be forwarded to its server, once that has a connection for it.
    pub fn forwarded(&self) {
        self.progress.is_forwarded.store(true, Ordering::Relaxed);
    }

    /// The server has the request.
    pub(super) fn sent(&self, now: Instant) {
        self.progress.sent.store(self.after(now), Ordering::Relaxed);
    }

    /// The server answered the request.
    pub(super) fn server_answered(&self) {
        let after = self.after(Instant::now());
        self.progress.answered.store(after, Ordering::Relaxed);
    }

    /// The nanoseconds from the arrival until `now`, at least one.
    fn after(&self, now: Instant) -> u64 {
        let nanos = (now - self.arrived).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
    }

    /// The request is recorded in this trace.
    pub(super) fn set_trace(&self, id: [u8; 16]) {
        self.change(|pending| pending.record.record_mut().trace_id = Some(id));
    }

    /// Sets the variant that the request runs under, and why.
    pub fn set_variant(&self, id: &VariantId, reason: &VariantReason, details: RankingDetails) {
        self.change(|pending| {
            let by = Text::from_static(reason.by.as_str());
            let mut choice = VariantChoice::new(Text::shared(id.as_shared()), by);
            choice.rule = reason.rule.as_ref().map(Text::shared);
            (choice.hints, choice.order) = (details.hints, details.order);
            pending.record.record_mut().variant = Some(choice);
        });
    }

    /// Records the variant of the request if the client had none before, or another one. `connection` is the session or
    /// connection of the client, if it has one; `details` returns what ranked its variants, if that is not known yet.
    pub fn use_variant(
        &self,
        connection: Option<ClientId>,
        details: impl FnOnce() -> Option<RankingDetails>,
    ) {
        let Some(service) = &self.service else { return };
        self.change(|pending| {
            let record = pending.record.record();
            let Some(choice) = &record.variant else {
                return;
            };
            let key = match connection {
                Some(client) => ClientKey::Connected(client),
                None => ClientKey::Stateless {
                    principal: self.principal,
                    address: record.address,
                    name: record
                        .client
                        .as_ref()
                        .map_or_else(String::new, |client| client.name.as_str().to_owned()),
                },
            };
            if service.is_new_variant(key, choice.id.as_str()) {
                let mut selected = pending.record.variant_selected();
                if let Some((choice, details)) = selected.variant.as_mut().zip(details()) {
                    (choice.hints, choice.order) = (details.hints, details.order);
                }
                service.record(selected);
            }
        });
    }

    /// The client selected a variant that does not exist for it.
    pub fn refuse_variant(&self, requested: &str) {
        self.change(|pending| self.record(pending.record.variant_refused(requested)));
    }

    /// A rule allows the request.
    pub fn allowed_by(&self, rule: &str) {
        self.change(|pending| pending.record.allowed_by(rule));
    }

    /// A rule refuses the request, or hides its target.
    pub(crate) fn denied_by(&self, rule: &str) {
        self.change(|pending| pending.record.denied_by(rule));
    }

    /// A rate limit refuses the request: `limit` names it.
    pub(crate) fn limited_by(&self, limit: &str) {
        self.change(|pending| self.record(pending.record.limited_by(limit)));
    }

    /// Records an event within the request, if there is an audit log.
    fn record(&self, event: Record) {
        if let Some(service) = &self.service {
            service.record(event);
        }
    }

    /// Records the outcome by the response to the client, and returns it as a label of metrics, unless it was known before.
    pub(crate) fn finish(&self, reply: &Reply, ended: Instant) -> Option<Code> {
        let mut locked = self.pending.lock();
        let pending = locked.as_mut()?;
        let record = pending.record.record();
        let method = record.method.as_ref().map_or("", Text::as_str);
        let is_call = CALLS.contains(&method);
        let (outcome, code) = outcome(&reply.body, is_call);
        let status = reply.status.as_u16();
        let has_other = !pending.has_status && reply.status != StatusCode::OK;
        let error = match self.reported {
            Some(_) => failure_text(&reply.body, outcome),
            None => None,
        };
        self.submit(pending, ended, outcome, error, |record| {
            record.code = code;
            record.status = has_other.then_some(status);
            record.bytes_out = Some(reply.body.len() as u64);
        });
        *locked = None;
        Some(code_of(outcome, code))
    }

    /// Records the outcome of a request that has no response, or whose client did not wait for it.
    pub(crate) fn end(&self, outcome: Outcome) {
        if let Some(mut pending) = self.pending.lock().take() {
            self.submit(&mut pending, Instant::now(), outcome, None, |_| {});
        }
    }

    fn submit(
        &self,
        pending: &mut Pending,
        ended: Instant,
        outcome: Outcome,
        error: Option<String>,
        fill: impl FnOnce(&mut Record),
    ) {
        let permit = pending.record.finish(outcome, |record| {
            record.duration = Some(ended - self.arrived);
            (record.waited, record.upstream_duration) = self.progress.times();
            fill(record);
        });
        let server = pending.server.take();
        let server = server.filter(|_| self.progress.is_forwarded.load(Ordering::Relaxed));
        let record = pending.record.record_mut();
        if (server.is_some() || is_shown(record)) && request_line::is_enabled() {
            request_line::write(server.as_deref(), record);
        }
        let Some(reported) = &self.reported else {
            return permit
                .into_iter()
                .for_each(|permit| permit.submit(std::mem::take(record)));
        };
        let audited = self.service.as_ref().zip(record.arguments.as_ref());
        let arguments = audited.and_then(|(service, it)| service.log.excerpt(it));
        if let Some(permit) = permit {
            permit.submit(record.clone());
        }
        reported.end(EndedCall {
            ended,
            server,
            arguments,
            error: error.map(|text| shown_error(text, record)),
            is_unknown_tool: pending.is_unknown_tool && record.outcome == Outcome::Error,
            record,
        });
    }
}

/// What only logs have of a request.
fn fill_for_logs(record: &mut Record, request: &AuditedRequest<'_>) {
    let origin = request.origin;
    record.session = origin.session.clone();
    record.request_id = Some(Text::new(id_text(request.id)));
    let in_meta = request.params.meta.get_str("traceparent");
    record.trace_id = in_meta.and_then(|text| trace_id(&text)).or(origin.trace_id);
    record.config = request.config.map(Text::shared);
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        if let Some(mut pending) = self.pending.get_mut().take() {
            self.submit(
                &mut pending,
                Instant::now(),
                Outcome::Cancelled,
                None,
                |_| {},
            );
        }
    }
}

/// Whether the log shows a request that no server worked on: a call, or one that was refused. Lists and other requests
/// that the gateway answers itself are not shown.
fn is_shown(record: &Record) -> bool {
    let method = record.method.as_ref().map_or("", Text::as_str);
    method == "tools/call" || matches!(record.outcome, Outcome::Error | Outcome::Denied)
}

/// The methods whose results can report that a tool failed.
const CALLS: &[&str] = &["tools/call", "tasks/result"];

/// The id of a request as text: a string without its quotes.
fn id_text(id: &str) -> Cow<'_, str> {
    unquoted(id).unwrap_or(Cow::Borrowed(id))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Mutex;
    use std::time::Duration;

    use mcp_vary_audit::{AuditConfig, AuditKey, AuditLog, StreamSink};
    use mcp_vary_wire::response::RpcError;
    use serde_json::{Value, json};

    use super::*;

    /// What the log wrote.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The records about one call of a tool, to which `happens`.
    async fn records(happens: impl FnOnce(Arc<RequestRecord>)) -> Vec<Value> {
        let written = Written::default();
        let sink = StreamSink::new("memory", Box::new(written.clone()));
        let config = AuditConfig::new(|| 0, AuditKey::new([1; 32]), "run");
        let log = AuditLog::start(&config, Box::new(sink)).unwrap();
        let service = Arc::new(AuditService::new(log));
        let params = Params::read(Some(r#"{"name":"push"}"#)).unwrap();
        let mut request = AuditedRequest {
            origin: &Origin::default(),
            principal: None,
            era: Era::Modern,
            method: "tools/call",
            id: "7",
            params: &params,
            client: None,
            message: None,
            length: 10,
            config: None,
            reported: None,
            person: None,
        };
        happens(RequestRecord::begin(&service, &mut request).await.unwrap());
        service.close().await;
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut lines: Vec<Value> = lines.collect();
        lines.retain(|line| !line["event"].as_str().unwrap().starts_with("audit."));
        lines
    }

    fn finish(record: &RequestRecord, failure: &str) {
        let reply = RpcError::internal(failure).reply(Some("7"), Era::Modern);
        record.finish(&reply, Instant::now());
    }

    #[tokio::test]
    async fn a_limit_is_an_event_and_the_rule_of_the_request() {
        let lines = records(|record| {
            record.limited_by("rates[0]");
            let failure = RpcError::new(-32000, "too many requests");
            record.finish(&failure.reply(Some("7"), Era::Modern), Instant::now());
        });
        let lines = lines.await;
        let seen: Vec<_> = lines
            .iter()
            .map(|line| (&line["event"], &line["outcome"], &line["rule"]))
            .collect();
        let (denied, rule) = (json!("denied"), json!("rates[0]"));
        assert_eq!(
            seen,
            [
                (&json!("limit.reached"), &denied, &rule),
                (&json!("request"), &denied, &rule)
            ]
        );
        assert_eq!(lines[0]["target"]["name"], "push");
        assert_eq!(lines[1]["code"], -32000);
    }

    #[tokio::test]
    async fn what_was_before_the_server_and_what_the_server_took_are_told_apart() {
        let lines = records(|record| {
            let pause = || std::thread::sleep(Duration::from_millis(3));
            pause();
            record.sent(Instant::now());
            pause();
            record.server_answered();
            finish(&record, "x");
        });
        let lines = lines.await;
        let [whole, waited, upstream] = ["duration_ms", "waited_ms", "upstream_ms"]
            .map(|name| lines[0][name].as_f64().unwrap());
        assert!(waited >= 3.0 && upstream >= 3.0, "{lines:?}");
        assert!(waited + upstream <= whole, "{lines:?}");
    }

    #[tokio::test]
    async fn the_first_outcome_counts() {
        let lines = records(|record| {
            record.end(Outcome::Cancelled);
            finish(&record, "late");
            drop(record);
        });
        let lines = lines.await;
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["outcome"], "cancelled");
    }

    #[tokio::test]
    async fn a_request_that_is_dropped_is_cancelled() {
        let lines = records(drop).await;
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["outcome"], "cancelled");
    }
}
