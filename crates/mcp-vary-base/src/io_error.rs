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
/// assert_eq!(io_error::describe(&error), "no such file or directory");
/// ```
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
        Some("Name or service not known") => "no host has this name (DNS)".to_owned(),
        Some(reason) => format!("the name of the host cannot be looked up (DNS): {reason}"),
        None => text.to_owned(),
    }
}

/// Whether a host name could not be resolved. The text of such an error does not contain the name.
pub fn is_lookup(error: &Error) -> bool {
    error.to_string().starts_with(LOOKUP)
}

/// Why `path` cannot be read. Names the folder that is missing, or, if access was denied, what denies it, its owner, the
/// user of this process, and what to do.
pub fn describe_at(path: &Path, error: &Error) -> String {
    describe_access(path, error, false)
}

/// What went wrong when `path` was written, as [`describe_at`] has it.
pub fn describe_writing_at(path: &Path, error: &Error) -> String {
    describe_access(path, error, true)
}

fn describe_access(path: &Path, error: &Error, is_writing: bool) -> String {
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
        let shown = place.display();
        if denies_its_owner(&metadata) {
            return format!(
                "{why}: {shown} is yours, and its mode denies it; type: chmod u+rwX '{shown}'"
            );
        }
        let users = Users::of(&metadata);
        let denial = Denial {
            place,
            is_directory: metadata.is_dir(),
            // The mode of a folder that other users have as well is not to be changed.
            is_near: place == absolute || absolute.parent() == Some(place),
            is_writing,
            is_in_folder_of_runner: place.parent().is_some_and(is_of_this_user),
        };
        let owner = users.describe_owner(&metadata);
        format!("{why}: {shown} {owner}{}", denial.fix(&users))
    })
}

/// A place that denies access, and belongs to another user.
struct Denial<'a> {
    place: &'a Path,
    is_directory: bool,
    /// Whether it is what is accessed, or the folder of that.
    is_near: bool,
    is_writing: bool,
    /// Whether the folder that it is in belongs to the user of this process.
    is_in_folder_of_runner: bool,
}

impl Denial<'_> {
    fn is_hidden(&self) -> bool {
        let name = self.place.file_name();
        name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    }

    /// What to do, after a semicolon.
    fn fix(&self, users: &Users) -> String {
        let shown = self.place.display();
        let runner = &users.runner;
        // `chown` takes a number, too.
        let user = runner.strip_prefix(UNNAMED).unwrap_or(runner);
        if users.owner != ROOT {
            let mode = if self.is_near && self.place.parent().is_some() {
                ", or change its mode"
            } else {
                ""
            };
            return format!("; run Vary as its owner{mode}");
        }
        if runner == ROOT {
            return String::new();
        }
        match (self.is_in_folder_of_runner, self.is_directory) {
            (true, false) => format!("; type: sudo chown {user} '{shown}'"),
            (true, true) => format!("; type: sudo chown -R {user} '{shown}'"),
            // A program has one hidden folder for its settings, so another folder would not help.
            (false, true) if self.is_writing && self.is_hidden() => {
                format!("; type: sudo chown -R {user} '{shown}'")
            }
            // The owner of a file elsewhere, such as a private key of the administrator, should stay.
            (false, _) if !self.is_writing => {
                format!("; name a file that the user `{user}` may read")
            }
            (false, false) => format!("; name a file that the user `{user}` may write"),
            (false, true) => {
                let new = self.place.join("vary");
                let new = new.display();
                format!("; name a folder of yours, or make one: sudo install -d -o {user} '{new}'")
            }
        }
    }
}

/// Whose a file is, and as whom this process runs.
struct Users {
    owner: String,
    runner: String,
}

#[cfg(unix)]
impl Users {
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let named = |id: u32| {
            let mut lines = users.lines().map(|line| line.split(':'));
            let is_it = |fields: &std::str::Split<'_, char>| {
                fields.clone().nth(2) == Some(&*id.to_string())
            };
            let name = lines.find(is_it).and_then(|mut fields| fields.next());
            name.map_or_else(|| format!("{UNNAMED}{id}"), str::to_owned)
        };
        Self {
            owner: named(metadata.uid()),
            runner: named(rustix::process::geteuid().as_raw()),
        }
    }

    /// The owner and mode of the file, and the user of this process: `belongs to root (mode 755), and Vary runs as
    /// ann`.
    fn describe_owner(&self, metadata: &Metadata) -> String {
        use std::os::unix::fs::MetadataExt as _;
        let Self { owner, runner } = self;
        let mode = metadata.mode() & 0o7777;
        format!("belongs to {owner} (mode {mode:o}), and Vary runs as {runner}")
    }
}

