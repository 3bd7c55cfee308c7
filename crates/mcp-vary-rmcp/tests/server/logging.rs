//! What the library logs.

use crate::prelude::*;
use mcp_vary_rmcp::server::{answer, features};
use mcp_vary_testkit::captured_log::CapturedLog;
use tracing::Level;

struct Weather;

impl ServerHandler for Weather {
    async fn call_tool(&self, _: CallParams, context: Context) -> CallResult {
        let weather = answer(&json!({"celsius": 8}))?;
        Ok(features(&context).answer(&weather).into())
    }
}

/// CN-21: the declared tags, which of them were ignored and why, and what was applied; nothing for
/// clients that do not negotiate.
#[tokio::test]
async fn negotiation_is_logged() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_rmcp::server", Level::TRACE);
    for way in each(WAYS) {
        let tags = ["agent", "format=json", "format==\n"];
        let client = connect_tagged(&VaryServer::new(Weather), way, &tags).await;
        client.call("", "weather", json!({})).await;
        let lines = log.take().join("\n");
        assert!(lines.contains(r"ignored=`format==\n`: "), "{lines}");
        let said = r#"tags="agent,format=json"; applied={"format":"json"};"#;
        assert!(lines.contains(said), "{lines}");

        let client = connect(&VaryServer::new(Weather), way).await;
        client.call("", "weather", json!({})).await;
        assert_eq!(log.take(), [""; 0]);
    }
}
