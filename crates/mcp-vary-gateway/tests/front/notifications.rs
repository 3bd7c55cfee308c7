//! What clients hear of changes: of which variant, of what they asked for, and when it ends.

use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{Config, Target, UpstreamConfig, VariantConfig};
use mcp_vary_view::{ResourceOverride, Selection};
use mcp_vary_wire::revision::Era;
use serde_json::{Value, json};

use crate::http_peer::Peer;
use crate::stage::{Ear, SUBSCRIPTION, Stage, VARIANT, changed, everything, updated};
use crate::support::{
    House, Pipe, Post, Way, config, initialize, modern, notification, request, soon, under,
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const LEGACY: [Way; 2] = [Way::HttpLegacy, Way::StdioLegacy];
const MODERN: [Way; 2] = [Way::HttpModern, Way::StdioModern];

/// SV-16: a session hears which variants' lists changed, each with its variant and in its order, and of no other;
/// a stream hears of its own variant. `read-only` does not show the new tool, so that its list is as before.
#[tokio::test]
async fn a_change_of_a_list_is_told_with_the_variants_that_it_affects() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for (round, way) in Way::ALL.into_iter().enumerate() {
            let mut ear = Ear::listening(&house, way, everything(&[]), Some("compact")).await;
            let name = format!("added-{round}");
            stage.set_tools(&["first", &name]);
            stage.say_changed("tools");
            let expected = match way.is_modern() {
                true => vec!["compact"],
                false => vec!["standard", "compact"],
            };
            for variant in expected {
                assert_eq!(
                    ear.told().await,
                    changed("tools", variant),
                    "{era:?} {way:?}"
                );
            }
            // The list is the new one by then.
            let listed = way.ask(&house, &json!({}), "tools/list", json!({})).await;
            assert_eq!(listed["result"]["tools"][1]["name"], name.as_str());
            ear.close();
        }
    }
}

/// SV-16: what a server says is told, of all variants, even if its list reads as before.
#[tokio::test]
async fn what_a_server_announces_is_told() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for way in Way::ALL {
            let mut ear = Ear::listening(&house, way, everything(&[]), Some("read-only")).await;
            for list in ["tools", "resources", "prompts"] {
                stage.say_changed(list);
                let expected = match way.is_modern() {
                    true => vec!["read-only"],
                    false => vec!["standard", "compact", "read-only"],
                };
                for variant in expected {
                    assert_eq!(ear.told().await, changed(list, variant), "{era:?} {way:?}");
                }
            }
        }
    }
}

/// What the gateway only suspects is told if it is so: a server that returns and lists the same is no news.
#[tokio::test]
async fn a_server_that_returns_as_it_was_is_not_told() {
    let stage = Stage::new(Era::Modern);
    let mut house = stage.house().await;
    let mut ears = Vec::new();
    for way in Way::ALL {
        ears.push(Ear::listening(&house, way, everything(&[]), None).await);
    }
    let gone = std::mem::replace(&mut house.peer, Stage::new(Era::Modern).peer().await);
    let address = gone.stop().await;
    house.peer = stage.again(address).await;
    stage.is_heard().await;
    stage.set_prompts(&["other"]);
    stage.say_changed("prompts");
    for ear in &mut ears {
        assert_eq!(ear.told().await, changed("prompts", "standard"));
    }
}

/// EXT-3: where variants are off nothing is said of them.
#[tokio::test]
async fn without_variants_a_change_names_none() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house_with(|config| config.with_variants(false)).await;
    for (way, name) in Way::ALL.into_iter().zip(["a", "b", "c", "d"]) {
        let mut ear = Ear::listening(&house, way, everything(&[]), None).await;
        stage.set_tools(&["first", name]);
        stage.say_changed("tools");
        let told = ear.told().await;
        assert_eq!(
            told,
            ("tools/list_changed".to_owned(), None, None),
            "{way:?}"
        );
    }
}

