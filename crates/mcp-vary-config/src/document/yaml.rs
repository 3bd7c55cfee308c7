//! Parses one YAML 1.2 document with the position of each value.
//!
//! Aliases are expanded, up to a maximum size. `<<` merges tables: most YAML programs support it, although YAML 1.2
//! dropped it.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::{DEEPEST, Diagnostic, Entry, Node, Position, Value};

/// Parses one document. An empty file is an empty table.
pub(super) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    if text.starts_with("#!") {
        let what = "the file begins with `#!`, so it is a program and not a configuration";
        let diagnostic = Diagnostic::new(Position::START, "", what);
        return Err(vec![diagnostic.with_fix("name a file with `servers`")]);
    }
    let mut tree = Tree::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let outcome = match event {
            Ok((event, span)) => tree.take(event, span),
            Err(error) => Err(mistake(text, &error.info(), position(*error.marker()))),
        };
        outcome.map_err(|diagnostic| vec![diagnostic])?;
    }
    Ok(tree.root.unwrap_or(Node {
        at: Position::START,
        value: Value::Table(Vec::new()),
    }))
}

/// What the parser means by `info` at the position `at` of `text`, and where the mistake is.
fn mistake(text: &str, info: &str, at: Position) -> Diagnostic {
    let line_at = |line: usize| text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    if info.contains("found a tab")
        && let Some(at) = indenting_tab(text, at.line)
    {
        return Diagnostic::new(at, "", INDENTED_WITH_TAB).with_fix(WITH_SPACES);
    }
    // A key without a space after its colon is text, which goes on in the next line.
    let above = line_at(at.line.saturating_sub(1));
    if info.contains("mapping values are not allowed")
        && at.line > 1
        && let Some(key) = key_without_space(above)
    {
        let column = above.len() - above.trim_start().len() + 1;
        let line = at.line - 1;
        let at = Position { line, column };
        return Diagnostic::new(at, "", format!("`{key}:` has no space after the colon"))
            .with_fix(format!("write `{key}: ...`"));
    }
    let mistake = Mistake::of(info, line_at(at.line), at.column);
    Diagnostic::new(at, "", mistake.what).with_fix(mistake.fix)
}

/// The first tab with which a line is indented, from line `first` on.
fn indenting_tab(text: &str, first: usize) -> Option<Position> {
    let mut lines = (1..).zip(text.lines()).skip(first.saturating_sub(1));
    lines.find_map(|(line, text)| {
        let tab = text.trim_start_matches(' ').starts_with('\t');
        let column = text.find('\t')? + 1;
        tab.then_some(Position { line, column })
    })
}

const INDENTED_WITH_TAB: &str = "the line is indented with a tab";
const WITH_SPACES: &str = "indent with spaces, not with tabs";

/// Why a text is not YAML, in words for people who do not know how it is parsed.
struct Mistake {
    what: String,
    fix: &'static str,
}

