//! The document at `/status` of a gateway: the members that Vary shows.
//!
//! Its own types, which show less, have the names of those that the gateway serializes. Members that are unknown are ignored,
//! so that newer gateways can add some.

use std::collections::BTreeMap;

use mcp_vary::variant::VariantId;
use mcp_vary_gateway::{
    AuditStats, CallStatus, ClientUse, ConnectionStatus, DeprecatedUse, DirectoryUse,
    ModelRankingStatus, PersonUse, SavingsStatus, VariantStatus,
};
use mcp_vary_http_client::credential_source::CredentialStatus;
use serde::Deserialize;
use serde_json::Value;

/// A status as it was received, and its members that Vary shows.
#[derive(Debug)]
pub(crate) struct ReceivedStatus {
    /// All members, for `--json`.
    pub(crate) json: Value,
    pub(crate) document: StatusDocument,
}

impl ReceivedStatus {
    pub(super) fn read(json: Value) -> serde_json::Result<Self> {
        let document = StatusDocument::deserialize(&json)?;
        Ok(Self { json, document })
    }
}

/// The status of a gateway. Members that are absent have nothing to show.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusDocument {
    pub(super) version: Option<String>,
    /// A digest of the configuration that was read.
    pub(super) config: Option<String>,
    /// In seconds.
    pub(super) uptime: u64,
    pub(super) servers: Vec<ServerStatus>,
    pub(super) variants: Vec<VariantStatus>,
    /// The most recent one first.
    pub(super) clients: Vec<ClientUse>,
    /// The most recent one first.
    pub(super) people: Vec<PersonUse>,
    /// Whether there are people that only the operator's token shows.
    pub(super) people_need_token: bool,
    pub(super) savings: SavingsStatus,
    pub(super) missing_keys: Vec<String>,
    pub(super) deprecated_use: Vec<DeprecatedUse>,
    pub(super) directory_use: Vec<DirectoryUse>,
    pub(super) sessions: Option<usize>,
    pub(super) streams: Option<usize>,
    pub(super) listeners: Option<usize>,
    pub(super) subscriptions: Option<usize>,
    pub(super) pending_server_requests: Option<usize>,
    pub(super) suspended_calls: Option<usize>,
    pub(super) proxied_tasks: Option<usize>,
    pub(super) dedicated_connections: Option<usize>,
    pub(super) dedicated_connections_limit: Option<usize>,
    pub(super) memory: Option<usize>,
    pub(super) result_store: Option<usize>,
    pub(super) tasks: Option<usize>,
    pub(super) model_ranking: Option<ModelRankingStatus>,
    pub(super) rate_limits: BTreeMap<String, u64>,
    pub(super) audit: Option<AuditStats>,
    pub(super) counters: BTreeMap<String, u64>,
}

/// The status of one server.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerStatus {
    pub(super) name: String,
    pub(super) state: String,
    /// For how many seconds it has been in this state.
    pub(super) since: u64,
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) stderr: Vec<String>,
    /// In how many seconds Vary tries again.
    pub(super) next_attempt: Option<u64>,
    #[serde(default)]
    pub(super) revisions: Vec<String>,
    #[serde(default)]
    pub(super) undeclared: BTreeMap<String, bool>,
    #[serde(default)]
    pub(super) upstream_variants: Vec<VariantId>,
    pub(super) login: Option<CredentialStatus>,
    pub(super) tools: Option<usize>,
    pub(super) connections: Option<ConnectionStatus>,
    pub(super) dedicated: Option<ConnectionStatus>,
    pub(super) calls: Option<CallStatus>,
    #[serde(default)]
    pub(super) failed_lists: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) list_faults: Vec<String>,
}

impl ServerStatus {
    /// Whether calls can be sent to it.
    pub(super) fn is_usable(&self) -> bool {
        matches!(&*self.state, "up" | "per-user")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mcp_vary_gateway::{Config, Gateway, Status, Target, UpstreamConfig};
    use serde_json::json;

    use super::*;
    use crate::environment::environment;

    /// The status of a gateway in front of the weather server.
    async fn gateway_status() -> Status {
        let target = Target::in_process(|| {
            let (gateway, server) = tokio::io::duplex(64 * 1024);
            tokio::spawn(weather::serve(server));
            gateway
        });
        let server = UpstreamConfig::new("weather", target);
        let config = Config::new(server, environment().unwrap());
        let gateway = Gateway::start(config).await.unwrap();
        let status = gateway.status();
        gateway.close().await;
        status
    }

    /// Sets members that the gateway omits if they are empty.
    fn fill(status: &mut Status) {
        let id: VariantId = "agent".parse().unwrap();
        let server = &mut status.servers[0];
        server.reason = Some("it is down".to_owned());
        server.stderr.push("no database".to_owned());
        server.next_attempt = Some(1);
        server.undeclared.insert("tools/list", true);
        server.upstream_variants.push(id.clone());
        server.login = Some(CredentialStatus {
            expires_at: Some(1),
            is_refreshed: false,
            has_ended: false,
        });
        let calls = server.calls.as_mut().unwrap();
        (calls.p50, calls.p95) = (Some(1.0), Some(2.5));
        let unread = "too long".to_owned();
        server.failed_lists.insert("prompts/list", unread.clone());
        server.list_faults.push(unread);
        let variant = &mut status.variants[0];
        variant.replacement = Some(id);
        variant.removal_date = Some("2027-01-31".to_owned());
        variant.days_left = Some(3);
        variant.tokens = Some(7);
        status.missing_keys.push("the keys are missing".to_owned());
        status.people.push(PersonUse::default());
        status.people_need_token = true;
        let mut used = DirectoryUse::default();
        used.reason = Some("it is not valid".to_owned());
        status.directory_use.push(used);
        let mut ranking = ModelRankingStatus::default();
        ranking.failures.insert("timeout".into(), 1);
        status.model_ranking = Some(ranking);
        status.audit = Some(AuditStats {
            error: Some("the disk is full".to_owned()),
            ..AuditStats::default()
        });
        status.config = Some("sha256:7".to_owned());
        status.rate_limits.insert("calls".to_owned(), 1);
        status.counters.insert("refused-for-memory", 1);
    }

    /// Adds the paths of all members in `value`, those of all items of a list together.
    fn add_paths(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let path = format!("{at}/{name}");
                    add_paths(member, &path, paths);
                    paths.insert(path);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| add_paths(item, at, paths)),
            _ => {}
        }
    }

    fn paths(value: &Value) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        add_paths(value, "", &mut paths);
        paths
    }

    #[tokio::test]
    async fn a_gateway_reports_each_member_that_is_shown() {
        let mut status = gateway_status().await;
        fill(&mut status);
        let json = serde_json::to_value(status).unwrap();
        let received = ReceivedStatus::read(json).unwrap();
        let shown = paths(&serde_json::to_value(&received.document).unwrap());
        let reported = paths(&received.json);
        let missing: Vec<_> = shown.difference(&reported).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_status_may_have_other_members_and_lack_some() {
        let json = json!({"servers": [], "experiments": [], "padding": "x"});
        let received = ReceivedStatus::read(json.clone()).unwrap();
        assert_eq!(received.json, json);
        let nameless = ReceivedStatus::read(json!({"servers": [{"state": "up"}]}));
        let error = nameless.unwrap_err().to_string();
        assert_eq!(error, "missing field `name`");
    }
}
