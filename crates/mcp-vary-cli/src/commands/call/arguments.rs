//! The arguments of a call as they are typed: `{...}`, `@FILE`, `NAME=VALUE` and `NAME:=JSON`.

use std::io::Read as _;

use mcp_vary::json::{self, Members};
use mcp_vary_base::io_error;
use serde_json::Value;

use super::schema::Property;
use crate::failure::Failure;

/// The arguments of a call, before the schema of the tool is known.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The text of an object.
    object: Option<String>,
    /// Single arguments, which replace members of the object.
    single: Vec<Single>,
}

/// One argument.
#[derive(Debug)]
struct Single {
    name: String,
    value: Typed,
}

#[derive(Debug)]
enum Typed {
    /// Text, which becomes what the schema wants.
    Text(String),
    /// JSON text.
    Json(String),
}

/// Whether `word` is an argument, and not a target.
pub(crate) fn is_argument(word: &str) -> bool {
    let trimmed = word.trim_start();
    trimmed.starts_with(['{', '[', '@']) || split(trimmed).is_some()
}

/// Name and value of `NAME=VALUE` or `NAME:=JSON`. URLs and paths have other characters before the first `=`.
fn split(word: &str) -> Option<(&str, &str, bool)> {
    let (name, value) = word.split_once('=')?;
    let (name, is_json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let is_path = |c: char| "/\\:?".contains(c) || c.is_whitespace();
    let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(is_path);
    is_name.then_some((name, value, is_json))
}

impl Arguments {
    /// Adds what was typed.
    ///
    /// # Errors
    ///
    /// When a text is not JSON, a file cannot be read, or something is given twice.
    pub(crate) fn add(&mut self, word: &str) -> Result<(), Failure> {
        let trimmed = word.trim();
        if trimmed.starts_with(['{', '[']) {
            return self.add_object(trimmed.to_owned(), "the arguments are");
        }
        if let Some(path) = trimmed.strip_prefix('@') {
            return self.add_object(read(path)?, &format!("{path} is"));
        }
        let Some((name, value, is_json)) = split(word) else {
            return Err(Failure::command(format!(
                "`{word}` is not an argument; write it as NAME=VALUE"
            )));
        };
        if self.single.iter().any(|single| single.name == name) {
            return Err(Failure::command(format!(
                "the argument `{name}` is given twice; write a list as `{name}:=[...]`"
            )));
        }
        if is_json && let Err(error) = serde_json::from_str::<Value>(value) {
            return Err(Failure::command(format!(
                "the argument `{name}` is not JSON: {error}; write text as `{name}=TEXT`"
            )));
        }
        self.single.push(Single {
            name: name.to_owned(),
            value: if is_json {
                Typed::Json(value.to_owned())
            } else {
                Typed::Text(value.to_owned())
            },
        });
        Ok(())
    }

    fn add_object(&mut self, text: String, what: &str) -> Result<(), Failure> {
        if let Err(error) = Members::parse(&text) {
            return Err(Failure::command(format!(
                "{what} not a JSON object: {error}; write it like '{{\"location\":\"Bern\"}}', or arguments one by one \
                 like location=Bern"
            )));
        }
        match self.object.replace(text) {
            Some(_) => Err(Failure::command(
                "two JSON objects have the arguments; leave one of them out",
            )),
            None => Ok(()),
        }
    }

    /// Whether the schema of the tool decides about the types.
    pub(crate) fn need_schema(&self) -> bool {
        let mut single = self.single.iter();
        single.any(|single| matches!(single.value, Typed::Text(_)))
    }

    /// The JSON text of all arguments. `schema` is the input schema of the tool, if it is known.
    ///
    /// # Errors
    ///
    /// When text is not of the type that the schema wants.
    pub(crate) fn to_json(&self, schema: Option<&Value>) -> Result<String, Failure> {
        let object = self.object.as_deref().unwrap_or("{}");
        if self.single.is_empty() {
            return Ok(object.to_owned());
        }
        let parsed = Members::parse(object);
        let mut members = parsed.map_err(|error| Failure::command(error.to_string()))?;
        for single in &self.single {
            let value = match &single.value {
                Typed::Json(text) => text.clone(),
                Typed::Text(text) => match schema {
                    Some(schema) => Property::new(schema, &single.name)
                        .value_of(text)
                        .map_err(Failure::command)?,
                    None => json::string(text),
                },
            };
            members.set(single.name.as_str(), value);
        }
        Ok(members.to_json())
    }
}

/// The text of a file with arguments.
fn read(path: &str) -> Result<String, Failure> {
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(LONGEST + 1).read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    let text = read().map_err(|error| {
        let why = io_error::describe(&error);
        Failure::command(format!("the arguments in {path} cannot be read: {why}"))
    })?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LONGEST) {
        return Err(Failure::command(format!(
            "the arguments in {path} have more than {} MiB",
            LONGEST >> 20
        )));
    }
    Ok(text.trim().to_owned())
}

/// The most bytes of a file with arguments.
const LONGEST: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_targets_are_told_apart_by_their_characters() {
        for argument in [
            "{}",
            " {\"a\":1}",
            "[1]",
            "@args.json",
            "a=b",
            "a:=1",
            "a=http://x/",
            "x-y.z=",
        ] {
            assert!(is_argument(argument), "{argument}");
        }
        for target in [
            "http://x/mcp?a=b",
            "vary.yaml",
            "./a=b.yaml",
            "dir/a=b",
            ".a=b",
            "=b",
            ":=1",
            "npx",
        ] {
            assert!(!is_argument(target), "{target}");
        }
    }

    #[track_caller]
    fn becomes(words: &[&str], schema: Option<&str>, expected: Result<&str, &str>) {
        let mut arguments = Arguments::default();
        let added = words.iter().try_for_each(|word| arguments.add(word));
        let schema: Option<Value> = schema.map(|schema| serde_json::from_str(schema).unwrap());
        let json = added.and_then(|()| arguments.to_json(schema.as_ref()));
        let json = json.map_err(|failure| failure.to_string());
        assert_eq!(
            json.as_deref().map_err(String::as_str),
            expected,
            "{words:?}"
        );
    }

    #[test]
    fn an_object_stays_as_it_is_written() {
        becomes(&[], None, Ok("{}"));
        becomes(&["{ \"a\" : 1.0 }"], None, Ok("{ \"a\" : 1.0 }"));
        becomes(
            &["{\"a\":1.0,\"b\":2}", "b:=[3]", "c=x"],
            None,
            Ok(r#"{"a":1.0,"b":[3],"c":"x"}"#),
        );
    }

    #[test]
    fn text_gets_the_type_of_the_schema() {
        let schema = r#"{"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"}}}"#;
        becomes(
            &["n=7", "s=7", "b=true", "x=7"],
            Some(schema),
            Ok(r#"{"n":7,"s":"7","b":true,"x":"7"}"#),
        );
        becomes(
            &["n=x"],
            Some(schema),
            Err("`n` is an integer, and `x` is not one"),
        );
        becomes(&["n=7"], None, Ok(r#"{"n":"7"}"#));
    }

    #[test]
    fn what_cannot_be_an_argument_is_refused() {
        becomes(
            &["a=1", "a=2"],
            None,
            Err("the argument `a` is given twice; write a list as `a:=[...]`"),
        );
        becomes(
            &["{}", "{}"],
            None,
            Err("two JSON objects have the arguments; leave one of them out"),
        );
        becomes(
            &["a:=x"],
            None,
            Err(
                "the argument `a` is not JSON: expected value at line 1 column 1; write text as `a=TEXT`",
            ),
        );
    }
}
