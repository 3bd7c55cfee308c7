//! Compiles schemas, within the limits of what can be checked in time.

use jsonschema::{PatternOptions, Validator};
use mcp_vary::ignored::for_display;
use mcp_vary::json::{self, Json};

use super::borrowed::BorrowedJson;
use super::effort::Effort;
use crate::fault::truncated;

/// What `format` means in a schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Format {
    Assertion,
    /// > The value of this keyword MAY be … "annotation" … by default (JSON Schema 2020-12, Validation, 7.2.1:
    /// > "Format-Annotation Vocabulary")
    Annotation,
}

/// The compiled schema, and its effort by depth; or why values cannot be checked against it.
///
/// `jsonschema` is compiled once more for each representation of values, which is 0.7 MB of the program. So there is one.
pub(super) fn compile(
    schema: &str,
    format: Format,
) -> Result<(Validator<BorrowedJson>, Vec<u64>), String> {
    if schema.len() > MAX_SCHEMA_BYTES {
        return Err(format!("it has more than {MAX_SCHEMA_BYTES} bytes"));
    }
    let read = Json::parse(schema).map_err(|error| error.to_string())?;
    let effort = Effort::by_depth(&read);
    if effort.is_empty() {
        return Err("it takes too long to check values against it".to_owned());
    }
    let value = json::to_value(schema).map_err(|error| error.to_string())?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_PATTERN_BYTES);
    let mut options = jsonschema::options_for::<BorrowedJson>().with_pattern_options(patterns);
    if format == Format::Annotation {
        options = options.should_validate_formats(false);
    }
    let validator = options
        .offline()
        .build(&value)
        .map_err(|error| truncated(&for_display(&error.to_string()), MAX_TEXT))?;
    Ok((validator, effort))
}

/// Whether arguments have more values than are checked.
pub(super) fn has_too_many_values(arguments: &str) -> bool {
    // Every value has a byte.
    arguments.len() > MAX_CHECKED_VALUES && json::count_values(arguments) > MAX_CHECKED_VALUES
}

/// Arguments with more values are not checked under a dialect: a tree of them takes about 300 bytes for each value.
pub const MAX_CHECKED_VALUES: usize = 100_000;
/// Longer schemas are not compiled.
const MAX_SCHEMA_BYTES: usize = 512 * 1024;
const MAX_BACKTRACKS: usize = 10_000;
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// Characters of a description of what is expected.
pub(super) const MAX_TEXT: usize = 300;
