//! A call that has ended, as watchers and the history get it.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use indexmap::Equivalent;
use mcp_vary_audit::{LongText, Outcome, Record, Target, TargetKind, Text, Transport};
use mcp_vary_wire::revision::Era;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

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
    /// The bytes of memory that it takes, with all of what it may share with others.
    #[serde(skip)]
    pub(crate) size: usize,
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
    /// The bytes of memory that it takes.
    #[serde(skip)]
    pub(crate) size: usize,
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
    /// The bytes of memory that it takes.
    #[serde(skip)]
    pub(crate) size: usize,
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

/// By what tells most of them apart, which is enough: nearly all hashes of calls are of values that are known.
impl Hash for CallTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.as_ref().map(LongText::as_str).hash(state);
    }
}

impl CallTarget {
    fn sized(mut self) -> Self {
        let names = [&self.target, &self.upstream_name].into_iter().flatten();
        let names: usize = names.map(|name| name.as_str().len()).sum();
        self.size = size_of::<Self>() + names + length(self.server.as_ref());
        self
    }
}

/// What a call is about, as its record has it.
pub(crate) struct RecordedTarget<'a> {
    method: Option<&'a Text>,
    /// A URI is without what may be a secret.
    target: Option<Cow<'a, str>>,
    server: Option<&'a Arc<str>>,
    upstream_name: Option<&'a LongText>,
}

impl<'a> RecordedTarget<'a> {
    /// That of a record of a call on which `server` worked.
    pub(crate) fn new(record: &'a Record, server: Option<&'a Arc<str>>) -> Self {
        let target = record.target.as_ref();
        let named = target.filter(|target| !is_uri(target.kind));
        Self {
            method: record.method.as_ref(),
            target: target.map(shown_name),
            server,
            upstream_name: named.and_then(|target| target.upstream_name.as_ref()),
        }
    }
}

fn shown_name(target: &Target) -> Cow<'_, str> {
    let name = target.name.as_str();
    if is_uri(target.kind) {
        Cow::Owned(without_secrets(name))
    } else {
        Cow::Borrowed(name)
    }
}

impl Hash for RecordedTarget<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.as_deref().hash(state);
    }
}

impl Equivalent<Arc<CallTarget>> for RecordedTarget<'_> {
    fn equivalent(&self, known: &Arc<CallTarget>) -> bool {
        self.target.as_deref() == known.target.as_ref().map(LongText::as_str)
            && self.method.map_or("", Text::as_str) == known.method.as_str()
            && self.server.map(AsRef::as_ref) == known.server.as_ref().map(Text::as_str)
            && self.upstream_name == known.upstream_name.as_ref()
    }
}

impl From<&RecordedTarget<'_>> for CallTarget {
    fn from(recorded: &RecordedTarget<'_>) -> Self {
        Self {
            method: recorded.method.cloned().unwrap_or(Text::from_static("")),
            target: recorded.target.as_deref().map(LongText::new),
            server: recorded.server.map(Text::shared),
            upstream_name: recorded.upstream_name.cloned(),
            size: 0,
        }
        .sized()
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

impl CallSource {
    fn sized(mut self) -> Self {
        let client = self.client.as_ref();
        let texts = [
            client.map(|client| &client.name),
            client.map(|client| &client.version),
            self.principal.as_ref(),
            self.variant.as_ref(),
            self.variant_rule.as_ref(),
            self.rule.as_ref(),
        ];
        self.size = size_of::<Self>() + texts.map(length).iter().sum::<usize>();
        self
    }
}

/// Who sent a call, as its record has it.
pub(crate) struct RecordedSource<'a>(pub(crate) &'a Record);

impl RecordedSource<'_> {
    fn principal(&self) -> Option<&Text> {
        let actor = self.0.actor.as_ref()?;
        Some(actor.name.as_ref().unwrap_or(&actor.id))
    }
}

impl Hash for RecordedSource<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let client = self.0.client.as_ref();
        client.map(|client| client.name.as_str()).hash(state);
        self.principal().map(Text::as_str).hash(state);
    }
}

impl Equivalent<Arc<CallSource>> for RecordedSource<'_> {
    fn equivalent(&self, known: &Arc<CallSource>) -> bool {
        let Record {
            client, variant, ..
        } = self.0;
        let (of_client, of_variant) = (client.as_ref(), variant.as_ref());
        let known_client = known.client.as_ref();
        of_client.map(|client| &client.name) == known_client.map(|client| &client.name)
            && of_client.map(|client| &client.version) == known_client.map(|client| &client.version)
            && self.principal() == known.principal.as_ref()
            && of_variant.map(|variant| &variant.id) == known.variant.as_ref()
            && of_variant.map(|variant| &variant.reason) == known.reason.as_ref()
            && of_variant.and_then(|variant| variant.rule.as_ref()) == known.variant_rule.as_ref()
            && self.0.rule == known.rule
            && (self.0.era, self.0.transport) == (known.era, known.transport)
    }
}

impl From<&RecordedSource<'_>> for CallSource {
    fn from(recorded: &RecordedSource<'_>) -> Self {
        let record = recorded.0;
        let variant = record.variant.as_ref();
        Self {
            client: record.client.as_ref().map(|client| WatchedClient {
                name: client.name.clone(),
                version: client.version.clone(),
            }),
            era: record.era,
            transport: record.transport,
            principal: recorded.principal().cloned(),
            variant: variant.map(|variant| variant.id.clone()),
            reason: variant.map(|variant| variant.reason.clone()),
            variant_rule: variant.and_then(|variant| variant.rule.clone()),
            rule: record.rule.clone(),
            size: 0,
        }
        .sized()
    }
}

fn length(text: Option<&Text>) -> usize {
    text.map_or(0, |text| text.as_str().len())
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
