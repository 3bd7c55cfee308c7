//! The names, parents and attributes of spans, as the table of the reference has them.

use super::traced::{before, only, spans};
use crate::support::*;

const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// The spans of one call by this kind of client to a server of `era` have the attributes of every call, and `server` and
/// `client` beside them.
async fn shows(kind: ClientKind, era: Era, tool_name: &str, server: &[&str], client: &[&str]) {
    let (collector, harness) = before(era).await;
    let response = harness.ask(kind, "tools/call", tool(tool_name)).await;
    assert!(response["result"].is_object() || response["error"].is_object());
    let port = format!("server.port={}", port(&harness.peer));
    let spans = spans(&collector, &harness).await;
    let name = format!("tools/call {tool_name}");
    let (outer, inner) = (only(&spans, SERVER, &name), only(&spans, CLIENT, &name));
    assert_eq!(outer.parent, "", "{kind:?}");
    let parent = (&outer.trace, &outer.id);
    assert_eq!((&inner.trace, &inner.parent), parent, "{kind:?}");
    assert!(outer.time.0 <= inner.time.0 && inner.time.0 <= inner.time.1);
    assert!(inner.time.1 <= outer.time.1);
    let network: &[&str] = match kind {
        ClientKind::HttpLegacy | ClientKind::HttpModern => &OVER_HTTP,
        ClientKind::StdioLegacy | ClientKind::StdioModern => &["network.transport=pipe"],
    };
    let server = [&OF_SERVER, network, server].concat();
    let expected = attributes(tool_name, kind.is_modern(), &server);
    let is_shown = |line: &String| !line.starts_with("mcp.session.id=");
    let mut shown: Vec<_> = outer.lines().into_iter().filter(is_shown).collect();
    shown.sort();
    assert_eq!(shown, expected, "{kind:?}");
    let client = [&OF_CLIENT, &OVER_HTTP[..3], &[&*port], client].concat();
    let mut shown = inner.lines();
    shown.sort();
    let expected = attributes(tool_name, era == Era::Modern, &client);
    assert_eq!(shown, expected, "{kind:?}");
    assert_eq!(outer.resource["service.name"], "vary");
}

const OVER_HTTP: [&str; 4] = [
    "network.transport=tcp",
    "network.protocol.name=http",
    "network.protocol.version=1.1",
    "client.address=127.0.0.1",
];

const OF_SERVER: [&str; 3] = [
    "jsonrpc.request.id=1",
    "vary.variant=standard",
    "vary.variant.why=ranking",
];

const OF_CLIENT: [&str; 2] = ["server.address=127.0.0.1", "vary.server=peer"];

/// Those of a call in the revision of its era, and `more`, in order.
fn attributes(tool_name: &str, is_modern: bool, more: &[&str]) -> Vec<String> {
    let revision = if is_modern {
        "2026-07-28"
    } else {
        "2025-11-25"
    };
    let mut all: Vec<_> = more.iter().map(|it| (*it).to_owned()).collect();
    all.extend([
        "mcp.method.name=tools/call".to_owned(),
        "gen_ai.operation.name=execute_tool".to_owned(),
        format!("gen_ai.tool.name={tool_name}"),
        format!("mcp.protocol.version={revision}"),
    ]);
    all.sort();
    all
}

fn port(peer: &ScriptedServer) -> String {
    let authority = peer.url.to_string();
    let port = authority.split(':').nth(2).unwrap();
    port.split('/').next().unwrap().to_owned()
}

/// OP-2, OP-3
#[tokio::test]
async fn a_call_of_a_modern_client_to_a_legacy_server() {
    shows(ClientKind::HttpModern, Era::Legacy, "odd", &[], &[]).await;
}

/// OP-3
#[tokio::test]
async fn a_failed_call_of_a_legacy_client_to_a_modern_server() {
    let failed = ["error.type=tool_error"];
    shows(
        ClientKind::HttpLegacy,
        Era::Modern,
        "fail",
        &failed,
        &failed,
    )
    .await;
}

/// OP-3
#[tokio::test]
async fn an_error_that_the_caller_made_is_one_of_the_client_span_alone() {
    let code = "rpc.response.status_code=-32602";
    let client = [code, "error.type=-32602"];
    shows(
        ClientKind::StdioModern,
        Era::Modern,
        "refuse",
        &[code],
        &client,
    )
    .await;
}

/// OP-3
#[tokio::test]
async fn what_a_client_makes_up_is_in_no_name() {
    let (collector, harness) = before(Era::Legacy).await;
    harness
        .ask_modern("example/made-up", json!({"name": "secret"}))
        .await;
    harness.ask_modern("tools/call", tool("made-up")).await;
    harness
        .ask_modern("resources/read", json!({"uri": "place:bern"}))
        .await;
    harness
        .ask_modern("prompts/get", json!({"name": "greet"}))
        .await;
    let spans = spans(&collector, &harness).await;
    let mut names: Vec<_> = spans.iter().map(|it| (it.kind, &*it.name)).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            (SERVER, "_OTHER"),
            (SERVER, "prompts/get greet"),
            (SERVER, "resources/read"),
            (SERVER, "tools/call"),
            (CLIENT, "prompts/get greet"),
            (CLIENT, "resources/read"),
        ]
    );
    let texts = format!("{spans:?}");
    assert!(
        !texts.contains("made-up") && !texts.contains("place:bern"),
        "{texts}"
    );
}

/// OP-3
#[tokio::test]
async fn a_session_is_shown_by_a_digest_of_its_id() {
    let (collector, harness) = before(Era::Legacy).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    client.ask("tools/call", tool("odd")).await;
    client.ask("ping", json!({})).await;
    let spans = spans(&collector, &harness).await;
    let session = |name: &str| only(&spans, SERVER, name).attributes["mcp.session.id"].clone();
    assert_eq!(session("tools/call odd"), session("ping"));
    assert_eq!(session("ping").len(), 32);
}

/// OP-3: the revision is the negotiated one: a client may ask for another.
#[tokio::test]
async fn initialize_shows_the_revision_of_its_session() {
    for (asked, negotiated) in [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")] {
        let (collector, harness) = before(Era::Legacy).await;
        LegacyClient::open(&harness, asked, &json!({})).await;
        let spans = spans(&collector, &harness).await;
        let span = only(&spans, SERVER, "initialize");
        assert_eq!(span.attributes["mcp.protocol.version"], negotiated);
    }
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled_in_both_spans() {
    let (collector, harness) = before(Era::Modern).await;
    drop(harness.unanswered(1).await);
    let spans = collector.take(2).await;
    for kind in [SERVER, CLIENT] {
        let span = only(&spans, kind, "tools/call wait");
        assert_eq!(span.attributes["error.type"], "cancelled");
        assert!(span.is_error);
    }
}
