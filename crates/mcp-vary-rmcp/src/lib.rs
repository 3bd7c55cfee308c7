//! MCP content negotiation and server variants on the official Rust SDK, [`rmcp`].
//!
//! [`Vary`](server::Vary) is a handler in front of your handlers. Serve it wherever rmcp serves one:
//! on stdio and on streamable HTTP, to clients of either era.
//!
//! # Content negotiation in ten lines
//!
//! Take [`Features`](server::Features) beside `Parameters`, and say an [`answer`](server::answer)
//! the way this client wants it. A tool that does not care answers as before, byte for byte.
//!
//! ```
//! use mcp_vary_rmcp::server::{Features, Vary, answer};
//! # use rmcp::model::CallToolResult;
//! # use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
//! # use serde_json::json;
//! # struct Weather;
//!
//! #[tool_router]
//! impl Weather {
//!     #[tool(description = "The weather in Paris")]
//!     async fn weather(&self, features: Features) -> Result<CallToolResult, ErrorData> {
//!         let weather = answer(&json!({"celsius": 8}))?.with_markdown("**8 °C**");
//!         Ok(features.answer(&weather))
//!     }
//! }
//! # #[tool_handler]
//! # impl ServerHandler for Weather {}
//!
//! let server = Vary::new(Weather); // and `server.serve(stdio())`
//! ```
//!
//! # Variants in ten lines
//!
//! A variant shows a handler of its own, or a [`View`](server::View) of one that others show too.
//!
//! ```
//! use mcp_vary::variant::ServerVariant;
//! use mcp_vary_rmcp::server::{Face, Vary, View};
//! # use rmcp::ServerHandler;
//! # struct GitHub;
//! # impl ServerHandler for GitHub {}
//!
//! let all = Face::new(GitHub);
//! let reading = View::new().with_tools(["get_issue", "search_issues"]);
//! let server = Vary::builder()
//!     .with_variant(ServerVariant::new("standard".parse()?, "Everything"), all.clone())
//!     .with_variant(ServerVariant::new("reading".parse()?, "Only looks"), all.with_view(reading))
//!     .build()?; // every mistake at once
//! # let _ = server;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Servers: [`server`]. Clients: [`client`].

pub mod client;
mod limit;
pub mod server;
