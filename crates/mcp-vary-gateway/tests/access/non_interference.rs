//! Non-interference: every answer is that of a gateway whose servers never had what is hidden.
//!
//! For generated catalogues and rules, two gateways with the same keys, clock and randomness stand before the same
//! server: one sees all items and has the rules, the other sees only what they show, and allows everything. All
//! answers are compared byte for byte, in both eras.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use mcp_vary_access::{AccessPolicy, AccessRule, Claims, ItemPattern, Principal, When};
use mcp_vary_gateway::settings::access::AccessSettings;
use mcp_vary_gateway::{Config, Environment, Gateway, Target, UpstreamConfig};
use mcp_vary_testkit::message::{modern, request, under};
use mcp_vary_testkit::scripted_server::{ReceivedRequest, Reply, ScriptedServer};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::groups::named;
use crate::support::{limits, open_pipe};

/// The names of items of each kind, of which a catalogue has some.
const NAMES: [&str; 5] = ["aa", "ab", "ba", "bb", "c"];

/// Patterns of rules. A star is at the end only, so that what they match is plain.
const PATTERNS: [&str; 14] = [
    "*", "t_*", "t_a*", "t_ab", "t_b*", "p_*", "p_b*", "p_c", "r:*", "r:a*", "r:bb", "u:*", "u:b*",
    "nix",
];

/// A catalogue: the names of its items, each with the prefix of its kind.
type Items = Vec<String>;

#[derive(Clone, Debug)]
struct Case {
    items: Items,
    /// The allowing and denying patterns of each rule that applies.
    rules: Vec<(Vec<&'static str>, Vec<&'static str>)>,
    page: usize,
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    vec(proptest::sample::select(&PATTERNS[..]), 0..=most)
}

fn case() -> impl Strategy<Value = Case> {
    let of_kind = |prefix: &'static str| {
        let names = btree_set(proptest::sample::select(&NAMES[..]), 0..=NAMES.len());
        names.prop_map(move |names| names.iter().map(|name| format!("{prefix}{name}")).collect())
    };
    let items = ["t_", "p_", "r:", "u:"].map(of_kind);
    let rule = (patterns(3), patterns(1)).prop_filter("it does something", |(allow, deny)| {
        !allow.is_empty() || !deny.is_empty()
    });
    (items, vec(rule, 1..3), 1_usize..4).prop_map(|(items, rules, page)| {
        let items: Vec<Items> = items.into();
        Case {
            items: items.concat(),
            rules,
            page,
        }
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

impl Case {
    /// What the rules show, by another implementation than the gateway's.
    fn visible(&self) -> Items {
        let one = |all: &[&str], name: &str| all.iter().any(|pattern| matches(pattern, name));
        let is_allowed = |name: &str| self.rules.iter().any(|(allow, _)| one(allow, name));
        let is_denied = |name: &str| self.rules.iter().any(|(_, deny)| one(deny, name));
        let items = self.items.iter();
        items
            .filter(|name| is_allowed(name) && !is_denied(name))
            .cloned()
            .collect()
    }

    fn policy(&self) -> AccessPolicy {
        let all = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| named(text))
                .collect::<Vec<ItemPattern>>()
        };
        let rules = self.rules.iter().map(|(allow, deny)| {
            let rule = AccessRule::new(When::anyone());
            rule.with_allow(all(allow)).with_deny(all(deny))
        });
        AccessPolicy::new(rules).unwrap()
    }
}

/// The server of all gateways. A header says which catalogue it has for a gateway.
#[derive(Clone, Default)]
struct Catalogues(Arc<Mutex<BTreeMap<String, Items>>>);

const CATALOGUE: &str = "x-catalogue";

impl Catalogues {
    fn answer(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let all = self.0.lock().unwrap();
        let items = all.get(seen.header(CATALOGUE)?)?;
        let of = |prefix: &str, make: fn(&String) -> Value| {
            let its = items.iter().filter(|name| name.starts_with(prefix));
            its.map(make).collect::<Vec<_>>()
        };
        let params = &seen.body["params"];
        // What it does not have it refuses in words of its own, so that a request for what is hidden would be seen.
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let reference = &params["ref"];
        let named = text(&params["name"])
            .or(text(&params["uri"]))
            .or(text(&reference["name"]))
            .or(text(&reference["uri"]));
        let named = named.map(|named| named.split('/').next().unwrap_or_default().to_owned());
        if named.is_some_and(|named| !items.contains(&named)) {
            return Some(seen.refuse(200, -32602, "the server does not have it"));
        }
        let result = match seen.method() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {
                    "tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {},
                    "completions": {},
                },
            }),
            "tools/list" => json!({"tools": of("t_", |name| json!({
                "name": name, "description": "Does it. Well.", "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": name.ends_with('a')},
            }))}),
            "prompts/list" => json!({"prompts": of("p_", |name| json!({"name": name}))}),
            "resources/list" => {
                json!({"resources": of("r:", |uri| json!({"uri": uri, "name": "r"}))})
            }
            "resources/templates/list" => json!({"resourceTemplates": of("u:", |uri| json!({
                "uriTemplate": format!("{uri}/{{x}}"), "name": "u",
            }))}),
            "tools/call" => json!({"content": [], "said": params["name"]}),
            "prompts/get" => json!({"messages": [], "said": params["name"]}),
            "resources/read" => json!({"contents": [], "said": params["uri"]}),
            "completion/complete" => json!({"completion": {"values": []}, "said": params["ref"]}),
            _ => return None,
        };
        Some(seen.answer(&result))
    }
}

