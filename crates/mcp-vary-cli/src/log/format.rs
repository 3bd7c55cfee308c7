//! The forms of a log line: text with a time, or JSON.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::environment::now_in_microseconds;
use crate::print::json_line::json_line;

/// The time of a line of text, in UTC: of the day at a terminal, else as in RFC 3339.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineTime {
    OfDay,
    Full,
}

impl FormatTime for LineTime {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        match self {
            Self::OfDay => w.write_str(&time_of_day(now_in_microseconds() / 1_000_000)),
            Self::Full => SystemTime.format_time(w),
        }
    }
}

/// The time of the day, of seconds since 1970-01-01 UTC.
pub(crate) fn time_of_day(seconds: u64) -> String {
    let hours = seconds / 3600 % 24;
    let minutes = seconds / 60 % 60;
    format!("{hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

/// Each event is a line with a JSON object.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = JsonFields::default();
        event.record(&mut fields);
        let JsonFields {
            message,
            mut fields,
        } = fields;
        let metadata = event.metadata();
        fields.insert("target".to_owned(), metadata.target().into());
        let line = json_line(metadata.level().as_str(), &message, fields);
        writeln!(writer, "{line}")
    }
}

/// The fields of an event as JSON, numbers as numbers.
#[derive(Default)]
struct JsonFields {
    message: String,
    fields: Map<String, Value>,
}

impl JsonFields {
    fn insert(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for JsonFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.insert(field, text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_a_terminal_the_day_is_left_out() {
        for (seconds, shown) in [
            (0, "00:00:00Z"),
            (86_399, "23:59:59Z"),
            (1_900_000_000, "17:46:40Z"),
        ] {
            assert_eq!(time_of_day(seconds), shown);
        }
    }
}
