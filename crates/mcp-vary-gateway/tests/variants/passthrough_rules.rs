//! `passthrough`: what a file says of the variants of its servers, and the bounds of what servers offer.

use std::collections::BTreeSet;
use std::time::Instant;

use mcp_vary_upstream::Passthrough;

use super::passthrough::{answer, available_ids, from_file, passed_through, peer};
use crate::support::*;

/// A gateway in front of a server `crm` of the era, with these rules.
async fn ruled(is_modern: bool, rules: &str) -> Harness {
    let peer = peer(is_modern).await;
    let text = format!(
        "servers: {{crm: {{url: \"{}\", passthrough: on}}}}\nvariants: {{standard: {{}}, other: {{}}}}\n{rules}",
        peer.url
    );
    Harness::behind(peer, from_file(&text)).await
}

/// EXT-9, SV-8: a rule of `clients`, and `variant` for all clients, can name a variant of a server. One that the server does
/// not offer counts as not named.
#[tokio::test]
async fn rules_for_clients_name_variants_of_servers() {
    for is_modern in [false, true] {
        for (rules, expected) in [
            ("clients: [{variant: crm/human}]", "human"),
            ("variant: crm/agent", "agent"),
            ("clients: [{variant: crm/nix}]\nvariant: crm/agent", "agent"),
            ("clients: [{variant: crm/nix}]", "none"),
        ] {
            let harness = ruled(is_modern, rules).await;
            for way in ClientKind::ALL {
                let called = harness.ask(way, "tools/call", tool("list")).await;
                assert_eq!(texts(&called["result"]), [expected], "{way:?} {rules}");
            }
        }
    }
}

/// EXT-9, SV-11: a rule for results, resources or prompts applies in the variants of servers that it names.
#[tokio::test]
async fn rules_for_results_apply_in_the_variants_of_servers_that_they_name() {
    let rules = "results: [{variants: [crm/agent], for: everyone, text: Ruled.}]\n\
                 resources: [{variants: [crm/human], for: everyone, type: text/plain, template: Ruled.}]";
    let harness = ruled(true, rules).await;
    for way in ClientKind::ALL {
        for (variant, called, read) in [
            ("standard", "none", "none"),
            ("crm/agent", "Ruled.", "agent"),
            ("crm/human", "human", "Ruled."),
        ] {
            let ask = async |method: &str, params: Value| {
                let params = under(variant, params);
                harness.ask(way, method, params).await
            };
            let result = ask("tools/call", tool("list")).await;
            assert_eq!(texts(&result["result"]), [called], "{way:?} {variant}");
            let result = ask("resources/read", json!({"uri": "map://all"})).await;
            let text = &result["result"]["contents"][0]["text"];
            assert_eq!(*text, read, "{way:?} {variant}: {result}");
        }
    }
}

/// EXT-9, SV-20: access rules offer variants of servers by name. One that does not exist is nothing that clients can use.
#[tokio::test]
async fn access_rules_offer_variants_of_servers() {
    for (access, expected) in [
        ("variants: [crm/agent]", Some("agent")),
        (
            "variants: [standard, crm/human], variant: crm/human",
            Some("human"),
        ),
        ("variant: crm/agent, pin: on", Some("agent")),
        ("variants: [crm/nix]", None),
        ("variant: crm/nix, pin: on", None),
    ] {
        let rules = format!("access: [{{when: {{anyone: on}}, allow: [\"*\"], {access}}}]");
        let harness = ruled(true, &rules).await;
        for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
            let called = harness.ask(way, "tools/call", tool("list")).await;
            match expected {
                Some(expected) => {
                    assert_eq!(texts(&called["result"]), [expected], "{way:?} {access}");
                }
                None => assert!(called["error"].is_object(), "{way:?} {access}: {called}"),
            }
            let other = under("crm/old", tool("list"));
            let refused = harness.ask(way, "tools/call", other).await;
            assert!(refused["error"].is_object(), "{way:?} {access}: {refused}");
        }
    }
}

