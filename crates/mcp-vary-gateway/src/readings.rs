//! What a scrape of metrics reads when it comes: gauges and counters that the gateway has for its status already.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_metrics::{Exposition, Family, Labels, Listed, Metrics, Value, families};

use crate::authentication::KeyStatus;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::status::{ServerStatus, Status};

/// All series at this moment; `None` if requests are not measured. It takes a while if lists have changed.
pub(crate) fn exposition(snapshot: &ConfigSnapshot) -> Option<Exposition> {
    let metrics = snapshot.services.metrics.as_ref()?;
    retire(snapshot, metrics);
    let mut exposition = Exposition::default();
    metrics.expose(&mut exposition);
    let status = Status::of(snapshot);
    add_servers(&mut exposition, snapshot, &status.servers);
    add_gauges(&mut exposition, &status);
    let result_store = Value::count(snapshot.services.result_store.bytes());
    exposition.add_single(&families::RESULT_STORE, result_store);
    add_counters(&mut exposition, &status);
    add_keys(&mut exposition, snapshot);
    add_lists(&mut exposition, snapshot);
    add_process(&mut exposition, snapshot);
    Some(exposition)
}

/// Ends the series of what left the catalogue some time ago.
fn retire(snapshot: &ConfigSnapshot, metrics: &Metrics) {
    let sources = snapshot.pool.base().sources().iter();
    let servers = sources.map(|source| {
        let snapshot = source.snapshot();
        let tools = snapshot.listings.get(&ListKind::Tools);
        let tools = tools.and_then(|tools| tools.as_ref().ok());
        let names = tools.into_iter().flat_map(|tools| tools.items.iter());
        let names = names.map(|item| item.id.to_string()).collect();
        (source.server_name.to_string(), names)
    });
    let mut listed = Listed::default();
    for (server, names) in servers {
        let tools: BTreeSet<String> = names;
        listed.servers.entry(server).or_default().extend(tools);
    }
    let variants = snapshot.variant_set.variants.iter();
    listed.variants = variants.map(|variant| variant.id.to_string()).collect();
    metrics.retire((snapshot.config.environment.now)(), &listed);
}

fn add_servers(exposition: &mut Exposition, snapshot: &ConfigSnapshot, servers: &[ServerStatus]) {
    // A server with a connection for each user is neither up nor down.
    let shared = || servers.iter().filter(|server| server.state != "per-user");
    let of_server = |server: &str| vec![("server", server.to_owned())];
    let up = shared().map(|it| {
        let is_up = usize::from(it.state == "up");
        (of_server(&it.name), Value::count(is_up))
    });
    exposition.add(&families::UPSTREAM_UP, up);
    let mut restarts = BTreeMap::<&str, u64>::new();
    for source in snapshot.pool.base().sources() {
        let established = source.connection.established();
        *restarts.entry(source.name()).or_default() += established.saturating_sub(1);
    }
    let restarts = restarts.into_iter();
    let restarts = restarts.map(|(server, count)| (of_server(server), Value::Counter(count)));
    exposition.add(&families::UPSTREAM_RESTARTS, restarts);
    add_attempts(exposition, snapshot);
    let connections = servers.iter().filter_map(|it| {
        let open = it.connections.as_ref()?.open;
        Some((of_server(&it.name), Value::count(open)))
    });
    exposition.add(&families::UPSTREAM_CONNECTIONS, connections);
    let tools = servers.iter();
    let tools = tools.filter_map(|it| Some((of_server(&it.name), Value::count(it.tools?))));
    exposition.add(&families::UPSTREAM_TOOLS, tools);
}

/// How often the servers were connected to. A server and the variants that it offers are connected to one by one.
fn add_attempts(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let sources = snapshot.pool.base().sources().iter();
    let attempts = sources.map(|source| (source.name(), source.connection.connect_attempts()));
    let attempts: BTreeMap<&str, _> = attempts.collect();
    let counts = attempts.iter().flat_map(|(server, attempts)| {
        let counts = [("ok", attempts.succeeded), ("failed", attempts.failed)];
        counts.map(|(outcome, count)| {
            let (server, outcome) = ((*server).to_owned(), outcome.to_owned());
            let labels: Labels = vec![("server", server), ("outcome", outcome)];
            (labels, Value::Counter(count))
        })
    });
    exposition.add(&families::CONNECT_ATTEMPTS, counts);
    let seconds = attempts.iter().map(|(server, attempts)| {
        let seconds = attempts.duration.as_secs_f64();
        (
            vec![("server", (*server).to_owned())],
            Value::Seconds(seconds),
        )
    });
    exposition.add(&families::CONNECT_TIME, seconds);
}

