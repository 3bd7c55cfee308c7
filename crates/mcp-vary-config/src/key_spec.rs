//! The keys of a table, as data: the meaning of each key, its allowed values, and the field that it sets. Both the
//! reader and the schema of a table follow from them.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::reader::{Located, Reader, did_you_mean, quoted};
use super::schema_builder::{ANYTHING, BESIDE, SchemaBuilder, Shape, as_written};
use crate::diagnostic::{Diagnostic, nearest};
use crate::document::{Entry, Value as Written};

/// One key of a table. [`keys!`] lists them.
pub(super) struct KeySpec<T> {
    pub(super) key: &'static str,
    /// The description for the reference, with links from `docs/reference/configuration`.
    pub(super) about: &'static str,
    /// The default for the reference. Empty if there is none to show.
    pub(super) default: &'static str,
    pub(super) kind: ValueKind<T>,
}

/// The keys of a table: the meaning of each key, its name, its default if it has one, and its [`ValueKind`].
///
/// ```ignore
/// keys![
///     /// bytes of one request
///     "body" = "4 MiB" => Size(|limits| &mut limits.body),
/// ]
/// ```
macro_rules! keys {
    ($($(#[doc = $about:literal])+ $key:literal $(= $default:literal)? => $kind:expr,)*) => {
        &[$($crate::key_spec::KeySpec {
            key: $key,
            // Each line begins with a space.
            about: concat!($($about),+).trim_ascii_start(),
            default: concat!($($default)?),
            kind: $kind,
        }),*]
    };
}

/// One of several named values: `choice!(NAMES, |draft| &mut draft.field)`.
macro_rules! choice {
    ($names:expr, |$draft:ident| &mut $field:expr) => {
        $crate::key_spec::ValueKind::Other(
            |schema| schema.choice($names),
            |reader, field, $draft| reader.choice(field, $names, &mut $field),
        )
    };
}

/// A field that gets what `read` returns: `value!(shape, read, |draft| draft.field)`.
macro_rules! value {
    ($shape:expr, $read:expr, |$draft:ident| $field:expr) => {
        $crate::key_spec::ValueKind::Other($shape, |reader, field, $draft| {
            $field = $read(reader, field).into();
        })
    };
}

/// A field that `read` sets: `set!(shape, read, |draft| &mut draft.field)`.
macro_rules! set {
    ($shape:expr, $set:expr, |$draft:ident| &mut $field:expr) => {
        $crate::key_spec::ValueKind::Other($shape, |reader, field, $draft| {
            $set(reader, field, &mut $field);
        })
    };
}

/// A table of settings, with its name in the reference and an example:
/// `table!(NAME, &[SETTINGS], EXAMPLE, |draft| &mut draft.field)`.
macro_rules! table {
    ($name:literal, $known:expr, $example:expr, |$draft:ident| $into:expr) => {
        $crate::key_spec::ValueKind::Other(
            |schema| schema.table($name, $known),
            |reader, field, $draft| reader.settings(field, $known, $into, $example),
        )
    };
}

/// A whole number without a default, or of another type than [`ValueKind::Count`]:
/// `count!(1..=9, |draft| &mut draft.field)`.
macro_rules! count {
    ($range:expr, |$draft:ident| &mut $field:expr) => {
        $crate::key_spec::ValueKind::Other(
            |schema| schema.count($range),
            |reader, field, $draft| reader.number(field, $range, &mut $field),
        )
    };
}

pub(crate) use {choice, count, keys, set, table, value};

/// The allowed values of a key, and the field that they set. The reader and the schema for editors share this, so that
/// they agree.
pub(super) enum ValueKind<T> {
    /// A text, a number or a boolean.
    Scalar(fn(&mut T) -> &mut Option<String>),
    Switch(fn(&mut T) -> &mut bool),
    Duration(fn(&mut T) -> &mut Duration),
    /// Zero if it is `off`.
    DurationOrOff(fn(&mut T) -> &mut Duration),
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
            Self::Scalar(target) => *target(into) = reader.word(field),
            Self::Switch(target) => reader.switch(field, target(into)),
            Self::Duration(target) => reader.duration(field, target(into)),
            Self::DurationOrOff(target) => reader.duration_or_off(field, target(into)),
            Self::Size(target) => reader.size(field, target(into)),
            Self::Count(range, target) => reader.number(field, range.clone(), target(into)),
            Self::Number(range, target) => reader.number(field, range.clone(), target(into)),
            Self::Other(_, read) => read(reader, field, into),
        }
    }

    /// The schema of the allowed values.
    pub(super) fn shape(&self, schema: &mut SchemaBuilder) -> Value {
        match self {
            Self::Scalar(_) => schema.word(),
            Self::Switch(_) => schema.switch(),
            Self::Duration(_) => schema.duration(),
            Self::DurationOrOff(_) => schema.duration_or_off(),
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
                Some(setting) => setting.kind.read(self, &member, into),
                // Keys for editors, and for YAML anchors.
                None if entry.key == "$schema" || entry.key.starts_with("x-") => {}
                None => self.unknown(&member, entry, known),
            }
        }
    }

    fn unknown<T>(&mut self, member: &Located<'_>, entry: &Entry, known: &[&[KeySpec<T>]]) {
        let settings = known.iter().copied().flatten();
        let keys: Vec<&str> = settings.map(|setting| setting.key).collect();
        let row = SYNONYMS.iter().find(|(other, _)| *other == entry.key);
        let meant = row.map(|(_, key)| *key).filter(|key| keys.contains(key));
        let is_ours = !self.foreign && (self.is_top_level)(&entry.key);
        let mut suggested = None;
        let fix = if !self.foreign && (self.is_of_server)(&member.path) {
            "a server has it: write it in `servers.NAME`".to_owned()
        } else if let Some(fix) = verification(entry, &keys) {
            fix
        } else if is_ours && member.path.contains('.') {
            top_level(entry)
        } else if let Some(fix) = misplaced(member, &keys) {
            fix
        } else if let Some(meant) = meant.or_else(|| nearest(&entry.key, &keys)) {
            suggested = Some(meant.into());
            did_you_mean(meant)
        } else if keys.len() > MAX_LISTED_KEYS {
            format!("`vary config schema` describes the {} keys", keys.len())
        } else {
            format!("there are {}", quoted(&keys))
        };
        let diagnostic = Diagnostic::new(entry.at, member.path.as_str(), "is not a known key");
        let mut diagnostic = diagnostic.with_fix(fix);
        diagnostic.meant = suggested;
        self.diagnostics.push(diagnostic);
    }
}

