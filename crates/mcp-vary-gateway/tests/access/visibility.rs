//! Lists, calls, reads, prompts, completions and instructions obey the same decision.

use mcp_vary_access::{AccessRule, When};

use super::groups::{ask_both, bearer, claims, for_group, named, tokens, with_rules};
use crate::support::*;
use mcp_vary_gateway::Naming;

/// Developers see what begins with `o` and the places; nobody may `fail`; operators see all the rest.
fn rules() -> [AccessRule; 3] {
    [
        for_group("dev").with_allow([named("o*"), named("fail"), named("place:*"), named("greet")]),
        for_group("sre").with_allow([named("*")]),
        AccessRule::new(When::anyone()).with_deny([named("fail")]),
    ]
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[tokio::test]
async fn lists_have_what_a_rule_allows_and_none_denies() {
    for era in ERAS {
        let harness = Harness::before(era, |config| with_rules(config, rules())).await;
        for list in ask_both(&harness, "dev", "tools/list", json!({})).await {
            assert_eq!(names(&list), ["odd"], "{list}");
        }
        for list in ask_both(&harness, "sre", "tools/list", json!({})).await {
            let shown = names(&list);
            assert!(shown.len() == 9 && !shown.contains(&"fail"), "{shown:?}");
        }
        for list in ask_both(&harness, "guest", "tools/list", json!({})).await {
            list.has("/result/tools", json!([]));
        }
        for (method, key) in [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            for list in ask_both(&harness, "dev", method, json!({})).await {
                let items = list["result"][key].as_array().unwrap();
                assert_eq!(items.len(), 1, "{method} {list}");
            }
            for list in ask_both(&harness, "guest", method, json!({})).await {
                assert_eq!(list["error"]["code"], -32601, "{method} {list}");
            }
        }
    }
}

/// A server of two tools with so many values that `directory` saves more than `describe_tools` costs.
fn wordy() -> Script {
    let values: Vec<_> = (0..80).map(|at| format!("value-{at}")).collect();
    let tool = |name| {
        let properties = json!({"label": {"enum": values}});
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    };
    Script::legacy("wordy").lists(json!({"tools": [tool("odd"), tool("fail")]}))
}

#[tokio::test]
async fn what_is_hidden_is_not_described() {
    let harness = Harness::with_server(wordy(), |config| with_rules(config, rules())).await;
    let asked = json!({"names": ["odd", "fail", "nothing"]});
    let call = json!({"name": "describe_tools", "arguments": asked});
    let call = under("directory", call);
    for answer in ask_both(&harness, "dev", "tools/call", call.clone()).await {
        let text: Value = serde_json::from_str(texts(&answer["result"])[0]).unwrap();
        text.has("/tools/0/name", "odd");
        text.has("/tools/1", Value::Null);
        assert_eq!(text["unknown"], json!(["fail", "nothing"]), "{answer}");
    }
    // Who sees no tool has nothing to describe.
    for answer in ask_both(&harness, "guest", "tools/call", call).await {
        answer.has("/error/message", "Unknown tool: describe_tools");
    }
}

/// A server that answers nothing.
async fn silent_server() -> ScriptedServer {
    let held = Mutex::new(Vec::new());
    ScriptedServer::start(move |_| {
        let (sender, reply) = Reply::stream();
        held.lock().unwrap().push(sender);
        Some(reply)
    })
    .await
}

/// While a server starts, a call of a hidden name is answered like one of an unknown name, and neither names a server
/// of which the client may use nothing.
#[tokio::test]
async fn a_server_that_starts_is_named_to_those_who_may_use_it() {
    let silent = silent_server().await;
    let places = places_server::start(Era::Legacy).await;
    let rules = [
        for_group("dev").with_allow([named("places_o*")]),
        for_group("sre").with_allow([named("places_o*"), named("late_*")]),
    ];
    let config = before(&[("late", &silent), ("places", &places)]);
    let config = with_rules(config.allow_empty_start(Duration::from_millis(300)), rules);
    let harness = Harness::behind(places, config).await;
    for name in ["late_x", "places_say", "nix"] {
        for answer in ask_both(&harness, "dev", "tools/call", tool(name)).await {
            answer.has("/error/code", -32602);
            answer.has("/error/message", format!("Unknown tool: {name}"));
        }
        for answer in ask_both(&harness, "sre", "tools/call", tool(name)).await {
            let said = format!(
                "`{name}` is not known yet: server `late` is still starting; try again in a moment"
            );
            answer.has("/error/code", -32603);
            answer.has("/error/message", said);
        }
    }
}

/// Names are those of the whole merged list: they do not depend on who asks.
#[tokio::test]
async fn a_prefix_on_collision_is_the_same_for_everybody() {
    let one = places_server::start(Era::Legacy).await;
    let two = places_server::start(Era::Legacy).await;
    let rules = [
        for_group("dev").with_allow([named("*")]),
        for_group("dev").with_deny([named("two_*")]),
        for_group("sre").with_allow([named("*")]),
    ];
    let config = before(&[("one", &one), ("two", &two)]).with_naming(Naming::OnCollision);
    let harness = Harness::behind(one, with_rules(config, rules)).await;
    for (who, names_of_two) in [("dev", 0), ("sre", 10)] {
        for list in ask_both(&harness, who, "tools/list", json!({})).await {
            let shown = names(&list);
            assert!(shown.contains(&"one_odd"), "{who}: {shown:?}");
            let of_two = shown.iter().filter(|name| name.starts_with("two_"));
            assert_eq!(of_two.count(), names_of_two, "{who}: {shown:?}");
        }
        for answer in ask_both(&harness, who, "tools/call", tool("one_odd")).await {
            assert!(answer["result"].is_object(), "{who}: {answer}");
        }
    }
    drop(two);
}

/// What is hidden, which `params` asks for, is answered as what nobody has.
async fn same_as_unknown(harness: &Harness, method: &str, name: &str, params: fn(&str) -> Value) {
    let of_hidden = ask_both(harness, "dev", method, params(name)).await;
    let unknown = name.replace("place", "nix").replace("greet", "nix");
    let unknown = if unknown == name { "nix" } else { &unknown };
    let of_unknown = ask_both(harness, "dev", method, params(unknown)).await;
    for (one, other) in std::iter::zip(of_hidden, of_unknown) {
        assert!(one["error"].is_object(), "{method}: {one}");
        let expected = other.to_string().replace(unknown, name);
        assert_eq!(one.to_string(), expected, "{method}");
    }
}

#[tokio::test]
async fn what_is_hidden_is_answered_as_what_does_not_exist() {
    for era in ERAS {
        let harness = Harness::before(era, |config| with_rules(config, rules())).await;
        for hidden in ["say", "fail"] {
            same_as_unknown(&harness, "tools/call", hidden, tool).await;
        }
        let rules = [for_group("dev").with_allow([named("o*")])];
        let narrow = Harness::before(era, |config| with_rules(config, rules)).await;
        let prompt = |name: &str| json!({"name": name});
        same_as_unknown(&narrow, "prompts/get", "greet", prompt).await;
        let read = |uri: &str| json!({"uri": uri});
        same_as_unknown(&narrow, "resources/read", "place:bern", read).await;
        let complete = |name: &str| {
            let reference = json!({"type": "ref/prompt", "name": name});
            json!({"ref": reference, "argument": {"name": "x", "value": ""}})
        };
        same_as_unknown(&narrow, "completion/complete", "greet", complete).await;
        for method in "tools/call prompts/get resources/read completion/complete".split(' ') {
            let found = narrow.peer.of(method).len();
            assert_eq!(found, 0, "{method} reached the server");
        }
    }
}

/// A refusal starts no process, opens no connection and re-reads no list.
#[tokio::test]
async fn a_refusal_says_nothing_to_a_server() {
    let harness = Harness::with(|config| with_rules(config, rules())).await;
    ask_both(&harness, "dev", "tools/list", json!({})).await;
    let before = harness.peer.received().len();
    let connections = harness.peer.connections();
    for name in ["say", "nix"] {
        ask_both(&harness, "dev", "tools/call", tool(name)).await;
        ask_both(&harness, "dev", "resources/read", json!({"uri": "x:y"})).await;
    }
    assert_eq!(harness.peer.received().len(), before);
    assert_eq!(harness.peer.connections(), connections);
}

#[tokio::test]
async fn what_is_allowed_works() {
    for era in ERAS {
        let harness = Harness::before(era, |config| with_rules(config, rules())).await;
        for answer in ask_both(&harness, "dev", "tools/call", tool("odd")).await {
            answer.has("/result/structuredContent/city", "Bern");
        }
        let uri = json!({"uri": "place:bern"});
        for answer in ask_both(&harness, "dev", "resources/read", uri).await {
            answer.has("/result/contents/0/text", "Bern");
        }
        for answer in ask_both(&harness, "dev", "prompts/get", json!({"name": "greet"})).await {
            assert!(answer["result"]["messages"].is_array(), "{answer}");
        }
    }
}

fn instructed(name: &'static str) -> impl Fn(&ReceivedRequest) -> Option<Reply> {
    move |seen| {
        let result = match seen.method() {
            "initialize" => {
                let mut result = introduced(name, json!({"tools": {}}));
                result["instructions"] = json!(format!("Use {name}."));
                result
            }
            "tools/list" => tool_list(&[&format!("{name}_tool")]),
            _ => return None,
        };
        Some(seen.answer(&result))
    }
}

#[tokio::test]
async fn instructions_come_from_servers_with_something_visible() {
    let one = ScriptedServer::start(instructed("one")).await;
    let two = ScriptedServer::start(instructed("two")).await;
    let rules = [
        for_group("dev").with_allow([named("one_*")]),
        for_group("sre").with_allow([named("*")]),
    ];
    let config = with_rules(before(&[("one", &one), ("two", &two)]), rules);
    let harness = Harness::behind(one, config).await;
    for (who, expected) in [
        ("dev", json!("Use one.")),
        ("sre", json!("# one\n\n> Use one.\n\n# two\n\n> Use two.")),
        ("guest", Value::Null),
    ] {
        let [_, discovered] = ask_both(&harness, who, "server/discover", json!({})).await;
        assert_eq!(discovered["result"]["instructions"], expected, "{who}");
    }
}

#[tokio::test]
async fn the_instructions_of_the_only_server_are_hidden_with_its_items() {
    let one = ScriptedServer::start(instructed("one")).await;
    let config = config(Target::http(one.url.clone()));
    let rules = [for_group("sre").with_allow([named("*")])];
    let harness = Harness::behind(one, with_rules(config, rules)).await;
    let [_, discovered] = ask_both(&harness, "guest", "server/discover", json!({})).await;
    discovered.has("/result/instructions", Value::Null);
}

/// Other rules after a reload: streams hear of the lists that differ for them, and of no others.
#[tokio::test]
async fn other_rules_are_a_change_of_lists_for_those_whom_they_concern() {
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules())).await;
    let listening = async |who: &str| {
        let params = json!({"notifications": {"toolsListChanged": true}});
        let post = HttpRequest::modern_request("subscriptions/listen", params)
            .with("Authorization", bearer(who));
        let mut stream = harness.connect().await;
        stream.open_stream(&post).await;
        soon(stream.event()).await.unwrap();
        stream
    };
    let (mut of_dev, mut of_guest) = (listening("dev").await, listening("guest").await);
    let mut after = rules();
    after[0] = for_group("dev").with_allow([named("s*")]);
    let after = with_rules(config(Target::http(harness.peer.url.clone())), after);
    harness.reload(after).await;
    let told = soon(of_dev.event()).await.unwrap();
    told.has("/method", "notifications/tools/list_changed");
    let [_, list] = ask_both(&harness, "dev", "tools/list", json!({})).await;
    assert_eq!(names(&list), ["say", "steps"]);
    let silent = tokio::time::timeout(Duration::from_millis(200), of_guest.event());
    assert!(silent.await.is_err(), "nothing changed for guests");
}

