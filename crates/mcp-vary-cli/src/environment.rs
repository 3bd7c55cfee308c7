//! The clock, randomness, variables and the path of the program, which everything else takes as arguments.

use std::path::PathBuf;
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
    random_secret()?;
    Ok(Environment::new(now, random).with_variables(variable))
}

/// Bytes for a key or token.
pub(crate) fn random_secret() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::command(format!("the system gives no randomness: {error}")))?;
    Ok(bytes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the binary reads the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The path of this program.
///
/// # Errors
///
/// When the operating system does not know it.
pub(crate) fn program_path() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe();
    path.map_err(|error| {
        Failure::command(format!("the path of this program cannot be found: {error}"))
    })
}

/// Where programs store what they remember of a user: by the XDG base directory specification, and on Windows
/// `%LOCALAPPDATA%`.
pub(crate) fn state_directory(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA");
    }
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

pub(crate) fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_stored_where_the_user_has_them() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/people/ann"));
        let relative = |name: &str| match name {
            "XDG_STATE_HOME" => Some(PathBuf::from("state")),
            name => home(name),
        };
        let usual = Some(PathBuf::from("/people/ann/.local/state"));
        assert_eq!(state_directory(&home), usual);
        assert_eq!(
            state_directory(&relative),
            usual,
            "a relative path counts as none"
        );
        let set = |name: &str| (name == "XDG_STATE_HOME").then(|| PathBuf::from("/state"));
        assert_eq!(state_directory(&set), Some(PathBuf::from("/state")));
        assert_eq!(state_directory(&|_| None), None);
    }
}
