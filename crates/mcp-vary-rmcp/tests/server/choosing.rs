//! Other ways to select a variant than `_meta`, the switch limit, and the audit.

use crate::prelude::*;
use crate::shop::Shop;
use crate::support::{end_session, modern_headers, post, role};
use crate::variants::who;
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::server::{SelectionOutcome, SwitchLimit, VariantSelection};

fn shops() -> Builder {
    let variant = |id: &str, case: &str| {
        ServerVariant::new(id.parse().unwrap(), "").with_hint("useCase", case)
    };
    VaryServer::builder()
        .with_variant(variant("a", "one"), Shop::new("a"))
        .with_variant(variant("b", "two"), Shop::new("b"))
        .with_variant(variant("c", "three"), Shop::new("c"))
}

const MISMATCH: &str = "Header mismatch: MCP-Server-Variant does not select the variant of _meta";
const TOO_MANY: &str = "Too many switches of the server variant";

fn first(client: &Client) -> Value {
    client.capabilities()["extensions"][VARIANTS]["availableVariants"][0]["id"].clone()
}

/// SV-2, SV-18: the header selects the default, before any other rule; `_meta` takes precedence.
#[tokio::test]
async fn a_header_chooses_the_default() {
    let server = shops()
        .with_variant_header()
        .with_default_variant(|_| Some("c".to_owned()));
    let server = serve_http(server.build().unwrap()).await;
    for era in each([Era::Legacy, Era::Modern]) {
        for (header, default) in [(Some("b"), "b"), (Some("none"), "c"), (None, "c")] {
            let headers = header.map(|id| ("mcp-server-variant", id));
            let client = join(&server.url, era, json!({}), headers.as_slice()).await;
            assert_eq!(first(&client), default, "{header:?}");
            assert_eq!(who(&client, "").await, json!([default, default]));
            assert_eq!(who(&client, "a").await, json!(["a", "a"]), "{header:?}");
        }
    }
}

/// SV-18: the header is ignored unless the server is configured to read it.
#[tokio::test]
async fn a_header_is_read_on_request_only() {
    let server = serve_http(shops().build().unwrap()).await;
    for era in each([Era::Legacy, Era::Modern]) {
        let header = [("mcp-server-variant", "b")];
        let client = join(&server.url, era, json!({}), &header).await;
        let expected = (json!("a"), json!(["a", "a"]));
        assert_eq!((first(&client), who(&client, "").await), expected);
    }
}

/// SV-9, SV-18: a strict server rejects a header that contradicts `_meta`, or names a variant that
/// does not exist.
#[tokio::test]
async fn a_strict_server_refuses_a_contradiction() {
    let server = serve_http(shops().with_strict_variant_header().build().unwrap()).await;
    for (era, code) in [(Era::Legacy, -32602), (Era::Modern, -32020)] {
        let header = [("mcp-server-variant", "b")];
        let client = join(&server.url, era, json!({}), &header).await;
        for agreed in ["", "b"] {
            assert_eq!(who(&client, agreed).await, json!(["b", "b"]), "{era:?}");
        }
        for selector in [json!("a"), json!("none"), json!(7), json!("")] {
            let meta = json!({VARIANT: selector});
            let error = client.ask("tools/list", json!({}), meta).await.unwrap_err();
            let expected = json!({"headerVariant": "b", "requestedVariant": selector});
            assert_eq!(data_of(error, code, MISMATCH), expected, "{era:?}");
        }

        // The offers do not depend on an invalid header.
        let header = [("mcp-server-variant", "none")];
        let client = join(&server.url, era, json!({}), &header).await;
        assert_eq!(first(&client), "a", "{era:?}");
        let error = client.error("", "tools/list", json!({})).await;
        let data = data_of(error, -32602, "Invalid server variant");
        assert_eq!(data["requestedVariant"], "none");
    }
}