/// SV-15: the acknowledgement comes first, and holds what exists in the variant of what was asked for.
#[tokio::test]
async fn a_stream_begins_with_what_it_will_tell_of() {
    for era in ERAS {
        let stage = Stage::new(era);
        stage.refuse(&["note:b"]);
        let house = stage.house().await;
        for way in MODERN {
            for (asked, expected) in [
                (json!({}), json!({})),
                (
                    json!({"toolsListChanged": true, "x": 1}),
                    json!({"toolsListChanged": true}),
                ),
                (
                    json!({"promptsListChanged": false, "resourcesListChanged": true}),
                    json!({"resourcesListChanged": true}),
                ),
                (
                    json!({"resourceSubscriptions": ["note:a", "note:b", "note:all/7"]}),
                    json!({"resourceSubscriptions": ["note:a", "note:all/7"]}),
                ),
            ] {
                let mut ear = Ear::open(&house, way, asked, Some("compact")).await;
                let told = ear.hear().await;
                assert_eq!(
                    told,
                    json!({
                        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                        "params": {
                            "notifications": expected,
                            "_meta": {VARIANT: "compact", SUBSCRIPTION: "listen"},
                        },
                    }),
                    "{era:?} {way:?}"
                );
            }
        }
    }
}

/// SV-9, SV-15: a filter of wrong types, too many resources and a variant that does not exist are errors, and no
/// stream.
#[tokio::test]
async fn a_subscription_that_is_wrong_opens_no_stream() {
    let stage = Stage::new(Era::Legacy);
    let house = stage
        .house_with(|mut config| {
            config.limits.subscriptions = 1;
            config
        })
        .await;
    for way in MODERN {
        for params in [
            json!({}),
            json!({"notifications": 7}),
            json!({"notifications": {"toolsListChanged": "yes"}}),
            json!({"notifications": {"resourceSubscriptions": ["note:a", "note:b"]}}),
            under("none", json!({"notifications": {}})),
        ] {
            let answer = way
                .ask(&house, &json!({}), "subscriptions/listen", params)
                .await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
    for way in LEGACY {
        let params = json!({"notifications": {}});
        let answer = way
            .ask(&house, &json!({}), "subscriptions/listen", params)
            .await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    for way in MODERN {
        let params = json!({"uri": "note:a"});
        let answer = way
            .ask(&house, &json!({}), "resources/subscribe", params)
            .await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

/// SV-15: what was not asked for is never sent.
#[tokio::test]
async fn a_stream_tells_of_what_was_asked_for_and_nothing_else() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for (way, name) in MODERN.into_iter().zip(["a", "b"]) {
            let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["note:b"]});
            let mut ear = Ear::listening(&house, way, filter, None).await;
            let mut all = Ear::listening(&house, way, everything(&["note:a"]), None).await;
            stage.set_tools(&["first", name]);
            stage.say_changed("tools");
            assert_eq!(all.told().await, changed("tools", "standard"));
            stage.say_updated("note:a");
            assert_eq!(all.told().await, updated("note:a", "standard"));
            stage.say_updated("note:b");
            assert_eq!(
                ear.told().await,
                updated("note:b", "standard"),
                "{era:?} {way:?}"
            );
        }
    }
}

/// A resource's change is carried as its server said it.
#[tokio::test]
async fn what_a_server_says_of_a_resource_arrives() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for way in Way::ALL {
            let mut ear = Ear::listening(&house, way, everything(&["note:a"]), None).await;
            if !way.is_modern() {
                let answer = ear
                    .ask("resources/subscribe", json!({"uri": "note:a"}))
                    .await;
                assert_eq!(answer["result"], json!({}), "{era:?} {way:?}");
            }
            stage.say_updated("note:a");
            let told = ear.hear().await;
            assert_eq!(
                told["params"]["x-vendor"],
                json!({"n": 1.0}),
                "{era:?} {way:?}"
            );
            assert_eq!(told["params"]["_meta"][VARIANT], "standard");
        }
    }
}

/// SV-14: a subscription belongs to the variant that it was made in.
#[tokio::test]
async fn a_subscription_is_bound_to_its_variant() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for way in LEGACY {
            let mut ear = Ear::open(&house, way, json!({}), None).await;
            let a = |variant: &str| under(variant, json!({"uri": "note:a"}));
            for _ in 0..2 {
                let answer = ear.ask("resources/subscribe", a("compact")).await;
                assert_eq!(answer["result"], json!({}), "{era:?} {way:?}");
            }
            let answer = ear.ask("resources/subscribe", a("standard")).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let data = &answer["error"]["data"];
            assert_eq!(data["activeVariant"], "standard");
            assert_eq!(data["subscribedVariant"], "compact");
            stage.say_updated("note:a");
            assert_eq!(ear.told().await, updated("note:a", "compact"));

            // Whatever is selected, and as often as one likes.
            for variant in ["standard", "read-only"] {
                let answer = ear.ask("resources/unsubscribe", a(variant)).await;
                assert_eq!(answer["result"], json!({}));
            }
            let answer = ear.ask("resources/subscribe", a("standard")).await;
            assert_eq!(answer["result"], json!({}));
            stage.say_updated("note:a");
            assert_eq!(ear.told().await, updated("note:a", "standard"));
            let answer = ear
                .ask("resources/unsubscribe", json!({"uri": "note:none"}))
                .await;
            assert_eq!(answer["result"], json!({}));
        }
    }
}

