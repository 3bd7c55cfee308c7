//! Links of results and the user interfaces of tools: they open nothing that access rules hide.

use super::groups::{ask_both, bearer, for_group, named, with_rules};
use crate::support::*;

const UI: &str = "io.modelcontextprotocol/ui";

/// A server whose tool `find` links to a listed resource and to one that no list has, and whose tools have user
/// interfaces: `draw` one that no list has.
fn server(era: Era) -> Script {
    let tool = |name: &str, ui: Value| json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"ui": ui}});
    let link = |uri: &str| json!({"type": "resource_link", "uri": uri, "name": "x"});
    Script::new(era, "apps")
        .declares(json!({"resources": {"subscribe": true}, "extensions": {UI: {}}}))
        .lists(json!({
            "tools": [
                tool("find", json!({})),
                tool("draw", json!({"resourceUri": "ui://draw"})),
                tool(
                    "erase",
                    json!({"resourceUri": "ui://erase", "visibility": ["app"]})
                ),
            ],
            "resources": [{"uri": "file:listed", "name": "listed"}],
        }))
        .on_call(move |params| match params["name"].as_str() {
            Some("find") => json!({"content": [link("file:listed"), link("file:linked")]}),
            name => json!({"content": [], "name": name}),
        })
        .on(
            "resources/read",
            |params| json!({"contents": [{"uri": params["uri"], "text": "secret"}]}),
        )
        .result("resources/subscribe", json!({}))
}

