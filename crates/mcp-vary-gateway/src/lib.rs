//! MCP content negotiation and server variants in front of servers that do not know them.
//!
//! A [`Gateway`] connects to servers, reads what they offer and serves any number of clients over
//! streamable HTTP or stdio. Messages are carried as bytes; only what the two extensions, the eras
//! and the transports ask for is touched.

mod asking;
mod bridge;
mod call;
pub mod catalog;
mod chain;
mod choose;
mod class;
mod client;
pub mod config;
mod counters;
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
mod log_backoff;
mod log_level;
mod mcp_header;
mod member_check;
mod memory;
mod meta;
mod negotiated;
mod notify;
mod own;
mod params;
mod questions;
mod rankings;
mod reload;
mod reply;
mod report;
mod rest;
mod results;
mod resume;
pub mod revision;
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
pub mod upstream;
mod uris;
pub mod wire;
mod words;

pub use catalog::face::{Base, VariantConfig};
pub use catalog::merge::{Collision, Naming};
pub use chain::{Ancestors, VARIABLE as CHAIN_VARIABLE};
pub use choose::Choosing;
pub use config::{Config, Limits, Outside};
pub use deprecation::{ClientName, DeprecatedUse};
pub use gateway::Gateway;
pub use known::{KNOWN_CLIENTS, KnownClient};
pub use mcp_header::call_headers;
pub use rankings::Explanation;
pub use reload::{Changes, ReloadError, Reloaded};
pub use report::{Served, ServerReport};
pub use rules::{ClientRule, JsonContent, Pattern};
pub use status::{ServerStatus, Status, VariantStatus};
pub use upstream::{ConnectError, Target, UpstreamConfig};
