//! What a status has of the metrics, under their names.

use serde_json::Value;

use crate::print::table::table;

/// The metrics without labels that are in a status, each with its member.
const GAUGES: &[(&str, &str)] = &[
    ("vary_sessions", "sessions"),
    ("vary_streams", "streams"),
    ("vary_listeners", "listeners"),
    ("vary_subscriptions", "subscriptions"),
    ("vary_pending_server_requests", "pendingServerRequests"),
    ("vary_suspended_calls", "suspendedCalls"),
    ("vary_proxied_tasks", "proxiedTasks"),
    ("vary_dedicated_connections", "dedicatedConnections"),
    ("vary_memory_bytes", "memory"),
    ("vary_result_store_bytes", "resultStore"),
    ("vary_tasks", "tasks"),
];

/// The values of these metrics, after an empty line.
pub(super) fn gauges(status: &Value) -> String {
    let heading = ["metric", "now"].map(str::to_owned).to_vec();
    let rows = GAUGES.iter().map(|(metric, member)| {
        let number = |member: &str| Some(status[member].as_u64()?.to_string());
        let value = number(member).unwrap_or_else(|| "-".to_owned());
        let limit = number(&format!("{member}Limit"));
        let value = limit.map_or_else(|| value.clone(), |limit| format!("{value}/{limit}"));
        vec![(*metric).to_owned(), value]
    });
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    format!("\n{}", table(&rows, 1))
}
