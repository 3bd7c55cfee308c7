//! Variants as a client sees them.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::Identifier;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status};
use mcp_vary_rmcp::server::{Builder, Face, PromptView, ResourceView, ToolView, Vary, View};
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    Prompt, PromptArgument, PromptMessage, ProtocolVersion, Resource, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::shop::Shop;
use crate::support::{
    Client, Era, NEGOTIATION, VARIANT, VARIANTS, WAYS, Wire, connect, connect_with, declaring,
    initialize, join, lines, modern, names, serve_http,
};

fn variant(id: &str) -> ServerVariant {
    ServerVariant::new(id.parse().unwrap(), format!("The {id} one"))
}

/// Two handlers, and a view of the first.
fn shops() -> Builder {
    let plain = Face::new(Shop::new("plain"));
    let view = View::new()
        .with_tools(["get_who", "get_arguments", "put_tools"])
        .with_tool(
            "get_who",
            ToolView::new().with_name("who").with_description("Short"),
        )
        .with_tool(
            "get_arguments",
            ToolView::new().with_argument("a", json!(7)),
        )
        .with_prompts(["greet"])
        .with_prompt("greet", PromptView::new().with_name("hello"))
        .with_resources_where(|uri| uri != "shop:///plain");
    Vary::builder()
        .with_variant(
            variant("plain").with_hint("contextSize", "standard"),
            plain.clone(),
        )
        .with_variant(
            variant("small").with_hint("contextSize", "compact"),
            plain.with_view(view),
        )
        .with_variant(
            variant("rich").with_hint("useCase", "planning"),
            Shop::new("rich"),
        )
}

fn server() -> Vary {
    shops().build().unwrap()
}

fn ids(capabilities: &Value) -> Vec<&str> {
    let offered = &capabilities["extensions"][VARIANTS]["availableVariants"];
    let offered = offered.as_array().into_iter().flatten();
    offered
        .map(|variant| variant["id"].as_str().unwrap())
        .collect()
}

fn said(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

fn data(error: ErrorData) -> Value {
    error.data.expect("an error with data")
}

/// SV-1, SV-2, SV-5: what is offered stands in the handshake of either era, the best first for this client.
#[tokio::test]
async fn variants_are_offered_in_the_order_of_the_clients_hints() {
    for way in WAYS {
        let client = connect(&server(), way).await;
        assert_eq!(
            ids(&client.capabilities()),
            ["plain", "small", "rich"],
            "{way:?}"
        );
        let hints = declaring(
            &[],
            json!({"contextSize": "compact", "useCase": ["planning"]}),
        );
        let client = connect_with(&server(), way, hints).await;
        let capabilities = client.capabilities();
        assert_eq!(ids(&capabilities), ["rich", "small", "plain"], "{way:?}");
        let settings = &capabilities["extensions"][VARIANTS];
        assert_eq!(settings.get("moreVariantsAvailable"), None);
        let rich = json!({
            "id": "rich", "description": "The rich one",
            "hints": {"useCase": "planning"}, "status": "stable",
        });
        assert_eq!(settings["availableVariants"][0], rich);
    }
}

/// SV-3: of many some are advertised, and that there are more is said.
#[tokio::test]
async fn at_most_as_many_as_configured_are_advertised() {
    let server = shops().with_advertised(2).build().unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let capabilities = client.capabilities();
        assert_eq!(ids(&capabilities), ["plain", "small"], "{way:?}");
        assert_eq!(
            capabilities["extensions"][VARIANTS]["moreVariantsAvailable"],
            true
        );
        // Visible is enough.
        assert_eq!(
            said(&client.call("rich", "get_who", json!({})).await),
            json!(["rich", "rich"])
        );
    }
    let server = shops()
        .with_advertised(2)
        .with_advertised_only()
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let error = client
            .under("rich", "tools/list", json!({}))
            .await
            .unwrap_err();
        assert_eq!(
            data(error)["availableVariants"],
            json!(["plain", "small"]),
            "{way:?}"
        );
    }
}

/// SV-3: an experimental variant is the default of those only who ask for one.
#[tokio::test]
async fn the_first_is_stable_unless_the_client_asks_otherwise() {
    let new = variant("new")
        .with_hint("useCase", "x")
        .with_status(Status::Experimental);
    let server = Vary::builder()
        .with_variant(new, Shop::new("new"))
        .with_variant(variant("old"), Shop::new("old"))
        .with_ranking(|_, _| vec![0, 1])
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect_with(&server, way, declaring(&[], json!({"useCase": "x"}))).await;
        assert_eq!(ids(&client.capabilities()), ["old", "new"], "{way:?}");
        let asks = declaring(&[], json!({"useCase": "x", "status": "experimental"}));
        let client = connect_with(&server, way, asks).await;
        assert_eq!(ids(&client.capabilities()), ["new", "old"], "{way:?}");
        assert_eq!(
            said(&client.call("", "get_who", json!({})).await),
            json!(["new", "new"])
        );
    }
}

