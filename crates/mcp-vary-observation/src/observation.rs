//! What is observed of every request from its arrival to its end, whatever its method and transport.
//!
//! A concern of every request is added in this file alone: to [`Observation`] what a request has from its arrival, to
//! [`ExchangeObservation`] what it has while a server works on it.

use std::sync::{Arc, OnceLock};

use mcp_vary_audit::QueueFull;
use mcp_vary_metrics::{
    Code, ExchangeMeter, Metrics, PendingRequest, RequestLabels, RequestMeter, RequestOutcome,
    VariantMetrics,
};
use mcp_vary_traces::{CallSpan, Outcome, RequestSpan, Tracer, Upstream};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::Reply;
use mcp_vary_wire::revision::Revision;
use serde_json::Value;
use tokio::time::Instant;

use crate::audit_service::AuditService;
use crate::call_counters::CountedCall;
use crate::origin::revisions_of;
use crate::outcome::{length_for_models, metrics_code, result_length, span_outcome};
use crate::participation::Participation;
use crate::people::Person;
use crate::request_feed::{RequestFeed, is_call};
use crate::request_record::{AuditedRequest, RequestRecord};
use crate::savings::CostCounters;
use crate::{request_line, spans};

/// What observes the requests of a gateway, if it is configured.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct Observers {
    /// The audit log.
    pub audit: Option<Arc<AuditService>>,
    /// The series of requests.
    pub metrics: Option<Arc<Metrics>>,
    /// What begins spans.
    pub tracer: Option<Arc<Tracer>>,
    /// Gets the calls that have ended, while they are watched or recorded.
    pub feed: Arc<RequestFeed>,
}

/// One request as the audit log, the log, experiments, metrics and traces see it.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// With these labels, metrics count it and its call of a server.
    labels: RequestLabels,
    /// `None` unless the audit log or the log has the request, or it is a call that is watched or recorded.
    record: Option<Arc<RequestRecord>>,
    /// The part that its client takes in an experiment.
    participation: Option<Arc<Participation>>,
    /// `None` if requests are not measured.
    meter: Option<RequestMeter>,
    /// `None` if the request is not sampled, and has no context to pass on.
    span: Option<Arc<RequestSpan>>,
    /// Whether the operator sends it as a client would: it counts for no client.
    is_of_operator: bool,
    /// For whom the cost of its response counts, once that is known; not set if a model reads nothing of it.
    cost: OnceLock<Arc<CostCounters>>,
    /// For whom it counts; `None` for anonymous clients and for the operator.
    person: Option<Arc<Person>>,
    /// Whether the list of the last calls can have it: the number of refused calls of a person leads to those in the list.
    is_call: bool,
    /// Set once it counts as refused: rules can hide several resources that one request names.
    refused: OnceLock<()>,
}

impl Observation {
    /// Begins to observe a request, before it does anything.
    ///
    /// # Errors
    ///
    /// When there is no room for its record, and the request must be refused for that reason.
    pub async fn begin(
        observers: &Observers,
        mut request: AuditedRequest<'_>,
    ) -> Result<Self, QueueFull> {
        let labels = RequestLabels::new(request.method, revisions_of(request.era));
        let metrics = observers.metrics.as_ref();
        let meter = metrics.map(|metrics| RequestMeter::begin(metrics, labels));
        let record = match &observers.audit {
            Some(audit) => Some(RequestRecord::begin(audit, &mut request).await?),
            None => (request.reported.is_some() || request_line::is_enabled())
                .then(|| RequestRecord::unaudited(&mut request)),
        };
        if let Some(person) = &request.person {
            person.begin(request.method);
        }
        let tracer = observers.tracer.as_ref();
        let span = tracer.and_then(|tracer| spans::begin(tracer, &request));
        let trace = span.as_ref().and_then(|span| span.trace_id());
        if let Some((record, id)) = record.as_ref().zip(trace) {
            record.set_trace(id);
        }
        Ok(Self {
            labels,
            record,
            participation: None,
            meter,
            span,
            is_of_operator: false,
            cost: OnceLock::new(),
            is_call: is_call(request.method),
            person: request.person,
            refused: OnceLock::new(),
        })
    }

