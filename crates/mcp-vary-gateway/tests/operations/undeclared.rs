//! Servers with methods that they do not declare: they work as without a gateway, and are asked once for what they
//! lack.

use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_util::future::join_all;

use crate::support::*;

const METHOD_NOT_FOUND: i64 = -32601;

/// A server of `era` without capabilities.
fn script(era: Era) -> Script {
    let complete = move |mut result: Value| {
        if era == Era::Modern {
            result["resultType"] = json!("complete");
        }
        result
    };
    let script = Script::new(era, "plain")
        .result("tools/list", complete(tool_list(&["one"])))
        .on_call(move |params| {
            let name = params["name"].as_str().unwrap();
            complete(json!({"content": [{"type": "text", "text": format!("called {name}")}]}))
        })
        .result(
            "completion/complete",
            complete(json!({"completion": {"values": ["Bern"]}})),
        )
        .result(
            "resources/read",
            complete(json!({"contents": [{"uri": "a:b", "text": "read"}]})),
        );
    match era {
        Era::Legacy => script.result("logging/setLevel", json!({})),
        Era::Modern => script,
    }
}

/// A server that declares nothing: over HTTP, or as a program that writes what it is asked for to a file.
struct Server {
    peer: ScriptedServer,
    log: PathBuf,
    target: Target,
    is_program: bool,
}

impl Server {
    async fn new(era: Era, is_program: bool) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vary-undeclared-{}-{number}", std::process::id());
        let log = std::env::temp_dir().join(name);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/undeclared.py");
        let script = script.display().to_string();
        let peer = self::script(era).start().await;
        let spoken = format!("{era:?}").to_lowercase();
        let args = [script, spoken, log.display().to_string()];
        let target = if is_program {
            Target::command("python3", args)
        } else {
            Target::http(peer.url.clone())
        };
        Self {
            peer,
            log,
            target,
            is_program,
        }
    }

    /// One of each era on each transport.
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for era in [Era::Legacy, Era::Modern] {
            for is_program in [false, true] {
                all.push(Self::new(era, is_program).await);
            }
        }
        all
    }

    fn config(&self) -> Config {
        config(self.target.clone())
    }

    fn count(&self, method: &str) -> usize {
        if !self.is_program {
            return self.peer.of(method).len();
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| *line == method).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
    }
}

fn completion() -> Value {
    json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "city", "value": "B"}})
}

#[track_caller]
fn is_refused(answer: &Value, code: i64) {
    answer.has("/error/code", code);
}

/// What the server turned out to have or to lack, as `vary status` shows it.
fn learned(gateway: &Gateway) -> Value {
    let status = serde_json::to_value(gateway.status()).unwrap();
    status["servers"][0]["undeclared"].clone()
}

#[tokio::test]
async fn a_list_that_is_not_declared_is_there_as_without_a_gateway() {
    for server in Server::all().await {
        for first in ["tools/list", "tools/call"] {
            let harness = Harness::alone(server.config()).await;
            for way in ClientKind::ALL {
                if first == "tools/list" {
                    let list = harness.ask(way, first, json!({})).await;
                    assert_eq!(names(&list), ["one"], "{way:?}");
                }
                let called = harness.ask(way, "tools/call", tool("one")).await;
                assert_eq!(texts(&called["result"]), ["called one"], "{way:?}");
                is_refused(&harness.ask(way, "tools/call", tool("two")).await, -32602);
            }
            assert_eq!(learned(&harness.gateway), json!({"tools/list": true}));
        }
    }
}

#[tokio::test]
async fn what_a_server_lacks_it_is_asked_for_once() {
    for server in Server::all().await {
        let harness = Harness::alone(server.config()).await;
        assert_eq!(server.count("prompts/list"), 0, "nobody asked");
        let asked = ClientKind::ALL.iter().cycle().take(12);
        let refused = asked.map(|way| harness.ask(*way, "prompts/list", json!({})));
        for answer in join_all(refused).await {
            is_refused(&answer, METHOD_NOT_FOUND);
        }
        // Also not on a connection for other clients.
        let other = json!({"roots": {}, "sampling": {}, "elicitation": {}});
        for way in ClientKind::ALL {
            let answer = way.ask(&harness, &other, "prompts/list", json!({})).await;
            is_refused(&answer, METHOD_NOT_FOUND);
            let get = harness.ask(way, "prompts/get", json!({"name": "p"})).await;
            is_refused(&get, METHOD_NOT_FOUND);
        }
        assert_eq!(server.count("prompts/list"), 1);
        assert_eq!(server.count("prompts/get"), 0);
        assert_eq!(learned(&harness.gateway), json!({"prompts/list": false}));
    }
}

