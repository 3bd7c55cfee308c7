//! A call that has ended, as watchers and the history get it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_audit::{
    Actor, ClientInfo, LongText, Outcome, Target, TargetKind, Text, Transport, VariantChoice,
};
use mcp_vary_wire::revision::Era;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::call_history::EndedCall;
use crate::origin::revisions_of;
use crate::request_line::{milliseconds, without_secrets};

/// A call that has ended. It has no result but the text of an error, and nothing of a URI that may be a secret.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FinishedCall {
    /// Its number since the start of the gateway.
    pub id: u64,
    /// When it ended.
    #[serde(skip)]
    pub ended: Instant,
    /// What was called.
    #[serde(flatten, serialize_with = "shared")]
    pub target: Arc<CallTarget>,
    /// Who called, and how.
    #[serde(flatten, serialize_with = "shared")]
    pub source: Arc<CallSource>,
    /// The beginning of its arguments, JSON text. Only where the audit log has it, too.
    pub arguments: Option<String>,
    /// Its outcome.
    pub outcome: Outcome,
    /// The code of the JSON-RPC error that the client got.
    pub code: Option<i64>,
    /// The beginning of what the client reads of an error, or of a tool that failed.
    pub error: Option<String>,
    /// Whether Vary answered with the error, since the client's list does not have the tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown_tool: bool,
    /// From its arrival to its outcome.
    #[serde(rename = "durationMs", serialize_with = "in_milliseconds")]
    pub duration: Option<Duration>,
    /// From its arrival until the server got it: it waits for a start, a turn or a connection.
    #[serde(rename = "waitedMs", serialize_with = "in_milliseconds")]
    pub waited: Option<Duration>,
    /// From then until the server answered.
    #[serde(rename = "serverMs", serialize_with = "in_milliseconds")]
    pub at_server: Option<Duration>,
    /// The length of its message.
    pub bytes_in: Option<u64>,
    /// The length of the response.
    pub bytes_out: Option<u64>,
}

/// What a call is about.
#[derive(Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallTarget {
    /// Its method.
    pub method: Text,
    /// The name or URI, as the client sent it.
    pub target: Option<LongText>,
    /// The server that worked on it.
    pub server: Option<Text>,
    /// The name there.
    pub upstream_name: Option<LongText>,
}

/// Who sent a call, and what was decided about it.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallSource {
    /// The program that the client says it is.
    pub client: Option<WatchedClient>,
    /// The protocol revisions of its era.
    #[serde(serialize_with = "revisions")]
    pub era: Option<Era>,
    /// How it is connected.
    pub transport: Option<Transport>,
    /// The name that the operator gave to the person, or else an id that reveals no name.
    pub principal: Option<Text>,
    /// The variant that it ran under.
    pub variant: Option<Text>,
    /// What selected that.
    pub reason: Option<Text>,
    /// The rule or experiment that selected it.
    pub variant_rule: Option<Text>,
    /// The access rule or rate limit that decided.
    pub rule: Option<Text>,
}

/// What a client says that it is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WatchedClient {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
}

impl FinishedCall {
    /// Whether the server failed, or the tool reported that it did.
    pub const fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Error | Outcome::ToolError)
    }
}

/// A call that has ended as the history has it: with the texts of its record, of which most are shared with others.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    pub(crate) id: u64,
    ended: Instant,
    method: Option<Text>,
    target: Option<Target>,
    /// The server that worked on it.
    server: Option<Arc<str>>,
    actor: Option<Arc<Actor>>,
    client: Option<Arc<ClientInfo>>,
    era: Option<Era>,
    transport: Option<Transport>,
    variant: Option<Text>,
    reason: Option<Text>,
    variant_rule: Option<Text>,
    rule: Option<Text>,
    arguments: Option<String>,
    pub(crate) outcome: Outcome,
    code: Option<i64>,
    error: Option<String>,
    is_unknown_tool: bool,
    duration: Option<Duration>,
    waited: Option<Duration>,
    at_server: Option<Duration>,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    /// The bytes of memory that it takes, with all of what it may share with others.
    pub(crate) size: usize,
}