    /// Begins to observe a request that the operator sends as a client would. It is recorded as the operator's, and counts
    /// neither for clients nor for experiments.
    ///
    /// # Errors
    ///
    /// As those of [`begin`](Self::begin).
    pub async fn of_operator(
        observers: &Observers,
        request: AuditedRequest<'_>,
    ) -> Result<Self, QueueFull> {
        let recording = Observers {
            metrics: None,
            tracer: None,
            ..observers.clone()
        };
        let begun = Self::begin(&recording, request).await?;
        if let Some(record) = &begun.record {
            record.set_operator();
        }
        Ok(Self {
            is_of_operator: true,
            ..begun
        })
    }

    /// Whether it counts for no client.
    pub const fn is_of_operator(&self) -> bool {
        self.is_of_operator
    }

    /// The observation of a request whose client takes part in an experiment.
    pub fn with_participation(&self, participation: Option<Arc<Participation>>) -> Self {
        Self {
            participation: participation.filter(|_| !self.is_of_operator),
            ..self.clone()
        }
    }

    /// The labels of the request.
    pub const fn labels(&self) -> RequestLabels {
        self.labels
    }

    /// The record of the request, for facts about it.
    pub fn record(&self) -> Option<&RequestRecord> {
        self.record.as_deref()
    }

    /// The part that the client takes in an experiment, for facts about it.
    pub fn participation(&self) -> Option<&Participation> {
        self.participation.as_deref()
    }

    /// The request runs under a variant, which was selected for this reason.
    pub fn entered(
        &self,
        series: Option<&Arc<VariantMetrics>>,
        variant: Option<&str>,
        reason: &'static str,
    ) {
        if let Some((meter, series)) = self.meter.as_ref().zip(series) {
            meter.enter(series, reason);
        }
        if let Some((span, variant)) = self.span.as_ref().zip(variant) {
            span.set_variant(variant, reason);
        }
    }

    /// The request is of a client that speaks this revision.
    pub fn speaks(&self, revision: Revision) {
        if let Some(span) = &self.span {
            span.set_revision(revision.as_str());
        }
    }

    /// The tool or prompt of the request exists for its client.
    pub fn found(&self, name: &str) {
        if let Some(span) = &self.span {
            span.set_target(name);
        }
    }

    /// What a model reads of the response counts for this client.
    pub fn counts_for(&self, client: Arc<CostCounters>) {
        // Some methods look twice.
        let _ = self.cost.set(client);
    }

    /// A model reads `with` bytes of the response, and would have read `without` if there was no Vary.
    pub fn costs(&self, without: usize, with: usize) {
        if let Some(client) = self.cost.get() {
            client.add(without, with);
        }
    }

