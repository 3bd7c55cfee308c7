//! The functions with which an author configures a server.

use std::sync::Arc;

use mcp_vary::hints::VariantHints;
use mcp_vary::variant::ServerVariant;
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

/// The default variant of a client, if the rule selects one.
pub(super) type DefaultVariantFn = Arc<dyn Fn(&Context) -> Option<String> + Send + Sync>;

/// The principal of a request; `None` for anonymous clients.
pub(super) type PrincipalFn = Arc<dyn Fn(&Context) -> Option<String> + Send + Sync>;

/// The seconds since 1970.
pub(super) type ClockFn = Arc<dyn Fn() -> u64 + Send + Sync>;
