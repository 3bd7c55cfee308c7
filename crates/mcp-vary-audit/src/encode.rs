//! Records as lines of JSON: `docs/audit.schema.json`.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::config::{ArgumentsDetail, AuditConfig, IdentityDetail};
use crate::digest::{Digester, hex};
use crate::escape::to_json;
use crate::line::{Line, Severity};
use crate::record::{Actor, Arguments, Era, Event, Outcome, Record, TargetKind, Transport};
use crate::text::{Text, cut};
use crate::wire::{
    WireArguments, WireClient, WirePrincipal, WireRanking, WireRecord, WireTarget, WireVariant,
};

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
}

impl Encoder {
    /// `max_line` is what the sink takes.
    pub(crate) fn new(config: &AuditConfig, max_line: usize) -> Self {
        Self {
            digester: Digester::new(config.key.clone()),
            run: config.run.clone(),
            replica: config.replica.clone(),
            identity: config.identity,
            arguments: config.arguments,
            max_line,
        }
    }

    /// The line of a record.
    pub(crate) fn record(&self, sequence: u64, timed: &TimedRecord) -> Line {
        let record = &timed.record;
        let time = rfc3339(timed.time);
        let mut wire = self.wire(sequence, &time, record.event.name());
        self.describe(&mut wire, record);
        let text = match self.arguments {
            ArgumentsDetail::Full { limit } => self.with_text(&mut wire, record, limit),
            ArgumentsDetail::Off | ArgumentsDetail::Digest => to_json(&wire),
        };
        Line::new(time, severity(record), text)
    }

    /// The line of a record of the log about itself.
    pub(crate) fn log_event(&self, sequence: u64, time: u64, event: LogEvent) -> Line {
        let time = rfc3339(time);
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
        Line::new(time, severity, text)
    }

    fn wire<'a>(&'a self, seq: u64, time: &'a str, event: &'static str) -> WireRecord<'a> {
        WireRecord {
            v: SCHEMA_VERSION,
            run: &self.run,
            seq,
            time,
            event,
            replica: self.replica.as_ref(),
            outcome: None,
            code: None,
            status: None,
            principal: None,
            client: None,
            session: None,
            era: None,
            transport: None,
            method: None,
            request_id: None,
            target: None,
            variant: None,
            ranking: None,
            rule: None,
            arguments: None,
            bytes_in: None,
            bytes_out: None,
            duration_ms: None,
            trace_id: None,
            config: None,
            lost: None,
            refused: None,
        }
    }

    fn describe<'a>(&'a self, wire: &mut WireRecord<'a>, record: &'a Record) {
        wire.outcome = Some(record.outcome.name());
        wire.code = record.code;
        wire.status = record.status;
        wire.principal = record.actor.as_deref().map(|actor| self.principal(actor));
        wire.client = client(record);
        let session = record.session.as_ref();
        wire.session = session.map(|session| self.digester.digest("session", session.0.as_bytes()));
        wire.era = record.era.map(era);
        wire.transport = record.transport.map(transport);
        wire.method = record.method.as_ref();
        wire.request_id = record.request_id.as_ref();
        wire.target = target(record);
        wire.variant = record.variant.as_ref().map(|variant| WireVariant {
            id: &variant.id,
            reason: &variant.reason,
            rule: variant.rule.as_ref(),
            hints: variant.hints.as_ref(),
            order: variant.order.as_ref(),
        });
        wire.ranking = record.ranking.as_ref().map(|ranking| WireRanking {
            model: &ranking.model,
            variants: &ranking.variants,
            order: ranking.order.as_ref(),
            failure: ranking.failure.as_ref(),
        });
        wire.rule = record.rule.as_ref();
        wire.arguments = record.arguments.as_ref().map(|it| self.arguments(it));
        wire.bytes_in = record.bytes_in;
        wire.bytes_out = record.bytes_out;
        let micros = record.duration.map(|duration| duration.as_micros());
        // Exact for 285 years.
        wire.duration_ms = micros.map(|micros| micros as f64 / 1000.0);
        wire.trace_id = record.trace_id.map(|id| hex(&id));
        wire.config = record.config.as_ref();
    }

    fn principal<'a>(&self, actor: &'a Actor) -> WirePrincipal<'a> {
        let is_full = self.identity == IdentityDetail::Full;
        let only_if_full = |text: &'a Option<Text>| text.as_ref().filter(|_| is_full);
        WirePrincipal {
            id: &actor.id,
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
    fn with_text<'a>(
        &self,
        wire: &mut WireRecord<'a>,
        record: &'a Record,
        limit: usize,
    ) -> Vec<u8> {
        let line = to_json(wire);
        let json = record.arguments.as_ref();
        let Some(json) = json.and_then(|arguments| arguments.json.as_ref()) else {
            return line;
        };
        let room = self.max_line.saturating_sub(line.len() + TEXT_MEMBER);
        let limit = limit.min(room).min(MAX_ARGUMENTS_TEXT);
        if limit < MIN_ARGUMENTS_TEXT {
            return line;
        }
        let text = String::from_utf8_lossy(json);
        let text = match cut(&text, limit) {
            Cow::Borrowed(whole) => whole.to_owned(),
            Cow::Owned(start) => start,
        };
        if let Some(arguments) = &mut wire.arguments {
            arguments.text = Some(text);
        }
        to_json(wire)
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

fn target(record: &Record) -> Option<WireTarget<'_>> {
    record.target.as_ref().map(|target| WireTarget {
        kind: target_kind(target.kind),
        name: &target.name,
        server: target.server.as_ref(),
        upstream_name: target.upstream_name.as_ref(),
    })
}

const fn target_kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Tool => "tool",
        TargetKind::Prompt => "prompt",
        TargetKind::Resource => "resource",
        TargetKind::Task => "task",
        TargetKind::Variant => "variant",
    }
}

const fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

const fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Http => "http",
        Transport::Stdio => "stdio",
    }
}

fn severity(record: &Record) -> Severity {
    match (record.event, record.outcome) {
        (Event::AuthRefused, _) | (_, Outcome::Denied) => Severity::Notice,
        _ => Severity::Informational,
    }
}

/// The time in UTC with microseconds (RFC 3339).
fn rfc3339(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    format!("{time:.6}")
}
