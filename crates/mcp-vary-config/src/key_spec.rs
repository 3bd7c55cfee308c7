//! The keys of a table, as data: the meaning of each key, its allowed values, and the field that it sets. Both the
//! reader and the schema of a table follow from them.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::reader::{Located, Reader, did_you_mean, quoted};
use super::schema_builder::{ANYTHING, BESIDE, SchemaBuilder, Shape, as_written};
use crate::diagnostic::{Diagnostic, nearest};
use crate::document::Entry;

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

impl Reader<'_> {
    /// Reads a table of settings. Reports keys that are not `known`.
    pub(super) fn settings<T>(
        &mut self,
        field: &Located<'_>,
        known: &[&[KeySpec<T>]],
        into: &mut T,
        example: &str,
    ) {
        let Some(entries) = self.table(field, example) else {
            return;
        };
        for entry in entries {
            let member = field.member(entry);
            let mut settings = known.iter().copied().flatten();
            match settings.find(|setting| setting.key == entry.key) {
                Some(setting) => setting.takes.read(self, &member, into),
                // Keys for editors, and for YAML anchors.
                None if entry.key == "$schema" || entry.key.starts_with("x-") => {}
                None => self.unknown(&member, entry, known),
            }
        }
    }

    fn unknown<T>(&mut self, member: &Located<'_>, entry: &Entry, known: &[&[KeySpec<T>]]) {
        let settings = known.iter().copied().flatten();
        let keys: Vec<&str> = settings.map(|setting| setting.key).collect();
        let said = SYNONYMS.iter().find(|(said, _)| *said == entry.key);
        let meant = said
            .map(|(_, meant)| *meant)
            .filter(|meant| keys.contains(meant));
        let fix = match meant.or_else(|| nearest(&entry.key, &keys)) {
            _ if let Some(place) = place(member, &keys) => place,
            Some(meant) => did_you_mean(meant),
            None if keys.len() > MAX_LISTED_KEYS => {
                format!("`vary config schema` describes the {} keys", keys.len())
            }
            None => format!("there are {}", quoted(&keys)),
        };
        let diagnostic = Diagnostic::new(entry.at, member.path.as_str(), "is not a known key");
        self.diagnostics.push(diagnostic.with_fix(fix));
    }
}

/// Where an unknown key belongs, beside which `keys` are known.
fn place(member: &Located<'_>, keys: &[&str]) -> Option<String> {
    let key = member.path.rsplit('.').next().unwrap_or_default();
    if matches!(key, "include" | "exclude") && keys.contains(&"tools") {
        return Some(format!("write `tools: {{{key}: [...]}}`"));
    }
    let inner = member.keys();
    let has = |any: &[&str]| any.iter().any(|key| inner.contains(key));
    match () {
        () if !keys.contains(&"variants") => None,
        () if has(&["command", "url"]) => Some("a server stands under `servers`".to_owned()),
        () if has(&["tools", "from", "hints", "descriptions", "schemas"]) => {
            Some("a variant stands under `variants`".to_owned())
        }
        () => None,
    }
}

/// Of more keys than these, a message names none.
const MAX_LISTED_KEYS: usize = 30;

impl SchemaBuilder {
    /// A table of settings, plus the extra keys that every table may have.
    pub(super) fn table<T>(&mut self, tables: &[&[KeySpec<T>]]) -> Value {
        let mut properties = Map::new();
        for setting in tables.iter().copied().flatten() {
            let mut shape = setting.takes.shape(self);
            if let Value::Object(shape) = &mut shape {
                shape.insert("description".to_owned(), json!(setting.about));
                if !setting.default.is_empty() {
                    shape.insert("default".to_owned(), as_written(setting.default));
                }
            }
            properties.insert(setting.key.to_owned(), shape);
        }
        properties.insert("$schema".to_owned(), json!({}));
        json!({
            "type": "object",
            "properties": properties,
            "patternProperties": {BESIDE: {}},
            "additionalProperties": false,
        })
    }

    /// Overrides by the names of items.
    pub(super) fn items<T>(&mut self, settings: &[KeySpec<T>]) -> Value {
        let item = self.table(&[settings]);
        self.named(ANYTHING, &item)
    }
}

/// The names of our settings in other programs.
const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("endpoint", "url"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("mcp-servers", "servers"),
    ("mime-type", "mimeType"),
    ("port", "listen"),
    ("serverUrl", "url"),
    ("transport", "type"),
    ("uriTemplate", "uri"),
    ("workdir", "cwd"),
    ("workingDirectory", "cwd"),
];
