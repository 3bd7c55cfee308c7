//! Non-interference: every message is that of a gateway whose servers never had what is hidden.
//!
//! For generated catalogues, rules, principals and changes, two gateways with the same keys, clock and randomness stand
//! before the same servers: one sees all items and has the rules, the other sees only what they show, and allows
//! everything. A server of which the rules allow nothing declares and has nothing there. All responses and notifications
//! are compared byte for byte, in both eras, and with their statuses over HTTP.

mod case;
mod servers;

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use http::HeaderMap;
use mcp_vary_access::AccessPolicy;
use mcp_vary_gateway::Naming;
use mcp_vary_gateway::settings::access::AccessSettings;
use proptest::prelude::ProptestConfig;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tokio::task::{JoinError, JoinSet};

use self::case::{Case, Item, Items, Kind, SERVERS, Step, mark, possible};
use self::servers::{GATEWAY, SERVER, Servers, State};
use super::groups::{bearer, key_with};
use crate::support::*;

/// The name of the key of the client over HTTP.
const KEY: &str = "ann";

/// The gateway that sees all items and has the rules, and the one whose servers never had what they hide.
const GATEWAYS: [&str; 2] = ["restricted", "unrestricted"];

/// The cases of one seed. If the gateway names a hidden replacement, or hidden variants in an error, one case in ten has a
/// difference; if it counts hidden variants among those that there are, more than half of them; if a hidden server takes a
/// name from one that is shown, one in a hundred.
const CASES: usize = 150;

/// The seed of the cases in every run.
const SEED: u8 = 1;

/// The cases of each seed before a release.
const CASES_BEFORE_A_RELEASE: usize = 400;

/// The seeds of the cases before a release, 4,000 in all: every other one changes no list, and compares statuses, too.
const SEEDS_BEFORE_A_RELEASE: RangeInclusive<u8> = 2..=11;

/// The cases that run at the same time: a list that changes is read once a second.
const AT_ONCE: usize = 48;

/// How long a mark may take on a busy machine.
const MARK_LIMIT: Duration = Duration::from_secs(40);

/// A gateway before the servers with the items of `name`, whose client on pipes is bound by `policy`.
async fn gateway(
    server: &ScriptedServer,
    name: &str,
    case: &Case,
    policy: AccessPolicy,
) -> Arc<Gateway> {
    let servers = SERVERS.iter().take(case.servers).map(|at| {
        let mut headers = HeaderMap::new();
        headers.insert(GATEWAY, name.parse().unwrap());
        headers.insert(SERVER, at.parse().unwrap());
        let url = server.url.clone();
        let mut server = UpstreamConfig::new(*at, Target::Http { url, headers });
        // However slow the machine, clients wait until the lists are there.
        server.limits.ready_timeout = Duration::from_secs(60);
        server
    });
    let servers: Vec<_> = servers.collect();
    let environment = Environment::new(|| 1_000_000, |bytes| bytes.fill(7));
    let config = Config::new(servers[0].clone(), environment);
    let config = config.with_limits(limits()).with_key([3; 32]);
    let mut config = config.with_page_size(NonZeroUsize::new(case.page).unwrap());
    config.servers = servers;
    if case.shares_names {
        config = config.with_naming(Naming::Never);
    }
    let variants = case.variants(name == GATEWAYS[0]);
    config = config.with_variants_of(variants).unwrap();
    config.stdio_principal = Some(Arc::new(case.principal()));
    config.authentication = Some(key_with(KEY, case.claims()));
    config.access = Some(AccessSettings {
        policy: Arc::new(policy),
        trusted_annotations: Arc::default(),
    });
    Gateway::start(config).await.unwrap()
}

