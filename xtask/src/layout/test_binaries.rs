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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, test: bool) -> Option<String> {
        let mut sources = Sources::new();
        sources.insert("a/src/lib.rs".to_owned(), "mod inner;".to_owned());
        sources.insert("a/src/inner.rs".to_owned(), text.to_owned());
        let target = Target {
            kind: vec!["lib".to_owned()],
            src_path: "a/src/lib.rs".to_owned(),
            test,
        };
        finding(&sources, "a", &target)
    }

    #[test]
    fn tests_need_a_test_binary() {
        for text in [
            "#[test]\nfn f() {}",
            "#[tokio::test]\nasync fn f() {}",
            "#[cfg(test)]\nmod tests;",
        ] {
            assert_eq!(found(text, true), None, "{text}");
            let expected = "`a`: a/src/lib.rs has tests that do not run; remove `test = false` from its manifest";
            assert_eq!(found(text, false).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn without_tests_no_test_binary_is_built() {
        for text in [
            "",
            "// #[test]\nfn test() {}\nfn f(test: u8) -> [u8; 1] { g(test); [test] }",
        ] {
            assert_eq!(found(text, false), None, "{text}");
            let expected = "`a`: a/src/lib.rs has no tests; give it `test = false` in its manifest, so that no test binary is built";
            assert_eq!(found(text, true).as_deref(), Some(expected), "{text}");
        }
    }
}
