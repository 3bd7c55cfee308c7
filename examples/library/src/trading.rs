//! A trading desk with three generations of its API, side by side while its clients migrate.
//!
//! The stable generation is the default. The preview is the default of clients with the hints
//! `"status": "experimental"` and `"com.acme/apiGeneration": "v3"`, and any client can select it.
//! The legacy generation has its own handlers, works as before, and tells clients which variant to
//! move to and by when.
//!
//! Try it, and send `tools/list` with each of the three as selector. After the removal date the
//! server prints a warning when it starts, and still serves the legacy generation:
//!
//! ```text
//! cargo run -p library-examples --bin trading -- --http 127.0.0.1:8000
//! ```

use std::io::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{ExampleError, serve};
use mcp_vary::rank::Weights;
use mcp_vary::variant::{Date, DeprecationInfo, ServerVariant, Status};
use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::JsonSchema;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program reads the clock for its libraries"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let server = server(Date::from_unix(now.as_secs()))?;
    for warning in server.warnings() {
        // Standard output may be the MCP connection.
        writeln!(io::stderr(), "{warning}")?;
    }
    serve(server).await
}

/// The server as of the day `today`.
pub fn server(today: Date) -> Result<VaryServer, ExampleError> {
    let stable = ServerVariant::new(
        "v2-stable".parse()?,
        "Current stable API (v2). Recommended for production use. Uses structured responses with typed error codes.",
    )
    .with_hint("com.acme/apiGeneration", "v2")
    .with_hint("contextSize", "standard");
    let preview = ServerVariant::new(
        "v3-preview".parse()?,
        "Next-generation API (v3 preview). Includes batch operations. Schema may change before GA.",
    )
    .with_hint("com.acme/apiGeneration", "v3")
    .with_hint("contextSize", "standard")
    .with_status(Status::Experimental);
    let mut moving =
        DeprecationInfo::new("v1 API will be removed on 2027-06-01. Please migrate to v2-stable.");
    moving.replacement = Some("v2-stable".parse()?);
    moving.removal_date = Some("2027-06-01".to_owned());
    let legacy = ServerVariant::new(
        "v1-legacy".parse()?,
        "Legacy API (v1). Maintained for backward compatibility only. Uses string error codes. Migrate to v2 before 2027-06-01.",
    )
    .with_hint("com.acme/apiGeneration", "v1")
    .with_hint("contextSize", "compact")
    .deprecated(moving);
    let desk = VariantHandler::new(Desk);
    let server = VaryServer::builder()
        .with_variant(
            stable,
            desk.clone()
                .with_view(View::new().with_tools(["place_order"])),
        )
        .with_variant(preview, desk)
        .with_variant(legacy, LegacyDesk)
        // The default weights do not include this hint.
        .with_weights(Weights::default().with("com.acme/apiGeneration", 60, 10))
        .with_today(today)
        .build()?;
    Ok(server)
}

/// The second generation and the third, which has more tools.
struct Desk;

#[tool_router]
impl Desk {
    /// Places an order.
    #[tool]
    fn place_order(&self, Parameters(order): Parameters<Order>) -> CallToolResult {
        match order.quantity {
            0 => CallToolResult::structured_error(
                json!({"code": 1001, "error": "the quantity is 0"}),
            ),
            _ => CallToolResult::structured(json!({"placed": [order]})),
        }
    }

    /// Places all orders or none.
    #[tool]
    fn place_orders(&self, Parameters(batch): Parameters<Batch>) -> CallToolResult {
        match batch.orders.iter().position(|order| order.quantity == 0) {
            Some(at) => CallToolResult::structured_error(json!({"code": 1001, "order": at})),
            None => CallToolResult::structured(json!({"placed": batch.orders})),
        }
    }
}

#[tool_handler]
impl ServerHandler for Desk {}

/// The first generation, unchanged.
struct LegacyDesk;

#[tool_router]
impl LegacyDesk {
    /// Trades.
    #[tool]
    fn trade(&self, Parameters(order): Parameters<Order>) -> CallToolResult {
        match order.quantity {
            0 => CallToolResult::error(vec![ContentBlock::text("E_QUANTITY")]),
            _ => CallToolResult::success(vec![ContentBlock::text("OK")]),
        }
    }
}

#[tool_handler]
impl ServerHandler for LegacyDesk {}

#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Order {
    /// What to buy
    symbol: String,
    /// How many
    quantity: u32,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Batch {
    /// In the order in which they are placed
    orders: Vec<Order>,
}
