//! MCP content negotiation and server variants on the official Rust SDK, [`rmcp`].
//!
//! [`VaryServer`](server::VaryServer) wraps your handlers and is a handler itself. Serve it
//! wherever rmcp serves one: on stdio and on streamable HTTP, to clients of either era.
//!
//! # Content negotiation in ten lines
//!
//! Take [`Features`](server::Features) beside `Parameters`, and return an
//! [`answer`](server::answer) in the form that this client declared. Tools that ignore features
//! answer as before, byte for byte.
//!
//! ```
//! use mcp_vary_rmcp::server::{Features, VaryServer, answer};
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
//! let server = VaryServer::new(Weather); // and `server.serve(stdio())`
//! ```
//!
//! # Variants in ten lines
//!
//! Each variant shows its own handler, or a [`View`](server::View) of a handler that other variants
//! show too.
//!
//! ```
//! use mcp_vary::variant::ServerVariant;
//! use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
//! # use rmcp::ServerHandler;
//! # struct GitHub;
//! # impl ServerHandler for GitHub {}
//!
//! let all = VariantHandler::new(GitHub);
//! let reading = View::new().with_tools(["get_issue", "search_issues"]);
//! let server = VaryServer::builder()
//!     .with_variant(ServerVariant::new("standard".parse()?, "Everything"), all.clone())
//!     .with_variant(ServerVariant::new("reading".parse()?, "Read-only tools"), all.with_view(reading))
//!     .build()?; // reports all problems at once
//! # let _ = server;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A client in ten lines
//!
//! Declare your features and hints, connect, choose a variant, and send requests in it. If the
//! server has no variants, everything works as it does without this crate.
//!
//! ```
//! use mcp_vary::feature::Features;
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary_rmcp::client::{Client, DeclaringClient, TaskContext};
//! use rmcp::ServiceExt as _;
//!
//! # async fn plan(transport: tokio::io::DuplexStream) -> Result<(), Box<dyn std::error::Error>> {
//! let (features, _) = Features::from_tags(["agent", "format=json"]);
//! let (hints, _) = VariantHints::from_pairs([("useCase", "planning")]);
//! let declaring = DeclaringClient::new(()).with_features(features).with_hints(hints);
//! let running = declaring.serve(transport).await?;
//! let client = Client::new(running.peer(), running.service()).await;
//!
//! let planning = client.choose(&TaskContext::new().with_phase("planning"));
//! println!("{}: {} tools", planning.choice(), planning.tools().await?.len());
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`server`] for servers and with [`client`] for clients.
//!
//! # Who may do what
//!
//! The library has no access rules, rate limits or audit log. Vary's gateway has them: put
//! `vary serve` in front of your server, or embed `mcp-vary-gateway` in your program.
//!
//! # Versions
//!
//! `rmcp` 3.8 or later, below 4, with its default features. Your server enables the transports that
//! it uses, such as `transport-io`. There must be one `rmcp` in your dependencies: if `cargo tree -d`
//! lists two, traits of one are not those of the other. Rust 1.95 or later.

pub mod client;
pub mod server;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