impl Mistake {
    /// What the parser means by `info` in column `column` of `source_line`. Of that, which may have a secret, only the key is
    /// shown.
    fn of(info: &str, source_line: &str, column: usize) -> Self {
        let has = |part: &str| info.contains(part);
        let key = key_of(source_line);
        let before: String = source_line.chars().take(column.saturating_sub(1)).collect();
        let (what, fix) = match key {
            Some(key) if has("mapping values are not allowed") && before.contains(": ") => (
                format!("`{key}:` has a second `: ` in its value"),
                "put the value into quotes",
            ),
            Some(key) if has("mapping values are not allowed") => (
                format!(
                    "`{key}:` is indented more than the key above it, which has a value already"
                ),
                "indent both alike",
            ),
            Some(key) if has("did not find expected key") => (
                format!(
                    "`{key}:` is indented neither like the keys above it nor like those around them"
                ),
                "indent all keys of one table alike",
            ),
            None if has("did not find expected key") => (
                "the line does not belong to the key above it, which has a value already"
                    .to_owned(),
                "write the items of a list below a key without a value, each after `- `",
            ),
            _ if has("did not find expected ','") || has("illegal placement of ':'") => (
                "a `,` or a closing bracket is missing just before".to_owned(),
                "look at the brackets of this line and the one above",
            ),
            _ if has("unknown anchor") => (
                info.to_owned(),
                "put text that begins with `*` into quotes, as in \"*delete*\"",
            ),
            _ if has("unexpected character") => (
                info.to_owned(),
                "put text that begins with a special character into quotes, as in \"@scope/name\"",
            ),
            _ if has("hexadecimal") || has("escape character") => (
                info.to_owned(),
                "in double quotes, `\\` begins an escape: use single quotes, as in 'C:\\Users'",
            ),
            _ if has("quoted scalar") => (
                "a quotation mark opens above, and the text does not end in its line".to_owned(),
                "write the closing quotation mark",
            ),
            _ if has("tabs disallowed") => (INDENTED_WITH_TAB.to_owned(), WITH_SPACES),
            _ => (
                format!("is not YAML: {info}"),
                "look at quotes, brackets, colons and indentation just before",
            ),
        };
        Self { what, fix }
    }
}

/// The intended key of a `text` such as `command:uvx`, where a space after the colon is missing. Its value may be secret.
pub(crate) fn key_without_space(text: &str) -> Option<&str> {
    let key = key_of(text)?;
    let (_, value) = text.split_once(':')?;
    let is_value = !value.is_empty() && !value.starts_with(char::is_whitespace);
    let is_item = text.trim_start().starts_with('-');
    (is_value && !is_item && !value.starts_with("//")).then_some(key)
}

/// The key with which a line begins.
fn key_of(source_line: &str) -> Option<&str> {
    let (key, _) = source_line
        .trim_start()
        .trim_start_matches("- ")
        .split_once(':')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!key.is_empty() && key.len() <= LONGEST_KEY && key.chars().all(is_plain)).then_some(key)
}

/// Longer words at the beginning of a line may be anything but keys.
const LONGEST_KEY: usize = 40;

