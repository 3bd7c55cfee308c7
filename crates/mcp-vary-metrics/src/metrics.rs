//! All series of a gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::closed_list::{AUTH_OUTCOMES, Code, METHODS};
use crate::directory::{Directory, Listed, MAX_TOOLS, Owner};
use crate::exposition::{Exposition, Value};
use crate::families;
use crate::histogram::{Counts, Histograms, OPERATION, OWN};
use crate::request_labels::RequestLabels;
use crate::server_metrics::ServerMetrics;
use crate::variant_metrics::VariantMetrics;

/// All series of a gateway.
#[derive(Debug)]
pub struct Metrics {
    /// By method, era and outcome.
    operations: Histograms,
    /// By method.
    own: Histograms,
    servers: Directory<ServerMetrics>,
    variants: Directory<VariantMetrics>,
    /// Of requests that run under no variant.
    no_variant: Arc<VariantMetrics>,
    /// By issuer.
    credentials: Directory<Counts>,
    /// By access rule.
    denials: Directory<Counts>,
    /// Those that came into force, and those that failed.
    reloads: [AtomicU64; 2],
}

/// The label of requests that run under no variant.
const NO_VARIANT: &str = "_none";

impl Default for Metrics {
    fn default() -> Self {
        let room = || Arc::new(AtomicUsize::new(MAX_TOOLS));
        let tools = room();
        Self {
            operations: Histograms::new(OPERATION, RequestLabels::SERIES),
            own: Histograms::new(OWN, METHODS.len()),
            servers: Directory::new(room(), move || ServerMetrics::new(Arc::clone(&tools))),
            variants: Directory::new(room(), VariantMetrics::default),
            no_variant: Arc::default(),
            credentials: Directory::new(room(), || Counts::new(AUTH_OUTCOMES.len())),
            denials: Directory::new(room(), || Counts::new(1)),
            reloads: Default::default(),
        }
    }
}

impl Metrics {
    /// The series of the configured server `name`.
    pub fn server(&self, name: &str) -> Arc<ServerMetrics> {
        self.servers.get(name)
    }

    /// The series of the configured variant `id`.
    pub fn variant(&self, id: &str) -> Arc<VariantMetrics> {
        self.variants.get(id)
    }

    pub(crate) const fn no_variant(&self) -> &Arc<VariantMetrics> {
        &self.no_variant
    }

    /// Counts what became of the credential of an HTTP request: a value of [`AUTH_OUTCOMES`]. `issuer` is the configured
    /// one that issued it, if that is known.
    pub fn count_credential(&self, outcome: &str, issuer: Option<&str>) {
        let issuer = self.credentials.get(issuer.unwrap_or_default());
        issuer.add(AUTH_OUTCOMES.position(outcome));
    }