/// SV-5: a ranking of the author's can neither lose nor invent a variant.
#[tokio::test]
async fn a_ranking_of_ones_own_only_orders() {
    for order in [vec![2], vec![2, 2, 99], vec![2, 0, 1, 0, 1], vec![99, 2]] {
        let server = shops()
            .with_ranking(move |_, _| order.clone())
            .build()
            .unwrap();
        let client = connect(&server, (Era::Modern, Wire::Pipe)).await;
        assert_eq!(ids(&client.capabilities()), ["rich", "plain", "small"]);
    }
    let server = shops().with_ranking(|_, _| Vec::new()).build().unwrap();
    let client = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    assert_eq!(ids(&client.capabilities()), ["plain", "small", "rich"]);
}

/// SV-8, SV-11: each request names its variant; without one it is the first of the offers.
#[tokio::test]
async fn a_request_selects_its_variant() {
    for way in WAYS {
        let hints = declaring(&[], json!({"useCase": "planning"}));
        let client = connect_with(&server(), way, hints).await;
        for (selected, label) in [("plain", "plain"), ("rich", "rich"), ("", "rich")] {
            selects(&client, selected, label).await;
        }
    }
}

async fn selects(client: &Client, selected: &str, label: &str) {
    let own = format!("get_{label}");
    assert!(client.names(selected, "tools").await.contains(&own));
    assert_eq!(client.names(selected, "prompts").await, ["greet", label]);
    assert_eq!(client.names(selected, "resources").await, ["all", label]);
    let templates = client
        .under(selected, "resources/templates/list", json!({}))
        .await
        .unwrap();
    assert_eq!(names(&templates["resourceTemplates"]), [label]);

    assert_eq!(
        said(&client.call(selected, "get_who", json!({})).await),
        json!([label, label])
    );
    let read = client
        .under(selected, "resources/read", json!({"uri": "shop:///all"}))
        .await
        .unwrap();
    assert_eq!(read["contents"][0]["text"], label);
    let prompt = client
        .under(selected, "prompts/get", json!({"name": "greet"}))
        .await
        .unwrap();
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        format!("greet of {label}")
    );
    let completion = json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "a", "value": ""},
    });
    let completed = client
        .under(selected, "completion/complete", completion)
        .await
        .unwrap();
    assert_eq!(completed["completion"]["values"], json!([label]));
}

/// SV-9: what is no variant that this client sees is refused, and never taken for the default.
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
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}}),
        ),
    ];
    for way in WAYS {
        let client = connect(&server(), way).await;
        for selector in [
            json!("unknown"),
            json!(""),
            json!(7),
            json!(null),
            json!(["plain"]),
        ] {
            for (method, params) in &requests {
                let meta = json!({VARIANT: selector});
                let error = client.ask(method, params.clone(), meta).await.unwrap_err();
                assert_eq!(
                    (error.code.0, &*error.message),
                    (-32602, "Invalid server variant")
                );
                let expected = json!({
                    "requestedVariant": selector,
                    "availableVariants": ["plain", "small", "rich"],
                });
                assert_eq!(data(error), expected, "{way:?} {method}");
            }
        }
    }
}

/// SV-26: the state of a request comes back to the same variant and to the same request only.
#[tokio::test]
async fn a_request_state_is_good_where_it_was_made() {
    let requests = [
        ("tools/call", json!({"name": "put_state"})),
        ("tools/call", json!({"name": "put_other"})),
        ("prompts/get", json!({"name": "long"})),
        ("resources/read", json!({"uri": "shop:///long"})),
    ];
    for wire in [Wire::Pipe, Wire::Http] {
        let client = connect(&server(), (Era::Modern, wire)).await;
        for (made, (method, params)) in requests.iter().enumerate() {
            let first = client.under("rich", method, params.clone()).await.unwrap();
            assert_eq!(first["resultType"], "input_required");
            assert_ne!(first["requestState"], "our own");
            for (at, (method, params)) in requests.iter().enumerate() {
                for (variant, is_same) in [("rich", made == at), ("plain", false)] {
                    let mut params = params.clone();
                    params["requestState"] = first["requestState"].clone();
                    let again = client.under(variant, method, params).await;
                    assert_eq!(again.is_ok(), is_same, "{wire:?} {method} {again:?}");
                    if let Err(error) = again {
                        assert_eq!(
                            (error.code.0, &*error.message),
                            (-32602, "Invalid request state")
                        );
                        assert_eq!(data(error), json!({"activeVariant": variant}));
                    }
                }
            }
        }
        let first = client
            .under("rich", "tools/call", requests[0].1.clone())
            .await
            .unwrap();
        let mut params = requests[0].1.clone();
        params["requestState"] = first["requestState"].clone();
        let second = client.under("rich", "tools/call", params).await.unwrap();
        assert_eq!(said(&second), "our own");
    }
}

fn again(state: &Value, arguments: &Value) -> Value {
    json!({"name": "put_state", "arguments": arguments, "requestState": state["requestState"]})
}

/// SV-26: a state comes back with the arguments that it was made for, in whatever order.
#[tokio::test]
async fn a_request_state_belongs_to_its_arguments() {
    for wire in [Wire::Pipe, Wire::Http] {
        let client = connect(&server(), (Era::Modern, wire)).await;
        let made = json!({"name": "put_state", "arguments": {"a": 1, "b": [2]}});
        let state = client.under("rich", "tools/call", made).await.unwrap();
        for (arguments, is_same) in [
            (json!({"b": [2], "a": 1}), true),
            (json!({"a": 1, "b": [3]}), false),
            (json!({"a": 1}), false),
            (json!({}), false),
        ] {
            let params = again(&state, &arguments);
            let answer = client.under("rich", "tools/call", params).await;
            assert_eq!(answer.is_ok(), is_same, "{wire:?} {arguments}");
        }
    }
}

