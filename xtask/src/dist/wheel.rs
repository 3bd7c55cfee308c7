//! The wheel `mcp-vary` for PyPI: the binary as a script, no Python code.
//! <https://packaging.python.org/en/latest/specifications/binary-distribution-format>

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::archive::{Entry, digest, zip};
use super::release::{Binary, Release};

/// The file name of the wheel and its bytes.
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn package(release: &Release, binary: &Binary) -> Result<(String, Vec<u8>), String> {
    let name = format!("mcp_vary-{}", release.version);
    let information = format!("{name}.dist-info");
    let tag = format!("py3-none-{}", binary.platform.wheel(&binary.data));
    let metadata = format!(
        "Metadata-Version: 2.1\nName: mcp-vary\nVersion: {}\nSummary: {}\nLicense: {}\nProject-URL: Source, {}\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        release.version, release.summary, release.license, release.repository, release.readme
    );
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
    );
    let mut entries = vec![
        Entry::program(format!("{name}.data/scripts/vary"), binary.data.clone()),
        Entry::new(format!("{information}/METADATA"), metadata),
        Entry::new(format!("{information}/WHEEL"), wheel),
        Entry::new(
            format!("{information}/licenses/LICENSE"),
            release.terms.clone(),
        ),
    ];
    let record = format!("{information}/RECORD");
    let lines = entries.iter().map(|entry| {
        let digest = URL_SAFE_NO_PAD.encode(digest(&entry.data));
        format!("{},sha256={digest},{}\n", entry.path, entry.data.len())
    });
    let lines: String = lines.collect();
    entries.push(Entry::new(record.clone(), format!("{lines}{record},,\n")));
    Ok((
        format!("{name}-{tag}.whl"),
        zip(&entries, release.compression)?,
    ))
}
