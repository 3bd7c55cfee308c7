//! What a status has of the metrics, under their names.

use super::document::StatusDocument;
use super::number;
use crate::print::table::table;

/// A metric without labels that is in a status.
struct Gauge {
    metric: &'static str,
    now: Option<usize>,
    limit: Option<usize>,
}

impl Gauge {
    const fn unlimited(metric: &'static str, now: Option<usize>) -> Self {
        Self {
            metric,
            now,
            limit: None,
        }
    }

    fn row(&self) -> Vec<String> {
        let now = number(self.now);
        let value = match self.limit {
            Some(limit) => format!("{now}/{limit}"),
            None => now,
        };
        vec![self.metric.to_owned(), value]
    }
}

/// The values of these metrics, after an empty line.
pub(super) fn gauges(status: &StatusDocument) -> String {
    let gauges = [
        Gauge::unlimited("vary_sessions", status.sessions),
        Gauge::unlimited("vary_streams", status.streams),
        Gauge::unlimited("vary_listeners", status.listeners),
        Gauge::unlimited("vary_subscriptions", status.subscriptions),
        Gauge::unlimited(
            "vary_pending_server_requests",
            status.pending_server_requests,
        ),
        Gauge::unlimited("vary_suspended_calls", status.suspended_calls),
        Gauge::unlimited("vary_proxied_tasks", status.proxied_tasks),
        Gauge {
            metric: "vary_dedicated_connections",
            now: status.dedicated_connections,
            limit: status.dedicated_connections_limit,
        },
        Gauge::unlimited("vary_memory_bytes", status.memory),
        Gauge::unlimited("vary_result_store_bytes", status.result_store),
        Gauge::unlimited("vary_tasks", status.tasks),
    ];
    let heading = ["metric", "now"].map(str::to_owned).to_vec();
    let rows = gauges.iter().map(Gauge::row);
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    format!("\n{}", table(&rows, 1))
}
