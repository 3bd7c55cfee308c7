//! Errors of the operating system as a person reads them.

use std::fs::Metadata;
use std::io::{Error, ErrorKind};
use std::path::Path;

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
    let message = error.to_string();
    let text = message
        .split_once(" (os error ")
        .map_or(&*message, |(text, _)| text);
    match text.strip_prefix(LOOKUP) {
        Some("Name or service not known") => "there is no host of this name (DNS)".to_owned(),
        Some(reason) => format!("the name of the host cannot be looked up (DNS): {reason}"),
        None => text.to_owned(),
    }
}

/// What went wrong at `path`. If its folder is missing: which; if access was denied: what denies it, whose it is, and as whom this process runs.
#[must_use]
pub fn describe_at(path: &Path, error: &Error) -> String {
    let why = describe(error);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().filter(|folder| !folder.exists());
    let is_missing = error.kind() == ErrorKind::NotFound;
    if is_missing && let Some(folder) = folder {
        let folder = folder.display();
        return format!("the folder {folder} does not exist; create it, or correct the path");
    }
    if error.kind() != ErrorKind::PermissionDenied {
        return why;
    }
    let mut places = absolute.ancestors();
    let place = places.find_map(|place| Some((place, place.metadata().ok()?)));
    place.map_or(why.clone(), |(place, metadata)| {
        // The mode of a folder that other users have as well is not to be changed.
        let is_near = place == absolute || absolute.parent() == Some(place);
        let mode = if is_near && place.parent().is_some() {
            ", or change its mode"
        } else {
            ""
        };
        let shown = place.display();
        if denies_its_owner(&metadata) {
            return format!(
                "{why}: {shown} is yours, and its mode denies it; type: chmod u+rwX '{shown}'"
            );
        }
        format!(
            "{why}: {shown} {}; run Vary as its owner{mode}",
            owner(&metadata)
        )
    })
}

/// Whether a file belongs to the user of this process and its mode is what denies something. Root is denied nothing by it.
#[cfg(unix)]
fn denies_its_owner(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid();
    !user.is_root() && metadata.uid() == user.as_raw() && is_closed_to_owner(metadata)
}

/// Whether the owner lacks a right by the mode.
#[cfg(unix)]
fn is_closed_to_owner(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let all = if metadata.is_dir() { 0o700 } else { 0o600 };
    metadata.mode() & all != all
}

/// There are no owners on this system.
#[cfg(not(unix))]
const fn denies_its_owner(_: &Metadata) -> bool {
    false
}

/// Whose a file is, its mode, and as whom this process runs: `belongs to root (mode 755), and Vary runs as ann`.
#[cfg(unix)]
#[must_use]
pub fn owner(metadata: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = |id: u32| {
        let mut lines = users.lines().map(|line| line.split(':'));
        let is_it =
            |fields: &std::str::Split<'_, char>| fields.clone().nth(2) == Some(&*id.to_string());
        let name = lines.find(is_it).and_then(|mut fields| fields.next());
        name.map_or_else(|| format!("user {id}"), str::to_owned)
    };
    let owner = named(metadata.uid());
    let mode = metadata.mode() & 0o7777;
    let runner = named(rustix::process::geteuid().as_raw());
    format!("belongs to {owner} (mode {mode:o}), and Vary runs as {runner}")
}

/// There are no owners on this system.
#[cfg(not(unix))]
#[must_use]
pub fn owner(_: &Metadata) -> String {
    "is protected".to_owned()
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

    #[cfg(unix)]
    #[test]
    fn a_mode_denies_its_owner_what_it_lacks() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("vary-modes-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, "").unwrap();
        for (path, mode, is_closed) in [
            (&file, 0o400, true),
            (&file, 0o600, false),
            (&folder, 0o555, true),
            (&folder, 0o755, false),
        ] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            let metadata = path.metadata().unwrap();
            assert_eq!(is_closed_to_owner(&metadata), is_closed, "{mode:o}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The tests may run as root, to whom nothing is denied; so the error is made here.
    #[cfg(unix)]
    #[test]
    fn where_access_is_denied_the_owner_and_the_user_are_named() {
        let denied = Error::from(ErrorKind::PermissionDenied);
        let place = Path::new(env!("CARGO_MANIFEST_DIR"));
        let shown = place.display();
        for path in [place.to_owned(), place.join("none/audit.jsonl")] {
            let why = describe_at(&path, &denied);
            assert!(
                why.starts_with(&format!("permission denied: {shown} belongs to ")),
                "{why}"
            );
            for part in [" (mode ", "), and Vary runs as ", "; run Vary as its owner"] {
                assert!(why.contains(part), "{why}");
            }
            // A folder further above may be everybody's.
            assert_eq!(
                why.ends_with(", or change its mode"),
                path == place,
                "{why}"
            );
        }
        let top = describe_at(Path::new("/none"), &denied);
        assert!(top.ends_with("; run Vary as its owner"), "{top}");
        let root = owner(&Path::new("/").metadata().unwrap());
        assert!(root.starts_with("belongs to root (mode "), "{root}");
        let missing = Error::from(ErrorKind::NotFound);
        assert_eq!(describe_at(place, &missing), describe(&missing));
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
