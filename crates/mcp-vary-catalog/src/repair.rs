//! Repairs what a server lists, so that every client can read it.

use std::borrow::Cow;

use mcp_vary::json::{Json, edit, string, to_value};
use mcp_vary::variant::Date;
use mcp_vary_view::{SchemaUse, repair_schema};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sanitize::excerpt;

use mcp_vary_wire::list_kind::ListKind;

/// What a member must have as its value.
#[derive(Debug)]
enum Shape {
    Text,
    Flag,
    Integer,
    /// A number from 0 to 1.
    Share,
    /// A time of ISO 8601 with an offset.
    Time,
    Word(&'static [&'static str]),
    Table,
    List(&'static Self),
    Object(&'static [Member]),
}

/// A member: its name, and its value. The required one comes first.
type Member = (&'static str, Shape);

/// An item that clients can read, and what was wrong with it.
#[derive(Debug)]
pub(crate) struct RepairedItem<'a> {
    /// The item, unchanged if nothing was wrong.
    pub(crate) json: Cow<'a, str>,
    pub(crate) problems: Vec<String>,
}

/// Repairs an item of `kind` from a server of `era`.
///
/// What has one meaning is repaired; an optional member without one is removed. The name and every member that is right stay
/// as written.
///
/// # Errors
///
/// Why the item cannot be used.
pub(crate) fn repair_item(
    written: &str,
    kind: ListKind,
    era: Era,
) -> Result<RepairedItem<'_>, String> {
    let mut problems = Vec::new();
    let normalized;
    let (mut json, tree) = match Json::parse(written) {
        Ok(tree) => (Cow::Borrowed(written), tree),
        Err(error) => {
            // What repeats a key means its last value to all parsers.
            let error = match error.duplicate_key() {
                Some(key) => format!("the key `{key}` is there twice"),
                None => error.to_string(),
            };
            let error = excerpt(error.as_bytes(), MAX_SHOWN);
            let value = to_value(written).map_err(|_| format!("it cannot be read: {error}"))?;
            normalized = value.to_string();
            problems.push(error);
            let tree = Json::parse(&normalized).map_err(|error| error.to_string())?;
            (Cow::Owned(normalized.clone()), tree)
        }
    };
    let Json::Object(members) = tree else {
        return Err("it is not an object".to_owned());
    };
    let member = members.iter().find(|(key, _)| key == kind.id_key());
    let id = member.and_then(|(_, id)| id.as_str()).unwrap_or_default();
    if id.is_empty() {
        return Err(format!("its `{}` is not a text, or empty", kind.id_key()));
    }
    if kind != ListKind::Tools && kind != ListKind::Prompts {
        let name = members.iter().find(|(key, _)| key == "name");
        if name.is_none_or(|(_, name)| name.as_str().is_none()) {
            problems.push("`name` is missing or not a text".to_owned());
            json = Cow::Owned(edit::set(&json, "name", &string(id)).into_owned());
        }
    }
    let is_missing = !members.iter().any(|(key, _)| key == "inputSchema");
    for (key, mut value) in members {
        match repair_member(&key, &mut value, kind, era, &mut problems)? {
            Fit::Right => {}
            Fit::Repaired => {
                json = Cow::Owned(edit::set(&json, &key, &value.to_json()).into_owned())
            }
            Fit::Wrong => json = Cow::Owned(edit::remove(&json, &key).into_owned()),
        }
    }
    if kind == ListKind::Tools && is_missing {
        problems.push("`inputSchema` is missing".to_owned());
        let any = r#"{"type":"object"}"#;
        json = Cow::Owned(edit::set(&json, "inputSchema", any).into_owned());
    }
    Ok(RepairedItem { json, problems })
}

/// Whether a value is right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fit {
    Right,
    Repaired,
    Wrong,
}

fn repair_member(
    key: &str,
    value: &mut Json<'_>,
    kind: ListKind,
    era: Era,
    problems: &mut Vec<String>,
) -> Result<Fit, String> {
    let is_tool = kind == ListKind::Tools;
    let fit = |is_changed| {
        if is_changed {
            Fit::Repaired
        } else {
            Fit::Right
        }
    };
    match key {
        "inputSchema" if is_tool => repair_schema(value, key, SchemaUse::Input, problems).map(fit),
        "outputSchema" if is_tool => {
            let used_as = match era {
                Era::Legacy => SchemaUse::ObjectOutput,
                Era::Modern => SchemaUse::AnyOutput,
            };
            Ok(repair_schema(value, key, used_as, problems).map_or_else(
                |problem| {
                    problems.push(problem);
                    Fit::Wrong
                },
                fit,
            ))
        }
        _ => {
            let mut members = COMMON.iter().chain(members_of(kind));
            let Some((_, shape)) = members.find(|(name, _)| *name == key) else {
                return Ok(Fit::Right);
            };
            Ok(repair_value(value, shape, key, problems))
        }
    }
}

