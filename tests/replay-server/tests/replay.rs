//! The server as the official SDK sees it, and what it says of files that it cannot serve.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use replay_server::{ARRIVED, Era, Recording, Replay};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_replay-server");

const LIST: &str = r#"{
    "init": {"serverInfo": {"name": "shop", "version": "7"}, "instructions": "Be kind."},
    "tools": [
        {"name": "find", "inputSchema": {"type": "object"}},
        {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
        {"name": "weigh", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    ],
    "prompts": [{"name": "greet"}],
    "resources": [{"uri": "shop:hours", "name": "hours"}],
    "results": {
        "tools": {"count": {"content": [], "structuredContent": {"n": 3}}},
        "resources": {"shop:hours": {"contents": [{"uri": "shop:hours", "text": "9 to 5"}]}}
    }
}"#;

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

type Client = RunningService<RoleClient, ()>;

async fn over_http(lifecycle: ClientLifecycleMode) -> (Client, Server) {
    let list = file("over-http.json", LIST);
    let mut child = Command::new(PROGRAM)
        .args([list.to_str().unwrap(), "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let output = child.stdout.take().unwrap();
    let server = Server(child);
    BufReader::new(output).read_line(&mut url).unwrap();
    let transport = StreamableHttpClientTransport::from_uri(url.trim());
    let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    (client, server)
}

async fn over_stdio(lifecycle: ClientLifecycleMode) -> (Client, tokio::process::Child) {
    let list = file("over-stdio.json", LIST);
    let mut server = tokio::process::Command::new(PROGRAM)
        .arg(list)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let client = ().serve_with_lifecycle(streams, lifecycle).await.unwrap();
    (client, server)
}

/// What the official client gets, whichever way it asks.
async fn serves(client: &Client) {
    let server = client.peer_info().unwrap();
    assert_eq!(server.instructions.as_deref(), Some("Be kind."));
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["find", "count", "weigh"]);
    assert_eq!(client.list_all_prompts().await.unwrap()[0].name, "greet");
    assert_eq!(
        client.list_all_resources().await.unwrap()[0].uri,
        "shop:hours"
    );

    let arguments = json!({"b": 1, "a": [2.50]});
    let call = |name: &'static str| {
        let arguments = arguments.as_object().unwrap().clone();
        client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments))
    };
    let echo = serde_json::to_value(call("find").await.unwrap()).unwrap();
    let arrived = json!(r#"{"name":"find","arguments":{"b":1,"a":[2.5]}}"#);
    assert_eq!(echo["content"][0]["text"], arrived);
    assert_eq!(echo["_meta"][ARRIVED], arrived);
    let recorded = serde_json::to_value(call("count").await.unwrap()).unwrap();
    assert_eq!(recorded["structuredContent"], json!({"n": 3}));
    assert!(
        recorded["_meta"][ARRIVED]
            .as_str()
            .unwrap()
            .contains("count")
    );
    let promised = call("weigh").await.unwrap();
    assert_eq!(promised.is_error, Some(true));
    match call("steal").await {
        Err(ServiceError::McpError(error)) => assert_eq!(error.message, "Unknown tool: steal"),
        other => panic!("{other:?}"),
    }
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

#[tokio::test]
async fn the_official_client_is_served_in_either_era_over_http() {
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let (client, _server) = over_http(lifecycle).await;
        serves(&client).await;
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn the_official_client_is_served_in_either_era_over_stdio() {
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let (client, mut server) = over_stdio(lifecycle).await;
        serves(&client).await;
        client.cancel().await.unwrap();
        // Its input is closed, so it ends by itself.
        assert!(server.wait().await.unwrap().success());
    }
}

fn answer(era: Era, message: &Value) -> Value {
    let replay = Replay::new(Recording::parse(LIST).unwrap(), era);
    let answer = replay.answer(message.to_string().as_bytes()).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn an_era_can_be_left_out() {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let discover = json!({"jsonrpc": "2.0", "id": "a", "method": "server/discover", "params": {"_meta": meta}});
    for (era, message, code) in [
        (Era::Both, &initialize, None),
        (Era::Legacy, &initialize, None),
        (Era::Modern, &initialize, Some(-32022)),
        (Era::Both, &discover, None),
        (Era::Modern, &discover, None),
        (Era::Legacy, &discover, Some(-32022)),
    ] {
        let answer = answer(era, message);
        assert_eq!(answer["error"]["code"].as_i64(), code, "{era:?} {answer}");
        assert_eq!(answer["id"], message["id"]);
    }
    let result = &answer(Era::Legacy, &initialize)["result"];
    assert_eq!(result["protocolVersion"], "2025-06-18");
}

#[test]
fn what_is_no_request_is_answered_as_json_rpc_says() {
    let replay = Replay::new(Recording::parse(LIST).unwrap(), Era::Both);
    let answers = |message: &str| replay.answer(message.as_bytes());
    assert_eq!(
        answers(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        None
    );
    insta::assert_snapshot!(answers("[").unwrap(), @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a JSON object"}}"#);
    insta::assert_snapshot!(answers(r#"{"id":1}"#).unwrap(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no method"}}"#);
    insta::assert_snapshot!(answers(r#"{"id":1,"method":"tools/paint"}"#).unwrap(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#);
    insta::assert_snapshot!(answers(r#"{"id":1,"method":"tools/call","params":{}}"#).unwrap(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`name` is missing"}}"#);
    insta::assert_snapshot!(answers(r#"{"id":1,"method":"resources/read","params":{"uri":"shop:till"}}"#).unwrap(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"shop:till"}}}"#);
}

#[test]
fn everything_that_is_wrong_with_a_file_is_said_at_once() {
    let bad = r#"{
        "tool": [],
        "tools": [{"name": "a"}, {"name": "b", "inputSchema": {"type": "object"}}, {"name": "b", "inputSchema": {"type": "object"}},
            {"title": "c"}, {"name": "o", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}],
        "resources": [{"uri": "x:y"}],
        "prompts": {},
        "results": {"tools": {"z": {"content": []}, "b": {}, "o": {"content": []}}, "tasks": {}}
    }"#;
    insta::assert_snapshot!(Recording::parse(bad).unwrap_err(), @r#"
    tool: no key of a recording; there are tools, prompts, resources, templates, init, results
    tools[0]: the `inputSchema` of `a` is not of "type": "object"
    tools[2]: a second tool `b`
    tools[3]: has no text `name`
    prompts: not a list; write prompts: [...]
    resources[0]: has no text `name`
    results.tools.z: no tool of that name is listed
    results.tools.b: has no list `content`
    results.tools.o: has no `structuredContent`, which its tool's `outputSchema` asks for
    results.tasks: there are tools, prompts, resources
    "#);
    let wrong = |text| Recording::parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(wrong("[1]"), @r#"not an object; write {"tools": [...]}"#);
    insta::assert_snapshot!(wrong("{\n  \"tools\": [,]\n}"), @"not JSON: expected value at line 2 column 13");
}

/// What the program says of its command line, and that it ends with code 2.
#[track_caller]
fn refuses(arguments: &[&str]) -> String {
    let mut program = Command::new(PROGRAM);
    let mut child = program
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reported = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut reported)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{reported}");
    reported
}

#[test]
fn a_command_line_that_cannot_be_carried_out_is_explained() {
    insta::assert_snapshot!(refuses(&[]), @"replay-server: name the file with the recorded list; see --help");
    insta::assert_snapshot!(refuses(&["a.json", "b.json"]), @"replay-server: `b.json` is not understood; see --help");
    insta::assert_snapshot!(refuses(&["a.json", "--era", "stone"]), @"replay-server: `stone` is no era; write legacy, modern or both");
    insta::assert_snapshot!(refuses(&["a.json", "--http"]), @"replay-server: `--http` needs a value; see --help");
    insta::assert_snapshot!(refuses(&["no-such-file.json"]), @"replay-server: no-such-file.json cannot be read: No such file or directory (os error 2)");
    let slip = file("slip.json", r#"{"tools": [{"nam": "x"}]}"#);
    let said = refuses(&[slip.to_str().unwrap()]).replace(slip.to_str().unwrap(), "slip.json");
    insta::assert_snapshot!(said, @"
    replay-server: slip.json is no recording
    tools[0]: has no text `name`
    ");
}
