//! The Debian package `mcp-vary`: the binary, man pages, completions for shells, and units of systemd.

use super::archive::{Entry, ar, gzip, tar};
use super::platform::glibc;
use super::release::{Binary, Release};

/// The file name of the package and its bytes; `None` if the platform is not Linux.
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn package(
    release: &Release,
    binary: &Binary,
) -> Result<Option<(String, Vec<u8>)>, String> {
    let Some(architecture) = binary.platform.debian else {
        return Ok(None);
    };
    let mut files = vec![
        Entry::program("./usr/bin/vary", binary.data.clone()),
        Entry::new("./usr/share/doc/mcp-vary/copyright", release.terms.clone()),
    ];
    for page in &release.pages {
        let path = format!("./usr/share/man/man1/{}.gz", page.path);
        files.push(Entry::new(path, gzip(&page.data, release.compression)?));
    }
    for (shell, script) in &release.completions {
        let path = match *shell {
            "bash" => "./usr/share/bash-completion/completions/vary",
            "zsh" => "./usr/share/zsh/vendor-completions/_vary",
            _ => "./usr/share/fish/vendor_completions.d/vary.fish",
        };
        files.push(Entry::new(path, script.clone()));
    }
    for file in &release.for_servers {
        let path = match file.path.strip_prefix("systemd/vary.") {
            Some(kind) => format!("./usr/lib/systemd/system/vary.{kind}"),
            None => format!("./usr/share/doc/mcp-vary/examples/{}", file.path),
        };
        files.push(Entry::new(path, file.data.clone()));
    }
    let size: usize = files
        .iter()
        .map(|file| file.data.len().div_ceil(1024))
        .sum();
    let depends = match glibc(&binary.data) {
        Some(minor) => format!("Depends: libc6 (>= 2.{minor}), libgcc-s1\n"),
        None => String::new(),
    };
    let control = format!(
        "Package: mcp-vary\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The Vary authors\nInstalled-Size: {size}\n\
         {depends}Section: net\nPriority: optional\nHomepage: {}\nDescription: {}\n",
        release.version, release.repository, release.summary
    );
    let members = [
        Entry::new("debian-binary", "2.0\n"),
        Entry::new(
            "control.tar.gz",
            gzip(
                &tar(&[Entry::new("./control", control)])?,
                release.compression,
            )?,
        ),
        Entry::new("data.tar.gz", gzip(&tar(&files)?, release.compression)?),
    ];
    let name = format!("mcp-vary_{}_{architecture}.deb", release.version);
    Ok(Some((name, ar(&members))))
}
