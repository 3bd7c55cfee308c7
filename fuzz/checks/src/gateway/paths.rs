//! How servers read paths.

use mcp_vary_testkit::lenient_path::decoded;

/// Where a server reads a `file:` URI that decodes it and resolves its path.
pub(super) fn resolved(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, path)| path);
    let path = decoded(path).replace('\\', "/");
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}/", segments.join("/"))
}
