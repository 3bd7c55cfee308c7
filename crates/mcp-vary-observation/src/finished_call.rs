//! A call that has ended, as watchers and the history get it.

use mcp_vary_audit::{KnownTexts, LongText, Outcome, Text};
use serde::Serialize;
use tokio::time::Instant;

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
    /// Its method.
    pub method: Text,
    /// The name or URI of what it is about, as the client sent it.
    pub target: Option<LongText>,
    /// The server that worked on it.
    pub server: Option<Text>,
    /// The name of its target there.
    pub upstream_name: Option<LongText>,
    /// The beginning of its arguments, JSON text. Only where the audit log has it, too.
    pub arguments: Option<String>,
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
    /// Its outcome.
    pub outcome: Outcome,
    /// The code of the JSON-RPC error that the client got.
    pub code: Option<i64>,
    /// The beginning of what the client reads of an error, or of a tool that failed.
    pub error: Option<String>,
    /// Whether Vary answered with the error, since the client's list does not have the tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown_tool: bool,
    /// The access rule or rate limit that decided.
    pub rule: Option<Text>,
    /// From its arrival to its outcome.
    pub duration_ms: Option<f64>,
    /// What of that the server took.
    pub server_ms: Option<f64>,
    /// The length of its message.
    pub bytes_in: Option<u64>,
    /// The length of the response.
    pub bytes_out: Option<u64>,
}

impl FinishedCall {
    /// Has it share the texts of `known`. The name of its server is shared already.
    pub(crate) fn intern(&mut self, known: &mut KnownTexts) {
        let client = self.client.as_mut();
        let of_client = client.map(|client| [&mut client.name, &mut client.version]);
        let others = [
            &mut self.principal,
            &mut self.variant,
            &mut self.variant_rule,
            &mut self.rule,
        ];
        let short = others.into_iter().flatten();
        for text in short.chain(of_client.into_iter().flatten()) {
            text.intern(known);
        }
        for text in [&mut self.target, &mut self.upstream_name] {
            text.iter_mut().for_each(|name| name.intern(known));
        }
    }
}

/// What a client says that it is.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WatchedClient {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
}
