//! What the library logs.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use mcp_vary_rmcp::server::{VaryServer, answer, features};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{WAYS, connect, connect_with, declaring};

/// Collects the events of this crate, one line each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("mcp_vary_rmcp::server")
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?}; ", field.name()).unwrap();
    }
}

struct Weather;

impl ServerHandler for Weather {
    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let weather = answer(&json!({"celsius": 8}))?;
        Ok(features(&context).answer(&weather).into())
    }
}

/// CN-21: the declared tags, which of them were ignored and why, and what was applied; nothing for
/// clients that do not negotiate.
#[tokio::test]
async fn negotiation_is_logged() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    for way in WAYS {
        let tags = ["agent", "format=json", "format==\n"];
        let client =
            connect_with(&VaryServer::new(Weather), way, declaring(&tags, json!({}))).await;
        client.call("", "weather", json!({})).await;
        let lines = std::mem::take(&mut *log.0.lock().unwrap()).join("\n");
        assert!(lines.contains(r"ignored=`format==\n`: "), "{way:?} {lines}");
        let said = r#"tags="agent,format=json"; applied={"format":"json"};"#;
        assert!(lines.contains(said), "{way:?} {lines}");

        let client = connect(&VaryServer::new(Weather), way).await;
        client.call("", "weather", json!({})).await;
        assert_eq!(log.0.lock().unwrap()[..], [""; 0], "{way:?}");
    }
}
