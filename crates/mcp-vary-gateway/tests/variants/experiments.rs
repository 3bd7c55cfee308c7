//! SV-24: experiments assign clients to arms, count what comes of it, and override nothing.

use mcp_vary::variant::Status;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_experiment::{Arm, Experiment, Metric};
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_gateway::settings::experiments::ExperimentConfig;

use crate::support::people::{bearer, key, key_entry};
use crate::support::*;

const SERVER_VARIANTS: &str = "io.modelcontextprotocol/server-variants";
const PEOPLE: usize = 24;

fn name(person: usize) -> String {
    format!("person-{person}")
}

fn everybody() -> Authentication {
    let entries = (0..PEOPLE).map(|person| key_entry(&name(person), Claims::default()));
    let keys = KeyTable::new(entries.collect()).unwrap();
    Authentication::new(keys, None, true).unwrap()
}

/// Half of the clients.
fn arm(variant: &str) -> Arm {
    Arm {
        variant: variant.to_owned(),
        weight: 50,
    }
}

/// Standard words against an experimental variant, half of the clients each.
fn words() -> ExperimentConfig {
    ExperimentConfig {
        experiment: Experiment::new("words", vec![arm("standard"), arm("verbose")]).unwrap(),
        salt: Some("a text".to_owned()),
        opt_in: Some("com.acme/experimentOptIn".to_owned()),
        opt_out: Some("com.acme/experimentExclude".to_owned()),
        kind: Some("latency-sensitive".to_owned()),
        metric: Metric::Failed,
        effect: 0.05,
    }
}

fn variants() -> Vec<VariantConfig> {
    let variant = |id: &str| ServerVariant::new(id.parse().unwrap(), "");
    let mut verbose = variant("verbose");
    verbose.status = Status::Experimental;
    let all = [variant("standard"), verbose, variant("other")];
    all.map(VariantConfig::new).into()
}

fn adapt(config: Config) -> Config {
    let mut config = config.with_variants_of(variants()).unwrap();
    config.authentication = Some(everybody());
    config.experiments = vec![words()];
    config
}

/// A gateway with the experiment, and these changes.
async fn adapted(edit: impl FnOnce(&mut Config)) -> Harness {
    Harness::before(Era::Modern, |config| edited(edit)(adapt(config))).await
}

/// What a client declares that is willing to take part, and says `more`.
fn willing(more: &Value) -> Value {
    let mut hints = json!({"com.acme/experimentOptIn": "true"});
    for (key, value) in more.as_object().unwrap() {
        hints[key] = value.clone();
    }
    declared(&hints)
}

fn declared(hints: &Value) -> Value {
    json!({"extensions": {SERVER_VARIANTS: {"variantHints": {"hints": hints}}}})
}

struct Client<'a> {
    harness: &'a Harness,
    person: Option<usize>,
    declared: Value,
}

impl Client<'_> {
    async fn post(&self, path: &str, post: HttpRequest) -> HttpResponse {
        let mut post = post.line(&format!("POST {path} HTTP/1.1"));
        if let Some(person) = self.person {
            post = bearer(post, &key(&name(person)));
        }
        let mut http = RawHttp::connect(self.harness.address()).await;
        http.ask(&post).await
    }

    async fn modern(&self, path: &str, method: &str, params: Value) -> Value {
        let message = modern(json!(1), method, params, &self.declared);
        self.post(path, HttpRequest::modern(&message)).await.json()
    }

    /// The first variant that the client is offered, and so its default.
    async fn variant(&self) -> String {
        first(&self.modern("/mcp", "server/discover", json!({})).await)
    }

    /// A session: its id and its default variant.
    async fn open(&self) -> (String, String) {
        let open = initialize("2025-11-25", &self.declared).to_string();
        let opened = self.post("/mcp", HttpRequest::new(open)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        (id, first(&opened.json()))
    }
}

fn first(answer: &Value) -> String {
    let variants =
        &answer["result"]["capabilities"]["extensions"][SERVER_VARIANTS]["availableVariants"];
    let id = variants[0]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn client(harness: &Harness, person: usize) -> Client<'_> {
    Client {
        harness,
        person: Some(person),
        declared: willing(&json!({})),
    }
}

async fn arms(harness: &Harness) -> Vec<String> {
    let mut arms = Vec::new();
    for person in 0..PEOPLE {
        arms.push(client(harness, person).variant().await);
    }
    arms
}

/// A person of each arm.
async fn one_of_each(harness: &Harness) -> [usize; 2] {
    let arms = arms(harness).await;
    ["standard", "verbose"].map(|arm| arms.iter().position(|it| it == arm).unwrap())
}

