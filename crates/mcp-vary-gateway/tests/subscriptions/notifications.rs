//! Notifications of changes: their variant, the filter of the client, and the end of a stream.

mod announced;
mod hidden;
mod replaced;

use futures_util::future::join_all;
use mcp_vary_view::{ResourceOverride, Selection};

use crate::support::*;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const LEGACY: [ClientKind; 2] = [ClientKind::HttpLegacy, ClientKind::StdioLegacy];
const MODERN: [ClientKind; 2] = [ClientKind::HttpModern, ClientKind::StdioModern];

/// Every era of a server with every kind of client. A change takes a second, so the pairs are tested at the same time.
fn every_pair() -> impl Iterator<Item = (Era, ClientKind)> {
    ERAS.into_iter()
        .flat_map(|era| ClientKind::ALL.map(|client_kind| (era, client_kind)))
}

/// SV-16: a session hears which variants' lists changed, each with its variant and in its order, and of no other;
/// a stream hears of its own variant. `read-only` does not show the new tool, so that its list is as before.
#[tokio::test]
async fn a_change_of_a_list_is_told_with_the_variants_that_it_affects() {
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for name in ["added", "other"] {
            let mut subscriber =
                NotificationClient::listening(&harness, way, everything(&[]), Some("compact"))
                    .await;
            stage.set_tools(&["first", name]);
            stage.notify_list_changed("tools");
            let all = ["standard", "compact", "directory"];
            for variant in if way.is_modern() { &all[1..2] } else { &all } {
                let found = subscriber.change().await;
                assert_eq!(found, changed("tools", variant), "{era:?} {way:?}");
            }
            // The list is the new one by then.
            let listed = harness.ask(way, "tools/list", json!({})).await;
            listed.has("/result/tools/1/name", name);
            subscriber.close();
        }
    };
    join_all(every_pair().map(check)).await;
}

/// The server ends and begins anew.
async fn restart(harness: &mut Harness, server: &ChangingServer) {
    let other = ScriptedServer::start(|_| None).await;
    let gone = std::mem::replace(&mut harness.peer, other);
    harness.peer = server.restart_at(gone.stop().await).await;
}

/// What the gateway only suspects is told if it is so: a server that returns and lists the same is no news.
#[tokio::test]
async fn a_server_that_returns_as_it_was_is_not_told() {
    let stage = ChangingServer::new(Era::Modern);
    let mut harness = Harness::changing(&stage).await;
    let mut ears = Vec::new();
    for way in ClientKind::ALL {
        ears.push(listening(&harness, way, &[]).await);
    }
    restart(&mut harness, &stage).await;
    stage.wait_for_listener().await;
    stage.set_prompts(&["other"]);
    stage.notify_list_changed("prompts");
    for subscriber in &mut ears {
        assert_eq!(subscriber.change().await, changed("prompts", "standard"));
    }
}

/// EXT-3: where variants are off nothing is said of them.
#[tokio::test]
async fn without_variants_a_change_names_none() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing_with(&stage, |config| config.with_variants(false)).await;
    for (way, name) in ClientKind::ALL.into_iter().zip(["a", "b", "c", "d"]) {
        let mut subscriber = listening(&harness, way, &[]).await;
        stage.set_tools(&["first", name]);
        stage.notify_list_changed("tools");
        let told = subscriber.change().await;
        let expected = ("tools/list_changed".to_owned(), None, None);
        assert_eq!(told, expected, "{way:?}");
    }
}

/// SV-15: the acknowledgement comes first, and holds what exists in the variant of what was asked for.
#[tokio::test]
async fn a_stream_begins_with_what_it_will_tell_of() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        stage.refuse(&["note:b"]);
        let harness = Harness::changing(&stage).await;
        for way in MODERN {
            for [asked, expected] in rows(
                r#"
                {} | {}
                {"toolsListChanged": true, "x": 1} | {"toolsListChanged": true}
                {"promptsListChanged": false, "resourcesListChanged": true} | {"resourcesListChanged": true}
                {"resourceSubscriptions": ["note:a", "note:b", "note:all/7"]} | {"resourceSubscriptions": ["note:a", "note:all/7"]}
            "#,
            ) {
                let mut subscriber =
                    NotificationClient::open(&harness, way, cell(asked), Some("compact")).await;
                let meta = json!({VARIANT: "compact", SUBSCRIPTION: "listen"});
                let params = json!({"notifications": cell(expected), "_meta": meta});
                let method = "notifications/subscriptions/acknowledged";
                let told = subscriber.receive().await;
                assert_eq!(told, notification(method, params), "{era:?} {way:?}");
            }
        }
    }
}

