//! Reads settings from a tree. Errors are collected, so that reading does not stop at the first one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use mcp_vary::shape::MediaType;
use mcp_vary::variant::Date;

use super::units;
use super::variables::{self, Fault, Part, Variables};
use crate::diagnostic::{Diagnostic, Position, nearest};
use crate::document::{Entry, Value, key_without_space};
pub(super) use crate::located::{Located, Placed};
use crate::vary_entries::VaryEntries;

/// The state while a file is read.
pub(super) struct Reader<'a> {
    pub(super) variables: Variables<'a>,
    /// The only servers to read; empty for all.
    pub(super) only: &'a [String],
    /// The current date. Without it, no date counts as past.
    pub(super) today: Option<Date>,
    /// Whether this is the file of another program, which has its own keys.
    pub(super) foreign: bool,
    /// Whether a key is one of the whole file.
    pub(super) is_top_level: fn(&str) -> bool,
    /// Whether a key is one of a server.
    pub(super) is_of_server: fn(&str) -> bool,
    /// How Vary's own entries in such a file are recognised.
    pub(super) vary_entries: VaryEntries<'a>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Notes for the user that are not errors.
    pub(super) notes: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(variables: Variables<'a>, only: &'a [String]) -> Self {
        Self {
            variables,
            only,
            today: None,
            foreign: false,
            is_top_level: |_| false,
            is_of_server: |_| false,
            vary_entries: VaryEntries::default(),
            diagnostics: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reports an error in a field, and the fix.
    pub(super) fn report(&mut self, field: &Located<'_>, what: impl Into<String>, fix: &str) {
        self.report_at(field.node.at, &field.path, what, fix);
    }

    /// Reports an error in the setting at `path`, and the fix.
    pub(super) fn report_at(
        &mut self,
        at: Position,
        path: &str,
        what: impl Into<String>,
        fix: &str,
    ) {
        let diagnostic = Diagnostic::new(at, path, what);
        self.diagnostics.push(match fix {
            "" => diagnostic,
            fix => diagnostic.with_fix(fix),
        });
    }

    /// Reports that the value of a field cannot be used.
    pub(super) fn refuse(&mut self, field: &Located<'_>, error: &dyn fmt::Display) {
        let (what, fix) = unusable(error);
        self.report(field, what, &fix);
    }

    /// Whether an error for `field`, the last field that was read, suggested one of `keys`.
    pub(super) fn was_meant(&self, field: &Located<'_>, keys: &[&str]) -> bool {
        let last = self.diagnostics.iter().rev();
        let mut of_field = last.take_while(|diagnostic| diagnostic.key.starts_with(&field.path));
        of_field.any(|diagnostic| is_meant(diagnostic, field, keys))
    }

    /// Removes the note about a key of `field` that was probably meant as one of `keys`, and returns it.
    pub(super) fn take_note(&mut self, field: &Located<'_>, keys: &[&str]) -> Option<Diagnostic> {
        let mut notes = self.notes.iter();
        let index = notes.position(|note| is_meant(note, field, keys))?;
        Some(self.notes.remove(index))
    }

    /// The entries of a table.
    pub(super) fn table<'t>(&mut self, field: &Located<'t>, example: &str) -> Option<&'t [Entry]> {
        if let Value::Table(entries) = &field.node.value {
            return Some(entries);
        }
        let what = match &field.node.value {
            Value::Null => "is empty",
            _ => "is not a table of keys",
        };
        let key = match &field.node.value {
            Value::Text(text) => key_without_space(text),
            _ => None,
        };
        let example = match key {
            Some(key) => format!("write `{key}: ...`, with a space after the colon"),
            None => format!("write {example}"),
        };
        self.report(field, what, &example);
        None
    }

    /// Adds a note about a field.
    pub(super) fn note(
        &mut self,
        field: &Located<'_>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.note_at(field.node.at, &field.path, what, fix);
    }

    /// Adds a note about the setting at `path`.
    pub(super) fn note_at(
        &mut self,
        at: Position,
        path: &str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let note = Diagnostic::new(at, path, what);
        self.notes.push(note.with_fix(fix));
    }

    /// The value of a field, unless it cannot be used, which is reported.
    pub(super) fn usable<T, E: fmt::Display>(
        &mut self,
        field: &Located<'_>,
        value: Result<T, E>,
    ) -> Option<T> {
        self.reported(field, value.map_err(|error| unusable(&error)))
    }

    /// Reports keys that a table must have and does not have, each with its fix. A misspelled key was reported already.
    pub(super) fn require(&mut self, field: &Located<'_>, keys: &[(&str, &str)]) {
        if !matches!(field.node.value, Value::Table(_)) {
            return;
        }
        let present = field.keys();
        for (key, fix) in keys {
            if !present.contains(key) && !self.was_meant(field, &[key]) {
                self.report(field, format!("has no `{key}`"), fix);
            }
        }
    }

    /// The `items` of a list that has at most `most`; otherwise reports the list, and returns none.
    pub(super) fn at_most<'t>(
        &mut self,
        most: usize,
        field: &Located<'_>,
        items: Vec<Located<'t>>,
    ) -> Vec<Located<'t>> {
        if items.len() <= most {
            return items;
        }
        let what = format!("has {} entries", items.len());
        self.report(field, what, &format!("{most} is the most"));
        Vec::new()
    }

    /// The values of a list of at most `most` texts.
    pub(super) fn values<T, E: fmt::Display>(
        &mut self,
        most: usize,
        field: &Located<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let items = self.list(field);
        let items = self.at_most(most, field, items);
        let values = items.iter().filter_map(|item| self.value(item, &parse));
        values.collect()
    }

    /// A text, a number or a boolean as written, with its variables replaced.
    pub(super) fn word(&mut self, field: &Located<'_>) -> Option<String> {
        match &field.node.value {
            Value::Scalar(word) => Some(word.clone()),
            Value::Text(text) => {
                let replaced = variables::replace(text, self.variables);
                self.reported(field, replaced)
            }
            Value::Null => {
                self.report(field, "is empty", "write a value, or leave the key out");
                None
            }
            Value::List(_) => {
                let fix = if field.path.ends_with(".command") {
                    "write the program alone, as in `command: python3`, and the others into `args`, as in `args: [server.py]`"
                } else {
                    "write one value"
                };
                self.report(field, "is a list", fix);
                None
            }
            Value::Table(_) => {
                let fix = match field.path.as_str() {
                    "variant" => {
                        "write the id of the default variant, or `variants` for a table of variants"
                    }
                    _ => "write one value",
                };
                self.report(field, "is a table of keys", fix);
                None
            }
        }
    }

    /// The parts of a word that may have claims in it.
    pub(super) fn word_parts(&mut self, field: &Located<'_>) -> Option<Vec<Part>> {
        match &field.node.value {
            Value::Text(text) => {
                let parts = variables::parts(text, self.variables);
                self.reported(field, parts)
            }
            _ => Some(vec![Part::Text(self.word(field)?)]),
        }
    }

    /// The value; reports an error and its fix.
    fn reported<T>(&mut self, field: &Located<'_>, read: Result<T, impl Into<Fault>>) -> Option<T> {
        let fault = match read {
            Ok(value) => return Some(value),
            Err(fault) => fault.into(),
        };
        let missing = match &fault {
            Fault::MissingVariable(name) => Some(name.as_str().into()),
            Fault::Other(..) => None,
        };
        let (what, fix) = fault.into_texts();
        self.report(field, what, &fix);
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            diagnostic.missing_variable = missing;
        }
        None
    }

    /// A media type.
    pub(super) fn media_type(&mut self, field: &Located<'_>) -> Option<MediaType> {
        let media_type = self.word(field)?.parse::<MediaType>().ok();
        if media_type.is_none() {
            let fix = "write one like `text/markdown`";
            self.report(field, "is not a media type", fix);
        }
        media_type
    }

    /// A text, but not a number or boolean, with its variables replaced.
    pub(super) fn text(&mut self, field: &Located<'_>) -> Option<String> {
        if let Value::Scalar(_) = field.node.value {
            self.report(field, "is not text", "put it in quotes");
            return None;
        }
        self.word(field)
    }

    /// The items of a list.
    pub(super) fn items<'t>(&mut self, field: &Located<'t>, example: &str) -> Vec<Located<'t>> {
        let what = match &field.node.value {
            Value::List(_) => return field.items(),
            Value::Null => "is empty",
            _ => "is not a list",
        };
        self.report(field, what, &format!("write {example}"));
        Vec::new()
    }

    /// The items of a list of texts.
    pub(super) fn list<'t>(&mut self, field: &Located<'t>) -> Vec<Located<'t>> {
        self.items(field, r#"["...", "..."]"#)
    }

    /// A list of words.
    pub(super) fn strings(&mut self, field: &Located<'_>) -> Vec<String> {
        let items = self.list(field).into_iter();
        items.filter_map(|item| self.word(&item)).collect()
    }

    /// A table of words.
    pub(super) fn named_strings(&mut self, field: &Located<'_>) -> BTreeMap<String, String> {
        let entries = self.table(field, "{NAME: value}").unwrap_or_default();
        let strings = entries.iter().filter_map(|entry| {
            let word = self.word(&field.member(entry))?;
            Some((entry.key.clone(), word))
        });
        strings.collect()
    }

    /// Sets a duration.
    pub(super) fn duration(&mut self, field: &Located<'_>, into: &mut impl From<Duration>) {
        self.parsed(field, units::duration, into);
    }

    /// Sets a duration. `off` is zero.
    pub(super) fn duration_or_off(&mut self, field: &Located<'_>, into: &mut Duration) {
        let parse = |text: &str| match text.trim() {
            "off" | "no" | "false" => Ok(Duration::ZERO),
            text => units::duration(text),
        };
        self.parsed(field, parse, into);
    }

    /// Sets a number of bytes.
    pub(super) fn size(&mut self, field: &Located<'_>, into: &mut usize) {
        self.parsed(field, units::size, into);
    }

    /// Sets a whole number.
    pub(super) fn number<N: FromStr + PartialOrd + fmt::Display>(
        &mut self,
        field: &Located<'_>,
        range: RangeInclusive<N>,
        into: &mut impl From<N>,
    ) {
        let parse = |text: &str| match text.trim().parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let what = "is not a number that can be used here".to_owned();
                let fix = format!("write one from {} to {}", range.start(), range.end());
                Err((what, fix))
            }
        };
        self.parsed(field, parse, into);
    }

    /// Sets a switch.
    pub(super) fn switch(&mut self, field: &Located<'_>, into: &mut impl From<bool>) {
        const FIX: &str = "write `on` or `off`";
        if matches!(field.node.value, Value::List(_) | Value::Table(_)) {
            return self.report(field, "is not a switch", FIX);
        }
        let parse = |text: &str| match text.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" => Ok(true),
            "false" | "off" | "no" => Ok(false),
            _ => Err(("is not a switch".to_owned(), FIX.to_owned())),
        };
        self.parsed(field, parse, into);
    }

    /// Sets one of several named values.
    pub(super) fn choice<T: Copy>(
        &mut self,
        field: &Located<'_>,
        choices: &[(&str, T)],
        into: &mut impl From<T>,
    ) {
        let Some(word) = self.word(field) else { return };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
            *into = (*choice).into();
            return;
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let fix = meant_or_known(&word, &names);
        self.report(field, format!("is `{}`", field.written()), &fix);
    }

    /// Parses a text, a number or a boolean. The error is a sentence, with a fix after its last semicolon.
    pub(super) fn value<T, E: fmt::Display>(
        &mut self,
        field: &Located<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let mut value = None;
        self.parse(field, parse, &mut value);
        value
    }

    /// Sets what a text, a number or a boolean is parsed to, likewise.
    pub(super) fn parse<T, E: fmt::Display>(
        &mut self,
        field: &Located<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
        into: &mut impl From<T>,
    ) {
        self.parsed(
            field,
            |text| parse(text).map_err(|error| unusable(&error)),
            into,
        );
    }

    fn parsed<T>(
        &mut self,
        field: &Located<'_>,
        parse: impl Fn(&str) -> Result<T, (String, String)>,
        into: &mut impl From<T>,
    ) {
        let Some(word) = self.word(field) else { return };
        match parse(&word) {
            Ok(value) => *into = value.into(),
            // Neither the word nor the suggestion is shown, because it may be the value of a variable.
            Err((what, fix)) if field.written() == word => self.report(field, what, &fix),
            Err((what, _)) => {
                let fix = "see what its variable stands for";
                self.report(field, what, fix);
            }
        }
    }
}