/// What a client asks that knows every name there could be. Each of the two clients asks for half of the items.
fn questions(case: &Case, is_modern: bool) -> Vec<(&'static str, Value)> {
    let lists = "tools/list resources/list resources/templates/list prompts/list".split(' ');
    let mut all: Vec<_> = lists.map(|list| (list, json!({}))).collect();
    let skipped = usize::from(case.is_even_legacy == is_modern);
    for item in possible(case.servers).skip(skipped).step_by(2) {
        let argument = json!({"name": "x", "value": ""});
        let completion = |reference: Value| {
            let params = json!({"ref": reference, "argument": argument});
            ("completion/complete", params)
        };
        let id = item.id(case.is_prefixed());
        match item.kind {
            Kind::Tool => all.push(("tools/call", tool(&id))),
            Kind::Prompt => {
                all.push(("prompts/get", json!({"name": id})));
                all.push(completion(json!({"type": "ref/prompt", "name": id})));
            }
            Kind::Resource | Kind::Shared | Kind::Mark => {
                all.push(("resources/read", json!({"uri": item.uri()})));
            }
            Kind::Template => {
                all.push(("resources/read", json!({"uri": item.uri()})));
                all.push(completion(json!({"type": "ref/resource", "uri": id})));
            }
        }
    }
    let questions = all.into_iter();
    let questions = questions.map(|(method, params)| (method, under(case.variant, params)));
    questions.collect()
}

/// A client on pipes, and every message that it got.
struct Client {
    pipe: StdioPipe,
    is_modern: bool,
    /// The id of the last request.
    last: u64,
    received: Vec<String>,
    /// Updates of marks that say only that something may have changed, as after a stream was opened again.
    unnumbered: usize,
}

impl Client {
    async fn legacy(gateway: &Arc<Gateway>) -> Self {
        let pipe = legacy_pipe(gateway, "2025-11-25", &declaring_variants()).await;
        Self::on(pipe, false)
    }

    fn on(pipe: StdioPipe, is_modern: bool) -> Self {
        Self {
            pipe,
            is_modern,
            last: 0,
            received: Vec::new(),
            unnumbered: 0,
        }
    }

    /// Sends a request, records all that arrives until its response, and returns that.
    async fn record(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"]["progressToken"] = json!("p");
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        self.last += 1;
        let id = json!(self.last);
        let message = if self.is_modern {
            modern(id, method, params, &json!({}))
        } else {
            request(id, method, params)
        };
        let sent = format!("{method} {}", message["params"]);
        self.received.push(sent);
        self.pipe.send(message.to_string()).await;
        loop {
            let message = self.receive().await;
            if message["id"] == self.last {
                return message;
            }
        }
    }

    /// Records the responses for all pages.
    async fn record_pages(&mut self, method: &str, mut params: Value) {
        loop {
            let response = self.record(method, params.clone()).await;
            match &response["result"]["nextCursor"] {
                Value::Null => return,
                cursor => params["cursor"] = cursor.clone(),
            }
        }
    }

    /// Receives the next message. The server sends an update on each of its streams that overlap, so the client can
    /// receive it twice; the second one is not recorded.
    async fn receive(&mut self) -> Value {
        let line = self.pipe.line().await;
        let message: Value = serde_json::from_str(&line).unwrap();
        let is_repeated = message["params"]["x-step"].is_u64() && self.received.contains(&line);
        if !is_repeated {
            self.received.push(line);
        }
        message
    }

    /// Subscribes to all lists, and to all resources there could be.
    async fn subscribe(&mut self, case: &Case) {
        let has_uri =
            |item: &Item| matches!(item.kind, Kind::Resource | Kind::Shared | Kind::Template);
        let items = possible(case.servers).filter(has_uri);
        let uris = items.map(|item| item.uri());
        let uris: Vec<String> = uris.chain((0..case.servers).map(mark)).collect();
        if self.is_modern {
            let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
            let params = under(case.variant, json!({"notifications": everything(&uris)}));
            let listen = modern(json!("listen"), "subscriptions/listen", params, &json!({}));
            self.pipe.send(listen.to_string()).await;
            self.receive().await;
            return;
        }
        for uri in uris {
            let params = under(case.variant, json!({"uri": uri}));
            self.record("resources/subscribe", params).await;
        }
    }

    /// Receives everything up to the update of the mark in this step, or says that it does not arrive.
    async fn receive_until(&mut self, server: usize, step: usize) -> Result<(), String> {
        let arrival = tokio::time::timeout(MARK_LIMIT, self.receive_mark(server, step));
        if arrival.await.is_ok() {
            return Ok(());
        }
        let last = &self.received[self.received.len().saturating_sub(5)..];
        Err(format!(
            "no update of the mark of server {server} in step {step}; modern: {}; updates of marks without a number: {}; \
             the last messages: {last:#?}",
            self.is_modern, self.unnumbered
        ))
    }

