//! What a scrape of metrics reads when it comes: gauges and counters that the gateway has for its status already.

use std::collections::BTreeMap;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_metrics::{Exposition, Family, Listed, Metrics, Value, families};
use mcp_vary_store::StoreState;

use crate::pipeline::gateway_tools::gateway_tools;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::status::{ServerStatus, Status};

/// All series at this moment; `None` if requests are not measured. It takes a while if lists have changed.
pub(crate) fn exposition(snapshot: &ConfigSnapshot) -> Option<Exposition> {
    let metrics = snapshot.services.observers.metrics.as_ref()?;
    retire(snapshot, metrics);
    let mut exposition = Exposition::default();
    metrics.expose(&mut exposition);
    let status = Status::of(snapshot);
    add_servers(&mut exposition, snapshot, &status.servers);
    add_gauges(&mut exposition, &status);
    add_counters(&mut exposition, snapshot, &status);
    add_keys(&mut exposition, snapshot);
    add_spans(&mut exposition, snapshot);
    add_store(&mut exposition, snapshot);
    // The bill: what the tools of each variant cost in a list.
    let tokens = list_tokens(snapshot);
    let counts = tokens.iter();
    let costs = counts.map(|(variant, count)| ([&**variant], Value::count(*count)));
    exposition.add_by_labels(&families::LIST_TOKENS, costs);
    let config = &snapshot.config;
    let common = config.common_digest.as_ref().or(config.digest.as_ref());
    let digest = common.map(|digest| &**digest);
    let started_at = snapshot.services.started_at;
    exposition.add_process(env!("CARGO_PKG_VERSION"), digest, started_at);
    Some(exposition)
}

/// The tokens of the list of each variant, by its id; none if nothing counts them. It takes a while if lists have changed.
pub(crate) fn list_tokens(snapshot: &ConfigSnapshot) -> Vec<(String, usize)> {
    let Some(tokens) = &snapshot.services.list_tokens else {
        return Vec::new();
    };
    let catalog = snapshot.pool.base().catalog.current();
    tokens.of(&catalog, &snapshot.variant_set, gateway_tools)
}

/// Ends the series of what left the catalogue some time ago.
fn retire(snapshot: &ConfigSnapshot, metrics: &Metrics) {
    let mut listed = Listed::default();
    for source in snapshot.pool.base().sources() {
        let lists = source.snapshot();
        let listing = lists.listings.get(&ListKind::Tools);
        let read = listing.and_then(|tools| tools.as_ref().ok());
        let tools = read.into_iter().flat_map(|tools| tools.items.iter());
        let server = source.name.to_string();
        let names = listed.servers.entry(server).or_default();
        names.extend(tools.map(|tool| tool.id.to_string()));
    }
    let variants = snapshot.variant_set.variants.iter();
    listed.variants = variants.map(|variant| variant.id.to_string()).collect();
    metrics.retire((snapshot.config.environment.now)(), &listed);
}

fn add_servers(exposition: &mut Exposition, snapshot: &ConfigSnapshot, servers: &[ServerStatus]) {
    // A server with a connection for each user is neither up nor down.
    let shared = servers.iter().filter(|server| server.state != "per-user");
    let up = shared.map(|server| ([&*server.name], Value::count((server.state == "up").into())));
    exposition.add_by_labels(&families::UPSTREAM_UP, up);
    let open = |it: &ServerStatus| Some(Value::count(it.connections.as_ref()?.open));
    let open = servers
        .iter()
        .filter_map(|server| Some(([&*server.name], open(server)?)));
    exposition.add_by_labels(&families::UPSTREAM_CONNECTIONS, open);
    let evicted = servers.iter().flat_map(|server| {
        let kinds = [
            ("shared", &server.connections),
            ("dedicated", &server.dedicated),
        ];
        kinds.map(|(kind, status)| {
            let evicted = Value::Counter(status.as_ref()?.evicted);
            Some(([&*server.name, kind], evicted))
        })
    });
    exposition.add_by_labels(&families::UPSTREAM_EVICTIONS, evicted.flatten());
    let all = servers.iter();
    let tools = all.filter_map(|server| Some(([&*server.name], Value::count(server.tools?))));
    exposition.add_by_labels(&families::UPSTREAM_TOOLS, tools);
    let sources = snapshot.pool.base().sources().iter();
    let pairs = sources.map(|source| (source.name(), source.connection.connect_attempts()));
    let attempts: BTreeMap<&str, _> = pairs.collect();
    let restarts = attempts.iter().map(|(server, attempts)| {
        let restarts = attempts.established.saturating_sub(1);
        ([*server], Value::Counter(restarts))
    });
    exposition.add_by_labels(&families::UPSTREAM_RESTARTS, restarts);
    let outcomes = attempts.iter().flat_map(|(server, attempts)| {
        let counts = [("ok", attempts.succeeded), ("failed", attempts.failed)];
        counts.map(|(outcome, count)| ([*server, outcome], Value::Counter(count)))
    });
    exposition.add_by_labels(&families::CONNECT_ATTEMPTS, outcomes);
    let seconds = attempts.iter().map(|(server, attempts)| {
        let seconds = Value::Seconds(attempts.duration.as_secs_f64());
        ([*server], seconds)
    });
    exposition.add_by_labels(&families::CONNECT_TIME, seconds);
}