/// SV-26: a state is good for a while, and after that it says so.
#[tokio::test]
async fn a_request_state_expires() {
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = Arc::clone(&now);
    let server = shops()
        .with_clock(move || clock.load(Ordering::Relaxed))
        .with_state_lifetime(Duration::from_secs(60));
    let client = connect(&server.build().unwrap(), (Era::Modern, Wire::Pipe)).await;
    let made = json!({"name": "put_state", "arguments": {}});
    let state = client.under("rich", "tools/call", made).await.unwrap();
    let retry = || client.under("rich", "tools/call", again(&state, &json!({})));
    now.store(1_059, Ordering::Relaxed);
    assert_eq!(said(&retry().await.unwrap()), "our own");
    now.store(1_060, Ordering::Relaxed);
    let error = retry().await.unwrap_err();
    assert_eq!(
        (error.code.0, &*error.message),
        (-32602, "Request state has expired")
    );
    assert_eq!(data(error), json!({"activeVariant": "rich"}));
}

/// SV-26: without further ado a state is good for an hour by the system's clock.
#[tokio::test]
async fn a_request_state_lives_for_an_hour() {
    let made = json!({"name": "put_state", "arguments": {}});
    let keys = CursorKeys::new([1; 32]);
    let old = |age: u64| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        shops()
            .with_cursor_keys(keys.clone())
            .with_clock(move || now - age)
    };
    let fresh = shops().with_cursor_keys(keys.clone()).build().unwrap();
    let fresh = connect(&fresh, (Era::Modern, Wire::Pipe)).await;
    for (age, is_good) in [(3_000, true), (3_700, false)] {
        let maker = connect(&old(age).build().unwrap(), (Era::Modern, Wire::Pipe)).await;
        let state = maker
            .under("rich", "tools/call", made.clone())
            .await
            .unwrap();
        let answer = fresh
            .under("rich", "tools/call", again(&state, &json!({})))
            .await;
        assert_eq!(answer.is_ok(), is_good, "{age}");
    }
}

/// SV-26: one principal's state does not open for another.
#[tokio::test]
async fn a_request_state_belongs_to_its_principal() {
    let server = shops().with_principal(|context| role(context).unwrap_or_default().to_owned());
    let server = serve_http(server.build().unwrap()).await;
    let as_role = async |role| {
        let headers = [("x-role", role)];
        join(&server.url, Era::Modern, json!({}), &headers)
            .await
            .unwrap()
    };
    let (one, other) = (as_role("one").await, as_role("other").await);
    let made = json!({"name": "put_state", "arguments": {}});
    let state = one.under("rich", "tools/call", made).await.unwrap();
    let retry = again(&state, &json!({}));
    let error = other
        .under("rich", "tools/call", retry.clone())
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
    one.under("rich", "tools/call", retry).await.unwrap();
}

