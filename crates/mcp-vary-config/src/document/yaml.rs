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
    let mut tree = Tree::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let outcome = match event {
            Ok((event, span)) => tree.take(event, span),
            Err(error) => {
                let diagnostic = Diagnostic::new(position(*error.marker()), "", error.info());
                Err(diagnostic.with_fix(match error.info() {
                    info if info.contains("unknown anchor") => {
                        "put text that begins with `*` into quotes, as in \"*delete*\""
                    }
                    info if info.contains("unexpected character") => {
                        "put text that begins with a special character into quotes, as in \"@scope/name\""
                    }
                    info if info.contains("hexadecimal") || info.contains("escape character") => {
                        "in double quotes, `\\` begins an escape: use single quotes, as in 'C:\\Users'"
                    }
                    info if info.contains("tabs disallowed") => "indent with spaces, not with tabs",
                    _ => "look at quotes, brackets, colons and indentation just before",
                }))
            }
        };
        outcome.map_err(|diagnostic| vec![diagnostic])?;
    }
    Ok(tree.root.unwrap_or(Node {
        at: Position::START,
        value: Value::Table(Vec::new()),
    }))
}

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
        let node = node.clone();
        self.spend(&node)?;
        Ok(node)
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
