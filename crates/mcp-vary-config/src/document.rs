//! Parses YAML, JSON and TOML to a tree in which each node has its position.
//!
//! All three formats become the same [`Node`], so that the rest of the crate does not depend on the format. Values are
//! not interpreted here: a number stays the text that was written.

pub(crate) mod edit;
mod json;
mod toml;
mod yaml;

use std::collections::BTreeMap;

pub(super) use self::yaml::key_without_space;
use crate::diagnostic::{Diagnostic, Diagnostics, Position};

/// A value of the file. It does not implement `Debug`, since it may be secret.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
}

#[derive(Clone)]
pub(super) enum Value {
    Null,
    /// A number or a boolean, as written.
    Scalar(String),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<Entry>),
}

impl Node {
    /// The entries of a table; none of another value.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of another value.
    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The text as written in the file. Values of variables are not included, since they may be secret.
    pub(super) fn written(&self) -> &str {
        match &self.value {
            Value::Text(text) | Value::Scalar(text) => text,
            Value::Null | Value::List(_) | Value::Table(_) => "",
        }
    }
}

/// One key of a table and its value.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Position,
    pub(super) node: Node,
}

/// Parses the text of the file `name`, as [`read`] does.
///
/// # Errors
///
/// Those of [`read`], with the name of the file.
pub(super) fn read_file(name: &str, text: &str) -> Result<Node, Diagnostics> {
    read(name, text).map_err(|all| Diagnostics {
        file: name.to_owned(),
        all,
    })
}

/// Parses `text`. The extension of `name` selects the format: `.json` or `.jsonc`, `.toml`, else YAML.
///
/// # Errors
///
/// All syntax errors that the parser finds, and all duplicate keys.
pub(super) fn read(name: &str, text: &str) -> Result<Node, Vec<Diagnostic>> {
    if text.len() > LONGEST {
        return Err(vec![
            Diagnostic::new(Position::START, "", "the file has more than 1 MiB")
                .with_fix("a configuration is a page or two of text"),
        ]);
    }
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = if has_ending(name, ".json") || has_ending(name, ".jsonc") {
        json::read(body)
    } else if has_ending(name, ".toml") {
        toml::read(body)
    } else {
        yaml::read(body)
    }?;
    let mut twice = Vec::new();
    find_doubles(&root, "", &mut twice);
    if twice.is_empty() {
        Ok(root)
    } else {
        Err(twice)
    }
}

pub(super) fn has_ending(name: &str, ending: &str) -> bool {
    let start = name.len().saturating_sub(ending.len());
    name.get(start..)
        .is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

fn find_doubles(node: &Node, path: &str, twice: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                find_doubles(item, &format!("{path}[{index}]"), twice);
            }
        }
        Value::Table(entries) => {
            let mut seen = BTreeMap::new();
            for entry in entries {
                let path = join(path, &entry.key);
                if let Some(first) = seen.insert(entry.key.as_str(), entry.at) {
                    let what = format!("is given twice, first in line {}", first.line);
                    let diagnostic = Diagnostic::new(entry.at, path.as_str(), what);
                    twice.push(diagnostic.with_fix("keep one of them"));
                }
                find_doubles(&entry.node, &path, twice);
            }
        }
        Value::Null | Value::Scalar(_) | Value::Text(_) => {}
    }
}

/// The path of `key` in the table at `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Converts offsets in a text to positions.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
        Self {
            text,
            starts: starts.collect(),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let before = self.text.get(start..offset.min(self.text.len()));
        Position {
            line,
            column: before.map_or(0, |text| text.chars().count()) + 1,
        }
    }
}

/// The maximum size of a file in bytes. The largest known files have a hundred servers in 50 KiB.
const LONGEST: usize = 1 << 20;

