//! Why a request has no response, in plain words.

use std::error::Error;
use std::io;

use mcp_vary_base::io_error;

use crate::tls_failure;

/// Why a connection failed, without the errors around the cause and the number of the system's error.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    if let Some(cause) = tls_failure::describe(error) {
        return cause;
    }
    let cause = root(error);
    match cause.downcast_ref::<io::Error>() {
        Some(error) => io_error::describe(error),
        None => cause.to_string(),
    }
}

/// Whether a connection failed since nothing listens at its address.
pub fn is_connection_refused(error: &(dyn Error + 'static)) -> bool {
    let system = root(error).downcast_ref::<io::Error>();
    system.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The system's error behind a failed connection, which contains no address.
pub fn system_cause(error: &(dyn Error + 'static)) -> Option<String> {
    let system = root(error).downcast_ref::<io::Error>()?;
    // Errors with a text of their own can name the host; those of the resolver do not.
    let is_plain = system.get_ref().is_none() || io_error::is_lookup(system);
    is_plain.then(|| io_error::describe(system))
}

/// The error that caused the others.
fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.last().unwrap_or(error)
}