/// SV-18: a repeated header, or one that is not text, is not a variant either.
#[tokio::test]
async fn a_header_that_is_no_variant_is_refused_by_strict_servers() {
    let server = serve_http(shops().with_strict_variant_header().build().unwrap()).await;
    let request = modern(1, "tools/list", json!({}), json!({}));
    for values in [&["a", "b"][..], &[""], &["a, a"], &["\u{e4}"]] {
        let mut headers = modern_headers("tools/list", "");
        headers.extend(values.iter().map(|value| ("MCP-Server-Variant", *value)));
        let (_, answer) = post(&server.url, &request, &headers).await;
        assert_eq!(answer["error"]["code"], -32602, "{values:?} {answer}");
        let requested = &answer["error"]["data"]["requestedVariant"];
        assert_eq!(*requested, values.join(", "), "{answer}");
    }
}

/// SV-18: a contradiction has the HTTP status of every header that contradicts the body.
#[tokio::test]
async fn a_contradiction_is_a_bad_request() {
    let server = serve_http(shops().with_strict_variant_header().build().unwrap()).await;
    let mut request = modern(1, "tools/list", json!({}), json!({}));
    request["params"]["_meta"][VARIANT] = json!("a");
    let mut headers = modern_headers("tools/list", "");
    headers.push(("MCP-Server-Variant", "b"));
    let (status, answer) = post(&server.url, &request, &headers).await;
    let found = (status, &answer["error"]["code"]);
    assert_eq!(found, (400, &json!(-32020)), "{answer}");
}

fn twice_a_minute() -> SwitchLimit {
    SwitchLimit::new(2, Duration::from_secs(60))
}

/// SV-21: a session may change its variant as often as the limit allows, and then stays where it
/// is.
#[tokio::test(start_paused = true)]
async fn a_session_may_change_its_variant_so_often() {
    let server = shops().with_switch_limit(twice_a_minute()).build().unwrap();
    let client = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    for variant in ["a", "a", "b", "b", "", "a"] {
        who(&client, variant).await;
    }
    tokio::time::advance(Duration::from_millis(17_500)).await;
    for _ in 0..3 {
        let error = client.error("b", "tools/list", json!({})).await;
        let expected = json!({"activeVariant": "a", "retryAfter": 43});
        assert_eq!(data_of(error, -32000, TOO_MANY), expected);
        who(&client, "a").await;
    }
    // Rejected switches do not count, and each switch counts for a minute.
    tokio::time::advance(Duration::from_secs(43)).await;
    who(&client, "b").await;
    who(&client, "c").await;
    let error = client.error("a", "tools/list", json!({})).await;
    let expected = json!({"activeVariant": "c", "retryAfter": 60});
    assert_eq!(data_of(error, -32000, TOO_MANY), expected);

    // Another session has its own counter.
    let other = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    who(&other, "b").await;
}

/// SV-14, SV-21: a client that has reached the limit can still unsubscribe.
#[tokio::test]
async fn unsubscribing_is_no_change() {
    let none = SwitchLimit::new(0, Duration::from_secs(60));
    let server = shops().with_switch_limit(none).build().unwrap();
    let client = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    let all = json!({"uri": "shop:///all"});
    client.result("a", "resources/subscribe", all.clone()).await;
    let unsubscribe = "resources/unsubscribe";
    client.result("b", unsubscribe, all.clone()).await;
    let error = client.error("b", "resources/subscribe", all).await;
    assert_eq!(data_of(error, -32000, TOO_MANY)["activeVariant"], "a");
    who(&client, "a").await;
}

