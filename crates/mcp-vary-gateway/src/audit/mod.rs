//! What is observed of requests: who did what, under which variant and rule, and with what outcome.
//!
//! Every request has an [`Observation`] from its arrival to its outcome. If the audit log or the log has the request, a
//! `RequestRecord` is part of it, from which the log's line is written, too. Otherwise nothing of that is computed.

mod audit_service;
pub(crate) mod call_counters;
mod events;
mod observation;
mod origin;
mod outcome;
pub(crate) mod participation;
pub(crate) mod request_feed;
mod request_line;
mod request_record;
mod spans;
mod subject;

pub(crate) use self::audit_service::AuditService;
pub(crate) use self::observation::{ExchangeObservation, Observation};
pub(crate) use self::origin::Origin;
pub(crate) use self::request_line::milliseconds;
pub(crate) use self::request_record::{AuditedRequest, RankingDetails};