#[tokio::test]
async fn a_completion_that_is_not_declared_is_passed_on() {
    for server in Server::all().await {
        let harness = Harness::alone(server.config()).await;
        for way in ClientKind::ALL {
            let answer = harness.ask(way, "completion/complete", completion()).await;
            answer.has("/result/completion/values", json!(["Bern"]));
        }
        assert_eq!(server.count("completion/complete"), ClientKind::ALL.len());
        let expected = json!({"completion/complete": true});
        assert_eq!(learned(&harness.gateway), expected);
        let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let declared = &client.initialized["capabilities"]["completions"];
        assert_eq!(*declared, json!({}), "{}", client.initialized);
    }
}

/// SV-12: a server that lists its prompts has no others, in any variant.
#[tokio::test]
async fn a_completion_of_a_prompt_that_no_list_has_is_refused() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        for way in ClientKind::ALL {
            for variant in ["standard", "compact"] {
                let params = under(variant, completion());
                let answer = harness.ask(way, "completion/complete", params).await;
                is_refused(&answer, -32602);
                answer.has("/error/data/activeVariant", variant);
            }
        }
        assert!(harness.peer.of("completion/complete").is_empty());
    }
}

#[tokio::test]
async fn a_resource_that_is_not_declared_is_read() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::new(era, false).await;
        let harness = Harness::alone(server.config()).await;
        for way in ClientKind::ALL {
            let read = harness
                .ask(way, "resources/read", json!({"uri": "a:b"}))
                .await;
            read.has("/result/contents/0/text", "read");
        }
        assert_eq!(learned(&harness.gateway), json!({"resources/read": true}));
    }
}

#[tokio::test]
async fn a_method_that_a_server_refuses_is_passed_on_once() {
    for era in [Era::Legacy, Era::Modern] {
        let refuse = |seen: &ReceivedRequest| seen.refuse(200, -32601, "Method not found");
        let refusing = script(era)
            .reply("completion/complete", refuse)
            .reply("resources/read", refuse)
            .reply("logging/setLevel", refuse);
        let harness = Harness::of_server(refusing).await;
        for way in ClientKind::ALL {
            let answer = harness.ask(way, "completion/complete", completion()).await;
            is_refused(&answer, METHOD_NOT_FOUND);
            let answer = harness
                .ask(way, "resources/read", json!({"uri": "a:b"}))
                .await;
            is_refused(&answer, METHOD_NOT_FOUND);
            let answer = harness
                .ask(way, "logging/setLevel", json!({"level": "info"}))
                .await;
            is_refused(&answer, METHOD_NOT_FOUND);
        }
        assert_eq!(harness.peer.of("completion/complete").len(), 1);
        assert_eq!(harness.peer.of("resources/read").len(), 1);
        let legacy = usize::from(era == Era::Legacy);
        assert_eq!(harness.peer.of("logging/setLevel").len(), legacy);
    }
}

#[tokio::test]
async fn a_log_level_is_set_at_a_server_that_does_not_declare_logging() {
    let server = Server::new(Era::Legacy, false).await;
    let harness = Harness::alone(server.config()).await;
    let mut client = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for level in ["warning", "debug"] {
        let set = request(json!(1), "logging/setLevel", json!({"level": level}));
        assert_eq!(client.ask(&set).await["result"], json!({}), "{level}");
    }
    let levels = server.peer.of("logging/setLevel");
    let levels: Value = levels
        .iter()
        .map(|it| it.body["params"]["level"].clone())
        .collect();
    assert_eq!(levels, json!(["warning", "debug"]));
    assert_eq!(learned(&harness.gateway), json!({"logging/setLevel": true}));
}

#[tokio::test]
async fn a_resource_is_subscribed_to_at_a_server_that_does_not_declare_it() {
    for has in [true, false] {
        let subscribed = move |seen: &ReceivedRequest| has.then(|| seen.answer(&json!({})));
        let server = script(Era::Legacy)
            .may_reply("resources/subscribe", subscribed)
            .may_reply("resources/unsubscribe", subscribed);
        let harness = Harness::of_server(server).await;
        for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
            let answer = harness
                .ask(way, "resources/subscribe", json!({"uri": "a:b"}))
                .await;
            if has {
                assert_eq!(answer["result"], json!({}), "{way:?}: {answer}")
            } else {
                is_refused(&answer, METHOD_NOT_FOUND)
            }
        }
        let asked = harness.peer.of("resources/subscribe").len();
        assert!(asked == 1 || has, "{asked}");
        let expected = json!({"resources/subscribe": has});
        assert_eq!(learned(&harness.gateway), expected);
    }
}

/// SV-11, SV-16: clients that came before are notified, and clients that come later see the capability declared.
#[tokio::test]
async fn other_clients_are_notified_of_a_list_that_was_found() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::new(era, false).await;
        let harness = Harness::alone(server.config()).await;
        let mut waiting = listening(&harness, ClientKind::StdioLegacy, &[]).await;
        let before = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        assert!(before.initialized["capabilities"]["tools"].is_null());
        let list = harness
            .ask(ClientKind::HttpLegacy, "tools/list", json!({}))
            .await;
        assert_eq!(names(&list), ["one"]);
        assert_eq!(soon(waiting.change()).await, changed("tools", "standard"));
        let list = soon(waiting.ask("tools/list", json!({}))).await;
        assert_eq!(names(&list), ["one"]);
        let after = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let declared = &after.initialized["capabilities"]["tools"];
        assert_eq!(*declared, json!({"listChanged": true}));
    }
}

