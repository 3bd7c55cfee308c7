//! Clients of both eras in front of servers of both eras that list only 2026-07-28, as the official SDKs do.

use std::path::{Path, PathBuf};

use crate::support::*;

/// What one client that can be asked declares.
fn askable() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

/// A server on standard streams, and the file that its processes write to.
struct Processes {
    log: PathBuf,
    target: Target,
}

impl Processes {
    fn of(kind: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/eras.py");
        let mut name = [0; 8];
        getrandom::fill(&mut name).unwrap();
        let name = format!("vary-eras-{:x}", u64::from_le_bytes(name));
        let log = std::env::temp_dir().join(name);
        let script = script.display().to_string();
        let args = [script, kind.to_owned(), log.display().to_string()];
        Self {
            target: Target::command("python3", args),
            log,
        }
    }

    fn config(&self) -> Config {
        let mut config = config(self.target.clone());
        config.servers[0].limits.initialize = Duration::from_millis(300);
        config
    }

    async fn gateway(&self) -> Arc<Gateway> {
        Gateway::start(self.config()).await.unwrap()
    }

    /// How often a line was written that begins with this.
    fn count(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(what)).count()
    }

    /// Waits until as many of its processes run.
    async fn runs(&self, processes: usize) {
        until(async || self.count("begins") - self.count("ends") == processes).await;
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
    }
}

/// The same over HTTP: each request is of its own era.
fn of_both(version: &'static str, seen: &ReceivedRequest) -> Option<Reply> {
    let meta = &seen.body["params"]["_meta"];
    let is_modern = meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28";
    let era = if is_modern { "modern" } else { "legacy" };
    let info = json!({"name": "eras", "version": version});
    let mut result = match (seen.method(), is_modern) {
        ("initialize", false) => {
            let mut reply = introduced("eras", json!({"tools": {}}));
            reply["serverInfo"] = info;
            return Some(seen.open("s", &reply));
        }
        ("server/discover", true) => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        ("ping", false) => json!({}),
        ("tools/list", _) => tool_list(&["era"]),
        ("tools/call", _) => json!({"content": [{"type": "text", "text": era}]}),
        _ => return None,
    };
    if is_modern {
        result["resultType"] = json!("complete");
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = info;
    }
    Some(seen.answer(&result))
}

