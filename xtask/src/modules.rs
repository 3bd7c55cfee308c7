//! The modules of one target and the files that hold them, from `mod` declarations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::rust::{self, Token, text_at};

/// Source texts by their path in the workspace.
pub(crate) type Sources = BTreeMap<String, String>;

/// The lines of a source file, each with whether it is of tests: `#[cfg(test)]` and the item after it. Tests with a body
/// are the end of a file.
pub(crate) fn lines(text: &str) -> Vec<(&str, bool)> {
    let is_attribute = |line: &str| line.starts_with("#[cfg(test)]");
    let (mut is_after, mut is_in_body) = (false, false);
    let lines = text.lines().map(|line| {
        is_in_body |= is_after && !line.ends_with(';');
        let is_test = is_in_body || is_after || is_attribute(line);
        is_after = is_attribute(line);
        (line, is_test)
    });
    lines.collect()
}

/// A module: a file, or a block `mod name { … }` of one.
#[derive(Debug)]
pub(crate) struct Module {
    parent: Option<ModuleIndex>,
    children: BTreeMap<String, ModuleIndex>,
    file: FileIndex,
}

/// A file that a target reaches outside its tests.
#[derive(Debug)]
pub(crate) struct File<'a> {
    pub(crate) path: String,
    pub(crate) tokens: Vec<Token<'a>>,
    /// The module that each token is in.
    scopes: Vec<ModuleIndex>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ModuleIndex(usize);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct FileIndex(usize);

/// The modules of one target.
#[derive(Debug)]
pub(crate) struct Modules<'a> {
    sources: &'a Sources,
    modules: Vec<Module>,
    pub(crate) files: Vec<File<'a>>,
}

/// One file names something in another.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The line in `from`.
    pub(crate) line: usize,
}

impl<'a> Modules<'a> {
    /// Reads the target whose crate root is the file `root`.
    pub(crate) fn read(sources: &'a Sources, root: &str) -> Self {
        let mut modules = Self {
            sources,
            modules: Vec::new(),
            files: Vec::new(),
        };
        let folder = Path::new(root).parent().unwrap_or(Path::new(""));
        modules.read_file(root, folder, None);
        modules
    }

    fn read_file(
        &mut self,
        path: &str,
        folder: &Path,
        parent: Option<ModuleIndex>,
    ) -> Option<ModuleIndex> {
        let text = self.sources.get(path)?;
        let tokens = rust::production_tokens(text);
        let file = FileIndex(self.files.len());
        self.files.push(File {
            path: path.to_owned(),
            tokens: Vec::new(),
            scopes: Vec::new(),
        });
        let module = self.add(parent, file);
        let scopes = self.read_declarations(&tokens, module, path, folder);
        self.files[file.0].tokens = tokens;
        self.files[file.0].scopes = scopes;
        Some(module)
    }

    fn add(&mut self, parent: Option<ModuleIndex>, file: FileIndex) -> ModuleIndex {
        self.modules.push(Module {
            parent,
            children: BTreeMap::new(),
            file,
        });
        ModuleIndex(self.modules.len() - 1)
    }