/// EXT-9: of each server at most 32 variants are offered, each on its own connection.
#[tokio::test]
async fn a_server_offers_at_most_32_variants() {
    let all: Vec<_> = (0..40).map(|n| json!({"id": format!("v{n}")})).collect();
    let peer = ScriptedServer::start(move |seen| answer(seen, true, &json!(all))).await;
    let config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    let harness = Harness::behind(peer, config).await;
    for (id, is_there) in [("crm/v31", true), ("crm/v32", false)] {
        let list = under(id, json!({}));
        let list = harness.ask_modern("tools/list", list).await;
        assert_eq!(list["result"].is_object(), is_there, "{id}: {list}");
    }
    let status = harness.status();
    assert_eq!(status["servers"].as_array().unwrap().len(), 33);
}

/// EXT-9: a server that offers other variants with each connection replaces the snapshot at most once a second.
#[tokio::test]
async fn variants_that_always_change_are_offered_once_a_second_at_most() {
    let count = AtomicUsize::new(0);
    let serve = move |seen: &ReceivedRequest| {
        let number = match seen.method() {
            "server/discover" => count.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        answer(seen, true, &json!([{"id": format!("v{number}")}]))
    };
    let peer = ScriptedServer::start(serve).await;
    let mut config = passed_through(before(&[("crm", &peer)]), Passthrough::default());
    // Each health check shows another handshake, which ends the connection.
    config.servers[0].limits.ping = Duration::from_millis(5);
    config.servers[0].limits.backoff = Duration::from_millis(5);
    config.servers[0].limits.max_backoff = Duration::from_millis(5);
    let harness = Harness::behind(peer, config).await;
    let mut offered = BTreeSet::new();
    let start = Instant::now();
    // On a busy machine, the lists of the new variants are waited for.
    while offered.len() < 3 && start.elapsed() < Duration::from_secs(60) {
        offered.insert(available_ids(&harness, &json!({})).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let most = 2 + start.elapsed().as_secs() as usize;
    let handshakes = harness.peer.of("server/discover").len();
    assert!(handshakes > 10, "{handshakes}");
    // At the start, and once a second.
    assert!((3..=most).contains(&offered.len()), "{offered:?}");
}

/// EXT-9: the log warns of each variant that the file names and that its server does not offer, when the server is connected
/// and when a file is reloaded, and of none whose server is not connected.
#[tokio::test]
async fn a_variant_that_rules_name_and_the_server_lacks_is_a_warning() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_gateway", Level::WARN);
    let crm = peer(true).await;
    let plain = ScriptedServer::start(|seen| answer(seen, true, &json!([]))).await;
    let silent = ScriptedServer::start(|_| Some(Reply::silence())).await;
    let file = |rules: &str| {
        let entry = |name: &str, server: &ScriptedServer| {
            format!("  {name}: {{url: \"{}\", passthrough: on}}\n", server.url)
        };
        let entries = [("crm", &crm), ("plain", &plain), ("silent", &silent)];
        let entries: String = entries.map(|(name, server)| entry(name, server)).concat();
        format!("servers:\n{entries}variants: {{standard: {{}}}}\nstart-wait: 1s\n{rules}")
    };
    let warnings = |log: &CapturedLog| {
        let mut said = log.take();
        said.retain(|line| line.contains("rules name"));
        said.dedup();
        said
    };
    let warning = |id: &str, server: &str, offered: &str| {
        format!(
            "WARN rules name a variant that its server does not offer; id={id}; server={server:?}; offered={offered:?}; "
        )
    };
    let all = "crm/agent crm/human crm/old";
    let rules = "clients: [{variant: crm/nix}]\nvariant: silent/agent\n\
                 results: [{variants: [crm/agent, plain/agent], for: everyone, text: Ruled.}]";
    let config = from_file(&file(rules));
    let harness = Harness::behind(ScriptedServer::start(|_| None).await, config).await;
    let expected = [
        warning("crm/nix", "crm", all),
        warning("plain/agent", "plain", ""),
    ];
    let mut said = BTreeSet::new();
    soon(async {
        while said.len() < expected.len() {
            said.extend(warnings(&log));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(said.iter().eq(&expected), "{said:?}");
    let access = "access: [{when: {anyone: on}, allow: ['*'], variant: crm/agnt, pin: on}]";
    let next = from_file(&file(access));
    harness.reload(next).await;
    assert_eq!(warnings(&log), [warning("crm/agnt", "crm", all)]);
}
