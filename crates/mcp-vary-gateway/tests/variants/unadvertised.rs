//! Variants that a client may select although there are too many to offer them all.

use crate::support::*;

const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const LEGACY: [ClientKind; 2] = [ClientKind::HttpLegacy, ClientKind::StdioLegacy];

fn six(config: Config) -> Config {
    let variants = SIX.map(variant).to_vec();
    config.with_variants_of(variants).unwrap()
}

/// The methods that run under a variant, and what the server of these tests is asked by them.
fn methods() -> Vec<(&'static str, Value)> {
    vec![
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "first", "arguments": {}})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "note:a"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "greet"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}}),
        ),
        ("resources/subscribe", json!({"uri": "note:a"})),
    ]
}

/// The variants in the next `count` notifications of the client.
async fn next_changes(client: &mut NotificationClient, count: usize) -> Vec<String> {
    let mut variants = Vec::new();
    for _ in 0..count {
        let (list, variant, _) = soon(client.change()).await;
        assert_eq!(list, "tools/list_changed");
        variants.push(variant.unwrap());
    }
    variants.sort();
    variants
}

/// SV-16: a client that uses a variant is notified of its changes, with any method that selects it; other clients are not.
#[tokio::test]
async fn who_selects_a_variant_that_was_not_offered_is_notified_of_its_changes() {
    for way in LEGACY {
        let stage = ChangingServer::new(Era::Legacy);
        let changes = json!({"listChanged": true});
        stage.declare(json!({
            "tools": changes, "prompts": changes, "completions": {},
            "resources": {"listChanged": true, "subscribe": true},
        }));
        let harness = Harness::changing_with(&stage, six).await;
        let mut others = listening(&harness, way, &[]).await;
        let mut clients = Vec::new();
        for (method, params) in methods() {
            let mut client = listening(&harness, way, &[]).await;
            let answer = soon(client.ask(method, under("f", params))).await;
            assert_ne!(answer["error"]["data"]["requestedVariant"], "f", "{method}");
            clients.push((method, client));
        }
        stage.set_tools(&["first", "second"]);
        stage.notify_list_changed("tools");
        for (method, client) in &mut clients {
            assert_eq!(next_changes(client, 6).await, SIX, "{way:?} {method}");
        }
        assert_eq!(next_changes(&mut others, 5).await, SIX[..5], "{way:?}");
        // Nothing more has come for the others before this.
        stage.set_prompts(&["greet", "part"]);
        stage.notify_list_changed("prompts");
        let expected = changed("prompts", "a");
        assert_eq!(soon(others.change()).await, expected, "{way:?}");
    }
}

/// What was selected before there was a stream counts, too.
#[tokio::test]
async fn what_was_selected_before_the_stream_was_opened_is_notified_of() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing_with(&stage, six).await;
    let mut client = listening(&harness, ClientKind::HttpLegacy, &[]).await;
    client.close_stream();
    soon(client.ask("tools/list", under("f", json!({})))).await;
    client.open_stream(&harness).await;
    stage.set_tools(&["first", "second"]);
    stage.notify_list_changed("tools");
    assert_eq!(next_changes(&mut client, 6).await, SIX);
}

/// SV-16: a modern client that listens in such a variant is notified of it alone.
#[tokio::test]
async fn a_modern_client_is_notified_of_the_variant_in_which_it_listens() {
    for era in [Era::Legacy, Era::Modern] {
        for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
            let stage = ChangingServer::new(era);
            let harness = Harness::changing_with(&stage, six).await;
            let mut client =
                NotificationClient::listening(&harness, way, everything(&[]), Some("f")).await;
            stage.set_tools(&["first", "second"]);
            stage.notify_list_changed("tools");
            assert_eq!(next_changes(&mut client, 1).await, ["f"], "{era:?} {way:?}");
        }
    }
}

/// SV-16: a reload is a change like any other.
#[tokio::test]
async fn after_a_reload_who_selected_a_variant_is_notified_of_it() {
    for way in LEGACY {
        let stage = ChangingServer::new(Era::Legacy);
        let harness = Harness::changing_with(&stage, six).await;
        let mut client = listening(&harness, way, &[]).await;
        let mut other = listening(&harness, way, &[]).await;
        soon(client.ask("tools/list", under("f", json!({})))).await;
        let next = |is_cut| {
            let mut variants = SIX.map(variant).to_vec();
            if is_cut {
                variants[5].tools = serde_json::from_value(json!({"include": ["none"]})).unwrap();
            }
            let next = config(Target::http(harness.peer.url.clone()));
            next.with_variants_of(variants).unwrap()
        };
        for is_cut in [true, false] {
            harness.reload(next(is_cut)).await;
            assert_eq!(next_changes(&mut client, 1).await, ["f"], "{way:?}");
        }
        stage.set_tools(&["first", "second"]);
        stage.notify_list_changed("tools");
        assert_eq!(next_changes(&mut client, 6).await, SIX, "{way:?}");
        assert_eq!(next_changes(&mut other, 5).await, SIX[..5], "{way:?}");
    }
}
