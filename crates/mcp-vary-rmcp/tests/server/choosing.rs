//! Other ways to select a variant than `_meta`.

use crate::prelude::*;
use crate::shop::Shop;
use crate::support::{end_session, modern_headers, post};
use crate::variants::who;
use mcp_vary::variant::ServerVariant;

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
