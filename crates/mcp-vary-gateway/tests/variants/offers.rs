//! Server variants: how they are offered, selected and refused.

use std::num::NonZeroUsize;

use mcp_vary_testkit::places_server::TOOLS;

use crate::support::*;

const EXTENSION: &str = "io.modelcontextprotocol/server-variants";

/// What a client of these capabilities is offered.
async fn offered(kind: ClientKind, harness: &Harness, capabilities: &Value) -> Value {
    let message = if kind.is_modern() {
        ask_as(harness, kind, capabilities, "server/discover", json!({})).await
    } else {
        // The way's own `initialize` opens the session; its result is read here.
        let client = LegacyClient::open(harness, "2025-11-25", capabilities).await;
        json!({"result": client.initialized})
    };
    message["result"]["capabilities"].clone()
}

fn ids(offered: &Value) -> String {
    let variants = &offered["extensions"][EXTENSION]["availableVariants"];
    let ids = variants.as_array().unwrap().iter();
    let ids: Vec<_> = ids.map(|it| it["id"].as_str().unwrap()).collect();
    ids.join(" ")
}

/// The ways in which variants are offered.
const WAYS: [ClientKind; 3] = [
    ClientKind::HttpLegacy,
    ClientKind::HttpModern,
    ClientKind::StdioModern,
];

/// SV-2, SV-3, SV-11: everybody is offered the built-in variants, best first, and the first is stable.
#[tokio::test]
async fn variants_are_offered_in_the_order_of_the_hints() {
    let harness = Harness::start().await;
    for way in WAYS {
        for [asked, expected] in rows(
            r#"
            {}                         | standard compact directory read-only
            {"contextSize": "compact"} | compact standard directory read-only
            {"accessLevel": "readonly"} | read-only standard compact directory
            {"contextSize": "no such"} | standard compact directory read-only
        "#,
        ) {
            let declared = match asked {
                "{}" => json!({}),
                asked => hints(cell(asked)),
            };
            let offered = offered(way, &harness, &declared).await;
            assert_eq!(ids(&offered), expected, "{way:?} {asked}");
            let settings = &offered["extensions"][EXTENSION];
            settings.has("/availableVariants/0/status", "stable");
            assert_eq!(settings.get("moreVariantsAvailable"), None);
        }
    }
}

/// SV-3, SV-5: what counts how much, and how many are advertised, is the operator's to say.
#[tokio::test]
async fn the_weights_are_the_operators() {
    let asked = hints(json!({"contextSize": "compact", "accessLevel": "readonly"}));
    let harness = Harness::start().await;
    let weighed = Harness::with(|mut config| {
        config.weights = mcp_vary::rank::Weights::default().with("accessLevel", 39, 10);
        config.with_advertised(2)
    })
    .await;
    for way in WAYS {
        let by_default = offered(way, &harness, &asked).await;
        assert_eq!(ids(&by_default), "read-only compact standard directory");
        let offered = offered(way, &weighed, &asked).await;
        assert_eq!(ids(&offered), "compact read-only", "{way:?}");
        let settings = &offered["extensions"][EXTENSION];
        settings.has("/moreVariantsAvailable", true);
        let listed = way.ask(&weighed, &asked, "tools/list", json!({})).await;
        assert_eq!(names(&listed).len(), 10, "the default is compact");
    }
}

/// EXT-6: the answer stands where the client put its question, and in `extensions` always.
#[tokio::test]
async fn an_answer_is_mirrored_to_where_it_was_asked() {
    let harness = Harness::start().await;
    let settings = json!({EXTENSION: {}});
    for way in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let plain = offered(way, &harness, &json!({"extensions": settings})).await;
        assert_eq!(plain.get("experimental"), None);
        let mirrored = offered(way, &harness, &json!({"experimental": settings})).await;
        let expected = &mirrored["extensions"][EXTENSION];
        assert_eq!(mirrored["experimental"][EXTENSION], *expected);
        let capabilities = json!({"experimental": {"extensions": settings}});
        let nested = offered(way, &harness, &capabilities).await;
        let expected = &nested["extensions"][EXTENSION];
        assert_eq!(nested["experimental"]["extensions"][EXTENSION], *expected);
    }
}

