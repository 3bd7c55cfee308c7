//! MCP content negotiation and server variants in front of servers that do not know them.
//!
//! A [`Gateway`] connects to servers, reads what they offer and serves any number of clients over
//! streamable HTTP or stdio. Messages are carried as bytes; only what the two extensions, the eras
//! and the transports ask for is touched.

mod call;
pub mod catalog;
mod choose;
mod class;
mod client;
pub mod config;
mod deprecation;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod handshake;
mod kept;
mod known;
mod lasting;
mod links;
mod member_check;
mod memory;
mod negotiated;
mod notify;
mod own;
mod questions;
mod rankings;
mod reload;
mod report;
mod rest;
mod results;
mod resume;
mod rounds;
mod route;
mod rules;
mod running;
mod selection;
mod session;
mod setup;
mod shape;
mod status;
mod tasks;
mod telling;
mod uris;
mod words;

pub use catalog::face::{Base, VariantConfig};
pub use catalog::merge::{Collision, Naming};
pub use choose::Choosing;
pub use config::{Config, Limits};
pub use deprecation::DeprecatedUse;
pub use gateway::Gateway;
pub use known::{KNOWN_CLIENTS, KnownClient};
pub use mcp_vary_base::environment::Outside;
pub use mcp_vary_upstream::chain::{Ancestors, VARIABLE as CHAIN_VARIABLE};
pub use mcp_vary_upstream::{ConnectError, Target, UpstreamConfig};
pub use mcp_vary_wire::client_name::ClientName;
pub use mcp_vary_wire::headers::call_headers;
pub use rankings::Explanation;
pub use reload::{Changes, ReloadError, Reloaded};
pub use report::{Served, ServerReport};
pub use rules::{ClientRule, JsonContent, Pattern};
pub use status::{ServerStatus, Status, VariantStatus};