/// SV-12.
#[tokio::test]
async fn a_variant_hides_what_was_found_as_it_hides_what_is_declared() {
    let server = Server::new(Era::Legacy, false).await;
    let harness = Harness::alone({
        let mut none = variant("none");
        none.tools = serde_json::from_value(json!({"include": ["other"]})).unwrap();
        let all = vec![variant("standard"), none];
        server.config().with_variants_of(all).unwrap()
    })
    .await;
    for way in ClientKind::ALL {
        let list = harness
            .ask(way, "tools/list", under("none", json!({})))
            .await;
        assert!(names(&list).is_empty(), "{way:?}: {list}");
        let call = harness
            .ask(way, "tools/call", under("none", tool("one")))
            .await;
        is_refused(&call, -32602);
    }
    assert_eq!(server.count("tools/call"), 0);
}

#[tokio::test]
async fn what_was_learned_is_forgotten_with_the_entry() {
    let server = Server::new(Era::Legacy, true).await;
    let harness = Harness::alone(server.config()).await;
    let way = ClientKind::StdioLegacy;
    is_refused(
        &harness.ask(way, "prompts/list", json!({})).await,
        METHOD_NOT_FOUND,
    );
    let same = server.config().with_read_result(true);
    harness.reload(same).await;
    is_refused(
        &harness.ask(way, "prompts/list", json!({})).await,
        METHOD_NOT_FOUND,
    );
    assert_eq!(server.count("prompts/list"), 1);
    let mut other = server.config();
    let Target::Command { env, .. } = &mut other.servers[0].target else {
        panic!("no command");
    };
    env.insert("MARKER".to_owned(), "1".to_owned());
    harness.reload(other).await;
    assert_eq!(learned(&harness.gateway), Value::Null);
    is_refused(
        &harness.ask(way, "prompts/list", json!({})).await,
        METHOD_NOT_FOUND,
    );
    assert_eq!(server.count("prompts/list"), 2);
}

/// It is waited for a moment, once; what it lists arrives when it answers.
#[tokio::test]
async fn a_server_that_does_not_answer_holds_no_other_up() {
    let silent = script(Era::Legacy).reply("tools/list", |_| Reply::silence());
    let silent = silent.start().await;
    let other = Server::new(Era::Legacy, false).await;
    let both = before(&[("silent", &silent), ("other", &other.peer)]);
    let began = Instant::now();
    let harness = Harness::alone(both).await;
    for way in ClientKind::ALL {
        let list = harness.ask(way, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["other_one"], "{way:?}");
    }
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(silent.of("tools/list").len(), 1);
}

/// A client that lists while the server is not there yet is notified of what it has.
#[tokio::test]
async fn a_server_that_comes_later_is_asked_for_what_clients_wanted() {
    let is_there = Arc::new(AtomicBool::new(false));
    let there = Arc::clone(&is_there);
    let ready = script(Era::Legacy);
    let peer = ScriptedServer::start(move |seen| {
        if there.load(Ordering::SeqCst) {
            ready.reply_to(seen)
        } else {
            Some(Reply::new(503, "text/plain", "later"))
        }
    });
    let (late, other) = (peer.await, Server::new(Era::Legacy, false).await);
    let both = before(&[("late", &late), ("other", &other.peer)]);
    let harness = Harness::alone(both).await;
    let mut client = listening(&harness, ClientKind::StdioLegacy, &[]).await;
    let list = soon(client.ask("tools/list", json!({}))).await;
    assert_eq!(names(&list), ["other_one"]);
    is_there.store(true, Ordering::SeqCst);
    // The first notifications may be about the other server.
    let mut listed = 0;
    while listed < 2 {
        soon(client.change()).await;
        let list = soon(client.ask("tools/list", json!({}))).await;
        listed = names(&list).len();
    }
    assert_eq!(late.of("tools/list").len(), 1);
}

/// What servers write to standard error when they are asked is shown with `--log info` only.
#[tokio::test]
async fn asking_a_server_says_nothing_at_the_default_level() {
    for is_program in [false, true] {
        let server = Server::new(Era::Legacy, is_program).await;
        let harness = Harness::alone(server.config()).await;
        let (log, _listening) = CapturedLog::listen("mcp_vary", Level::WARN);
        for method in ["prompts/list", "resources/list", "tools/list"] {
            harness
                .ask(ClientKind::StdioLegacy, method, json!({}))
                .await;
        }
        assert!(log.take().is_empty(), "{is_program}");
    }
}
