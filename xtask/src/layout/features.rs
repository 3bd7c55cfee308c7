//! Whether cargo builds the crates that both xtask and the tests need once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cargo::{self, FUZZ_TARGETS};
use crate::outcome::no_findings;
use crate::process;
use crate::workspace::Workspace;

/// The features of a crate in each way in which it is built, by its name and version.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Every dependency of xtask has the features that it has in the tests of the workspace. The fuzz targets, which the lints
/// include, change none of them.
///
/// If one differs, cargo compiles it and all that use it twice: for xtask, and for the tests.
pub(super) fn shared(workspace: &Workspace) -> Result<(), String> {
    let of_xtask = features(
        workspace,
        &["--package", "xtask", "--edges", "normal,build"],
    )?;
    let of_tests = features(workspace, &["--workspace"])?;
    let of_lints = features(workspace, &["--workspace", "--features", FUZZ_TARGETS])?;
    let mut findings = differences("xtask", &of_xtask, &of_tests);
    let of_fuzz_targets = common(of_lints, &of_tests);
    findings.extend(differences("the fuzz targets", &of_fuzz_targets, &of_tests));
    no_findings(&findings)
}

/// What `features` has of the crates in `others`, without the package that has the feature itself.
fn common(mut features: Features, others: &Features) -> Features {
    features.retain(|name, _| others.contains_key(name) && !name.starts_with("mcp-vary-fuzz "));
    features
}

/// What `cargo tree` lists.
fn features(workspace: &Workspace, selection: &[&str]) -> Result<Features, String> {
    let mut tree = cargo::cargo(workspace);
    tree.arg("tree").args(selection);
    tree.args(["--prefix", "none", "--format", "{p} [{f}]"]);
    Ok(parse(&process::output(
        &mut tree,
        Duration::from_secs(300),
    )?))
}

fn parse(tree: &str) -> Features {
    let mut features = Features::new();
    for line in tree.lines() {
        // Behind the features stands `(*)` where the crate is listed again.
        let named = line.rsplit_once(" [");
        let Some((name, list)) =
            named.and_then(|(name, list)| Some((name, list.split_once(']')?.0)))
        else {
            continue;
        };
        let sets = features.entry(name.to_owned()).or_default();
        sets.insert(list.to_owned());
    }
    features
}

/// The features in `found` that the tests do not have; `user` is what has them.
fn differences(user: &str, found: &Features, of_tests: &Features) -> Vec<String> {
    let none = BTreeSet::new();
    let all = found.iter().flat_map(|(name, sets)| {
        let in_tests = of_tests.get(name).unwrap_or(&none);
        sets.difference(in_tests)
            .map(move |features| (name, features, in_tests))
    });
    let findings = all.map(|(name, features, in_tests)| {
        let in_tests: Vec<String> = in_tests.iter().map(|features| format!("[{features}]")).collect();
        format!(
            "`{name}` has the features [{features}] for {user} and {} for the tests; name those that differ in xtask/Cargo.toml",
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
        differences("xtask", &parse(xtask), &parse(TESTS))
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

    #[test]
    fn the_fuzz_targets_may_add_crates_and_change_none() {
        let lints = "libfuzzer-sys v0.4.0 []\nmcp-vary-fuzz v0.1.0 (/w/fuzz) [targets]\nsyn v3.0.0 (proc-macro) []\n";
        let tests = parse(&format!("{TESTS}mcp-vary-fuzz v0.1.0 (/w/fuzz) []\n"));
        let found = common(parse(lints), &tests);
        let finding = "`syn v3.0.0 (proc-macro)` has the features [] for the fuzz targets and [full] for the tests; name those that differ in xtask/Cargo.toml";
        assert_eq!(differences("the fuzz targets", &found, &tests), [finding]);
    }
}