/// Operators may use everything, and developers what matches one of `patterns`.
async fn before(era: Era, patterns: &[&str]) -> Harness {
    let peer = server(era).start().await;
    let allowed: Vec<_> = patterns.iter().map(|pattern| named(pattern)).collect();
    let rules = [
        for_group("sre").with_allow([named("*")]),
        for_group("dev").with_allow(allowed),
    ];
    let config = with_rules(config(Target::http(peer.url.clone())), rules);
    Harness::behind(peer, config).await
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A client of each era that has apps.
async fn ask_as_app(harness: &Harness, who: &str, method: &str, params: Value) -> [Value; 2] {
    let capabilities = json!({"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}});
    let mut http = RawHttp::connect(harness.address()).await;
    let open = HttpRequest::initialize(&capabilities);
    let id = http
        .open_session(&open.with("Authorization", bearer(who)))
        .await;
    let message = request(json!(1), method, params.clone()).to_string();
    let post = HttpRequest::of(&id, message).with("Authorization", bearer(who));
    let legacy = http.ask(&post).await.json();
    let post = HttpRequest::modern_request_as(method, params, &capabilities)
        .with("Authorization", bearer(who));
    [legacy, http.ask(&post).await.json()]
}

/// Whether a developer gets the answers to `hidden` that it gets to a name that nobody has, and no server is asked.
async fn is_unknown(harness: &Harness, method: &str, key: &str, hidden: &str) {
    let before = harness.peer.of(method).len();
    let unknown = format!("{hidden}-nix");
    let params = |name: &str| json!({key: name, "arguments": {}});
    let of_hidden = ask_as_app(harness, "dev", method, params(hidden)).await;
    let of_unknown = ask_as_app(harness, "dev", method, params(&unknown)).await;
    for (one, other) in std::iter::zip(of_hidden, of_unknown) {
        assert!(one["error"].is_object(), "{method} {one}");
        let other = other.to_string().replace(&unknown, hidden);
        assert_eq!(one.to_string(), other, "{method}");
    }
    assert_eq!(harness.peer.of(method).len(), before, "{method} {hidden}");
}

/// Results are passed on unchanged, with their links. To read what a link names, a client needs access to it: neither its
/// own call nor the call of another client that has access grants it.
#[tokio::test]
async fn a_link_to_a_hidden_resource_leads_nowhere() {
    for era in ERAS {
        let harness = before(era, &["find"]).await;
        let call = json!({"name": "find", "arguments": {}});
        for who in ["sre", "dev"] {
            for answer in ask_both(&harness, who, "tools/call", call.clone()).await {
                let linked = &answer["result"]["content"][1]["uri"];
                assert_eq!(linked, "file:linked", "{answer}");
            }
        }
        for uri in ["file:listed", "file:linked"] {
            for answer in ask_both(&harness, "sre", "resources/read", json!({"uri": uri})).await {
                answer.has("/result/contents/0/text", "secret");
            }
            is_unknown(&harness, "resources/read", "uri", uri).await;
        }
    }
}

#[tokio::test]
async fn a_link_to_a_hidden_resource_cannot_be_subscribed_to() {
    let harness = before(Era::Legacy, &["find"]).await;
    let call = json!({"name": "find", "arguments": {}});
    ask_both(&harness, "dev", "tools/call", call).await;
    for uri in ["file:listed", "file:linked"] {
        let subscribe = async |uri: &str| {
            let uri = json!({"uri": uri});
            ask_as_app(&harness, "dev", "resources/subscribe", uri).await
        };
        let ([of_hidden, _], [of_unknown, _]) = (subscribe(uri).await, subscribe("file:nix").await);
        let of_unknown = of_unknown.to_string().replace("file:nix", uri);
        assert_eq!(of_hidden.to_string(), of_unknown);

        let params = json!({"notifications": everything(&[uri])});
        let listen = modern(json!(1), "subscriptions/listen", params, &json!({}));
        let listen = HttpRequest::modern(&listen).with("Authorization", bearer("dev"));
        let mut stream = harness.connect().await;
        stream.open_stream(&listen).await;
        let accepted = soon(stream.event()).await.unwrap();
        let uris = &accepted["params"]["notifications"]["resourceSubscriptions"];
        let is_none = uris.as_array().is_none_or(Vec::is_empty);
        assert!(is_none, "subscribed to {uris}");
    }
    assert_eq!(harness.peer.of("resources/subscribe").len(), 0);
}

/// A link opens a resource that no list has where the rules allow its URI, and only to those who see what links there.
#[tokio::test]
async fn a_link_of_a_hidden_tool_opens_nothing() {
    for era in ERAS {
        let call = json!({"name": "find", "arguments": {}});
        for (patterns, is_open) in [(["find", "file:*"], true), (["draw", "file:*"], false)] {
            let harness = before(era, &patterns).await;
            ask_both(&harness, "sre", "tools/call", call.clone()).await;
            if is_open {
                let uri = json!({"uri": "file:linked"});
                for answer in ask_both(&harness, "dev", "resources/read", uri).await {
                    answer.has("/result/contents/0/text", "secret");
                }
            } else {
                is_unknown(&harness, "resources/read", "uri", "file:linked").await;
            }
        }
    }
}

/// Apps call tools by the names of their server, and the code of a user interface is a resource.
#[tokio::test]
async fn an_app_is_bound_by_the_rules_of_its_user() {
    for era in ERAS {
        let harness = before(era, &["draw"]).await;
        for list in ask_as_app(&harness, "dev", "tools/list", json!({})).await {
            assert_eq!(names(&list), ["draw"], "{list}");
            let tool = &list["result"]["tools"][0];
            tool.has("/_meta/ui/resourceUri", "ui://draw");
        }
        for name in ["find", "erase"] {
            is_unknown(&harness, "tools/call", "name", name).await;
        }
        // The tool is allowed, and its user interface is not.
        for uri in ["ui://draw", "ui://erase"] {
            is_unknown(&harness, "resources/read", "uri", uri).await;
        }
        let uri = json!({"uri": "ui://erase"});
        for answer in ask_as_app(&harness, "sre", "resources/read", uri).await {
            answer.has("/result/contents/0/text", "secret");
        }
    }
}

/// The user interface of an allowed tool can be read where the rules allow it, too; that of a hidden tool cannot.
#[tokio::test]
async fn a_user_interface_is_visible_with_its_tool_and_its_uri() {
    for era in ERAS {
        let harness = before(era, &["draw", "ui:*"]).await;
        let uri = json!({"uri": "ui://draw"});
        for answer in ask_as_app(&harness, "dev", "resources/read", uri).await {
            answer.has("/result/contents/0/text", "secret");
        }
    }
}