/// Whether `diagnostic` is about a key of `field` that was probably meant as one of `keys`.
fn is_meant(diagnostic: &Diagnostic, field: &Located<'_>, keys: &[&str]) -> bool {
    let below = diagnostic.key.strip_prefix(&field.path);
    let meant = diagnostic.meant.as_deref();
    below.is_some_and(|below| below.starts_with('.'))
        && meant.is_some_and(|meant| keys.contains(&meant))
}

/// An error as a message and a fix, which may be empty.
pub(super) fn unusable(error: &dyn fmt::Display) -> (String, String) {
    let text = error.to_string();
    let (what, fix) = text.rsplit_once("; ").unwrap_or((&text, ""));
    (format!("cannot be used: {what}"), fix.to_owned())
}

pub(super) fn did_you_mean(key: &str) -> String {
    format!("did you mean `{key}`?")
}

/// Suggests the `known` name that was probably meant, or lists them all.
pub(super) fn meant_or_known(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(meant) => did_you_mean(meant),
        None => {
            // A built-in name can be declared as well.
            let mut seen = BTreeSet::new();
            let distinct: Vec<_> = known
                .iter()
                .filter(|name| seen.insert(**name))
                .copied()
                .collect();
            let are = match distinct[..] {
                [_] => "is only",
                _ => "are",
            };
            format!("there {are} {}", quoted(&distinct))
        }
    }
}

/// Says of a field that it names no variant.
pub(super) fn not_a_variant(written: &str) -> String {
    format!("is not a variant: `{written}`")
}

/// The names as part of a sentence.
pub(super) fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The maximum of any count.
pub(super) const MOST: usize = 1_000_000;
