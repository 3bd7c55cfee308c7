//! The record of a request for the audit log, from its arrival to its outcome.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::error::Era;
use mcp_vary_audit::{
    Actor, Arguments, AuditLog, ClientInfo, Era as RecordEra, Event, LongText, OnFull, Outcome,
    PendingRecord, Permit, QueueFull, Record, SessionId, Target, TargetKind, Text, Transport,
    VariantChoice, trace_id,
};
use mcp_vary_base::lock::Lock;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, Implementation, JsonObject, Reference};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clients::Clients;
use super::features::era;
use super::rules::{Context, McpResult};
use super::selection::SelectionSource;

/// What a request is about.
#[derive(Debug, Default)]
pub(super) struct Subject {
    target: Option<Target>,
    arguments: Option<Arguments>,
    /// The client of a handshake, which the context does not have yet.
    client: Option<Implementation>,
}

impl Subject {
    /// A request that names an item, a task or a resource.
    pub(super) fn of(kind: TargetKind, name: &str) -> Self {
        Self {
            target: Some(Target::new(kind, LongText::new(name))),
            ..Self::default()
        }
    }

    /// A call with these arguments.
    pub(super) fn call(kind: TargetKind, name: &str, arguments: Option<&JsonObject>) -> Self {
        let json = arguments.map(|arguments| Bytes::from(json!(arguments).to_string()));
        Self {
            arguments: json.map(Arguments::new),
            ..Self::of(kind, name)
        }
    }

    /// The prompt or resource template of a completion.
    pub(super) fn reference(reference: &Reference) -> Self {
        match reference {
            Reference::Prompt(prompt) => Self::of(TargetKind::Prompt, &prompt.name),
            Reference::Resource(template) => Self::of(TargetKind::Resource, &template.uri),
            _ => Self::default(),
        }
    }

    /// The handshake of a client.
    pub(super) fn handshake(client: Implementation) -> Self {
        Self {
            client: Some(client),
            ..Self::default()
        }
    }
}

/// The outcome of a call of a tool, which can report that it failed.
pub(super) fn call_outcome(response: &CallToolResponse) -> Outcome {
    match response {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => Outcome::ToolError,
        _ => Outcome::Allowed,
    }
}

/// The record of a request while it is answered.
///
/// # Properties
///
/// It is submitted once: with its outcome, or as cancelled if it is dropped without one.
pub(super) struct ActiveRecord {
    shared: SharedRecord,
    cancelled: CancellationToken,
}

/// The same record in the extensions of the request's context.
#[derive(Clone)]
struct SharedRecord(Arc<OpenRecord>);

struct OpenRecord {
    log: AuditLog,
    arrived: Instant,
    /// `None` after the outcome.
    pending: Lock<Option<PendingRecord>>,
}

impl ActiveRecord {
    pub(super) async fn begin(
        log: &AuditLog,
        clients: &Clients,
        method: &str,
        subject: Subject,
        context: &mut Context,
    ) -> McpResult<Self> {
        let permit = reserve(log).await?;
        let record = describe(clients, method, subject, context);
        let shared = SharedRecord(Arc::new(OpenRecord {
            log: log.clone(),
            arrived: Instant::now(),
            pending: Lock::new(Some(PendingRecord::new(record, Some(permit)))),
        }));
        context.extensions.insert(shared.clone());
        Ok(Self {
            shared,
            cancelled: context.ct.clone(),
        })
    }

    /// Submits the record with the outcome of the request.
    pub(super) fn finish<T>(self, answer: &McpResult<T>, outcome: impl FnOnce(&T) -> Outcome) {
        let (outcome, code) = match answer {
            Ok(result) => (outcome(result), None),
            Err(error) => (Outcome::Error, Some(i64::from(error.code.0))),
        };
        let is_cancelled = self.cancelled.is_cancelled();
        let outcome = if is_cancelled {
            Outcome::Cancelled
        } else {
            outcome
        };
        self.shared.0.submit(outcome, code);
    }
}

impl Drop for ActiveRecord {
    fn drop(&mut self) {
        self.shared.0.submit(Outcome::Cancelled, None);
    }
}

impl OpenRecord {
    fn submit(&self, outcome: Outcome, code: Option<i64>) {
        let mut pending = self.pending.lock();
        let Some(pending) = pending.take() else {
            return;
        };
        let (record, permit) = pending.finish(outcome, |record| {
            record.code = code;
            record.duration = Some(self.arrived.elapsed());
        });
        if let Some(permit) = permit {
            permit.submit(record);
        }
    }
}