/// The era that the server says it was called in.
fn era(answer: &Value) -> String {
    let text = texts(&answer["result"])[0];
    text.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn each_client_is_served_in_its_own_era_by_an_endpoint_that_lists_only_the_modern_one() {
    for capabilities in [json!({}), askable()] {
        for first in ClientKind::ALL {
            let harness = Harness::scripted(|seen| of_both("1", seen)).await;
            let rest = ClientKind::ALL.into_iter().filter(|way| *way != first);
            for way in std::iter::once(first).chain(rest) {
                let answer = ask_as(&harness, way, &capabilities, "tools/call", tool("era")).await;
                let expected = if way.is_modern() { "modern" } else { "legacy" };
                assert_eq!(era(&answer), expected, "{way:?} after {first:?}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn each_client_is_served_in_its_own_era_by_a_program_that_lists_only_the_modern_one() {
    for capabilities in [json!({}), askable()] {
        let server = Processes::of("both");
        let gateway = server.gateway().await;
        for round in 1..=2 {
            let mut client = legacy_pipe(&gateway, "2025-11-25", &capabilities).await;
            let call = request(json!(1), "tools/call", tool("era"));
            assert_eq!(era(&client.ask(&call).await), "legacy", "{round}");
            let mut client = open_pipe(&gateway);
            let call = modern(json!(1), "tools/call", tool("era"), &capabilities);
            assert_eq!(era(&client.ask(&call).await), "modern", "{round}");
        }
    }
}

#[tokio::test]
async fn a_session_of_a_server_of_both_eras_is_asked_what_the_server_asks() {
    let server = Processes::of("both");
    let gateway = server.gateway().await;
    let mut client = legacy_pipe(&gateway, "2025-11-25", &askable()).await;
    for [method, reply] in rows(
        r#"
        elicitation/create     | {"action": "decline"}
        sampling/createMessage | {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
        roots/list             | {"roots": []}
    "#,
    ) {
        let reply = cell(reply);
        let arguments =
            json!({"method": method, "params": {"message": "?", "requestedSchema": {}}});
        let call = json!({"name": "ask", "arguments": arguments});
        let asked = client.ask(&request(json!(1), "tools/call", call)).await;
        asked.has("/method", method);
        let result = client.ask(&response(&asked, reply.clone())).await;
        assert_eq!(cell(texts(&result["result"])[0]), reply, "{method}");
    }
}

#[tokio::test]
async fn a_session_keeps_what_such_a_server_keeps_for_it() {
    let server = Processes::of("both");
    let gateway = server.gateway().await;
    let mut client = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    for count in 1..=3 {
        let message = request(json!(count), "tools/call", tool("era"));
        let answer = client.ask(&message).await;
        assert_eq!(texts(&answer["result"]), [format!("legacy {count}")]);
    }
}

#[tokio::test]
async fn one_kind_of_client_has_one_connection_to_a_server_of_both_eras() {
    let server = Processes::of("both");
    let gateway = server.gateway().await;
    let mut client = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    let message = request(json!(1), "tools/call", tool("era"));
    client.ask(&message).await;
    // The connection that was opened at the start has been replaced by it.
    server.runs(1).await;
    assert_eq!(server.count("begins"), 2);

    let server = Processes::of("both");
    let gateway = server.gateway().await;
    let mut client = open_pipe(&gateway);
    let call = modern(json!(1), "tools/call", tool("era"), &json!({}));
    client.ask(&call).await;
    assert_eq!(server.count("begins"), 1);
    assert_eq!(server.count("initialize"), 0);
}

#[tokio::test]
async fn a_server_without_sessions_is_asked_for_one_once() {
    for kind in ["refuses", "ignores"] {
        let server = Processes::of(kind);
        let gateway = server.gateway().await;
        for capabilities in [json!({}), askable(), json!({"elicitation": {}})] {
            let mut client = legacy_pipe(&gateway, "2025-11-25", &capabilities).await;
            let call = request(json!(1), "tools/call", tool("era"));
            assert_eq!(era(&client.ask(&call).await), "modern", "{kind}");
        }
        assert_eq!(server.count("initialize"), 1, "{kind}");
        let status = serde_json::to_value(gateway.status()).unwrap();
        let expected = json!(["2026-07-28"]);
        assert_eq!(status["servers"][0]["revisions"], expected, "{kind}");
    }
}

#[tokio::test]
async fn an_endpoint_that_ignores_initialize_costs_one_wait() {
    let peer = ScriptedServer::start(|seen| match seen.method() {
        "initialize" => Some(Reply::silence()),
        _ => of_both("1", seen),
    })
    .await;
    let wait = Duration::from_millis(300);
    let edit = |config: &mut Config| config.servers[0].limits.initialize = wait;
    let harness = Harness::edited(peer, edit).await;
    for capabilities in [json!({}), askable(), json!({})] {
        let mut client = LegacyClient::open(&harness, "2025-11-25", &capabilities).await;
        let answer = client.answer("tools/call", tool("era")).await;
        assert_eq!(era(&answer), "modern");
    }
    let initialize = harness.peer.of("initialize");
    assert_eq!(initialize.len(), 1);
    // 2026-07-28 wants it on every `POST`.
    assert_eq!(initialize[0].header("mcp-method"), Some("initialize"));
}

#[tokio::test]
async fn the_eras_that_a_server_speaks_are_in_the_status() {
    let server = Processes::of("both");
    let gateway = server.gateway().await;
    let eras =
        || serde_json::to_value(gateway.status()).unwrap()["servers"][0]["revisions"].clone();
    assert_eq!(eras(), json!(["2026-07-28"]));
    legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    assert_eq!(eras(), json!(["2025-11-25", "2026-07-28"]));
}

/// A process of both eras whose first client is awaited longer than the test, and its gateway.
async fn awaiting() -> (Processes, Arc<Gateway>) {
    let server = Processes::of("both");
    let mut config = server.config();
    config.servers[0].era_wait = Duration::from_secs(3_600);
    let gateway = Gateway::open(config).await;
    (server, gateway)
}

/// What a process answers first decides its era: a connection in the other one would cost a second start.
#[tokio::test]
async fn the_first_client_decides_the_era_of_a_process_that_has_just_begun() {
    let (server, gateway) = awaiting().await;
    let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    gateway.expect_client(&[initialize.as_slice(), b"\n{"].concat());
    let mut client = soon(legacy_pipe(&gateway, "2025-11-25", &json!({}))).await;
    let call = request(json!(2), "tools/call", tool("era"));
    assert_eq!(era(&client.ask(&call).await), "legacy");
    assert_eq!(server.count("begins"), 1);

    let (server, gateway) = awaiting().await;
    let call = modern(json!(2), "tools/call", tool("era"), &json!({}));
    gateway.expect_client(call.to_string().as_bytes());
    assert_eq!(era(&soon(open_pipe(&gateway).ask(&call)).await), "modern");
    assert_eq!((server.count("begins"), server.count("initialize")), (1, 0));
}

#[tokio::test]
async fn the_first_client_over_http_decides_it_before_its_request_is_read() {
    let (server, gateway) = awaiting().await;
    let (address, _stop) = serve(&gateway).await;
    let mut client = soon(LegacyClient::at(address, "2025-11-25", &json!({}))).await;
    let answer = client.answer("tools/call", tool("era")).await;
    assert_eq!(era(&answer), "legacy");
    assert_eq!(server.count("begins"), 1);

    let (server, gateway) = awaiting().await;
    let (address, _stop) = serve(&gateway).await;
    let call = modern(json!(2), "tools/call", tool("era"), &json!({}));
    let mut http = RawHttp::connect(address).await;
    let answer = soon(http.ask(&HttpRequest::modern(&call))).await;
    assert_eq!(era(&answer.json()), "modern");
    assert_eq!((server.count("begins"), server.count("initialize")), (1, 0));
}

/// A server of one era costs what it did: clients of both eras share its connections.
#[tokio::test]
async fn clients_of_both_eras_share_the_connection_to_a_server_of_one() {
    let harness = Harness::scripted(|seen| match seen.method() {
        "server/discover" => Some(seen.refuse(200, -32601, "Method not found")),
        _ => of_both("1", seen),
    })
    .await;
    for way in ClientKind::ALL {
        let answer = harness.ask(way, "tools/call", tool("era")).await;
        assert_eq!(era(&answer), "legacy", "{way:?}");
    }
    assert_eq!(harness.peer.of("initialize").len(), 1);
    assert_eq!(harness.peer.of("server/discover").len(), 1);
}

#[tokio::test]
async fn another_version_of_a_server_is_asked_again_which_eras_it_speaks() {
    let peer = ScriptedServer::start(|seen| match seen.method() {
        "initialize" => Some(seen.refuse(200, -32601, "Method not found")),
        _ => of_both("1", seen),
    })
    .await;
    let mut harness = Harness::edited(peer, |config| {
        config.servers[0].limits.ping = Duration::from_millis(100);
        config.servers[0].limits.backoff = Duration::from_millis(10);
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = client.answer("tools/call", tool("era")).await;
    assert_eq!(era(&answer), "modern");

    let other = ScriptedServer::start(|_| None).await;
    let address = std::mem::replace(&mut harness.peer, other).stop().await;
    harness.peer = ScriptedServer::start_at(address, |seen| of_both("2", seen)).await;
    until(async || {
        // A server that Vary has connected to is not asked for its identity again.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let answer = client.answer("tools/call", tool("era")).await;
        answer["result"].is_object() && era(&answer) == "legacy"
    })
    .await;
}

/// CN-7: what a modern server writes because its revision requires it does not reach clients of earlier ones.
#[tokio::test]
async fn a_session_gets_no_members_that_only_modern_clients_know() {
    let server = Processes::of("refuses");
    let gateway = server.gateway().await;
    let mut client = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    let message = request(json!(1), "tools/call", tool("era"));
    let called = client.ask(&message).await;
    let expected = json!({"content": [{"type": "text", "text": "modern 1"}]});
    called.has("/result", expected);
    let message = request(json!(2), "tools/list", json!({}));
    let listed = client.ask(&message).await;
    let members: Vec<_> = listed["result"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["tools"]);

    let harness = Harness::scripted(|seen| match seen.method() {
        "initialize" => Some(seen.refuse(400, -32601, "Method not found")),
        _ => of_both("1", seen),
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let called = client.answer("tools/call", tool("era")).await;
    let expected = json!({"content": [{"type": "text", "text": "modern"}]});
    called.has("/result", expected);
}
