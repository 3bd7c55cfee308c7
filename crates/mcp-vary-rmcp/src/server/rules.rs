//! The functions with which an author configures a server.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::ServerVariant;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_rates::{RateLimiter, SharedClock};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

/// The context of a request.
pub(super) type Context = RequestContext<RoleServer>;

/// The answer to a request.
pub(super) type McpResult<T> = Result<T, ErrorData>;

/// Ranks the visible variants of a client: their positions, best first.
pub(super) type RankFn = Arc<dyn Fn(&[&ServerVariant], &VariantHints) -> Vec<usize> + Send + Sync>;

/// Whether a client can see a variant.
pub(super) type VisibilityFn = Arc<dyn Fn(&Context, &ServerVariant) -> bool + Send + Sync>;

/// Whether a client may use a tool, prompt or resource.
pub(super) type PermissionFn = Arc<dyn Fn(&Context, &Identifier) -> bool + Send + Sync>;

/// The default variant of a client, if the rule selects one.
pub(super) type DefaultVariantFn = Arc<dyn Fn(&Context) -> Option<String> + Send + Sync>;

/// The principal of a request; `None` for anonymous clients.
pub(super) type PrincipalFn = Arc<dyn Fn(&Context) -> Option<Arc<Principal>> + Send + Sync>;

/// The address of the client that sent a request.
pub(super) type AddressFn = Arc<dyn Fn(&Context) -> Option<IpAddr> + Send + Sync>;

/// The seconds since 1970.
pub(super) type ClockFn = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The limits of a server, with what they have counted.
pub(super) type Rates = RateLimiter<PrincipalId, SharedClock>;
