//! Limits for the filters of templates whose output can be much larger than their input.
//!
//! The size of the output is estimated from the arguments before the filter runs. The operator writes the template, but
//! its input comes from a server.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use crate::limits::LARGEST;

/// Adds each limited filter under its usual name, and the original under a name that templates cannot use.
macro_rules! bounded {
    ($environment:ident, $($name:literal: $original:path, $made:ident;)*) => {$(
        $environment.add_filter(concat!("vary ", $name), $original);
        $environment.add_filter(
            $name,
            |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| -> Result<Value, Error> {
                let values = arguments.into_values();
                if $made(&values) > LARGEST {
                    let why = format!("`{}` makes more than {LARGEST} bytes", $name);
                    return Err(Error::new(ErrorKind::InvalidOperation, why));
                }
                state.apply_filter(concat!("vary ", $name), &values)
            },
        );
    )*};
}

/// Replaces the filters of `environment` whose output can be larger than their input.
pub(super) fn bound(environment: &mut Environment<'_>) {
    bounded! { environment,
        "replace": filters::replace, replaced;
        "join": filters::join, joined;
        "indent": filters::indent, indented;
        "format": filters::format, formatted;
        "tojson": filters::tojson, written;
        "pprint": filters::pprint, written;
        "batch": filters::batch, divided;
        "slice": filters::slice, divided;
        "list": filters::list, listed;
        "split": filters::split, listed;
        "lines": filters::lines, listed;
    }
}

/// The size of a value as text.
#[derive(Clone, Copy, Default)]
struct Extent {
    bytes: usize,
    values: usize,
    depth: usize,
}

impl Extent {
    fn of(value: &Value) -> Self {
        let mut extent = Self::default();
        extent.add(value, 1);
        extent
    }

    fn add(&mut self, value: &Value, depth: usize) {
        // More than that exceeds the limits in any case.
        if self.bytes > LARGEST || self.values > LARGEST || depth > DEEPEST {
            return;
        }
        self.values += 1;
        self.depth = self.depth.max(depth);
        self.bytes += 4;
        match value.kind() {
            ValueKind::String => self.bytes += value.as_str().map_or(0, str::len),
            ValueKind::Bytes => self.bytes += value.len().unwrap_or(0),
            ValueKind::Map => {
                for key in value.try_iter().into_iter().flatten() {
                    let member = value.get_item(&key).unwrap_or_default();
                    self.add(&key, depth + 1);
                    self.add(&member, depth + 1);
                }
            }
            ValueKind::Seq | ValueKind::Iterable => {
                for element in value.try_iter().into_iter().flatten() {
                    self.add(&element, depth + 1);
                    if self.values > LARGEST {
                        return;
                    }
                }
            }
            _ => self.bytes += SCALAR,
        }
    }
}

/// The number of bytes of all `values` as text.
fn extent(values: &[Value]) -> usize {
    values.iter().map(|value| Extent::of(value).bytes).sum()
}

/// The largest number among the options, including named ones.
fn number(options: &[Value]) -> usize {
    let largest = |value: &Value| match value.kind() {
        ValueKind::Number => usize::try_from(value.clone()).unwrap_or(0),
        ValueKind::Map => {
            let keys = value.try_iter().into_iter().flatten();
            let members = keys.filter_map(|key| value.get_item(&key).ok());
            let numbers = members.filter_map(|member| usize::try_from(member).ok());
            numbers.max().unwrap_or(0)
        }
        _ => 0,
    };
    options.iter().map(largest).max().unwrap_or(0)
}

fn rest(arguments: &[Value]) -> &[Value] {
    arguments.get(1..).unwrap_or_default()
}

fn replaced(arguments: &[Value]) -> usize {
    let [text, from, to] = [0, 1, 2].map(|at| {
        arguments
            .get(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
    });
    let found = if from.is_empty() {
        text.len() + 1
    } else {
        text.matches(from).count()
    };
    text.len().saturating_add(found.saturating_mul(to.len()))
}

fn joined(arguments: &[Value]) -> usize {
    let Some(all) = arguments.first() else {
        return 0;
    };
    let count = match all.as_str() {
        Some(text) => text.len(),
        None => all.len().unwrap_or_else(|| Extent::of(all).values),
    };
    let between = extent(rest(arguments));
    Extent::of(all)
        .bytes
        .saturating_add(count.saturating_mul(between))
}

fn indented(arguments: &[Value]) -> usize {
    let text = arguments
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default();
    let width = match number(rest(arguments)) {
        0 => USUAL_INDENT,
        width => width,
    };
    let lines = 1 + text.matches('\n').count();
    text.len().saturating_add(lines.saturating_mul(width))
}

/// An upper bound for a formatted text: its own length, all widths that are written in it, and for each placeholder the
/// length of all arguments, plus the largest number among them if `*` takes widths from arguments.
fn formatted(arguments: &[Value]) -> usize {
    let text = arguments
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default();
    let numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let widths = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX));
    let widest = widths.fold(0, usize::saturating_add);
    let given = if text.contains('*') {
        number(rest(arguments))
    } else {
        0
    };
    let each = extent(rest(arguments)).saturating_add(given);
    let places = text.matches('%').count();
    let length = places.saturating_mul(each).saturating_add(widest);
    length.saturating_add(text.len())
}

fn written(arguments: &[Value]) -> usize {
    let Some(value) = arguments.first() else {
        return 0;
    };
    let extent = Extent::of(value);
    let indent = number(rest(arguments)).max(USUAL_INDENT);
    let space = extent
        .values
        .saturating_mul(extent.depth.saturating_mul(indent));
    extent.bytes.saturating_add(space)
}

fn divided(arguments: &[Value]) -> usize {
    number(rest(arguments))
        .saturating_mul(VALUE)
        .saturating_add(listed(arguments))
}

fn listed(arguments: &[Value]) -> usize {
    let Some(all) = arguments.first() else {
        return 0;
    };
    let count = match all.as_str() {
        Some(text) => text.len(),
        None => all.len().unwrap_or_else(|| Extent::of(all).values),
    };
    count.saturating_mul(VALUE)
}

/// The maximum number of bytes of a number or a boolean as text.
const SCALAR: usize = 24;
/// The number of bytes that a value takes in a list.
const VALUE: usize = 24;
const USUAL_INDENT: usize = 4;
/// Values nest no deeper than JSON may.
const DEEPEST: usize = 2 * mcp_vary::json::MAX_DEPTH;