fn position(marker: granit_parser::Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// The tree under construction.
#[derive(Default)]
struct Tree {
    /// The open lists and tables, outermost first.
    open: Vec<Open>,
    /// The nodes with anchors, by the parser's number.
    anchors: BTreeMap<usize, Node>,
    /// The number of bytes of all expanded aliases.
    expanded: usize,
    documents: usize,
    root: Option<Node>,
}

/// A list or table whose end was not reached yet.
struct Open {
    at: Position,
    anchor: usize,
    is_table: bool,
    items: Vec<Node>,
    entries: Vec<Entry>,
    key: Option<(String, Position)>,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        let at = position(span.start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(
                        Diagnostic::new(at, "", "a second document begins").with_fix("keep one")
                    );
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = check_tag(tag.as_deref(), at)?;
                let value = if is_text || style != ScalarStyle::Plain {
                    Value::Text(text.into_owned())
                } else {
                    plain(&text)
                };
                self.put(Node { at, value }, anchor)?;
            }
            Event::SequenceStart(_, anchor, tag) => self.open(false, at, anchor, tag.as_deref())?,
            Event::MappingStart(_, anchor, tag) => self.open(true, at, anchor, tag.as_deref())?,
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Alias(anchor) => {
                let node = self.expand_alias(anchor, at)?;
                self.put(node, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open(
        &mut self,
        is_table: bool,
        at: Position,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), Diagnostic> {
        check_tag(tag, at)?;
        if self.expects_key() {
            return Err(
                Diagnostic::new(at, "", "a key is a list or a table").with_fix("keys are text")
            );
        }
        self.open.push(Open {
            at,
            anchor,
            is_table,
            items: Vec::new(),
            entries: Vec::new(),
            key: None,
        });
        Ok(())
    }

    fn expects_key(&self) -> bool {
        let last = self.open.last();
        last.is_some_and(|open| open.is_table && open.key.is_none())
    }

    fn close(&mut self) -> Result<(), Diagnostic> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = if open.is_table {
            Value::Table(merged(open.entries)?)
        } else {
            Value::List(open.items)
        };
        self.put(Node { at: open.at, value }, open.anchor)
    }

    /// Adds a finished node to its parent.
    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            self.spend(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        if !open.is_table {
            open.items.push(node);
        } else if let Some((key, at)) = open.key.take() {
            open.entries.push(Entry { key, at, node });
        } else {
            let key = match node.value {
                Value::Text(text) | Value::Scalar(text) => text,
                Value::Null => String::new(),
                Value::List(_) | Value::Table(_) => {
                    let diagnostic = Diagnostic::new(node.at, "", "a key is a list or a table");
                    return Err(diagnostic.with_fix("keys are text"));
                }
            };
            open.key = Some((key, node.at));
        }
        Ok(())
    }

    fn expand_alias(&mut self, anchor: usize, at: Position) -> Result<Node, Diagnostic> {
        let Some(node) = self.anchors.get(&anchor) else {
            let diagnostic =
                Diagnostic::new(at, "", "an alias is inside of the value that it names");
            return Err(diagnostic.with_fix("write out what it means"));
        };
        let copy = node.clone();
        self.spend(&copy)?;
        Ok(copy)
    }

    fn spend(&mut self, node: &Node) -> Result<(), Diagnostic> {
        self.expanded += weight(node);
        if self.expanded <= MOST_REPEATED {
            return Ok(());
        }
        let what = "anchors and aliases would be more than 8 MiB written out";
        Err(Diagnostic::new(node.at, "", what).with_fix("repeat less"))
    }
}

/// The approximate size of `node` in bytes.
fn weight(node: &Node) -> usize {
    size_of::<Entry>()
        + match &node.value {
            Value::Null => 0,
            Value::Scalar(text) | Value::Text(text) => text.len(),
            Value::List(items) => items.iter().map(weight).sum(),
            Value::Table(entries) => entries
                .iter()
                .map(|entry| entry.key.len() + weight(&entry.node))
                .sum(),
        }
}

/// Merges the entries of the tables under `<<`. Existing keys take precedence.
fn merged(entries: Vec<Entry>) -> Result<Vec<Entry>, Diagnostic> {
    let (merges, mut merged): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| entry.key == "<<");
    let mut keys: BTreeSet<String> = merged.iter().map(|entry| entry.key.clone()).collect();
    for merge in merges {
        let tables = match merge.node.value {
            Value::List(items) => items,
            value => vec![Node {
                at: merge.node.at,
                value,
            }],
        };
        for table in tables {
            let Value::Table(entries) = table.value else {
                let diagnostic = Diagnostic::new(table.at, "", "`<<` merges tables only");
                return Err(diagnostic.with_fix("write an alias of a table"));
            };
            for entry in entries {
                if keys.insert(entry.key.clone()) {
                    merged.push(entry);
                }
            }
        }
    }
    Ok(merged)
}

/// Whether the tag declares a scalar as text.
fn check_tag(tag: Option<&Tag>, at: Position) -> Result<bool, Diagnostic> {
    let Some(tag) = tag else { return Ok(false) };
    match tag.core_suffix() {
        Some("str") => Ok(true),
        Some("int" | "float" | "bool" | "null" | "seq" | "map") => Ok(false),
        _ => {
            let what = format!("the tag `{}` means nothing here", tag.original());
            Err(Diagnostic::new(at, "", what).with_fix("leave it out"))
        }
    }
}

/// Converts a scalar without quotes by the core schema of YAML 1.2: `no` and `off` are text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Value::Scalar(text.to_owned()),
        _ if is_number(text) => Value::Scalar(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}

/// The maximum number of bytes of expanded aliases. The file itself has at most 1 MiB.
const MOST_REPEATED: usize = 8 << 20;
