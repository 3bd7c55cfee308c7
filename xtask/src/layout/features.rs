//! Whether cargo builds the crates that both xtask and the tests need once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cargo;
use crate::outcome::no_findings;
use crate::process;
use crate::workspace::Workspace;

/// The features of a crate in each way in which it is built, by its name and version.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Every dependency of xtask has the features that it has in the tests of the workspace.
///
/// If one differs, cargo compiles it and all that use it twice: for xtask, and for the tests.
pub(super) fn shared(workspace: &Workspace) -> Result<(), String> {
    let of_xtask = features(
        workspace,
        &["--package", "xtask", "--edges", "normal,build"],
    )?;
    let of_tests = features(workspace, &["--workspace"])?;
    no_findings(&differences(&of_xtask, &of_tests))
}

/// What `cargo tree` lists.
fn features(workspace: &Workspace, selection: &[&str]) -> Result<Features, String> {
    let mut tree = cargo::cargo(workspace);
    tree.arg("tree").args(selection);
    tree.args(["--prefix", "none", "--format", "{p} [{f}]"]);
    Ok(parsed(&process::output(
        &mut tree,
        Duration::from_secs(300),
    )?))
}

fn parsed(tree: &str) -> Features {
    let mut features = Features::new();
    for line in tree.lines() {
        // Behind the features stands `(*)` where the crate is listed again.
        let named = line.rsplit_once(" [");
        let Some((name, list)) =
            named.and_then(|(name, list)| Some((name, list.split_once(']')?.0)))
        else {
            continue;
        };
        let ways = features.entry(name.to_owned()).or_default();
        ways.insert(list.to_owned());
    }
    features
}

fn differences(of_xtask: &Features, of_tests: &Features) -> Vec<String> {
    let none = BTreeSet::new();
    let all = of_xtask.iter().flat_map(|(name, ways)| {
        let in_tests = of_tests.get(name).unwrap_or(&none);
        ways.difference(in_tests)
            .map(move |way| (name, way, in_tests))
    });
    let findings = all.map(|(name, way, in_tests)| {
        let in_tests: Vec<String> = in_tests.iter().map(|way| format!("[{way}]")).collect();
        format!(
            "`{name}` has the features [{way}] for xtask and {} for the tests; name those that differ in xtask/Cargo.toml",
            in_tests.join(" or ")
        )
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "\
tokio v1.0.0 [fs,net]
syn v3.0.0 (proc-macro) [full]
syn v3.0.0 (proc-macro) [full] (*)
xtask v0.1.0 (/w/xtask) []
";

    fn compared(xtask: &str) -> Vec<String> {
        differences(&parsed(xtask), &parsed(TESTS))
    }

    #[test]
    fn a_crate_with_the_features_of_the_tests_is_shared() {
        let shared = "syn v3.0.0 (proc-macro) [full] (*)\n\ntokio v1.0.0 [fs,net]\n";
        assert_eq!(compared(shared), [""; 0]);
    }

    #[test]
    fn a_crate_with_fewer_features_is_a_finding_with_its_fix() {
        let finding = "`tokio v1.0.0` has the features [net] for xtask and [fs,net] for the tests; name those that differ in xtask/Cargo.toml";
        assert_eq!(compared("tokio v1.0.0 [net]"), [finding]);
    }
}
