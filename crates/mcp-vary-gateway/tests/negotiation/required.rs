//! Extensions that the operator requires: clients without them are refused.

use crate::support::*;

const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";
const VARIANTS: &str = "io.modelcontextprotocol/server-variants";
const UNITS: &str = "com.example/units";

fn requiring(ids: &'static [&str]) -> impl FnOnce(Config) -> Config {
    let ids = ids.iter().map(|id| id.parse().unwrap());
    |config| ids.fold(config, Config::with_required)
}

/// The error of an HTTP answer without result: its status, code, message and data.
async fn refusal(http: &mut RawHttp, post: &HttpRequest) -> (u16, Value) {
    let answer = http.ask(post).await;
    let told = answer.json();
    assert_eq!(told.get("result"), None, "{told}");
    assert_eq!(answer.header("mcp-session-id"), None);
    (answer.status, told["error"].clone())
}

fn error_for(id: &str, code: i32) -> Value {
    json!({
        "code": code,
        "message": format!("Server requires the extension {id}"),
        "data": {"requiredCapabilities": {"extensions": {id: {}}}},
    })
}

/// EXT-4: a modern client that lacks what is required has made a bad request, whichever method it asks for;
/// discovery is open to all.
#[tokio::test]
async fn a_modern_client_is_told_what_is_required() {
    let harness = Harness::with(requiring(&[NEGOTIATION])).await;
    let mut http = harness.connect().await;
    let mut pipe = open_pipe(&harness.gateway);
    for lacking in [
        json!({}),
        hints(json!({})),
        json!({"extensions": {NEGOTIATION: true}}),
        json!({"extensions": {NEGOTIATION: {"version": "2.0"}}}),
    ] {
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", tool("odd")),
            ("resources/read", json!({"uri": "place:bern"})),
            ("prompts/get", json!({"name": "greet"})),
        ] {
            let ask = modern(json!(1), method, params, &lacking);
            let expected = error_for(NEGOTIATION, -32021);
            let refused = refusal(&mut http, &HttpRequest::modern(&ask)).await;
            assert_eq!(refused, (400, expected.clone()), "{lacking} {method}");
            assert_eq!(
                pipe.ask(&ask).await["error"],
                expected,
                "{lacking} {method}"
            );
        }
        let discover = modern(json!(1), "server/discover", json!({}), &lacking);
        let told = http.ask(&HttpRequest::modern(&discover)).await.json();
        let offered = &told["result"]["capabilities"]["extensions"];
        assert_eq!(offered[NEGOTIATION], json!({}), "{lacking}");
        assert!(pipe.ask(&discover).await["result"].is_object(), "{lacking}");
    }
    let seen = harness.peer.received();
    assert!(seen.iter().all(|seen| seen.method() != "tools/call"));
}

/// EXT-4: a legacy client that lacks it gets no session.
#[tokio::test]
async fn a_legacy_client_is_told_so_when_it_begins() {
    let harness = Harness::with(requiring(&[NEGOTIATION])).await;
    let begin = initialize("2025-11-25", &json!({"sampling": {}}));
    let expected = error_for(NEGOTIATION, -32602);
    let post = HttpRequest::new(begin.to_string());
    let refused = refusal(&mut harness.connect().await, &post).await;
    assert_eq!(refused, (200, expected.clone()));
    let mut pipe = open_pipe(&harness.gateway);
    assert_eq!(pipe.ask(&begin).await["error"], expected);
    let list = pipe.ask(&request(json!(2), "tools/list", json!({}))).await;
    assert_eq!(list["error"]["code"], -32602, "there is no session: {list}");
    // It may begin again, and say more.
    let begin = initialize("2025-11-25", &features(&[]));
    assert!(pipe.ask(&begin).await["result"].is_object());
    let list = pipe.ask(&request(json!(4), "tools/list", json!({}))).await;
    assert!(list["result"].is_object(), "{list}");
}

/// EXT-4: whoever declares all that is required is served, wherever it put its declarations; the first that
/// is missing is named.
#[tokio::test]
async fn who_declares_what_is_required_is_served() {
    let harness = Harness::with(requiring(&[VARIANTS, NEGOTIATION, UNITS])).await;
    let all = json!({VARIANTS: {}, NEGOTIATION: {"features": ["agent", "format=json"]}, UNITS: {"si": true}});
    for declared in [
        json!({"extensions": all}),
        json!({"experimental": all}),
        json!({"experimental": {"extensions": all}}),
    ] {
        for way in ClientKind::ALL {
            let answer = ask_as(&harness, way, &declared, "tools/call", tool("odd")).await;
            assert_eq!(answer["result"]["content"], json!([]), "{way:?} {declared}");
        }
    }
    for (declared, missing) in [
        (json!({}), VARIANTS),
        (json!({VARIANTS: {}, UNITS: {}}), NEGOTIATION),
        (json!({VARIANTS: {}, NEGOTIATION: {}}), UNITS),
        (json!({VARIANTS: {}, NEGOTIATION: {}, UNITS: 1}), UNITS),
    ] {
        let capabilities = json!({"extensions": declared});
        let list = modern(json!(1), "tools/list", json!({}), &capabilities);
        let mut http = harness.connect().await;
        let (_, error) = refusal(&mut http, &HttpRequest::modern(&list)).await;
        assert_eq!(error, error_for(missing, -32021));
    }
}

/// EXT-3: what is switched off is asked of nobody.
#[tokio::test]
async fn what_is_off_is_not_required() {
    let harness = Harness::with(|config| {
        let config = requiring(&[VARIANTS, NEGOTIATION])(config);
        config.with_variants(false).with_negotiation(false)
    })
    .await;
    for way in ClientKind::ALL {
        let list = harness.ask(way, "tools/list", json!({})).await;
        assert!(list["result"].is_object(), "{way:?} {list}");
    }
    LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
}