#[tokio::test]
async fn a_principal_gets_the_same_arm_in_both_eras_and_on_every_replica() {
    let (one, replica) = (adapted(|_| {}).await, adapted(|_| {}).await);
    let arms = arms(&one).await;
    let verbose = arms.iter().filter(|arm| *arm == "verbose").count();
    assert!((4..PEOPLE - 4).contains(&verbose), "{arms:?}");
    for (person, arm) in arms.iter().enumerate() {
        let there = client(&replica, person);
        assert_eq!(there.variant().await, *arm, "{person}");
        assert_eq!(there.open().await.1, *arm, "{person}");
    }
}

#[tokio::test]
async fn clients_without_a_principal_are_assigned_by_session_and_else_get_the_control() {
    let harness = adapted(|_| {}).await;
    let mut sessions = Vec::new();
    for _ in 0..PEOPLE {
        let mut anonymous = client(&harness, 0);
        anonymous.person = None;
        assert_eq!(anonymous.variant().await, "standard");
        sessions.push(anonymous.open().await.1);
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions, ["standard", "verbose"]);
}

#[tokio::test]
async fn only_clients_that_ask_for_experiments_get_an_experimental_arm() {
    let harness = adapted(|_| {}).await;
    let [_, verbose] = one_of_each(&harness).await;
    let opted_in = |to: &str| declared(&json!({"com.acme/experimentOptIn": to}));
    let without = |what: &str| willing(&json!({"com.acme/experimentExclude": what}));
    for (declares, variant) in [
        (json!({}), "standard"),
        (opted_in("false"), "standard"),
        (opted_in("words"), "verbose"),
        (without("latency-sensitive"), "standard"),
        (without("words"), "standard"),
        (without("destructive"), "verbose"),
    ] {
        let mut client = client(&harness, verbose);
        client.declared = declares.clone();
        assert_eq!(client.variant().await, variant, "{declares}");
    }
}

#[tokio::test]
async fn a_variant_that_is_named_wins() {
    let harness = adapted(|_| {}).await;
    let [standard, verbose] = one_of_each(&harness).await;
    let variant = async |person: usize, path: &str| {
        let client = client(&harness, person);
        first(&client.modern(path, "server/discover", json!({})).await)
    };
    assert_eq!(variant(verbose, "/mcp/v/standard").await, "standard");
    assert_eq!(variant(standard, "/mcp/v/verbose").await, "verbose");
    assert_eq!(variant(verbose, "/mcp/v/other").await, "other");
}

#[tokio::test]
async fn the_operators_default_wins() {
    let default = Some("other".parse().unwrap());
    let harness = adapted(|config| config.selection.default = default).await;
    assert!(arms(&harness).await.iter().all(|arm| arm == "other"));
}

/// The variant that a request of `client` ran under.
async fn active(client: &Client<'_>, params: Value, header: Option<&str>) -> String {
    let mut params = params;
    params["name"] = json!("nix");
    let message = modern(json!(1), "tools/call", params, &client.declared);
    let mut post = HttpRequest::modern(&message);
    if let Some(header) = header {
        post = post.with("MCP-Server-Variant", header);
    }
    let refused = client.post("/mcp", post).await.json();
    let active = refused["error"]["data"]["activeVariant"].as_str();
    active.unwrap_or_else(|| panic!("{refused}")).to_owned()
}

/// SV-24: a selector, a header, a rule for clients, access rules and their pins decide before any experiment.
#[tokio::test]
async fn an_experiment_overrides_nothing_that_names_a_variant() {
    let harness = adapted(|_| {}).await;
    let [_, verbose] = one_of_each(&harness).await;
    let willing = client(&harness, verbose);
    assert_eq!(active(&willing, json!({}), None).await, "verbose");
    let selected = under("other", json!({}));
    assert_eq!(active(&willing, selected, None).await, "other");
    assert_eq!(active(&willing, json!({}), Some("other")).await, "other");
    let access = |keys: &str| format!("access: [{{when: {{anyone: on}}, allow: [\"*\"], {keys}}}]");
    for (rules, expected) in [
        ("clients: [{variant: other}]".to_owned(), "other"),
        (access("variants: [standard, other]"), "standard"),
        (access("variant: other"), "other"),
        (access("variant: other, pin: on"), "other"),
    ] {
        let text = format!(
            "servers: {{a: {{command: x}}}}\nvariants: {{standard: {{}}, verbose: {{}}, other: {{}}}}\n{rules}"
        );
        let file = of_file(&text);
        let ruled = adapted(|config| {
            (config.access, config.selection) = (file.access, file.selection);
        })
        .await;
        let willing = client(&ruled, verbose);
        let got = active(&willing, json!({}), None).await;
        assert_eq!(got, expected, "{rules}");
        assert_eq!(willing.open().await.1, expected, "{rules}");
    }
}

