//! Variants as a client sees them.

use std::sync::atomic::AtomicUsize;

use crate::prelude::*;
use crate::shop::Shop;
use crate::support::role;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status};

pub(crate) fn variant(id: &str) -> ServerVariant {
    ServerVariant::new(id.parse().unwrap(), format!("The {id} one"))
}

/// A server with the variant `a` alone.
pub(crate) fn one_variant(handler: impl Into<VariantHandler>) -> VaryServer {
    let server = VaryServer::builder().with_variant(variant("a"), handler);
    server.build().unwrap()
}

/// Two handlers, and a view of the first.
pub(crate) fn shops() -> Builder {
    let plain = VariantHandler::new(Shop::new("plain"));
    let renamed = ToolView::new().with_name("who").with_description("Short");
    let fixed = ToolView::new().with_argument("a", json!(7));
    let view = View::new()
        .with_tools(["get_who", "get_arguments", "put_tools"])
        .with_tool("get_who", renamed)
        .with_tool("get_arguments", fixed)
        .with_prompts(["greet"])
        .with_prompt("greet", PromptView::new().with_name("hello"))
        .with_resources_where(|uri| uri != "shop:///plain");
    let size = |id, size| variant(id).with_hint("contextSize", size);
    let rich = variant("rich").with_hint("useCase", "planning");
    VaryServer::builder()
        .with_variant(size("plain", "standard"), plain.clone())
        .with_variant(size("small", "compact"), plain.with_view(view))
        .with_variant(rich, Shop::new("rich"))
}

pub(crate) fn server() -> VaryServer {
    shops().build().unwrap()
}

pub(crate) fn ids(capabilities: &Value) -> Vec<&str> {
    let offered = &capabilities["extensions"][VARIANTS]["availableVariants"];
    let offered = offered.as_array().into_iter().flatten();
    offered
        .map(|variant| variant["id"].as_str().unwrap())
        .collect()
}

pub(crate) fn said(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

/// The label of the handler that answers under `variant`, and the variant that it sees.
pub(crate) async fn who(client: &Client, variant: &str) -> Value {
    said(&client.call(variant, "get_who", json!({})).await)
}

const INVALID: &str = "Invalid server variant";

const CALL: &str = "tools/call";

/// SV-1, SV-2, SV-5: the handshake of either era contains the offers, the best for this client
/// first.
#[tokio::test]
async fn variants_are_offered_in_the_order_of_the_clients_hints() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        assert_eq!(ids(&client.capabilities()), ["plain", "small", "rich"]);
        let hints = json!({"contextSize": "compact", "useCase": ["planning"]});
        let client = connect_with(&server(), way, declaring(&[], hints)).await;
        let capabilities = client.capabilities();
        assert_eq!(ids(&capabilities), ["rich", "small", "plain"]);
        let settings = &capabilities["extensions"][VARIANTS];
        assert_eq!(settings.get("moreVariantsAvailable"), None);
        let rich = json!({
            "id": "rich", "description": "The rich one",
            "hints": {"useCase": "planning"}, "status": "stable",
        });
        assert_eq!(settings["availableVariants"][0], rich);
    }
}

/// SV-3: at most the configured number is advertised, and the settings report that there are more.
#[tokio::test]
async fn at_most_as_many_as_configured_are_advertised() {
    let server = shops().with_max_advertised(2).build().unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let capabilities = client.capabilities();
        assert_eq!(ids(&capabilities), ["plain", "small"]);
        assert_eq!(
            capabilities["extensions"][VARIANTS]["moreVariantsAvailable"],
            true
        );
        // A visible variant can be selected without being advertised.
        assert_eq!(who(&client, "rich").await, json!(["rich", "rich"]));
    }
    let server = shops().with_max_advertised(2).with_advertised_only();
    let server = server.build().unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let error = client.error("rich", "tools/list", json!({})).await;
        let expected = json!({"requestedVariant": "rich", "availableVariants": ["plain", "small"]});
        assert_eq!(data_of(error, -32602, INVALID), expected);
    }
}

/// SV-3: an experimental variant is the default only of clients that ask for one.
#[tokio::test]
async fn the_first_is_stable_unless_the_client_asks_otherwise() {
    let new = variant("new")
        .with_hint("useCase", "x")
        .with_status(Status::Experimental);
    let server = VaryServer::builder()
        .with_variant(new, Shop::new("new"))
        .with_variant(variant("old"), Shop::new("old"))
        .with_ranking(|_, _| vec![0, 1])
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect_with(&server, way, declaring(&[], json!({"useCase": "x"}))).await;
        assert_eq!(ids(&client.capabilities()), ["old", "new"]);
        let asks = declaring(&[], json!({"useCase": "x", "status": "experimental"}));
        let client = connect_with(&server, way, asks).await;
        assert_eq!(ids(&client.capabilities()), ["new", "old"]);
        assert_eq!(who(&client, "").await, json!(["new", "new"]));
    }
}

