//! The families of metrics, as a table.

use prometheus_client::metrics::MetricType;

/// A family of series: a metric with its labels.
#[derive(Debug)]
pub struct Family {
    /// Its name. That of a counter is without the suffix `_total`, which its samples have.
    pub name: &'static str,
    /// What it measures.
    pub help: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The labels that its series can have.
    pub labels: &'static [&'static str],
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A count that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl Kind {
    /// The name of the kind, in both forms.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    pub(crate) const fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
        }
    }
}

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $constant: Family = Family {
                name: $name,
                help: $help,
                kind: Kind::$kind,
                labels: &[$($label),*],
            };
        )*

        /// All of them.
        pub static ALL: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    REQUESTS = Counter "vary_requests" ["method", "protocol", "variant", "code"], "Requests of clients by method, protocol, variant and outcome";
    SERVER_OPERATION = Histogram "mcp_server_operation_duration_seconds" ["mcp_method_name", "protocol", "error_type"], "Time from a request of a client to its response";
    OWN_DURATION = Histogram "vary_own_duration_seconds" ["method"], "What Vary itself took for a request: all but the time from sending it to its server to the answer";
    TOOL_CALLS = Counter "vary_tool_calls" ["server", "tool", "code"], "Calls that were sent to a server, by tool and outcome";
    CLIENT_OPERATION = Histogram "mcp_client_operation_duration_seconds" ["mcp_method_name", "server", "gen_ai_tool_name", "error_type"], "Time from sending a request to a server to its response";
    TOOL_SERIES = Gauge "vary_tools_with_series" [], "Tools that have series of their own; above 2000 the others share the label _other";
    VARIANT_CALL_DURATION = Histogram "vary_variant_call_duration_seconds" ["variant"], "Time from a call of a tool to its response, by variant";
    VARIANT_CHOSEN = Counter "vary_variant_chosen" ["variant", "why"], "Requests under each variant, by what selected it";
    DEPRECATED_USES = Counter "vary_deprecated_uses" ["variant"], "Requests under deprecated variants";
    RESULT_TOKENS = Counter "vary_result_tokens" ["variant", "stage"], "Tokens of the results of tools before and after shaping, estimated as four bytes each";
    LIST_TOKENS = Gauge "vary_list_tokens" ["variant"], "Tokens of the tools that a variant lists, in the encoding o200k";
    AUTH = Counter "vary_auth" ["outcome", "issuer"], "HTTP requests by the outcome of their credential";
    JWKS_FETCHES = Counter "vary_jwks_fetches" ["issuer", "outcome"], "Fetches of the keys of an issuer";
    JWKS_AGE = Gauge "vary_jwks_age_seconds" ["issuer"], "Age of the keys of an issuer that are in use";
    DENIED = Counter "vary_denied" ["rule"], "Requests that access rules refused, and items that they hid from a request, by rule";
    LIMITED = Counter "vary_limited" ["rule"], "Requests that a rate limit refused, by limit, since the limits last changed";
    REFUSED_MESSAGES = Counter "vary_refused_messages" ["reason"], "Messages that were refused or dropped, by reason";
    UPSTREAM_UP = Gauge "vary_upstream_up" ["server"], "Whether a server is connected";
    UPSTREAM_RESTARTS = Counter "vary_upstream_restarts" ["server"], "Connections to a server that were established after the first one";
    CONNECT_ATTEMPTS = Counter "vary_upstream_connect_attempts" ["server", "outcome"], "Attempts to connect to a server";
    CONNECT_TIME = Counter "vary_upstream_connect_seconds" ["server"], "Time that the attempts took that succeeded";
    UPSTREAM_CONNECTIONS = Gauge "vary_upstream_connections" ["server"], "Open connections to a server that clients share";
    UPSTREAM_EVICTIONS = Counter "vary_upstream_evictions" ["server", "kind"], "Idle connections to a server that were closed for other clients";
    UPSTREAM_TOOLS = Gauge "vary_upstream_tools" ["server"], "Tools that a server lists";
    SESSIONS = Gauge "vary_sessions" [], "Sessions that were used recently";
    STREAMS = Gauge "vary_streams" [], "Streams that are open or can be resumed";
    LISTENERS = Gauge "vary_listeners" [], "Open streams of subscriptions/listen";
    SUBSCRIPTIONS = Gauge "vary_subscriptions" [], "Resources with subscribers";
    PENDING_SERVER_REQUESTS = Gauge "vary_pending_server_requests" [], "Requests of servers that clients have not answered yet";
    SUSPENDED_CALLS = Gauge "vary_suspended_calls" [], "Calls that wait for their clients' input";
    PROXIED_TASKS = Gauge "vary_proxied_tasks" [], "Tasks of servers that the gateway waits for";
    DEDICATED_CONNECTIONS = Gauge "vary_dedicated_connections" [], "Connections to servers that one client each uses alone";
    MEMORY = Gauge "vary_memory_bytes" [], "Memory of limits.memory that requests, subscriptions and large answers use";
    RESULT_STORE = Gauge "vary_result_store_bytes" [], "Parts of results that were left out, and that clients can still read";
    AUDIT_RECORDS = Counter "vary_audit_records" ["outcome"], "Records of the audit log by outcome";
    SPANS = Counter "vary_spans" ["outcome"], "Spans of sampled requests by outcome";
    STORE_UP = Gauge "vary_store_up" [], "Whether the store that replicas share is connected and takes writes";
    STORE_USED = Gauge "vary_store_used_ratio" ["resource"], "Share of a bound of the store that is in use, from 0 to 1";
    STORE_OPERATIONS = Counter "vary_store_operations" ["operation", "outcome"], "Operations on the store by outcome: ok, failed, or skipped because it is away";
    TASKS = Gauge "vary_tasks" [], "Asynchronous tasks of the process";
    RELOADS = Counter "vary_config_reloads" ["outcome"], "Attempts to reload the configuration";
    CONFIG = Gauge "vary_config_hash_info" ["hash"], "The configuration in force; always 1";
    BUILD = Gauge "vary_build_info" ["version"], "The version of the program; always 1";
    START_TIME = Gauge "process_start_time_seconds" [], "When the gateway was opened, in seconds since 1970-01-01 UTC";
    RESIDENT_MEMORY = Gauge "process_resident_memory_bytes" [], "Memory of the process that is in RAM";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_list::REASONS;

    /// A row of the page's table: the name as samples have it, the kind, and the labels.
    fn row(family: &Family) -> String {
        let suffix = if family.kind == Kind::Counter {
            "_total"
        } else {
            ""
        };
        let labels: Vec<_> = family.labels.iter().map(|it| format!("`{it}`")).collect();
        let (name, kind, labels) = (family.name, family.kind.name(), labels.join(", "));
        format!("| `{name}{suffix}` | {kind} | {labels} | ").replace("|  |", "| |")
    }

    #[test]
    fn the_page_has_each_family() {
        let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), ALL.len());
        for (found, family) in rows.into_iter().zip(ALL) {
            assert!(
                found.starts_with(&row(family)),
                "{found}, not {}",
                row(family)
            );
        }
    }

    #[test]
    fn the_page_has_the_reasons_for_a_variant() {
        let (_other, reasons) = REASONS.values().split_last().unwrap();
        let quoted: Vec<_> = reasons.iter().map(|it| format!("`{it}`")).collect();
        let end = format!(": {} |\n", quoted.join(", "));
        assert!(PAGE.contains(&end), "{end}");
    }

    const PAGE: &str = include_str!("../../../docs/reference/metrics.md");
}