/// SV-9, SV-15: a filter of wrong types, too many resources and a variant that does not exist are errors, and no
/// stream.
#[tokio::test]
async fn a_subscription_that_is_wrong_opens_no_stream() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing_edited(&stage, |config| config.limits.subscriptions = 1).await;
    for way in MODERN {
        for params in [
            json!({}),
            json!({"notifications": 7}),
            json!({"notifications": {"toolsListChanged": "yes"}}),
            json!({"notifications": {"resourceSubscriptions": ["note:a", "note:b"]}}),
            under("none", json!({"notifications": {}})),
        ] {
            let answer = harness.ask(way, "subscriptions/listen", params).await;
            answer.has("/error/code", -32602);
        }
    }
    for way in LEGACY {
        let params = json!({"notifications": {}});
        let answer = harness.ask(way, "subscriptions/listen", params).await;
        answer.has("/error/code", -32601);
    }
    for way in MODERN {
        let params = json!({"uri": "note:a"});
        let answer = harness.ask(way, "resources/subscribe", params).await;
        answer.has("/error/code", -32601);
    }
}

/// SV-15: what was not asked for is never sent.
#[tokio::test]
async fn a_stream_tells_of_what_was_asked_for_and_nothing_else() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for (way, name) in MODERN.into_iter().zip(["a", "b"]) {
            let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["note:b"]});
            let mut subscriber = NotificationClient::listening(&harness, way, filter, None).await;
            let mut all = listening(&harness, way, &["note:a"]).await;
            stage.set_tools(&["first", name]);
            stage.notify_list_changed("tools");
            assert_eq!(all.change().await, changed("tools", "standard"));
            stage.notify_updated("note:a");
            assert_eq!(all.change().await, updated("note:a", "standard"));
            stage.notify_updated("note:b");
            let expected = updated("note:b", "standard");
            assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        }
    }
}

/// A resource's change is carried as its server said it.
#[tokio::test]
async fn what_a_server_says_of_a_resource_arrives() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for way in ClientKind::ALL {
            let mut subscriber = listening(&harness, way, &["note:a"]).await;
            if !way.is_modern() {
                let params = json!({"uri": "note:a"});
                subscriber.succeeds("resources/subscribe", params).await;
            }
            stage.notify_updated("note:a");
            let told = subscriber.receive().await;
            let expected = json!({"n": 1.0});
            assert_eq!(told["params"]["x-vendor"], expected, "{era:?} {way:?}");
            assert_eq!(told["params"]["_meta"][VARIANT], "standard");
        }
    }
}

/// SV-14: a subscription belongs to the variant that it was made in.
#[tokio::test]
async fn a_subscription_is_bound_to_its_variant() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for way in LEGACY {
            let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
            let a = |variant: &str| under(variant, json!({"uri": "note:a"}));
            for _ in 0..2 {
                let params = a("compact");
                subscriber.succeeds("resources/subscribe", params).await;
            }
            let answer = subscriber.ask("resources/subscribe", a("standard")).await;
            answer.has("/error/code", -32602);
            let data = &answer["error"]["data"];
            data.has("/activeVariant", "standard");
            data.has("/subscribedVariant", "compact");
            stage.notify_updated("note:a");
            assert_eq!(subscriber.change().await, updated("note:a", "compact"));

            // Whatever is selected, and as often as one likes.
            for (method, variant) in [
                ("resources/unsubscribe", "standard"),
                ("resources/unsubscribe", "read-only"),
                ("resources/subscribe", "standard"),
            ] {
                subscriber.succeeds(method, a(variant)).await;
            }
            stage.notify_updated("note:a");
            assert_eq!(subscriber.change().await, updated("note:a", "standard"));
            let params = json!({"uri": "note:none"});
            subscriber.succeeds("resources/unsubscribe", params).await;
        }
    }
}

/// SV-14: what the server does not have is refused with the active variant, and not bound.
#[tokio::test]
async fn a_resource_that_is_not_there_cannot_be_subscribed_to() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        stage.refuse(&["note:none"]);
        let harness = Harness::changing(&stage).await;
        for way in LEGACY {
            let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
            for variant in ["compact", "standard"] {
                let params = under(variant, json!({"uri": "note:none"}));
                let answer = subscriber.ask("resources/subscribe", params).await;
                assert_eq!(answer["error"]["code"], -32602, "{era:?} {way:?} {answer}");
                answer.has("/error/data/activeVariant", variant);
            }
        }
    }
}

