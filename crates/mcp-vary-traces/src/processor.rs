//! Makes spans, and hands them to the exporter when they end.

use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::environment::Environment;

use crate::context::TraceContext;
use crate::export::Exporter;
use crate::settings::Target;

/// What all spans have in common: their ids, the clock, and where they go.
#[derive(Debug)]
pub(crate) struct SpanProcessor {
    now: fn() -> u64,
    ids: Ids,
    pub(crate) exporter: Exporter,
}

impl SpanProcessor {
    pub(crate) fn start(
        now: fn() -> u64,
        environment: Environment,
        target: Target,
        service_name: &str,
    ) -> Self {
        Self {
            now,
            ids: Ids::new(environment),
            exporter: Exporter::start(target, service_name, &environment.random_name()),
        }
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        self.ids.next()
    }

    /// A new span, recorded, in the trace of its parent or in a new one.
    pub(crate) fn child_of(&self, parent: Option<TraceContext>) -> TraceContext {
        let trace = parent.map(|parent| parent.trace());
        loop {
            let id = trace.unwrap_or_else(|| self.ids.next_trace());
            let span = self.ids.next().to_be_bytes();
            if let Some(context) = TraceContext::new(id, span, true) {
                return context;
            }
        }
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) fn now(&self) -> u64 {
        (self.now)().saturating_mul(1000)
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
