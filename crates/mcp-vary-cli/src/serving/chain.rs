//! The gateways in front of this process.

use mcp_vary_gateway::{Ancestors, CHAIN_VARIABLE, Config};

use crate::failure::Failure;

/// Adds the gateways that started this process to `config`.
///
/// # Errors
///
/// When the gateway would serve itself in a circle.
pub(crate) fn with_ancestors(mut config: Config) -> Result<Config, Failure> {
    let ancestors = Ancestors::read(&variable());
    let checked = ancestors.check(&config.servers);
    checked.map_err(Failure::command)?;
    config.ancestors = ancestors;
    Ok(config)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a gateway passes the gateways in front of it to the processes that it starts"
)]
fn variable() -> String {
    std::env::var(CHAIN_VARIABLE).unwrap_or_default()
}