    /// Updates of marks can arrive twice.
    async fn receive_mark(&mut self, server: usize, step: usize) {
        let mark = mark(server);
        loop {
            let message = self.receive().await;
            let params = &message["params"];
            let uri = params["uri"].as_str().unwrap_or_default();
            if uri.starts_with("end:") {
                self.received.pop();
                self.unnumbered += usize::from(params["x-step"].is_null());
                if params["uri"] == mark && params["x-step"] == step {
                    return;
                }
            }
        }
    }
}

/// Asks everything in both eras.
async fn ask_all(gateway: &Arc<Gateway>, case: &Case) -> [Client; 2] {
    let modern = Client::on(open_pipe(gateway), true);
    let mut clients = [Client::legacy(gateway).await, modern];
    clients[1].record("server/discover", json!({})).await;
    for client in &mut clients {
        for (method, params) in questions(case, client.is_modern) {
            client.record_pages(method, params).await;
        }
    }
    clients
}

/// Lets a step happen at the servers of a gateway, which had the items `before` and have `after` then.
///
/// Servers announce the changes of what they have: without hidden items nothing announces their changes.
fn perform(state: &mut State, step: &Step, number: usize, (shows, after): (bool, Items)) {
    let item = step.item();
    state.items = after;
    match step {
        Step::Update(_) if shows => state.update(item.server, &item.uri(), number),
        Step::Toggle(_) | Step::Describe(_) | Step::Announce(_) if shows => {
            state.announce(item.server, item.kind.list());
        }
        _ => {}
    }
}

/// The items after a step.
fn items_after(step: &Step, mut items: Items) -> Items {
    match step {
        Step::Toggle(item) => {
            if items.remove(item).is_none() {
                items.insert(*item, 0);
            }
        }
        Step::Describe(item) => {
            items.entry(*item).and_modify(|described| *described += 1);
        }
        Step::Announce(_) | Step::Update(_) => {}
    }
    items
}

/// The notifications of all steps, after everything there could be was subscribed to. An error says which mark did not
/// arrive.
async fn change_all(
    servers: &Servers,
    case: &Case,
    clients: &mut [[Client; 2]; 2],
) -> Result<(), String> {
    for (gateway, clients) in GATEWAYS.iter().zip(&mut *clients) {
        for client in clients {
            client.subscribe(case).await;
        }
        servers.wait_until_subscribed(gateway).await;
    }
    let mut items = case.items.clone();
    for (number, step) in case.steps.iter().enumerate() {
        items = items_after(step, items);
        let server = step.item().server;
        for (at, gateway) in GATEWAYS.into_iter().enumerate() {
            let (shows, after) = match at {
                0 => (true, items.clone()),
                // Whatever a server announces without a change of its lists may be about what is hidden.
                _ => (
                    case.shows(step.item()) && !matches!(step, Step::Announce(_)),
                    case.visible(&items),
                ),
            };
            servers.with(gateway, |state| {
                perform(state, step, number, (shows, after))
            });
            servers.wait_until_read(gateway).await;
            servers.with(gateway, |state| state.update(server, &mark(server), number));
        }
        for (gateway, clients) in GATEWAYS.iter().zip(&mut *clients) {
            for client in clients {
                let received = client.receive_until(server, number).await;
                received.map_err(|lost| {
                    let streams = servers.with(gateway, |state| state.streams_of(server));
                    format!("{gateway}: {lost}\nthe streams of the server: {streams:#?}")
                })?;
            }
        }
    }
    Ok(())
}