/// SV-26: what was never sealed reaches no handler, not even from a client whose era knows no state.
#[tokio::test]
async fn a_state_without_a_seal_reaches_no_handler() {
    let client = connect(&server(), (Era::Modern, Wire::Pipe)).await;
    let forged = json!({"requestState": "our own"});
    let error = client
        .under("rich", "tools/call", again(&forged, &json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
    let client = connect(&server(), (Era::Legacy, Wire::Pipe)).await;
    let answer = client
        .under("rich", "tools/call", again(&forged, &json!({})))
        .await;
    assert_eq!(said(&answer.unwrap()), "no state");
}

/// SV-28: a method that knows no variants ignores the selector.
#[tokio::test]
async fn other_methods_ignore_the_selector() {
    for way in WAYS {
        let client = connect(&server(), way).await;
        let error = client
            .under("unknown", "com.example/any", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32601, "{way:?}");
        if way.0 == Era::Legacy {
            client.under("unknown", "ping", json!({})).await.unwrap();
        }
    }
}

/// SV-9: which variants there are need not be said.
#[tokio::test]
async fn the_variants_need_not_be_enumerated() {
    let server = shops().without_enumeration().build().unwrap();
    let client = connect(&server, (Era::Modern, Wire::Http)).await;
    let error = client
        .under("x", "tools/list", json!({}))
        .await
        .unwrap_err();
    assert_eq!(data(error), json!({"requestedVariant": "x"}));
}

fn sees(context: &RequestContext<RoleServer>, variant: &ServerVariant) -> bool {
    variant.id != *"rich" || role(context) == Some("admin")
}

/// SV-2, SV-9, SV-20: a variant that a principal does not see does not exist for it.
#[tokio::test]
async fn what_a_principal_does_not_see_does_not_exist() {
    let replaced = variant("small").deprecated({
        let mut info = DeprecationInfo::new("use rich");
        info.replacement = Some("rich".parse().unwrap());
        info
    });
    let server = Vary::builder()
        .with_variant(variant("plain"), Shop::new("plain"))
        .with_variant(replaced, Shop::new("small"))
        .with_variant(variant("rich"), Shop::new("rich"))
        .with_visibility(sees)
        .build()
        .unwrap();
    let server = serve_http(server).await;
    for era in [Era::Legacy, Era::Modern] {
        let admin = join(&server.url, era, json!({}), &[("x-role", "admin")])
            .await
            .unwrap();
        assert_eq!(ids(&admin.capabilities()), ["plain", "rich", "small"]);
        assert_eq!(
            said(&admin.call("rich", "get_who", json!({})).await),
            json!(["rich", "rich"])
        );

        let guest = join(&server.url, era, json!({}), &[("x-role", "guest")])
            .await
            .unwrap();
        let capabilities = guest.capabilities();
        assert_eq!(ids(&capabilities), ["plain", "small"]);
        // Nor is it named as a replacement.
        assert!(
            !capabilities.to_string().contains("\"rich\""),
            "{capabilities}"
        );
        let mut answers = Vec::new();
        for id in ["rich", "none"] {
            let error = guest.under(id, "tools/list", json!({})).await.unwrap_err();
            answers.push(serde_json::to_string(&error).unwrap().replace(id, "…"));
        }
        assert_eq!(answers[0], answers[1]);
    }
}

fn role(context: &RequestContext<RoleServer>) -> Option<&str> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get("x-role")?.to_str().ok()
}

/// SV-20: what a principal may use is decided by a rule of its own, whatever the variant.
#[tokio::test]
async fn a_permission_holds_in_every_variant() {
    let permits = |context: &RequestContext<RoleServer>, what: &Identifier| {
        let is_public = match what {
            Identifier::Tool(name) => !name.starts_with("put_"),
            Identifier::Prompt(name) => name == "greet",
            Identifier::Resource(uri) | Identifier::SubscribedResource(uri) => uri == "shop:///all",
            _ => false,
        };
        is_public || role(context) == Some("admin")
    };
    let server = serve_http(shops().with_permission(permits).build().unwrap()).await;
    for era in [Era::Legacy, Era::Modern] {
        let admin = join(&server.url, era, json!({}), &[("x-role", "admin")])
            .await
            .unwrap();
        let guest = join(&server.url, era, json!({}), &[]).await.unwrap();
        let admins = admin.names("rich", "tools").await;
        assert_eq!(admins.len(), 7);
        assert_eq!(
            guest.names("rich", "tools").await,
            ["get_who", "get_arguments", "get_rich"]
        );
        assert_eq!(
            guest.names("small", "tools").await,
            ["who", "get_arguments"]
        );
        assert_eq!(guest.names("small", "prompts").await, ["hello"]);
        assert_eq!(guest.names("rich", "resources").await, ["all"]);

        admin.call("rich", "put_tools", json!({})).await;
        guest.call("small", "who", json!({})).await;
        for (variant, method, params) in [
            ("rich", "tools/call", json!({"name": "put_tools"})),
            ("small", "tools/call", json!({"name": "put_tools"})),
            ("rich", "prompts/get", json!({"name": "rich"})),
            ("rich", "resources/read", json!({"uri": "shop:///rich"})),
        ] {
            let error = guest.under(variant, method, params).await.unwrap_err();
            assert_eq!(data(error)["activeVariant"], variant, "{era:?} {method}");
        }
    }
}

/// SV-2, SV-18: a header chooses the default, which stands first in the offers; `_meta` wins.
#[tokio::test]
async fn the_default_can_be_chosen_from_outside() {
    let chosen = |context: &RequestContext<RoleServer>| {
        let parts = context.extensions.get::<http::request::Parts>()?;
        Some(
            parts
                .headers
                .get("mcp-server-variant")?
                .to_str()
                .ok()?
                .to_owned(),
        )
    };
    let server = serve_http(shops().with_default(chosen).build().unwrap()).await;
    for era in [Era::Legacy, Era::Modern] {
        let header = [("mcp-server-variant", "rich")];
        let client = join(&server.url, era, json!({}), &header).await.unwrap();
        assert_eq!(
            ids(&client.capabilities()),
            ["rich", "plain", "small"],
            "{era:?}"
        );
        assert_eq!(
            said(&client.call("", "get_who", json!({})).await),
            json!(["rich", "rich"])
        );
        assert_eq!(
            said(&client.call("plain", "get_who", json!({})).await),
            json!(["plain", "plain"])
        );
        let header = [("mcp-server-variant", "none")];
        let client = join(&server.url, era, json!({}), &header).await.unwrap();
        assert_eq!(
            ids(&client.capabilities()),
            ["plain", "small", "rich"],
            "{era:?}"
        );
    }
}

/// SV-7: a ranking is made once for all clients with the same hints, and again for others.
#[tokio::test]
async fn rankings_are_kept() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let ranking = move |_: &[&ServerVariant], _: &VariantHints| {
        counter.fetch_add(1, Ordering::Relaxed);
        vec![1, 0]
    };
    let server = shops().with_ranking(ranking).build().unwrap();
    for (hints, expected) in [
        (json!({}), 1),
        (json!({"useCase": "planning"}), 2),
        (json!({}), 2),
    ] {
        for way in WAYS {
            let client = connect_with(&server, way, declaring(&[], hints.clone())).await;
            assert_eq!(ids(&client.capabilities())[0], "small");
            client.names("", "tools").await;
        }
        assert_eq!(made.load(Ordering::Relaxed), expected, "{hints}");
    }
}

