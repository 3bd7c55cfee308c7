//! The connections to servers, pooled by class: clients with the same capabilities share connections and a catalog.
//!
//! Servers may list other tools to clients with other capabilities. So a connection declares exactly the capabilities
//! of its clients, as far as the operator allows, in canonical form.
//!
//! Each folder uses those before it: [`lists`], [`connections`], [`classes`], [`dedicated`]; the pool uses all.

pub(crate) mod classes;
pub(crate) mod connections;
pub(crate) mod dedicated;
pub(crate) mod lists;
mod opener;
mod upstream_pool;

pub(crate) use self::classes::access;
pub(crate) use self::classes::class::{CapabilityClass, ConnectionUse};
pub(crate) use self::connections::client_declarations;
pub use self::connections::eviction::ConnectionStatus;
pub(crate) use self::lists::observer::PoolContext;
pub(crate) use self::lists::source;
pub(crate) use self::upstream_pool::{PoolConfig, PoolServices, UpstreamPool};