/// SV-14: what is gone is told once, as a changed list; then there is silence until it is back.
#[tokio::test]
async fn a_resource_that_is_gone_is_told_once() {
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscriber = listening(&harness, way, &["note:a", "note:b"]).await;
        let subscribe = |uri: &str| under("compact", json!({"uri": uri}));
        if !way.is_modern() {
            for uri in ["note:a", "note:b"] {
                subscriber.ask("resources/subscribe", subscribe(uri)).await;
            }
        }
        let (is_modern, standard) = (way.is_modern(), ["standard"].as_slice());
        let variant = if is_modern { "standard" } else { "compact" };
        // What was said before the list was read again may still come.
        stage.notify_updated("note:a");
        while subscriber.change().await != updated("note:a", variant) {}
        stage.set_resources(&["note:b"]);
        stage.notify_list_changed("resources");
        stage.notify_updated("note:a");
        stage.notify_updated("note:b");
        let all = ["standard", "compact", "directory", "read-only"];
        let all = if is_modern { standard } else { &all };
        for variant in all {
            let once = changed("resources", variant);
            assert_eq!(subscriber.change().await, once, "{era:?} {way:?}");
        }
        let last = updated("note:b", variant);
        assert_eq!(subscriber.change().await, last, "{era:?} {way:?}");
        stage.set_resources(&["note:a", "note:b"]);
        stage.notify_list_changed("resources");
        for variant in all {
            let back = changed("resources", variant);
            assert_eq!(subscriber.change().await, back, "{era:?} {way:?}");
        }
        stage.notify_updated("note:a");
        let again = updated("note:a", variant);
        assert_eq!(subscriber.change().await, again, "{era:?} {way:?}");
        if !is_modern {
            // It stands in the way of no other, and can still be ended.
            let params = subscribe("note:a");
            subscriber.succeeds("resources/unsubscribe", params).await;
        }
    };
    join_all(every_pair().map(check)).await;
}

/// One subscription at the server, however many clients there are, until the last one leaves.
#[tokio::test]
async fn a_server_is_subscribed_to_once() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let params = || json!({"uri": "note:a"});
    let mut one = NotificationClient::open(&harness, ClientKind::HttpLegacy, json!({}), None).await;
    let mut other =
        NotificationClient::open(&harness, ClientKind::StdioLegacy, json!({}), None).await;
    let modern = listening(&harness, ClientKind::HttpModern, &["note:a"]).await;
    one.ask("resources/subscribe", params()).await;
    other.ask("resources/subscribe", params()).await;
    assert_eq!(harness.peer.of("resources/subscribe").len(), 1);
    stage.notify_updated("note:a");
    for subscriber in [&mut one, &mut other] {
        assert_eq!(subscriber.change().await, updated("note:a", "standard"));
    }
    other.ask("resources/unsubscribe", params()).await;
    modern.close();
    one.ask("resources/unsubscribe", params()).await;
    let seen = harness.peer.wait_for("resources/unsubscribe", 1).await;
    assert_eq!(seen[0].body["params"]["uri"], "note:a");
    // A session that ends takes what it was subscribed to along.
    one.ask("resources/subscribe", params()).await;
    let legacy = one.session();
    let delete = HttpRequest::delete(&legacy);
    harness.connect().await.send(&delete.head()).await;
    harness.peer.wait_for("resources/unsubscribe", 2).await;
}

/// One stream at a modern server: replaced when the resources are others, and nothing is lost or told twice.
#[tokio::test]
async fn a_modern_server_has_one_stream_for_all_resources() {
    let stage = ChangingServer::new(Era::Modern);
    let harness = Harness::changing(&stage).await;
    let filter = everything(&["note:a"]);
    let mut a = NotificationClient::listening(&harness, ClientKind::HttpModern, filter, None).await;
    stage.wait_for_subscriptions(&["note:a"]).await;
    let filter = everything(&["note:b"]);
    let mut b = NotificationClient::listening(&harness, ClientKind::HttpModern, filter, None).await;
    // Both streams are open for a moment: what both say is one change.
    stage.notify_updated("note:a");
    stage.wait_for_subscriptions(&["note:a", "note:b"]).await;
    stage.notify_updated("note:b");
    assert_eq!(b.change().await, updated("note:b", "standard"));
    assert_eq!(a.change().await, updated("note:a", "standard"));
    b.close();
    stage.wait_for_subscriptions(&["note:a"]).await;
    stage.set_tools(&["other"]);
    stage.notify_list_changed("tools");
    assert_eq!(a.change().await, changed("tools", "standard"));
    a.close();
    stage.wait_for_subscriptions(&[]).await;
}

