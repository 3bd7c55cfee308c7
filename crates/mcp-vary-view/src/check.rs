//! Validates arguments against a server's schema in bounded time.

mod borrowed;
mod compile;
mod effort;

use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use mcp_vary::ignored::for_display;
use mcp_vary::json::{self, Json, JsonError};
use serde_json::Value;

use self::borrowed::{BorrowedJson, BorrowedValue};
pub(super) use self::compile::Format;
pub use self::compile::MAX_CHECKED_VALUES;
use self::compile::{MAX_TEXT, compile, has_too_many_values};
use super::fault::{ArgumentError, truncated};
use super::style::ArgumentCheck;

/// Validates arguments against one schema.
///
/// # Properties
///
/// References out of the schema are not followed. Patterns that backtrack too long are abandoned. The cost of a
/// schema is computed in advance: arguments that nest deeper than can be checked in time are accepted, and the
/// server decides. The same holds for arguments of more than [`MAX_CHECKED_VALUES`] values. Errors of large
/// arguments have no details, since each branch of a choice copies the value that it rejects. Arguments that parsers may
/// read in different ways are rejected.
#[derive(Debug)]
pub(super) struct SchemaCheck {
    validator: Validator<BorrowedJson>,
    /// The number of times that one value is visited, by nesting depth; deeper arguments are accepted unchecked.
    effort: Vec<u64>,
}

/// What a schema decides on the arguments of a call.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It accepts them, or they cannot be checked against it.
    Accepted,
    /// It accepts what they mean: without each `null` that it rejects for an optional property, and, if
    /// [`ArgumentCheck::TypesOff`] says so, with the scalars that texts spell.
    AcceptedAsMeant,
    /// It rejects them, with the errors that were described.
    Rejected(Vec<ArgumentError>),
}

impl SchemaCheck {
    /// Compiles the schema, or returns why arguments cannot be checked against it.
    pub(super) fn new(schema: &str) -> Result<Self, String> {
        Self::with_format(schema, Format::Assertion)
    }

    pub(super) fn with_format(schema: &str, format: Format) -> Result<Self, String> {
        let (validator, effort) = compile(schema, format)?;
        Ok(Self { validator, effort })
    }

    /// Whether the schema accepts `value`; false if checking would take too long.
    pub(super) fn accepts(&self, value: &str) -> bool {
        // What repeats a key is not borrowed.
        let value = BorrowedValue::read(value).or_else(|| Some(json::to_value(value).ok()?.into()));
        value.is_some_and(|value| self.accepts_borrowed(&value))
    }

    /// Like [`accepts`](Self::accepts), for a parsed value.
    pub(super) fn accepts_value(&self, value: &Value) -> bool {
        self.accepts_borrowed(&value.into())
    }

    fn accepts_borrowed(&self, value: &BorrowedValue<'_>) -> bool {
        value.depth() < self.effort.len() && self.validator.is_valid(value)
    }

    /// Whether [`verdict`](Self::verdict) accepts the arguments as they are, in a fraction of the time.
    pub(super) fn accepts_arguments(&self, arguments: &str) -> bool {
        if has_too_many_values(arguments) {
            return true;
        }
        let Some(value) = BorrowedValue::read(arguments) else {
            return false;
        };
        // A value that was read nests at most so deep. Its depth need not be found where all depths can be checked.
        let is_in_time = self.effort.len() > json::MAX_DEPTH || value.depth() < self.effort.len();
        !is_in_time || self.validator.is_valid(&value)
    }

    /// What the schema rejects in the arguments.
    pub(super) fn errors(&self, arguments: &str) -> Vec<ArgumentError> {
        let describe = |error: &ValidationError<'_>| Some(argument_error(error));
        match self.verdict(arguments, MAX_REPORTED, ArgumentCheck::Off, describe) {
            Verdict::Rejected(errors) => errors,
            Verdict::Accepted | Verdict::AcceptedAsMeant => Vec::new(),
        }
    }

