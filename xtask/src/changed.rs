//! What changed since the commit that HEAD shares with `main`, uncommitted files included.

use std::collections::BTreeSet;

use crate::layout::packages::{self, Dependency, Package};
use crate::workspace::Workspace;

/// Files that change every package.
const OF_ALL: &[&str] = &["Cargo.lock", "Cargo.toml", "clippy.toml"];

/// The folders of packages whose tests can fail after a change.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Affected {
    /// The packages that changed.
    pub(crate) changed: BTreeSet<String>,
    /// The packages that use them, directly or indirectly, and those whose tests use them directly.
    pub(crate) users: BTreeSet<String>,
}

/// The packages that a change affects.
///
/// # Errors
///
/// When git or cargo cannot list the files or packages.
pub(crate) fn packages(workspace: &Workspace) -> Result<Affected, String> {
    let committed = workspace.git(&["diff", "--name-only", &workspace.base()])?;
    let new = workspace.git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<&str> = committed.lines().chain(new.lines()).collect();
    Ok(affected(&packages::read(workspace)?, &files))
}

/// The packages that have one of the `files`, and those that use them.
fn affected(packages: &[Package], files: &[&str]) -> Affected {
    let is_all = files.iter().any(|file| OF_ALL.contains(file));
    let has_file = |package: &&Package| {
        files
            .iter()
            .any(|file| owner(packages, file) == Some(package.folder()))
    };
    let (changed, others): (Vec<_>, Vec<_>) = packages
        .iter()
        .partition(|package| is_all || has_file(package));
    let names = changed.iter().map(|package| package.name.as_str());
    let mut names: BTreeSet<&str> = names.collect();
    // What only the tests of a package use changes nothing for the users of that package.
    let tested = users_of(packages, &names, Dependency::is_for_tests);
    loop {
        let before = names.len();
        let users = users_of(packages, &names, |dependency| !dependency.is_for_tests());
        names.extend(users);
        if names.len() == before {
            break;
        }
    }
    names.extend(tested);
    let users = others.into_iter().filter(|it| names.contains(&*it.name));
    let folder = |package: &Package| package.folder().to_owned();
    Affected {
        users: users.map(folder).collect(),
        changed: changed.into_iter().map(folder).collect(),
    }
}

/// The packages with a dependency that `counts` on one of `names`.
fn users_of<'p>(
    packages: &'p [Package],
    names: &BTreeSet<&str>,
    counts: impl Fn(&Dependency) -> bool,
) -> Vec<&'p str> {
    let uses = |package: &&Package| {
        let mut dependencies = package.dependencies.iter();
        dependencies.any(|it| counts(it) && names.contains(&*it.name))
    };
    let users = packages.iter().filter(uses);
    users.map(|package| package.name.as_str()).collect()
}

/// The innermost folder of a package that has `file`.
fn owner<'a>(packages: &'a [Package], file: &str) -> Option<&'a str> {
    let folders = packages.iter().map(Package::folder);
    let owners = folders.filter(|folder| {
        let inside = file.strip_prefix(folder);
        inside.is_some_and(|inside| inside.starts_with('/'))
    });
    owners.max_by_key(|folder| folder.len())
}