/// A server that was lost is subscribed to again; what may have changed in between is told.
#[tokio::test]
async fn a_server_that_returns_is_subscribed_to_again() {
    let check = async |era: Era| {
        let stage = ChangingServer::new(era);
        let mut harness = Harness::changing(&stage).await;
        let filter = everything(&["note:a"]);
        let mut ears = Vec::new();
        for way in ClientKind::ALL {
            let mut subscriber =
                NotificationClient::listening(&harness, way, filter.clone(), None).await;
            if !way.is_modern() {
                let params = json!({"uri": "note:a"});
                subscriber.ask("resources/subscribe", params).await;
            }
            ears.push(subscriber);
        }
        stage.set_tools(&["other"]);
        restart(&mut harness, &stage).await;
        for subscriber in &mut ears {
            let mut received = Vec::new();
            while !received.contains(&updated("note:a", "standard"))
                || !received.contains(&changed("tools", "standard"))
            {
                received.push(subscriber.change().await);
            }
        }
        stage.notify_updated("note:a");
        for subscriber in &mut ears {
            while subscriber.change().await != updated("note:a", "standard") {}
        }
    };
    join_all(ERAS.map(check)).await;
}

/// SV-15: a stream that the gateway ends has `notifications/cancelled` and the result last.
#[tokio::test]
async fn a_stream_that_the_gateway_ends_says_so() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let compact = async |kind: ClientKind| {
        NotificationClient::listening(&harness, kind, everything(&[]), Some("compact")).await
    };
    let mut http = compact(ClientKind::HttpModern).await;
    let mut pipe = compact(ClientKind::StdioModern).await;
    pipe.pipe().stop.cancel();
    harness.stop();
    for subscriber in [&mut http, &mut pipe] {
        let meta = json!({VARIANT: "compact", SUBSCRIPTION: "listen"});
        let cancelled = subscriber.receive().await;
        cancelled.has("/method", "notifications/cancelled");
        cancelled.has("/params/requestId", "listen");
        cancelled.has("/params/_meta", meta);
        let result = json!({"resultType": "complete", "_meta": {SUBSCRIPTION: "listen"}});
        let expected = json!({"jsonrpc": "2.0", "id": "listen", "result": result});
        assert_eq!(subscriber.receive().await, expected);
    }
    assert_eq!(http.receive_or_end().await, None);
}

/// A stdio client that cancels its subscription hears nothing more, not even an answer; its id is free again.
#[tokio::test]
async fn a_client_can_end_its_stream() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let mut subscriber = listening(&harness, ClientKind::StdioModern, &["note:a"]).await;
    let cancel = notification("notifications/cancelled", json!({"requestId": "listen"}));
    subscriber.pipe().send(cancel.to_string()).await;
    harness.peer.wait_for("resources/unsubscribe", 1).await;
    stage.set_tools(&["other"]);
    stage.notify_list_changed("tools");
    let params = json!({"notifications": {}});
    let listen = modern(json!("listen"), "subscriptions/listen", params, &json!({}));
    let told = subscriber.pipe().ask(&listen).await;
    told.has("/method", "notifications/subscriptions/acknowledged");
}

/// A modern client that hangs up has unsubscribed.
#[tokio::test]
async fn who_hangs_up_has_left() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let subscriber = listening(&harness, ClientKind::HttpModern, &["note:a"]).await;
    subscriber.close();
    soon(harness.peer.wait_for("resources/unsubscribe", 1)).await;
}

/// Several subscriptions of one client are told apart by their ids.
#[tokio::test]
async fn a_client_may_listen_more_than_once() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let mut pipe = open_pipe(&harness.gateway);
    for (id, filter) in [(1, json!({"toolsListChanged": true})), (2, everything(&[]))] {
        let params = json!({"notifications": filter});
        let message = modern(json!(id), "subscriptions/listen", params, &json!({}));
        let told = pipe.ask(&message).await;
        assert_eq!(told["params"]["_meta"][SUBSCRIPTION], id);
    }
    stage.set_tools(&["other"]);
    stage.notify_list_changed("tools");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let told = pipe.receive().await;
        told.has("/method", "notifications/tools/list_changed");
        ids.push(told["params"]["_meta"][SUBSCRIPTION].clone());
    }
    ids.sort_by_key(Value::as_i64);
    assert_eq!(ids, [1, 2]);
}