/// SV-14: what the server does not have is refused with the active variant, and not bound.
#[tokio::test]
async fn a_resource_that_is_not_there_cannot_be_subscribed_to() {
    for era in ERAS {
        let stage = Stage::new(era);
        stage.refuse(&["note:none"]);
        let house = stage.house().await;
        for way in LEGACY {
            let mut ear = Ear::open(&house, way, json!({}), None).await;
            for variant in ["compact", "standard"] {
                let params = under(variant, json!({"uri": "note:none"}));
                let answer = ear.ask("resources/subscribe", params).await;
                assert_eq!(answer["error"]["code"], -32602, "{era:?} {way:?} {answer}");
                assert_eq!(answer["error"]["data"]["activeVariant"], variant);
            }
        }
    }
}

/// SV-14: what is gone is told once, as a changed list; then there is silence.
#[tokio::test]
async fn a_resource_that_is_gone_is_told_once() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for way in Way::ALL {
            stage.set_resources(&["note:a", "note:b"]);
            stage.say_changed("resources");
            let mut ear =
                Ear::listening(&house, way, everything(&["note:a", "note:b"]), None).await;
            let subscribe = |uri: &str| under("compact", json!({"uri": uri}));
            if !way.is_modern() {
                for uri in ["note:a", "note:b"] {
                    ear.ask("resources/subscribe", subscribe(uri)).await;
                }
            }
            let variant = if way.is_modern() {
                "standard"
            } else {
                "compact"
            };
            // What was said before the list was read again may still come.
            stage.say_updated("note:a");
            loop {
                if ear.told().await == updated("note:a", variant) {
                    break;
                }
            }
            stage.set_resources(&["note:b"]);
            stage.say_changed("resources");
            stage.say_updated("note:a");
            stage.say_updated("note:b");
            let mut heard = Vec::new();
            loop {
                heard.push(ear.told().await);
                if heard.last() == Some(&updated("note:b", variant)) {
                    break;
                }
            }
            let once: Vec<_> = match way.is_modern() {
                true => vec![changed("resources", "standard")],
                false => ["standard", "compact", "read-only"]
                    .map(|variant| changed("resources", variant))
                    .into(),
            };
            let lists: Vec<_> = heard[..heard.len() - 1].to_vec();
            assert_eq!(lists, once, "{era:?} {way:?}");
            if !way.is_modern() {
                // It stands in the way of no other, and can still be ended.
                let answer = ear.ask("resources/unsubscribe", subscribe("note:a")).await;
                assert_eq!(answer["result"], json!({}));
            }
        }
    }
}

/// One subscription at the server, however many clients there are, until the last one leaves.
#[tokio::test]
async fn a_server_is_subscribed_to_once() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let params = || json!({"uri": "note:a"});
    let mut one = Ear::open(&house, Way::HttpLegacy, json!({}), None).await;
    let mut other = Ear::open(&house, Way::StdioLegacy, json!({}), None).await;
    let modern = Ear::listening(&house, Way::HttpModern, everything(&["note:a"]), None).await;
    one.ask("resources/subscribe", params()).await;
    other.ask("resources/subscribe", params()).await;
    assert_eq!(house.peer.of("resources/subscribe").len(), 1);
    stage.say_updated("note:a");
    for ear in [&mut one, &mut other] {
        assert_eq!(ear.told().await, updated("note:a", "standard"));
    }
    other.ask("resources/unsubscribe", params()).await;
    modern.close();
    one.ask("resources/unsubscribe", params()).await;
    let seen = house.peer.saw("resources/unsubscribe", 1).await;
    assert_eq!(seen[0].body["params"]["uri"], "note:a");
    // A session that ends takes what it was subscribed to along.
    one.ask("resources/subscribe", params()).await;
    let legacy = one.legacy_session();
    let delete = Post::of(&legacy, "").line("DELETE /mcp HTTP/1.1");
    house.connect().await.send(&delete.head()).await;
    house.peer.saw("resources/unsubscribe", 2).await;
}

