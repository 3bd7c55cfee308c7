//! Records as lines of JSON: `docs/audit.schema.json`.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::{ArgumentsDetail, AuditConfig, IdentityDetail};
use crate::digest::{Digester, hex};
use crate::escape::to_json;
use crate::line::{Line, Severity};
use crate::record::{Actor, Arguments, Event, Outcome, Record};
use crate::text::{Text, cut};
use crate::wire::{WireArguments, WireClient, WirePrincipal, WireRecord};

/// The version of the schema: `v` of each line. It changes if a member is removed or its meaning changes.
pub const SCHEMA_VERSION: u32 = 1;

/// The largest text of arguments in a line.
const MAX_ARGUMENTS_TEXT: usize = 64 << 10;

/// A record, and when it was made.
#[derive(Debug)]
pub(crate) struct TimedRecord {
    /// Microseconds since 1970-01-01 UTC.
    pub(crate) time: u64,
    pub(crate) record: Record,
}

/// A record of the log about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogEvent {
    Started,
    Lost(Losses),
    Stopped,
}

/// What the log did not record since it last reported that.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Losses {
    /// Records that were not written.
    pub(crate) lost: u64,
    /// Requests that were refused because there was no room for their record.
    pub(crate) refused: u64,
}

/// Turns records into lines.
#[derive(Debug)]
pub(crate) struct Encoder {
    digester: Digester,
    run: Text,
    replica: Option<Text>,
    identity: IdentityDetail,
    arguments: ArgumentsDetail,
    max_line: usize,
    clock: TextClock,
}

impl Encoder {
    /// `max_line` is what the sink takes.
    pub(crate) fn new(config: &AuditConfig, max_line: usize) -> Self {
        Self {
            digester: Digester::new(&config.key),
            run: config.run.clone(),
            replica: config.replica.clone(),
            identity: config.identity,
            arguments: config.arguments,
            max_line,
            clock: TextClock::default(),
        }
    }

    /// The line of a record.
    pub(crate) fn record(&mut self, sequence: u64, timed: &TimedRecord) -> Line {
        let record = &timed.record;
        let time = self.clock.rfc3339(timed.time);
        let wire = self.described(sequence, &time, record);
        let text = match self.arguments {
            ArgumentsDetail::Full { limit } => self.with_text(wire, record, limit),
            ArgumentsDetail::Off | ArgumentsDetail::Digest => to_json(&wire),
        };
        Line {
            time,
            severity: severity(record),
            text,
        }
    }

    /// The line of a record of the log about itself.
    pub(crate) fn log_event(&mut self, sequence: u64, time: u64, event: LogEvent) -> Line {
        let time = self.clock.rfc3339(time);
        let (name, severity) = match event {
            LogEvent::Started => ("audit.started", Severity::Notice),
            LogEvent::Lost(_) => ("audit.lost", Severity::Warning),
            LogEvent::Stopped => ("audit.stopped", Severity::Notice),
        };
        let mut wire = self.wire(sequence, &time, name);
        if let LogEvent::Lost(losses) = event {
            wire.lost = Some(losses.lost);
            wire.refused = Some(losses.refused);
        }
        let text = to_json(&wire);
        Line {
            time,
            severity,
            text,
        }
    }