/// A gateway before the catalogue `name`, whose client on pipes is bound by `policy`.
async fn gateway(
    server: &ScriptedServer,
    name: &str,
    case: &Case,
    policy: AccessPolicy,
) -> Arc<Gateway> {
    let mut headers = HeaderMap::new();
    headers.insert(CATALOGUE, name.parse().unwrap());
    let target = Target::Http {
        url: server.url.clone(),
        headers,
    };
    let environment = Environment::new(|| 1_000_000, |bytes| bytes.fill(7));
    let config = Config::new(UpstreamConfig::new("peer", target), environment);
    let config = config.with_limits(limits()).with_key([3; 32]);
    let mut config = config.with_page_size(NonZeroUsize::new(case.page).unwrap());
    config.stdio_principal = Some(Arc::new(
        Principal::stdio("ann", Claims::default()).unwrap(),
    ));
    config.access = Some(AccessSettings {
        policy: Arc::new(policy),
        trusted_annotations: Arc::default(),
    });
    Gateway::start(config).await.unwrap()
}

/// What a client asks that knows every name there could be.
fn questions() -> Vec<(&'static str, Value)> {
    let mut all = vec![("server/discover", json!({}))];
    for variant in ["standard", "compact", "read-only"] {
        for list in [
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
        ] {
            all.push((list, under(variant, json!({}))));
        }
        for name in NAMES.into_iter().chain(["nix"]) {
            let tool = json!({"name": format!("t_{name}"), "arguments": {}});
            all.push(("tools/call", under(variant, tool)));
        }
    }
    for name in NAMES.into_iter().chain(["nix"]) {
        all.push(("prompts/get", json!({"name": format!("p_{name}")})));
        for uri in [format!("r:{name}"), format!("u:{name}/5")] {
            all.push(("resources/read", json!({"uri": uri})));
        }
        let argument = json!({"name": "x", "value": ""});
        for reference in [
            json!({"type": "ref/prompt", "name": format!("p_{name}")}),
            json!({"type": "ref/resource", "uri": format!("u:{name}/{{x}}")}),
        ] {
            let params = json!({"ref": reference, "argument": argument});
            all.push(("completion/complete", params));
        }
    }
    all
}

/// All answers of a gateway, with the lists page by page, in both eras.
async fn answers(gateway: &Arc<Gateway>) -> Vec<String> {
    let mut all = Vec::new();
    let mut pipe = open_pipe(gateway);
    for (method, params) in questions() {
        let mut params = params;
        loop {
            let message = modern(json!(1), method, params.clone(), &json!({}));
            pipe.send(message.to_string()).await;
            let answer = pipe.line().await;
            let parsed: Value = serde_json::from_str(&answer).unwrap();
            all.push(format!("{method} {params} {answer}"));
            match &parsed["result"]["nextCursor"] {
                Value::Null => break,
                cursor => params["cursor"] = cursor.clone(),
            }
        }
    }
    let pipe = open_pipe(gateway);
    let mut pipe = pipe.initialize("2025-11-25", &json!({})).await;
    for (method, params) in questions().into_iter().skip(1) {
        pipe.send(request(json!(1), method, params.clone()).to_string())
            .await;
        all.push(format!("{method} {params} {}", pipe.line().await));
    }
    all
}

fn allowing_all() -> AccessPolicy {
    AccessPolicy::new([AccessRule::new(When::anyone()).with_allow([named("*")])]).unwrap()
}

#[test]
fn nobody_learns_what_is_hidden() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let catalogues = Catalogues::default();
    let script = catalogues.clone();
    let server = runtime.block_on(ScriptedServer::start(move |seen| script.answer(seen)));
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(case in case())| {
        let catalogue = |name: &str, items: Items| {
            catalogues.0.lock().unwrap().insert(name.to_owned(), items);
        };
        catalogue("whole", case.items.clone());
        catalogue("visible", case.visible());
        let (with_rules, without) = runtime.block_on(async {
            let restricted = gateway(&server, "whole", &case, case.policy()).await;
            let with_rules = answers(&restricted).await;
            let open = gateway(&server, "visible", &case, allowing_all()).await;
            let without = answers(&open).await;
            restricted.close().await;
            open.close().await;
            (with_rules, without)
        });
        for (one, other) in std::iter::zip(&with_rules, &without) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(with_rules.len(), without.len());
    });
}

/// Each asks about a hundred questions of both gateways.
const CASES: u32 = 200;
