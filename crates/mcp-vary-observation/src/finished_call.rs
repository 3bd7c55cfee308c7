//! A call that has ended, as watchers and the history get it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use mcp_vary_audit::{LongText, Outcome, Record, TargetKind, Text};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

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
    pub duration_ms: Option<f64>,
    /// What of that the server took.
    pub server_ms: Option<f64>,
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
#[derive(Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallSource {
    /// The program that the client says it is.
    pub client: Option<WatchedClient>,
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
    /// What a record shows of a call, on which `server` worked.
    pub(crate) fn new(record: &Record, server: Option<&Arc<str>>) -> Self {
        Self {
            id: 0,
            ended: Instant::now(),
            target: Arc::new(CallTarget::new(record, server)),
            source: Arc::new(CallSource::new(record)),
            arguments: None,
            outcome: record.outcome,
            code: record.code,
            error: None,
            is_unknown_tool: false,
            duration_ms: record.duration.map(milliseconds),
            server_ms: record.upstream_duration.map(milliseconds),
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
        }
    }

    /// The bytes of memory that it takes, with all of what it may share with others.
    pub(crate) fn size(&self) -> usize {
        let copied = [&self.arguments, &self.error].into_iter().flatten();
        let copied: usize = copied.map(String::len).sum();
        size_of::<Self>() + copied + self.target.size() + self.source.size()
    }
}

/// By what tells most of them apart, which is enough: nearly all hashes of calls are of values that are known.
impl Hash for CallTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.as_ref().map(LongText::as_str).hash(state);
    }
}

impl CallTarget {
    fn new(record: &Record, server: Option<&Arc<str>>) -> Self {
        let target = record.target.as_ref();
        Self {
            method: record.method.clone().unwrap_or(Text::from_static("")),
            target: target.map(|target| {
                if is_uri(target.kind) {
                    LongText::new(without_secrets(target.name.as_str()))
                } else {
                    target.name.clone()
                }
            }),
            server: server.map(Text::shared),
            upstream_name: target
                .filter(|target| !is_uri(target.kind))
                .and_then(|target| target.upstream_name.clone()),
        }
    }

    /// The bytes of memory that it takes.
    pub(crate) fn size(&self) -> usize {
        let names = [&self.target, &self.upstream_name].into_iter().flatten();
        let names: usize = names.map(|name| name.as_str().len()).sum();
        size_of::<Self>() + names + length(self.server.as_ref())
    }
}

/// By what tells most of them apart.
impl Hash for CallSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let client = self.client.as_ref();
        client.map(|client| client.version.as_str()).hash(state);
        client.map(|client| client.name.as_str()).hash(state);
        self.principal.as_ref().map(Text::as_str).hash(state);
    }
}

impl CallSource {
    fn new(record: &Record) -> Self {
        let actor = record.actor.as_ref();
        let variant = record.variant.as_ref();
        Self {
            client: record.client.as_ref().map(|client| WatchedClient {
                name: client.name.clone(),
                version: client.version.clone(),
            }),
            principal: actor.map(|actor| actor.name.as_ref().unwrap_or(&actor.id).clone()),
            variant: variant.map(|variant| variant.id.clone()),
            reason: variant.map(|variant| variant.reason.clone()),
            variant_rule: variant.and_then(|variant| variant.rule.clone()),
            rule: record.rule.clone(),
        }
    }

    /// The bytes of memory that it takes.
    pub(crate) fn size(&self) -> usize {
        let client = self.client.as_ref();
        let texts = [
            client.map(|client| &client.name),
            client.map(|client| &client.version),
            self.principal.as_ref(),
            self.variant.as_ref(),
            self.variant_rule.as_ref(),
            self.rule.as_ref(),
        ];
        size_of::<Self>() + texts.map(length).iter().sum::<usize>()
    }
}

fn length(text: Option<&Text>) -> usize {
    text.map_or(0, |text| text.as_str().len())
}

/// Whether a target of this kind is named by a URI.
pub(crate) const fn is_uri(kind: TargetKind) -> bool {
    matches!(kind, TargetKind::Resource | TargetKind::Skill)
}

fn shared<T: Serialize, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}
