//! What happened, as the program knows it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::error::Era;
use mcp_vary_access::{Principal, PrincipalKind};
use serde::Serialize;

use crate::text::{LongText, Text};

/// One thing that happened. Everything that is not known is left out of the line.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::{Event, LongText, Outcome, Record, Target, TargetKind, Text};
///
/// let mut record = Record::new(Event::Request, Outcome::Denied);
/// record.method = Some(Text::from_static("tools/call"));
/// record.target = Some(Target::new(TargetKind::Tool, LongText::new("git_push")));
/// record.rule = Some(Text::new("access[1]"));
/// record.code = Some(-32602);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What happened.
    pub event: Event,
    /// Whether it was allowed.
    pub outcome: Outcome,
    /// The code of the JSON-RPC error that the client got.
    pub code: Option<i64>,
    /// The HTTP status, if it is not 200.
    pub status: Option<u16>,
    /// Who; `None` for anonymous clients. One value serves all records of a principal.
    pub actor: Option<Arc<Actor>>,
    /// The program that the client says it is. One value serves all records of a client.
    pub client: Option<Arc<ClientInfo>>,
    /// The client's address; behind a trusted proxy, the one that the proxy reports.
    pub address: Option<IpAddr>,
    /// The session. Only its digest is written.
    pub session: Option<SessionId>,
    /// The era of the client.
    pub era: Option<Era>,
    /// The transport of the client.
    pub transport: Option<Transport>,
    /// The method, such as `tools/call`.
    pub method: Option<Text>,
    /// The id of the JSON-RPC request.
    pub request_id: Option<Text>,
    /// What the request is about.
    pub target: Option<Target>,
    /// The variant of the request, and why it was chosen.
    pub variant: Option<VariantChoice>,
    /// What a model was asked to rank, and its answer.
    pub ranking: Option<ModelRanking>,
    /// The rule or limit that decided.
    pub rule: Option<Text>,
    /// What changed: `new`, `gone`, or the names of members.
    pub change: Option<Text>,
    /// How many such there were in the minute: the others have no record.
    pub count: Option<u64>,
    /// The arguments of a call. They are written as the configuration of the log says.
    pub arguments: Option<Arguments>,
    /// The length of the request's body.
    pub bytes_in: Option<u64>,
    /// The length of the response's body.
    pub bytes_out: Option<u64>,
    /// From the arrival of the request to its outcome.
    pub duration: Option<Duration>,
    /// From the arrival of the request until its server got it: it waits for a start, a turn or a connection.
    pub waited: Option<Duration>,
    /// From when its server got the request to the server's answer.
    pub upstream_duration: Option<Duration>,
    /// The trace that the request belongs to (W3C Trace Context): the recorded one, else that of the client.
    pub trace_id: Option<[u8; 16]>,
    /// A digest of the configuration in force.
    pub config: Option<Text>,
}

impl Record {
    /// A record that says only this much.
    pub fn new(event: Event, outcome: Outcome) -> Self {
        Self {
            event,
            outcome,
            ..Self::default()
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Event {
    /// A request was answered, or refused by a rule.
    #[default]
    Request,
    /// A credential was accepted for the first time.
    AuthAccepted,
    /// A credential was refused.
    AuthRefused,
    /// A client got a variant, or another one than before.
    VariantSelected,
    /// A client selected a variant that does not exist for it.
    VariantRefused,
    /// A model was asked to rank the variants for a client, and answered or failed.
    VariantsRanked,
    /// A rate limit refused a request.
    LimitReached,
    /// A configuration came into force.
    ConfigReloaded,
    /// A server changed a tool, a prompt or its instructions.
    ServerChanged,
    /// Somebody used the administrative interface.
    AdminRequest,
}

impl Event {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::AuthAccepted => "auth.accepted",
            Self::AuthRefused => "auth.refused",
            Self::VariantSelected => "variant.selected",
            Self::VariantRefused => "variant.refused",
            Self::VariantsRanked => "variants.ranked",
            Self::LimitReached => "limit.reached",
            Self::ConfigReloaded => "config.reloaded",
            Self::ServerChanged => "server.changed",
            Self::AdminRequest => "admin.request",
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was allowed and answered with a result.
    Allowed,
    /// It was refused: by a rule, a limit, or because the credential was refused.
    Denied,
    /// It was allowed and answered with an error.
    Error,
    /// It was allowed, and the tool reports that it failed (`isError`).
    ToolError,
    /// It was allowed, and the client did not wait for the answer.
    #[default]
    Cancelled,
}

/// How a client is connected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Streamable HTTP.
    #[default]
    Http,
    /// Standard input and output.
    Stdio,
}

/// A principal.
#[derive(Clone)]
pub struct Actor {
    /// The id, from which nobody learns a name.
    pub id: Text,
    /// The name that the operator gave.
    pub name: Option<Text>,
    /// The issuer of the token.
    pub issuer: Option<Text>,
    /// The subject of the token.
    pub subject: Option<Text>,
    /// The OAuth client that the token was issued to.
    pub client_id: Option<Text>,
    /// The name of the API key.
    pub key: Option<Text>,
}

impl Actor {
    /// A principal of which only the id is known.
    pub const fn new(id: Text) -> Self {
        Self {
            id,
            name: None,
            issuer: None,
            subject: None,
            client_id: None,
            key: None,
        }
    }

    /// A principal as records have it; `None` for anonymous ones.
    pub fn of(principal: &Principal) -> Option<Self> {
        let kind = principal.kind();
        if kind == PrincipalKind::Anonymous {
            return None;
        }
        let mut actor = Self::new(Text::new(principal.id_text()));
        let subject = match kind {
            PrincipalKind::Certificate => principal.certificate_subject(),
            PrincipalKind::Stdio => principal.stdio_name(),
            _ => principal.subject(),
        };
        actor.name = principal.name().map(Text::new);
        actor.issuer = principal.issuer().map(Text::new);
        actor.subject = subject.map(Text::new);
        actor.key = principal.key_name().map(Text::new);
        Some(actor)
    }
}

/// Shows the id only: names of people belong in no log but this one.
impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Actor({})", self.id.as_str())
    }
}