    /// What the schema rejects in the arguments as `describe` says it: at most `most` errors, and the number of the
    /// others. Arguments that parsers may read in different ways are rejected whatever the schema says.
    pub(super) fn verdict(
        &self,
        arguments: &str,
        most: usize,
        argument_check: ArgumentCheck,
        describe: impl Fn(&ValidationError<'_>) -> Option<ArgumentError>,
    ) -> Verdict {
        if has_too_many_values(arguments) {
            return Verdict::Accepted;
        }
        let mut value = match readable_value(arguments) {
            Ok(value) => value,
            Err(error) => return Verdict::Rejected(vec![error]),
        };
        let Some(effort) = self.effort.get(depth(&value)) else {
            return Verdict::Accepted;
        };
        if self.is_valid(&value) {
            return Verdict::Accepted;
        }
        // Each schema that rejects a value may create an error with a copy of it.
        let copied = arguments.len() + VALUE_BYTES * json::count_values(arguments);
        let errors = usize::try_from(*effort).unwrap_or(usize::MAX);
        if errors.saturating_mul(copied) > MAX_COPIED_BYTES {
            return Verdict::Rejected(vec![ArgumentError::InvalidValue {
                path: String::new(),
                expected: "what the tool's schema takes (they are too large to say what is wrong)"
                    .to_owned(),
                actual: kind(&value),
            }]);
        }
        if argument_check != ArgumentCheck::Off {
            self.replace_by_meaning(&mut value, argument_check == ArgumentCheck::TypesOff);
            if self.is_valid(&value) {
                return Verdict::AcceptedAsMeant;
            }
        }
        Verdict::Rejected(self.described_errors(&value, most, describe))
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(&value.into())
    }

    fn described_errors(
        &self,
        value: &Value,
        most: usize,
        describe: impl Fn(&ValidationError<'_>) -> Option<ArgumentError>,
    ) -> Vec<ArgumentError> {
        let mut faults = Vec::new();
        let mut more = 0;
        let value = BorrowedValue::from(value);
        let errors = self.validator.iter_errors(&value).take(MAX_COUNTED);
        for fault in errors.filter_map(|error| describe(&error)) {
            if faults.len() < most {
                faults.push(fault);
            } else {
                more += 1;
            }
        }
        if more > 0 {
            faults.push(ArgumentError::More(more));
        }
        faults
    }

    /// Removes each `null` that the schema rejects from its object: models whose schemas list every property as
    /// required send it for one that they leave out. If the property is required, it is missing then. With
    /// `text_for_scalars`, also replaces texts that the schema rejects by the scalars that they spell.
    fn replace_by_meaning(&self, value: &mut Value, text_for_scalars: bool) {
        let borrowed = BorrowedValue::from(&*value);
        let errors = self.validator.iter_errors(&borrowed).take(MAX_COUNTED);
        let meaning = |error: &ValidationError<'_>| {
            let error = nearest_branch(error);
            let path = error.instance_path().as_str();
            let spelled = match error.instance().as_ref() {
                Value::Null if is_named_property(error) => None,
                Value::String(text) if text_for_scalars => Some(scalar(text)?),
                _ => return None,
            };
            Some((path.to_owned(), spelled))
        };
        let meanings: Vec<_> = errors.filter_map(|error| meaning(&error)).collect();
        for (path, meant) in meanings {
            match meant {
                Some(scalar) => {
                    value
                        .pointer_mut(&path)
                        .into_iter()
                        .for_each(|text| *text = scalar.clone());
                }
                None => remove_member(value, &path),
            }
        }
    }
}

/// The number, boolean or `null` that a text spells.
fn scalar(text: &str) -> Option<Value> {
    let spelled: Value = serde_json::from_str(&text.trim().to_ascii_lowercase()).ok()?;
    (!spelled.is_array() && !spelled.is_object() && !spelled.is_string()).then_some(spelled)
}

/// Whether the schema names the property that is wrong, so that it is not one of a map.
fn is_named_property(error: &ValidationError<'_>) -> bool {
    let path = error.instance_path().as_str();
    let name = path.rsplit('/').next().unwrap_or_default();
    let named = format!("/properties/{name}/");
    error.evaluation_path().as_str().contains(&named)
}

/// Removes what is at `path` if it is a member of an object.
fn remove_member(value: &mut Value, path: &str) {
    if let Some((parent, name)) = path.rsplit_once('/')
        && let Some(Value::Object(members)) = value.pointer_mut(parent)
    {
        members.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// The value, if every parser reads it alike: no object repeats a key, and `f64` can hold each number.
fn readable_value(arguments: &str) -> Result<Value, ArgumentError> {
    let read = Json::parse(arguments).map_err(|error| match error.duplicate_key() {
        Some(key) => ArgumentError::DuplicateKey {
            key: key.to_owned(),
        },
        None => unreadable(&error),
    })?;
    json::to_value(arguments).map_err(|error| match number_beyond_f64(&read, "") {
        Some((path, number)) => ArgumentError::InvalidValue {
            path: truncated(&path, MAX_TEXT),
            expected: "a number that 64-bit floating point can hold".to_owned(),
            actual: truncated(number, MAX_NAME),
        },
        None => unreadable(&error),
    })
}

fn unreadable(error: &JsonError) -> ArgumentError {
    ArgumentError::InvalidValue {
        path: String::new(),
        expected: "JSON that every parser reads alike".to_owned(),
        actual: truncated(&for_display(&error.to_string()), MAX_TEXT),
    }
}

/// The first number in `value` that `f64` cannot hold, with its pointer.
fn number_beyond_f64<'v>(value: &'v Json<'_>, path: &str) -> Option<(String, &'v str)> {
    match value {
        Json::Number(number) => {
            let is_finite = number.parse().is_ok_and(f64::is_finite);
            (!is_finite).then(|| (path.to_owned(), number.as_ref()))
        }
        Json::Array(elements) => {
            let mut indexed = elements.iter().enumerate();
            indexed.find_map(|(at, element)| number_beyond_f64(element, &format!("{path}/{at}")))
        }
        Json::Object(members) => {
            let mut entries = members.iter();
            entries.find_map(|(key, value)| number_beyond_f64(value, &json::pointer(path, key)))
        }
        _ => None,
    }
}

/// Like [`argument_error`], for the arguments of a call: names what is missing. `None` for arguments that are not among
/// `known`: their names were compared already.
pub(super) fn call_error(
    error: &ValidationError<'_>,
    known: Option<&BTreeSet<String>>,
) -> Option<ArgumentError> {
    use ValidationErrorKind as Is;
    let nearest = nearest_branch(error);
    let is_root = nearest.instance_path().as_str().is_empty();
    match nearest.kind() {
        Is::Required { property } if is_root => {
            let name = property.as_str().unwrap_or_default();
            Some(ArgumentError::MissingArgument {
                name: truncated(&for_display(name), MAX_NAME),
            })
        }
        Is::AdditionalProperties { unexpected } if is_root => {
            let is_unknown =
                |names: &BTreeSet<String>| unexpected.iter().all(|name| !names.contains(name));
            (!known.is_some_and(is_unknown)).then(|| argument_error(error))
        }
        _ => Some(argument_error(error)),
    }
}

fn argument_error(error: &ValidationError<'_>) -> ArgumentError {
    let error = nearest_branch(error);
    ArgumentError::InvalidValue {
        path: truncated(error.instance_path().as_str(), MAX_TEXT),
        expected: truncated(&expected(error), MAX_TEXT),
        actual: given(error),
    }
}

/// The error of the branch that the value was meant for, if that is clear: it says more than that no branch matches.
fn nearest_branch<'e, 'v>(mut error: &'e ValidationError<'v>) -> &'e ValidationError<'v> {
    // Deeper nesting is reported as it is.
    for _ in 0..4 {
        let (ValidationErrorKind::AnyOf { context }
        | ValidationErrorKind::OneOfNotValid { context }) = error.kind()
        else {
            break;
        };
        let Some(branch) = matching_branch(context, error.instance_path().as_str()) else {
            break;
        };
        let Some(inner) = branch.first() else {
            break;
        };
        error = inner;
    }
    error
}

type Branch = Vec<ValidationError<'static>>;

/// The only branch for values of this type, or the only one of these whose constants match.
fn matching_branch<'b>(branches: &'b [Branch], at: &str) -> Option<&'b Branch> {
    use ValidationErrorKind as Is;
    let other_kind = |error: &ValidationError<'_>| {
        error.instance_path().as_str() == at
            && matches!(
                error.kind(),
                Is::Type { .. } | Is::Constant { .. } | Is::Enum { .. }
            )
    };
    let other_constant =
        |error: &ValidationError<'_>| matches!(error.kind(), Is::Constant { .. } | Is::Enum { .. });
    let of_kind = || {
        branches
            .iter()
            .filter(|branch| !branch.iter().any(other_kind))
    };
    let constant = of_kind().filter(|branch| !branch.iter().any(other_constant));
    only(of_kind()).or_else(|| only(constant))
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Describes what the schema accepts.
fn expected(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Is;
    match error.kind() {
        Is::Type { kind } => kinds(kind),
        Is::Enum { options } => format!("one of {}", values(options)),
        Is::Constant { expected_value } => expected_value.to_string(),
        Is::Required { property } => format!("the property {property}"),
        Is::AdditionalProperties { unexpected } | Is::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected
                .iter()
                .take(8)
                .map(|name| format!("`{}`", for_display(name)))
                .collect();
            format!("no property {}", names.join(", "))
        }
        Is::Minimum { limit } => format!("at least {limit}"),
        Is::Maximum { limit } => format!("at most {limit}"),
        Is::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Is::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Is::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Is::MinLength { limit } => format!("at least {limit} characters"),
        Is::MaxLength { limit } => format!("at most {limit} characters"),
        Is::MinItems { limit } => format!("at least {limit} elements"),
        Is::MaxItems { limit } => format!("at most {limit} elements"),
        Is::MinProperties { limit } => format!("at least {limit} properties"),
        Is::MaxProperties { limit } => format!("at most {limit} properties"),
        Is::UniqueItems => "elements that differ from each other".to_owned(),
        Is::Pattern { pattern } => format!("a text that matches {pattern}"),
        Is::Format { format } => format!("a text of the format {format}"),
        Is::AnyOf { context } | Is::OneOfNotValid { context } => {
            branches(context, error.instance_path().as_str())
        }
        Is::OneOfMultipleValid { .. } => "what only one of the alternatives takes".to_owned(),
        Is::FalseSchema => "nothing".to_owned(),
        Is::PropertyNames { error } => format!("other names of properties: {}", expected(error)),
        other => format!("what `{}` in the tool's schema takes", other.keyword()),
    }
}