/// One stream at a modern server: replaced when the resources are others, and nothing is lost or told twice.
#[tokio::test]
async fn a_modern_server_has_one_stream_for_all_resources() {
    let stage = Stage::new(Era::Modern);
    let house = stage.house().await;
    let mut a = Ear::listening(&house, Way::HttpModern, everything(&["note:a"]), None).await;
    stage.tells_of(&["note:a"]).await;
    let mut b = Ear::listening(&house, Way::HttpModern, everything(&["note:b"]), None).await;
    // Both streams are open for a moment: what both say is one change.
    stage.say_updated("note:a");
    stage.tells_of(&["note:a", "note:b"]).await;
    stage.say_updated("note:b");
    assert_eq!(b.told().await, updated("note:b", "standard"));
    assert_eq!(a.told().await, updated("note:a", "standard"));
    b.close();
    stage.tells_of(&["note:a"]).await;
    stage.set_tools(&["other"]);
    stage.say_changed("tools");
    assert_eq!(a.told().await, changed("tools", "standard"));
    a.close();
    stage.tells_of(&[]).await;
}

/// A server that was lost is subscribed to again; what may have changed in between is told.
#[tokio::test]
async fn a_server_that_returns_is_subscribed_to_again() {
    for era in ERAS {
        let stage = Stage::new(era);
        let mut house = stage.house().await;
        let filter = everything(&["note:a"]);
        let mut ears = Vec::new();
        for way in Way::ALL {
            let mut ear = Ear::listening(&house, way, filter.clone(), None).await;
            if !way.is_modern() {
                ear.ask("resources/subscribe", json!({"uri": "note:a"}))
                    .await;
            }
            ears.push(ear);
        }
        stage.set_tools(&["other"]);
        let again = stage.clone();
        let gone = std::mem::replace(&mut house.peer, Stage::new(era).peer().await);
        let address = gone.stop().await;
        house.peer = again.again(address).await;
        for ear in &mut ears {
            let mut heard = Vec::new();
            while !heard.contains(&updated("note:a", "standard"))
                || !heard.contains(&changed("tools", "standard"))
            {
                heard.push(ear.told().await);
            }
        }
        stage.say_updated("note:a");
        for ear in &mut ears {
            while ear.told().await != updated("note:a", "standard") {}
        }
    }
}

/// SV-15: a stream that the gateway ends has `notifications/cancelled` and the result last.
#[tokio::test]
async fn a_stream_that_the_gateway_ends_says_so() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let filter = everything(&[]);
    let mut http = Ear::listening(&house, Way::HttpModern, filter.clone(), Some("compact")).await;
    let mut pipe = Ear::listening(&house, Way::StdioModern, filter, Some("compact")).await;
    pipe.pipe().stop.cancel();
    house.stop();
    for ear in [&mut http, &mut pipe] {
        let meta = json!({VARIANT: "compact", SUBSCRIPTION: "listen"});
        let cancelled = ear.hear().await;
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], "listen");
        assert_eq!(cancelled["params"]["_meta"], meta);
        let result = json!({"resultType": "complete", "_meta": {SUBSCRIPTION: "listen"}});
        assert_eq!(
            ear.hear().await,
            json!({"jsonrpc": "2.0", "id": "listen", "result": result})
        );
    }
    assert_eq!(http.hear_or_end().await, None);
}

/// A stdio client that cancels its subscription hears nothing more, not even an answer; its id is free again.
#[tokio::test]
async fn a_client_can_end_its_stream() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let mut ear = Ear::listening(&house, Way::StdioModern, everything(&["note:a"]), None).await;
    let cancel = notification("notifications/cancelled", json!({"requestId": "listen"}));
    ear.pipe().say(cancel.to_string()).await;
    house.peer.saw("resources/unsubscribe", 1).await;
    stage.set_tools(&["other"]);
    stage.say_changed("tools");
    let listen = modern(
        json!("listen"),
        "subscriptions/listen",
        json!({"notifications": {}}),
        &json!({}),
    );
    let told = ear.pipe().ask(&listen).await;
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
}