/// As many resources as the limit says, for each session.
#[tokio::test]
async fn a_session_has_only_so_many_subscriptions() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing_edited(&stage, |config| config.limits.subscriptions = 1).await;
    for way in LEGACY {
        let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
        let [a, b] = ["note:a", "note:b"].map(|uri| json!({"uri": uri}));
        subscriber.succeeds("resources/subscribe", a.clone()).await;
        let answer = subscriber.ask("resources/subscribe", b.clone()).await;
        answer.has("/error/code", -32602);
        subscriber.ask("resources/unsubscribe", a).await;
        subscriber.succeeds("resources/subscribe", b).await;
    }
}

/// SV-11: the flags are the same for all; lists may always change, since servers may be replaced.
#[tokio::test]
async fn the_capabilities_say_what_is_told() {
    let stage = ChangingServer::new(Era::Legacy);
    for resources in [json!({"subscribe": true}), json!({})] {
        let subscribe = &resources["subscribe"];
        stage.declare(json!({"tools": {}, "prompts": {}, "resources": resources}));
        let harness = Harness::changing(&stage).await;
        for way in ClientKind::ALL {
            let told = way.introduction(&harness, &json!({})).await;
            let told = &told["capabilities"];
            for kind in ["tools", "prompts", "resources"] {
                assert_eq!(told[kind]["listChanged"], true, "{way:?}");
            }
            assert_eq!(told["resources"]["subscribe"], *subscribe, "{way:?}");
        }
        // The server has what it does not declare.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let params = json!({"uri": "note:a"});
            let answer = harness.ask(ClientKind::HttpLegacy, method, params).await;
            assert_eq!(answer["result"], json!({}), "{method}: {answer}");
        }
    }
}

/// A client that does not read is not waited for: others hear, and it is closed.
#[tokio::test]
async fn who_does_not_read_is_closed() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = Harness::changing(&stage).await;
    let mut slow = listening(&harness, ClientKind::StdioModern, &["note:a"]).await;
    let mut quick = listening(&harness, ClientKind::HttpModern, &["note:a"]).await;
    let many = 2_000;
    for _ in 0..many {
        stage.notify_updated("note:a");
        assert_eq!(quick.change().await, updated("note:a", "standard"));
    }
    let mut received = 0;
    let end = loop {
        let told = slow.receive().await;
        if told["method"] != "notifications/resources/updated" {
            break told;
        }
        received += 1;
    };
    end.has("/method", "notifications/cancelled");
    assert!(received < many, "{received}");
    let ping = request(json!(1), "ping", json!({}));
    let answer = soon(slow.pipe().ask(&ping)).await;
    answer.has("/id", "listen");
}

/// Of two servers with a resource of one name, the one is told of that is read.
#[tokio::test]
async fn of_several_servers_the_one_is_told_of_that_has_the_resource() {
    let one = ChangingServer::new(Era::Legacy);
    let other = ChangingServer::new(Era::Modern);
    other.set_resources(&["note:a", "other:a"]);
    let (first, second) = (one.start().await, other.start().await);
    let target = |peer: &ScriptedServer| Target::http(peer.url.clone());
    let mut config = config(target(&first));
    let entry = UpstreamConfig::new("other", target(&second));
    config.servers.push(entry);
    let harness = Harness::behind(first, config).await;
    one.wait_for_listener().await;
    other.wait_for_listener().await;
    for way in ClientKind::ALL {
        let uris = ["note:a", "other:a"];
        let mut subscriber = listening(&harness, way, &uris).await;
        if !way.is_modern() {
            for uri in uris {
                let params = json!({"uri": uri});
                subscriber.succeeds("resources/subscribe", params).await;
            }
        }
        other.notify_updated("note:a");
        one.notify_updated("note:a");
        let expected = updated("note:a", "standard");
        assert_eq!(subscriber.change().await, expected, "{way:?}");
        other.notify_updated("other:a");
        let expected = updated("other:a", "standard");
        assert_eq!(subscriber.change().await, expected, "{way:?}");
    }
}

/// `all`, `few` that selects among resources and tools, and `own` that has a URI of its own.
fn variants() -> Vec<VariantConfig> {
    let variant = |id: &str| VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "Tests."));
    let mut few = variant("few");
    few.resources = selection("note:b");
    let mut native = variant("own");
    let mine = default_with::<ResourceOverride>(|it| it.uri = Some("mine:a".to_owned()));
    native.resource_overrides.insert("note:a".to_owned(), mine);
    vec![variant("all"), few, native]
}

fn selection(name: &str) -> Selection {
    serde_json::from_value(json!({"include": [name]})).unwrap()
}

async fn house_of_variants(stage: &ChangingServer) -> Harness {
    let adapt = |config: Config| config.with_variants_of(variants()).unwrap();
    Harness::changing_with(stage, adapt).await
}
