//! Writes schemas for Gemini's function declarations.

use std::borrow::Cow;

use mcp_vary::json::{Json, string as string_json};

use super::members::{Member, push, push_enum, push_number, push_text};
use super::reading::{Reader, References};
use super::sentences;
use super::value_schema::{Choice, Kind, Number, Object, Text, ValueSchema};

/// The schema of a tool's arguments with only the keywords of Gemini's `Schema`.
pub(super) fn schema<'j>(schema: &'j Json<'j>) -> Json<'j> {
    let (value_schema, object) = Reader::new(schema, References::Inline).root();
    let mut members = Vec::new();
    push_text(&mut members, "title", value_schema.title);
    push_text(&mut members, "description", value_schema.description);
    push_text(&mut members, "type", Some("object"));
    push(&mut members, "properties", properties(&object));
    push_required(&mut members, &object);
    Json::Object(members)
}

fn value<'j>(value_schema: &ValueSchema<'j>) -> Json<'j> {
    if value_schema.accepts_any {
        return any_value(value_schema);
    }
    match value_schema.choices.as_slice() {
        [] => null(value_schema),
        [choice] => choice_schema(choice, value_schema, value_schema.nullable),
        several => {
            // `anyOf` allows no other keyword beside it, so each branch repeats the description.
            let shared = ValueSchema {
                title: None,
                ..value_schema.annotations()
            };
            let branches = several.iter().enumerate().map(|(at, choice)| {
                choice_schema(choice, &shared, value_schema.nullable && at == 0)
            });
            Json::Object(vec![(
                Cow::Borrowed("anyOf"),
                Json::Array(branches.collect()),
            )])
        }
    }
}

/// The schema of one kind of value, with the title and description of its position.
fn choice_schema<'j>(choice: &Choice<'j>, value_schema: &ValueSchema<'j>, null: bool) -> Json<'j> {
    let mut members = Vec::new();
    let mut notes = Vec::new();
    if value_schema.is_truncated {
        notes.push(sentences::TRUNCATED.to_owned());
    }
    let mut remaining = Vec::new();
    let name = kind(&choice.kind, &mut remaining, &mut notes);
    push_text(&mut members, "title", choice.title.or(value_schema.title));
    let description =
        sentences::with_sentences(choice.description.or(value_schema.description), &notes);
    push_text(&mut members, "description", description);
    push_text(&mut members, "type", Some(name));
    members.append(&mut remaining);
    if null {
        push(&mut members, "nullable", Json::Bool(true));
    }
    if let Some(default) = value_schema.default {
        push(&mut members, "default", default.clone());
    }
    Json::Object(members)
}

/// Writes the keywords of a kind, adds sentences for constraints without a keyword, and returns the name of the
/// type.
fn kind<'j>(
    kind: &Kind<'j>,
    members: &mut Vec<Member<'j>>,
    notes: &mut Vec<String>,
) -> &'static str {
    match kind {
        Kind::Text(text) => {
            string(text, members, notes);
            "string"
        }
        Kind::Number(number) => {
            numeric(number, members, notes);
            if number.is_integer {
                "integer"
            } else {
                "number"
            }
        }
        Kind::Boolean(only) => {
            notes.extend(only.map(|only| format!("Always {only}.")));
            "boolean"
        }
        Kind::Array(array) => {
            push(members, "items", value(&array.items));
            push_number(members, "minItems", array.min_items);
            push_number(members, "maxItems", array.max_items);
            "array"
        }
        Kind::Object(object) => {
            if !object.properties.is_empty() {
                push(members, "properties", properties(object));
            }
            push_required(members, object);
            "object"
        }
        // References are inlined, so there are no definitions.
        Kind::Definition(_) => "object",
    }
}

fn string<'j>(text: &Text<'j>, members: &mut Vec<Member<'j>>, notes: &mut Vec<String>) {
    match &text.values {
        // Gemini rejects an empty text as a value.
        Some(values) if !values.contains(&"") => push_enum(members, values, Json::String, false),
        Some(values) => notes.push(sentences::one_of(
            values.iter().map(|value| string_json(value)),
        )),
        None => {}
    }
    match text.format {
        Some("date-time") if text.values.is_none() => {
            push_text(members, "format", Some("date-time"));
        }
        other => notes.extend(other.and_then(sentences::format)),
    }
    match text.pattern {
        Some(pattern) if sentences::is_plain(pattern) => {
            push_text(members, "pattern", Some(pattern));
        }
        other => notes.extend(other.and_then(sentences::pattern)),
    }
    push_number(members, "minLength", text.min_length);
    push_number(members, "maxLength", text.max_length);
}

fn numeric<'j>(number: &Number<'j>, members: &mut Vec<Member<'j>>, notes: &mut Vec<String>) {
    let only = match number.values.as_deref() {
        Some([only]) => Some(*only),
        Some(values) => {
            notes.push(sentences::one_of(values));
            None
        }
        None => None,
    };
    notes.extend(sentences::exclusive(number));
    notes.extend(number.multiple_of.map(sentences::multiple_of));
    let minimum = only.or(number.minimum).or(number.exclusive_minimum);
    let maximum = only.or(number.maximum).or(number.exclusive_maximum);
    push_number(members, "minimum", minimum);
    push_number(members, "maximum", maximum);
}

fn properties<'j>(object: &Object<'j>) -> Json<'j> {
    let named = object.properties.iter();
    Json::Object(
        named
            .map(|p| (Cow::Borrowed(p.name), value(&p.schema)))
            .collect(),
    )
}

/// Any value, which Gemini cannot express: a choice of all kinds except arrays of arrays.
fn any_value<'j>(value_schema: &ValueSchema<'j>) -> Json<'j> {
    let text = || Choice::new(Kind::Text(Text::default()));
    let scalars = || {
        vec![
            text(),
            Choice::new(Kind::Number(Number::default())),
            Choice::new(Kind::Boolean(None)),
            Choice::new(Kind::Object(Object::default())),
        ]
    };
    let items = ValueSchema {
        nullable: true,
        choices: scalars(),
        ..ValueSchema::default()
    };
    let mut choices = scalars();
    choices.push(Choice::new(Kind::Array(super::value_schema::Array {
        items: Box::new(items),
        min_items: None,
        max_items: None,
    })));
    value(&ValueSchema {
        nullable: true,
        choices,
        ..value_schema.annotations()
    })
}

/// A schema for `null` only, or for no value: Gemini can express neither.
fn null<'j>(value_schema: &ValueSchema<'j>) -> Json<'j> {
    let mut choice = Choice::new(Kind::Text(Text::default()));
    let notes = ["Always null.".to_owned()];
    let description = sentences::with_sentences(value_schema.description, &notes);
    choice.title = value_schema.title;
    let Json::Object(mut members) = choice_schema(&choice, &ValueSchema::default(), true) else {
        return Json::Null;
    };
    members.insert(
        0,
        (
            Cow::Borrowed("description"),
            Json::String(Cow::Owned(description.unwrap_or_default())),
        ),
    );
    Json::Object(members)
}

fn push_required<'j>(members: &mut Vec<Member<'j>>, object: &Object<'j>) {
    let required = object
        .properties
        .iter()
        .filter(|property| property.required);
    let names: Vec<Json<'j>> = required
        .map(|property| Json::String(Cow::Borrowed(property.name)))
        .collect();
    if !names.is_empty() {
        push(members, "required", Json::Array(names));
    }
}
