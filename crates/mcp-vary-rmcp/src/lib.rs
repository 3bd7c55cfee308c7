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
//! # A client in ten lines
//!
//! Declare what you are and like, connect, choose, and ask in what was chosen. A server without
//! variants offers none, and everything works as it does without this crate.
//!
//! ```
//! use mcp_vary::feature::Features;
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary_rmcp::client::{Client, Declaring, TaskContext};
//! use rmcp::ServiceExt as _;
//!
//! # async fn plan(transport: tokio::io::DuplexStream) -> Result<(), Box<dyn std::error::Error>> {
//! let (features, _) = Features::from_tags(["agent", "format=json"]);
//! let (hints, _) = VariantHints::from_pairs([("useCase", "planning")]);
//! let declaring = Declaring::new(()).with_features(features).with_hints(hints);
//! let running = declaring.serve(transport).await?;
//! let client = Client::new(running.peer(), running.service()).await;
//!
//! let planning = client.choose(&TaskContext::new().with_phase("planning"));
//! println!("{}: {} tools", planning.choice(), planning.tools().await?.len());
//! # Ok(())
//! # }
//! ```
//!
//! The rest of servers is in [`server`], that of clients in [`client`].

pub mod client;
mod limit;
pub mod server;