/// Without credentials, on standard input, a client is an anonymous one.
#[tokio::test]
async fn a_client_on_pipes_is_bound_by_the_rules_for_anyone() {
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules())).await;
    let mut pipe = open_pipe(&harness.gateway);
    let list = modern(json!(1), "tools/list", json!({}), &json!({}));
    pipe.ask(&list).await.has("/result/tools", json!([]));
}

/// A principal whose claims change gets another access class at its next request, and its stream hears of it.
#[tokio::test]
async fn other_claims_are_another_access_class_at_the_next_request() {
    let server = AuthorizationServer::start().await;
    let authentication = tokens(&server);
    let harness = Harness::with(|config| {
        let mut config = with_rules(config, rules());
        config.authentication = Some(authentication);
        config
    })
    .await;
    let bearer_of = |group: &str| format!("Bearer {}", server.sign(claims(group)));
    let mut http = harness.connect().await;
    let open = HttpRequest::initialize(&json!({}));
    let open = open.with("Authorization", bearer_of("dev"));
    let id = http.open_session(&open).await;
    let get = HttpRequest::get(&id).with("Authorization", bearer_of("dev"));
    let mut stream = harness.connect().await;
    stream.open_stream(&get).await;
    let list = request(json!(1), "tools/list", json!({})).to_string();
    let mut listed = async |group: &str| {
        let post = HttpRequest::of(&id, list.clone()).with("Authorization", bearer_of(group));
        let list = http.ask(&post).await.json();
        names(&list).len()
    };
    assert_eq!(listed("dev").await, 1);
    assert_eq!(listed("sre").await, 9);
    let mut told = soon(stream.event()).await.unwrap();
    // The first event shows that the stream is open.
    while told.is_null() {
        told = soon(stream.event()).await.unwrap();
    }
    told.has("/method", "notifications/tools/list_changed");
    assert_eq!(listed("guest").await, 0);
}