/// A modern client that hangs up has unsubscribed.
#[tokio::test]
async fn who_hangs_up_has_left() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let ear = Ear::listening(&house, Way::HttpModern, everything(&["note:a"]), None).await;
    ear.close();
    soon(house.peer.saw("resources/unsubscribe", 1)).await;
}

/// Several subscriptions of one client are told apart by their ids.
#[tokio::test]
async fn a_client_may_listen_more_than_once() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let mut pipe = Pipe::open(&house.gateway);
    for (id, filter) in [(1, json!({"toolsListChanged": true})), (2, everything(&[]))] {
        let params = json!({"notifications": filter});
        let told = pipe
            .ask(&modern(
                json!(id),
                "subscriptions/listen",
                params,
                &json!({}),
            ))
            .await;
        assert_eq!(told["params"]["_meta"][SUBSCRIPTION], id);
    }
    stage.set_tools(&["other"]);
    stage.say_changed("tools");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let told = pipe.hear().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        ids.push(told["params"]["_meta"][SUBSCRIPTION].clone());
    }
    ids.sort_by_key(Value::as_i64);
    assert_eq!(ids, [1, 2]);
}

/// As many resources as the limit says, for each session.
#[tokio::test]
async fn a_session_has_only_so_many_subscriptions() {
    let stage = Stage::new(Era::Legacy);
    let house = stage
        .house_with(|mut config| {
            config.limits.subscriptions = 1;
            config
        })
        .await;
    for way in LEGACY {
        let mut ear = Ear::open(&house, way, json!({}), None).await;
        let answer = ear
            .ask("resources/subscribe", json!({"uri": "note:a"}))
            .await;
        assert_eq!(answer["result"], json!({}));
        let answer = ear
            .ask("resources/subscribe", json!({"uri": "note:b"}))
            .await;
        assert_eq!(answer["error"]["code"], -32602);
        ear.ask("resources/unsubscribe", json!({"uri": "note:a"}))
            .await;
        let answer = ear
            .ask("resources/subscribe", json!({"uri": "note:b"}))
            .await;
        assert_eq!(answer["result"], json!({}));
    }
}

/// SV-11: the flags are the same for all; lists may always change, since servers may be replaced.
#[tokio::test]
async fn the_capabilities_say_what_is_told() {
    let stage = Stage::new(Era::Legacy);
    for (subscribe, capabilities) in [
        (
            json!(true),
            json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}}),
        ),
        (
            Value::Null,
            json!({"tools": {}, "prompts": {}, "resources": {}}),
        ),
    ] {
        stage.declare(capabilities);
        let house = stage.house().await;
        for way in Way::ALL {
            let told = introduction(&house, way).await;
            let told = &told["capabilities"];
            for kind in ["tools", "prompts", "resources"] {
                assert_eq!(told[kind]["listChanged"], true, "{way:?}");
            }
            assert_eq!(
                told["resources"]
                    .get("subscribe")
                    .cloned()
                    .unwrap_or_default(),
                subscribe
            );
        }
        // The server has what it does not declare.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let params = json!({"uri": "note:a"});
            let answer = Way::HttpLegacy
                .ask(&house, &json!({}), method, params)
                .await;
            assert_eq!(answer["result"], json!({}), "{method}: {answer}");
        }
    }
}

/// What a client that comes this way is told first.
async fn introduction(house: &House, way: Way) -> Value {
    let asked = initialize("2025-11-25", &json!({}));
    let told = match way {
        Way::HttpLegacy => {
            let post = Post::new(asked.to_string());
            house.connect().await.ask(&post).await.json()
        }
        Way::StdioLegacy => Pipe::open(&house.gateway).ask(&asked).await,
        _ => {
            way.ask(house, &json!({}), "server/discover", json!({}))
                .await
        }
    };
    told["result"].clone()
}

