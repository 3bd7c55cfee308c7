//! The gateways in front of this process.

use mcp_vary_gateway::{Ancestors, CHAIN_VARIABLE, Config};

use crate::failure::Failure;

/// The configuration of a gateway behind those that started this process.
///
/// # Errors
///
/// When it would serve itself in a circle.
pub(crate) fn with_ancestors(mut config: Config) -> Result<Config, Failure> {
    let ancestors = Ancestors::read(&variable());
    let checked = ancestors.check(&config.servers);
    checked.map_err(Failure::command)?;
    config.ancestors = ancestors;
    Ok(config)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a gateway says in it to the processes that it starts which gateways are in front of them"
)]
fn variable() -> String {
    std::env::var(CHAIN_VARIABLE).unwrap_or_default()
}
