//! The clock and randomness, which everything else takes as arguments.

use std::time::UNIX_EPOCH;

use mcp_vary::variant::Date;
use mcp_vary_gateway::Environment;

use crate::failure::Failure;

/// The clock and the randomness of this machine.
///
/// # Errors
///
/// When the operating system provides no randomness: without it, sessions could be forged.
pub(crate) fn environment() -> Result<Environment, Failure> {
    getrandom::fill(&mut [0; 16])
        .map_err(|error| Failure::command(format!("the system gives no randomness: {error}")))?;
    Ok(Environment::new(now, random).with_variables(variable))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment names the proxies"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The day in UTC.
pub(crate) fn today() -> Date {
    Date::from_unix(now())
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the clock")]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Microseconds since 1970-01-01 UTC, for the audit log.
#[expect(clippy::disallowed_methods, reason = "the binary reads the clock")]
pub(crate) fn now_in_microseconds() -> u64 {
    let elapsed = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    let microseconds = elapsed.map_or(0, |elapsed| elapsed.as_micros());
    u64::try_from(microseconds).unwrap_or(u64::MAX)
}

fn random(bytes: &mut [u8]) {
    // It worked at the start. With predictable bytes, sessions could be forged.
    getrandom::fill(bytes).expect("the system gives randomness");
}