/// SV-21: modern requests are counted by principal, and not counted without one.
#[tokio::test]
async fn a_principal_may_change_its_variant_so_often() {
    let server = shops()
        .with_switch_limit(twice_a_minute())
        .with_principal(principal);
    let server = serve_http(server.build().unwrap()).await;
    let as_role = |role: &'static str| {
        let url = server.url.clone();
        async move {
            let headers = (!role.is_empty()).then_some(("x-role", role));
            join(&url, Era::Modern, json!({}), headers.as_slice()).await
        }
    };
    let (one, again) = (as_role("one").await, as_role("one").await);
    let other = as_role("other").await;
    for variant in ["a", "b", "c"] {
        who(&one, variant).await;
        who(&other, variant).await;
    }
    let error = again.error("a", "tools/list", json!({})).await;
    assert_eq!(data_of(error, -32000, TOO_MANY)["activeVariant"], "c");
    who(&again, "c").await;

    let nobody = as_role("").await;
    for variant in ["a", "b", "c", "a", "b", "c"] {
        who(&nobody, variant).await;
    }
}

/// SV-21: HTTP has a status for this, 429 with `Retry-After`. rmcp 3.8 derives the status from the
/// code alone and has none for ours (`jsonrpc_http_status`,
/// transport/streamable_http_server/tower.rs). When this test fails, use it, and update the table
/// in `server/mod.rs`.
#[tokio::test]
async fn rmcp_still_has_no_status_for_too_many_switches() {
    let none = SwitchLimit::new(0, Duration::from_secs(60));
    let server = shops()
        .with_switch_limit(none)
        .with_principal(|_| Some(member("one")));
    let server = serve_http(server.build().unwrap()).await;
    let headers = modern_headers("tools/list", "");
    let mut request = modern(1, "tools/list", json!({}), json!({}));
    for (variant, code) in [("a", Value::Null), ("b", json!(-32000))] {
        request["params"]["_meta"][VARIANT] = json!(variant);
        let (status, answer) = post(&server.url, &request, &headers).await;
        assert_eq!((status, &answer["error"]["code"]), (200, &code), "{answer}");
    }
}

/// The recorded selections, one line each.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<String>>>);