/// The record of a request, as the parts that decide on it see it; nothing is recorded without an
/// audit log.
#[derive(Clone, Copy)]
pub(super) struct RequestRecord<'a>(Option<&'a SharedRecord>);

impl<'a> RequestRecord<'a> {
    /// The record of the request that has this context.
    pub(super) fn of(context: &'a Context) -> Self {
        Self(context.extensions.get::<SharedRecord>())
    }

    /// A rule allows the request.
    pub(super) fn allowed_by(self, rule: &str) {
        self.change(|pending| {
            pending.allowed_by(rule);
            None
        });
    }

    /// A rule refuses the request, or hides its target.
    pub(super) fn denied_by(self, rule: &str) {
        self.change(|pending| {
            pending.denied_by(rule);
            None
        });
    }

    /// A limit refuses the request.
    pub(super) fn limited_by(self, limit: &str) {
        self.change(|pending| Some(pending.limited_by(limit)));
    }

    /// The variant that the request runs under.
    pub(super) fn set_variant(self, id: &str, source: SelectionSource) {
        let reason = match source {
            SelectionSource::Selector => "selector",
            SelectionSource::Header => "header",
            SelectionSource::Rule => "rule",
            SelectionSource::Ranking => "ranking",
        };
        self.change(|pending| {
            let choice = VariantChoice::new(Text::new(id), Text::from_static(reason));
            pending.record_mut().variant = Some(choice);
            None
        });
    }

    /// The client had no variant before, or another one.
    pub(super) fn variant_selected(self) {
        self.change(|pending| Some(pending.variant_selected()));
    }

    /// The client selected a variant that does not exist for it.
    pub(super) fn variant_refused(self, requested: &Value) {
        let text = requested.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| requested.to_string());
        self.change(|pending| Some(pending.variant_refused(&text)));
    }

    /// Changes the record, and records what happened within the request.
    fn change(self, change: impl FnOnce(&mut PendingRecord) -> Option<Record>) {
        let Some(SharedRecord(open)) = self.0 else {
            return;
        };
        let mut pending = open.pending.lock();
        if let Some(event) = pending.as_mut().and_then(change) {
            open.log.submit_or_lose(event);
        }
    }
}

/// Room for a record, before the request does anything.
async fn reserve(log: &AuditLog) -> McpResult<Permit> {
    if let Some(permit) = log.try_reserve() {
        return Ok(permit);
    }
    let refused = match log.on_full() {
        OnFull::Wait(_) => {
            let log = log.clone();
            // It blocks its thread until there is room.
            let reserved = tokio::task::spawn_blocking(move || log.reserve()).await;
            match reserved {
                Ok(Ok(permit)) => return Ok(permit),
                Ok(Err(refused)) => refused,
                Err(_) => QueueFull,
            }
        }
        _ => log.refuse(),
    };
    Err(ErrorData::internal_error(refused.to_string(), None))
}

/// What is known of a request when it arrives.
fn describe(clients: &Clients, method: &str, subject: Subject, context: &Context) -> Record {
    // The outcome is filled in when it is known.
    let mut record = Record::new(Event::Request, Outcome::Cancelled);
    let parts = context.extensions.get::<http::request::Parts>();
    let header = |name: &str| parts?.headers.get(name)?.to_str().ok();
    let actor = clients.principal(context);
    record.actor = actor
        .and_then(|principal| Actor::of(&principal))
        .map(Arc::new);
    let client = subject.client.or_else(|| context.client_info());
    record.client = client.map(|client| {
        let info = ClientInfo::new(Text::new(&client.name), Text::new(&client.version));
        Arc::new(info)
    });
    record.address = clients.address(context);
    record.session = header("mcp-session-id").map(|id| SessionId::new(id.into()));
    record.era = Some(match era(context) {
        Era::Legacy => RecordEra::Legacy,
        Era::Modern => RecordEra::Modern,
    });
    record.transport = Some(match parts {
        Some(_) => Transport::Http,
        None => Transport::Stdio,
    });
    record.method = Some(Text::new(method));
    record.request_id = Some(Text::new(context.id.to_string()));
    record.target = subject.target;
    record.arguments = subject.arguments;
    let in_meta = context.meta.get("traceparent").and_then(Value::as_str);
    let traceparent = in_meta.or_else(|| header("traceparent"));
    record.trace_id = traceparent.and_then(trace_id);
    record
}
