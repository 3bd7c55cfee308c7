//! What all packages of a release have in common.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archive::{Compression, Entry};
use super::platform::Platform;
use crate::process;
use crate::workspace::Workspace;

/// A binary to be packed.
pub(super) struct Binary {
    pub(super) platform: Platform,
    pub(super) path: PathBuf,
    pub(super) data: Vec<u8>,
}

impl Binary {
    /// Reads the binary at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn read(platform: Platform, path: &Path) -> Result<Self, String> {
        let data =
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Self {
            platform,
            path: path.to_owned(),
            data,
        })
    }

    /// Whether the binary runs here.
    pub(super) fn is_for_this_machine(&self) -> bool {
        Platform::current().is_ok_and(|current| current == self.platform)
    }
}

/// What all packages have in common.
pub(super) struct Release {
    pub(super) version: String,
    pub(super) license: String,
    pub(super) repository: String,
    pub(super) summary: &'static str,
    pub(super) readme: String,
    /// The text of the license.
    pub(super) terms: String,
    /// The license and the readme, as files.
    pub(super) texts: Vec<Entry>,
    /// The files for those who run Vary on servers.
    pub(super) for_servers: Vec<Entry>,
    /// The man pages.
    pub(super) pages: Vec<Entry>,
    /// The scripts for each shell.
    pub(super) completions: Vec<(&'static str, Vec<u8>)>,
    pub(super) compression: Compression,
}

impl Release {
    /// Reads the texts of the workspace, and lets `program`, which must run here, write its pages and scripts.
    ///
    /// # Errors
    ///
    /// If a text is missing, or the program fails.
    pub(super) fn read(
        workspace: &Workspace,
        program: &Path,
        compression: Compression,
    ) -> Result<Self, String> {
        let manifest = workspace.read("Cargo.toml")?;
        let field = |key: &str| {
            let mut lines = manifest.lines();
            let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            let value = line
                .and_then(|value| value.strip_suffix('"'))
                .map(str::to_owned);
            value.ok_or_else(|| format!("Cargo.toml has no `{key}`"))
        };
        let (readme, terms) = (workspace.read("README.md")?, workspace.read("LICENSE")?);
        let mut completions = Vec::new();
        for shell in ["bash", "zsh", "fish"] {
            let mut script = process::command(program);
            script.args(["completions", shell]);
            let script = process::output(&mut script, Duration::from_secs(20))?;
            completions.push((shell, script.into_bytes()));
        }
        Ok(Self {
            version: field("version")?,
            license: field("license")?,
            repository: field("repository")?,
            summary: SUMMARY,
            texts: vec![
                Entry::new("LICENSE", terms.clone()),
                Entry::new("README.md", readme.clone()),
            ],
            for_servers: for_servers(workspace)?,
            readme,
            terms,
            pages: pages(workspace, program)?,
            completions,
            compression,
        })
    }
}

fn for_servers(workspace: &Workspace) -> Result<Vec<Entry>, String> {
    let entry = |(path, file): &(&str, &str)| {
        let text = workspace.read(&format!("packaging/{file}"))?;
        Ok(Entry::new(*path, text))
    };
    FOR_SERVERS.iter().map(entry).collect()
}

fn pages(workspace: &Workspace, program: &Path) -> Result<Vec<Entry>, String> {
    let directory = workspace.scratch("dist-man")?;
    super::empty(&directory)?;
    let mut man = process::command(program);
    man.arg("man").arg(&directory);
    process::output(&mut man, Duration::from_secs(20))?;
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut pages = Vec::new();
    for page in fs::read_dir(&directory).map_err(failed)? {
        let page = page.map_err(failed)?;
        let name = page.file_name().to_string_lossy().into_owned();
        pages.push(Entry::new(name, fs::read(page.path()).map_err(failed)?));
    }
    fs::remove_dir_all(&directory).map_err(failed)?;
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

const SUMMARY: &str = "A gateway for MCP: one endpoint in front of your servers, with its own tools and result format for each client";

/// The files for servers: each by its path in an archive, and below `packaging`.
const FOR_SERVERS: [(&str, &str); 6] = [
    ("container/Dockerfile", "container/Dockerfile"),
    ("grafana/vary.json", "chart/files/dashboard.json"),
    ("prometheus/alerts.yaml", "chart/files/alerts.yaml"),
    ("systemd/notify-reload.conf", "systemd/notify-reload.conf"),
    ("systemd/vary.service", "systemd/vary.service"),
    ("systemd/vary.socket", "systemd/vary.socket"),
];