/// SV-5: an author's ranking cannot remove or add a variant.
#[tokio::test]
async fn a_ranking_of_ones_own_only_orders() {
    for order in [vec![2], vec![2, 2, 99], vec![2, 0, 1, 0, 1], vec![99, 2]] {
        let server = shops().with_ranking(move |_, _| order.clone());
        let server = server.build().unwrap();
        let client = connect(&server, (Era::Modern, Wire::Pipe)).await;
        assert_eq!(ids(&client.capabilities()), ["rich", "plain", "small"]);
    }
    let server = shops().with_ranking(|_, _| Vec::new()).build().unwrap();
    let client = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    assert_eq!(ids(&client.capabilities()), ["plain", "small", "rich"]);
}

/// SV-8, SV-11: each request names its variant; without one the first of the offers is used.
#[tokio::test]
async fn a_request_selects_its_variant() {
    for way in each(WAYS) {
        let hints = declaring(&[], json!({"useCase": "planning"}));
        let client = connect_with(&server(), way, hints).await;
        for (selected, label) in [("plain", "plain"), ("rich", "rich"), ("", "rich")] {
            selects(&client, selected, label).await;
        }
    }
}

async fn selects(client: &Client, selected: &str, label: &str) {
    let native = format!("get_{label}");
    assert!(client.names(selected, "tools").await.contains(&native));
    assert_eq!(client.names(selected, "prompts").await, ["greet", label]);
    assert_eq!(client.names(selected, "resources").await, ["all", label]);
    assert_eq!(who(client, selected).await, json!([label, label]));
    let result = async |method, params| client.result(selected, method, params).await;
    let templates = result("resources/templates/list", json!({})).await;
    assert_eq!(names(&templates["resourceTemplates"]), [label]);
    let read = result("resources/read", json!({"uri": "shop:///all"})).await;
    assert_eq!(read["contents"][0]["text"], label);
    let prompt = client.prompt(selected, "greet").await;
    assert_eq!(prompt, format!("greet of {label}"));
    let completed = result("completion/complete", completion()).await;
    assert_eq!(completed["completion"]["values"], json!([label]));
}

/// A request for completions of the prompt `greet`.
fn completion() -> Value {
    json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}})
}

/// SV-9: an invalid selector is rejected, and never taken for the default.
#[tokio::test]
async fn an_invalid_selector_is_refused() {
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "get_who"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "shop:///all"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "greet"})),
        ("completion/complete", completion()),
    ];
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let selectors = json!(["unknown", "", 7, null, ["plain"]]);
        for selector in selectors.as_array().unwrap() {
            for (method, params) in &requests {
                let meta = json!({VARIANT: selector});
                let error = client.ask(method, params.clone(), meta).await.unwrap_err();
                let expected = json!({
                    "requestedVariant": selector,
                    "availableVariants": ["plain", "small", "rich"],
                });
                assert_eq!(data_of(error, -32602, INVALID), expected, "{method}");
            }
        }
    }
}

/// SV-28: a method without variants ignores the selector.
#[tokio::test]
async fn other_methods_ignore_the_selector() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let error = client.error("unknown", "com.example/any", json!({})).await;
        let expected = (-32601, "com.example/any");
        assert_eq!((error.code.0, &*error.message), expected);
        if way.0 == Era::Legacy {
            client.result("unknown", "ping", json!({})).await;
        }
    }
}

/// SV-9: the list of variants can be left out of errors.
#[tokio::test]
async fn the_variants_need_not_be_enumerated() {
    let server = shops().without_enumeration().build().unwrap();
    let client = connect(&server, (Era::Modern, Wire::Http)).await;
    let error = client.error("x", "tools/list", json!({})).await;
    let expected = json!({"requestedVariant": "x"});
    assert_eq!(data_of(error, -32602, INVALID), expected);
}

fn sees(context: &Context, variant: &ServerVariant) -> bool {
    variant.id != *"rich" || role(context) == Some("admin")
}

/// SV-2, SV-9, SV-20: a variant that a principal cannot see does not exist for it.
#[tokio::test]
async fn what_a_principal_does_not_see_does_not_exist() {
    let replaced = variant("small").deprecated({
        let mut info = DeprecationInfo::new("use rich");
        info.replacement = Some("rich".parse().unwrap());
        info
    });
    let server = VaryServer::builder()
        .with_variant(variant("plain"), Shop::new("plain"))
        .with_variant(replaced, Shop::new("small"))
        .with_variant(variant("rich"), Shop::new("rich"))
        .with_visibility(sees)
        .build()
        .unwrap();
    let server = serve_http(server).await;
    for era in each([Era::Legacy, Era::Modern]) {
        let admin = join(&server.url, era, json!({}), &[("x-role", "admin")]).await;
        assert_eq!(ids(&admin.capabilities()), ["plain", "rich", "small"]);
        assert_eq!(who(&admin, "rich").await, json!(["rich", "rich"]));

        let guest = join(&server.url, era, json!({}), &[("x-role", "guest")]).await;
        let capabilities = guest.capabilities();
        assert_eq!(ids(&capabilities), ["plain", "small"]);
        // It is not named as a replacement either.
        assert!(
            !capabilities.to_string().contains("\"rich\""),
            "{capabilities}"
        );
        let mut answers = Vec::new();
        for id in ["rich", "none"] {
            let error = guest.error(id, "tools/list", json!({})).await;
            assert_eq!((error.code.0, &*error.message), (-32602, INVALID));
            answers.push(serde_json::to_string(&error).unwrap().replace(id, "…"));
        }
        assert_eq!(answers[0], answers[1]);
    }
}