/// SV-7: principals who see the same share a ranking, others have their own.
#[tokio::test]
async fn rankings_are_shared_by_who_sees_the_same() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let ranking = move |_: &[&ServerVariant], _: &VariantHints| {
        counter.fetch_add(1, Ordering::Relaxed);
        vec![1, 0]
    };
    let server = shops().with_ranking(ranking).with_visibility(sees);
    let server = serve_http(server.build().unwrap()).await;
    for (role, order, expected) in [
        ("one", &["small", "plain"][..], 1),
        ("other", &["small", "plain"], 1),
        ("admin", &["small", "plain", "rich"], 2),
        ("one", &["small", "plain"], 2),
    ] {
        let headers = [("x-role", role)];
        let client = join(&server.url, Era::Modern, json!({}), &headers).await;
        let client = client.unwrap();
        client.names("", "tools").await;
        assert_eq!(ids(&client.capabilities()), order, "{role}");
        assert_eq!(made.load(Ordering::Relaxed), expected, "{role}");
    }
}

/// SV-2: to whom nothing is visible, nothing is offered.
#[tokio::test]
async fn nothing_visible_is_nothing_offered() {
    let server = shops().with_visibility(|_, _| false).build().unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        assert_eq!(client.capabilities().get("extensions"), None, "{way:?}");
        let error = client
            .under("plain", "tools/list", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32602);
        assert_eq!(error.message, "Server variants not supported");
        let error = client.under("", "tools/list", json!({})).await.unwrap_err();
        assert_eq!(error.code.0, -32602);
        assert_eq!(
            error.message,
            "this server has no variant for this client; ask its operator for access"
        );
    }
}

/// SV-11: a view selects, renames, describes and fixes arguments.
#[tokio::test]
async fn a_view_shows_a_handler_in_another_way() {
    for way in WAYS {
        let client = connect(&server(), way).await;
        assert_eq!(
            client.names("small", "tools").await,
            ["who", "get_arguments", "put_tools"]
        );
        assert_eq!(client.names("small", "prompts").await, ["hello"]);
        assert_eq!(client.names("small", "resources").await, ["all"]);
        let list = client
            .under("small", "tools/list", json!({}))
            .await
            .unwrap();
        assert_eq!(list["tools"][0]["description"], "Short");
        let schema = json!({"type": "object", "properties": {"b": {}}, "required": []});
        assert_eq!(list["tools"][1]["inputSchema"], schema);

        assert_eq!(
            said(&client.call("small", "who", json!({})).await),
            json!(["plain", "small"])
        );
        let arguments = client
            .call("small", "get_arguments", json!({"a": 1, "b": 2}))
            .await;
        assert_eq!(said(&arguments), json!({"a": 7, "b": 2}));
        let prompt = client
            .under("small", "prompts/get", json!({"name": "hello"}))
            .await
            .unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "greet of plain");
    }
}

/// Has one of each, and says with what it was asked.
struct One;

impl ServerHandler for One {
    async fn list_tools(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("tool", "its own", rmcp::model::JsonObject::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn list_prompts(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = ["tone", "topic"].map(PromptArgument::new);
        let prompt = Prompt::new("prompt", Some("its own"), Some(arguments.into()));
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let said = json!(request.arguments).to_string();
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, said)]).into())
    }

    async fn list_resources(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = ["a:1", "a:2"].map(|uri| Resource::new(uri, "its own"));
        Ok(ListResourcesResult::with_all_items(resources.into()))
    }

    async fn list_resource_templates(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("a:{n}", "its own");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }
}

/// SV-11: annotations, arguments of prompts and descriptions of resources are a view's, too.
#[tokio::test]
async fn a_view_describes_everything() {
    let short = || {
        ResourceView::new()
            .with_name("one")
            .with_description("Short")
    };
    let view = View::new()
        .with_tool(
            "tool",
            ToolView::new().with_annotations(ToolAnnotations::new().read_only(true)),
        )
        .with_prompt("prompt", PromptView::new().with_argument("tone", "dry"))
        .with_resource("a:1", short())
        .with_resource("a:{n}", short());
    let one = Face::new(One).with_view(view);
    let server = Vary::builder()
        .with_variant(variant("a"), one)
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let list = async |method| client.under("a", method, json!({})).await.unwrap();
        let tools = list("tools/list").await;
        assert_eq!(
            tools["tools"][0]["annotations"],
            json!({"readOnlyHint": true}),
            "{way:?}"
        );
        let prompts = list("prompts/list").await;
        assert_eq!(
            prompts["prompts"][0]["arguments"],
            json!([{"name": "topic"}]),
            "{way:?}"
        );
        let resources = list("resources/list").await;
        let described = json!([
            {"uri": "a:1", "name": "one", "description": "Short"},
            {"uri": "a:2", "name": "its own"},
        ]);
        assert_eq!(resources["resources"], described, "{way:?}");
        let templates = list("resources/templates/list").await;
        let described = json!([{"uriTemplate": "a:{n}", "name": "one", "description": "Short"}]);
        assert_eq!(templates["resourceTemplates"], described, "{way:?}");

        let asked = json!({"name": "prompt", "arguments": {"topic": "rain", "tone": "wet"}});
        let prompt = client.under("a", "prompts/get", asked).await.unwrap();
        let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        let said: Value = serde_json::from_str(said).unwrap();
        assert_eq!(said, json!({"topic": "rain", "tone": "dry"}), "{way:?}");
    }
}