/// Files have no owners on this system.
#[cfg(not(unix))]
impl Users {
    const fn of(_: &Metadata) -> Self {
        Self {
            owner: String::new(),
            runner: String::new(),
        }
    }

    fn describe_owner(&self, _: &Metadata) -> String {
        "is protected".to_owned()
    }
}

/// Whether `folder` belongs to the user of this process.
#[cfg(unix)]
fn is_of_this_user(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    folder
        .metadata()
        .is_ok_and(|metadata| metadata.uid() == user)
}

/// Files have no owners on this system.
#[cfg(not(unix))]
const fn is_of_this_user(_: &Path) -> bool {
    false
}

/// The name of the administrator.
const ROOT: &str = "root";
/// How a user without a name begins.
const UNNAMED: &str = "user ";

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

/// Files have no owners on this system.
#[cfg(not(unix))]
const fn denies_its_owner(_: &Metadata) -> bool {
    false
}

/// How the standard library begins errors of the resolver.
const LOOKUP: &str = "failed to lookup address information: ";

const KNOWN: &[(ErrorKind, &str)] = &[
    (ErrorKind::NotFound, "no such file or directory"),
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
            (2, "no such file or directory"),
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
            for part in [" (mode ", "), and Vary runs as "] {
                assert!(why.contains(part), "{why}");
            }
        }
        let metadata = Path::new("/").metadata().unwrap();
        let root = Users::of(&metadata).describe_owner(&metadata);
        assert!(root.starts_with("belongs to root (mode "), "{root}");
        let missing = Error::from(ErrorKind::NotFound);
        assert_eq!(describe_at(place, &missing), describe(&missing));
    }

    #[test]
    fn nobody_is_told_to_run_vary_as_root() {
        let ours = Denial {
            place: Path::new("/srv/ann/.cursor"),
            is_directory: true,
            is_near: true,
            is_writing: true,
            is_in_folder_of_runner: true,
        };
        let file = Denial {
            is_directory: false,
            ..ours
        };
        let hidden = Denial {
            is_in_folder_of_runner: false,
            ..ours
        };
        let elsewhere = Denial {
            place: Path::new("/var/log"),
            is_in_folder_of_runner: false,
            ..ours
        };
        let key = Denial {
            is_directory: false,
            is_writing: false,
            ..elsewhere
        };
        let log = Denial {
            is_writing: true,
            ..key
        };
        let named = |owner: &str, runner: &str| Users {
            owner: owner.to_owned(),
            runner: runner.to_owned(),
        };
        let by_ann = named("root", "ann");
        let folder_fix = "; type: sudo chown -R ann '/srv/ann/.cursor'";
        let file_fix = "; type: sudo chown 7 '/srv/ann/.cursor'";
        for (denial, users, expected) in [
            (&ours, &by_ann, folder_fix),
            (&hidden, &by_ann, folder_fix),
            (&file, &named("root", "user 7"), file_fix),
            (
                &elsewhere,
                &by_ann,
                "; name a folder of yours, or make one: sudo install -d -o ann '/var/log/vary'",
            ),
            (&key, &by_ann, "; name a file that the user `ann` may read"),
            (&log, &by_ann, "; name a file that the user `ann` may write"),
            (
                &ours,
                &named("bob", "ann"),
                "; run Vary as its owner, or change its mode",
            ),
            (&ours, &named("root", "root"), ""),
        ] {
            assert_eq!(denial.fix(users), expected);
        }
    }

    #[test]
    fn an_error_with_a_text_of_its_own_keeps_it() {
        reads(
            &Error::new(ErrorKind::NotFound, "its directory does not exist"),
            "its directory does not exist",
        );
        for (reason, expected) in [
            ("Name or service not known", "no host has this name (DNS)"),
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
