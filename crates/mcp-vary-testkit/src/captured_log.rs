//! The log events of one test.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest, set_default, set_global_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects log events, a line each: `LEVEL message; field=value; `.
#[derive(Clone, Debug)]
pub struct CapturedLog {
    lines: Arc<Mutex<Vec<String>>>,
    least: Level,
    target: &'static str,
}

impl CapturedLog {
    /// Collects the events of `target` at `least` and above, in this thread, until the guard is dropped.
    pub fn listen(target: &'static str, least: Level) -> (Self, DefaultGuard) {
        let log = Self {
            lines: Arc::default(),
            least,
            target,
        };
        FOREVER.call_once(|| {
            let _ = set_global_default(Undecided);
        });
        (log.clone(), set_default(log))
    }

    /// The events since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}

/// `tracing` caches that no subscriber wants an event. If another test reaches the event just before this one
/// subscribes, the cached answer is wrong. A subscriber for the whole process that never decides prevents the caching.
static FOREVER: Once = Once::new();

struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Subscriber for CapturedLog {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.least && metadata.target().starts_with(self.target)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        let line = format!("{level} {}; {}", line.message, line.fields);
        self.lines.lock().unwrap().push(line);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.fields, "{name}={value:?}; ").unwrap(),
        }
    }
}
