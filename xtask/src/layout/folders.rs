//! Imports between the files of one crate: no circles, and down a list of layers where a crate has one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules::{Import, Modules, Sources};
use crate::outcome::no_findings;
use crate::workspace::Workspace;

use super::packages::{Package, RULES};

/// The imports between the files of one crate, outside its tests.
#[derive(Debug, Default)]
struct Imports {
    imports: BTreeSet<Import>,
    /// The folder of each file.
    folders: BTreeMap<String, String>,
}

/// No import is part of a circle between files.
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
    for (name, layers) in &RULES.layers {
        let Some(package) = packages.iter().find(|package| package.name == *name) else {
            findings.push(format!(
                "`{name}` has layers in xtask/src/layout/packages.yaml, but is not a package; delete them"
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
    /// The imports that are part of a circle, between folders or between files.
    fn circles(&self) -> Vec<String> {
        let between_folders = self.reached(|_| true);
        let between_files = self.reached(|import| !is_upward(import));
        let leads_back =
            |reached: &Reached<'_>, import: &Import| reached[&*import.to].contains(&*import.from);
        let circles = self.imports.iter().filter(|import| {
            let is_inside = self.folders[&import.from] == self.folders[&import.to];
            !is_inside && leads_back(&between_folders, import)
                || !is_upward(import) && leads_back(&between_files, import)
        });
        let findings = circles.map(|Import { from, to, line }| {
            format!("{from}:{line}: imports {to}, which leads back here: a circle")
        });
        findings.collect()
    }

    /// The files that each file reaches by some of the imports.
    fn reached(&self, is_followed: impl Fn(&Import) -> bool) -> Reached<'_> {
        let mut edges: Reached<'_> = Reached::new();
        for import in self.imports.iter().filter(|import| is_followed(import)) {
            edges.entry(&import.from).or_default().insert(&import.to);
        }
        let files = self.folders.keys().map(String::as_str);
        files.map(|file| (file, reach(&edges, file))).collect()
    }

    /// The imports that go up the list of layers, and the layers that are not in it.
    fn upward(&self, layers: &[String], roots: &[String]) -> Vec<String> {
        let mut findings = BTreeSet::new();
        let place = |path: &str| {
            let layer = layer(path)?;
            layers.iter().position(|it| *it == layer)
        };
        for path in self.folders.keys().filter(|path| !roots.contains(path)) {
            if let (None, Some(layer)) = (place(path), layer(path)) {
                findings.insert(format!(
                    "{path}: `{layer}` is not a layer; add it to the list of its crate in xtask/src/layout/packages.yaml"
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

/// The files behind each file.
type Reached<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Which files can be reached from `start`; `start` itself only through others.
fn reach<'a>(edges: &Reached<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(file) = waiting.pop() {
        for next in edges.get(file).into_iter().flatten().copied() {
            if reached.insert(next) {
                waiting.push(next);
            }
        }
    }
    reached
}

/// Whether a file imports from the file of the module around it, which declares it and so names it, too.
fn is_upward(import: &Import) -> bool {
    let mut ends = ["/lib.rs", "/main.rs", ".rs"].into_iter();
    let module = ends.find_map(|end| import.to.strip_suffix(end));
    module.is_some_and(|module| import.from.starts_with(&format!("{module}/")))
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
    fn a_circle_is_reported_from_both_sides() {
        let imports = read(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "mod one;"),
            ("a/one.rs", "\nuse crate::b::two::X;"),
            ("b.rs", "mod two;"),
            ("b/two.rs", "fn f() { crate::a::one::g(); }"),
            ("c.rs", "use crate::a::one::X;"),
        ]);
        assert_eq!(
            imports.circles(),
            [
                "x/src/a/one.rs:2: imports x/src/b/two.rs, which leads back here: a circle",
                "x/src/b/two.rs:1: imports x/src/a/one.rs, which leads back here: a circle",
            ]
        );
    }

    #[test]
    fn a_long_way_round_is_a_circle() {
        let imports = read(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::c::X;"),
            ("c.rs", "use crate::a::X;"),
        ]);
        assert_eq!(imports.circles().len(), 3);
    }

    #[test]
    fn only_a_module_and_its_children_may_import_each_other() {
        let module = "use self::one::Y; mod one; mod two;";
        let imports = read(&[
            ("lib.rs", "mod a; pub use a::X;"),
            ("a.rs", module),
            (
                "a/one.rs",
                "use super::X; #[cfg(test)] mod tests { use super::super::two::X; }",
            ),
            ("a/two.rs", ""),
        ]);
        assert!(imports.circles().is_empty());
        let imports = read(&[
            ("lib.rs", "mod a;"),
            ("a.rs", module),
            ("a/one.rs", "use super::two::X;"),
            ("a/two.rs", "use super::one::X;"),
        ]);
        assert_eq!(imports.circles().len(), 2);
    }

    #[test]
    fn layers_import_downwards_only() {
        let files = [
            ("lib.rs", "mod top; mod low; mod other; pub use low::X;"),
            ("top.rs", "use crate::low::X;"),
            ("low.rs", "use crate::top::X;\nuse crate::X;"),
            ("other.rs", ""),
        ];
        let findings = read(&files).upward(
            &["top", "low"].map(str::to_owned),
            &["x/src/lib.rs".to_owned()],
        );
        assert_eq!(
            findings,
            [
                "x/src/low.rs:1: imports x/src/top.rs, but `low` is below `top`",
                "x/src/low.rs:2: imports from x/src/lib.rs, which is above all layers; import from the module that defines it",
                "x/src/other.rs: `other` is not a layer; add it to the list of its crate in xtask/src/layout/packages.yaml",
            ]
        );
    }
}
