//! TOML, with the place of each value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DEEPEST, Entry, Lines, Mistake, Node, Position, Value};

/// Reads one TOML document.
pub(super) fn read(text: &str) -> Result<Node, Vec<Mistake>> {
    let lines = Lines::of(text);
    // A dotted key nests as deep as it has dots, and the parser does not count them.
    let deep = |line: &&str| line.bytes().filter(|byte| *byte == b'.').count() > DEEPEST;
    if let Some(line) = text.lines().position(|line| deep(&line)) {
        let at = Position {
            line: line + 1,
            column: 1,
        };
        let what = format!("has more than {DEEPEST} dots");
        return Err(vec![Mistake::new(at, "", what).with_fix("break the line")]);
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node {
            at: Position::START,
            value: table(root.get_ref(), &lines),
        });
    }
    let mistakes = errors.iter().map(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Mistake::new(lines.position(at), "", error.message())
    });
    Err(mistakes.collect())
}

fn table(table: &DeTable<'_>, lines: &Lines<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| Entry {
        key: key.get_ref().to_string(),
        at: lines.position(key.span().start),
        node: node(value, lines),
    });
    Value::Table(entries.collect())
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    Node {
        at: lines.position(value.span().start),
        value: match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Word(
                i64::from_str_radix(number.as_str(), number.radix())
                    .map_or_else(|_| number.to_string(), |number| number.to_string()),
            ),
            DeValue::Float(number) => Value::Word(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Word(flag.to_string()),
            DeValue::Datetime(time) => Value::Word(time.to_string()),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| node(item, lines)).collect())
            }
            DeValue::Table(entries) => table(entries, lines),
        },
    }
}
