//! The gateways in front of this process.

use mcp_vary_gateway::{Ancestors, CHAIN_VARIABLE, Config};

use crate::environment::variable;
use crate::failure::Failure;

/// Adds the gateways that started this process to `config`.
///
/// # Errors
///
/// When the gateway would serve itself in a circle.
pub(crate) fn with_ancestors(mut config: Config) -> Result<Config, Failure> {
    let ancestors = Ancestors::read(&variable(CHAIN_VARIABLE).unwrap_or_default());
    let checked = ancestors.check(&config.servers);
    checked.map_err(Failure::command)?;
    config.ancestors = ancestors;
    Ok(config)
}