/// What other programs call a connection whose certificate nobody verifies, in small letters, and `tls` where a server has
/// it.
const NO_VERIFICATION: &[&str] = &[
    "insecure",
    "insecureskipverify",
    "noverify",
    "rejectunauthorized",
    "skiptlsverify",
    "skipverify",
    "ssl",
    "sslverify",
    "tls",
    "tlsverify",
    "verify",
    "verifyssl",
    "verifytls",
];

/// What to write instead of a key that would have a server's certificate accepted as it is, beside these `keys`.
fn verification(entry: &Entry, keys: &[&str]) -> Option<String> {
    let is_of_servers = ["ca", "servers"].iter().any(|key| keys.contains(key));
    let key = entry.key.replace(['-', '_'], "").to_ascii_lowercase();
    (is_of_servers && NO_VERIFICATION.contains(&&*key)).then(|| {
        "Vary always verifies the certificate of a server; name the file of its authority in `ca` of the server".to_owned()
    })
}

/// Where an unknown key belongs, if that shows. `keys` are those of its table.
fn misplaced(member: &Located<'_>, keys: &[&str]) -> Option<String> {
    let key = member.path.rsplit('.').next().unwrap_or_default();
    if matches!(key, "include" | "exclude") && keys.contains(&"tools") {
        return Some(format!("write `tools: {{{key}: [...]}}`"));
    }
    let is_override = !member.keys().is_empty() && nearest(key, keys).is_none();
    if keys == ["tools", "prompts", "resources"] && is_override {
        return Some(format!(
            "overrides of tools are under `tools`: write `tools: {{{key}: ...}}`"
        ));
    }
    if !keys.contains(&"variants") {
        return None;
    }
    let inner = member.keys();
    let has = |any: &[&str]| any.iter().any(|key| inner.contains(key));
    if has(&["command", "url"]) {
        return Some(format!(
            "a server belongs under `servers`: write `servers: {{{key}: {{...}}}}`"
        ));
    }
    if key == "overrides" {
        return Some(
            "it belongs in a variant: write `variants: {NAME: {overrides: {...}}}`".to_owned(),
        );
    }
    has(&["tools", "from", "hints", "descriptions", "schemas"]).then(|| {
        format!("a variant belongs under `variants`: write `variants: {{{key}: {{...}}}}`")
    })
}

/// Where a setting of the whole file belongs that was written deeper.
fn top_level(entry: &Entry) -> String {
    let value = match &entry.node.value {
        Written::Table(_) => "{...}",
        Written::List(_) => "[...]",
        _ => "...",
    };
    format!(
        "it belongs at the top level, beside `servers` (in YAML without indentation), as in `{{servers: {{...}}, {}: {value}}}`",
        entry.key
    )
}

/// Of more keys than these, a message names none.
const MAX_LISTED_KEYS: usize = 30;

impl SchemaBuilder {
    /// A table of settings, plus the extra keys that every table may have. `name` is its name in the reference.
    pub(super) fn table<T>(&mut self, name: &'static str, tables: &[&[KeySpec<T>]]) -> Value {
        let mut properties = Map::new();
        let mut rows = String::new();
        for setting in tables.iter().copied().flatten() {
            rows += &row(setting);
            let mut shape = setting.kind.shape(self);
            if let Value::Object(shape) = &mut shape {
                shape.insert("description".to_owned(), json!(unlinked(setting.about)));
                if !setting.default.is_empty() {
                    shape.insert("default".to_owned(), as_written(setting.default));
                }
            }
            properties.insert(setting.key.to_owned(), shape);
        }
        self.reference.insert(name, rows);
        properties.insert("$schema".to_owned(), json!({}));
        json!({
            "type": "object",
            "properties": properties,
            "patternProperties": {BESIDE: {}},
            "additionalProperties": false,
        })
    }

    /// Overrides by the names of items.
    pub(super) fn items<T>(&mut self, name: &'static str, settings: &[KeySpec<T>]) -> Value {
        let item = self.table(name, &[settings]);
        self.named(ANYTHING, &item)
    }
}

/// A key in a table of the reference.
fn row<T>(setting: &KeySpec<T>) -> String {
    let default = match setting.default {
        "" => String::new(),
        sentence if sentence.contains('`') => format!(" {sentence}"),
        value => format!(" `{value}`"),
    };
    format!("| `{}` |{default} | {} |\n", setting.key, setting.about)
}

/// `[text](target)` as `text`.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once('[') {
        let opened = after.split_once("](");
        let link = opened.and_then(|(shown, after)| Some((shown, after.split_once(')')?.1)));
        let Some((shown, after)) = link else { break };
        out += before;
        out += shown;
        remaining = after;
    }
    out + remaining
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
