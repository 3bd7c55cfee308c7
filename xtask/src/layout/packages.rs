//! The packages of the workspace, and which of them each may use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use crate::outcome::no_findings;
use crate::workspace::Workspace;
use crate::{cargo, process};

/// What the crates are allowed to do.
#[derive(Deserialize)]
pub(super) struct Rules {
    /// Lists of texts that sources must not contain, by their names.
    bans: BTreeMap<String, Vec<String>>,
    /// The rule of each package.
    packages: BTreeMap<String, Rule>,
    /// The folders (or files) directly below `src` of some packages, top first.
    pub(super) layers: BTreeMap<String, Vec<String>>,
}

/// What one crate is allowed to do.
#[derive(Deserialize)]
struct Rule {
    /// The short names of our packages that it may use outside its tests.
    #[serde(default)]
    uses: String,
    /// Whether it may use the SDK outside its tests.
    #[serde(default)]
    sdk: bool,
    /// The name of a list of texts that its sources must not contain.
    bans: String,
}

pub(super) static RULES: LazyLock<Rules> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("packages.yaml")).expect("the file has rules")
});

impl Rules {
    /// Each package, and the texts that its sources must not contain.
    pub(super) fn banned(&self) -> impl Iterator<Item = (&str, &[String])> {
        let packages = self.packages.iter();
        packages.map(|(package, rule)| (package.as_str(), self.bans[&rule.bans].as_slice()))
    }
}

impl Rule {
    fn may_use(&self, used: &str) -> bool {
        let short = match used {
            "mcp-vary" => "vary",
            _ => used.strip_prefix("mcp-vary-").unwrap_or(used),
        };
        self.uses.split(' ').any(|name| name == short)
    }
}

/// Crates that the protocol crate must not depend on, directly or indirectly.
const IMPURE: &[&str] = &["getrandom", "http", "hyper", "rmcp", "tokio"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: String,
}

/// A package of the workspace, as `cargo metadata` describes it.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: String,
    pub(crate) dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    kind: Option<String>,
}

impl Dependency {
    /// Whether only tests, examples and benchmarks use it.
    pub(crate) fn is_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// What cargo compiles of a package.
#[derive(Deserialize)]
pub(super) struct Target {
    pub(super) kind: Vec<String>,
    pub(super) src_path: String,
    /// Whether `cargo test` builds a test binary of it.
    pub(super) test: bool,
}

impl Package {
    /// Its folder in the workspace.
    pub(crate) fn folder(&self) -> &str {
        let folder = self.manifest_path.strip_suffix("/Cargo.toml");
        folder.unwrap_or_default()
    }

    /// The crate roots of its libraries and binaries.
    pub(crate) fn roots(&self) -> Vec<String> {
        let targets = self.shipped_targets();
        targets.map(|target| target.src_path.clone()).collect()
    }

    /// Its libraries and binaries.
    pub(super) fn shipped_targets(&self) -> impl Iterator<Item = &Target> {
        let shipped = |target: &&Target| {
            target
                .kind
                .iter()
                .any(|kind| kind == "lib" || kind == "bin")
        };
        self.targets.iter().filter(shipped)
    }
}

/// All packages of the workspace, with paths in it.
pub(crate) fn read(workspace: &Workspace) -> Result<Vec<Package>, String> {
    let mut metadata = cargo::cargo(workspace);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = process::output(&mut metadata, Duration::from_secs(120))?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let root = format!("{}/", metadata.workspace_root.replace('\\', "/"));
    let mut packages = metadata.packages;
    for package in &mut packages {
        let sources = package
            .targets
            .iter_mut()
            .map(|target| &mut target.src_path);
        for path in sources.chain([&mut package.manifest_path]) {
            let normal = path.replace('\\', "/");
            *path = normal.strip_prefix(&root).unwrap_or(&normal).to_owned();
        }
    }
    Ok(packages)
}

/// Checks that the packages use one another, and the SDK, only as their rules allow.
pub(super) fn arrows(packages: &[Package]) -> Result<(), String> {
    let findings: Vec<String> = packages.iter().flat_map(broken_arrows).collect();
    no_findings(&findings)
}

/// The dependencies of `package` that its rule forbids.
fn broken_arrows(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(rule) = RULES.packages.get(name) else {
        return vec![format!(
            "`{name}` has no rule; give it one in xtask/src/layout/packages.yaml"
        )];
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| !dependency.is_for_tests())
        .map(|dependency| dependency.name.as_str())
        .filter(|used| {
            let forbidden_package = RULES.packages.contains_key(*used) && !rule.may_use(used);
            let forbidden_sdk = *used == "rmcp" && !rule.sdk;
            forbidden_package || forbidden_sdk
        })
        .map(|used| format!("`{name}` must not use `{used}`"))
        .collect()
}

/// The protocol crate depends on no runtime, network, randomness or SDK.
pub(super) fn pure(workspace: &Workspace) -> Result<(), String> {
    let mut tree = cargo::cargo(workspace);
    tree.args(["tree", "--package", "mcp-vary", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{lib}"]);
    let reached = process::output(&mut tree, Duration::from_secs(300))?;
    let reached: BTreeSet<&str> = reached.lines().map(str::trim).collect();
    let findings: Vec<String> = IMPURE
        .iter()
        .filter(|name| reached.contains(*name))
        .map(|name| format!("`{name}`, see `cargo tree -p mcp-vary -i {name}`"))
        .collect();
    no_findings(&findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(name: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        broken_arrows(&Package {
            name: name.to_owned(),
            manifest_path: String::new(),
            dependencies: vec![Dependency {
                name: used.to_owned(),
                kind: kind.map(str::to_owned),
            }],
            targets: Vec::new(),
        })
    }

    #[test]
    fn the_protocol_uses_nobody() {
        let broken = ["`mcp-vary` must not use `mcp-vary-gateway`"];
        assert_eq!(uses("mcp-vary", "mcp-vary-gateway", None), broken);
    }

    #[test]
    fn the_conformance_checks_use_nobody() {
        let ours = RULES.packages.keys().map(String::as_str);
        for used in ours.chain(["rmcp"]) {
            let broken = [format!("`mcp-vary-conformance` must not use `{used}`")];
            assert_eq!(uses("mcp-vary-conformance", used, None), broken);
        }
    }

    #[test]
    fn tests_may_use_the_sdk() {
        assert!(uses("mcp-vary-gateway", "rmcp", Some("dev")).is_empty());
        assert_eq!(uses("mcp-vary-gateway", "rmcp", None).len(), 1);
    }

    #[test]
    fn a_new_package_needs_a_rule() {
        assert!(uses("newcomer", "serde", None)[0].contains("has no rule"));
    }
}