    /// Begins the span of the request to a server; `None` if that carries no context of the gateway.
    pub fn begin_call<'a>(&self, upstream: impl FnOnce() -> Upstream<'a>) -> Option<CallSpan> {
        Some(self.span.as_ref()?.call(&upstream()))
    }

    /// The variant of the request is deprecated.
    pub fn used_deprecated(&self) {
        if let Some(meter) = &self.meter {
            meter.use_deprecated();
        }
    }

    /// Whether anything wants to know which rule refuses the request.
    pub fn observes_denials(&self) -> bool {
        self.record.is_some() || self.meter.is_some() || self.person.is_some()
    }

    /// An access rule refuses the request, or hides its target.
    pub fn denied_by(&self, rule: &str) {
        if let Some(record) = &self.record {
            record.denied_by(rule);
        }
        if let Some(meter) = &self.meter {
            meter.denied_by(rule);
        }
        self.count_refusal();
    }

    /// A rate limit refuses the request: `limit` names it.
    pub fn limited_by(&self, limit: &str) {
        if let Some(record) = &self.record {
            record.limited_by(limit);
        }
        self.count_refusal();
    }

    /// The client selected a variant that does not exist for it.
    pub fn refuse_variant(&self, requested: &Value) {
        if let Some(record) = &self.record {
            let text = requested.as_str().map(str::to_owned);
            record.refuse_variant(&text.unwrap_or_else(|| requested.to_string()));
        }
        self.count_refusal();
    }

    fn count_refusal(&self) {
        if let Some(person) = &self.person
            && self.is_call
            && self.refused.set(()).is_ok()
        {
            person.refuse();
        }
    }

    /// The request is about to be handled by its method. What is returned counts it as cancelled if it is dropped before
    /// the outcome.
    pub fn dispatched(&self, method: &str, params: &Params<'_>) -> PendingRequest<'_> {
        if let Some(participation) = &self.participation {
            match method {
                "tools/list" => participation.count_client(),
                "tools/call" => participation.begin_call(params),
                _ => {}
            }
        }
        let meter = self.meter.as_ref();
        meter.map(RequestMeter::pending).unwrap_or_default()
    }

    /// The status of the response was sent before its outcome is known.
    pub fn status_sent(&self) {
        if let Some(record) = &self.record {
            record.status_sent();
        }
    }

    /// The client gets the response, which no server worked on.
    pub fn answered(&self, reply: &Reply) {
        if let Some(meter) = &self.meter {
            meter.answered(RequestOutcome::new(metrics_code(&reply.body, true), None));
        }
        self.replied(reply, Instant::now());
    }

    /// Returns the outcome as a label of metrics, if that was recorded.
    fn replied(&self, reply: &Reply, now: Instant) -> Option<Code> {
        let record = self.record.as_ref();
        let recorded = record.and_then(|record| record.finish(reply, now));
        if let Some(participation) = &self.participation {
            participation.finish(reply);
        }
        if let Some(span) = self.span.as_ref().filter(|span| span.is_recorded()) {
            span.end(span_outcome(&reply.body));
        }
        recorded
    }

    /// The request opened a stream of notifications, which has no response.
    pub fn stream_opened(&self) {
        if let Some(record) = &self.record {
            record.end(mcp_vary_audit::Outcome::Allowed);
        }
        if let Some(meter) = &self.meter {
            meter.stream_opened();
        }
        if let Some(span) = &self.span {
            span.end(Outcome::Result);
        }
    }

    /// The client does not wait for the response.
    fn cancelled(&self) {
        if let Some(record) = &self.record {
            record.end(mcp_vary_audit::Outcome::Cancelled);
        }
        if let Some(span) = &self.span {
            span.end(Outcome::Cancelled);
        }
    }
}

/// One request that a server works on.
///
/// # Properties
///
/// Dropping it before the response is observed as a cancellation.
#[derive(Debug)]
pub struct ExchangeObservation {
    request: Observation,
    /// `None` for requests about tasks.
    call: Option<CountedCall>,
    /// Whether the result of a tool is expected, which can report a failure.
    is_tool_call: bool,
    /// Whether the outcome is still to be measured.
    is_measured: bool,
    /// The time of the server, if requests are measured and it works on this one.
    exchange: Option<ExchangeMeter>,
    /// The bytes of the server's result for a model.
    result_bytes: usize,
    /// The span of the request to the server, if it carries a context.
    span: Option<CallSpan>,
}

impl ExchangeObservation {
    /// Observes what a server does for this request.
    pub fn new(request: &Observation, is_tool_call: bool) -> Self {
        Self {
            request: request.clone(),
            call: None,
            is_tool_call,
            is_measured: false,
            exchange: None,
            result_bytes: 0,
            span: None,
        }
    }

    /// The request was sent with this `span`. Counts it as this `call` of its server.
    pub fn sent(&mut self, call: Option<CountedCall>, span: Option<CallSpan>) {
        let now = Instant::now();
        if let Some(record) = self.request.record() {
            record.sent(now);
        }
        self.call = call;
        if let Some(call) = &mut self.call {
            call.sent(now);
        }
        self.span = span;
        self.exchange = self.request.meter.as_ref().map(|_| ExchangeMeter::begin());
    }