/// A client that does not read is not waited for: others hear, and it is closed.
#[tokio::test]
async fn who_does_not_read_is_closed() {
    let stage = Stage::new(Era::Legacy);
    let house = stage.house().await;
    let mut slow = Ear::listening(&house, Way::StdioModern, everything(&["note:a"]), None).await;
    let mut quick = Ear::listening(&house, Way::HttpModern, everything(&["note:a"]), None).await;
    let many = 2_000;
    for _ in 0..many {
        stage.say_updated("note:a");
        assert_eq!(quick.told().await, updated("note:a", "standard"));
    }
    let mut heard = 0;
    let end = loop {
        let told = slow.hear().await;
        if told["method"] != "notifications/resources/updated" {
            break told;
        }
        heard += 1;
    };
    assert_eq!(end["method"], "notifications/cancelled", "{end}");
    assert!(heard < many, "{heard}");
    let ping = request(json!(1), "ping", json!({}));
    let answer = soon(slow.pipe().ask(&ping)).await;
    assert_eq!(answer["id"], "listen");
}

/// `all`, `few` that selects among resources and tools, and `own` that has a URI of its own.
fn variants() -> Vec<VariantConfig> {
    let variant = |id: &str| VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "Tests."));
    let mut few = variant("few");
    few.resources = selection("note:b");
    let mut own = variant("own");
    let mine = ResourceOverride {
        uri: Some("mine:a".to_owned()),
        ..ResourceOverride::default()
    };
    own.resource_overrides.insert("note:a".to_owned(), mine);
    vec![variant("all"), few, own]
}

fn selection(name: &str) -> Selection {
    serde_json::from_value(json!({"include": [name]})).unwrap()
}

async fn house_of_variants(stage: &Stage) -> House {
    let adapt = |config: Config| config.with_variants_of(variants()).unwrap();
    stage.house_with(adapt).await
}

/// SV-14: what another variant hides cannot be subscribed to there, and is not told apart from what there is not;
/// nothing is said of it in an acknowledgement either.
#[tokio::test]
async fn what_is_hidden_cannot_be_subscribed_to() {
    let stage = Stage::new(Era::Legacy);
    let house = house_of_variants(&stage).await;
    let refusal = |answer: Value, uri: &str| answer["error"].to_string().replace(uri, "…");
    for way in LEGACY {
        let mut ear = Ear::open(&house, way, json!({}), None).await;
        let mut said = Vec::new();
        for uri in ["note:a", "note:none"] {
            let params = under("few", json!({"uri": uri}));
            let answer = ear.ask("resources/subscribe", params).await;
            assert_eq!(answer["error"]["code"], -32602);
            assert_eq!(answer["error"]["data"]["activeVariant"], "few");
            said.push(refusal(answer, uri));
        }
        assert_eq!(said[0], said[1]);
        let answer = ear
            .ask(
                "resources/subscribe",
                under("few", json!({"uri": "note:b"})),
            )
            .await;
        assert_eq!(answer["result"], json!({}));
        stage.say_updated("note:a");
        stage.say_updated("note:b");
        assert_eq!(ear.told().await, updated("note:b", "few"));
    }
    for way in MODERN {
        let filter = everything(&["note:a", "note:b", "note:none"]);
        let mut ear = Ear::open(&house, way, filter, Some("few")).await;
        let told = ear.hear().await;
        let honoured = &told["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*honoured, json!(["note:b"]));
    }
}

/// SV-11, SV-14: a client is told by the URI that its variant gives the resource.
#[tokio::test]
async fn a_resource_is_told_by_the_uri_of_its_variant() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = house_of_variants(&stage).await;
        for way in Way::ALL {
            let mut ear = Ear::listening(&house, way, everything(&["mine:a"]), Some("own")).await;
            if !way.is_modern() {
                let params = under("own", json!({"uri": "mine:a"}));
                let answer = ear.ask("resources/subscribe", params).await;
                assert_eq!(answer["result"], json!({}), "{era:?} {way:?}");
            }
            stage.say_updated("note:a");
            assert_eq!(
                ear.told().await,
                updated("mine:a", "own"),
                "{era:?} {way:?}"
            );
        }
    }
}

