//! Templates that render a value as text.

mod filters;
mod record;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;

use mcp_vary::json::{Builder, Json, build};
use mcp_vary::render;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter,
};

use self::record::{Names, object};
use crate::limits::LARGEST;
use mcp_vary_base::lock::Lock;

/// A Jinja template that renders a value as text.
///
/// An undefined name is an error. A template only reads what it is given. The number of steps and the length of the
/// text are limited, and so is the output of filters and of parts that are rendered into variables. The output of
/// operators is limited only by the template engine, to 100 MB for `*`, so templates with operators run one at a time.
#[derive(Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
    /// Whether the template has operators that may create a long text.
    has_operators: bool,
}

mcp_vary_base::debug_by_name!(Template);

/// The names that a template can use.
///
/// | name | |
/// |---|---|
/// | `value` | the value |
/// | the keys of `value` | its members, where it is an object |
/// | `text` | the text that the server wrote |
/// | `arguments` | the arguments of the call |
/// | `tool`, `prompt`, `uri`, `server` | the requested item, and the name of its server |
#[derive(Debug)]
pub struct Scope {
    names: Value,
}

impl Scope {
    /// Defines `value`, which is JSON, its members, `text`, `arguments`, and the texts in `named`.
    ///
    /// # Errors
    ///
    /// If `value` is not valid.
    pub fn new(
        value: &str,
        text: &str,
        arguments: &str,
        named: &[(&'static str, &str)],
    ) -> Result<Self, String> {
        let arguments = build::<Values>(arguments).unwrap_or_default();
        let value = build::<Values>(value).map_err(|error| error.to_string())?;
        let is_object = value.kind() == ValueKind::Map;
        let mut built_in = vec![
            ("value", value.clone()),
            ("text", Value::from(text)),
            ("arguments", arguments),
        ];
        built_in.extend(named.iter().map(|(name, what)| (*name, Value::from(*what))));
        let value = if is_object { value } else { Value::UNDEFINED };
        Ok(Self {
            names: Value::from_object(Names { built_in, value }),
        })
    }
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// If the template is invalid. The error is the end of a sentence that begins with the template.
    pub fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A line that only has a block does not produce an empty line.
        let mut builder = SyntaxConfig::builder();
        let syntax = builder.trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| describe(&error))?);
        environment.set_fuel(Some(MAX_STEPS));
        environment.set_recursion_limit(MAX_RECURSION);
        environment.add_filter("cell", |text: Cow<'_, str>| cell(&text));
        environment.add_filter("markdown", |value: Value| {
            rendered(&value, render::markdown)
        });
        environment.add_filter("plain", |value: Value| rendered(&value, render::text));
        filters::bound(&mut environment);
        environment.set_formatter(|out, state, value| {
            let written = value.as_str();
            let more = written.map_or(0, str::len);
            let total = WRITTEN_BYTES.get().saturating_add(more);
            WRITTEN_BYTES.set(total);
            if total > MAX_WRITTEN_BYTES {
                let why = format!("it makes a text of more than {LARGEST} bytes");
                return Err(Error::new(ErrorKind::InvalidOperation, why));
            }
            match written {
                Some(written) => Ok(out.write_str(written)?),
                None => escape_formatter(out, state, value),
            }
        });
        let added = environment.add_template_owned(NAME, source.to_owned());
        added.map_err(|error| format!("is not a template: {}", describe(&error)))?;
        Ok(Self {
            environment: Arc::new(environment),
            has_operators: has_operators(source),
        })
    }

    /// Renders the template.
    ///
    /// # Errors
    ///
    /// If the template fails. The error may contain a part of the value, so only the operator may see it.
    pub fn render(&self, scope: &Scope) -> Result<String, String> {
        let found = self.environment.get_template(NAME);
        let template = found.map_err(|error| describe(&error))?;
        let _turn = self.has_operators.then(|| ONE_AT_A_TIME.lock());
        WRITTEN_BYTES.set(0);
        let mut text = Text::default();
        let rendered = template.render_captured_to(scope.names.clone(), &mut text);
        match rendered {
            _ if text.is_full => Err(format!("it makes a text of more than {LARGEST} bytes")),
            Err(error) => Err(describe(&error)),
            Ok(_) => {
                let text = String::from_utf8(text.bytes).map_err(|error| error.to_string())?;
                Ok(text.trim_end().to_owned())
            }
        }
    }
}

