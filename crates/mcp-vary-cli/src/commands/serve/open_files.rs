//! The limit of open files, which is often 1,024 although the system allows more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

/// Raises the limit of open files of this process and of the servers that it starts: a connection to a program takes
/// four, and each client one.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(MOST, |most| most.min(MOST));
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        debug!(%error, wanted, "the limit of open files was not raised");
    }
}

/// More than the limits of Vary need. Some programs close each possible file when they start.
const MOST: u64 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_as_far_as_the_system_allows() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let current = Some(600);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        raise_limit();
        let wanted = maximum.map_or(MOST, |most| most.min(MOST));
        assert_eq!(getrlimit(Resource::Nofile).current, Some(wanted));
    }
}