    /// The request goes on after its dispatch. From now on its outcome is measured here.
    pub fn in_flight(&mut self) {
        self.is_measured = true;
    }

    /// The server answered, with a result or an error.
    pub fn server_answered(&mut self, outcome: Result<&str, &str>) {
        if let Some(record) = self.request.record() {
            record.server_answered();
        }
        self.result_bytes = outcome.map_or(0, |result| length_for_models(result.as_bytes()));
        if let Some(exchange) = &mut self.exchange {
            exchange.answered(self.result_bytes);
        }
        if let Some(span) = self.span.take_if(|span| span.is_recorded()) {
            span.end(spans::outcome(outcome, self.is_tool_call));
        }
    }

    /// The client gets something before the response.
    pub fn status_sent(&self) {
        self.request.status_sent();
    }

    /// The client gets the response.
    pub fn answered(&mut self, reply: &Reply) {
        let now = Instant::now();
        let recorded = self.request.replied(reply, now);
        if let Some(span) = self.span.take().filter(CallSpan::is_recorded) {
            // The server did not answer: the request failed on the way.
            span.end(span_outcome(&reply.body));
        }
        let is_measured = std::mem::take(&mut self.is_measured);
        let result_bytes = is_measured.then(|| result_length(&reply.body)).flatten();
        if let Some(bytes) = result_bytes {
            self.count_result(bytes);
        }
        let meter = self.request.meter.as_ref().filter(|_| is_measured);
        if self.call.is_none() && meter.is_none() {
            return;
        }
        let code = match recorded {
            // A search of the whole result is not repeated.
            Some(code) if self.is_tool_call => code,
            _ => metrics_code(&reply.body, self.is_tool_call),
        };
        if let Some(call) = &mut self.call {
            call.finish(code, now);
        }
        if let Some(meter) = meter {
            let outcome = RequestOutcome::new(code, result_bytes);
            meter.exchanged(outcome, self.exchange);
        }
    }

    /// Counts the result, which has so many bytes as the client gets it.
    fn count_result(&self, bytes: usize) {
        if self.result_bytes > 0 {
            self.request.costs(self.result_bytes, bytes);
        }
        if self.is_tool_call
            && let Some(person) = &self.request.person
        {
            person.add_result(bytes);
        }
    }

    /// The client does not wait for the response.
    pub fn cancelled(&mut self) {
        self.request.cancelled();
        self.span = None;
        let is_measured = std::mem::take(&mut self.is_measured);
        if is_measured && let Some(meter) = &self.request.meter {
            meter.cancelled();
        }
        if let Some(call) = &mut self.call {
            call.cancel();
        }
    }
}

impl Drop for ExchangeObservation {
    fn drop(&mut self) {
        self.cancelled();
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary_access::{Claims, Principal};
    use mcp_vary_wire::revision::Era;

    use super::*;
    use crate::origin::Origin;
    use crate::people::People;

    #[tokio::test]
    async fn a_refused_call_counts_for_its_person_once_and_another_refused_request_does_not() {
        let people = People::default();
        let ann = Principal::key("ann", Claims::default()).unwrap();
        let observers = Observers {
            audit: None,
            metrics: None,
            tracer: None,
            feed: Arc::default(),
        };
        for (method, refused) in [("tools/list", 0), ("tools/call", 1), ("prompts/get", 2)] {
            let request = AuditedRequest {
                origin: &Origin::default(),
                principal: None,
                era: Era::Modern,
                method,
                id: "7",
                params: &Params::default(),
                client: None,
                message: None,
                length: 10,
                config: None,
                reported: None,
                person: people.person(&ann, 7),
            };
            let observation = Observation::begin(&observers, request).await.unwrap();
            observation.denied_by("access[0]");
            observation.limited_by("rates[0]");
            assert_eq!(people.all()[0].refused, refused, "{method}");
        }
    }
}