/// What a client says that it is.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
}

impl ClientInfo {
    /// A client of this name and version.
    pub const fn new(name: Text, version: Text) -> Self {
        Self { name, version }
    }
}

/// What a request is about.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name or URI as the client sent it.
    pub name: LongText,
    /// The key of the server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Text>,
    /// Its name or URI on that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_name: Option<LongText>,
}

impl Target {
    /// A target whose server is not known.
    pub const fn new(kind: TargetKind, name: LongText) -> Self {
        Self {
            kind,
            name,
            server: None,
            upstream_name: None,
        }
    }
}

/// The kind of a [`Target`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A task.
    Task,
    /// A variant, where selecting it is what happened.
    Variant,
    /// A server, where its instructions changed.
    Server,
    /// A skill, or a directory of one.
    Skill,
}

/// A variant and the reason why it is active.
#[derive(Clone, Debug, Serialize)]
pub struct VariantChoice {
    /// The variant's id.
    pub id: Text,
    /// Why: the selector of the request, a rule, a pin, the ranking.
    pub reason: Text,
    /// The rule or experiment that chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text>,
    /// The hints of the client: `contextSize=compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<LongText>,
    /// The variants that the client is offered, with their points: `compact=60 standard=20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<LongText>,
}

impl VariantChoice {
    /// The variant `id`, chosen for `reason`.
    pub const fn new(id: Text, reason: Text) -> Self {
        Self {
            id,
            reason,
            rule: None,
            hints: None,
            order: None,
        }
    }
}

/// What a model was asked to rank, and its answer.
///
/// The question is in the [`Record::arguments`], which are written as the configuration of the log says: it has the
/// description of a client in its own words.
#[derive(Clone, Debug, Serialize)]
pub struct ModelRanking {
    /// The name of the model at its endpoint.
    pub model: Text,
    /// The ids of the variants that it was asked about.
    pub variants: LongText,
    /// The ids in its order; `None` if there was no usable answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<LongText>,
    /// Why there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Text>,
}

impl ModelRanking {
    /// The ranking of `variants` by `model`.
    pub const fn new(model: Text, variants: LongText) -> Self {
        Self {
            model,
            variants,
            order: None,
            failure: None,
        }
    }
}

/// The arguments of a call as the client wrote them. `Debug` shows their length only.
///
/// They are not copied: the bytes stay in memory until the record is written, together with the buffer that they are a
/// part of.
#[derive(Clone)]
pub struct Arguments {
    /// `None` if only the length is written.
    pub(crate) json: Option<Bytes>,
    pub(crate) length: usize,
}

impl Arguments {
    /// These bytes.
    pub const fn new(json: Bytes) -> Self {
        let length = json.len();
        Self {
            json: Some(json),
            length,
        }
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arguments({} bytes)", self.length)
    }
}

/// The id of a session, of which only a digest is written: the id itself could be used to join the session. `Debug`
/// does not show it.
#[derive(Clone)]
pub struct SessionId(pub(crate) Arc<str>);

impl SessionId {
    /// This id.
    pub const fn new(id: Arc<str>) -> Self {
        Self(id)
    }
}

impl SessionId {
    /// The id itself, of which only a digest may be shown.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

mcp_vary_base::debug_by_name!(SessionId);
