//! Which variant of the examples a client gets that names none.

use std::sync::Arc;

use mcp_vary_testkit::http_client::{HttpRequest, RawHttp};
use mcp_vary_testkit::message::modern;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::front::Front;

/// The tools that a client of the modern era is listed at `path` with a `header`, unless it is empty.
async fn tools(front: &Front, path: &str, header: &str, capabilities: Value) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Arc::clone(&front.gateway);
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let done = async { drop(end.await) };
        gateway.serve_http(listener, done).await.unwrap();
    });
    let message = modern(json!(1), "tools/list", json!({}), &capabilities);
    let mut request = HttpRequest::modern(&message).line(&format!("POST {path} HTTP/1.1"));
    if let Some((name, value)) = header.split_once(": ") {
        request = request.with(name, value);
    }
    let mut http = RawHttp::connect(address).await;
    let answer = http.ask(&request).await.json();
    drop((http, ended));
    serving.await.unwrap();
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer}")).iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.collect()
}

fn hints(hints: &Value) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/server-variants": {"variantHints": {"hints": hints}}}})
}

/// SV-27: who sends the headers that such servers know gets the variant that they mean.
#[tokio::test]
async fn headers_that_clients_send_already_choose_a_variant() {
    let front = Front::of("github").await;
    let table = include_str!("choosing/headers.txt");
    for row in table.trim().lines() {
        let mut cells = row.split('|').map(str::trim);
        let [path, header, has, lacks] = std::array::from_fn(|_| cells.next().unwrap());
        let tools = tools(&front, path, header, json!({})).await;
        assert!(tools.iter().any(|tool| tool == has), "{row}: {tools:?}");
        assert!(tools.iter().all(|tool| tool != lacks), "{row}: {tools:?}");
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
    // The hints of the extension's own examples are among them.
    let table = include_str!("choosing/hints.txt");
    for row in table.trim().lines() {
        let mut cells = row.split(" | ");
        let [example, declared, has] = std::array::from_fn(|_| cells.next().unwrap());
        let declared: Value = serde_json::from_str(declared).unwrap();
        let front = Front::of(example).await;
        let without = tools(&front, "/mcp", "", json!({})).await;
        let with = tools(&front, "/mcp", "", hints(&declared)).await;
        assert!(without.iter().all(|tool| tool != has), "{row}: {without:?}");
        assert!(with.iter().any(|tool| tool == has), "{row}: {with:?}");
        front.gateway.close().await;
    }
}
