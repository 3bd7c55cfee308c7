//! Writes schemas for OpenAI's strict function calling, with the decoder for their arguments.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mcp_vary::json::Json;

use super::back::{ArgumentDecoder, FieldDecoder, ValueDecoder};
use super::members::{Member, push, push_enum, push_number, push_text};
use super::reading::{Definition, Reader, References};
use super::sentences;
use super::value_schema::{Array, Choice, Kind, Number, Object, Text, ValueSchema};

/// The schema of a tool's arguments under OpenAI's rules, and the decoder for arguments that follow it.
pub(super) fn schema<'j>(schema: &'j Json<'j>) -> (Json<'j>, ArgumentDecoder) {
    let mut reader = Reader::new(schema, References::Preserve);
    let (value_schema, object) = reader.root();
    let mut writer = Writer {
        names: Vec::new(),
        usage: SchemaUsage::default(),
    };
    let mut members = Vec::new();
    push_text(&mut members, "title", value_schema.title);
    push_text(&mut members, "description", value_schema.description);
    push_text(&mut members, "type", Some("object"));
    writer.name_definitions(&reader);
    let back = writer.object(&object, &mut members, 1);

    let mut definitions = Vec::new();
    let mut backs = Vec::new();
    // Reading a definition may find more of them.
    while let Some(Definition { schema, .. }) = reader.definition(definitions.len()) {
        let value_schema = reader.definition_schema(schema);
        writer.name_definitions(&reader);
        let (json, back) = writer.value(&value_schema, false, 2);
        let name = writer.names[definitions.len()].clone();
        definitions.push((Cow::Owned(name), json));
        backs.push(back);
    }
    if !definitions.is_empty() {
        push(&mut members, "$defs", Json::Object(definitions));
    }
    (Json::Object(members), ArgumentDecoder::new(back, backs))
}

/// Writes schemas and tracks OpenAI's limits.
struct Writer {
    /// The names of the definitions.
    names: Vec<String>,
    usage: SchemaUsage,
}

/// The sizes that OpenAI limits for a whole schema.
#[derive(Default)]
struct SchemaUsage {
    properties: usize,
    values: usize,
    letters: usize,
}

impl SchemaUsage {
    fn try_add_properties(&mut self, object: &Object<'_>) -> bool {
        let letters: usize = object
            .properties
            .iter()
            .map(|property| property.name.len())
            .sum();
        self.properties += object.properties.len();
        self.letters += letters;
        self.properties <= MAX_PROPERTIES && self.letters <= MAX_LETTERS
    }

    fn try_add_values(&mut self, values: &[&str]) -> bool {
        let letters: usize = values.iter().map(|value| value.len()).sum();
        if values.len() > LONG_LIST && letters > MAX_LETTERS_IN_LONG_LIST {
            return false;
        }
        let fits =
            self.values + values.len() <= MAX_VALUES && self.letters + letters <= MAX_LETTERS;
        if fits {
            self.values += values.len();
            self.letters += letters;
        }
        fits
    }
}

impl Writer {
    /// Names the definitions that were found since the last call.
    fn name_definitions(&mut self, reader: &Reader<'_>) {
        let mut used: BTreeSet<String> = self.names.iter().cloned().collect();
        while let Some(definition) = reader.definition(self.names.len()) {
            let plain = |name: &&str| {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
                !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
            };
            let number = self.names.len() + 1;
            let written = definition.name.filter(plain).map(str::to_owned);
            let unused = written.filter(|name| !used.contains(name));
            let mut name = unused.unwrap_or_else(|| format!("part{number}"));
            while used.contains(&name) {
                name.push('_');
            }
            used.insert(name.clone());
            self.usage.letters += name.len();
            self.names.push(name);
        }
    }

