//! Archives that are the same bytes for the same content: no time, no user, in order.

use std::collections::BTreeSet;
use std::io::Write as _;

pub(super) use flate2::Compression;
use flate2::GzBuilder;
use ring::digest::SHA256;
use zip::write::SimpleFileOptions;

/// A file in an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The path in the archive, with `/`.
    pub(super) path: String,
    pub(super) is_executable: bool,
    pub(super) data: Vec<u8>,
}

impl Entry {
    /// A file that is read.
    pub(super) fn new(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        let (path, data) = (path.into(), data.into());
        Self {
            path,
            is_executable: false,
            data,
        }
    }

    /// A program.
    pub(super) fn program(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            is_executable: true,
            ..Self::new(path, data)
        }
    }

    /// The same file in another directory.
    pub(super) fn below(&self, directory: &str) -> Self {
        Self {
            path: format!("{directory}/{}", self.path),
            ..self.clone()
        }
    }

    const fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// A tar archive of `entries`, with the directories that they need.
pub(super) fn tar(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot write an archive: {error}");
    let mut archive = tar::Builder::new(Vec::new());
    let mut directories = BTreeSet::new();
    for entry in entries {
        for (at, _) in entry.path.match_indices('/') {
            let directory = &entry.path[..=at];
            if at > 0 && directory != "./" && directories.insert(directory) {
                let mut header = header(0, 0o755);
                header.set_entry_type(tar::EntryType::Directory);
                archive
                    .append_data(&mut header, directory, std::io::empty())
                    .map_err(failed)?;
            }
        }
        let mut header = header(entry.data.len(), entry.mode());
        archive
            .append_data(&mut header, &entry.path, entry.data.as_slice())
            .map_err(failed)?;
    }
    archive.into_inner().map_err(failed)
}

fn header(size: usize, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

/// `data`, compressed.
pub(super) fn gzip(data: &[u8], compression: Compression) -> Result<Vec<u8>, String> {
    let mut gzip = GzBuilder::new().write(Vec::new(), compression);
    let written = gzip.write_all(data).and_then(|()| gzip.finish());
    written.map_err(|error| format!("cannot compress: {error}"))
}

/// A zip archive of `entries`.
pub(super) fn zip(entries: &[Entry], compression: Compression) -> Result<Vec<u8>, String> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default().unix_permissions(entry.mode());
        let options = options.last_modified_time(zip::DateTime::default());
        let options = options.compression_level(Some(compression.level().into()));
        let started = archive.start_file(&entry.path, options);
        started.map_err(|error| format!("cannot write an archive: {error}"))?;
        let written = archive.write_all(&entry.data);
        written.map_err(|error| format!("cannot write an archive: {error}"))?;
    }
    let archive = archive
        .finish()
        .map_err(|error| format!("cannot write an archive: {error}"))?;
    Ok(archive.into_inner())
}

/// An `ar` archive, as Debian packages are: <https://manpages.debian.org/deb.5>.
pub(super) fn ar(entries: &[Entry]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for entry in entries {
        let (name, size) = (&entry.path, entry.data.len());
        out.extend(
            format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
                0, 0, 0, "100644"
            )
            .bytes(),
        );
        out.extend(&entry.data);
        if size % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// The SHA-256 digest of `data`.
pub(super) fn digest(data: &[u8]) -> Vec<u8> {
    ring::digest::digest(&SHA256, data).as_ref().to_vec()
}

/// The same in hexadecimal digits.
pub(super) fn hex_digest(data: &[u8]) -> String {
    digest(data)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