/// SV-11: a name that a view gives away is no longer its first owner's.
#[tokio::test]
async fn a_name_is_given_once() {
    let view = View::new()
        .with_tool("get_who", ToolView::new().with_name("get_arguments"))
        .with_prompt("a", PromptView::new().with_name("greet"));
    let face = Face::new(Shop::new("a")).with_view(view);
    let server = Vary::builder()
        .with_variant(variant("a"), face)
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let tools = client.names("a", "tools").await;
        assert_eq!(tools[..2], ["get_arguments", "put_tools"], "{way:?}");
        assert_eq!(
            said(&client.call("a", "get_arguments", json!({})).await),
            json!(["a", "a"])
        );
        assert_eq!(client.names("a", "prompts").await, ["greet"]);
        let prompt = client
            .under("a", "prompts/get", json!({"name": "greet"}))
            .await
            .unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "a of a");
    }
}

/// SV-12: hidden, renamed away and unknown are the same, and the active variant is said.
#[tokio::test]
async fn what_a_view_hides_does_not_exist() {
    for way in WAYS {
        let client = connect(&server(), way).await;
        hides(
            &client,
            "tools/call",
            "name",
            &["none", "put_progress", "get_plain", "get_who"],
        )
        .await;
        hides(&client, "prompts/get", "name", &["none", "plain", "greet"]).await;
        hides(
            &client,
            "resources/read",
            "uri",
            &["shop:///none", "shop:///plain"],
        )
        .await;
    }
}

async fn hides(client: &Client, method: &str, member: &str, names: &[&str]) {
    let mut answers = Vec::new();
    for name in names {
        let error = client
            .under("small", method, json!({member: name}))
            .await
            .unwrap_err();
        assert_eq!(error.data.as_ref().unwrap()["activeVariant"], "small");
        answers.push(serde_json::to_string(&error).unwrap().replace(name, "…"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

/// SV-12: the handler's own error keeps what it says, and gains the active variant.
#[tokio::test]
async fn an_error_about_an_identifier_says_the_active_variant() {
    for way in WAYS {
        let client = connect(&server(), way).await;
        let error = client
            .under("rich", "tools/call", json!({"name": "none"}))
            .await
            .unwrap_err();
        assert_eq!((error.code.0, &*error.message), (-32602, "no none here"));
        assert_eq!(
            data(error),
            json!({"shop": "rich", "activeVariant": "rich"}),
            "{way:?}"
        );

        // It exists in another variant, which is not revealed.
        let error = client
            .under("rich", "resources/read", json!({"uri": "shop:///plain"}))
            .await
            .unwrap_err();
        let code = if way.0 == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(error.code.0, code, "{way:?}");
        assert_eq!(
            data(error),
            json!({"shop": "rich", "activeVariant": "rich"})
        );
    }
}

#[derive(Clone)]
struct Empty;

impl ServerHandler for Empty {}

/// SV-11: the capabilities are the union, the same for all; what a variant lacks lists empty.
#[tokio::test]
async fn a_variant_that_lacks_a_kind_lists_none_of_it() {
    let server = Vary::builder()
        .with_variant(variant("empty"), Empty)
        .with_variant(variant("full"), Shop::new("full"))
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let capabilities = client.capabilities();
        assert_eq!(
            capabilities["tools"],
            json!({"listChanged": true}),
            "{way:?}"
        );
        assert_eq!(capabilities["resources"], json!({"subscribe": true}));
        for kind in ["tools", "prompts", "resources"] {
            assert_eq!(client.names("empty", kind).await, [""; 0]);
        }
        let error = client
            .under("empty", "tools/call", json!({"name": "get_who"}))
            .await
            .unwrap_err();
        assert_eq!(
            (error.code.0, &*error.message),
            (-32602, "Unknown tool: get_who")
        );
        assert_eq!(data(error), json!({"activeVariant": "empty"}));
    }
}

/// Has prompts once it has been told so.
#[derive(Clone, Default)]
struct Growing(Arc<AtomicBool>);

impl ServerHandler for Growing {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(match self.0.load(Ordering::Relaxed) {
            true => tools.enable_prompts().build(),
            false => tools.build(),
        })
    }
}

/// SV-11: what a handler can do is asked anew for each client.
#[tokio::test]
async fn the_capabilities_are_those_of_now() {
    let growing = Growing::default();
    let server = Vary::builder()
        .with_negotiation()
        .with_variant(variant("still"), Empty)
        .with_variant(variant("growing"), growing.clone())
        .build()
        .unwrap();
    for has_prompts in [false, true, true, false] {
        growing.0.store(has_prompts, Ordering::Relaxed);
        for way in WAYS {
            let capabilities = connect(&server, way).await.capabilities();
            assert_eq!(
                capabilities.get("prompts").is_some(),
                has_prompts,
                "{way:?}"
            );
            assert_eq!(capabilities["tools"], json!({}), "{way:?}");
            assert!(
                capabilities["extensions"].get(NEGOTIATION).is_some(),
                "{way:?}"
            );
        }
    }
}

struct Old;

impl ServerHandler for Old {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2025_06_18])
    }
}

