//! Accepts the arguments of most calls, quickly.

use jsonschema::Validator;
use mcp_vary::json;

use super::borrowed::{BorrowedJson, BorrowedValue};
use super::compile::{Format, compile, has_too_many_values};

/// Accepts the arguments in which a [`SchemaCheck`](super::SchemaCheck) of the same schema finds no errors. It reads them
/// in a fraction of the time, and does not know what is wrong with others.
#[derive(Debug)]
pub(in super::super) struct AcceptanceCheck {
    validator: Validator<BorrowedJson>,
    /// As in [`SchemaCheck`](super::SchemaCheck).
    effort: Vec<u64>,
}

impl AcceptanceCheck {
    /// Compiles the schema, or returns why arguments cannot be checked against it.
    pub(in super::super) fn new(schema: &str, format: Format) -> Result<Self, String> {
        let (validator, effort) = compile(schema, format)?;
        Ok(Self { validator, effort })
    }

    /// Whether the schema accepts the arguments, or they cannot be checked against it. False if parsers may read them in
    /// different ways.
    pub(in super::super) fn accepts(&self, arguments: &str) -> bool {
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
}

#[cfg(test)]
mod tests;