    /// Reads the files that `tokens` declare, and returns the module of each token.
    fn read_declarations(
        &mut self,
        tokens: &[Token<'a>],
        module: ModuleIndex,
        path: &str,
        folder: &Path,
    ) -> Vec<ModuleIndex> {
        let mut scopes = Vec::with_capacity(tokens.len());
        let mut open = vec![(module, folder.to_path_buf(), 0)];
        let mut depth = 0;
        for (index, token) in tokens.iter().enumerate() {
            let scope = open.last().map_or(module, |(scope, ..)| *scope);
            scopes.push(scope);
            match (token.text, text_at(tokens, index + 2)) {
                ("mod", end @ (";" | "{")) if tokens[index + 1].is_word() => {
                    let name = tokens[index + 1].text;
                    let folder = open
                        .last()
                        .map_or(folder, |(_, folder, _)| folder)
                        .to_path_buf();
                    if end == "{" {
                        let file = self.modules[scope.0].file;
                        let inner = self.add(Some(scope), file);
                        self.modules[scope.0]
                            .children
                            .insert(name.to_owned(), inner);
                        open.push((inner, folder.join(name), depth + 1));
                    } else if let Some(child) =
                        self.read_child(name, path_attribute(tokens, index), path, &folder, scope)
                    {
                        self.modules[scope.0]
                            .children
                            .insert(name.to_owned(), child);
                    }
                }
                ("{", _) => depth += 1,
                ("}", _) => {
                    if open.len() > 1 && open.last().is_some_and(|(_, _, at)| *at == depth) {
                        open.pop();
                    }
                    depth -= 1;
                }
                _ => {}
            }
        }
        scopes
    }

    fn read_child(
        &mut self,
        name: &str,
        path_attribute: Option<&str>,
        path: &str,
        folder: &Path,
        parent: ModuleIndex,
    ) -> Option<ModuleIndex> {
        if let Some(relative) = path_attribute {
            let beside = Path::new(path).parent().unwrap_or(Path::new(""));
            let file = normalized(&beside.join(relative));
            let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
            return self.read_file(&file.to_string_lossy(), &folder, Some(parent));
        }
        let file = folder.join(format!("{name}.rs"));
        self.read_file(&file.to_string_lossy(), &folder.join(name), Some(parent))
    }

    /// Everything that a file names of another: by `use`, and by paths in code that start at a known module.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let mut imports = BTreeSet::new();
        for file in &self.files {
            for (path, index) in paths(&file.tokens) {
                let Some(to) = self.resolve(file.scopes[index], &path) else {
                    continue;
                };
                let to = &self.files[to.0].path;
                if *to != file.path {
                    imports.insert(Import {
                        from: file.path.clone(),
                        to: to.clone(),
                        line: file.tokens[index].line,
                    });
                }
            }
        }
        imports
    }

    /// The file of the innermost module that `path` names, seen from the module `scope`.
    fn resolve(&self, scope: ModuleIndex, path: &[&str]) -> Option<FileIndex> {
        let mut module = scope;
        let mut segments = path.iter().peekable();
        match **segments.peek()? {
            "crate" => {
                module = ModuleIndex(0);
                segments.next();
            }
            "self" => {
                segments.next();
            }
            "super" => {
                while segments.next_if(|segment| **segment == "super").is_some() {
                    module = self.modules[module.0].parent?;
                }
            }
            first => {
                self.modules[scope.0].children.get(first)?;
            }
        }
        for segment in segments {
            match self.modules[module.0].children.get(*segment) {
                Some(child) => module = *child,
                None => break,
            }
        }
        Some(self.modules[module.0].file)
    }
}

/// The value of `#[path = "…"]` in front of the `mod` at `index`.
fn path_attribute<'a>(tokens: &[Token<'a>], index: usize) -> Option<&'a str> {
    let start = index.saturating_sub(12);
    let before = &tokens[start..index];
    let at = before
        .iter()
        .rposition(|token| matches!(token.text, ";" | "}"));
    let before = &before[at.map_or(0, |at| at + 1)..];
    let at = before.windows(3).position(|window| {
        window[0].text == "path" && window[1].text == "=" && window[2].text.starts_with('"')
    })?;
    before[at + 2].as_string()
}

fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The paths in `tokens`, each with the index of the token that it is reported at.
fn paths<'a>(tokens: &[Token<'a>]) -> Vec<(Vec<&'a str>, usize)> {
    let mut paths = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if tokens[index].text == "use" {
            index = use_tree(tokens, index + 1, &[], &mut paths);
            continue;
        }
        if starts_path(tokens, index) {
            let (path, end) = segments(tokens, index);
            paths.push((path, index));
            index = end;
            continue;
        }
        index += 1;
    }
    paths
}

