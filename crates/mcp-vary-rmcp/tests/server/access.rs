//! Access rules: what is hidden from a client does not exist for it.

use crate::desk::Desk;
use crate::prelude::*;
use crate::variants::{ids, said, variant};
use mcp_vary_rmcp::access::{Expression, Presence};
use mcp_vary_rmcp::view::Rule;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

fn rule(json: &str) -> Rule {
    serde_json::from_str(json).unwrap()
}

fn group(name: &str) -> When {
    let when = When::new().with_claim("groups", Presence::of([name]).unwrap());
    when.unwrap()
}

/// Everyone may read; the group `sre` may do everything, but nobody may use `detonate`.
fn policy() -> AccessPolicy {
    let public = [
        ItemPattern::tools(rule(r#"{"readOnlyHint": true}"#)),
        ItemPattern::prompts(rule(r#""public_*""#)),
        ItemPattern::resources(rule(r#""notes:///public/*""#)),
    ];
    let all = || [ItemPattern::any(rule(r#""*""#))];
    let detonate = [ItemPattern::tools(rule(r#""detonate""#))];
    AccessPolicy::new([
        AccessRule::new(When::anyone()).with_allow(public),
        AccessRule::new(group("sre")).with_allow(all()),
        AccessRule::new(When::anyone()).with_deny(detonate),
    ])
    .unwrap()
}

/// [`desks`] of the whole desk under the rules of [`policy`].
fn protected() -> VaryServer {
    let builder = desks(Desk::whole()).with_access(policy());
    builder.build().unwrap()
}

/// A variant with all of the desk, and one in which tools have other names.
fn desks(desk: Desk) -> Builder {
    let all = VariantHandler::new(desk);
    let renamed = View::new()
        .with_tool("search", ToolView::new().with_name("find"))
        .with_tool("wipe", ToolView::new().with_name("erase"));
    VaryServer::builder()
        .with_variant(variant("all"), all.clone())
        .with_variant(variant("renamed"), all.with_view(renamed))
        .with_principal(principal)
}

async fn client(server: &VaryServer, era: Era, role: &'static str) -> (Client, impl Sized) {
    let http = serve_http(server.clone()).await;
    let headers = [("x-role", role)];
    let client = join(&http.url, era, json!({}), &headers).await;
    (client, http)
}

/// Every request that names an item, or lists some.
fn requests() -> Vec<(&'static str, Value)> {
    let mut requests = Vec::new();
    for kind in ["tools", "prompts", "resources", "resources/templates"] {
        requests.push((kind, json!({})));
    }
    for name in ["search", "find", "wipe", "erase", "detonate", "nothing"] {
        requests.push(("tools/call", json!({"name": name, "arguments": {"a": 1}})));
    }
    for name in ["public_hello", "private_hello", "nothing"] {
        requests.push(("prompts/get", json!({"name": name})));
        let prompt = json!({"type": "ref/prompt", "name": name});
        requests.push(("completion/complete", completion(&prompt)));
    }
    for path in ["public/a", "private/a", "%70rivate/a", "nothing"] {
        let uri = format!("notes:///{path}");
        requests.push(("resources/read", json!({"uri": uri})));
    }
    requests.push(("resources/read", json!({"uri": "other:///nothing"})));
    for of in ["notes:///public", "notes:///private", "other://"] {
        let template = format!("{of}/{{n}}");
        let resource = json!({"type": "ref/resource", "uri": template});
        requests.push(("completion/complete", completion(&resource)));
    }
    requests
}

fn completion(reference: &Value) -> Value {
    json!({"ref": reference, "argument": {"name": "n", "value": ""}})
}

async fn answer(client: &Client, variant: &str, method: &str, params: Value) -> String {
    let method = if method.contains('/') && method != "resources/templates" {
        method.to_owned()
    } else {
        format!("{method}/list")
    };
    let answer: Result<Value, ErrorData> = client.under(variant, &method, params).await;
    serde_json::to_string(&answer.map_err(|error| json!(error))).unwrap()
}

/// SV-20: for a guest, the server answers as one that never had what is hidden.
#[tokio::test]
async fn a_guest_learns_nothing_of_what_is_hidden() {
    let build = |desk| desks(desk).with_access(policy()).build().unwrap();
    let (whole, public) = (build(Desk::whole()), build(Desk::public()));
    for era in each(ERAS) {
        let (of_whole, _whole) = client(&whole, era, "guest").await;
        let (of_public, _public) = client(&public, era, "guest").await;
        assert_eq!(of_whole.capabilities(), of_public.capabilities());
        for variant in ["all", "renamed"] {
            for (method, params) in requests() {
                let about = format!("{era:?} {variant} {method} {params}");
                let expected = answer(&of_public, variant, method, params.clone()).await;
                let found = answer(&of_whole, variant, method, params).await;
                assert_eq!(found, expected, "{about}");
            }
        }
    }
}

/// SV-20: a hidden name and an unknown one get the same error.
#[tokio::test]
async fn a_hidden_name_is_answered_as_an_unknown_one() {
    let server = protected();
    for era in each(ERAS) {
        let (guest, _server) = client(&server, era, "guest").await;
        let unread = if era == Era::Legacy { -32002 } else { -32602 };
        let are_equal = async |method, key: &str, names: [&str; 2], code, message| {
            let error = async |name: &str| {
                let error = guest.error("all", method, json!({key: name})).await;
                assert_eq!(error.code.0, code, "{method} {name}");
                assert_eq!(error.data.as_ref().unwrap()["activeVariant"], "all");
                assert!(error.message.starts_with(message), "{error:?}");
                json!(error).to_string().replace(name, "NAME")
            };
            assert_eq!(error(names[0]).await, error(names[1]).await);
        };
        let tools = ["wipe", "pass"];
        are_equal("tools/call", "name", tools, -32602, "Unknown tool: ").await;
        let prompts = ["private_hello", "nothing"];
        let message = "Unknown prompt: ";
        are_equal("prompts/get", "name", prompts, -32602, message).await;
        let resources = ["notes:///private/a", "x:///"];
        let message = "Resource not found";
        are_equal("resources/read", "uri", resources, unread, message).await;
    }
}

/// SV-20: what one rule denies is denied, and the rest is for those that a rule allows.
#[tokio::test]
async fn a_member_of_a_group_sees_what_its_rules_allow() {
    let server = protected();
    for era in each(ERAS) {
        let (sre, _server) = client(&server, era, "sre").await;
        assert_eq!(sre.names("all", "tools").await, ["search", "wipe"]);
        assert_eq!(sre.names("renamed", "tools").await, ["find", "erase"]);
        let prompts = ["public_hello", "private_hello"];
        assert_eq!(sre.names("all", "prompts").await, prompts);
        let wiped = sre.call("renamed", "erase", json!({"a": 1})).await;
        assert_eq!(said(&wiped), json!({"wipe": {"a": 1}}));
        let private = json!({"uri": "notes:///private/a"});
        sre.result("all", "resources/read", private).await;
        let detonate = json!({"name": "detonate"});
        let error = sre.error("all", "tools/call", detonate).await;
        data_of(error, -32602, "Unknown tool: detonate");
    }
}

/// SV-20: the variants that no rule offers do not exist, and a pinned one is the only one.
#[tokio::test]
async fn rules_offer_and_pin_variants() {
    let all = [ItemPattern::any(rule(r#""*""#))];
    let renamed = |role| AccessRule::new(group(role)).with_variant("renamed".parse().unwrap());
    let policy = AccessPolicy::new([
        AccessRule::new(When::anyone()).with_allow(all),
        AccessRule::new(group("guest")).with_variants(["all".parse().unwrap()]),
        renamed("bot").pinned(),
        renamed("dev"),
    ])
    .unwrap();
    let server = desks(Desk::whole()).with_access(policy).build().unwrap();
    for era in each(ERAS) {
        for (role, offered, hidden) in [
            ("guest", &["all"][..], Some("renamed")),
            ("bot", &["renamed"][..], Some("all")),
            ("dev", &["renamed", "all"][..], None),
            ("sre", &["all", "renamed"][..], None),
        ] {
            let (client, _server) = client(&server, era, role).await;
            assert_eq!(ids(&client.capabilities()), offered, "{role}");
            let first = client.names("", "tools").await;
            let expected = json!({"all": "search", "renamed": "find"});
            assert_eq!(first[0], expected[offered[0]], "{role}");
            let Some(hidden) = hidden else { continue };
            let error = async |id: &str| {
                let error = client.error(id, "tools/list", json!({})).await;
                let data = data_of(error, -32602, "Invalid server variant");
                assert_eq!(data["availableVariants"], json!(offered));
                data.to_string().replace(id, "ID")
            };
            assert_eq!(error(hidden).await, error("nothing").await);
        }
    }
}

/// SV-20: scopes and expressions are checked at the call, in the handler's names and arguments.
#[tokio::test]
async fn a_call_needs_its_scopes_and_its_expression() {
    let allowed = |role| {
        let wipe = ItemPattern::tools(rule(r#""wipe""#));
        AccessRule::new(group(role)).with_allow([wipe])
    };
    let condition = Expression::compile("args.a == 1 && variant == 'renamed'").unwrap();
    let policy = AccessPolicy::new([
        allowed("dev").with_scopes(["wipe:all"]),
        allowed("ops").with_condition(condition),
    ]);
    let policy = policy.unwrap();
    let server = desks(Desk::whole()).with_access(policy).build().unwrap();
    let call = |name: &str, a: u32| json!({"name": name, "arguments": {"a": a}});
    for era in each(ERAS) {
        let (dev, _server) = client(&server, era, "dev").await;
        assert_eq!(dev.names("all", "tools").await, ["wipe"]);
        let error = dev.error("all", "tools/call", call("wipe", 1)).await;
        let refused = "the token lacks a scope that this call needs";
        let data = data_of(error, -32003, refused);
        assert_eq!(data, json!({"scopes": ["wipe:all"]}));

        let (ops, _server) = client(&server, era, "ops").await;
        ops.call("renamed", "erase", json!({"a": 1})).await;
        let refused = "the access rules do not allow this call with these arguments";
        let error = ops.error("renamed", "tools/call", call("erase", 2)).await;
        let expected = json!({"activeVariant": "renamed"});
        assert_eq!(data_of(error, -32602, refused), expected);
        let error = ops.error("all", "tools/call", call("wipe", 1)).await;
        let expected = json!({"activeVariant": "all"});
        assert_eq!(data_of(error, -32602, refused), expected);
    }
}

/// SV-20: a server without variants has the same rules, and a layer can identify the principal.
#[tokio::test]
async fn rules_restrict_a_handler_without_variants() {
    for era in each(ERAS) {
        let builder = VaryServer::builder().with_handler(Desk::whole());
        let server = builder.with_access(policy()).build().unwrap();
        let guest = connect(&server, (era, Wire::Pipe)).await;
        assert_eq!(guest.names("", "tools").await, ["search"]);
        let wipe = guest.under("", "tools/call", json!({"name": "wipe"})).await;
        let unknown = guest.under("", "tools/call", json!({"name": "pass"})).await;
        let shown = |answer: Result<Value, ErrorData>| json!(answer.unwrap_err()).to_string();
        assert_eq!(shown(wipe).replace("wipe", "pass"), shown(unknown));

        let builder = VaryServer::builder().with_handler(Desk::whole());
        let builder = builder.with_principal(|_| Some(member("sre")));
        let server = builder.with_access(policy()).build().unwrap();
        let sre = connect(&server, (era, Wire::Pipe)).await;
        assert_eq!(sre.names("", "tools").await, ["search", "wipe"]);
    }
}

/// SV-20: resources that rules hide cannot be subscribed to.
#[tokio::test]
async fn a_hidden_resource_cannot_be_subscribed_to() {
    let server = protected();
    let (guest, _server) = client(&server, Era::Legacy, "guest").await;
    let subscribe = async |uri: &str| {
        let (uri, meta) = (json!({"uri": uri}), json!({VARIANT: "all"}));
        guest.ask("resources/subscribe", uri, meta).await
    };
    subscribe("notes:///public/a").await.unwrap();
    let hidden = subscribe("notes:///private/a").await.unwrap_err();
    let unknown = subscribe("notes:///private/b").await.unwrap_err();
    let hidden = json!(hidden).to_string();
    let found = hidden.replace("private/a", "private/b");
    assert_eq!(found, json!(unknown).to_string());
}