    /// The schema of a value, which also accepts `null` for an omitted one if `optional`.
    fn value<'j>(
        &mut self,
        value_schema: &ValueSchema<'j>,
        optional: bool,
        level: usize,
    ) -> (Json<'j>, ValueDecoder) {
        let null = value_schema.nullable || optional;
        let mut notes = Vec::new();
        if value_schema.is_truncated {
            notes.push(sentences::TRUNCATED.to_owned());
        }
        if optional {
            notes.extend(value_schema.default.and_then(sentences::default));
        }
        let mut members = Vec::new();
        if value_schema.accepts_any {
            self.write_annotations(&mut members, value_schema, None, &notes);
            return (any_value(members), ValueDecoder::Unchanged);
        }
        // Beside an object as text, a text would be ambiguous.
        let text = value_schema
            .choices
            .iter()
            .any(|choice| matches!(choice.kind, Kind::Text(_)));
        let retained = |choice: &&Choice<'j>| !(text && is_open(&choice.kind));
        let choices: Vec<&Choice<'j>> = value_schema.choices.iter().filter(retained).collect();
        let left_out = value_schema.choices.iter().find(|choice| !retained(choice));
        let value_schema = &ValueSchema {
            description: value_schema
                .description
                .or(left_out.and_then(|choice| choice.description)),
            ..value_schema.annotations()
        };
        match choices.as_slice() {
            [] => {
                self.write_annotations(&mut members, value_schema, None, &notes);
                push_text(&mut members, "type", Some("null"));
                (Json::Object(members), ValueDecoder::Unchanged)
            }
            [choice] if !matches!(choice.kind, Kind::Definition(_)) => {
                self.choice(choice, value_schema, null, notes, level)
            }
            several => {
                self.write_annotations(&mut members, value_schema, None, &notes);
                let mut branches = Vec::new();
                let mut backs = Vec::new();
                for choice in several {
                    let (json, back) =
                        self.choice(choice, &ValueSchema::default(), false, Vec::new(), level);
                    branches.push(json);
                    backs.push(back);
                }
                if null {
                    branches.push(typed("null"));
                }
                push(&mut members, "anyOf", Json::Array(branches));
                (Json::Object(members), ValueDecoder::any(backs))
            }
        }
    }

    /// The schema of one kind of value, with the title and description of its position.
    fn choice<'j>(
        &mut self,
        choice: &Choice<'j>,
        value_schema: &ValueSchema<'j>,
        null: bool,
        mut notes: Vec<String>,
        level: usize,
    ) -> (Json<'j>, ValueDecoder) {
        if let Kind::Definition(number) = choice.kind {
            let pointer = format!("#/$defs/{}", self.names[number]);
            let reference = (Cow::Borrowed("$ref"), Json::String(Cow::Owned(pointer)));
            return (
                Json::Object(vec![reference]),
                ValueDecoder::Definition(number),
            );
        }
        let mut remaining = Vec::new();
        let mut members = Vec::new();
        let (name, back) = self.kind(&choice.kind, null, &mut remaining, &mut notes, level + 1);
        self.write_annotations(&mut members, value_schema, Some(choice), &notes);
        let named = Json::String(Cow::Borrowed(name));
        let named = if null {
            Json::Array(vec![named, Json::String(Cow::Borrowed("null"))])
        } else {
            named
        };
        push(&mut members, "type", named);
        members.append(&mut remaining);
        (Json::Object(members), back)
    }

    fn write_annotations<'j>(
        &self,
        members: &mut Vec<Member<'j>>,
        value_schema: &ValueSchema<'j>,
        choice: Option<&Choice<'j>>,
        notes: &[String],
    ) {
        let title = choice
            .and_then(|choice| choice.title)
            .or(value_schema.title);
        let text = choice
            .and_then(|choice| choice.description)
            .or(value_schema.description);
        push_text(members, "title", title);
        push_text(
            members,
            "description",
            sentences::with_sentences(text, notes),
        );
    }

    /// Writes the keywords of a kind, adds sentences for constraints without a keyword, and returns the name of the
    /// type.
    fn kind<'j>(
        &mut self,
        kind: &Kind<'j>,
        null: bool,
        members: &mut Vec<Member<'j>>,
        notes: &mut Vec<String>,
        level: usize,
    ) -> (&'static str, ValueDecoder) {
        match kind {
            Kind::Text(text) => {
                self.string(text, null, members, notes);
                ("string", ValueDecoder::Unchanged)
            }
            Kind::Number(number) => {
                self.number(number, null, members, notes);
                (
                    if number.is_integer {
                        "integer"
                    } else {
                        "number"
                    },
                    ValueDecoder::Unchanged,
                )
            }
            Kind::Boolean(only) => {
                if let Some(only) = only {
                    let mut values = vec![Json::Bool(*only)];
                    values.extend(null.then_some(Json::Null));
                    push(members, "enum", Json::Array(values));
                }
                ("boolean", ValueDecoder::Unchanged)
            }
            Kind::Array(array) => self.array(array, members, notes, level),
            Kind::Object(object) => {
                if is_open(kind) || level > MAX_LEVELS || !self.usage.try_add_properties(object) {
                    notes.push(sentences::OBJECT_AS_TEXT.to_owned());
                    return ("string", ValueDecoder::ObjectAsText);
                }
                ("object", self.object(object, members, level))
            }
            Kind::Definition(number) => ("object", ValueDecoder::Definition(*number)),
        }
    }

    fn array<'j>(
        &mut self,
        array: &Array<'j>,
        members: &mut Vec<Member<'j>>,
        notes: &mut Vec<String>,
        level: usize,
    ) -> (&'static str, ValueDecoder) {
        if level > MAX_LEVELS {
            notes.push(sentences::ARRAY_AS_TEXT.to_owned());
            return ("string", ValueDecoder::ArrayAsText);
        }
        let (items, back) = self.value(&array.items, false, level);
        push(members, "items", items);
        push_number(members, "minItems", array.min_items);
        push_number(members, "maxItems", array.max_items);
        ("array", ValueDecoder::items(back))
    }

    /// Every property is required; optional ones accept `null`.
    fn object<'j>(
        &mut self,
        object: &Object<'j>,
        members: &mut Vec<Member<'j>>,
        level: usize,
    ) -> ValueDecoder {
        let mut properties = Vec::new();
        let mut required = Vec::new();
        let mut fields = Vec::new();
        for property in &object.properties {
            let optional = !property.required;
            let (json, back) = self.value(&property.schema, optional, level);
            properties.push((Cow::Borrowed(property.name), json));
            required.push(Json::String(Cow::Borrowed(property.name)));
            let null = property.schema.nullable;
            fields.push((
                property.name.to_owned(),
                FieldDecoder {
                    optional,
                    nullable: null,
                    decoder: back,
                },
            ));
        }
        push(members, "properties", Json::Object(properties));
        push(members, "required", Json::Array(required));
        push(members, "additionalProperties", Json::Bool(false));
        ValueDecoder::object(fields)
    }

    fn string<'j>(
        &mut self,
        text: &Text<'j>,
        null: bool,
        members: &mut Vec<Member<'j>>,
        notes: &mut Vec<String>,
    ) {
        match &text.values {
            Some(values) if self.usage.try_add_values(values) => {
                push_enum(members, values, Json::String, null);
            }
            Some(values) => {
                let quoted = values.iter().map(|value| mcp_vary::json::string(value));
                notes.push(sentences::one_of(quoted));
            }
            None => {}
        }
        match text.format {
            Some(format) if FORMATS.contains(&format) => {
                push_text(members, "format", Some(format));
            }
            other => notes.extend(other.and_then(sentences::format)),
        }
        match text.pattern {
            Some(pattern) if sentences::is_plain(pattern) => {
                push_text(members, "pattern", Some(pattern));
            }
            other => notes.extend(other.and_then(sentences::pattern)),
        }
        notes.extend(sentences::length(text));
    }

    fn number<'j>(
        &mut self,
        number: &Number<'j>,
        null: bool,
        members: &mut Vec<Member<'j>>,
        notes: &mut Vec<String>,
    ) {
        match &number.values {
            Some(values) if self.usage.try_add_values(values) => {
                push_enum(members, values, Json::Number, null);
            }
            Some(values) => notes.push(sentences::one_of(values)),
            None => {}
        }
        push_number(members, "minimum", number.minimum);
        push_number(members, "maximum", number.maximum);
        push_number(members, "exclusiveMinimum", number.exclusive_minimum);
        push_number(members, "exclusiveMaximum", number.exclusive_maximum);
        push_number(members, "multipleOf", number.multiple_of);
    }
}

/// Whether it is an object with arbitrary properties.
fn is_open(kind: &Kind<'_>) -> bool {
    matches!(kind, Kind::Object(object) if object.properties.is_empty() && !object.is_closed)
}

/// Any value, which OpenAI cannot express. Objects and arrays of unknown shape are not allowed.
fn any_value(mut members: Vec<Member<'_>>) -> Json<'_> {
    let kinds = ["string", "number", "boolean", "null"].map(typed);
    push(&mut members, "anyOf", Json::Array(kinds.into()));
    Json::Object(members)
}

fn typed<'j>(kind: &'static str) -> Json<'j> {
    Json::Object(vec![(
        Cow::Borrowed("type"),
        Json::String(Cow::Borrowed(kind)),
    )])
}

/// The formats that OpenAI accepts.
pub(super) const FORMATS: [&str; 9] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];

/// Levels of objects and arrays.
const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
/// Values in all lists of them.
const MAX_VALUES: usize = 1_000;
/// Letters in all names and values.
const MAX_LETTERS: usize = 120_000;
/// A list with more values than this has a limit of its own.
const LONG_LIST: usize = 250;
const MAX_LETTERS_IN_LONG_LIST: usize = 15_000;
