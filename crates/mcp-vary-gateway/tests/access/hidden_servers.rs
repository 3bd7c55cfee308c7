//! A server of which rules allow nothing: every answer is that of a gateway without it.

use mcp_vary_access::ItemPattern;
use mcp_vary_gateway::Naming;
use mcp_vary_view::Rule;

use super::groups::{ask_both, bearer, for_group, named, with_rules};
use crate::support::people::{Session, key};
use crate::support::*;

/// A server with tools only.
fn plain(seen: &ReceivedRequest) -> Option<Reply> {
    Some(match seen.method() {
        "initialize" => seen.answer(&introduced("plain", json!({"tools": {}}))),
        "tools/list" => seen.answer(&tool_list(&["go"])),
        "tools/call" => seen.answer(&json!({"content": []})),
        _ => seen.refuse(200, -32601, "the server does not have it"),
    })
}

/// A server with everything there is.
fn hidden(era: Era, seen: &ReceivedRequest) -> Option<Reply> {
    let capabilities = json!({
        "tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {},
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
        "extensions": {"com.secret/ext": {"x": 1}}, "experimental": {"com.secret/other": {}},
    });
    Some(match (seen.method(), era) {
        ("initialize", Era::Legacy) => {
            let mut result = introduced("hidden", capabilities);
            result["instructions"] = json!("Nobody reads this.");
            seen.answer(&result)
        }
        ("server/discover", Era::Modern) => {
            let mut result = discovered(capabilities);
            result["instructions"] = json!("Nobody reads this.");
            seen.answer(&result)
        }
        ("initialize" | "server/discover" | "GET", _) => return None,
        ("tools/list", _) => seen.answer(&tool_list(&["act"])),
        ("prompts/list", _) => seen.answer(&json!({"prompts": [{"name": "greet"}]})),
        ("resources/list", _) => {
            seen.answer(&json!({"resources": [{"uri": "hid:1", "name": "one"}]}))
        }
        ("resources/templates/list", _) => {
            let template = json!({"uriTemplate": "hid://{x}", "name": "t"});
            seen.answer(&json!({"resourceTemplates": [template]}))
        }
        _ => seen.answer(&json!({"secret": "it answers everything"})),
    })
}

/// Whether, and how, there is a third server.
#[derive(Clone, Copy, Debug)]
enum Third {
    None,
    Up(Era),
    Down,
    Starting,
    /// It answers 401.
    Refusing,
}

async fn harness(third: Third, allowed: &[ItemPattern]) -> Harness {
    let first = ScriptedServer::start(plain).await;
    let mut config = before(&[("a", &first), ("b", &first)]);
    let target = match third {
        Third::None => None,
        Third::Up(era) => {
            let server = ScriptedServer::start(move |seen| hidden(era, seen)).await;
            let url = server.url.clone();
            // It stays until the runtime of the test ends.
            std::mem::forget(server);
            Some(Target::http(url))
        }
        Third::Down => Some(Target::http("http://127.0.0.1:1/mcp".parse().unwrap())),
        Third::Starting | Third::Refusing => {
            let server = ScriptedServer::start(move |_| {
                Some(match third {
                    Third::Starting => Reply::silence(),
                    _ => Reply::new(401, "text/plain", "log in"),
                })
            });
            let server = server.await;
            let url = server.url.clone();
            std::mem::forget(server);
            Some(Target::http(url))
        }
    };
    let third = target.map(|target| UpstreamConfig::new("hid", target));
    config.servers.extend(third);
    config.start_wait = Duration::from_millis(500);
    // A quarter of it just after the start.
    config.class_wait = Some(Duration::from_secs(4));
    let allowed = allowed.iter().cloned();
    let everything = for_group("sre").with_allow([named("*")]);
    let rules = [for_group("dev").with_allow(allowed), everything];
    Harness::behind(first, with_rules(config, rules)).await
}

/// What a client asks that knows all of the hidden server.
fn questions() -> Vec<(&'static str, Value)> {
    let completion =
        |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let methods = "tools/list prompts/list resources/list resources/templates/list tasks/list ping com.secret/do x/y \
                   server/discover";
    let mut all: Vec<_> = methods
        .split(' ')
        .map(|method| (method, json!({})))
        .collect();
    for name in ["hid_act", "act", "nix", "a_go"] {
        all.push(("tools/call", json!({"name": name, "arguments": {}})));
        all.push(("prompts/get", json!({"name": name})));
        let prompt = json!({"type": "ref/prompt", "name": name});
        all.push(("completion/complete", completion(prompt)));
    }
    for uri in ["hid:1", "hid://5", "nix:1"] {
        all.push(("resources/read", json!({"uri": uri})));
        all.push(("resources/subscribe", json!({"uri": uri})));
        all.push(("resources/unsubscribe", json!({"uri": uri})));
        let resource = json!({"type": "ref/resource", "uri": uri});
        all.push(("completion/complete", completion(resource)));
    }
    for method in ["tasks/get", "tasks/cancel", "tasks/result", "tasks/update"] {
        all.push((method, json!({"taskId": "t-1"})));
    }
    all.push(("logging/setLevel", json!({"level": "debug"})));
    all
}

