use mcp_vary::extension::SERVER_VARIANTS;
use serde_json::json;

use super::*;
use crate::pipeline::clients::{legacy_client, modern_client};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router::dispatch;
use crate::pipeline::runtime::Services;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_base::environment::Environment;
use mcp_vary_session::caller::Caller;
use mcp_vary_settings::config::Config;
use mcp_vary_upstream::{Target, UpstreamConfig};
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};

/// A snapshot whose server is not there; what is asked for here needs none.
async fn snapshot(on: bool) -> Arc<ConfigSnapshot> {
    let target = Target::command("no-such-program-of-ours", []);
    let outside = Environment::new(|| 1_000, |bytes| bytes.fill(7));
    let config = Config::new(UpstreamConfig::new("none", target), outside);
    let config = config.with_variants(on);
    let services = Arc::new(Services::new(&config));
    Arc::new(ConfigSnapshot::open(config, services, None).await)
}

/// What a request by a credential of `compact` says beside its message.
fn caller(requested: &VariantRequest) -> Caller {
    Caller {
        requested: requested.clone(),
        ..Caller::default()
    }
}

fn pinned() -> VariantRequest {
    VariantRequest {
        pin: Some("compact".parse().unwrap()),
        ..VariantRequest::default()
    }
}

/// What a modern client is answered to `method`, that prefers `read-only`, and may name a variant.
async fn answer_to(
    snapshot: &Arc<ConfigSnapshot>,
    requested: &VariantRequest,
    method: &str,
    selector: Option<&str>,
) -> Value {
    let mut meta = json!({
        PROTOCOL_VERSION: "2026-07-28",
        CLIENT_CAPABILITIES: {"extensions": {
            SERVER_VARIANTS: {"variantHints": {"hints": {"accessLevel": "readonly"}}},
        }},
    });
    if let Some(selector) = selector {
        meta[SERVER_VARIANT_META] = json!(selector);
    }
    // What a client cannot read says which variant it looked in.
    let text = json!({"uri": "vary://result/none", "_meta": meta}).to_string();
    let params = Params::read(Some(&text)).unwrap();
    let client = match modern_client(snapshot, "tools/list", &caller(requested), &params) {
        Ok(client) => client,
        Err(failure) => return serde_json::from_slice(&failure.to_bytes(None)).unwrap(),
    };
    let request = IncomingRequest {
        id: "1",
        method,
        params,
        client: None,
        headers: None,
        message: None,
    };
    let Dispatch::Done(reply) = dispatch(snapshot, &client, request).await else {
        panic!("no server is asked");
    };
    serde_json::from_slice(&reply.body).unwrap()
}

#[track_caller]
fn is_invalid(answer: &Value, requested: &str, available: &Value) {
    let error = &answer["error"];
    assert_eq!(error["code"], -32602, "{answer}");
    assert_eq!(error["message"], "Invalid server variant");
    let data = json!({"requestedVariant": requested, "availableVariants": available});
    assert_eq!(error["data"], data);
}

#[track_caller]
fn is_offered_alone(offered: &Value) {
    let variants = offered["availableVariants"].as_array().unwrap();
    let ids: Vec<_> = variants.iter().map(|variant| &variant["id"]).collect();
    assert_eq!(ids, ["compact"]);
    assert_eq!(offered.get("moreVariantsAvailable"), None, "{offered}");
}