fn methods() -> impl Iterator<Item = &'static str> {
    "tools/list tools/call resources/list resources/templates/list resources/read prompts/list prompts/get \
     completion/complete"
        .split(' ')
}

/// Params with which `method` succeeds.
fn params(method: &str) -> Value {
    match method {
        "tools/call" => tool("odd"),
        "resources/read" => json!({"uri": "place:bern"}),
        "prompts/get" => json!({"name": "greet"}),
        "completion/complete" => json!({
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "a", "value": ""},
        }),
        _ => json!({}),
    }
}

/// SV-8: a request names its variant on every method that has one.
#[tokio::test]
async fn every_visible_variant_can_be_selected_on_every_method() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        for method in methods() {
            for id in ["standard", "compact", "directory", "read-only"] {
                let answer = harness.ask(way, method, under(id, params(method))).await;
                let found = &answer["result"];
                assert!(found.is_object(), "{way:?} {method} {id}: {answer}");
            }
        }
    }
    for seen in harness.peer.received() {
        // The selector is not the server's business.
        assert!(!seen.text.contains("server-variant"), "{}", seen.text);
    }
}

/// SV-8, SV-9: a selector that names no visible variant is never the default; unknown ones are refused in
/// the same words.
#[tokio::test]
async fn a_selector_that_names_no_variant_is_refused_on_every_method() {
    let harness = Harness::start().await;
    let long = "é".repeat(500);
    let wrong = [
        (json!("nobody"), json!("nobody")),
        (json!(""), json!("")),
        (json!("Standard"), json!("Standard")),
        (json!("standard "), json!("standard ")),
        (json!(7), json!(7)),
        (json!(null), json!(null)),
        (json!(["compact"]), json!(["compact"])),
        (json!({"id": "compact"}), json!({"id": "compact"})),
        (json!(true), json!(true)),
        (json!(long), json!("é".repeat(128))),
    ];
    for way in ClientKind::ALL {
        for method in methods() {
            for (selector, echo) in &wrong {
                let params = under(selector.clone(), params(method));
                let answer = harness.ask(way, method, params).await;
                let expected = json!({
                    "code": -32602,
                    "message": "Invalid server variant",
                    "data": {
                        "requestedVariant": echo,
                        "availableVariants": ["standard", "compact", "directory", "read-only"],
                    },
                });
                assert_eq!(answer["error"], expected, "{way:?} {method} {selector}");
                answer.has("/id", 1);
            }
        }
    }
    for method in ["tools/call", "resources/read", "prompts/get"] {
        let found = harness.peer.of(method);
        assert!(found.is_empty(), "{method} reached the server");
    }
}

/// EXT-10: the reference names the methods whose requests can select a variant.
#[test]
fn the_reference_names_the_methods_that_take_a_selector() {
    let page = include_str!("../../../../docs/reference/extensions.md");
    let (_, paragraph) = page.split_once("\n**Selector.**").unwrap();
    let (paragraph, _) = paragraph.split_once("\n\n").unwrap();
    let subscriptions = ["resources/subscribe", "subscriptions/listen"];
    for method in methods().chain(subscriptions) {
        let expected = format!("`{method}`");
        assert!(paragraph.contains(&expected), "{method}: {paragraph}");
    }
}

/// SV-28: elsewhere a selector is ignored.
#[tokio::test]
async fn a_selector_on_other_methods_is_ignored() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let found = client.ask("ping", under("nobody", json!({}))).await.status;
    assert_eq!(found, 200);
    let mut http = harness.connect().await;
    let found = http
        .ask_modern("server/discover", under(7, json!({})))
        .await;
    assert_eq!(found.status, 200);
}

