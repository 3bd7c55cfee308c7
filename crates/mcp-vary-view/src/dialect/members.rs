//! The keywords of a schema while it is written.

use std::borrow::Cow;

use mcp_vary::json::Json;

/// A keyword with its value.
pub(super) type Member<'j> = (Cow<'j, str>, Json<'j>);

pub(super) fn push<'j>(members: &mut Vec<Member<'j>>, keyword: &'static str, value: Json<'j>) {
    members.push((Cow::Borrowed(keyword), value));
}

/// Adds a keyword whose value is a text, if there is one.
pub(super) fn push_text<'j>(
    members: &mut Vec<Member<'j>>,
    keyword: &'static str,
    text: Option<impl Into<Cow<'j, str>>>,
) {
    members.extend(text.map(|text| (Cow::Borrowed(keyword), Json::String(text.into()))));
}

/// Adds a keyword whose value is a number, if there is one.
pub(super) fn push_number<'j>(
    members: &mut Vec<Member<'j>>,
    keyword: &'static str,
    number: Option<&'j str>,
) {
    members.extend(number.map(|n| (Cow::Borrowed(keyword), Json::Number(Cow::Borrowed(n)))));
}

/// Adds the values that are allowed, each as `kind` has it, and `null` if that is one.
pub(super) fn push_enum<'j>(
    members: &mut Vec<Member<'j>>,
    values: &[&'j str],
    kind: fn(Cow<'j, str>) -> Json<'j>,
    null: bool,
) {
    let options = values.iter().map(|value| kind(Cow::Borrowed(*value)));
    let all = options.chain(null.then_some(Json::Null));
    push(members, "enum", Json::Array(all.collect()));
}
