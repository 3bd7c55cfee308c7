//! JSON, strictly, with the place of each value.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{DEEPEST, Entry, Lines, Mistake, Node, Position, Value};

/// Reads one JSON document.
pub(super) fn read(text: &str) -> Result<Node, Vec<Mistake>> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| vec![no_json(text, &error)])?;
    let file = File {
        lines: Lines::of(text),
        start: text.as_ptr().addr(),
    };
    file.node(raw, DEEPEST).map_err(|mistake| vec![mistake])
}

fn no_json(text: &str, error: &serde_json::Error) -> Mistake {
    let at = Position {
        line: error.line().max(1),
        column: error.column().max(1),
    };
    // The error's own text ends with its place.
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or_default();
    let mistake = Mistake::new(at, "", format!("is no JSON: {what}"));
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    // The parser counts bytes.
    match line.as_bytes().get(at.column - 1) {
        Some(b'/' | b'#') => mistake.with_fix("it has no comments"),
        Some(b'}' | b']') if what.starts_with("key") || what.starts_with("trailing") => {
            mistake.with_fix("take out the comma before it")
        }
        Some(b'\'') => mistake.with_fix("its quotes are double"),
        _ => mistake,
    }
}

/// The text that raw values are parts of.
struct File<'a> {
    lines: Lines<'a>,
    start: usize,
}

impl File<'_> {
    fn position(&self, raw: &RawValue) -> Position {
        let offset = raw.get().as_ptr().addr().saturating_sub(self.start);
        self.lines.position(offset)
    }

    fn node(&self, raw: &RawValue, depth: usize) -> Result<Node, Mistake> {
        let at = self.position(raw);
        let failed = |error: serde_json::Error| Mistake::new(at, "", error.to_string());
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Mistake::new(at, "", format!("is nested more than {DEEPEST} deep")))?;
        let text = raw.get();
        let value = match text.bytes().next() {
            Some(b'{') => {
                let members = serde_json::Deserializer::from_str(text).deserialize_map(Members);
                let members = members.map_err(failed)?;
                let entries = members.into_iter().map(|(key, value)| {
                    Ok(Entry {
                        key: serde_json::from_str(key.get()).map_err(failed)?,
                        at: self.position(key),
                        node: self.node(value, depth)?,
                    })
                });
                Value::Table(entries.collect::<Result<_, Mistake>>()?)
            }
            Some(b'[') => {
                let items = serde_json::Deserializer::from_str(text).deserialize_seq(Items);
                let items = items.map_err(failed)?.into_iter();
                let items = items.map(|item| self.node(item, depth));
                Value::List(items.collect::<Result<_, Mistake>>()?)
            }
            Some(b'"') => Value::Text(serde_json::from_str(text).map_err(failed)?),
            _ if text == "null" => Value::Null,
            _ => Value::Word(text.to_owned()),
        };
        Ok(Node { at, value })
    }
}

/// The members of an object as they are written.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// The items of an array as they are written.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}
