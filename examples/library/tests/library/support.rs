//! Connects to an example's server over each transport in each era.

use std::ops::AsyncFn;

use library_examples::{connect, serve_http};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_rmcp::client::{Client, DeclaringClient, VariantClient};
use mcp_vary_rmcp::server::VaryServer;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::Value;
use tokio::net::TcpListener;

/// Runs `check` with a client that `declare` declares, over a pipe and HTTP, in both eras.
///
/// The `&str` names the transport and the era.
pub(crate) async fn in_each_way(
    server: VaryServer,
    declare: impl Fn() -> DeclaringClient<ClientConfig>,
    check: impl AsyncFn(&Client, &str),
) {
    for (legacy, era) in [(true, "legacy"), (false, "modern")] {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let served = server.clone();
        let serving = tokio::spawn(async move {
            // The client sees the end of the connection.
            if let Ok(running) = served.serve(theirs).await {
                let _ = running.waiting().await;
            }
        });
        let reached = connect(declare(), ours, legacy).await.unwrap();
        check(&reached.client, &format!("{era}, on a pipe")).await;
        drop(reached);
        serving.abort();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = tokio::spawn(serve_http(server.clone(), listener));
        let transport = StreamableHttpClientTransport::from_uri(url);
        let reached = connect(declare(), transport, legacy).await.unwrap();
        check(&reached.client, &format!("{era}, on HTTP")).await;
        drop(reached);
        serving.abort();
    }
}

/// A client with these feature tags.
pub(crate) fn tagged(tags: &[&str]) -> DeclaringClient<ClientConfig> {
    let (features, _) = Features::from_tags(tags.iter().copied());
    plain().with_features(features)
}

/// A client with these hints.
pub(crate) fn hinting(pairs: &[(&str, &str)]) -> DeclaringClient<ClientConfig> {
    let (hints, _) = VariantHints::from_pairs(pairs.iter().copied());
    plain().with_hints(hints)
}

/// A client that negotiates nothing.
pub(crate) fn plain() -> DeclaringClient<ClientConfig> {
    DeclaringClient::new(ClientConfig::default())
}

/// The server in `variant`.
pub(crate) fn view(client: &Client, variant: &str) -> VariantClient {
    client.variant(&variant.parse().unwrap()).unwrap()
}

/// The offered variants, best first.
pub(crate) fn offered(client: &Client) -> Vec<String> {
    let offers = client.offers();
    offers.iter().map(|offer| offer.id.to_string()).collect()
}

/// The names of the tools, sorted.
pub(crate) async fn tools(view: &VariantClient) -> Vec<String> {
    let tools = view.tools().await.unwrap();
    let mut names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    names.sort();
    names
}

/// Calls a tool.
pub(crate) fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

/// The result of a tool, as JSON.
pub(crate) async fn result_of(view: &VariantClient, tool: &'static str, arguments: Value) -> Value {
    let result: CallToolResult = view.call_tool(call(tool, arguments)).await.unwrap();
    serde_json::to_value(result).unwrap()
}
