//! The functions with which an author configures a server.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::ServerVariant;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_rates::{RateLimiter, SharedClock};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// Ranks the visible variants of a client: their positions, best first.
pub(super) type RankFn = Arc<dyn Fn(&[&ServerVariant], &VariantHints) -> Vec<usize> + Send + Sync>;

/// Whether a client can see a variant.
pub(super) type VisibilityFn =
    Arc<dyn Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync>;

/// Whether a client may use a tool, prompt or resource.
pub(super) type PermissionFn =
    Arc<dyn Fn(&RequestContext<RoleServer>, &Identifier) -> bool + Send + Sync>;

/// The default variant of a client, if the rule selects one.
pub(super) type DefaultVariantFn =
    Arc<dyn Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync>;

/// The principal of a request; `None` for anonymous clients.
pub(super) type PrincipalFn =
    Arc<dyn Fn(&RequestContext<RoleServer>) -> Option<Arc<Principal>> + Send + Sync>;

/// The address of the client that sent a request.
pub(super) type AddressFn =
    Arc<dyn Fn(&RequestContext<RoleServer>) -> Option<IpAddr> + Send + Sync>;

/// The seconds since 1970.
pub(super) type ClockFn = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The limits of a server, with what they have counted.
pub(super) type Rates = RateLimiter<PrincipalId, SharedClock>;
