//! A call that has ended, as watchers and the page get it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_audit::{LongText, Outcome, TargetKind, Text, Transport};
use mcp_vary_wire::revision::Era;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::origin::revisions_of;
use crate::request_line::milliseconds;

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