/// Of two servers with a resource of one name, the one is told of that is read.
#[tokio::test]
async fn of_several_servers_the_one_is_told_of_that_has_the_resource() {
    let (one, other) = (Stage::new(Era::Legacy), Stage::new(Era::Modern));
    other.set_resources(&["note:a", "other:a"]);
    let (first, second) = (one.peer().await, other.peer().await);
    let target = |peer: &Peer| Target::http(peer.url.clone());
    let mut config = config(target(&first));
    config
        .servers
        .push(UpstreamConfig::new("other", target(&second)));
    let house = House::behind(first, config).await;
    one.is_heard().await;
    other.is_heard().await;
    for way in Way::ALL {
        let uris = ["note:a", "other:a"];
        let mut ear = Ear::listening(&house, way, everything(&uris), None).await;
        if !way.is_modern() {
            for uri in uris {
                let answer = ear.ask("resources/subscribe", json!({"uri": uri})).await;
                assert_eq!(answer["result"], json!({}), "{uri}");
            }
        }
        other.say_updated("note:a");
        one.say_updated("note:a");
        assert_eq!(ear.told().await, updated("note:a", "standard"), "{way:?}");
        other.say_updated("other:a");
        assert_eq!(ear.told().await, updated("other:a", "standard"), "{way:?}");
    }
}

/// SV-16: under another configuration the lists that are others are told, and subscriptions go on; a stream whose
/// variant is gone ends in order.
#[tokio::test]
async fn a_reload_is_told_like_any_change() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = house_of_variants(&stage).await;
        let mut ears = Vec::new();
        for way in Way::ALL {
            let mut ear = Ear::listening(&house, way, everything(&["note:b"]), Some("all")).await;
            if !way.is_modern() {
                let params = under("all", json!({"uri": "note:b"}));
                let answer = ear.ask("resources/subscribe", params).await;
                assert_eq!(answer["result"], json!({}));
            }
            ears.push(ear);
        }
        let next = |variants| {
            let next = config(Target::http(house.peer.url.clone()));
            next.with_variants_of(variants).unwrap()
        };
        let mut others = variants();
        others[0].tools = selection("none");
        house.gateway.reload(next(others.clone())).await.unwrap();
        for (way, ear) in Way::ALL.into_iter().zip(&mut ears) {
            assert_eq!(ear.told().await, changed("tools", "all"), "{era:?} {way:?}");
        }
        stage.say_updated("note:b");
        for (way, ear) in Way::ALL.into_iter().zip(&mut ears) {
            assert_eq!(
                ear.told().await,
                updated("note:b", "all"),
                "{era:?} {way:?}"
            );
        }

        let few = everything(&[]);
        let mut leaving = Ear::listening(&house, Way::HttpModern, few, Some("few")).await;
        others.remove(1);
        house.gateway.reload(next(others)).await.unwrap();
        assert_eq!(leaving.hear().await["method"], "notifications/cancelled");
        assert_eq!(leaving.hear().await["id"], "listen");
        assert_eq!(leaving.hear_or_end().await, None);
    }
}

/// What came after the change of a list is told after it, and reading the list takes its time.
#[tokio::test]
async fn the_order_of_changes_is_kept() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        let mut ear = Ear::listening(&house, Way::HttpModern, everything(&["note:a"]), None).await;
        for round in ["x", "y", "z"] {
            stage.set_tools(&["first", round]);
            stage.say_changed("tools");
            stage.say_updated("note:a");
            if era == Era::Modern {
                // The server has a stream for each of the two.
                let mut told = [ear.told().await, ear.told().await];
                told.sort();
                assert_eq!(
                    told,
                    [updated("note:a", "standard"), changed("tools", "standard")]
                );
            } else {
                assert_eq!(ear.told().await, changed("tools", "standard"));
                assert_eq!(ear.told().await, updated("note:a", "standard"));
            }
        }
    }
}

/// SV-14: of a server that is connected to anew since its entry is another: what its resources did in between is taken for a
/// change.
#[tokio::test]
async fn a_resource_of_a_server_with_another_entry_is_told_once_more() {
    for era in ERAS {
        let stage = Stage::new(era);
        let house = stage.house().await;
        for (round, way) in [Way::HttpLegacy, Way::HttpModern].into_iter().enumerate() {
            let mut ear = Ear::listening(&house, way, everything(&["note:b"]), None).await;
            if !way.is_modern() {
                let answer = ear
                    .ask("resources/subscribe", json!({"uri": "note:b"}))
                    .await;
                assert_eq!(answer["result"], json!({}));
            }
            let mut next = config(Target::http(house.peer.url.clone()));
            next.servers[0].forwarded_extensions = vec![format!("com.example/{round}")];
            house.gateway.reload(next).await.unwrap();
            loop {
                let told = ear.told().await;
                if told.0 == "resources/updated" {
                    assert_eq!(told, updated("note:b", "standard"), "{era:?} {way:?}");
                    break;
                }
            }
        }
    }
}
