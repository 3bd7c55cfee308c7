//! Which variant of the examples a client gets that names none.

use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::front::Front;

/// How many tools a client of the modern era is listed at `path` with `headers`.
async fn tools(front: &Front, path: &str, headers: &str, capabilities: Value) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let gateway = Arc::clone(&front.gateway);
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let done = async { drop(end.await) };
        gateway.serve_http(listener, done).await.unwrap();
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
            .to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
         {headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).await.unwrap();
    drop(ended);
    serving.await.unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{response}"));
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{response}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn hints(hints: &Value) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/server-variants": {"variantHints": {"hints": hints}}}})
}

/// SV-27: who sends the headers that such servers know gets the variant that they mean.
#[tokio::test]
async fn headers_that_clients_send_already_choose_a_variant() {
    let front = Front::of("github").await;
    for (path, headers, has, lacks) in [
        ("/mcp", "", "search_repositories", "get_diff"),
        (
            "/mcp",
            "X-MCP-Readonly: true\r\n",
            "search_repositories",
            "create_branch",
        ),
        (
            "/mcp",
            "X-MCP-Lockdown: true\r\n",
            "get_file_contents",
            "search_repositories",
        ),
        (
            "/mcp",
            "X-MCP-Toolsets: repos,pull_requests\r\n",
            "get_diff",
            "create_issue",
        ),
        (
            "/mcp",
            "X-MCP-Toolsets: issues\r\n",
            "create_issue",
            "get_file_contents",
        ),
        (
            "/mcp/v/triage",
            "X-MCP-Toolsets: issues\r\n",
            "add_issue_comment",
            "create_issue",
        ),
    ] {
        let tools = tools(&front, path, headers, json!({})).await;
        assert!(
            tools.iter().any(|tool| tool == has),
            "{path} {headers}: {tools:?}"
        );
        assert!(
            !tools.iter().any(|tool| tool == lacks),
            "{path} {headers}: {tools:?}"
        );
    }
    front.gateway.close().await;
}

/// SV-27: the JSON of SEP-2053, "A/B Testing and Experimentation".
#[tokio::test]
async fn the_arms_of_the_experiment_are_offered_as_declared() {
    let mut front = Front::of("experiment").await;
    let answer = front
        .ask_declaring(json!({}), "server/discover", json!({}))
        .await;
    let answer = answer.unwrap();
    let settings = &answer["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"];
    let offered = settings["availableVariants"].as_array().unwrap();
    let arms = [
        ("control", "Standard tool descriptions", "control", "stable"),
        (
            "treatment-verbose",
            "Experimental: More detailed",
            "treatment-a",
            "experimental",
        ),
        (
            "treatment-structured",
            "Experimental: Structured",
            "treatment-b",
            "experimental",
        ),
    ];
    assert_eq!(offered.len(), arms.len(), "{answer}");
    for (variant, (id, description, cohort, status)) in std::iter::zip(offered, arms) {
        assert_eq!(
            (&variant["id"], &variant["status"]),
            (&json!(id), &json!(status))
        );
        assert!(
            variant["description"]
                .as_str()
                .unwrap()
                .starts_with(description),
            "{variant}"
        );
        let hints = json!({"com.acme/experiment": "tool-desc-2026-q1", "com.acme/cohort": cohort});
        assert_eq!(variant["hints"], hints, "{id}");
    }
    front.gateway.close().await;
}

/// SV-27: the hints of the examples choose what they are about.
#[tokio::test]
async fn hints_choose_a_variant() {
    for (example, declared, has) in [
        ("models", json!({"modelFamily": "local"}), "open"),
        (
            "research",
            json!({"useCase": ["qa", "research"]}),
            "look_up",
        ),
        ("healthcare", json!({"useCase": "admin"}), "create_invoice"),
        ("files", json!({"useCase": "conversational"}), "where_am_i"),
        (
            "trading",
            json!({"useCase": "autonomous-agent"}),
            "run_strategy",
        ),
        // The hints of the extension's own examples.
        ("github", json!({"domain": "code-review"}), "get_diff"),
        (
            "trading",
            json!({"com.acme/riskLevel": "moderate"}),
            "run_strategy",
        ),
        (
            "healthcare",
            json!({"com.acme/audience": "staff"}),
            "create_invoice",
        ),
        ("research", json!({"com.acme/depth": "shallow"}), "look_up"),
        (
            "api-generations",
            json!({"com.acme/apiGeneration": "v3", "status": "experimental"}),
            "watch_orders",
        ),
        (
            "context-budgets",
            json!({"com.acme/device": "edge"}),
            "open",
        ),
    ] {
        let front = Front::of(example).await;
        let without = tools(&front, "/mcp", "", json!({})).await;
        let with = tools(&front, "/mcp", "", hints(&declared)).await;
        assert!(
            !without.iter().any(|tool| tool == has),
            "{example}: {without:?}"
        );
        assert!(with.iter().any(|tool| tool == has), "{example}: {with:?}");
        front.gateway.close().await;
    }
}