/// SV-2, SV-18: a header selects the default, which comes first in the offers; `_meta` takes
/// precedence.
#[tokio::test]
async fn the_default_can_be_chosen_from_outside() {
    let chosen = |context: &Context| {
        let parts = context.extensions.get::<http::request::Parts>()?;
        let header = parts.headers.get("mcp-server-variant")?;
        header.to_str().ok().map(str::to_owned)
    };
    let server = serve_http(shops().with_default_variant(chosen).build().unwrap()).await;
    for era in each([Era::Legacy, Era::Modern]) {
        let header = [("mcp-server-variant", "rich")];
        let client = join(&server.url, era, json!({}), &header).await;
        assert_eq!(ids(&client.capabilities()), ["rich", "plain", "small"]);
        assert_eq!(who(&client, "").await, json!(["rich", "rich"]));
        assert_eq!(who(&client, "plain").await, json!(["plain", "plain"]));
        let header = [("mcp-server-variant", "none")];
        let client = join(&server.url, era, json!({}), &header).await;
        assert_eq!(ids(&client.capabilities()), ["plain", "small", "rich"]);
    }
}

/// A server with a ranking of its own, and how often that was computed.
fn counting() -> (Builder, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let ranking = move |_: &[&ServerVariant], _: &VariantHints| {
        counter.fetch_add(1, Ordering::Relaxed);
        vec![1, 0]
    };
    (shops().with_ranking(ranking), count)
}

/// SV-7: a ranking is computed once for all clients with the same hints, and again for others.
#[tokio::test]
async fn rankings_are_kept() {
    let (server, count) = counting();
    let server = server.build().unwrap();
    let planning = json!({"useCase": "planning"});
    for (hints, expected) in [(json!({}), 1), (planning, 2), (json!({}), 2)] {
        for way in each(WAYS) {
            let client = connect_with(&server, way, declaring(&[], hints.clone())).await;
            assert_eq!(ids(&client.capabilities())[0], "small");
            client.names("", "tools").await;
        }
        assert_eq!(count.load(Ordering::Relaxed), expected, "{hints}");
    }
}

/// SV-7: principals that see the same variants share a ranking, others have their own.
#[tokio::test]
async fn rankings_are_shared_by_who_sees_the_same() {
    let (server, count) = counting();
    let server = serve_http(server.with_visibility(sees).build().unwrap()).await;
    for (role, order, expected) in [
        ("one", &["small", "plain"][..], 1),
        ("other", &["small", "plain"], 1),
        ("admin", &["small", "plain", "rich"], 2),
        ("one", &["small", "plain"], 2),
    ] {
        let headers = [("x-role", role)];
        let client = join(&server.url, Era::Modern, json!({}), &headers).await;
        client.names("", "tools").await;
        assert_eq!(ids(&client.capabilities()), order, "{role}");
        assert_eq!(count.load(Ordering::Relaxed), expected, "{role}");
    }
}

/// SV-2: a client that can see no variant is offered none.
#[tokio::test]
async fn nothing_visible_is_nothing_offered() {
    let server = shops().with_visibility(|_, _| false).build().unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        assert_eq!(client.capabilities().get("extensions"), None);
        let error = client.error("plain", "tools/list", json!({})).await;
        data_of(error, -32602, "Server variants not supported");
        let error = client.error("", "tools/list", json!({})).await;
        let message = "this server has no variant for this client; ask its operator for access";
        data_of(error, -32602, message);
    }
}

/// SV-12: the handler's own error keeps its data, and gains the active variant.
#[tokio::test]
async fn an_error_about_an_identifier_says_the_active_variant() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let error = client.error("rich", CALL, json!({"name": "none"})).await;
        let expected = json!({"shop": "rich", "activeVariant": "rich"});
        assert_eq!(data_of(error, -32602, "no none here"), expected);

        // It exists in another variant, which the error does not reveal.
        let uri = json!({"uri": "shop:///plain"});
        let error = client.error("rich", "resources/read", uri).await;
        let code = if way.0 == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(data_of(error, code, "nothing there"), expected);
    }
}

/// SV-17: lists for modern clients must not be cached, since caches do not know variants.
#[tokio::test]
async fn modern_lists_are_not_to_be_cached() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(), (Era::Modern, wire)).await;
        let lists = ["tools/list", "prompts/list", "resources/list"];
        for method in lists.into_iter().chain(["server/discover"]) {
            is_not_cached(&client.result("", method, json!({})).await);
        }
        let uri = json!({"uri": "shop:///all"});
        is_not_cached(&client.result("plain", "resources/read", uri).await);
    }
}

#[track_caller]
fn is_not_cached(result: &Value) {
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&json!(0), &json!("private"))
    );
}
