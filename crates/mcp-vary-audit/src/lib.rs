//! The audit log: who did what, under which variant and rule, and with what outcome.
//!
//! | question | here |
//! |---|---|
//! | what is recorded? | [`Record`], and `docs/reference/audit.md`; of a request: [`PendingRecord`] |
//! | how much of it is written? | [`AuditConfig`]: [`IdentityDetail`], [`ArgumentsDetail`] |
//! | where to? | [`Sink`]: [`FileSink`], [`StreamSink`], [`SyslogSink`] |
//! | what if it cannot be written in time? | [`OnFull`], [`AuditStats`] |
//!
//! A request hands its record to a queue; one thread encodes and writes. A record is one line of JSON that follows
//! `docs/audit.schema.json`.
//!
//! # Properties
//!
//! - Without [`OnFull::Wait`], no request waits for the log.
//! - Nothing is lost silently: the stream itself has a record with the number of lost records.
//! - What peers sent is bounded in length, and invisible characters are escaped: a line is always one line, shows what
//!   it has, and has at most [`MAX_LINE`] bytes unless arguments are written in full.
//! - Session ids are never written, only their digests; arguments only if [`ArgumentsDetail::Full`] says so.
//! - Time, keys and the identity of the run are arguments.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod config;
mod digest;
mod encode;
mod escape;
mod line;
mod log;
mod pending;
mod queue;
mod record;
mod sink;
mod text;
mod trace;
mod wire;
mod writer;

pub use config::{ArgumentsDetail, AuditConfig, AuditKey, IdentityDetail, OnFull};
pub use encode::SCHEMA_VERSION;
pub use line::{Line, MAX_LINE, MAX_LINE_WITH_ARGUMENTS, Severity, read_line};
pub use log::{AuditLog, AuditStats, Permit, QueueFull};
pub use mcp_vary::error::Era;
pub use pending::PendingRecord;
pub use record::{
    Actor, Arguments, ClientInfo, Event, ModelRanking, Outcome, Record, SessionId, Target,
    TargetKind, Transport, VariantChoice,
};
pub use sink::{
    FileSink, MAX_SYSLOG_MESSAGE, Sink, StreamSink, SyslogAddress, SyslogHeader, SyslogHeaderError,
    SyslogSink, Written,
};
pub use text::{BoundedText, LongText, MAX_LONG_TEXT, MAX_TEXT, Text};
pub use trace::trace_id;
