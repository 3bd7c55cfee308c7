//! Checks the arguments of a call against the server's schema, with errors that a model can act on.

use std::collections::BTreeSet;

use mcp_vary::json::{Json, Members, string};
use mcp_vary::text::is_invisible;

use super::arguments::Arguments;
use super::check::{Format, SchemaCheck, Verdict, call_error};
use super::derive;
use super::fault::ArgumentError;
use super::on_demand::argument_names;
use super::style::ArgumentCheck;

/// A server's schema, compiled for the calls of one tool.
#[derive(Debug)]
pub(super) struct CallCheck {
    schema: SchemaCheck,
    /// The names that the schema gives to arguments; `None` if others are accepted, or if names are not checked.
    names: Option<BTreeSet<String>>,
    argument_check: ArgumentCheck,
}

impl CallCheck {
    /// Compiles the schema, or returns why arguments cannot be checked against it.
    ///
    /// With [`ArgumentCheck::Off`] the view has a dialect of models; only then is `format` asserted. Otherwise a schema
    /// whose `$schema` names an unknown draft is not compiled.
    pub(super) fn new(schema: &str, argument_check: ArgumentCheck) -> Result<Self, String> {
        let mut names = None;
        if argument_check != ArgumentCheck::Off {
            let read = Json::parse(schema).map_err(|error| error.to_string())?;
            if derive::schema::dialect(&read).is_none() {
                return Err("its `$schema` names an unknown draft of JSON Schema".to_owned());
            }
            names = argument_names(schema);
        }
        Ok(Self {
            schema: SchemaCheck::with_format(schema, format(argument_check))?,
            names,
            argument_check,
        })
    }

    /// What is wrong with the arguments `given` by a call, which are `upstream` in the server's form. The errors have
    /// the view's names.
    pub(super) fn errors(
        &self,
        arguments: &Arguments,
        given: &Members<'_>,
        upstream: &str,
    ) -> Vec<ArgumentError> {
        let names = self.names.as_ref();
        let mut errors =
            names.map_or_else(Vec::new, |names| arguments.unnamed_arguments(given, names));
        if !self.schema.accepts_arguments(upstream) {
            add_schema_errors(self.schema_verdict(upstream), arguments, &mut errors);
        }
        limited(errors)
    }

    /// What the schema says of arguments that it does not accept as they are.
    fn schema_verdict(&self, upstream: &str) -> Verdict {
        let names = self.names.as_ref();
        match self.argument_check {
            ArgumentCheck::Off => Verdict::Rejected(self.schema.errors(upstream)),
            check @ (ArgumentCheck::On | ArgumentCheck::TypesOff) => {
                self.schema.verdict(upstream, MAX_REPORTED, check, |error| {
                    call_error(error, names)
                })
            }
        }
    }
}

/// Adds what the schema rejects in arguments that it does not accept as they are: at least one error, unless it accepts
/// what they mean.
fn add_schema_errors(verdict: Verdict, arguments: &Arguments, errors: &mut Vec<ArgumentError>) {
    match verdict {
        Verdict::AcceptedAsMeant => return,
        Verdict::Rejected(found) => {
            let rejections = found.into_iter();
            errors.extend(rejections.map(|error| arguments.in_view_names(error)));
        }
        // A call that was refused is not sent, even if nobody can say why.
        Verdict::Accepted => {}
    }
    if errors.is_empty() {
        errors.push(unexplained_error(arguments));
    }
}

/// The error of a call that is refused although no error was found in what was given.
fn unexplained_error(arguments: &Arguments) -> ArgumentError {
    if arguments.values().next().is_some() {
        return ArgumentError::InvalidFixedValue;
    }
    ArgumentError::InvalidValue {
        path: String::new(),
        expected: "arguments that the tool's schema accepts".to_owned(),
        actual: "others".to_owned(),
    }
}

/// What `format` in a schema means for the arguments of calls.
fn format(argument_check: ArgumentCheck) -> Format {
    match argument_check {
        ArgumentCheck::Off => Format::Assertion,
        ArgumentCheck::On | ArgumentCheck::TypesOff => Format::Annotation,
    }
}

/// The first [`MAX_REPORTED`] errors, and the number of the others.
fn limited(mut errors: Vec<ArgumentError>) -> Vec<ArgumentError> {
    let counted = |error: &ArgumentError| match error {
        ArgumentError::More(count) => *count,
        _ => 1,
    };
    if errors.len() > MAX_REPORTED {
        let others = errors.split_off(MAX_REPORTED);
        errors.push(ArgumentError::More(others.iter().map(counted).sum()));
    }
    errors
}

/// An object schema with those properties of `schema` that `errors` name, as many as fit into `most` bytes; `None` if
/// none does.
pub(super) fn erroneous_part(
    schema: &str,
    errors: &[ArgumentError],
    most: usize,
) -> Option<String> {
    let members = Members::parse(schema).ok()?;
    let properties = Members::parse(members.get("properties")?).ok()?;
    let mut part = Members::default();
    let mut length = 0;
    for name in errors.iter().filter_map(named_argument) {
        let Some(property) = properties.get(&name) else {
            continue;
        };
        if part.contains(&name) || length + property.len() + name.len() + 64 > most {
            continue;
        }
        length += property.len() + name.len() + 8;
        part.set(name, property.to_owned());
    }
    let schema = [("type", string("object")), ("properties", part.to_json())];
    (!part.is_empty()).then(|| Members::from_iter(schema).to_json())
}

/// The argument that an error is about, as the caller is to write it.
fn named_argument(error: &ArgumentError) -> Option<String> {
    match error {
        ArgumentError::InvalidValue { path, .. } => {
            let first = path.strip_prefix('/')?.split('/').next()?;
            Some(first.replace("~1", "/").replace("~0", "~"))
        }
        ArgumentError::MissingArgument { name } => Some(name.clone()),
        ArgumentError::UnknownArgument { suggestion, .. } => suggestion.clone(),
        _ => None,
    }
}

/// The JSON text with the [invisible](mcp_vary::text::is_invisible) characters of its strings escaped. It means the
/// same, and shows all that it has.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::escape_invisible;
///
/// assert_eq!(escape_invisible(r#"{"name": "add"}"#), r#"{"name": "add"}"#);
/// // White space between tokens stays.
/// assert_eq!(escape_invisible("[\"a\u{202e}b\",\n1]"), "[\"a\\u202eb\",\n1]");
/// ```
pub fn escape_invisible(json: &str) -> String {
    if !json.chars().any(is_invisible) {
        return json.to_owned();
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        // Between tokens, control characters are white space.
        if c.is_ascii_control() || !is_invisible(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

/// Errors that are reported.
const MAX_REPORTED: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Never fail open: what is refused quickly is refused, whatever the slow check finds.
    #[test]
    fn a_call_that_is_refused_without_a_known_error_gets_a_general_one() {
        for verdict in [Verdict::Accepted, Verdict::Rejected(Vec::new())] {
            let mut errors = Vec::new();
            add_schema_errors(verdict, &Arguments::default(), &mut errors);
            let said: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let expected = "expected arguments that the tool's schema accepts, got others";
            assert_eq!(said, [expected]);
        }
    }
}
