//! What is measured of one request.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::closed_list::Code;
use crate::metrics::Metrics;
use crate::request_labels::RequestLabels;
use crate::variant_metrics::VariantMetrics;

/// One request, from its arrival on.
///
/// # Properties
///
/// Its clones are the same request; one of them counts its end. It allocates nothing.
#[derive(Clone, Debug)]
pub struct RequestMeter {
    metrics: Arc<Metrics>,
    arrived: Instant,
    labels: RequestLabels,
    /// The variant that it runs under, once that is known.
    variant: OnceLock<Arc<VariantMetrics>>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub struct RequestOutcome {
    /// Its outcome as a label.
    pub code: Code,
    /// The bytes of the result, as the client gets it; `None` for errors.
    pub result_bytes: Option<usize>,
}

impl RequestOutcome {
    /// An outcome with these values.
    pub const fn new(code: Code, result_bytes: Option<usize>) -> Self {
        Self { code, result_bytes }
    }
}

/// The time that a server worked on a request.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeMeter {
    sent: Instant,
    /// When the last answer of the server arrived.
    answered: Option<Instant>,
    result_bytes: usize,
}

impl ExchangeMeter {
    /// A request was just sent to its server.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            sent: Instant::now(),
            answered: None,
            result_bytes: 0,
        }
    }

    /// The server answered, with a result of this many bytes or with an error.
    pub fn answered(&mut self, result_bytes: usize) {
        self.answered = Some(Instant::now());
        self.result_bytes = result_bytes;
    }

    /// The time between sending the request and its answer; until now if the server did not answer.
    fn duration(&self) -> Duration {
        let end = self.answered.unwrap_or_else(Instant::now);
        end.saturating_duration_since(self.sent)
    }
}

impl RequestMeter {
    /// A request with these labels arrives.
    #[must_use]
    pub fn begin(metrics: &Arc<Metrics>, labels: RequestLabels) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            arrived: Instant::now(),
            labels,
            variant: OnceLock::new(),
        }
    }

    /// The request runs under `variant`, for this reason.
    pub fn enter(&self, variant: &Arc<VariantMetrics>, reason: &str) {
        // Some methods look twice.
        if self.variant.set(Arc::clone(variant)).is_ok() {
            variant.choose(reason);
        }
    }

    /// The variant of the request is deprecated.
    pub fn use_deprecated(&self) {
        self.variant().use_deprecated();
    }

    /// An access rule refuses the request, or hides its target.
    pub fn denied_by(&self, rule: &str) {
        self.metrics.count_denial(rule);
    }

    /// The gateway answered without a server.
    pub fn answered(&self, outcome: RequestOutcome) {
        self.end(outcome.code, Some(Duration::ZERO));
    }

    /// The client gets the response to a request that was sent to its server in `exchange`; `None` if what it waited for
    /// was not measured.
    pub fn exchanged(&self, outcome: RequestOutcome, exchange: Option<ExchangeMeter>) {
        self.end(outcome.code, exchange.map(|exchange| exchange.duration()));
        if let Some((exchange, bytes)) = exchange.zip(outcome.result_bytes)
            && self.labels.is_call()
            && exchange.result_bytes > 0
        {
            self.variant().add_result(exchange.result_bytes, bytes);
        }
    }

    /// The client did not wait for the response.
    pub fn cancelled(&self) {
        self.end(Code::CANCELLED, None);
    }

    /// The request opened a stream of notifications, which has no response.
    pub fn stream_opened(&self) {
        let cell = self.labels.position(Code::OK);
        self.variant().count(cell);
    }

    /// The request until its outcome.
    pub const fn pending(&self) -> PendingRequest<'_> {
        PendingRequest(Some(self))
    }

    /// Counts the request. `waited`: the time that is not the gateway's, if that is known.
    fn end(&self, code: Code, waited: Option<Duration>) {
        let duration = self.arrived.elapsed();
        let cell = self.labels.position(code);
        let variant = self.variant();
        variant.count(cell);
        if self.labels.is_call() {
            variant.observe_call(duration);
        }
        let method = self.labels.method;
        let in_gateway = waited.map(|waited| (method, duration.saturating_sub(waited)));
        self.metrics.observe_request(cell, duration, in_gateway);
    }

    fn variant(&self) -> &Arc<VariantMetrics> {
        let variant = self.variant.get();
        variant.unwrap_or_else(|| self.metrics.no_variant())
    }
}

/// A request without an outcome.
///
/// # Properties
///
/// Dropping it counts the request as cancelled: its client left while the gateway worked on it.
#[derive(Debug, Default)]
pub struct PendingRequest<'a>(Option<&'a RequestMeter>);

impl PendingRequest<'_> {
    /// The outcome is known, or is observed elsewhere.
    pub fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if let Some(meter) = self.0 {
            meter.cancelled();
        }
    }
}