    fn wire<'a>(&'a self, seq: u64, time: &'a str, event: &'static str) -> WireRecord<'a> {
        WireRecord {
            v: SCHEMA_VERSION,
            run: Some(&self.run),
            seq,
            time,
            event,
            replica: self.replica.as_ref(),
            ..WireRecord::default()
        }
    }

    fn described<'a>(&'a self, seq: u64, time: &'a str, record: &'a Record) -> WireRecord<'a> {
        let session = record.session.as_ref();
        // Exact for 285 years.
        let milliseconds = |duration: Duration| duration.as_micros() as f64 / 1000.0;
        WireRecord {
            outcome: Some(record.outcome),
            code: record.code,
            status: record.status,
            principal: record.actor.as_deref().map(|actor| self.principal(actor)),
            client: client(record),
            session: session.map(|id| self.digester.digest("session", id.0.as_bytes())),
            era: record.era,
            transport: record.transport,
            method: record.method.as_ref(),
            request_id: record.request_id.as_ref(),
            target: record.target.as_ref(),
            variant: record.variant.as_ref(),
            ranking: record.ranking.as_ref(),
            rule: record.rule.as_ref(),
            change: record.change.as_ref(),
            count: record.count,
            arguments: record.arguments.as_ref().map(|given| self.arguments(given)),
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            duration_ms: record.duration.map(milliseconds),
            waited_ms: record.waited.map(milliseconds),
            upstream_ms: record.upstream_duration.map(milliseconds),
            trace_id: record.trace_id.map(|id| hex(&id)),
            config: record.config.as_ref(),
            ..self.wire(seq, time, record.event.name())
        }
    }

    fn principal<'a>(&self, actor: &'a Actor) -> WirePrincipal<'a> {
        let is_full = self.identity == IdentityDetail::Full;
        let only_if_full = |text: &'a Option<Text>| if is_full { text.as_ref() } else { None };
        WirePrincipal {
            id: &actor.id,
            name: match self.identity {
                IdentityDetail::Id => None,
                IdentityDetail::Name | IdentityDetail::Full => actor.name.as_ref(),
            },
            iss: only_if_full(&actor.issuer),
            sub: only_if_full(&actor.subject),
            client_id: only_if_full(&actor.client_id),
            key: only_if_full(&actor.key),
        }
    }

    fn arguments(&self, arguments: &Arguments) -> WireArguments {
        let json = match self.arguments {
            ArgumentsDetail::Off => None,
            ArgumentsDetail::Digest | ArgumentsDetail::Full { .. } => arguments.json.as_ref(),
        };
        WireArguments {
            bytes: arguments.length,
            digest: json.map(|json| self.digester.digest("arguments", json)),
            text: None,
        }
    }

    /// The line with as much of the arguments' text as fits.
    fn with_text(&self, mut wire: WireRecord<'_>, record: &Record, limit: usize) -> Vec<u8> {
        let line = to_json(&wire);
        let json = record.arguments.as_ref();
        let Some(json) = json.and_then(|arguments| arguments.json.as_ref()) else {
            return line;
        };
        let room = self.max_line.saturating_sub(line.len() + TEXT_MEMBER);
        let most = limit.min(room).min(MAX_ARGUMENTS_TEXT);
        if most < MIN_ARGUMENTS_TEXT {
            return line;
        }
        if let Some(arguments) = &mut wire.arguments {
            arguments.text = Some(cut(&String::from_utf8_lossy(json), most).into_owned());
        }
        to_json(&wire)
    }
}

/// The length of `,"text":""`.
const TEXT_MEMBER: usize = 10;

/// A text that is shorter than the note of what is missing says nothing.
const MIN_ARGUMENTS_TEXT: usize = 32;

fn client(record: &Record) -> Option<WireClient<'_>> {
    let info = record.client.as_deref();
    if info.is_none() && record.address.is_none() {
        return None;
    }
    Some(WireClient {
        name: info.map(|info| &info.name),
        version: info.map(|info| &info.version),
        address: record.address,
    })
}

fn severity(record: &Record) -> Severity {
    match (record.event, record.outcome) {
        (Event::AuthRefused, _) | (_, Outcome::Denied) => Severity::Notice,
        _ => Severity::Informational,
    }
}

/// Times as text. Many records are of one second, whose date and time are written once.
#[derive(Debug, Default)]
struct TextClock {
    second: u64,
    /// Date and time of that second, without `Z`; empty at first.
    text: String,
}

impl TextClock {
    /// The time in UTC with microseconds (RFC 3339).
    fn rfc3339(&mut self, micros: u64) -> String {
        let second = micros / 1_000_000;
        if self.text.is_empty() || second != self.second {
            let seconds = i64::try_from(second).ok();
            let time = seconds.and_then(|second| Timestamp::from_second(second).ok());
            self.text = time.unwrap_or(Timestamp::MAX).strftime("%FT%T").to_string();
            self.second = second;
        }
        format!("{}.{:06}Z", self.text, micros % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::TextClock;

    #[test]
    fn each_time_is_written_with_its_own_second_and_microseconds() {
        let mut clock = TextClock::default();
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_763_705_520_123_456, "2025-11-21T06:12:00.123456Z"),
            (1_763_705_520_999_999, "2025-11-21T06:12:00.999999Z"),
            (1_763_705_521_000_000, "2025-11-21T06:12:01.000000Z"),
            (1_763_705_520_000_007, "2025-11-21T06:12:00.000007Z"),
            (u64::MAX, "9999-12-30T22:00:00.551615Z"),
        ] {
            assert_eq!(clock.rfc3339(micros), expected);
        }
    }
}