/// SV-24: two experiments that share a control each count their own clients, in both eras.
#[tokio::test]
async fn experiments_that_share_an_arm_count_their_own_clients() {
    let mut stable = words();
    stable.experiment = Experiment::new("stable", ["standard", "other"].map(arm).into()).unwrap();
    stable.opt_in = None;
    let harness = adapted(|config| config.experiments.push(stable)).await;
    let list = || request(json!(2), "tools/list", json!({})).to_string();
    for person in 0..PEOPLE {
        // Nobody asks for the experimental arm of the first experiment.
        let mut silent = client(&harness, person);
        silent.declared = json!({});
        let (id, variant) = silent.open().await;
        silent.post("/mcp", HttpRequest::of(&id, list())).await;
        assert_eq!(silent.variant().await, variant, "the same arm in both eras");
        silent.modern("/mcp", "tools/list", json!({})).await;
        silent.person = None;
        let (id, _) = silent.open().await;
        silent.post("/mcp", HttpRequest::of(&id, list())).await;
    }
    let status = harness.gateway.status();
    let clients = [0, 1].map(|at| {
        let arms = &status.experiments[at].totals.arms;
        [0, 1].map(|arm| arms[arm].sums(Metric::Calls).n)
    });
    assert_eq!(clients[0], [0.0, 0.0], "{clients:?}");
    assert_eq!(clients[1].iter().sum::<f64>(), 2.0 * PEOPLE as f64);
    assert!(clients[1].iter().all(|count| *count >= 10.0), "{clients:?}");
}

/// The counts of both arms by a metric: numerator and denominator.
fn counts(harness: &Harness, metric: Metric) -> [(f64, f64); 2] {
    let status = harness.gateway.status();
    let arms = &status.experiments[0].totals.arms;
    [0, 1].map(|arm| {
        let sums = arms[arm].sums(metric);
        (sums.x, sums.n)
    })
}

#[tokio::test]
async fn calls_are_counted_for_the_arm_of_their_client() {
    let harness = adapted(|_| {}).await;
    let people = one_of_each(&harness).await;
    let call = |name: &str| json!({"name": name, "arguments": {"text": "x"}});
    for (person, tools) in people.into_iter().zip([&["say", "fail"][..], &["say"]]) {
        let client = client(&harness, person);
        for tool in tools {
            client.modern("/mcp", "tools/call", call(tool)).await;
        }
        // The same client in the other era.
        let (id, _) = client.open().await;
        let message = request(json!(2), "tools/call", call("say")).to_string();
        client.post("/mcp", HttpRequest::of(&id, message)).await;
    }
    assert_eq!(counts(&harness, Metric::Failed), [(1.0, 3.0), (0.0, 2.0)]);
    assert_eq!(counts(&harness, Metric::Calls), [(3.0, 1.0), (2.0, 1.0)]);
    let [(milliseconds, _), _] = counts(&harness, Metric::Duration);
    assert!(milliseconds > 0.0);
}

/// Else an arm whose descriptions keep its clients from calling anything would seem to have fewer clients.
#[tokio::test]
async fn a_client_that_only_lists_is_counted_once() {
    let harness = adapted(|_| {}).await;
    let [standard, _] = one_of_each(&harness).await;
    let client = client(&harness, standard);
    for _ in 0..2 {
        client.modern("/mcp", "tools/list", json!({})).await;
    }
    assert_eq!(counts(&harness, Metric::Calls), [(0.0, 1.0), (0.0, 0.0)]);
    assert_eq!(counts(&harness, Metric::Failed), [(0.0, 0.0), (0.0, 0.0)]);
}

#[tokio::test]
async fn calls_of_clients_that_do_not_take_part_are_not_counted() {
    let harness = adapted(|_| {}).await;
    let [_, verbose] = one_of_each(&harness).await;
    let before = counts(&harness, Metric::Calls);
    let call = json!({"name": "say", "arguments": {"text": "x"}});
    let mut silent = client(&harness, verbose);
    silent.declared = json!({});
    silent.modern("/mcp", "tools/call", call.clone()).await;
    let willing = client(&harness, verbose);
    willing.modern("/mcp/v/verbose", "tools/call", call).await;
    assert_eq!(counts(&harness, Metric::Calls), before);
}
