//! Which libraries and programs have a test binary of their own.

use crate::modules::{Modules, Sources};
use crate::outcome::no_findings;
use crate::rust::{Token, tokens};
use crate::workspace::Workspace;

use super::packages::{Package, Target};

/// A library or program has `test = false` in its manifest if it has no tests, and only then.
///
/// Otherwise its tests would never run, or cargo would compile and link it, and the lints would read it, once more for
/// nothing.
pub(super) fn needed(workspace: &Workspace, packages: &[Package]) -> Result<(), String> {
    let sources = workspace.rust_sources()?;
    let findings = packages.iter().flat_map(|package| {
        let targets = package.shipped_targets();
        targets.filter_map(|target| finding(&sources, &package.name, target))
    });
    no_findings(&findings.collect::<Vec<String>>())
}

fn finding(sources: &Sources, package: &str, target: &Target) -> Option<String> {
    let root = &target.src_path;
    let modules = Modules::read(sources, root);
    let mut texts = modules
        .files
        .iter()
        .filter_map(|file| sources.get(&file.path));
    match (texts.any(|text| has_tests(&tokens(text))), target.test) {
        (true, false) => Some(format!(
            "`{package}`: {root} has tests that do not run; remove `test = false` from its manifest"
        )),
        (false, true) => Some(format!(
            "`{package}`: {root} has no tests; give it `test = false` in its manifest, so that no test binary is built"
        )),
        _ => None,
    }
}

/// Whether there is an item for tests only, or a test.
fn has_tests(tokens: &[Token<'_>]) -> bool {
    tokens.windows(4).any(|four| {
        let four = [0, 1, 2, 3].map(|at| four[at].text);
        matches!(
            four,
            ["#", "[", "test", "]"] | [_, "::", "test", "]"] | ["cfg", "(", "test", ")"]
        )
    })
}