/// What a client over HTTP gets that tries every method: the status, and the body.
async fn statuses(gateway: &Arc<Gateway>) -> Vec<String> {
    const METHODS: &str = "server/discover tools/list resources/list resources/templates/list prompts/list \
        resources/read resources/subscribe prompts/get completion/complete logging/setLevel tasks/list tasks/get \
        com.example/one x/y";
    let (address, stop) = serve(gateway).await;
    let mut http = RawHttp::connect(address).await;
    let key = bearer(KEY);
    let opening = HttpRequest::initialize(&declaring_variants());
    let opened = http.ask(&opening.with("Authorization", &*key)).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut all = vec![format!("initialize: {} {}", opened.status, opened.text())];
    for method in METHODS.split(' ') {
        let params = json!({
            "uri": "nix:1", "name": "nix", "level": "debug", "taskId": "t",
            "ref": {"type": "ref/prompt", "name": "nix"}, "argument": {"name": "x", "value": ""},
        });
        let legacy = request(json!(1), method, params.clone()).to_string();
        let modern = HttpRequest::modern_request(method, params);
        for post in [HttpRequest::of(&session, legacy), modern] {
            let answer = http.ask(&post.with("Authorization", &*key)).await;
            all.push(format!("{method}: {} {}", answer.status, answer.text()));
        }
    }
    stop.cancel();
    all
}

/// The first message that differs. An error says which mark did not arrive.
async fn difference(case: &Case) -> Result<Option<String>, String> {
    let servers = Servers::new(case, GATEWAYS);
    let server = servers.start().await;
    let restricted = gateway(&server, GATEWAYS[0], case, case.policy()).await;
    let unrestricted = case.policy_without_hidden();
    let unrestricted = gateway(&server, GATEWAYS[1], case, unrestricted).await;
    let mut clients = [
        ask_all(&restricted, case).await,
        ask_all(&unrestricted, case).await,
    ];
    if !case.steps.is_empty() {
        change_all(&servers, case, &mut clients).await?;
    }
    let [one, other] = clients;
    let (mut with_rules, mut without) = if case.steps.is_empty() {
        (statuses(&restricted).await, statuses(&unrestricted).await)
    } else {
        // Each server shows, by its mark.
        (Vec::new(), Vec::new())
    };
    for (one, other) in one.into_iter().zip(other) {
        with_rules.extend(one.received);
        without.extend(other.received);
    }
    restricted.close().await;
    unrestricted.close().await;
    let both = with_rules.iter().zip(&without);
    let other = both.clone().find(|(one, other)| one != other);
    Ok(match other {
        Some((one, other)) => Some(format!("with rules: {one}\nwithout:    {other}")),
        None if with_rules.len() != without.len() => Some(format!(
            "{} messages and {}",
            with_rules.len(),
            without.len()
        )),
        None => None,
    })
}

/// The difference in each case of a seed that has one, with the size of the case. A case that panics is one, too.
async fn differences(seed: u8, cases: usize) -> Vec<(usize, String)> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let mut new_case = move || case::case().new_tree(&mut runner).unwrap().current();
    let (mut running, mut failed) = (JoinSet::new(), Vec::new());
    for number in 0..cases + AT_ONCE {
        if number < cases {
            let case = new_case();
            running.spawn(async move {
                let found = difference(&case).await.unwrap_or_else(Some);
                found.map(|difference| (case.size(), format!("{case:#?}\n{difference}")))
            });
        }
        if number >= AT_ONCE {
            let panicked = |error: JoinError| Some((usize::MAX, error.to_string()));
            failed.extend(running.join_next().await.unwrap().unwrap_or_else(panicked));
        }
    }
    failed
}

/// The number of cases of each seed that have a difference, with the smallest one.
fn failures(seeds: RangeInclusive<u8>, cases: usize) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let failures = seeds.filter_map(|seed| {
        let failed = runtime.block_on(differences(seed, cases));
        let count = failed.len();
        let (_, smallest) = failed.into_iter().min()?;
        Some(format!(
            "{count} cases of seed {seed}, of which the smallest is {smallest}"
        ))
    });
    failures.collect()
}

#[test]
fn nobody_learns_what_is_hidden() {
    let failures = failures(SEED..=SEED, CASES);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "takes minutes: `cargo xtask test-extra properties` runs it"]
fn nobody_learns_what_is_hidden_in_4000_more_cases() {
    let failures = failures(SEEDS_BEFORE_A_RELEASE, CASES_BEFORE_A_RELEASE);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
