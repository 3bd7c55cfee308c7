//! The npm package `@mcp-vary/cli`: the binaries of all platforms, and a script that starts the right one.

use serde_json::json;

use super::archive::{Entry, gzip, tar};
use super::release::{Binary, Release};

/// The package as `npm pack` would write it.
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn package(release: &Release, binaries: &[Binary]) -> Result<Vec<u8>, String> {
    let mut systems: Vec<&str> = binaries
        .iter()
        .map(|binary| binary.platform.node.0)
        .collect();
    systems.sort_unstable();
    systems.dedup();
    let mut cpus: Vec<&str> = binaries
        .iter()
        .map(|binary| binary.platform.node.1)
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let manifest = json!({
        "name": "@mcp-vary/cli",
        "version": release.version,
        "description": release.summary,
        "license": release.license,
        "repository": {"type": "git", "url": format!("git+{}.git", release.repository)},
        "bin": {"vary": "bin/vary.js"},
        "files": ["bin", "binaries"],
        "os": systems,
        "cpu": cpus,
        "engines": {"node": ">=18"},
    });
    let mut entries = vec![
        Entry::new("package.json", format!("{manifest:#}\n")),
        Entry::program("bin/vary.js", LAUNCHER),
    ];
    for binary in binaries {
        let (system, cpu) = binary.platform.node;
        entries.push(Entry::program(
            format!("binaries/{system}-{cpu}/vary"),
            binary.data.clone(),
        ));
    }
    entries.extend(release.texts.iter().cloned());
    let entries: Vec<Entry> = entries.iter().map(|entry| entry.below("package")).collect();
    gzip(&tar(&entries)?, release.compression)
}

/// Starts the binary, passes signals on, and ends as it does.
const LAUNCHER: &str = include_str!("vary.js");