/// The maximum nesting of tables and lists. A configuration needs six levels.
const DEEPEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree as text: each key and value with its place.
    fn shown(node: &Node) -> String {
        let value = match &node.value {
            Value::Null => "null".to_owned(),
            Value::Scalar(word) => word.clone(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Table(entries) => {
                let shown =
                    |entry: &Entry| format!("{}@{}={}", entry.key, entry.at, shown(&entry.node));
                let entries: Vec<String> = entries.iter().map(shown).collect();
                format!("{{{}}}", entries.join(" "))
            }
        };
        format!("{value}@{}", node.at)
    }

    #[track_caller]
    fn reads(name: &str, text: &str, expected: &str) {
        let node = read(name, text);
        let text = node.map(|node| shown(&node));
        assert_eq!(text.as_deref().map_err(Vec::as_slice), Ok(expected));
    }

    #[track_caller]
    fn refuses(name: &str, text: &str, expected: &[&str]) {
        let diagnostics = read(name, text).err().unwrap_or_default();
        let said: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn the_three_languages_give_the_same_tree() {
        let expected = |places: [&str; 8]| {
            let [root, a, table, b, list, one, two, c] = places;
            format!("{{a@{a}={{b@{b}=[1@{one} \"ü\"@{two}]@{list} c@{c}}}@{table}}}@{root}")
        };
        reads(
            "x.yaml",
            "a:\n  b: [1, \"ü\"]\n  c: true\n",
            &expected([
                "1:1",
                "1:1",
                "2:3",
                "2:3",
                "2:6",
                "2:7",
                "2:10",
                "3:3=true@3:6",
            ]),
        );
        reads(
            "x.JSON",
            "{\n \"a\": {\"b\": [1,\"ü\"], \"c\":true}\n}",
            &expected([
                "1:1",
                "2:2",
                "2:7",
                "2:8",
                "2:13",
                "2:14",
                "2:16",
                "2:22=true@2:26",
            ]),
        );
        reads(
            "x.toml",
            "[a]\nb = [1, \"ü\"]\nc = true\n",
            &expected([
                "1:1",
                "1:2",
                "1:1",
                "2:1",
                "2:5",
                "2:6",
                "2:9",
                "3:1=true@3:5",
            ]),
        );
    }

    #[test]
    fn words_stay_as_they_are_written() {
        reads(
            "x",
            "[1.10, 0x1F, -3, .5, TRUE, 1e3]",
            "[1.10@1:2 0x1F@1:8 -3@1:14 .5@1:18 TRUE@1:22 1e3@1:28]@1:1",
        );
        reads(
            "x",
            "['1', 1.2.3, inf, off, ~, !!str 7]",
            "[\"1\"@1:2 \"1.2.3\"@1:7 \"inf\"@1:14 \"off\"@1:19 null@1:24 \"7\"@1:33]@1:1",
        );
        reads(
            "x.toml",
            "a = 0x1F\nb = 1979-05-27",
            "{a@1:1=31@1:5 b@2:1=1979-05-27@2:5}@1:1",
        );
        reads("x.json", "[-1.50e2, null]", "[-1.50e2@1:2 null@1:11]@1:1");
    }

    #[test]
    fn what_an_anchor_names_can_stand_in_several_places() {
        reads(
            "x",
            "a: &a {k: 1, l: 2}\nb:\n  <<: *a\n  l: 3\n",
            "{a@1:1={k@1:8=1@1:11 l@1:14=2@1:17}@1:7 b@2:1={l@4:3=3@4:6 k@1:8=1@1:11}@3:3}@1:1",
        );
        refuses(
            "x",
            "a: &a [*a]",
            &["1:8: an alias is inside of the value that it names; write out what it means"],
        );
        refuses(
            "x",
            "a: *b",
            &[
                "1:4: while parsing node, found unknown anchor; put text that begins with `*` into quotes, as in \"*delete*\"",
            ],
        );
        refuses(
            "x",
            "<<: 1\n",
            &["1:5: `<<` merges tables only; write an alias of a table"],
        );
    }

    #[test]
    fn aliases_of_aliases_are_refused_before_they_fill_the_memory() {
        let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        let diagnostics = read("x", &text).err().unwrap();
        assert!(
            diagnostics[0].what.contains("more than 8 MiB"),
            "{diagnostics:?}"
        );
    }

    /// VS Code and others write such files; every place stays what it is.
    #[test]
    fn comments_and_last_commas_of_json_are_passed_over() {
        let text = "// ü\n{ /* é */ \"a\": [1, // [\n 2, /* , */ ],\n  \"b\": \"// no /* comment */, ]\",\r\n}\n//";
        let expected = "{a@2:11=[1@2:17 2@3:2]@2:16 b@4:3=\"// no /* comment */, ]\"@4:8}@2:1";
        reads("x.json", text, expected);
        reads("x.jsonc", text, expected);
    }

    #[test]
    fn what_is_too_deep_or_too_long_is_refused() {
        let deep = |name: &str, open: &str, close: &str| {
            let text = format!("{}{}", open.repeat(5000), close.repeat(5000));
            assert!(read(name, &text).is_err(), "{name}");
        };
        deep("x.json", "[", "]");
        deep("x.yaml", "[", "]");
        deep("x.yaml", "- ", "");
        deep("x.toml", "a.", "b = 1");
        deep("x.toml", "a = [", "]");
        let line = format!("{}a = {{\n", "a.".repeat(60));
        let text = line.repeat(70) + "b = 1" + &"}".repeat(70);
        assert!(read("x.toml", &text).is_err());
        let text = format!("a = \"{}\" # {0}", ".".repeat(100));
        assert!(read("x.toml", &text).is_ok());
        refuses(
            "x",
            &" ".repeat(LONGEST + 1),
            &["1:1: the file has more than 1 MiB; a configuration is a page or two of text"],
        );
    }

    #[test]
    fn what_is_no_json_is_said_with_its_place() {
        let missing = "look for a comma, colon, quote or bracket that is missing just before";
        let refuses_json = |text: &str, said: &str| refuses("x.json", text, &[said]);
        refuses_json(
            "{\n  \"a\": }",
            &format!("2:8: is not JSON: expected value; {missing}"),
        );
        refuses_json(
            "{\"a\": 1, # b\n}",
            "1:10: is not JSON: a key has to begin with a double quotation mark; comments begin with `//`",
        );
        refuses_json(
            "{\"a\": \"C:\\Users\"}",
            "1:11: is not JSON: invalid escape; write `\\\\` for each backslash, as in `C:\\\\Users`",
        );
        refuses_json(
            "{'a': 1}",
            "1:2: is not JSON: a key has to begin with a double quotation mark; write `\"` for `'`",
        );
        refuses_json(
            "{\"a\": \"b,\n}",
            "1:9: is not JSON: a text goes on in the next line, or has another control character; look for a quotation mark that is missing \
             in this line",
        );
        for empty in ["", " \n", "// c"] {
            let found = read("x.json", empty).err().unwrap_or_default();
            let expected = "is not JSON: the file is empty; write `{}`, or name another file";
            assert!(found[0].to_string().ends_with(expected), "{found:?}");
        }
        refuses_json(
            "{\n  \"ü\": {\"]\": [1, {}],\n",
            "3:1: is not JSON: the file ends before the `{` in line 2, column 8 is closed; write `}}` where they are missing",
        );
        refuses_json(
            "[{\"a\":",
            "1:6: is not JSON: the file ends before the `{` in line 1, column 2 is closed; write `}]` where they are missing",
        );
        refuses_json(
            "{\"a\": 1 // }",
            "1:12: is not JSON: the file ends before the `{` in line 1, column 1 is closed; write `}` where it is missing",
        );
        refuses_json(
            "{\n\"a\": \"b}",
            "2:6: is not JSON: the text that begins here has no end; write its closing quotation mark",
        );
        refuses_json(
            "tru",
            "1:3: is not JSON: the file ends within a value; write the whole value",
        );
        refuses_json(
            "{\"ü\": 1} /* /",
            "1:10: is not JSON: a comment is not closed; write `*/` where it ends",
        );
        for text in ["[,]", "[1,,]", "{,}", "[1, 2,] ,", "{\"a\",}"] {
            assert!(read("x.json", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_said_with_its_place() {
        refuses(
            "x.yaml",
            "a: b: c\n",
            &["1:5: `a:` has a second `: ` in its value; put the value into quotes"],
        );
        refuses(
            "x.yaml",
            "a:\n\tb: 1\n",
            &["2:2: the line is indented with a tab; indent with spaces, not with tabs"],
        );
        refuses(
            "x.yaml",
            "s:\n  a:\n    c: x\n  \td: 1\n",
            &["4:3: the line is indented with a tab; indent with spaces, not with tabs"],
        );
        refuses(
            "x.yaml",
            "s:\n  a:\n    c:ghp_1\n    d: 1\n",
            &["3:5: `c:` has no space after the colon; write `c: ...`"],
        );
        refuses(
            "x.yaml",
            "a:b: c: d\n",
            &["1:7: `a:` has a second `: ` in its value; put the value into quotes"],
        );
        refuses(
            "x.yaml",
            "a: [1\nb: 2\n",
            &[
                "2:2: a `,` or a closing bracket is missing just before; look at the brackets of this line and the one above",
            ],
        );
        refuses(
            "x.yaml",
            "a: 1\n---\nb: 2\n",
            &["2:1: a second document begins; keep one"],
        );
        refuses(
            "x.yaml",
            "? [a]\n: 1\n",
            &["1:3: a key is a list or a table; keys are text"],
        );
        refuses(
            "x.yaml",
            "a: !env X",
            &["1:9: the tag `!env` means nothing here; leave it out"],
        );
    }

    /// Of a line only the key is shown: the value may be secret.
    #[test]
    fn a_mistake_in_yaml_is_named_by_the_key_of_its_line() {
        refuses(
            "x.yaml",
            "s:\n  g:\n    c: x\n   token: ghp_1\n",
            &[
                "4:4: `token:` is indented neither like the keys above it nor like those around them; indent all keys of one \
                 table alike",
            ],
        );
        refuses(
            "x.yaml",
            "s:\n  g:\n   c: x\n    token: ghp_1\n",
            &[
                "4:10: `token:` is indented more than the key above it, which has a value already; indent both alike",
            ],
        );
        refuses(
            "x.yaml",
            "s: -y\n- ghp_1\n",
            &[
                "2:3: the line does not belong to the key above it, which has a value already; write the items of a list below \
                 a key without a value, each after `- `",
            ],
        );
        refuses(
            "x.yaml",
            "a: \"b\nc: d\n",
            &[
                "2:1: a quotation mark opens above, and the text does not end in its line; write the closing quotation mark",
            ],
        );
        refuses(
            "x",
            "#!/bin/sh\necho a\n",
            &[
                "1:1: the file begins with `#!`, so it is a program and not a configuration; name a file with `servers`",
            ],
        );
    }

    #[test]
    fn what_is_no_toml_is_said_with_its_place() {
        refuses(
            "x.toml",
            "a = 1\na = 2\n",
            &["2:1: duplicate key; look at quotes, brackets and `=` just before"],
        );
        refuses(
            "x.toml",
            "a = \nb = ]\n",
            &[
                "2:5: missing array opening, expected `[`; look at quotes, brackets and `=` just before",
                "1:5: string values must be quoted, expected literal string; look at quotes, brackets and `=` just before",
            ],
        );
    }

    #[test]
    fn a_key_that_is_given_twice_is_named_with_both_lines() {
        let said = "2:4: `a.b` is given twice, first in line 1; keep one of them";
        refuses("x.json", "{\"a\": {\"b\": 1,\n   \"b\": 2}}", &[said]);
        refuses("x.yaml", "{\"a\": {\"b\": 1,\n   \"b\": 2}}", &[said]);
    }
}