/// SV-11: a server speaks the revisions that all its handlers speak.
#[tokio::test]
async fn the_revision_is_one_of_every_handlers() {
    let server = Vary::builder()
        .with_variant(variant("new"), Empty)
        .with_variant(variant("old"), Old)
        .build()
        .unwrap();
    let answers = lines(server.clone(), &[initialize(json!({}))]).await;
    assert!(
        answers[0].contains(r#""protocolVersion":"2025-06-18""#),
        "{answers:?}"
    );
    let answers = lines(server, &[modern(1, "tools/list", json!({}), json!({}))]).await;
    assert!(answers[0].contains("-32022"), "{answers:?}");
}

fn paged() -> Vary {
    let keys = CursorKeys::new([2; 32]).with_previous([[1; 32]]);
    Vary::builder()
        .with_cursor_keys(keys)
        .with_variant(variant("a"), Shop::new("a").paged(3))
        .with_variant(variant("b"), Shop::new("b").paged(3))
        .build()
        .unwrap()
}

async fn all(client: &Client, variant: &str) -> (usize, Vec<String>) {
    let (mut pages, mut all, mut params) = (0, Vec::new(), json!({}));
    loop {
        let list = client.under(variant, "tools/list", params).await.unwrap();
        pages += 1;
        all.extend(names(&list["tools"]));
        match list.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (pages, all),
        }
    }
}

/// SV-13: a handler's pages are followed through cursors of ours.
#[tokio::test]
async fn a_list_is_followed_page_by_page() {
    for way in WAYS {
        let client = connect(&paged(), way).await;
        let (pages, tools) = all(&client, "b").await;
        assert_eq!((pages, tools.len(), &*tools[6]), (3, 7, "get_b"), "{way:?}");
    }
}

/// SV-13: with a page size, pages are cut after the view, whatever the handler's are.
#[tokio::test]
async fn pages_of_ones_own_size_are_full() {
    let view = View::new().with_tools_where(|tool| tool.name.starts_with("get_"));
    let server = Vary::builder()
        .with_variant(
            variant("a"),
            Face::new(Shop::new("a").paged(2)).with_view(view),
        )
        .with_page_size(NonZeroUsize::new(2).unwrap())
        .build()
        .unwrap();
    for way in WAYS {
        let client = connect(&server, way).await;
        let (pages, tools) = all(&client, "a").await;
        assert_eq!(
            (pages, tools),
            (
                2,
                ["get_who", "get_arguments", "get_a"].map(Into::into).into()
            ),
            "{way:?}"
        );
    }
}

/// SV-13: a cursor is good for its variant, its method and our keys only.
#[tokio::test]
async fn a_cursor_is_good_where_it_was_made() {
    for way in WAYS {
        let client = connect(&paged(), way).await;
        let list = client.under("a", "tools/list", json!({})).await.unwrap();
        let params = json!({"cursor": list["nextCursor"]});

        let error = client
            .under("b", "tools/list", params.clone())
            .await
            .unwrap_err();
        assert_eq!(
            (error.code.0, &*error.message),
            (-32602, "Cursor invalid for requested variant")
        );
        assert_eq!(
            data(error),
            json!({"cursorVariant": "a", "requestedVariant": "b"}),
            "{way:?}"
        );

        for (method, params) in [
            ("prompts/list", params),
            ("tools/list", json!({"cursor": "3"})),
            ("tools/list", json!({"cursor": ""})),
            ("tools/list", json!({"cursor": "no base64!"})),
        ] {
            let error = client.under("a", method, params).await.unwrap_err();
            assert_eq!((error.code.0, &*error.message), (-32602, "Invalid cursor"));
            assert_eq!(
                data(error),
                json!({"activeVariant": "a"}),
                "{way:?} {method}"
            );
        }
    }
}

/// SV-13: a rotated key still opens, and replicas with the same keys open each other's.
#[tokio::test]
async fn cursors_outlive_a_rotation() {
    let replica = |keys: CursorKeys| {
        let shop = Shop::new("a").paged(3);
        Vary::builder()
            .with_variant(variant("a"), shop)
            .with_cursor_keys(keys)
            .build()
            .unwrap()
    };
    let old = connect(
        &replica(CursorKeys::new([1; 32])),
        (Era::Modern, Wire::Http),
    )
    .await;
    let list = old.under("a", "tools/list", json!({})).await.unwrap();
    let params = json!({"cursor": list["nextCursor"]});
    let rotated = CursorKeys::new([2; 32]).with_previous([[1; 32]]);
    let new = connect(&replica(rotated), (Era::Modern, Wire::Http)).await;
    new.under("a", "tools/list", params.clone()).await.unwrap();
    let other = connect(
        &replica(CursorKeys::new([3; 32])),
        (Era::Modern, Wire::Http),
    )
    .await;
    let error = other.under("a", "tools/list", params).await.unwrap_err();
    assert_eq!((error.code.0, &*error.message), (-32602, "Invalid cursor"));
}

