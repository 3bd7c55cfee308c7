//! The keys of a table, as data: the meaning of each key, its allowed values, and the field that it sets.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use super::reader::{Located, Reader};
use super::schema_builder::{SchemaBuilder, Shape};

/// One key of a table.
pub(super) struct KeySpec<T> {
    pub(super) key: &'static str,
    /// The description for the reference.
    pub(super) about: &'static str,
    /// The default for the reference. Empty if there is none to show.
    pub(super) default: &'static str,
    pub(super) takes: ValueKind<T>,
}

/// The allowed values of a key, and the field that they set. The reader and the schema for editors share this, so that
/// they agree.
pub(super) enum ValueKind<T> {
    /// A text, a number or a boolean.
    Scalar(fn(&mut T) -> &mut Option<String>),
    Switch(fn(&mut T) -> &mut bool),
    Duration(fn(&mut T) -> &mut Duration),
    /// A number of bytes.
    Size(fn(&mut T) -> &mut usize),
    /// A count.
    Count(RangeInclusive<usize>, fn(&mut T) -> &mut usize),
    /// A whole number, which may be negative.
    Number(RangeInclusive<i32>, fn(&mut T) -> &mut i32),
    /// Anything else, with its schema and its reader.
    Other(Shape, fn(&mut Reader<'_>, &Located<'_>, &mut T)),
}

impl<T> ValueKind<T> {
    /// Reads `field` and sets its value, or reports an error.
    pub(super) fn read(&self, reader: &mut Reader<'_>, field: &Located<'_>, into: &mut T) {
        match self {
            Self::Scalar(place) => *place(into) = reader.word(field),
            Self::Switch(place) => reader.switch(field, place(into)),
            Self::Duration(place) => reader.duration(field, place(into)),
            Self::Size(place) => reader.size(field, place(into)),
            Self::Count(range, place) => reader.count(field, range.clone(), place(into)),
            Self::Number(range, place) => reader.number(field, range.clone(), place(into)),
            Self::Other(_, read) => read(reader, field, into),
        }
    }

    /// The schema of the allowed values.
    pub(super) fn shape(&self, schema: &mut SchemaBuilder) -> Value {
        match self {
            Self::Scalar(_) => schema.word(),
            Self::Switch(_) => schema.switch(),
            Self::Duration(_) => schema.duration(),
            Self::Size(_) => schema.size(),
            Self::Count(range, _) => schema.count(range.clone()),
            Self::Number(range, _) => schema.number(range.clone()),
            Self::Other(shape, _) => shape(schema),
        }
    }
}
