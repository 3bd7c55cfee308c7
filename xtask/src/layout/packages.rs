//! The packages of the workspace, and which of them each may use.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use crate::outcome::no_findings;
use crate::workspace::Workspace;
use crate::{cargo, process};

/// A library leaves the terminal, the process and the environment to the command line.
#[rustfmt::skip]
const QUIET: &[&str] = &["println!(", "eprintln!(", "print!(", "process::exit", "std::env", "env::var"];

/// The protocol turns values into values.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "println!(", "eprintln!(", "print!(", "process::exit", "std::env", "env::var", "std::fs", "std::net", "std::process",
    "std::thread", "SystemTime", "Instant",
];

/// Values are turned into values; deadlines are arguments, or are inside a long computation.
#[rustfmt::skip]
const CALM: &[&str] = &[
    "println!(", "eprintln!(", "print!(", "process::exit", "std::env", "env::var", "std::fs", "std::net", "std::process",
    "std::thread", "tokio::", "SystemTime",
];

/// Tools and the command line do what they need.
const NOTHING: &[&str] = &[];

/// What one crate is allowed to do. ARCHITECTURE.md gives the reasons.
pub(super) struct Rule {
    pub(super) package: &'static str,
    /// The short names of our packages that it may use outside its tests.
    uses: &'static str,
    /// Whether it may use the SDK outside its tests.
    rmcp: bool,
    /// Texts that its sources must not contain.
    pub(super) banned: &'static [&'static str],
}

pub(super) const RULES: &[Rule] = &[
    rule("mcp-vary-base", "", QUIET),
    rule("mcp-vary-json", "", PURE),
    rule("mcp-vary", "json", PURE),
    rule("mcp-vary-audit", "access base vary", QUIET),
    rule("mcp-vary-experiment", "base", QUIET),
    rule("mcp-vary-metrics", "base", QUIET),
    rule("mcp-vary-operator", "", QUIET),
    rule("mcp-vary-rates", "base", QUIET),
    rule("mcp-vary-search", "", PURE),
    rule("mcp-vary-store", "base", QUIET),
    rule("mcp-vary-tokens", "", PURE),
    rule("mcp-vary-view", "vary", PURE),
    rule("mcp-vary-access", "base vary view", PURE),
    rule("mcp-vary-auth", "access base json vary wire", PURE),
    rule("mcp-vary-wire", "base vary view", PURE),
    rule("mcp-vary-login", "base upstream", QUIET),
    rule("mcp-vary-upstream", "base vary wire", QUIET),
    rule("mcp-vary-http", "base wire", QUIET),
    rule("mcp-vary-traces", "base upstream", QUIET),
    rule("mcp-vary-results", "access base vary view wire", CALM),
    rule(
        "mcp-vary-catalog",
        "access base results search vary view wire",
        CALM,
    ),
    rule(
        "mcp-vary-config",
        "access audit auth base catalog experiment login operator rates results settings traces upstream vary view wire",
        QUIET,
    ),
    rule(
        "mcp-vary-rmcp",
        "access audit base rates search vary view",
        QUIET,
    )
    .with_sdk(),
    rule(
        "mcp-vary-settings",
        "access audit auth base catalog experiment http operator rates results store traces upstream vary wire",
        QUIET,
    ),
    rule(
        "mcp-vary-observation",
        "access audit auth base catalog experiment metrics traces upstream vary wire",
        QUIET,
    ),
    rule(
        "mcp-vary-session",
        "access audit auth base catalog observation rates results settings store upstream vary view wire",
        QUIET,
    ),
    rule(
        "mcp-vary-gateway",
        "access audit auth base catalog experiment http metrics observation operator rates results session settings store traces upstream vary view wire",
        QUIET,
    ),
    rule(
        "mcp-vary-page",
        "base experiment gateway operator tokens vary view",
        QUIET,
    ),
    rule(
        "mcp-vary-cli",
        "access auth base catalog config conformance experiment gateway login operator page tokens traces upstream vary view weather wire",
        NOTHING,
    ),
    // It checks anybody's servers, so it must not share a mistake with ours.
    rule("mcp-vary-conformance", "", QUIET),
    // What tests share. It uses none of the crates that use it.
    rule("mcp-vary-testkit", "", NOTHING),
    rule("weather", "rmcp vary", NOTHING).with_sdk(),
    rule("library-examples", "rmcp vary", NOTHING).with_sdk(),
    rule("faults", "testkit", NOTHING),
    rule(
        "fuzz-checks",
        "access auth catalog config gateway login testkit upstream vary view wire",
        NOTHING,
    ),
    rule("mcp-vary-fuzz", "fuzz-checks", NOTHING),
    rule("fixture-server", "", NOTHING).with_sdk(),
    rule("replay-server", "", NOTHING),
    rule("vary-bench", "rmcp vary", NOTHING).with_sdk(),
    // For its features only, see xtask/Cargo.toml.
    rule(
        "xtask",
        "config faults gateway login search tokens vary view",
        NOTHING,
    )
    .with_sdk(),
];

const fn rule(package: &'static str, uses: &'static str, banned: &'static [&'static str]) -> Rule {
    Rule {
        package,
        uses,
        rmcp: false,
        banned,
    }
}

impl Rule {
    const fn with_sdk(self) -> Self {
        Self { rmcp: true, ..self }
    }

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
    let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
        return vec![format!(
            "`{name}` has no rule; give it one in xtask/src/layout/packages.rs"
        )];
    };
    let ours: BTreeSet<&str> = RULES.iter().map(|rule| rule.package).collect();
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        .map(|dependency| dependency.name.as_str())
        .filter(|used| {
            let forbidden_package = ours.contains(used) && !rule.may_use(used);
            let forbidden_sdk = *used == "rmcp" && !rule.rmcp;
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
        let ours = RULES.iter().map(|rule| rule.package);
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
