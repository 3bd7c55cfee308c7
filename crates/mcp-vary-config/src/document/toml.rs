//! Parses TOML with the position of each value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DEEPEST, Diagnostic, Entry, Lines, Node, Position, Value};

/// Parses one TOML document.
pub(super) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let lines = Lines::of(text);
    // A dotted key nests as deep as it has dots, and the parser does not count them.
    if let Some(line) = text.lines().position(|line| dots(line) > MOST_DOTS) {
        let at = Position {
            line: line + 1,
            column: 1,
        };
        return Err(vec![too_deep(at)]);
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let value = table(root.get_ref(), &lines, DEEPEST).map_err(|at| vec![too_deep(at)])?;
        let at = Position::START;
        return Ok(Node { at, value });
    }
    let diagnostics = errors.iter().map(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let diagnostic = Diagnostic::new(lines.position(at), "", error.message());
        diagnostic.with_fix("look at quotes, brackets and `=` just before")
    });
    Err(diagnostics.collect())
}

fn too_deep(at: Position) -> Diagnostic {
    Diagnostic::too_deep(at, DEEPEST)
}

/// The number of dots in a line, outside of strings and comments.
fn dots(line: &str) -> usize {
    let mut dots = 0;
    let mut quote = None;
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(b'"'), b'\\') => drop(bytes.next()),
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'#') => break,
            (None, b'.') => dots += 1,
            (None, _) => {}
        }
    }
    dots
}

/// Converts the entries of a table. Fails with the position at which it is nested too deep.
fn table(table: &DeTable<'_>, lines: &Lines<'_>, depth: usize) -> Result<Value, Position> {
    let entries = table.iter().map(|(key, value)| {
        Ok(Entry {
            key: key.get_ref().to_string(),
            at: lines.position(key.span().start),
            node: node(value, lines, depth)?,
        })
    });
    Ok(Value::Table(entries.collect::<Result<_, Position>>()?))
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines<'_>, depth: usize) -> Result<Node, Position> {
    let at = lines.position(value.span().start);
    let inner_depth = depth.checked_sub(1).ok_or(at)?;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Scalar(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| number.to_string(), |number| number.to_string()),
        ),
        DeValue::Float(number) => Value::Scalar(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Scalar(flag.to_string()),
        DeValue::Datetime(time) => Value::Scalar(time.to_string()),
        DeValue::Array(items) => {
            let nodes = items.iter().map(|item| node(item, lines, inner_depth));
            Value::List(nodes.collect::<Result<_, Position>>()?)
        }
        DeValue::Table(entries) => table(entries, lines, inner_depth)?,
    };
    Ok(Node { at, value })
}

/// The maximum number of dots in a line, outside of strings. Each dot is a level, and the parser adds up those of up to
/// 80 lines.
const MOST_DOTS: usize = DEEPEST;
