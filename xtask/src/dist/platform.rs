//! The platforms for which there are binaries, and what each package format calls them.

use std::fmt;
use std::io::BufRead as _;

/// A platform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Platform {
    /// As Rust calls it.
    pub(super) triple: &'static str,
    /// As Node has it in `process.platform` and `process.arch`.
    pub(super) node: (&'static str, &'static str),
    /// As Debian and container images call its architecture; `None` for other systems than Linux.
    pub(super) debian: Option<&'static str>,
    /// The tag of a wheel. On Linux it begins with the version of the C library.
    wheel: &'static str,
}

pub(super) const PLATFORMS: [Platform; 4] = [
    platform("x86_64-unknown-linux-gnu", ("linux", "x64"), "x86_64").of_debian("amd64"),
    platform("aarch64-unknown-linux-gnu", ("linux", "arm64"), "aarch64").of_debian("arm64"),
    platform(
        "x86_64-apple-darwin",
        ("darwin", "x64"),
        "macosx_10_12_x86_64",
    ),
    platform(
        "aarch64-apple-darwin",
        ("darwin", "arm64"),
        "macosx_11_0_arm64",
    ),
];

const fn platform(
    triple: &'static str,
    node: (&'static str, &'static str),
    wheel: &'static str,
) -> Platform {
    Platform {
        triple,
        node,
        debian: None,
        wheel,
    }
}

impl Platform {
    const fn of_debian(mut self, architecture: &'static str) -> Self {
        self.debian = Some(architecture);
        self
    }

    /// The platform that Rust calls `triple`.
    ///
    /// # Errors
    ///
    /// If it is not one of those that are packed.
    pub(super) fn of(triple: &str) -> Result<Self, String> {
        let known = PLATFORMS.iter().find(|platform| platform.triple == triple);
        known.copied().ok_or_else(|| {
            let all = PLATFORMS.map(|platform| platform.triple).join(", ");
            format!("`{triple}` is not packed; there are {all}")
        })
    }

    /// The one on which this program runs.
    ///
    /// # Errors
    ///
    /// If nothing is packed for it.
    pub(super) fn current() -> Result<Self, String> {
        let system = match std::env::consts::OS {
            "linux" => "unknown-linux-gnu",
            "macos" => "apple-darwin",
            other => other,
        };
        Self::of(&format!("{}-{system}", std::env::consts::ARCH))
    }

    /// The tag of the wheel of `binary`: <https://packaging.python.org/en/latest/specifications/platform-compatibility-tags>.
    pub(super) fn wheel(&self, binary: &[u8]) -> String {
        match (self.debian, glibc(binary)) {
            (Some(_), Some(minor)) => format!("manylinux_2_{minor}_{}", self.wheel),
            (Some(_), None) => format!("linux_{}", self.wheel),
            (None, _) => self.wheel.to_owned(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.triple)
    }
}

/// The minor version of the C library 2 that `binary` needs: the highest of the versions of the functions that it uses.
/// `None` for a static binary.
pub(super) fn glibc(binary: &[u8]) -> Option<u32> {
    // The symbols of a debug build are large, so the search is the one of the C library: `skip_until`.
    let (mut unread, mut newest) = (binary, None);
    while unread.skip_until(b'G').is_ok_and(|skipped| skipped > 0) {
        let digits = unread.strip_prefix(b"LIBC_2.").unwrap_or_default().iter();
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).take(3);
        let minor = digits.fold(None, |minor: Option<u32>, digit| {
            Some(minor.unwrap_or_default() * 10 + u32::from(digit - b'0'))
        });
        newest = newest.max(minor);
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_needs_the_newest_c_library_that_it_names() {
        assert_eq!(
            glibc(b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE"),
            Some(34)
        );
        assert_eq!(glibc(b"GLIBC_2.17"), Some(17));
        assert_eq!(glibc(b"static, by GLIBC_2."), None);
    }

    #[test]
    fn a_wheel_names_the_c_library() {
        let linux = Platform::of("aarch64-unknown-linux-gnu").unwrap();
        assert_eq!(linux.wheel(b"GLIBC_2.34"), "manylinux_2_34_aarch64");
        let mac = Platform::of("aarch64-apple-darwin").unwrap();
        assert_eq!(mac.wheel(b""), "macosx_11_0_arm64");
        let other = Platform::of("mips-unknown-linux-gnu").unwrap_err();
        assert!(
            other.starts_with("`mips-unknown-linux-gnu` is not packed; there are x86_64-"),
            "{other}"
        );
    }
}
