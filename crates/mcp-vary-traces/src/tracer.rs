//! Begins spans: which trace they belong to, and whether they are recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::environment::Environment;

use crate::carrier::Carrier;
use crate::context::TraceContext;
use crate::export::{Exporter, TraceStats};
use crate::proto::Span;
use crate::settings::{Follow, Ratio, Target, TracesSettings};
use crate::span::{Arrival, RequestSpan};

/// Begins the spans of requests, and exports them.
#[derive(Debug)]
pub struct Tracer {
    sample: Ratio,
    follow: Follow,
    now: fn() -> u64,
    ids: Ids,
    exporter: Exporter,
}

impl Tracer {
    pub(crate) fn start(
        settings: &TracesSettings,
        now: fn() -> u64,
        environment: Environment,
        target: Target,
        service_name: String,
    ) -> Arc<Self> {
        Arc::new(Self {
            sample: settings.sample,
            follow: settings.follow,
            now,
            ids: Ids::new(environment),
            exporter: Exporter::start(target, service_name, environment.random_name()),
        })
    }

    /// Begins a request: its span is recorded if it is sampled, and a context that only its headers have goes on to the
    /// server. `None` if there is neither.
    #[must_use]
    pub fn begin(self: &Arc<Self>, arrival: &Arrival<'_>) -> Option<Arc<RequestSpan>> {
        let in_meta = arrival.meta.context();
        let in_headers = arrival.headers.and_then(Carrier::context);
        let parent = in_meta.or(in_headers);
        let is_sampled = match parent {
            Some(parent) if self.follows(arrival) => parent.is_sampled(),
            // Not by the id of the trace, which a stranger may have chosen.
            _ => self.sample.contains(self.ids.next()),
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
            let goes_on = in_meta.is_none() && in_headers.is_some();
            return goes_on.then(|| Arc::new(RequestSpan::unsampled(inherited)));
        }
        let context = self.child_of(parent);
        let link = in_meta.and(in_headers);
        let span = RequestSpan::sampled(self, arrival, (context, parent, link), inherited);
        Some(Arc::new(span))
    }

    fn follows(&self, arrival: &Arrival<'_>) -> bool {
        match self.follow {
            Follow::All => true,
            Follow::Principals => arrival.is_known,
            Follow::Nobody => false,
        }
    }

    /// A new span, recorded, in the trace of its parent or in a new one.
    pub(crate) fn child_of(&self, parent: Option<TraceContext>) -> TraceContext {
        let trace = parent.map(|parent| parent.trace());
        loop {
            let trace = trace.unwrap_or_else(|| self.ids.next_trace());
            let span = self.ids.next().to_be_bytes();
            if let Some(context) = TraceContext::new(trace, span, true) {
                return context;
            }
        }
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) fn now(&self) -> u64 {
        (self.now)().saturating_mul(1000)
    }

    pub(crate) fn submit(&self, span: Span) {
        self.exporter.submit(span);
    }

    /// How many spans were exported and lost.
    #[must_use]
    pub fn stats(&self) -> TraceStats {
        self.exporter.stats()
    }

    /// Exports the spans that wait, for a short time at most.
    pub async fn close(&self) {
        self.exporter.close().await;
    }
}

/// Ids of spans and traces: unique among all programs, but not secret.
///
/// The source of randomness is asked once, since it may be a call of the system. The numbers are those of SplitMix64.
#[derive(Debug)]
struct Ids {
    state: AtomicU64,
    /// The same for all traces of this process.
    high: u64,
}

impl Ids {
    fn new(environment: Environment) -> Self {
        let mut random = [[0; 8]; 2];
        for bytes in &mut random {
            (environment.random)(bytes);
        }
        let [state, high] = random.map(u64::from_le_bytes);
        Self {
            state: AtomicU64::new(state),
            high,
        }
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.state.fetch_add(STEP, Ordering::Relaxed);
        mixed(state.wrapping_add(STEP))
    }

    fn next_trace(&self) -> [u8; 16] {
        let low = self.next();
        // Samplers of other programs read the low half, and sort by the high one.
        let high = mixed(low ^ self.high);
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }
}

/// The finalizer of SplitMix64: each bit of the result depends on all of the number.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
