//! The Helm chart.

use super::archive::{Entry, gzip, tar};
use super::release::Release;
use crate::workspace::Workspace;

/// The file name of the packed chart and its bytes.
///
/// # Errors
///
/// If a file cannot be read, or the archive not written.
pub(super) fn package(
    workspace: &Workspace,
    release: &Release,
) -> Result<(String, Vec<u8>), String> {
    let mut entries = Vec::new();
    for file in workspace.files(CHART)? {
        let path = file.trim_start_matches(CHART);
        let mut text = workspace.read(&file)?;
        if path == "/Chart.yaml" {
            text = with_version(&text, &release.version);
        }
        entries.push(Entry::new(format!("vary{path}"), text));
    }
    let data = gzip(&tar(&entries)?, release.compression)?;
    Ok((format!("vary-chart-{}.tgz", release.version), data))
}

/// The chart with the version of the release, of itself and of the image.
fn with_version(text: &str, version: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((key @ ("version" | "appVersion"), _)) => format!("{key}: {version}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

const CHART: &str = "packaging/chart";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_the_version_of_the_release() {
        let text = "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\n";
        let expected = "apiVersion: v2\nversion: 1.2.3\nappVersion: 1.2.3\n";
        assert_eq!(with_version(text, "1.2.3"), expected);
    }
}
