//! Why a request has no response, in plain words.

use std::error::Error;

use mcp_vary_base::io_error;

use crate::tls_failure;

/// Why a connection failed, without the errors around the cause and the number of the system's error.
#[must_use]
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    if let Some(cause) = tls_failure::describe(error) {
        return cause;
    }
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => io_error::describe(error),
        None => cause.to_string(),
    }
}

/// The system's error behind a failed connection, which contains no address.
#[must_use]
pub fn system_cause(error: &(dyn Error + 'static)) -> Option<String> {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let system = causes.last()?.downcast_ref::<std::io::Error>()?;
    let cause = io_error::describe(system);
    // Errors with a text of their own can name the host; those of the resolver do not.
    (system.get_ref().is_none() || cause.contains("(DNS)")).then_some(cause)
}
