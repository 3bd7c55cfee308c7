//! The keys of a table, as data: what each is, what may be written there, and what that sets.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use super::reader::{Located, Reader};
use super::schema::{Schema, Shape};

/// One key of a table.
pub(super) struct KeySpec<T> {
    pub(super) key: &'static str,
    /// What it is, as the reference has it.
    pub(super) about: &'static str,
    /// What holds without it, as the reference has it; empty where there is nothing to write.
    pub(super) default: &'static str,
    pub(super) takes: ValueKind<T>,
}

/// What may be written under a key, and where it goes: one value for the reader and for editors, so that they
/// agree.
pub(super) enum ValueKind<T> {
    /// A text, a number or a boolean.
    Scalar(fn(&mut T) -> &mut Option<String>),
    Switch(fn(&mut T) -> &mut bool),
    Duration(fn(&mut T) -> &mut Duration),
    /// A number of bytes.
    Size(fn(&mut T) -> &mut usize),
    /// A number of things.
    Count(RangeInclusive<usize>, fn(&mut T) -> &mut usize),
    /// A whole number, which may be negative.
    Number(RangeInclusive<i32>, fn(&mut T) -> &mut i32),
    /// Anything else, as editors and as the reader take it.
    Other(Shape, fn(&mut Reader<'_>, &Located<'_>, &mut T)),
}

impl<T> ValueKind<T> {
    /// Sets what is written in `field`, or says what is wrong with it.
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

    /// What may be written.
    pub(super) fn shape(&self, schema: &mut Schema) -> Value {
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