/// The keys of the issuers of tokens.
fn add_keys(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let services = snapshot.authentication.iter();
    let statuses = services.flat_map(|service| service.key_statuses());
    let issuers: BTreeMap<String, _> = statuses.map(|(it, keys)| (it.to_string(), keys)).collect();
    let fetches = issuers.iter().flat_map(|(issuer, keys)| {
        let counts = [("ok", keys.fetched), ("failed", keys.failed)];
        counts.map(|(outcome, count)| ([&**issuer, outcome], Value::Counter(count)))
    });
    exposition.add_by_labels(&families::JWKS_FETCHES, fetches);
    let ages = issuers.iter().filter_map(|(issuer, keys)| {
        let age = usize::try_from(keys.age?).unwrap_or(usize::MAX);
        Some(([&**issuer], Value::count(age)))
    });
    exposition.add_by_labels(&families::JWKS_AGE, ages);
}

/// The store that replicas share, if they do.
fn add_store(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let Some(store) = &snapshot.services.store else {
        return;
    };
    let is_up = store.state() == StoreState::Up;
    exposition.add_single(&families::STORE_UP, Value::count(is_up.into()));
    let shares = store.used();
    let used = shares.map(|(resource, share)| ([resource], Value::Gauge(share)));
    exposition.add_by_labels(&families::STORE_USED, used);
    let counts = store.operations();
    let operations = counts.map(|(labels, count)| (labels, Value::Counter(count)));
    exposition.add_by_labels(&families::STORE_OPERATIONS, operations);
}

/// The spans of requests that were sampled.
fn add_spans(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let tracers = snapshot.services.observers.tracer.iter();
    let spans = tracers.flat_map(|tracer| {
        let stats = tracer.stats();
        let counts = [("exported", stats.exported), ("lost", stats.lost)];
        counts.map(|(outcome, count)| ([outcome], Value::Counter(count)))
    });
    exposition.add_by_labels(&families::SPANS, spans);
}

fn add_gauges(exposition: &mut Exposition, status: &Status) {
    #[rustfmt::skip]
    let gauges: [(&'static Family, usize); 11] = [
        (&families::SESSIONS, status.sessions),
        (&families::STREAMS, status.streams),
        (&families::LISTENERS, status.listeners),
        (&families::SUBSCRIPTIONS, status.subscriptions),
        (&families::PENDING_SERVER_REQUESTS, status.pending_server_requests),
        (&families::SUSPENDED_CALLS, status.suspended_calls),
        (&families::PROXIED_TASKS, status.proxied_tasks),
        (&families::DEDICATED_CONNECTIONS, status.dedicated_connections),
        (&families::MEMORY, status.memory),
        (&families::RESULT_STORE, status.result_store),
        (&families::TASKS, status.tasks),
    ];
    for (family, count) in gauges {
        exposition.add_single(family, Value::count(count));
    }
}

fn add_counters(exposition: &mut Exposition, snapshot: &ConfigSnapshot, status: &Status) {
    let limits = status.rate_limits.iter();
    let limited = limits.map(|(limit, count)| ([&**limit], Value::Counter(*count)));
    exposition.add_by_labels(&families::LIMITED, limited);
    // Shown at zero, too, so that the first one is an increase.
    let counts = snapshot.services.counters.all();
    let refused = counts.map(|(reason, count)| ([reason], Value::Counter(count)));
    exposition.add_by_labels(&families::REFUSED_MESSAGES, refused);
    let audit = status.audit.iter().flat_map(|audit| {
        let counts = [
            ("written", audit.written),
            ("lost", audit.lost),
            ("refused", audit.refused),
        ];
        counts.map(|(outcome, count)| ([outcome], Value::Counter(count)))
    });
    exposition.add_by_labels(&families::AUDIT_RECORDS, audit);
}
