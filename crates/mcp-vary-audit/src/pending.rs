//! A record whose outcome is not known yet.

use crate::log::Permit;
use crate::record::{Event, Outcome, Record, Target, TargetKind};
use crate::text::{LongText, Text};

/// The record of a request from its arrival to its outcome.
///
/// What happens within the request, such as a refusal by a limit, is a record of its own, with the same client. The
/// methods that return such a record leave it to the caller to submit it.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::{Event, Outcome, PendingRecord, Record};
///
/// let mut pending = PendingRecord::new(Record::new(Event::Request, Outcome::Cancelled), None);
/// let reached = pending.limited_by("searches");
/// assert_eq!((reached.event, reached.outcome), (Event::LimitReached, Outcome::Denied));
///
/// // The client got an error, because a rule refused the request.
/// assert!(pending.finish(Outcome::Error, |_| {}).is_none());
/// assert_eq!(pending.record().outcome, Outcome::Denied);
/// ```
#[derive(Debug)]
pub struct PendingRecord {
    record: Record,
    /// The room for the record in the log, if there is one.
    permit: Option<Permit>,
    is_denied: bool,
}

impl PendingRecord {
    /// Begins with what is known of the request.
    pub const fn new(record: Record, permit: Option<Permit>) -> Self {
        Self {
            record,
            permit,
            is_denied: false,
        }
    }

    /// What is known so far.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// What is known so far, to add to it.
    pub const fn record_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Something that happened within the request: by the same client, with another record.
    pub fn event(&self, event: Event, outcome: Outcome) -> Record {
        let request = &self.record;
        let mut record = Record::new(event, outcome);
        record.actor.clone_from(&request.actor);
        record.client.clone_from(&request.client);
        record.address = request.address;
        record.session.clone_from(&request.session);
        record.era = request.era;
        record.transport = request.transport;
        record.method.clone_from(&request.method);
        record.request_id.clone_from(&request.request_id);
        record.trace_id = request.trace_id;
        record.config.clone_from(&request.config);
        record
    }

    /// The client got the variant of this request, and had none or another one before.
    pub fn variant_selected(&self) -> Record {
        let mut selected = self.event(Event::VariantSelected, Outcome::Allowed);
        selected.variant.clone_from(&self.record.variant);
        selected
    }

    /// The client selected a variant that does not exist for it.
    #[must_use]
    pub fn variant_refused(&mut self, requested: &str) -> Record {
        self.is_denied = true;
        let mut refused = self.event(Event::VariantRefused, Outcome::Denied);
        refused.target = Some(Target::new(TargetKind::Variant, LongText::new(requested)));
        refused
    }

    /// A rule allows the request.
    pub fn allowed_by(&mut self, rule: &str) {
        self.record.rule = Some(Text::new(rule));
    }

    /// A rule refuses the request, or hides its target.
    pub fn denied_by(&mut self, rule: &str) {
        self.is_denied = true;
        self.record.rule = Some(Text::new(rule));
    }

    /// A rate limit refuses the request: `limit` names it.
    #[must_use]
    pub fn limited_by(&mut self, limit: &str) -> Record {
        self.denied_by(limit);
        let mut reached = self.event(Event::LimitReached, Outcome::Denied);
        reached.target.clone_from(&self.record.target);
        reached.rule.clone_from(&self.record.rule);
        reached
    }

    /// Completes the record, and returns the room for it. A refused request has the outcome of its refusal, even if its answer
    /// is an error.
    #[must_use]
    pub fn finish(&mut self, outcome: Outcome, fill: impl FnOnce(&mut Record)) -> Option<Permit> {
        self.record.outcome = match outcome {
            Outcome::Error if self.is_denied => Outcome::Denied,
            outcome => outcome,
        };
        fill(&mut self.record);
        self.permit.take()
    }
}
