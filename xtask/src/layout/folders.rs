//! Imports between the folders of one crate: no circles, and down a list of layers where a crate has one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules::{Import, Modules, Sources};
use crate::outcome::no_findings;
use crate::workspace::Workspace;

use super::packages::Package;

/// The folders (or files) directly below `src` of a crate, top first. A file imports from its own layer and from
/// those below it.
const LAYERS: &[(&str, &[&str])] = &[(
    "mcp-vary-gateway",
    &[
        "fuzzing",
        "frontend",
        "reload",
        "upstream_variants",
        "report",
        "status",
        "gateway",
        "pipeline",
        "subscriptions",
        "tasks",
        "mrtr",
        "pool",
        "session",
        "authentication",
        "audit",
        "settings",
    ],
)];

/// The imports between the files of one crate, outside its tests.
#[derive(Debug, Default)]
struct Imports {
    imports: BTreeSet<Import>,
    /// The folder of each file.
    folders: BTreeMap<String, String>,
}

/// No import is part of a circle between files of different folders.
pub(super) fn circles(workspace: &Workspace, packages: &[Package]) -> Result<(), String> {
    let sources = workspace.rust_sources()?;
    let crates = packages.iter();
    let findings: Vec<String> = crates
        .flat_map(|package| imports(&sources, &package.roots()).circles())
        .collect();
    no_findings(&findings)
}

/// The imports of each crate with layers go down its list.
pub(super) fn layers(workspace: &Workspace, packages: &[Package]) -> Result<(), String> {
    let sources = workspace.rust_sources()?;
    let mut findings = Vec::new();
    for (name, layers) in LAYERS {
        let Some(package) = packages.iter().find(|package| package.name == *name) else {
            findings.push(format!(
                "`{name}` has layers in xtask/src/layout/folders.rs, but is not a package; delete them"
            ));
            continue;
        };
        let roots = package.roots();
        findings.extend(imports(&sources, &roots).upward(layers, &roots));
    }
    no_findings(&findings)
}

/// The imports of the targets whose crate roots are `roots`.
fn imports(sources: &Sources, roots: &[String]) -> Imports {
    let mut all = Imports::default();
    for root in roots {
        let modules = Modules::read(sources, root);
        all.imports.extend(modules.imports());
        for file in &modules.files {
            let folder = folder(sources, root, &file.path);
            all.folders.insert(file.path.clone(), folder);
        }
    }
    all
}

/// The folder that holds a file. `name.rs` beside a folder `name` belongs to that folder.
fn folder(sources: &Sources, root: &str, path: &str) -> String {
    let folder = path.strip_suffix(".rs").unwrap_or(path);
    let inside = format!("{folder}/");
    let has_folder = sources
        .range(inside.clone()..)
        .next()
        .is_some_and(|(next, _)| next.starts_with(&inside));
    if has_folder && path != root {
        return folder.to_owned();
    }
    let parent = Path::new(path).parent().unwrap_or(Path::new(""));
    parent.to_string_lossy().into_owned()
}

impl Imports {
    /// The imports between different folders that are part of a circle.
    fn circles(&self) -> Vec<String> {
        let files: Vec<&str> = self.folders.keys().map(String::as_str).collect();
        let index: BTreeMap<&str, usize> = files.iter().copied().zip(0..).collect();
        let mut edges = vec![BTreeSet::new(); files.len()];
        for import in &self.imports {
            edges[index[&*import.from]].insert(index[&*import.to]);
        }
        let reached: Vec<Vec<bool>> = (0..files.len()).map(|file| reach(&edges, file)).collect();
        let mut findings = Vec::new();
        for import in &self.imports {
            let (from, to) = (&self.folders[&import.from], &self.folders[&import.to]);
            let is_circle = reached[index[&*import.to]][index[&*import.from]];
            if from == to || !is_circle {
                continue;
            }
            findings.push(format!(
                "{}:{}: imports {}, which leads back here: a circle between folders",
                import.from, import.line, import.to
            ));
        }
        findings
    }