/// Removes what is wrong within a value, and notes it.
fn repair_value(
    value: &mut Json<'_>,
    shape: &Shape,
    path: &str,
    problems: &mut Vec<String>,
) -> Fit {
    let fit = match (shape, &mut *value) {
        (Shape::List(element), Json::Array(elements)) => {
            let mut fit = Fit::Right;
            elements.retain_mut(|value| {
                let of_element = repair_value(value, element, path, problems);
                if of_element != Fit::Right {
                    fit = Fit::Repaired;
                }
                of_element != Fit::Wrong
            });
            return fit;
        }
        (Shape::Object(shapes), Json::Object(members)) => {
            return repair_members(members, shapes, path, problems);
        }
        (shape, value) => shape.accepts(value),
    };
    if fit {
        return Fit::Right;
    }
    if problems.len() < MAX_PROBLEMS {
        let shown = excerpt(value.to_json().as_bytes(), MAX_SHOWN);
        problems.push(format!("`{path}` cannot be {shown}"));
    }
    Fit::Wrong
}

fn repair_members(
    members: &mut Vec<(Cow<'_, str>, Json<'_>)>,
    shapes: &[Member],
    path: &str,
    problems: &mut Vec<String>,
) -> Fit {
    let mut fit = Fit::Right;
    members.retain_mut(|(key, value)| {
        let Some((name, shape)) = shapes.iter().find(|(name, _)| *name == key) else {
            return true;
        };
        let of_member = repair_value(value, shape, &format!("{path}/{name}"), problems);
        if of_member != Fit::Right {
            fit = Fit::Repaired;
        }
        of_member != Fit::Wrong
    });
    let required = shapes
        .first()
        .map(|(name, _)| *name)
        .filter(|name| REQUIRED.contains(name));
    let lacks = |name: &&str| !members.iter().any(|(key, _)| key == name);
    if let Some(name) = required.filter(lacks) {
        problems.push(format!("`{path}` cannot be without `{name}`"));
        return Fit::Wrong;
    }
    fit
}

impl Shape {
    fn accepts(&self, value: &Json<'_>) -> bool {
        let text = value.as_str();
        let number = match value {
            Json::Number(number) => number.parse::<f64>().ok(),
            _ => None,
        };
        match self {
            Self::Text => text.is_some(),
            Self::Flag => matches!(value, Json::Bool(_)),
            Self::Integer => number.is_some_and(|it| it.fract() == 0.0 && it.abs() < 1e15),
            Self::Share => number.is_some_and(|number| (0.0..=1.0).contains(&number)),
            Self::Time => text.is_some_and(is_time),
            Self::Word(known) => text.is_some_and(|text| known.contains(&text)),
            Self::Table => value.as_object().is_some(),
            Self::List(_) | Self::Object(_) => false,
        }
    }
}

/// Whether a text is a time of RFC 3339 in capitals and without leap seconds, as clients read it.
fn is_time(text: &str) -> bool {
    let is_strict = text.contains('T') && !text.contains(['t', 'z']) && !text.contains(":60");
    is_strict && text.parse::<Date>().is_ok()
}

/// The members without which an object means nothing.
const REQUIRED: [&str; 2] = ["src", "name"];

const ICON: Shape = Shape::Object(&[
    ("src", Shape::Text),
    ("mimeType", Shape::Text),
    ("sizes", Shape::List(&Shape::Text)),
    ("theme", Shape::Word(&["light", "dark"])),
]);

const ARGUMENT: Shape = Shape::Object(&[
    ("name", Shape::Text),
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("required", Shape::Flag),
]);

const ANNOTATIONS: Member = (
    "annotations",
    Shape::Object(&[
        (
            "audience",
            Shape::List(&Shape::Word(&["user", "assistant"])),
        ),
        ("priority", Shape::Share),
        ("lastModified", Shape::Time),
    ]),
);

static COMMON: [Member; 4] = [
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("icons", Shape::List(&ICON)),
    ("_meta", Shape::Table),
];

static TOOL: [Member; 2] = [
    (
        "annotations",
        Shape::Object(&[
            ("title", Shape::Text),
            ("readOnlyHint", Shape::Flag),
            ("destructiveHint", Shape::Flag),
            ("idempotentHint", Shape::Flag),
            ("openWorldHint", Shape::Flag),
        ]),
    ),
    (
        "execution",
        Shape::Object(&[(
            "taskSupport",
            Shape::Word(&["forbidden", "optional", "required"]),
        )]),
    ),
];

static PROMPT: [Member; 1] = [("arguments", Shape::List(&ARGUMENT))];

static TEMPLATE: [Member; 2] = [("mimeType", Shape::Text), ANNOTATIONS];

static RESOURCE: [Member; 3] = [
    ("mimeType", Shape::Text),
    ANNOTATIONS,
    ("size", Shape::Integer),
];

fn members_of(kind: ListKind) -> &'static [Member] {
    match kind {
        ListKind::Tools => &TOOL,
        ListKind::Prompts => &PROMPT,
        ListKind::Resources => &RESOURCE,
        ListKind::Templates => &TEMPLATE,
    }
}

/// Characters of what a server wrote.
const MAX_SHOWN: usize = 80;
/// The most problems that are noted of one item.
const MAX_PROBLEMS: usize = 4;

#[cfg(test)]
mod tests;