    /// How many credentials were refused, by the value of [`AUTH_OUTCOMES`]. `missing` is not among them: most clients learn
    /// from that response where to log in.
    pub fn refused_credentials(&self) -> BTreeMap<&'static str, u64> {
        let mut refused = BTreeMap::new();
        for (_, counts) in self.credentials.all() {
            for (position, value) in counts.used() {
                let outcome = AUTH_OUTCOMES.value(position);
                if let Value::Counter(count) = value
                    && !matches!(outcome, "ok" | "missing")
                {
                    *refused.entry(outcome).or_insert(0) += count;
                }
            }
        }
        refused
    }

    pub(crate) fn count_denial(&self, rule: &str) {
        self.denials.get(rule).add(0);
    }

    /// How many requests each access rule has refused, or hidden their targets, by its name.
    pub fn denials(&self) -> Vec<(String, u64)> {
        let all = self.denials.all().into_iter();
        all.map(|(rule, it)| (rule.to_string(), it.total()))
            .collect()
    }

    /// Counts an attempt to reload the configuration.
    pub fn count_reload(&self, succeeded: bool) {
        let [ok, failed] = &self.reloads;
        let reloads = if succeeded { ok } else { failed };
        reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request by its position; `handled`: its method and the gateway's part of the time.
    pub(crate) fn observe_request(
        &self,
        position: usize,
        duration: Duration,
        handled: Option<(usize, Duration)>,
    ) {
        self.operations.observe(position, duration);
        if let Some((method, duration)) = handled {
            self.own.observe(method, duration);
        }
    }

    /// Ends the series of what was neither listed nor used for some time before `now`, in seconds since 1970-01-01 UTC.
    pub fn retire(&self, now: u64, listed: &Listed) {
        let mut with_tools = BTreeSet::new();
        for (name, server) in self.servers.all() {
            server.retire_tools(now, &name, listed);
            if server.tool_count() > 0 {
                with_tools.insert(name);
            }
        }
        // Tools go before their server, since all servers share the room for them.
        self.servers.retire(now, |name| {
            listed.servers.contains_key(name) || with_tools.contains(name)
        });
        self.variants.retire(now, |id| listed.variants.contains(id));
        self.credentials.retire(now, |_| false);
        self.denials.retire(now, |_| false);
    }

    /// Adds all series to what a scrape gets.
    pub fn expose(&self, exposition: &mut Exposition) {
        self.expose_requests(exposition);
        self.expose_servers(exposition);
        self.expose_variants(exposition);
        let credentials = self.credentials.all();
        let by_issuer = credentials.iter().flat_map(|(issuer, it)| {
            let used = it.used();
            used.map(move |(outcome, value)| {
                let outcome = AUTH_OUTCOMES.value(outcome).to_owned();
                let labels = vec![("outcome", outcome), ("issuer", issuer.to_string())];
                (labels, value)
            })
        });
        exposition.add(&families::AUTH, by_issuer);
        let denials = self.denials.all();
        let by_rule = denials.iter().flat_map(|(rule, it)| {
            let used = it.used();
            used.map(move |(_, value)| (vec![("rule", rule.to_string())], value))
        });
        exposition.add(&families::DENIED, by_rule);
        // Shown at zero, too, so that an alert can compare.
        let outcomes = ["ok", "failed"].into_iter().zip(&self.reloads);
        let reloads = outcomes.map(|(outcome, count)| {
            let value = Value::Counter(count.load(Ordering::Relaxed));
            (vec![("outcome", outcome.to_owned())], value)
        });
        exposition.add(&families::RELOADS, reloads);
    }

    fn expose_requests(&self, exposition: &mut Exposition) {
        let operations = self.operations.used().map(|(position, value)| {
            let (mut labels, code) = RequestLabels::of_series(position, "mcp_method_name");
            let error_type = Code::error_type(code);
            if !error_type.is_empty() {
                labels.push(("error_type", error_type.to_owned()));
            }
            (labels, value)
        });
        exposition.add(&families::SERVER_OPERATION, operations);
        let handled = self.own.used().map(|(method, value)| {
            let method = METHODS.value(method).to_owned();
            (vec![("method", method)], value)
        });
        exposition.add(&families::OWN_DURATION, handled);
    }

    fn expose_servers(&self, exposition: &mut Exposition) {
        let servers = self.servers.all();
        let calls = servers.iter().flat_map(|(name, it)| it.tool_calls(name));
        exposition.add(&families::TOOL_CALLS, calls);
        let durations = servers.iter().flat_map(|(name, it)| it.durations(name));
        exposition.add(&families::CLIENT_OPERATION, durations);
        let tools: usize = servers.iter().map(|(_, it)| it.tool_count()).sum();
        exposition.add_single(&families::TOOL_SERIES, Value::count(tools));
    }

    fn expose_variants(&self, exposition: &mut Exposition) {
        let mut variants = self.variants.all();
        variants.push((NO_VARIANT.into(), Arc::clone(&self.no_variant)));
        let all = || variants.iter();
        let requests = all().flat_map(|(id, it)| it.requests(id));
        exposition.add(&families::REQUESTS, requests);
        let durations = all().filter_map(|(id, it)| it.call_durations(id));
        exposition.add(&families::VARIANT_CALL_DURATION, durations);
        let chosen = all().flat_map(|(id, it)| it.chosen(id));
        exposition.add(&families::VARIANT_CHOSEN, chosen);
        let deprecated = all().filter_map(|(id, it)| it.deprecated_uses(id));
        exposition.add(&families::DEPRECATED_USES, deprecated);
        let tokens = all().flat_map(|(id, it)| it.result_tokens(id));
        exposition.add(&families::RESULT_TOKENS, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExchangeMeter, Form, RequestMeter, RequestOutcome};

    fn text(metrics: &Metrics) -> String {
        let mut exposition = Exposition::default();
        metrics.expose(&mut exposition);
        exposition.write(Form::Text).unwrap()
    }

    #[track_caller]
    fn shows(metrics: &Metrics, line: &str) {
        let text = text(metrics);
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    }

    /// OP-2
    #[test]
    fn a_call_counts_for_its_variant_its_server_and_its_tool() {
        let metrics = Arc::new(Metrics::default());
        let labels = RequestLabels::new("tools/call", "2026-07-28");
        let meter = RequestMeter::begin(&metrics, labels);
        meter.enter(&metrics.variant("compact"), "rule");
        let operation = metrics.server("git").begin(labels, Some("log"));
        let mut exchange = ExchangeMeter::begin();
        exchange.answered(4000);
        operation.end(Code::OK, Duration::ZERO);
        meter.exchanged(RequestOutcome::new(Code::OK, Some(400)), Some(exchange));
        for line in [
            r#"vary_requests_total{method="tools/call",protocol="2026-07-28",variant="compact",code="ok"} 1"#,
            r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",protocol="2026-07-28"} 1"#,
            r#"vary_own_duration_seconds_count{method="tools/call"} 1"#,
            r#"vary_tool_calls_total{server="git",tool="log",code="ok"} 1"#,
            r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",server="git",gen_ai_tool_name="log"} 1"#,
            r#"vary_variant_call_duration_seconds_count{variant="compact"} 1"#,
            r#"vary_variant_chosen_total{variant="compact",why="rule"} 1"#,
            r#"vary_result_tokens_total{variant="compact",stage="server"} 1000"#,
            r#"vary_result_tokens_total{variant="compact",stage="client"} 100"#,
            "vary_tools_with_series 1.0",
        ] {
            shows(&metrics, line);
        }
    }

    #[test]
    fn a_request_that_is_dropped_is_cancelled() {
        let metrics = Arc::new(Metrics::default());
        let meter = RequestMeter::begin(&metrics, RequestLabels::new("ping", "before-2026-07-28"));
        meter.pending().end();
        drop(meter.pending());
        shows(
            &metrics,
            r#"vary_requests_total{method="ping",protocol="before-2026-07-28",variant="_none",code="cancelled"} 1"#,
        );
    }

    #[test]
    fn what_clients_send_makes_no_series() {
        let metrics = Arc::new(Metrics::default());
        let count = || {
            let mut exposition = Exposition::default();
            metrics.expose(&mut exposition);
            exposition.series()
        };
        let send = |method: &str, code: i64| {
            let meter = RequestMeter::begin(&metrics, RequestLabels::new(method, "2026-07-28"));
            meter.answered(RequestOutcome::new(Code::of_error(code), None));
        };
        send("x", 10_000);
        let before = count();
        for number in 0..10_000 {
            send(&format!("method{number}"), number);
        }
        assert_eq!(count(), before);
    }

    #[test]
    fn tools_that_come_and_go_leave_a_bounded_number_of_series() {
        let metrics = Metrics::default();
        let server = metrics.server("one");
        let labels = RequestLabels::new("tools/call", "2026-07-28");
        let mut listed = Listed::default();
        for round in 0..1000 {
            let name = |number: usize| format!("tool_{round}_{number}");
            listed.servers = [("one".to_owned(), (0..200).map(name).collect())].into();
            for number in 0..200 {
                let operation = server.begin(labels, Some(&name(number)));
                operation.end(Code::OK, Duration::ZERO);
            }
            metrics.retire(1 + round as u64, &listed);
        }
        assert_eq!(server.tool_count(), MAX_TOOLS);
        shows(
            &metrics,
            r#"vary_tool_calls_total{server="one",tool="_other",code="ok"} 198000"#,
        );
        metrics.retire(10_000, &listed);
        metrics.retire(20_000, &listed);
        assert_eq!(
            server.tool_count(),
            0,
            "tools of the other series are not listed by name"
        );
        let operation = server.begin(labels, Some("tool_999_0"));
        operation.end(Code::TOOL_ERROR, Duration::ZERO);
        shows(
            &metrics,
            r#"vary_tool_calls_total{server="one",tool="tool_999_0",code="tool_error"} 1"#,
        );
    }

    #[test]
    fn credentials_and_rules_are_counted_by_name() {
        let metrics = Arc::new(Metrics::default());
        metrics.count_credential("ok", Some("https://login.example"));
        metrics.count_credential("missing", None);
        metrics.count_credential("invalid", None);
        assert_eq!(
            metrics.refused_credentials(),
            BTreeMap::from([("invalid", 1)])
        );
        let call = RequestLabels::new("tools/call", "before-2026-07-28");
        RequestMeter::begin(&metrics, call).denied_by("access[2]");
        shows(
            &metrics,
            r#"vary_auth_total{outcome="ok",issuer="https://login.example"} 1"#,
        );
        shows(
            &metrics,
            r#"vary_auth_total{outcome="missing",issuer=""} 1"#,
        );
        shows(&metrics, r#"vary_denied_total{rule="access[2]"} 1"#);
    }
}
