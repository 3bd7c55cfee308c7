//! What is observed of every request from its arrival to its end, whatever its method and transport.
//!
//! A concern of every request is added in this file alone: to [`Observation`] what a request has from its arrival, to
//! [`ExchangeObservation`] what it has while a server works on it.

use std::sync::Arc;

use mcp_vary_audit::QueueFull;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::Reply;

use super::call_counters::CountedCall;
use super::participation::Participation;
use super::request_record::{AuditedRequest, RequestRecord};
use super::{AuditService, request_line};

/// One request as the audit log, the log and experiments see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    /// `None` unless the audit log or the log has the request.
    record: Option<Arc<RequestRecord>>,
    /// The part that its client takes in an experiment.
    participation: Option<Arc<Participation>>,
}

impl Observation {
    /// Begins to observe a request, before it does anything.
    ///
    /// # Errors
    ///
    /// When there is no room for its record, and the request must be refused for that reason.
    pub(crate) async fn begin(
        audit: Option<&Arc<AuditService>>,
        request: &AuditedRequest<'_>,
    ) -> Result<Self, QueueFull> {
        let record = match audit {
            Some(audit) => Some(audit.begin(request).await?),
            None => request_line::is_enabled().then(|| RequestRecord::of_line(request)),
        };
        Ok(Self {
            record,
            participation: None,
        })
    }

    /// The observation of a request whose client takes part in an experiment.
    pub(crate) fn with_participation(&self, participation: Option<Arc<Participation>>) -> Self {
        Self {
            record: self.record.clone(),
            participation,
        }
    }

    /// The record of the request, for facts about it.
    pub(crate) fn record(&self) -> Option<&RequestRecord> {
        self.record.as_deref()
    }

    /// The part that the client takes in an experiment, for facts about it.
    pub(crate) fn participation(&self) -> Option<&Participation> {
        self.participation.as_deref()
    }

    /// The request is about to be handled by its method.
    pub(crate) fn dispatched(&self, method: &str, params: &Params<'_>) {
        if let Some(participation) = &self.participation {
            match method {
                "tools/list" => participation.count_client(),
                "tools/call" => participation.begin_call(params),
                _ => {}
            }
        }
    }

    /// The status of the response was sent before its outcome is known.
    pub(crate) fn status_sent(&self) {
        if let Some(record) = &self.record {
            record.status_sent();
        }
    }

    /// The client gets the response.
    pub(crate) fn answered(&self, reply: &Reply) {
        if let Some(record) = &self.record {
            record.finish(reply);
        }
        if let Some(participation) = &self.participation {
            participation.finish(reply);
        }
    }

    /// The request opened a stream of notifications, which has no response.
    pub(crate) fn stream_opened(&self) {
        if let Some(record) = &self.record {
            record.opened_stream();
        }
    }

    /// The client does not wait for the response.
    fn cancelled(&self) {
        if let Some(record) = &self.record {
            record.cancelled();
        }
    }
}

/// One request that a server works on.
///
/// # Properties
///
/// Dropping it before the response is observed as a cancellation.
#[derive(Debug)]
pub(crate) struct ExchangeObservation {
    request: Observation,
    /// `None` for requests about tasks.
    call: Option<CountedCall>,
    /// Whether the result of a tool is expected, which can report a failure.
    is_tool_call: bool,
}

impl ExchangeObservation {
    pub(crate) fn new(request: &Observation, is_tool_call: bool) -> Self {
        Self {
            request: request.clone(),
            call: None,
            is_tool_call,
        }
    }

    /// Counts the request as this `call` of its server.
    pub(crate) fn count(&mut self, call: Option<CountedCall>) {
        self.call = call;
    }

    /// The client gets something before the response.
    pub(crate) fn status_sent(&self) {
        self.request.status_sent();
    }

    /// The client gets the response.
    pub(crate) fn answered(&mut self, reply: &Reply) {
        self.request.answered(reply);
        if let Some(call) = &mut self.call {
            call.finish(reply, self.is_tool_call);
        }
    }

    /// The client does not wait for the response.
    pub(crate) fn cancelled(&mut self) {
        self.request.cancelled();
        if let Some(call) = &mut self.call {
            call.cancel();
        }
    }
}

impl Drop for ExchangeObservation {
    fn drop(&mut self) {
        self.cancelled();
    }
}