/// The keys of the issuers of tokens.
fn add_keys(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let issuers = snapshot.authentication.iter();
    let keys: Vec<_> = issuers.flat_map(|it| it.key_statuses()).collect();
    let issuer = |keys: &KeyStatus| ("issuer", keys.issuer.clone());
    let fetches = keys.iter().flat_map(|keys| {
        let counts = [("ok", keys.fetched), ("failed", keys.failed)];
        counts.map(|(outcome, count)| {
            let labels: Labels = vec![issuer(keys), ("outcome", outcome.to_owned())];
            (labels, Value::Counter(count))
        })
    });
    exposition.add(&families::JWKS_FETCHES, fetches);
    let ages = keys.iter().filter_map(|keys| {
        let age = usize::try_from(keys.age?).unwrap_or(usize::MAX);
        Some((vec![issuer(keys)], Value::count(age)))
    });
    exposition.add(&families::JWKS_AGE, ages);
}

fn add_gauges(exposition: &mut Exposition, status: &Status) {
    let gauges: [(&'static Family, usize); 11] = [
        (&families::SESSIONS, status.sessions),
        (&families::STREAMS, status.streams),
        (&families::LISTENERS, status.listeners),
        (&families::SUBSCRIPTIONS, status.subscriptions),
        (
            &families::PENDING_SERVER_REQUESTS,
            status.pending_server_requests,
        ),
        (&families::SUSPENDED_CALLS, status.suspended_calls),
        (&families::PROXIED_TASKS, status.proxied_tasks),
        (&families::COMPLETED_TASKS, status.completed_tasks),
        (
            &families::DEDICATED_CONNECTIONS,
            status.dedicated_connections,
        ),
        (&families::MEMORY, status.memory),
        (&families::TASKS, status.tasks),
    ];
    for (family, count) in gauges {
        exposition.add_single(family, Value::count(count));
    }
}

fn add_counters(exposition: &mut Exposition, status: &Status) {
    let limited = status.rate_limits.iter();
    let limited = limited.map(|(limit, count)| {
        let labels: Labels = vec![("rule", limit.clone())];
        (labels, Value::Counter(*count))
    });
    exposition.add(&families::LIMITED, limited);
    let refused = status.counters.iter();
    let refused = refused.map(|(reason, count)| {
        let labels: Labels = vec![("reason", (*reason).to_owned())];
        (labels, Value::Counter(*count))
    });
    exposition.add(&families::REFUSED_MESSAGES, refused);
    let audit = status.audit.iter().flat_map(|audit| {
        let counts = [
            ("written", audit.written),
            ("lost", audit.lost),
            ("refused", audit.refused),
        ];
        counts.map(|(outcome, count)| {
            let labels: Labels = vec![("outcome", outcome.to_owned())];
            (labels, Value::Counter(count))
        })
    });
    exposition.add(&families::AUDIT_RECORDS, audit);
}

/// The bill: what the tools of each variant cost in a list.
fn add_lists(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let list_tokens = snapshot.services.list_tokens.iter();
    let tokens = list_tokens.flat_map(|list_tokens| list_tokens.of(snapshot));
    let tokens = tokens.map(|(variant, count)| (vec![("variant", variant)], Value::count(count)));
    exposition.add(&families::LIST_TOKENS, tokens);
}

fn add_process(exposition: &mut Exposition, snapshot: &ConfigSnapshot) {
    let digest = snapshot.config.digest.iter();
    let digest = digest.map(|digest| (vec![("hash", digest.to_string())], Value::count(1)));
    exposition.add(&families::CONFIG, digest);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    exposition.add(
        &families::BUILD,
        [(vec![("version", version)], Value::count(1))],
    );
    let started = usize::try_from(snapshot.services.started_at).unwrap_or(usize::MAX);
    exposition.add_single(&families::START_TIME, Value::count(started));
    if let Some(bytes) = resident_memory() {
        exposition.add_single(&families::RESIDENT_MEMORY, Value::count(bytes));
    }
}

/// The memory of the process that is in RAM, in bytes; `None` on systems that have no such file.
fn resident_memory() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