/// Whether a path with several segments starts at `index`, other than the one of `pub(in path)`.
fn starts_path(tokens: &[Token<'_>], index: usize) -> bool {
    let before = index.checked_sub(1).map_or("", |at| tokens[at].text);
    tokens[index].is_word()
        && text_at(tokens, index + 1) == "::"
        && !matches!(before, "::" | "." | "in")
}

/// The segments of the path that starts at `index`, and the index after it.
fn segments<'a>(tokens: &[Token<'a>], mut index: usize) -> (Vec<&'a str>, usize) {
    let mut segments = vec![tokens[index].text];
    index += 1;
    while text_at(tokens, index) == "::" && tokens.get(index + 1).is_some_and(Token::is_word) {
        segments.push(tokens[index + 1].text);
        index += 2;
    }
    (segments, index)
}

/// Reads one tree of a `use` from `index` on, and returns the index of what ends it.
fn use_tree<'a>(
    tokens: &[Token<'a>],
    mut index: usize,
    prefix: &[&'a str],
    paths: &mut Vec<(Vec<&'a str>, usize)>,
) -> usize {
    let start = index;
    let mut path = prefix.to_vec();
    loop {
        match text_at(tokens, index) {
            "::" => {
                if index == start && path.is_empty() {
                    // A name of another crate, which no module has.
                    path.push("");
                }
                index += 1;
            }
            "{" => {
                index += 1;
                while !matches!(text_at(tokens, index), "}" | ";" | "") {
                    index = use_tree(tokens, index, &path, paths);
                    if text_at(tokens, index) == "," {
                        index += 1;
                    }
                }
                return index + 1;
            }
            "as" => index += 2,
            "*" => index += 1,
            "," | "}" | ";" | "" => {
                if index > start {
                    paths.push((path, start));
                }
                return index;
            }
            "self" if !path.is_empty() => index += 1,
            word => {
                path.push(word);
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Sources = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let modules = Modules::read(&sources, files[0].0);
        modules
            .imports()
            .into_iter()
            .map(|it| format!("{}:{} -> {}", it.from, it.line, it.to))
            .collect()
    }

    #[test]
    fn uses_lead_to_the_file_of_the_innermost_module() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\npub use a::inner::X;"),
            ("src/a.rs", "mod inner;\nuse super::b::{self, Y};"),
            (
                "src/a/inner.rs",
                "use crate::{a::Z, b::*};\nuse super::super::b;",
            ),
            (
                "src/b.rs",
                "use std::fmt;\nuse self::c::D; mod c { use super::super::a::Z; }",
            ),
        ];
        let expected = [
            "src/a.rs:2 -> src/b.rs",
            "src/a/inner.rs:1 -> src/a.rs",
            "src/a/inner.rs:1 -> src/b.rs",
            "src/a/inner.rs:2 -> src/b.rs",
            "src/b.rs:2 -> src/a.rs",
            "src/lib.rs:3 -> src/a/inner.rs",
        ];
        assert_eq!(imports(&files), expected);
    }

    #[test]
    fn paths_in_code_count_and_those_in_comments_and_tests_do_not() {
        let files = [
            (
                "src/main.rs",
                "mod a;\nmod b;\nuse ::a::X; fn main() { b::run(); }",
            ),
            (
                "src/a.rs",
                "// crate::b\n/// [`crate::b`]\npub(in crate::b) fn f() { crate::b::g::<u8>(\"crate::b\"); }\n\
                 #[cfg(test)]\nmod tests { use crate::b; }",
            ),
            ("src/b.rs", ""),
        ];
        let expected = ["src/a.rs:3 -> src/b.rs", "src/main.rs:3 -> src/b.rs"];
        assert_eq!(imports(&files), expected);
    }

    #[test]
    fn a_path_attribute_names_the_file() {
        let files = [
            ("x/src/lib.rs", "#[path = \"../other/b.rs\"] mod b; mod a;"),
            ("x/src/a.rs", "use crate::b::X;"),
            ("x/other/b.rs", ""),
        ];
        assert_eq!(imports(&files), ["x/src/a.rs:1 -> x/other/b.rs"]);
    }
}