/// SV-13: one principal's cursor does not open for another.
#[tokio::test]
async fn a_cursor_belongs_to_its_principal() {
    let server = Vary::builder()
        .with_variant(variant("a"), Shop::new("a").paged(3))
        .with_principal(|context| {
            let parts = context.extensions.get::<http::request::Parts>();
            let role = parts.and_then(|parts| parts.headers.get("x-role")?.to_str().ok());
            role.unwrap_or_default().to_owned()
        })
        .build()
        .unwrap();
    let server = serve_http(server).await;
    let one = join(&server.url, Era::Modern, json!({}), &[("x-role", "one")])
        .await
        .unwrap();
    let other = join(&server.url, Era::Modern, json!({}), &[("x-role", "other")])
        .await
        .unwrap();
    let list = one.under("a", "tools/list", json!({})).await.unwrap();
    let params = json!({"cursor": list["nextCursor"]});
    one.under("a", "tools/list", params.clone()).await.unwrap();
    let error = other.under("a", "tools/list", params).await.unwrap_err();
    assert_eq!(error.message, "Invalid cursor");
}

/// SV-17: a modern client's cache is told to keep nothing, since it knows nothing of variants.
#[tokio::test]
async fn modern_lists_are_not_to_be_cached() {
    for wire in [Wire::Pipe, Wire::Http] {
        let client = connect(&server(), (Era::Modern, wire)).await;
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "server/discover",
        ] {
            let result = client.under("", method, json!({})).await.unwrap();
            assert_eq!(
                (&result["ttlMs"], &result["cacheScope"]),
                (&json!(0), &json!("private"))
            );
        }
        let uri = json!({"uri": "shop:///all"});
        let result = client.under("plain", "resources/read", uri).await.unwrap();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private"))
        );
    }
}

#[derive(Clone)]
struct Described(&'static str);

impl ServerHandler for Described {
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mut tool = Tool::default();
        tool.name = name.to_owned().into();
        tool.description = (name != "same").then(|| self.0.into());
        Some(tool)
    }
}

/// SV-11: rmcp 3.8 checks `Mcp-Param-*` headers by `get_tool` (handler/server.rs), which has no
/// context, so that only what is the same in every variant can be said.
#[test]
fn headers_are_checked_where_all_variants_agree() {
    let one = Face::new(Described("one"));
    let hidden = View::new().with_tools(["same"]);
    let server = Vary::builder()
        .with_variant(variant("a"), one.clone())
        .with_variant(variant("b"), Described("two"))
        .build()
        .unwrap();
    assert!(server.get_tool("same").is_some() && server.get_tool("other").is_none());
    let server = Vary::builder()
        .with_variant(variant("a"), one.clone())
        .with_variant(variant("b"), one.with_view(hidden))
        .build()
        .unwrap();
    assert!(server.get_tool("same").is_some() && server.get_tool("other").is_none());
}

#[track_caller]
fn is_refused(builder: Builder, expected: &str) {
    assert_eq!(builder.build().unwrap_err().to_string(), expected);
}

/// SV-1, SV-3: every mistake of a declaration is named when it is built.
#[test]
fn a_wrong_declaration_is_refused_with_all_mistakes() {
    is_refused(Vary::builder(), "there is nothing to serve; add a variant");
    is_refused(
        Vary::builder()
            .with_handler(Empty)
            .with_advertised_only()
            .with_extension("com.example/x".parse().unwrap(), 1),
        "there are rules for variants and no variant; add one; \
         the settings of the extension `com.example/x` are not a JSON object",
    );
    let experimental = variant("a").with_status(Status::Experimental);
    is_refused(
        Vary::builder()
            .with_variant(experimental.clone(), Empty)
            .with_variant(experimental, Empty)
            .with_advertised(1),
        "2 to 5 variants are advertised; choose a number between them; \
         variant `a` is declared twice; rename one; \
         no variant is stable; the default must be: mark one as stable",
    );
    let renamed = |name: &str| ToolView::new().with_name(name);
    let view = View::new()
        .with_tool("x", renamed("z"))
        .with_tool("y", renamed("z"))
        .with_tool("y", renamed("z"))
        .with_resource("a:b", ResourceView::new())
        .with_resource("a:b", ResourceView::new())
        .with_prompt("p", PromptView::new().with_name(""));
    is_refused(
        Vary::builder().with_variant(variant("a"), Face::new(Empty).with_view(view)),
        "the view of variant `a`: `y` is described twice; keep one description; \
         the view of variant `a`: `a:b` is described twice; keep one description; \
         the view of variant `a`: two tools are named `z`; rename one; \
         the view of variant `a`: a prompt is renamed to nothing; give it a name",
    );
}

/// SV-1: a removal date that is past warns, and the variant is served.
#[test]
fn a_past_removal_date_warns() {
    let mut info = DeprecationInfo::new("old");
    info.removal_date = Some("2026-01-01".to_owned());
    let declared = |today: &str| {
        let server = Vary::builder()
            .with_variant(variant("new"), Empty)
            .with_variant(variant("old").deprecated(info.clone()), Empty)
            .with_today(today.parse().unwrap());
        server.build().unwrap().warnings().len()
    };
    assert_eq!((declared("2026-11-20"), declared("2025-11-20")), (1, 0));
}
