//! What happens beside the requests of clients: credentials, reloads, the operator's requests.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_vary_access::Principal;
use mcp_vary_audit::{
    Arguments, Event, LongText, ModelRanking, Outcome, Record, Target, TargetKind, Text,
};
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_catalog::server_changes::{ChangeSubject, ServerChange};

use crate::audit_service::{AuditService, CredentialKey};
use crate::origin::{Origin, actor};

impl AuditService {
    /// Records that a credential was accepted, if it is the first time.
    pub fn credential_accepted(
        &self,
        admission: &Admission,
        origin: &Origin,
        config: Option<&Arc<str>>,
    ) {
        let principal: &Principal = &admission.principal;
        if principal.is_anonymous() {
            return;
        }
        let key = CredentialKey {
            principal: principal.id(),
            expires_at: admission.expires_at,
            key: admission.key,
        };
        if self.credentials.get(&key).is_some() {
            return;
        }
        self.credentials.insert(key, ());
        let mut record = http_record(Event::AuthAccepted, Outcome::Allowed, origin, config);
        record.actor = actor(principal, admission.client_id.as_ref());
        self.record(record);
    }

    /// Records that a credential was refused, or that there was none: the status of the answer, and the reason in a
    /// sentence that has nothing of the credential.
    pub fn credential_refused(
        &self,
        status: StatusCode,
        reason: &str,
        origin: &Origin,
        config: Option<&Arc<str>>,
    ) {
        let mut record = http_record(Event::AuthRefused, Outcome::Denied, origin, config);
        record.status = Some(status.as_u16());
        record.rule = Some(Text::new(format!("auth: {reason}")));
        self.record_repeated(record);
    }

    /// Records that a configuration came into force.
    pub fn config_reloaded(&self, config: Option<&Arc<str>>) {
        let mut record = Record::new(Event::ConfigReloaded, Outcome::Allowed);
        record.config = config.map(Text::shared);
        self.record(record);
    }

    /// Records that a server changed a tool, a prompt or its instructions.
    pub fn server_changed(&self, change: &ServerChange) {
        let (kind, name) = match change.subject {
            ChangeSubject::Tool => (TargetKind::Tool, &change.name),
            ChangeSubject::Prompt => (TargetKind::Prompt, &change.name),
            ChangeSubject::Instructions => (TargetKind::Server, &change.server),
        };
        let mut target = Target::new(kind, LongText::new(name));
        target.server = Some(Text::new(&change.server));
        let mut record = Record::new(Event::ServerChanged, Outcome::Allowed);
        record.target = Some(target);
        record.change = Some(Text::new(change.summary()));
        self.record(record);
    }

    /// Records that a model was asked to rank variants for a client of `principal`, and its answer.
    pub fn variants_ranked(
        &self,
        principal: Option<&Principal>,
        question: String,
        ranking: ModelRanking,
        duration: Duration,
    ) {
        let outcome = match ranking.order {
            Some(_) => Outcome::Allowed,
            None => Outcome::Error,
        };
        let mut record = Record::new(Event::VariantsRanked, outcome);
        record.actor = principal.and_then(|principal| actor(principal, None));
        record.arguments = Some(Arguments::new(question.into()));
        record.ranking = Some(ranking);
        record.duration = Some(duration);
        self.record(record);
    }

    /// Records a request of the operator, such as `GET /status`, with the status of its answer.
    pub fn admin_request(
        &self,
        request: &str,
        status: StatusCode,
        origin: &Origin,
        config: Option<&Arc<str>>,
    ) {
        let outcome = match status {
            StatusCode::OK => Outcome::Allowed,
            StatusCode::FORBIDDEN => Outcome::Denied,
            _ => Outcome::Error,
        };
        let mut record = http_record(Event::AdminRequest, outcome, origin, config);
        record.method = Some(Text::new(request));
        record.status = (status != StatusCode::OK).then_some(status.as_u16());
        // What changes something needs the token.
        if status == StatusCode::OK && request.starts_with("POST") {
            self.record(record);
        } else {
            self.record_repeated(record);
        }
    }
}

fn http_record(
    event: Event,
    outcome: Outcome,
    origin: &Origin,
    config: Option<&Arc<str>>,
) -> Record {
    let mut record = Record::new(event, outcome);
    record.address = origin.address;
    record.transport = Some(origin.transport);
    record.trace_id = origin.trace_id;
    record.config = config.map(Text::shared);
    record
}
