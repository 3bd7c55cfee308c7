//! `vary up` for clients that have fewer servers, or fewer tools, than others.

use std::fs;
use std::net::SocketAddr;

use mcp_vary_testkit::http_client::{HttpRequest, RawHttp};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::User;
use crate::program::VARY;
use crate::text::{assert_contains, assert_lacks};

/// A server with instructions and an item of each kind.
const ARCHIVE: &str = r#"
import json, sys
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "archive", "version": "1"}, "instructions": "Ask archive.",
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "resources/list": {"resources": [{"uri": "archive:1", "name": "r"}]},
    "resources/templates/list": {"resourceTemplates": []},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in RESULTS:
            answer["result"] = RESULTS[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "unknown"}
        print(json.dumps(answer), flush=True)
"#;

/// What a client gets at `url`.
fn ask(url: &str, method: &str, params: Value) -> Value {
    let place = url.strip_prefix("http://").unwrap();
    let (authority, path) = place.split_once('/').unwrap();
    let address: SocketAddr = authority.parse().unwrap();
    let line = format!("POST /{path} HTTP/1.1");
    let request = HttpRequest::modern_request(method, params).line(&line);
    Runtime::new().unwrap().block_on(async {
        let mut http = RawHttp::connect(address).await;
        http.ask(&request).await.json()
    })
}

#[test]
fn a_client_gets_no_prompt_resource_or_instruction_of_a_server_that_it_did_not_have() {
    let user = User::new("fewer");
    // The path of a test has no Python.
    let start = "PATH=/usr/local/bin:/usr/bin:/bin exec python3 -c \"$0\"";
    let mut servers = user.servers(".claude.json");
    servers["archive"] = json!({"command": "/bin/sh", "args": ["-c", start, ARCHIVE]});
    let text = json!({"mcpServers": servers}).to_string();
    user.home.write(".claude.json", &text);
    fs::remove_file(user.home.path(".gemini/settings.json")).unwrap();
    user.run(&["up", "--yes"]).exited(0);
    let url = |file: &str| {
        let servers = user.servers(file);
        servers["vary"]["url"].as_str().unwrap().to_owned()
    };
    let (whole, few) = (url(".claude.json"), url(".cursor/mcp.json"));
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "server/discover",
    ] {
        let [all, some] = [&whole, &few].map(|url| ask(url, method, json!({})));
        assert!(some["result"].is_object(), "{some}");
        assert_contains(&all.to_string(), &["archive"]);
        assert_lacks(&some.to_string(), &["archive"]);
    }
    let refused = ask(&few, "prompts/get", json!({"name": "archive_p"}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let text = fs::read_to_string(user.configuration()).unwrap();
    assert_contains(
        &text,
        &["  cursor:\n    from: standard\n    servers: [sky]\n"],
    );
}

#[test]
fn tools_that_a_client_excludes_fit_a_configuration_that_its_user_changed() {
    let user = User::new("excluded");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    let (before, cursor) = text.split_once("  cursor:\n").unwrap();
    let mine = "    servers: [sky]\n    tools: [\"*get_weather\"]\n";
    let edited = cursor.replacen("    servers: [sky]\n", mine, 1);
    assert_ne!(cursor, edited);
    fs::write(&path, format!("{before}  cursor:\n{edited}")).unwrap();
    let mut servers = user.servers(".gemini/settings.json");
    servers["limited"] = json!({
        "command": VARY, "args": ["weather"], "env": {"N": "limited"}, "excludeTools": ["get_weather"],
    });
    let text = json!({"mcpServers": servers}).to_string();
    user.home.write(".gemini/settings.json", &text);
    for _ in 0..2 {
        user.run(&["up", "--yes"]).exited(0);
        let text = fs::read_to_string(&path).unwrap();
        let (above, below) = text.split_once("\nvariants:\n").unwrap();
        assert_contains(above, &["\nx-tools: &tools\n  exclude:\n"]);
        assert_contains(below, &["  standard: {tools: *tools}\n", mine]);
        user.run(&["down"]).exited(0);
    }
}
