//! The software bill of materials: every crate in the binary, as CycloneDX 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::workspace::Workspace;
use crate::{cargo, process};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of the workspace.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for an ordinary dependency.
    kind: Option<String>,
}

/// The bill of the binary's crates on the platform `triple`.
///
/// # Errors
///
/// If cargo does not describe them.
pub(super) fn bill(workspace: &Workspace, triple: &str) -> Result<String, String> {
    let mut command = cargo::cargo(workspace);
    command.args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        triple,
    ]);
    let text = process::output(&mut command, Duration::from_secs(120))?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let bill = components(&metadata, &checksums(&workspace.read("Cargo.lock")?))?;
    Ok(format!("{bill:#}\n"))
}

fn components(
    metadata: &Metadata,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value, String> {
    let packages = metadata.packages.iter();
    let packages = packages.map(|package| (package.id.as_str(), package));
    let packages: BTreeMap<&str, &Package> = packages.collect();
    let root = packages.values().find(|package| package.name == ROOT);
    let root = root.ok_or_else(|| format!("cargo metadata has no {ROOT}"))?;
    let linked = linked(metadata, &root.id)?;
    let url = |id: &str| packages.get(id).map(|package| package.url());
    let edges = linked.iter().map(|(id, below)| {
        let below: BTreeSet<String> = below.iter().filter_map(|id| url(id)).collect();
        json!({"ref": url(id), "dependsOn": below})
    });
    let mut edges: Vec<Value> = edges.collect();
    edges.sort_by_key(|edge| edge["ref"].to_string());
    let others = linked.keys().filter(|id| **id != root.id);
    let others = others.filter_map(|id| packages.get(id));
    let mut others: Vec<Value> = others
        .map(|package| package.component(checksums, "library"))
        .collect();
    others.sort_by_key(|component| component["bom-ref"].to_string());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root.component(checksums, "application")},
        "components": others,
        "dependencies": edges,
    }))
}

/// The packages that are linked into `root`, itself included, and those that each uses.
fn linked<'m>(
    metadata: &'m Metadata,
    root: &'m str,
) -> Result<BTreeMap<&'m str, Vec<&'m str>>, String> {
    let nodes = metadata.resolve.nodes.iter();
    let nodes: BTreeMap<&str, &Node> = nodes.map(|node| (node.id.as_str(), node)).collect();
    let mut linked = BTreeMap::new();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if linked.contains_key(id) {
            continue;
        }
        let node = nodes.get(id);
        let node = node.ok_or_else(|| format!("cargo metadata has no node {id}"))?;
        let is_linked = |dep: &&Dependency| dep.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let below = node.deps.iter().filter(is_linked);
        let below: Vec<&str> = below.map(|dep| dep.pkg.as_str()).collect();
        open.extend(&below);
        linked.insert(id, below);
    }
    Ok(linked)
}

impl Package {
    /// <https://github.com/package-url/purl-spec>
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    fn component(&self, checksums: &BTreeMap<(String, String), String>, kind: &str) -> Value {
        let mut component = json!({
            "type": kind,
            "bom-ref": self.url(),
            "name": self.name,
            "version": self.version,
            "purl": self.url(),
        });
        if let Some(license) = &self.license {
            // Old crates separate alternatives by a slash, which SPDX does not know.
            let expression = license.replace('/', " OR ").replace("  ", " ");
            component["licenses"] = json!([{"expression": expression}]);
        }
        let key = (self.name.clone(), self.version.clone());
        if let Some(checksum) = checksums.get(&key).filter(|_| self.source.is_some()) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    }
}

/// The checksums of `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |key: &str| {
            let mut lines = package.lines();
            let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"'))
                .map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            all.insert((name, version), sum);
        }
    }
    all
}

/// The package of the binary.
const ROOT: &str = "mcp-vary-cli";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_builds_and_tests_need_is_left_out() {
        let dep =
            |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let package = |name: &str, license: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": license, "source": "registry"});
        let metadata = json!({
            "packages": [package(ROOT, "Apache-2.0"), package("a", "MIT/Apache-2.0"), package("b", "MIT"), package("t", "MIT")],
            "resolve": {"nodes": [
                {"id": ROOT, "deps": [dep("a", None), dep("t", Some("dev"))]},
                {"id": "a", "deps": [dep("b", None), dep("t", Some("build"))]},
                {"id": "b", "deps": []},
                {"id": "t", "deps": []},
            ]},
        });
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"c0\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"c1\"\n";
        let bill = components(&metadata, &checksums(lock)).unwrap();
        assert_eq!(
            bill["components"],
            json!([
                {"type": "library", "bom-ref": "pkg:cargo/a@1.0.0", "name": "a", "version": "1.0.0", "purl": "pkg:cargo/a@1.0.0",
                 "licenses": [{"expression": "MIT OR Apache-2.0"}], "hashes": [{"alg": "SHA-256", "content": "c0"}]},
                {"type": "library", "bom-ref": "pkg:cargo/b@1.0.0", "name": "b", "version": "1.0.0", "purl": "pkg:cargo/b@1.0.0",
                 "licenses": [{"expression": "MIT"}]},
            ])
        );
        assert_eq!(bill["dependencies"][1]["ref"], format!("pkg:cargo/b@1.0.0"));
        assert_eq!(bill["metadata"]["component"]["type"], "application");
    }
}
