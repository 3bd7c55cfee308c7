//! What is observed of requests: who did what, under which variant and rule, and with what outcome.
//!
//! Every request has an [`Observation`] from its arrival to its outcome. If the audit log or the log has the request, a
//! `RequestRecord` is part of it, from which the log's line is written, too. Otherwise nothing of that is computed.

mod audit_service;
pub mod call_counters;
mod call_history;
mod events;
pub mod failed_calls;
pub mod finished_call;
mod observation;
mod origin;
mod outcome;
pub mod participation;
pub mod people;
mod recorded_call;
pub mod refused_credentials;
pub mod request_feed;
mod request_line;
mod request_record;
pub mod savings;
mod spans;
mod subject;

pub use crate::audit_service::AuditService;
pub use crate::observation::{ExchangeObservation, Observation, Observers};
pub use crate::origin::Origin;
pub use crate::request_line::milliseconds;
pub use crate::request_record::{AuditedRequest, RankingDetails, RequestRecord};