/// Describes what each branch of a choice accepts first, and where below `at`.
fn branches(context: &[Branch], at: &str) -> String {
    let firsts = context.iter().take(8).filter_map(|errors| errors.first());
    let mut all: Vec<String> = firsts
        .map(|error| {
            let path = error.instance_path().as_str();
            match path.strip_prefix(at).filter(|below| !below.is_empty()) {
                Some(below) => truncated(&format!("`{below}`: {}", expected(error)), 80),
                None => truncated(&expected(error), 80),
            }
        })
        .collect();
    let mut seen = BTreeSet::new();
    all.retain(|text| seen.insert(text.clone()));
    all.join(", or ")
}

fn kinds(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => with_article(&kind.to_string()),
        TypeKind::Multiple(kinds) => {
            let named: Vec<_> = kinds
                .iter()
                .map(|kind| with_article(&kind.to_string()))
                .collect();
            named.join(" or ")
        }
    }
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn values(options: &Value) -> String {
    let listed = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let all: Vec<_> = listed.iter().take(32).map(ToString::to_string).collect();
    all.join(", ")
}

/// Describes the given value: a short one itself, a long one by its type and size.
fn given(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Required { .. } = error.kind() {
        return "nothing".to_owned();
    }
    kind(error.instance().as_ref())
}

fn kind(value: &Value) -> String {
    match value {
        Value::Object(members) => counted("an object", members.len(), ["property", "properties"]),
        Value::Array(elements) => counted("an array", elements.len(), ["element", "elements"]),
        scalar => truncated(&scalar.to_string(), 80),
    }
}

fn counted(what: &str, count: usize, [one, many]: [&str; 2]) -> String {
    format!("{what} of {count} {}", if count == 1 { one } else { many })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Bytes that one value takes in a tree, besides its text; objects with one member cost most.
const VALUE_BYTES: usize = 300;
/// Bytes that the errors of one check may copy.
const MAX_COPIED_BYTES: usize = 16 << 20;
/// How many errors are reported, and how many are counted.
const MAX_REPORTED: usize = 8;
const MAX_COUNTED: usize = 100;
/// Characters of an argument's name.
const MAX_NAME: usize = 64;

#[cfg(test)]
mod tests;
