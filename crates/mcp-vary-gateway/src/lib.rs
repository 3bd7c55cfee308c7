//! MCP content negotiation and server variants in front of servers that do not know them.
//!
//! A [`Gateway`] connects to servers, reads what they offer and serves any number of clients over
//! streamable HTTP or stdio. Messages are carried as bytes; only what the two extensions, the eras
//! and the transports ask for is touched.

mod audit;
mod authentication;
mod frontend;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod mrtr;
mod pipeline;
mod pool;
mod reload;
mod report;
mod session;
pub mod settings;
mod status;
mod subscriptions;
mod tasks;

pub use crate::session::deprecation::DeprecatedUse;
pub use crate::session::directory_uses::DirectoryUse;
pub use crate::settings::config::Config;
pub use crate::settings::limits::Limits;
pub use gateway::Gateway;
pub use mcp_vary_base::environment::Environment;
pub use mcp_vary_catalog::merge::{Collision, Naming};
pub use mcp_vary_catalog::selection::client_rule::{ClientPattern, ClientRule, JsonContent};
pub use mcp_vary_catalog::selection::known_clients::{KNOWN_CLIENTS, KnownClient};
pub use mcp_vary_catalog::selection::rankings::Explanation;
pub use mcp_vary_catalog::selection::variant_selection::SelectionConfig;
pub use mcp_vary_catalog::variant_config::{Base, VariantConfig};
pub use mcp_vary_upstream::chain::{Ancestors, ENV_VAR as CHAIN_VARIABLE};
pub use mcp_vary_upstream::{ConnectError, Target, UpstreamConfig};
pub use mcp_vary_wire::client_name::ClientName;
pub use mcp_vary_wire::headers::call_headers;
pub use reload::{Changes, ReloadError, Reloaded};
pub use report::{ServedItem, ServerReport};
pub use status::{AuditStatus, ExperimentStatus, ServerStatus, Status, VariantStatus};