/// EXT-3, SV-10: what is off is not offered, and a selector is told so.
#[tokio::test]
async fn variants_can_be_off() {
    let harness = Harness::with(|config| config.with_variants(false)).await;
    let asked = hints(json!({"contextSize": "compact"}));
    for way in ClientKind::ALL {
        let offered = offered(way, &harness, &asked).await;
        assert_eq!(offered["extensions"].get(EXTENSION), None, "{way:?}");
        for method in methods() {
            for selector in [json!("standard"), json!("nobody"), json!(7), json!("")] {
                let params = under(selector, params(method));
                let answer = way.ask(&harness, &asked, method, params).await;
                let expected = json!({"code": -32602, "message": "Server variants not supported"});
                assert_eq!(answer["error"], expected, "{way:?} {method}");
            }
        }
        let list = way.ask(&harness, &asked, "tools/list", json!({})).await;
        assert_eq!(names(&list).len(), 10, "{way:?}");
        list.has("/result/tools/0/description", "Says odd things. And more.");
        for (method, params) in [
            ("tools/call", tool("nobody")),
            ("prompts/get", json!({"name": "nobody"})),
            ("resources/read", json!({"uri": "place:basel"})),
            ("tools/list", json!({"cursor": "forged"})),
        ] {
            let answer = way.ask(&harness, &asked, method, params).await;
            assert!(answer["error"].is_object(), "{method}");
            let has_trace = answer.to_string().contains("ariant");
            assert!(!has_trace, "a trace of variants: {answer}");
        }
    }
}

/// EXT-3: with both off nothing of the extensions is said at all.
#[tokio::test]
async fn with_both_extensions_off_nothing_is_advertised() {
    let harness = Harness::with(|config| config.with_variants(false).with_negotiation(false)).await;
    for way in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let offered = offered(way, &harness, &hints(json!({}))).await;
        assert_eq!(offered.get("extensions"), None, "{way:?}");
    }
}

/// SV-11: a variant decides what is listed, and what a list says.
#[tokio::test]
async fn a_variant_decides_what_is_listed() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let ask = async |id: &str| {
            way.text(&harness, &json!({}), "tools/list", under(id, json!({})))
                .await
        };
        let standard = ask("standard").await;
        let inner = &TOOLS[1..TOOLS.len() - 1];
        assert!(standard.contains(inner), "{way:?}: {standard}");
        let compact: Value = serde_json::from_str(&ask("compact").await).unwrap();
        compact.has("/result/tools/0/description", "Says odd things.");
        assert_eq!(names(&compact).len(), 10);
        let read_only: Value = serde_json::from_str(&ask("read-only").await).unwrap();
        assert_eq!(names(&read_only), ["odd", "bound"]);
    }
}

/// SV-12: what a variant does not show does not exist there, and the error says which variant that was.
#[tokio::test]
async fn identifiers_are_those_of_the_active_variant() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let ask = async |id: &str, method: &str, params: Value| {
            harness.ask(way, method, under(id, params)).await["error"].clone()
        };
        let hidden = ask("read-only", "tools/call", tool("say")).await;
        let unknown = ask("read-only", "tools/call", tool("nobody")).await;
        hidden.has("/code", -32602);
        let expected = json!({"activeVariant": "read-only"});
        assert_eq!(hidden["data"], expected, "{way:?}");
        let renamed = hidden.to_string().replace("say", "nobody");
        let expected = unknown.to_string();
        assert_eq!(renamed, expected, "hidden and unknown are the same");
        let prompt = ask("compact", "prompts/get", json!({"name": "nobody"})).await;
        prompt.has("/code", -32602);
        prompt.has("/data", json!({"activeVariant": "compact"}));
        let resource = ask("compact", "resources/read", json!({"uri": "place:basel"})).await;
        let code = if way.is_modern() { -32602 } else { -32002 };
        assert_eq!(resource["code"], code, "{way:?}");
        let data = json!({"uri": "place:basel", "activeVariant": "compact"});
        assert_eq!(resource["data"], data, "what the server said stays");
        // A tool's own refusal of its arguments is about no identifier.
        let refused = ask("standard", "tools/call", tool("refuse")).await;
        let expected = (&json!(-32602), None);
        assert_eq!((&refused["code"], refused.get("data")), expected);
    }
    let calls = harness.peer.of("tools/call");
    let mut calls = calls.iter();
    assert!(calls.all(|call| call.body["params"]["name"] == "refuse"));
}

