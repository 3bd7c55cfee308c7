//! Decodes arguments from a dialect's form into the server's form: a `null` that means "omitted" is removed, and
//! objects that were written as text become objects again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::{Json, JsonError};

/// Decodes the arguments of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentDecoder {
    fields: Fields,
    definitions: Vec<ValueDecoder>,
}

/// How to decode the value at one position.
#[derive(Clone, Debug)]
pub(super) enum ValueDecoder {
    /// The value stays as it is.
    Unchanged,
    Object(Fields),
    Items(Box<Self>),
    /// One of several decoders applies.
    Any(Vec<Self>),
    Definition(usize),
    /// An object that was written as text.
    ObjectAsText,
    /// An array that was written as text.
    ArrayAsText,
}

type Fields = BTreeMap<String, FieldDecoder>;

/// How to decode one property.
#[derive(Clone, Debug)]
pub(super) struct FieldDecoder {
    /// `null` means that the property is omitted.
    pub(super) optional: bool,
    /// `null` is a valid value of the property.
    pub(super) nullable: bool,
    pub(super) decoder: ValueDecoder,
}

impl ValueDecoder {
    pub(super) fn object(fields: Vec<(String, FieldDecoder)>) -> Self {
        Self::Object(fields.into_iter().collect())
    }

    pub(super) fn items(items: Self) -> Self {
        match items {
            Self::Unchanged => Self::Unchanged,
            items => Self::Items(Box::new(items)),
        }
    }

    pub(super) fn any(mut all: Vec<Self>) -> Self {
        all.retain(|back| !matches!(back, Self::Unchanged));
        match all.len() {
            0 => Self::Unchanged,
            1 => all.remove(0),
            _ => Self::Any(all),
        }
    }
}

impl ArgumentDecoder {
    pub(super) fn new(root: ValueDecoder, definitions: Vec<ValueDecoder>) -> Self {
        let fields = match root {
            ValueDecoder::Object(fields) => fields,
            _ => BTreeMap::new(),
        };
        Self {
            fields,
            definitions,
        }
    }

    /// The same decoder, by the server's names of the arguments, which `own` returns.
    pub(crate) fn renamed_upstream(self, native: impl Fn(&str) -> Option<String>) -> Self {
        let named = self.fields.into_iter();
        let renamed = named.map(|(name, field)| (native(&name).unwrap_or(name), field));
        Self {
            fields: renamed.collect(),
            definitions: self.definitions,
        }
    }

    /// Decodes the argument `name`; `None` if it is omitted.
    ///
    /// # Errors
    ///
    /// When an object in a value that needs decoding repeats a key: readers may disagree on which one counts.
    pub(crate) fn argument<'t>(
        &self,
        name: &str,
        written: &'t str,
    ) -> Result<Option<Cow<'t, str>>, JsonError> {
        let Some(field) = self.fields.get(name) else {
            return Ok(Some(Cow::Borrowed(written)));
        };
        if field.optional && written == "null" {
            return Ok(None);
        }
        if matches!(field.decoder, ValueDecoder::Unchanged) {
            return Ok(Some(Cow::Borrowed(written)));
        }
        let value = match Json::parse(written) {
            Ok(value) => value,
            Err(error) if error.duplicate_key().is_some() => return Err(error),
            // The server rejects what cannot be read.
            Err(_) => return Ok(Some(Cow::Borrowed(written))),
        };
        let returned = self.value(value.clone(), &self.resolved(&[&field.decoder]));
        Ok(Some(if returned == value {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(returned.to_json())
        }))
    }

    /// Decodes a value to which one of the decoders applies.
    fn value<'t>(&self, value: Json<'t>, backs: &[&ValueDecoder]) -> Json<'t> {
        match value {
            Json::Object(members) => {
                let objects = matching_objects(&members, backs);
                let decoded = members.into_iter().filter_map(|(name, value)| {
                    let value = self.member(&name, value, &objects)?;
                    Some((name, value))
                });
                Json::Object(decoded.collect())
            }
            Json::Array(elements) => {
                let items: Vec<&ValueDecoder> = backs
                    .iter()
                    .filter_map(|back| match back {
                        ValueDecoder::Items(items) => Some(items.as_ref()),
                        _ => None,
                    })
                    .collect();
                let items = self.resolved(&items);
                let decoded = elements
                    .into_iter()
                    .map(|element| self.value(element, &items));
                Json::Array(decoded.collect())
            }
            Json::String(text) => parse_embedded(text, backs),
            other => other,
        }
    }

    /// The decoded value of a property; `None` if it is omitted.
    fn member<'t>(&self, name: &str, value: Json<'t>, objects: &[&Fields]) -> Option<Json<'t>> {
        let fields: Vec<&FieldDecoder> = objects
            .iter()
            .filter_map(|fields| fields.get(name))
            .collect();
        let left_out = fields.iter().any(|field| field.optional)
            && fields.iter().all(|field| field.optional || !field.nullable);
        if left_out && value == Json::Null {
            return None;
        }
        let backs: Vec<&ValueDecoder> = fields.iter().map(|field| &field.decoder).collect();
        Some(self.value(value, &self.resolved(&backs)))
    }

    /// Resolves definitions and choices; returns each decoder once.
    fn resolved<'b>(&'b self, backs: &[&'b ValueDecoder]) -> Vec<&'b ValueDecoder> {
        let mut pending: Vec<&ValueDecoder> = backs.to_vec();
        let mut seen = BTreeSet::new();
        let mut resolved = Vec::new();
        while let Some(back) = pending.pop() {
            if seen.len() >= MAX_ALTERNATIVES || !seen.insert(std::ptr::from_ref(back)) {
                continue;
            }
            match back {
                ValueDecoder::Any(all) => pending.extend(all),
                ValueDecoder::Definition(number) => pending.extend(self.definitions.get(*number)),
                ValueDecoder::Unchanged => {}
                other => resolved.push(other),
            }
        }
        resolved
    }
}

/// The object decoders for these members: those with exactly these properties if there are any, since in the dialect
/// an object has all properties and no others.
fn matching_objects<'b>(
    members: &[(Cow<'_, str>, Json<'_>)],
    backs: &[&'b ValueDecoder],
) -> Vec<&'b Fields> {
    let objects = backs.iter().filter_map(|back| match back {
        ValueDecoder::Object(fields) => Some(fields),
        _ => None,
    });
    let all: Vec<&Fields> = objects.collect();
    let fits = |fields: &&&Fields| {
        fields.len() == members.len()
            && members
                .iter()
                .all(|(name, _)| fields.contains_key(name.as_ref()))
    };
    let fitting: Vec<&Fields> = all.iter().filter(fits).copied().collect();
    if fitting.is_empty() { all } else { fitting }
}

/// Parses a text that holds an object or array.
fn parse_embedded<'t>(text: Cow<'t, str>, backs: &[&ValueDecoder]) -> Json<'t> {
    let object = backs
        .iter()
        .any(|back| matches!(back, ValueDecoder::ObjectAsText));
    let array = backs
        .iter()
        .any(|back| matches!(back, ValueDecoder::ArrayAsText));
    if object || array {
        match Json::parse(&text).ok().map(Json::into_owned) {
            Some(value @ Json::Object(_)) if object => return value,
            Some(value @ Json::Array(_)) if array => return value,
            _ => {}
        }
    }
    Json::String(text)
}

/// The number of alternatives that are tried for one value.
const MAX_ALTERNATIVES: usize = 256;