    /// The imports that go up the list of layers, and the layers that are not in it.
    fn upward(&self, layers: &[&str], roots: &[String]) -> Vec<String> {
        let mut findings = BTreeSet::new();
        let place = |path: &str| {
            let layer = layer(path)?;
            layers.iter().position(|it| *it == layer)
        };
        for path in self.folders.keys().filter(|path| !roots.contains(path)) {
            if let (None, Some(layer)) = (place(path), layer(path)) {
                findings.insert(format!(
                    "{path}: `{layer}` is not a layer; add it to the list of its crate in xtask/src/layout/folders.rs"
                ));
            }
        }
        for import in self.imports.iter().filter(|it| !roots.contains(&it.from)) {
            let Import { from, to, line } = import;
            if roots.contains(to) {
                findings.insert(format!(
                    "{from}:{line}: imports from {to}, which is above all layers; import from the module that defines it"
                ));
            } else if let (Some(above), Some(below)) = (place(from), place(to))
                && below < above
            {
                findings.insert(format!(
                    "{from}:{line}: imports {to}, but `{}` is below `{}`",
                    layers[above], layers[below]
                ));
            }
        }
        findings.into_iter().collect()
    }
}

/// The folder or file directly below `src`.
fn layer(path: &str) -> Option<&str> {
    let (_, inside) = path.split_once("/src/")?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// Which files can be reached from `start`; `start` itself only through others.
fn reach(edges: &[BTreeSet<usize>], start: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut waiting = vec![start];
    while let Some(file) = waiting.pop() {
        for next in &edges[file] {
            if !reached[*next] {
                reached[*next] = true;
                waiting.push(*next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Imports {
        let sources: Sources = files
            .iter()
            .map(|(path, text)| (format!("x/src/{path}"), (*text).to_owned()))
            .collect();
        imports(&sources, &["x/src/lib.rs".to_owned()])
    }

    #[test]
    fn a_circle_between_folders_is_reported_from_both_sides() {
        let imports = read(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "mod one;"),
            ("a/one.rs", "\nuse crate::b::two::X;"),
            ("b.rs", "mod two;"),
            ("b/two.rs", "fn f() { crate::a::one::g(); }"),
            ("c.rs", "use crate::a::one::X;"),
        ]);
        assert_eq!(
            imports.circles(),
            [
                "x/src/a/one.rs:2: imports x/src/b/two.rs, which leads back here: a circle between folders",
                "x/src/b/two.rs:1: imports x/src/a/one.rs, which leads back here: a circle between folders",
            ]
        );
    }

    #[test]
    fn a_long_way_round_is_a_circle() {
        let imports = read(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "use crate::b::X;"),
            ("b.rs", "use crate::c::X;"),
            ("c.rs", "use crate::a::X;"),
        ]);
        assert_eq!(imports.circles().len(), 2);
    }

    #[test]
    fn files_of_one_folder_may_import_each_other() {
        let imports = read(&[
            ("lib.rs", "mod a; pub use a::X;"),
            ("a.rs", "mod one; use self::one::Y;"),
            (
                "a/one.rs",
                "use super::X; #[cfg(test)] mod tests { use crate::b::X; }",
            ),
        ]);
        assert!(imports.circles().is_empty());
    }

    #[test]
    fn layers_import_downwards_only() {
        let files = [
            ("lib.rs", "mod top; mod low; mod other; pub use low::X;"),
            ("top/mod.rs", "use crate::low::X;"),
            ("low.rs", "use crate::top::X;\nuse crate::X;"),
            ("other.rs", ""),
        ];
        let findings = read(&files).upward(&["top", "low"], &["x/src/lib.rs".to_owned()]);
        assert_eq!(
            findings,
            [
                "x/src/low.rs:1: imports x/src/top/mod.rs, but `low` is below `top`",
                "x/src/low.rs:2: imports from x/src/lib.rs, which is above all layers; import from the module that defines it",
                "x/src/other.rs: `other` is not a layer; add it to the list of its crate in xtask/src/layout/folders.rs",
            ]
        );
    }
}