/// Whether a tag of the template has an operator that may join or repeat texts.
fn has_operators(source: &str) -> bool {
    let mut remaining = source;
    while let Some((_, tag)) = remaining.split_once('{') {
        remaining = tag;
        if !tag.starts_with(['{', '%']) {
            continue;
        }
        let ends = ["}}", "%}"].map(|end| tag.find(end).unwrap_or(tag.len()));
        let inside = &tag[1..ends[0].min(ends[1]).max(1)];
        // The end of a tag that contains braces is hard to find, so the whole rest of the tag is checked.
        let inside = if inside.contains('{') { tag } else { inside };
        if inside.contains(['*', '+', '~']) {
            return true;
        }
    }
    false
}

/// Locked while a template runs that may create a long text in one step.
static ONE_AT_A_TIME: Lock<()> = Lock::new(());

thread_local! {
    /// The number of bytes that the template on this thread has written so far, including into variables.
    static WRITTEN_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The maximum number of bytes that a template may write, including into variables.
const MAX_WRITTEN_BYTES: usize = 2 * LARGEST;

/// The rendered text, with a maximum length.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LARGEST {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Describes the error and its line.
fn describe(error: &Error) -> String {
    let what = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => match error.kind() {
            ErrorKind::OutOfFuel => "it takes too long".to_owned(),
            kind => kind.to_string(),
        },
    };
    match error.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

/// The text as one cell of a table: on one line, with escaped bars.
fn cell(text: &str) -> Value {
    let is_cell = |part: &str| !part.is_empty() && !part.contains(SPECIAL_IN_CELLS);
    // Most texts have single spaces, and nothing to escape.
    if text.split(' ').all(is_cell) {
        return Value::from(text);
    }
    let terms: Vec<_> = text.split_whitespace().collect();
    let line = terms.join(" ");
    Value::from(line.replace('\\', "\\\\").replace('|', "\\|"))
}

const SPECIAL_IN_CELLS: fn(char) -> bool =
    |letter| matches!(letter, '\\' | '|') || letter.is_whitespace();

/// The value as the gateway itself renders it.
fn rendered(value: &Value, render: fn(&Json<'_>) -> String) -> Result<String, Error> {
    let invalid =
        |error: &dyn fmt::Display| Error::new(ErrorKind::InvalidOperation, error.to_string());
    let text = serde_json::to_string(value).map_err(|error| invalid(&error))?;
    let json = Json::parse(&text).map_err(|error| invalid(&error))?;
    Ok(render(&json))
}

/// Builds the values that templates read. A number that they cannot represent exactly becomes a text.
struct Values;

impl<'a> Builder<'a> for Values {
    type Value = Value;

    fn null() -> Value {
        Value::from(())
    }

    fn bool(is: bool) -> Value {
        Value::from(is)
    }

    fn number(spelling: &'a str) -> Value {
        if let Ok(number) = spelling.parse::<i64>() {
            return Value::from(number);
        }
        match spelling.parse::<f64>() {
            Ok(number) if is_shortest(spelling) => Value::from(number),
            Ok(number) if Value::from(number).to_string() == spelling => Value::from(number),
            _ => Value::from(spelling),
        }
    }

    fn string(text: Cow<'a, str>) -> Value {
        Value::from(&*text)
    }

    fn array(elements: Vec<Value>) -> Value {
        Value::from(elements)
    }

    fn object(members: Vec<(Cow<'a, str>, Value)>) -> Value {
        let entries = members.into_iter();
        object(entries.map(|(key, value)| (Value::from(&*key), value)))
    }
}

/// Whether a number has a fraction, and is certainly spelled as its `f64` is: all decimals of 15 digits are different
/// numbers there.
fn is_shortest(spelling: &str) -> bool {
    let Some((_, fraction)) = spelling.split_once('.') else {
        return false;
    };
    let is_plain = spelling.len() <= 15 && !fraction.contains(['e', 'E']);
    is_plain && (fraction == "0" || !fraction.ends_with('0'))
}

const NAME: &str = "template";
/// The maximum number of steps to render a text. A row of a table takes about ten.
const MAX_STEPS: u64 = 1_000_000;
const MAX_RECURSION: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope(value: &str) -> Scope {
        let named = [("tool", "weather"), ("server", "met")];
        Scope::new(value, "as written", r#"{"city":"Bern"}"#, &named).unwrap()
    }

    #[track_caller]
    fn made(template: &str, value: &str) -> Result<String, String> {
        Template::new(template).unwrap().render(&scope(value))
    }

    #[test]
    fn a_template_names_members_and_all_that_is_known() {
        let template = "{{ tool }} of {{ server }}: {{ temp }} °C in {{ arguments.city }}, {{ value.temp }}, {{ text }}";
        let expected = "weather of met: 8.0 °C in Bern, 8.0, as written";
        assert_eq!(made(template, r#"{"temp": 8.0}"#).unwrap(), expected);
    }

    #[test]
    fn the_names_of_a_template_take_precedence_over_members() {
        let value = r#"{"text":"mine","tool":1,"value":2,"arguments":3,"other":4}"#;
        let template = "{{ text }} {{ tool }} {{ arguments.city }} {{ value.text }} {{ value.value }} {{ other }}";
        let expected = "as written weather Bern mine 2 4";
        assert_eq!(made(template, value).unwrap(), expected);
        // Members are names only of an object.
        let error = made("{{ other }}", r#"[{"other":4}]"#).unwrap_err();
        assert!(error.contains("line 1"), "{error}");
    }

    /// Few members are compared one after the other, many are hashed.
    #[test]
    fn objects_of_every_size_are_read_alike() {
        for size in [1, 12, 13, 40] {
            let members: Vec<_> = (0..size).map(|at| format!(r#""k{at}":{at}"#)).collect();
            let value = format!(r#"{{"o":{{{}}}}}"#, members.join(","));
            let keys: Vec<_> = (0..size).map(|at| format!("k{at}")).collect();
            let last = size - 1;
            for (template, expected) in [
                ("{{ o | join(',') }}".to_owned(), keys.join(",")),
                (
                    format!("{{{{ o.k{last} }}}} {{{{ o['k0'] }}}}"),
                    format!("{last} 0"),
                ),
                (
                    "{{ o | length }} {{ o.nothing is undefined }}".to_owned(),
                    format!("{size} True"),
                ),
                (
                    "{{ o == value.o }} {{ 1 in o }} {{ 'k0' in o }}".to_owned(),
                    "True False True".to_owned(),
                ),
                (
                    "{{ o | tojson }}".to_owned(),
                    made("{{ value.o | tojson }}", &value).unwrap(),
                ),
                (
                    "{% for k, v in o | items %}{{ k }}{{ v }}{% endfor %}".to_owned(),
                    (0..size).map(|at| format!("k{at}{at}")).collect(),
                ),
            ] {
                let found = made(&template, &value).unwrap();
                assert_eq!(found, expected, "{template} {size}");
            }
        }
    }

    #[test]
    fn a_block_leaves_no_empty_line() {
        let template =
            "| n |\n|---|\n{% for row in rows %}\n| {{ row.n | cell }} |\n{% endfor %}\nend";
        let value = r#"{"rows":[{"n":"a|b"},{"n":"c\nd"}]}"#;
        let expected = "| n |\n|---|\n| a\\|b |\n| c d |\nend";
        assert_eq!(made(template, value).unwrap(), expected);
    }

    #[test]
    fn numbers_are_said_as_they_are_spelled() {
        let numbers = [
            "1",
            "8.0",
            "1.50",
            "12345678901234567890123",
            "1e3",
            "-0.0",
            "0.1",
            "-12.000001",
            "0.0000000000001",
            "999999999999.9",
            "1.00",
            "1.0e0",
            "0.12345678901234567890",
            "9007199254740993.0",
            "2.675E2",
        ];
        for number in numbers {
            let value = format!("[{number}]");
            let found = made("{{ value[0] }},{{ value | join(' ') }}", &value).unwrap();
            assert_eq!(found, format!("{number},{number}"));
        }
        let calculated = made("{{ value[0] * 2 }} {{ value[1] + 1 }}", "[1.5, 0.25]");
        assert_eq!(calculated.unwrap(), "3.0 1.25");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_number_that_is_known_to_keep_its_spelling_does(
            spelling in r"-?(0|[1-9][0-9]{0,7})\.[0-9]{1,8}",
        ) {
            if is_shortest(&spelling) {
                let number: f64 = spelling.parse().unwrap();
                prop_assert_eq!(Value::from(number).to_string(), spelling);
            }
        }
    }

    #[test]
    fn the_gateways_own_renderings_are_at_hand() {
        let found = made("{{ value | markdown }}", r#"{"a":1}"#).unwrap();
        assert_eq!(found, "- **a**: 1");
    }

    #[test]
    fn what_goes_wrong_says_what_and_where() {
        for (template, why) in [
            ("a\n{{ nothing }}", "line 2"),
            (
                "{% for i in range(100000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
                "too long",
            ),
            (
                "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
                "recursion",
            ),
            (
                "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
                "bytes",
            ),
        ] {
            let error = made(template, "{}").unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
        let error = Template::new("a\n{% if %}").unwrap_err();
        assert!(
            error.starts_with("is not a template: ") && error.ends_with("(line 2)"),
            "{error}"
        );
    }

    #[test]
    fn filters_make_no_more_than_a_template_may() {
        let text = format!(r#"{{"t":"{}"}}"#, "x\\n".repeat(1 << 20));
        for template in [
            "{{ t | replace('x', 'twenty or so letters') | length }}",
            "{{ t | replace('', 'twenty or so letters') | length }}",
            "{{ t | list | length }}",
            "{{ [t, t, t, t, t] | join('') | length }}",
            "{{ range(90000) | join('a hundred letters, or as many as it takes to make it too long for a template, which are these') | length }}",
            "{{ t | indent(100) | length }}",
            "{{ t | indent(width=100) | length }}",
            "{{ '%100000000d' | format(1) | length }}",
            "{{ '%*d' | format(100000000, 1) | length }}",
            "{{ '%s%s%s%s%s' | format(t, t, t, t, t) | length }}",
            "{{ range(10000) | list | tojson(indent=1000) | length }}",
            "{{ [1] | batch(100000000, 0) | list | length }}",
            "{% set a %}{% for i in range(100) %}{{ t }}{% endfor %}{% endset %}{{ a | length }}",
        ] {
            let error = made(template, &text).unwrap_err();
            assert!(error.contains("bytes"), "{template}: {error}");
        }
        for (template, expected) in [
            ("{{ 'a,b' | replace(',', ';') }}", "a;b"),
            ("{{ ['a', 1] | join(', ') }}", "a, 1"),
            ("{{ 'a\\nb' | indent(2, true) }}", "a\n  b"),
            ("{{ '%5.1f' | format(2.25) }}", "  2.2"),
            ("{{ {'a': [1]} | tojson }}", r#"{"a": [1]}"#),
            ("{{ [1, 2, 3] | batch(2) | list | length }}", "2"),
            ("{{ 'ab' | list | length }}", "2"),
            ("{{ [{'n': 'x'}] | join(', ', attribute='n') }}", "x"),
        ] {
            let made = made(template, "{}").unwrap();
            assert_eq!(made.trim(), expected.trim(), "{template}");
        }
    }

    #[test]
    fn a_template_with_operators_is_known() {
        for (source, expected) in [
            ("**{{ a }}** {%if a%}+{%endif%}", false),
            ("{{ a ~ b }}", true),
            ("{% set x = a * 2 %}", true),
            ("{{ {'a': 1} ~ b }}", true),
            ("{ a * b }", false),
        ] {
            assert_eq!(has_operators(source), expected, "{source}");
        }
    }

    #[test]
    fn nothing_else_can_be_read() {
        for template in [
            "{% include 'x' %}",
            "{% extends 'x' %}",
            "{% import 'x' as y %}",
        ] {
            assert!(made(template, "{}").is_err(), "{template}");
        }
    }
}
