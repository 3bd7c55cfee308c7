//! MCP content negotiation and server variants in front of servers that do not know them.
//!
//! A [`Gateway`] connects to servers, reads what they offer and serves any number of clients over
//! streamable HTTP or stdio. Messages are carried as bytes; only what the two extensions, the eras
//! and the transports ask for is touched.
//!
//! # Serve one server
//!
//! The gateway reads neither a clock nor randomness; the [`Environment`] has both.
//!
//! ```no_run
//! use mcp_vary_gateway::{Config, Environment, Gateway, Target, UpstreamConfig};
//! use tokio::net::TcpListener;
//!
//! # async fn serve(environment: Environment) -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::command("npx", ["-y", "@modelcontextprotocol/server-everything"].map(String::from));
//! let config = Config::new(UpstreamConfig::new("everything", target), environment);
//! let gateway = Gateway::start(config).await?;
//! let listener = TcpListener::bind("127.0.0.1:8800").await?;
//! gateway.serve_http(listener, std::future::pending()).await?;
//! gateway.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Offer your own variants
//!
//! Without this, clients get `standard`, `compact`, `directory` and `read-only`.
//!
//! ```
//! use mcp_vary::variant::ServerVariant;
//! use mcp_vary_gateway::{Base, Config, VariantConfig};
//!
//! fn with_reviewer(config: Config) -> Result<Config, Box<dyn std::error::Error>> {
//!     let everything = ServerVariant::new("everything".parse()?, "All tools");
//!     let reviewer = ServerVariant::new("reviewer".parse()?, "Tools that only read");
//!     Ok(config.with_variants_of(vec![
//!         VariantConfig::new(everything),
//!         VariantConfig::new(reviewer).with_base(Base::ReadOnly),
//!     ])?)
//! }
//! ```
//!
//! # Change the configuration while clients are served
//!
//! Servers and variants that are the same keep their connections and sessions.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_vary_gateway::{Config, Gateway, ReloadError};
//!
//! async fn replace(gateway: &Arc<Gateway>, config: Config) -> Result<(), ReloadError> {
//!     let changes = gateway.reload(config).await?;
//!     tracing::info!("{changes}");
//!     Ok(())
//! }
//! ```
//!
//! # Read the configuration from a file
//!
//! ```
//! use mcp_vary_config::{Diagnostics, Source};
//! use mcp_vary_gateway::{Config, Environment};
//!
//! fn configure(text: &str, environment: Environment) -> Result<Config, Diagnostics> {
//!     // Nothing but the text is read: the closure decides what `${VARIABLE}` is.
//!     let file = Source::new("vary.yaml", text).read(&|_variable| None)?;
//!     Ok(file.into_config(environment))
//! }
//! ```
//!
//! `examples/embed.rs` is a whole program.

mod explain_client;
mod frontend;
mod gateway;
mod listed_tools;
mod mrtr;
mod pipeline;
mod pool;
mod readings;
mod reload;
mod report;
mod status;
mod subscriptions;
mod tasks;

pub use crate::explain_client::{
    ClientCall, ClientDescription, ClientExplanation, ClientResponse, ExplainedStep, ExplainedTool,
    HiddenTool,
};
pub use gateway::Gateway;
pub use listed_tools::VariantTools;
pub use mcp_vary_audit::AuditStats;
pub use mcp_vary_base::environment::Environment;
pub use mcp_vary_catalog::catalog::COLLISION_TARGET;
pub use mcp_vary_catalog::hidden_tools::HiddenReason;
pub use mcp_vary_catalog::merge::{Collision, Naming};
pub use mcp_vary_catalog::selection::client_rule::{ClientPattern, ClientRule, JsonContent};
pub use mcp_vary_catalog::selection::known_clients::{KNOWN_CLIENTS, KnownClient};
pub use mcp_vary_catalog::selection::rankings::Explanation;
pub use mcp_vary_catalog::selection::variant_selection::SelectionConfig;
pub use mcp_vary_catalog::server_changes::{ChangeSubject, SeenChange, ServerChange};
pub use mcp_vary_catalog::tool_listing::VariantTool;
pub use mcp_vary_catalog::variant_config::{Base, VariantConfig};
pub use mcp_vary_observation::failed_calls::{FailedCalls, Failure};
pub use mcp_vary_observation::finished_call::{
    CallSource, CallTarget, FinishedCall, WatchedClient,
};
pub use mcp_vary_observation::people::PersonUse;
pub use mcp_vary_observation::refused_credentials::RefusedCredentialsStatus;
pub use mcp_vary_observation::request_feed::{RequestWatch, WatchEvent};
pub use mcp_vary_observation::savings::{ClientSaving, Cost, SavingsStatus};
pub use mcp_vary_session::authentication::try_token;
pub use mcp_vary_session::client_uses::ClientUse;
pub use mcp_vary_session::deprecation::DeprecatedUse;
pub use mcp_vary_session::directory_uses::DirectoryUse;
pub use mcp_vary_settings as settings;
pub use mcp_vary_settings::config::Config;
pub use mcp_vary_settings::limits::Limits;
pub use mcp_vary_upstream::chain::{Ancestors, ENV_VAR as CHAIN_VARIABLE};
pub use mcp_vary_upstream::{ConnectError, Target, UpstreamConfig};
pub use mcp_vary_wire::client_name::ClientName;
pub use mcp_vary_wire::headers::call_headers;
pub use pipeline::model_ranking::ModelRankingStatus;
pub use pipeline::router::accepts_params;
pub use pool::ConnectionStatus;
pub use reload::{Changes, ReloadError, Reloaded};
pub use report::{ServedItem, ServerReport, UndecidedExtension};
pub use status::{CallStatus, ExperimentStatus, ServerStatus, Status, VariantStatus};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