/// SV-9: a credential with a pin sees one variant, whatever the client prefers or names.
#[tokio::test]
async fn for_a_pinned_client_there_is_one_variant() {
    let snapshot = snapshot(true).await;
    let offered = answer_to(&snapshot, &pinned(), "server/discover", None).await;
    let offered = &offered["result"]["capabilities"]["extensions"][SERVER_VARIANTS];
    is_offered_alone(offered);
    for selector in [None, Some("compact")] {
        let answer = answer_to(&snapshot, &pinned(), "resources/read", selector).await;
        let found = &answer["error"]["data"]["activeVariant"];
        assert_eq!(*found, "compact", "{answer}");
    }
    // One that there is for others, and one that there is for nobody.
    for other in ["standard", "no-such", ""] {
        let answer = answer_to(&snapshot, &pinned(), "resources/read", Some(other)).await;
        is_invalid(&answer, other, &json!(["compact"]));
        let unpinned = answer_to(
            &snapshot,
            &VariantRequest::default(),
            "resources/read",
            Some("standard"),
        )
        .await;
        let found = &unpinned["error"]["data"]["activeVariant"];
        assert_eq!(*found, "standard", "{unpinned}");
    }
}

/// SV-9: no address and no header leads a pinned client elsewhere.
#[tokio::test]
async fn address_and_header_name_the_pinned_variant_or_none() {
    let snapshot = snapshot(true).await;
    let by_path = |id: &str| VariantRequest {
        path: Some(id.to_owned()),
        ..pinned()
    };
    let by_header = |id: &str| VariantRequest {
        header: Some(id.to_owned()),
        ..pinned()
    };
    for requested in [by_path("compact"), by_header("compact")] {
        let answer = answer_to(&snapshot, &requested, "resources/read", None).await;
        let found = &answer["error"]["data"]["activeVariant"];
        assert_eq!(*found, "compact", "{answer}");
    }
    for other in ["standard", "no-such"] {
        for requested in [by_path(other), by_header(other)] {
            let answer = answer_to(&snapshot, &requested, "resources/read", None).await;
            is_invalid(&answer, other, &json!(["compact"]));
        }
    }
}

/// SV-9: a session is opened with the pinned variant alone; a pin that came later counts, too.
#[tokio::test]
async fn a_pinned_session_has_one_variant() {
    let snapshot = snapshot(true).await;
    let text = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    })
    .to_string();
    let params = Params::read(Some(&text)).unwrap();
    let (negotiated, result) = initialize(&snapshot, &caller(&pinned()), &params)
        .await
        .unwrap();
    assert_eq!(negotiated.order, ["compact"]);
    let result: Value = serde_json::from_str(&result).unwrap();
    is_offered_alone(&result["capabilities"]["extensions"][SERVER_VARIANTS]);
    let (negotiated, _) = initialize(&snapshot, &Caller::default(), &params)
        .await
        .unwrap();
    assert_eq!(negotiated.order.len(), 4);
    let session = snapshot.services.sessions.open_stdio(negotiated);
    let client = legacy_client(&snapshot, &session, &caller(&pinned()), &params).unwrap();
    assert_eq!(client.offers.pin, snapshot.variant_index("compact"));
    assert_eq!(client.offers.order.len(), 1);
}

/// A pin to what is gone leaves nothing rather than everything, and one where variants are off is still one.
#[tokio::test]
async fn a_pin_never_opens_more() {
    let gone = VariantRequest {
        pin: Some("gone".parse().unwrap()),
        ..VariantRequest::default()
    };
    let answer = answer_to(&snapshot(true).await, &gone, "resources/read", None).await;
    let error = json!({"code": -32602, "message": NO_VARIANT});
    assert_eq!(answer["error"], error);
    let answer = answer_to(
        &snapshot(true).await,
        &gone,
        "resources/read",
        Some("standard"),
    )
    .await;
    is_invalid(&answer, "standard", &json!([]));
    let off = snapshot(false).await;
    let text = r#"{"uri":"x"}"#;
    let params = Params::read(Some(text)).unwrap();
    let offers = off
        .selector
        .select(
            &Candidates {
                order: &Arc::default(),
                allowed: None,
                outcome: None,
            },
            &pinned(),
            &params,
            |_| None,
        )
        .unwrap();
    assert_eq!(Some(offers.default_variant()), off.variant_index("compact"));
    assert!(offers.order.is_empty());
}