impl RecordedCall {
    /// The call with this number, which takes what its record has.
    pub(crate) fn new(id: u64, call: EndedCall<'_>) -> Self {
        let record = call.record;
        let choice = record.variant.take();
        let (variant, reason, variant_rule) = match choice {
            Some(VariantChoice {
                id, reason, rule, ..
            }) => (Some(id), Some(reason), rule),
            None => (None, None, None),
        };
        let mut recorded = Self {
            id,
            ended: call.ended,
            method: record.method.take(),
            target: record.target.take(),
            server: call.server,
            actor: record.actor.take(),
            client: record.client.take(),
            era: record.era,
            transport: record.transport,
            variant,
            reason,
            variant_rule,
            rule: record.rule.take(),
            arguments: call.arguments,
            outcome: record.outcome,
            code: record.code,
            error: call.error,
            is_unknown_tool: call.is_unknown_tool,
            duration: record.duration,
            waited: record.waited,
            at_server: record.upstream_duration,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            size: 0,
        };
        recorded.size = recorded.measured();
        recorded
    }

    fn measured(&self) -> usize {
        let target = self.target.as_ref();
        let client = self.client.as_ref();
        let names = [
            target.map(|target| &target.name),
            target.and_then(|target| target.upstream_name.as_ref()),
        ];
        let texts = [
            client.map(|client| &client.name),
            client.map(|client| &client.version),
            self.principal(),
            self.variant.as_ref(),
            self.variant_rule.as_ref(),
            self.rule.as_ref(),
        ];
        let names = names.into_iter().flatten().map(|name| name.as_str().len());
        let texts = texts.into_iter().flatten().map(|text| text.as_str().len());
        let copied = [&self.arguments, &self.error].into_iter().flatten();
        let server = self.server.as_ref().map_or(0, |server| server.len());
        size_of::<Self>()
            + names
                .chain(texts)
                .chain(copied.map(String::len))
                .sum::<usize>()
            + server
    }

    fn principal(&self) -> Option<&Text> {
        let actor = self.actor.as_ref()?;
        Some(actor.name.as_ref().unwrap_or(&actor.id))
    }

    /// The call as others get it.
    pub(crate) fn finished(&self) -> FinishedCall {
        FinishedCall {
            id: self.id,
            ended: self.ended,
            target: Arc::new(self.shown_target()),
            source: Arc::new(self.source()),
            arguments: self.arguments.clone(),
            outcome: self.outcome,
            code: self.code,
            error: self.error.clone(),
            is_unknown_tool: self.is_unknown_tool,
            duration: self.duration,
            waited: self.waited,
            at_server: self.at_server,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }

    /// What is called; a URI without what may be a secret.
    fn shown_target(&self) -> CallTarget {
        let target = self.target.as_ref();
        let named = target.filter(|target| !is_uri(target.kind));
        CallTarget {
            method: self.method.clone().unwrap_or(Text::from_static("")),
            target: target.map(shown_name),
            server: self.server.as_ref().map(Text::shared),
            upstream_name: named.and_then(|target| target.upstream_name.clone()),
        }
    }

    fn source(&self) -> CallSource {
        CallSource {
            client: self.client.as_ref().map(|client| WatchedClient {
                name: client.name.clone(),
                version: client.version.clone(),
            }),
            era: self.era,
            transport: self.transport,
            principal: self.principal().cloned(),
            variant: self.variant.clone(),
            reason: self.reason.clone(),
            variant_rule: self.variant_rule.clone(),
            rule: self.rule.clone(),
        }
    }
}

fn shown_name(target: &Target) -> LongText {
    if is_uri(target.kind) {
        LongText::new(without_secrets(target.name.as_str()))
    } else {
        target.name.clone()
    }
}

/// By what tells most of them apart.
impl Hash for CallTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.as_ref().map(LongText::as_str).hash(state);
    }
}

/// By what tells most of them apart.
impl Hash for CallSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let client = self.client.as_ref();
        client.map(|client| client.name.as_str()).hash(state);
        self.principal.as_ref().map(Text::as_str).hash(state);
    }
}

/// Whether a target of this kind is named by a URI.
pub(crate) const fn is_uri(kind: TargetKind) -> bool {
    matches!(kind, TargetKind::Resource | TargetKind::Skill)
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn in_milliseconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(milliseconds).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn revisions<S: Serializer>(era: &Option<Era>, serializer: S) -> Result<S::Ok, S::Error> {
    era.map(revisions_of).serialize(serializer)
}

pub(crate) fn shared<T: Serialize, S: Serializer>(
    value: &Arc<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}
