//! Reads the constraints of scalars.

use mcp_vary::json::Json;

use super::Members;
use super::keywords::{all, count, first, spelling, text};
use super::kinds::Kinds;
use crate::dialect::value_schema::{Kind, Number, Text};

pub(super) fn string<'j>(
    schemas: &[Members<'j>],
    values: Option<&[&'j Json<'j>]>,
) -> Option<Kind<'j>> {
    let values: Option<Vec<&str>> =
        values.map(|all| all.iter().filter_map(|value| value.as_str()).collect());
    if values.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    Some(Kind::Text(Text {
        values,
        format: text(schemas, "format"),
        pattern: text(schemas, "pattern"),
        min_length: count(schemas, "minLength"),
        max_length: count(schemas, "maxLength"),
    }))
}

pub(super) fn number<'j>(
    schemas: &[Members<'j>],
    kinds: &Kinds,
    values: Option<&[&'j Json<'j>]>,
) -> Option<Kind<'j>> {
    let values: Option<Vec<&str>> =
        values.map(|all| all.iter().filter_map(|value| spelling(value)).collect());
    if values.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let limit = |keyword| all(schemas, keyword).find_map(spelling);
    // Up to draft 4, the exclusive keywords are booleans about the other limits.
    let excludes = |keyword| all(schemas, keyword).any(|value| *value == Json::Bool(true));
    let minimum = limit("minimum");
    let maximum = limit("maximum");
    let above = excludes("exclusiveMinimum");
    let below = excludes("exclusiveMaximum");
    Some(Kind::Number(Number {
        is_integer: kinds.integer && !kinds.float,
        values,
        format: text(schemas, "format"),
        minimum: if above { None } else { minimum },
        maximum: if below { None } else { maximum },
        exclusive_minimum: limit("exclusiveMinimum").or(if above { minimum } else { None }),
        exclusive_maximum: limit("exclusiveMaximum").or(if below { maximum } else { None }),
        multiple_of: limit("multipleOf"),
    }))
}

pub(super) fn boolean<'j>(values: Option<&[&'j Json<'j>]>) -> Option<Kind<'j>> {
    let may_be = |wanted| values.is_none_or(|all| all.contains(&&Json::Bool(wanted)));
    match (may_be(true), may_be(false)) {
        (true, true) => Some(Kind::Boolean(None)),
        (only, other) => (only || other).then_some(Kind::Boolean(Some(only))),
    }
}

/// The only accepted values: the first such list, which may be longer than what all schemas together accept.
pub(super) fn values<'j>(schemas: &[Members<'j>]) -> Option<Vec<&'j Json<'j>>> {
    let constant = first(schemas, "const").map(|value| vec![value]);
    constant.or_else(|| {
        let listed = all(schemas, "enum").find_map(Json::as_array)?;
        Some(listed.iter().collect()).filter(|all: &Vec<_>| !all.is_empty())
    })
}