/// SV-17: SDK caches ignore `_meta`, so that nothing that depends on it may be cached.
#[tokio::test]
async fn nothing_is_cached_while_there_are_variants() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        let cached = "server/discover tools/list resources/list resources/templates/list resources/read prompts/list";
        for method in cached.split(' ') {
            let answer = harness.ask_modern(method, params(method)).await;
            let result = &answer["result"];
            assert_eq!(result["resultType"], "complete", "{method}");
            assert_eq!(result["ttlMs"], 0, "{method}");
            assert_eq!(result["cacheScope"], "private", "{method}");
        }
        for method in ["tools/call", "prompts/get", "completion/complete"] {
            let answer = harness.ask_modern(method, params(method)).await;
            assert_eq!(answer["result"]["resultType"], "complete", "{method}");
            assert_eq!(answer["result"].get("ttlMs"), None, "{method}");
        }
        let kind = ClientKind::HttpLegacy;
        let legacy = harness.ask(kind, "tools/list", json!({})).await;
        assert_eq!(legacy["result"].get("ttlMs"), None);
    }
    let off = Harness::with(|config| config.with_variants(false)).await;
    let read = ask_modern_as(&off, &json!({}), "resources/read", params("resources/read")).await;
    let found = &read["result"]["ttlMs"];
    assert_eq!(*found, 60_000, "as the server says, where nothing varies");
}

/// SV-13: a page leads to the next one of the same variant and method, and nowhere else.
#[tokio::test]
async fn cursors_stay_in_their_variant() {
    let harness =
        Harness::with(|config| config.with_page_size(NonZeroUsize::new(3).unwrap())).await;
    for way in ClientKind::ALL {
        let ask = async |id: &str, method: &str, params: Value| {
            harness.ask(way, method, under(id, params)).await
        };
        let mut all = Vec::new();
        let mut page = ask("standard", "tools/list", json!({})).await;
        let first = page["result"]["nextCursor"].as_str().unwrap().to_owned();
        loop {
            all.extend(names(&page).into_iter().map(str::to_owned));
            let Some(cursor) = page["result"].get("nextCursor").cloned() else {
                break;
            };
            page = ask("standard", "tools/list", json!({"cursor": cursor})).await;
        }
        assert_eq!(all.len(), 10, "{way:?}");

        let other = ask("compact", "tools/list", json!({"cursor": first})).await;
        let expected = json!({
            "code": -32602,
            "message": "Cursor invalid for requested variant",
            "data": {"cursorVariant": "standard", "requestedVariant": "compact"},
        });
        other.has("/error", expected);
        let mut forged = first.clone();
        let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
        forged.push(last);
        for (method, cursor) in [
            ("prompts/list", first.as_str()),
            ("tools/list", &forged),
            ("tools/list", "3"),
            ("tools/list", &"A".repeat(50_000)),
        ] {
            let answer = ask("standard", method, json!({"cursor": cursor})).await;
            let expected = json!({
                "code": -32602,
                "message": "Invalid cursor",
                "data": {"activeVariant": "standard"},
            });
            assert_eq!(answer["error"], expected, "{method} {cursor:.20}");
        }
    }
}

/// SV-8: without a selector the first of the list holds: a session's own, or this request's.
#[tokio::test]
async fn the_default_follows_the_hints() {
    let harness = Harness::start().await;
    let read_only = hints(json!({"accessLevel": "readonly"}));
    for way in ClientKind::ALL {
        let list = way.ask(&harness, &read_only, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["odd", "bound"], "{way:?}");
        let call = ask_as(&harness, way, &read_only, "tools/call", tool("say")).await;
        let expected = "read-only";
        assert_eq!(call["error"]["data"]["activeVariant"], expected, "{way:?}");
    }
}

/// SV-2: a session's order is frozen; a later declaration, which no legacy request carries, changes nothing.
#[tokio::test]
async fn a_sessions_default_is_frozen() {
    let harness = Harness::start().await;
    let capabilities = hints(json!({"accessLevel": "readonly"}));
    let mut client = LegacyClient::open(&harness, "2025-11-25", &capabilities).await;
    let params = json!({"_meta": {
        "io.modelcontextprotocol/clientCapabilities": hints(json!({"contextSize": "compact"})),
    }});
    let list = request(json!(1), "tools/list", params);
    let post = client.post(&list);
    let expected = ["odd", "bound"];
    assert_eq!(names(&client.http.ask(&post).await.json()), expected);
}
