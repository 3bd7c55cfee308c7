//! Begins spans: which trace they belong to, and whether they are recorded.

use std::sync::Arc;

use mcp_vary_base::environment::Environment;

use crate::carrier::Carrier;
use crate::export::TraceStats;
use crate::processor::SpanProcessor;
use crate::settings::{Follow, Ratio, TracesError, TracesSettings};
use crate::span::{Arrival, RequestSpan};

/// Begins the spans of requests, and exports them.
#[derive(Debug)]
pub struct Tracer {
    sample: Ratio,
    follow: Follow,
    processor: Arc<SpanProcessor>,
}

impl Tracer {
    /// Starts to export, in the background. `now` returns microseconds since 1970-01-01 UTC. Must be called within a
    /// runtime.
    ///
    /// # Errors
    ///
    /// When the address or the headers are invalid; the error names the variable if it is of the environment. Whether the
    /// collector can be reached shows later, and never stops the gateway.
    pub fn start(
        settings: &TracesSettings,
        now: fn() -> u64,
        environment: Environment,
    ) -> Result<Arc<Self>, TracesError> {
        let target = settings.target(environment.variables)?;
        let service_name = settings.service_name_or_default(environment.variables);
        let processor = SpanProcessor::start(now, environment, target, &service_name);
        Ok(Arc::new(Self {
            sample: settings.sample,
            follow: settings.follow,
            processor: Arc::new(processor),
        }))
    }

    /// Begins a request: its span is recorded if it is sampled, and a context that only its headers have goes on to the
    /// server. `None` if there is neither.
    pub fn begin(&self, arrival: &Arrival<'_>) -> Option<Arc<RequestSpan>> {
        let in_meta = arrival.meta.context();
        let in_headers = arrival.headers.and_then(Carrier::context);
        let parent = in_meta.or(in_headers);
        let is_sampled = match parent {
            Some(parent) if self.follows(arrival) => parent.is_sampled(),
            // Not by the id of the trace, which a stranger may have chosen.
            _ => self.sample.contains(self.processor.random()),
        };
        // What is in `_meta` reaches the server without us.
        let mut inherited = match (in_meta, in_headers, arrival.headers) {
            (None, Some(_), Some(headers)) => headers.clone(),
            (Some(_), ..) => arrival.meta.clone(),
            _ => Carrier::default(),
        };
        // It does not depend on a position.
        let baggage = || arrival.meta.baggage.clone();
        inherited.baggage = inherited.baggage.or_else(baggage);
        if !is_sampled {
            let passes_header = in_meta.is_none() && in_headers.is_some();
            return passes_header.then(|| Arc::new(RequestSpan::unsampled(inherited)));
        }
        let context = self.processor.child_of(parent);
        let link = in_meta.and(in_headers);
        let span =
            RequestSpan::sampled(&self.processor, arrival, (context, parent, link), inherited);
        Some(Arc::new(span))
    }

    fn follows(&self, arrival: &Arrival<'_>) -> bool {
        match self.follow {
            Follow::All => true,
            Follow::Principals => arrival.is_known,
            Follow::Nobody => false,
        }
    }

    /// How many spans were exported and lost.
    pub fn stats(&self) -> TraceStats {
        self.processor.exporter.stats()
    }

    /// Exports the spans that wait, for a short time at most.
    pub async fn close(&self) {
        self.processor.exporter.close().await;
    }
}
