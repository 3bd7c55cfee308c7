//! The server with the gateway in front of it, in one program.

use library_examples::embedded::configure;
use mcp_vary_gateway::Gateway;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::call;

/// The key of `ci`, whose digest the example has.
const KEY: &str = "vary_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

async fn client(url: &str, key: Option<&str>, legacy: bool) -> RunningService<RoleClient, ()> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.auth_header = key.map(str::to_owned);
    let lifecycle = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    };
    let transport = StreamableHttpClientTransport::from_config(config);
    ().serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

/// The error that answers a call.
async fn refusal(client: &RunningService<RoleClient, ()>, call: CallToolRequestParams) -> String {
    let refused = client.call_tool(call).await.unwrap_err();
    format!("{refused:?}")
}

#[tokio::test]
async fn everybody_reads_and_who_has_the_key_also_writes_as_often_as_the_limit_allows() {
    for legacy in [true, false] {
        let gateway = Gateway::start(configure().unwrap()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = gateway.clone();
        tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });

        let editor = client(&url, Some(KEY), legacy).await;
        let tools = editor.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 2);
        let write = || call("add_note", json!({"text": "milk"}));
        let written = editor.call_tool(write()).await.unwrap();
        let text = written.content[0].as_text().unwrap();
        assert_eq!(text.text, "there are 1 notes");

        let reader = client(&url, None, legacy).await;
        let tools = reader.list_all_tools().await.unwrap();
        assert_eq!((tools.len(), &*tools[0].name), (1, "list_notes"));
        let unknown = refusal(&reader, write()).await;
        assert!(unknown.contains("Unknown tool: add_note"), "{unknown}");
        let list = || call("list_notes", json!({}));
        for _ in 0..3 {
            let read = reader.call_tool(list()).await.unwrap();
            assert_eq!(read.content[0].as_text().unwrap().text, "milk");
        }
        let limited = refusal(&reader, list()).await;
        assert!(limited.contains("status: 429"), "{limited}");
        gateway.close().await;
    }
}