impl Records {
    fn record(&self, selection: &VariantSelection<'_>) {
        let principal = selection.principal.and_then(|it| it.key_name());
        let principal = principal.unwrap_or_default();
        let hints = selection.hints.values("useCase").join(",");
        let order: Vec<_> = selection.ranking.ids().map(|id| id.as_str()).collect();
        let outcome = match selection.outcome {
            SelectionOutcome::Selected {
                variant,
                previous,
                source,
                ..
            } => {
                let previous = previous.map_or("-", |id| id.as_str());
                format!("{previous} to {variant} by {source:?}")
            }
            SelectionOutcome::Rejected(error) => error.message.to_string(),
            _ => panic!("{selection:?}"),
        };
        let line = format!("{principal} [{hints}] {}: {outcome}", order.join(","));
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn recorded(server: Builder) -> (VaryServer, Records) {
    let records = Records::default();
    let recorder = records.clone();
    let server = server.with_audit(move |_, selection| recorder.record(selection));
    (server.build().unwrap(), records)
}

/// SV-22: each selection and each rejection is recorded with its principal, hints and ranking;
/// nothing is recorded twice.
#[tokio::test]
async fn choices_are_recorded() {
    for era in each([Era::Legacy, Era::Modern]) {
        let (server, records) = recorded(
            shops()
                .with_principal(|_| Some(member("ada")))
                .with_visibility(|_, variant| variant.id != *"c")
                .with_switch_limit(twice_a_minute()),
        );
        let hints = declaring(&[], json!({"useCase": "two"}));
        let client = connect_with(&server, (era, Wire::Pipe), hints).await;
        for variant in ["", "", "b", "a", "a", "c", "b", "a", "a"] {
            let _ = client.under(variant, "tools/list", json!({})).await;
        }
        let expected = [
            "ada [two] b,a: - to b by Ranking",
            "ada [two] b,a: b to a by Selector",
            "ada [two] b,a: Invalid server variant",
            "ada [two] b,a: a to b by Selector",
            "ada [two] b,a: Too many switches of the server variant",
            "ada [two] b,a: Too many switches of the server variant",
        ];
        assert_eq!(records.take(), expected);
    }
}

/// SV-22: changed hints are a new selection, whatever selected the variant.
#[tokio::test]
async fn new_hints_are_a_new_choice() {
    let rule = |context: &Context| (role(context) == Some("ruled")).then(|| "c".to_owned());
    let server = shops()
        .with_variant_header()
        .with_default_variant(rule)
        .with_principal(principal);
    let (server, records) = recorded(server);
    let server = serve_http(server).await;
    let ask = |hint: &'static str, header: &'static [(&'static str, &'static str)]| {
        let url = server.url.clone();
        async move {
            let hints = declaring(&[], json!({"useCase": hint}));
            let client = join(&url, Era::Modern, hints, header).await;
            client.result("", "tools/list", json!({})).await;
            client.result("", "tools/list", json!({})).await;
        }
    };
    ask("two", &[("x-role", "one")]).await;
    ask("two", &[("x-role", "one")]).await;
    ask("none", &[("x-role", "one")]).await;
    ask("none", &[("x-role", "ruled")]).await;
    ask("none", &[("x-role", "ruled"), ("mcp-server-variant", "a")]).await;
    let expected = [
        "one [two] b,a,c: - to b by Ranking",
        "one [none] a,b,c: b to a by Ranking",
        "ruled [none] c,a,b: - to c by Rule",
        "ruled [none] a,b,c: c to a by Header",
    ];
    assert_eq!(records.take(), expected);
}

/// SV-18, SV-22: rejections by a strict server are recorded too.
#[tokio::test]
async fn a_strict_refusal_is_recorded() {
    let (server, records) = recorded(shops().with_strict_variant_header());
    let server = serve_http(server).await;
    let header = [("mcp-server-variant", "b")];
    let client = join(&server.url, Era::Modern, json!({}), &header).await;
    let error = client.error("a", "tools/list", json!({})).await;
    let data = json!({"headerVariant": "b", "requestedVariant": "a"});
    assert_eq!(data_of(error, -32020, MISMATCH), data);
    let [record] = &records.take()[..] else {
        panic!("one record");
    };
    assert!(record.contains("b,a,c: Header mismatch"), "{record}");
}

/// SV-19: rmcp 3.8 starts a lost HTTP session again and does not report it
/// (`reinit_on_expired_session`, transport/streamable_http_client.rs): the offers are those of the
/// lost session, and only a rejection reveals this. When this test fails, rmcp reports it, and
/// `client::Client` can read the offers again.
#[tokio::test]
async fn rmcp_still_hides_that_a_session_began_anew() {
    let (id, is_over) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let (seen, hides) = (Arc::clone(&id), Arc::clone(&is_over));
    let server = shops().with_visibility(move |context, variant| {
        let parts = context.extensions.get::<http::request::Parts>().unwrap();
        if let Some(id) = parts.headers.get("mcp-session-id") {
            *seen.lock().unwrap() = Some(id.to_str().unwrap().to_owned());
        }
        variant.id != *"c" || !hides.load(Ordering::Relaxed)
    });
    let server = serve_http(server.build().unwrap()).await;
    let client = join(&server.url, Era::Legacy, json!({}), &[]).await;
    who(&client, "c").await;
    let before = client.capabilities();

    is_over.store(true, Ordering::Relaxed);
    let lost = id.lock().unwrap().take().unwrap();
    end_session(&server.url, &lost).await;
    assert_eq!(who(&client, "a").await, json!(["a", "a"]));
    assert_ne!(id.lock().unwrap().clone(), Some(lost));
    assert_eq!(client.capabilities(), before);
    let error = client.error("c", "tools/list", json!({})).await;
    let data = json!({"requestedVariant": "c", "availableVariants": ["a", "b"]});
    assert_eq!(data_of(error, -32602, "Invalid server variant"), data);
}
