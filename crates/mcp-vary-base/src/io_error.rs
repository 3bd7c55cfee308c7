//! Errors of the operating system as a person reads them.

use std::io::{Error, ErrorKind};

/// What went wrong, without the number of the system's error.
///
/// # Examples
///
/// ```
/// use mcp_vary_base::io_error;
///
/// let error = std::fs::read("no-such-file").unwrap_err();
/// assert_eq!(io_error::describe(&error), "there is no such file or directory");
/// ```
#[must_use]
pub fn describe(error: &Error) -> String {
    // An error with a text of its own says what happened.
    if error.get_ref().is_none() {
        let known = KNOWN.iter().find(|(kind, _)| *kind == error.kind());
        if let Some((_, text)) = known {
            return (*text).to_owned();
        }
    }
    let text = error.to_string();
    let text = text
        .split_once(" (os error ")
        .map_or(&*text, |(text, _)| text);
    match text.strip_prefix(LOOKUP) {
        Some("Name or service not known") => "there is no host of this name (DNS)".to_owned(),
        Some(reason) => format!("the name of the host cannot be looked up (DNS): {reason}"),
        None => text.to_owned(),
    }
}

/// How the standard library begins errors of the resolver.
const LOOKUP: &str = "failed to lookup address information: ";

const KNOWN: &[(ErrorKind, &str)] = &[
    (ErrorKind::NotFound, "there is no such file or directory"),
    (ErrorKind::PermissionDenied, "permission denied"),
    (ErrorKind::IsADirectory, "it is a directory, not a file"),
    (
        ErrorKind::NotADirectory,
        "a part of the path is not a directory",
    ),
    (ErrorKind::InvalidData, "it is not valid UTF-8"),
    (ErrorKind::FileTooLarge, "it is too large"),
    (ErrorKind::StorageFull, "the disk is full"),
    (
        ErrorKind::ReadOnlyFilesystem,
        "the file system is read-only",
    ),
    (ErrorKind::ConnectionRefused, "connection refused"),
    (ErrorKind::AddrInUse, "the address is in use"),
    (
        ErrorKind::AddrNotAvailable,
        "this machine does not have the address",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(error: &Error, expected: &str) {
        assert_eq!(describe(error), expected);
    }

    #[test]
    fn an_error_of_the_system_has_words_and_no_number() {
        for (code, expected) in [
            (2, "there is no such file or directory"),
            (13, "permission denied"),
            (21, "it is a directory, not a file"),
            (28, "the disk is full"),
        ] {
            reads(&Error::from_raw_os_error(code), expected);
        }
        let other = describe(&Error::from_raw_os_error(40));
        assert!(!other.is_empty() && !other.contains("os error"), "{other}");
    }

    #[test]
    fn an_error_with_a_text_of_its_own_keeps_it() {
        reads(
            &Error::new(ErrorKind::NotFound, "its directory does not exist"),
            "its directory does not exist",
        );
        for (reason, expected) in [
            (
                "Name or service not known",
                "there is no host of this name (DNS)",
            ),
            (
                "Temporary failure in name resolution",
                "the name of the host cannot be looked up (DNS): Temporary failure in name resolution",
            ),
        ] {
            reads(&Error::other(format!("{LOOKUP}{reason}")), expected);
        }
        let not_text = std::io::read_to_string(&[0xff_u8][..]).unwrap_err();
        reads(&not_text, "it is not valid UTF-8");
    }
}