/// Status and body of all answers in both eras, after the answer to `initialize`.
async fn answers(harness: &Harness, who: &str) -> Vec<String> {
    let mut http = RawHttp::connect(harness.address()).await;
    let key = || bearer(who);
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let opening = HttpRequest::initialize(&tasks);
    let opened = http.ask(&opening.with("Authorization", key())).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut all = vec![format!("initialize {} {}", opened.status, opened.text())];
    for (method, params) in questions() {
        let message = request(json!(1), method, params.clone()).to_string();
        let legacy = HttpRequest::of(&session, message).with("Authorization", key());
        let modern = HttpRequest::modern_request_as(method, params.clone(), &tasks)
            .with("Authorization", key());
        for (era, post) in [("legacy", legacy), ("modern", modern)] {
            let answer = http.ask(&post).await;
            let (status, text) = (answer.status, answer.text());
            all.push(format!("{era} {method} {params}: {status} {text}"));
        }
    }
    all
}

/// The answers that differ from those of a gateway without the third server.
async fn differences(third: Third, allowed: &[ItemPattern]) -> Vec<String> {
    let without = answers(&harness(Third::None, allowed).await, "dev").await;
    let with = answers(&harness(third, allowed).await, "dev").await;
    assert_eq!(without.len(), with.len());
    let both = std::iter::zip(without, with);
    let different = both.filter(|(without, with)| without != with);
    different
        .map(|(without, with)| format!("without: {without}\nwith:    {with}"))
        .collect()
}

fn of_servers(pattern: &str) -> ItemPattern {
    ItemPattern::any(default_with::<Rule>(|it| {
        it.server = Some(pattern.parse().unwrap())
    }))
}

/// SV-20.
#[tokio::test]
async fn a_server_of_which_rules_allow_nothing_does_not_show() {
    for allowed in [vec![of_servers("{a,b}")], vec![named("a_*"), named("b_*")]] {
        for third in [
            Third::Up(Era::Legacy),
            Third::Up(Era::Modern),
            Third::Down,
            Third::Starting,
            Third::Refusing,
        ] {
            let found = differences(third, &allowed).await;
            assert!(found.is_empty(), "{third:?}: {}", found.join("\n"));
        }
    }
}

/// Two gateways that show the server to some of their clients: those see it.
#[tokio::test]
async fn a_server_shows_to_those_who_may_use_something_of_it() {
    let harness = harness(Third::Up(Era::Legacy), &[of_servers("{a,b}")]).await;
    let opened = &answers(&harness, "sre").await[0];
    for shown in ["com.secret/ext", "prompts", "logging", "Nobody reads this."] {
        assert!(opened.contains(shown), "{shown}: {opened}");
    }
}

/// A client that may use nothing at all sees an empty list of tools, and no other list.
#[tokio::test]
async fn who_may_use_nothing_has_an_empty_list_of_tools() {
    let harness = harness(Third::Up(Era::Legacy), &[of_servers("{a,b}")]).await;
    for list in ask_both(&harness, "guest", "tools/list", json!({})).await {
        list.has("/result/tools", json!([]));
    }
    let mut session = Session::open(&harness, &key("guest"), &json!({})).await;
    let refused = session.ask(&key("guest"), "prompts/list", json!({})).await;
    assert_eq!(refused.refusal(), (200, -32601, json!(1)));
    let opened = &answers(&harness, "guest").await[0];
    assert!(opened.contains(r#""name":"vary""#), "{opened}");
    assert!(!opened.contains("com.secret"), "{opened}");
}

/// One of two servers with the same names and URIs.
fn twin(name: &str, seen: &ReceivedRequest) -> Option<Reply> {
    let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
    let result = match seen.method() {
        "initialize" => introduced(name, capabilities),
        "tools/list" => tool_list(&["act"]),
        "resources/list" => json!({"resources": [{"uri": "doc:///a", "name": "a"}]}),
        "prompts/list" => json!({"prompts": [{"name": "greet"}]}),
        "tools/call" => {
            let link = json!({"type": "resource_link", "uri": "doc:///a", "name": "a"});
            json!({"content": [link], "by": name})
        }
        "resources/read" => json!({"contents": [], "by": name}),
        "prompts/get" => json!({"messages": [], "by": name}),
        _ => return None,
    };
    Some(seen.answer(&result))
}

/// SV-11, SV-20: what a hidden server has, too, is what a visible one has of that name, also where a result links to it.
#[tokio::test]
async fn a_hidden_server_takes_no_name_and_no_uri() {
    let u = ScriptedServer::start(|seen| twin("u", seen)).await;
    let v = ScriptedServer::start(|seen| twin("v", seen)).await;
    let of_v = ItemPattern::any(Rule {
        server: Some("v".parse().unwrap()),
        ..Rule::default()
    });
    let rules = [
        for_group("sre").with_allow([named("*")]),
        for_group("dev").with_allow([of_v]),
    ];
    let config = before(&[("u", &u), ("v", &v)]).with_naming(Naming::Never);
    let harness = Harness::behind(u, with_rules(config, rules)).await;
    for (who, by) in [("sre", "u"), ("dev", "v")] {
        for (method, params) in [
            ("tools/call", tool("act")),
            ("resources/read", json!({"uri": "doc:///a"})),
            ("prompts/get", json!({"name": "greet"})),
        ] {
            for answer in ask_both(&harness, who, method, params.clone()).await {
                answer.has("/result/by", by);
            }
        }
    }
}
