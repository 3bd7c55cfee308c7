//! SV-9: which variants a client can select, and which ones errors name, as far as the operator restricts that.

use crate::support::*;

async fn ask_at(harness: &Harness, line: &str, header: Option<&str>, post: HttpRequest) -> Value {
    let mut post = post.line(line);
    if let Some(header) = header {
        post = post.with("MCP-Server-Variant", header);
    }
    let mut http = RawHttp::connect(harness.address()).await;
    http.ask(&post).await.json()
}

fn list() -> HttpRequest {
    HttpRequest::modern_request("tools/list", json!({}))
}

/// SV-9: nobody learns which variants there are by asking for one that does not exist.
#[tokio::test]
async fn errors_name_no_variant_if_the_operator_wants_none_named() {
    let harness = Harness::configured(
        places_server::script(Era::Legacy),
        "enumerate-variants: off",
    )
    .await;
    let expected = json!({"code": -32602, "message": "Invalid server variant", "data": {"requestedVariant": "nix"}});
    for kind in ClientKind::ALL {
        let params = under("nix", json!({}));
        let refused = harness.ask(kind, "tools/list", params).await;
        assert_eq!(refused["error"], expected, "{kind:?}");
        let params = under("compact", json!({}));
        let listed = harness.ask(kind, "tools/list", params).await;
        assert!(listed["result"].is_object(), "{kind:?}: {listed}");
    }
    let refused = ask_at(&harness, "POST /mcp/v/nix HTTP/1.1", None, list()).await;
    assert_eq!(refused["error"], expected);
    let refused = ask_at(&harness, "POST /mcp HTTP/1.1", Some("nix"), list()).await;
    assert_eq!(refused["error"], expected);
}

/// SV-9: in both eras, by selector, header and address.
#[tokio::test]
async fn only_offered_variants_can_be_selected_if_the_operator_wants_that() {
    let harness = Harness::configured(
        places_server::script(Era::Legacy),
        "advertised-only: on\nranking: {advertised: 2}",
    )
    .await;
    let expected = |offered: &[&str]| {
        let data = json!({"requestedVariant": "directory", "availableVariants": offered});
        json!({"code": -32602, "message": "Invalid server variant", "data": data})
    };
    for kind in ClientKind::ALL {
        let list = async |declared: &Value, id: &str| {
            let params = under(id, json!({}));
            kind.ask(&harness, declared, "tools/list", params).await
        };
        let refused = list(&json!({}), "directory").await;
        let offered = expected(&["standard", "compact"]);
        assert_eq!(refused["error"], offered, "{kind:?}");
        // Other hints, other offers.
        let reads = hints(json!({"accessLevel": "readonly"}));
        let refused = list(&reads, "directory").await;
        let offered = expected(&["read-only", "standard"]);
        assert_eq!(refused["error"], offered, "{kind:?}");
        let listed = list(&reads, "read-only").await;
        assert!(listed["result"].is_object(), "{kind:?}: {listed}");
    }
    // An address or header decides what a client is offered.
    let address = "POST /mcp/v/directory HTTP/1.1";
    let listed = ask_at(&harness, address, None, list()).await;
    assert!(listed["result"].is_object(), "{listed}");
    let listed = ask_at(&harness, "POST /mcp HTTP/1.1", Some("directory"), list()).await;
    assert!(listed["result"].is_object(), "{listed}");
    let open = HttpRequest::initialize(&json!({}));
    let opened = ask_at(&harness, address, None, open).await;
    assert!(opened["result"].is_object(), "{opened}");
    // A session was offered what `initialize` returned.
    let session = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let post = || session.post(&request(json!(2), "tools/list", json!({})));
    for (line, header) in [(address, None), ("POST /mcp HTTP/1.1", Some("directory"))] {
        let refused = ask_at(&harness, line, header, post()).await;
        let found = &refused["error"];
        assert_eq!(*found, expected(&["standard", "compact"]), "{line}");
    }
}

/// SV-2: that there are more variants is still said: other hints may get them.
#[tokio::test]
async fn clients_learn_that_there_are_more_variants_than_they_can_select() {
    let harness = Harness::configured(
        places_server::script(Era::Legacy),
        "advertised-only: on\nranking: {advertised: 2}",
    )
    .await;
    let answer = harness.ask_modern("server/discover", json!({})).await;
    let extensions = &answer["result"]["capabilities"]["extensions"];
    let settings = &extensions["io.modelcontextprotocol/server-variants"];
    assert_eq!(settings["moreVariantsAvailable"], true, "{answer}");
}
