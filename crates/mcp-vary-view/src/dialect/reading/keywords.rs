//! Reads the values of a keyword in several schemas that apply together.

use mcp_vary::json::Json;

use super::Members;

/// The lists of schemas of which one must match.
pub(super) fn choices<'s, 'j: 's>(
    schemas: &'s [Members<'j>],
) -> impl Iterator<Item = &'j Json<'j>> + 's {
    let members = schemas.iter().flat_map(|members| members.iter());
    members.filter_map(|(keyword, value)| {
        let choice = keyword == "anyOf" || keyword == "oneOf";
        (choice && value.as_array().is_some_and(|all| !all.is_empty())).then_some(value)
    })
}

/// Whether the keyword by itself restricts the accepted values.
pub(super) fn is_constraint(keyword: &str) -> bool {
    ![
        "$comment",
        "$defs",
        "$id",
        "$ref",
        "$schema",
        "allOf",
        "anyOf",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "id",
        "oneOf",
        "readOnly",
        "title",
        "writeOnly",
    ]
    .contains(&keyword)
        && !keyword.starts_with("x-")
}

pub(super) fn all<'s, 'j: 's>(
    schemas: &'s [Members<'j>],
    keyword: &'s str,
) -> impl Iterator<Item = &'j Json<'j>> + 's {
    let members = schemas.iter().flat_map(|members| members.iter());
    members.filter_map(move |(name, value)| (name == keyword).then_some(value))
}

pub(super) fn first<'j>(schemas: &[Members<'j>], keyword: &str) -> Option<&'j Json<'j>> {
    let mut members = schemas.iter().flat_map(|members| members.iter());
    members.find_map(|(name, value)| (name == keyword).then_some(value))
}

pub(super) fn text<'j>(schemas: &[Members<'j>], keyword: &str) -> Option<&'j str> {
    let mut members = schemas.iter().flat_map(|members| members.iter());
    members.find_map(|(name, value)| (name == keyword).then(|| value.as_str()).flatten())
}

/// A number of elements or characters, if it is written as an integer.
pub(super) fn count<'j>(schemas: &[Members<'j>], keyword: &str) -> Option<&'j str> {
    let spelled = first(schemas, keyword).and_then(spelling)?;
    let digits = spelled.bytes().all(|byte| byte.is_ascii_digit());
    (digits && spelled.len() <= 18).then_some(spelled)
}

pub(super) fn spelling<'j>(value: &'j Json<'j>) -> Option<&'j str> {
    match value {
        Json::Number(spelling) => Some(spelling),
        _ => None,
    }
}
