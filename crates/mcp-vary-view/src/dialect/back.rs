//! From arguments in a dialect's form to the server's: nulls that say "left out" go, objects that were
//! written as text are objects again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::{Json, JsonError};

/// The way back for the arguments of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct WayBack {
    fields: Fields,
    definitions: Vec<Back>,
}

/// What becomes of the value in one place.
#[derive(Clone, Debug)]
pub(super) enum Back {
    /// It stays.
    Keep,
    Object(Fields),
    Items(Box<Self>),
    /// One of several may apply.
    Any(Vec<Self>),
    Definition(usize),
    /// It is an object, and written as text.
    ObjectAsText,
    /// It is an array, and written as text.
    ArrayAsText,
}

type Fields = BTreeMap<String, Field>;

/// What becomes of one property.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// `null` says that it is left out.
    pub(super) optional: bool,
    /// `null` is a value that it may have.
    pub(super) null: bool,
    pub(super) back: Back,
}

impl Back {
    pub(super) fn object(fields: Vec<(String, Field)>) -> Self {
        Self::Object(fields.into_iter().collect())
    }

    pub(super) fn items(items: Self) -> Self {
        match items {
            Self::Keep => Self::Keep,
            items => Self::Items(Box::new(items)),
        }
    }

    pub(super) fn any(mut all: Vec<Self>) -> Self {
        all.retain(|back| !matches!(back, Self::Keep));
        match all.len() {
            0 => Self::Keep,
            1 => all.remove(0),
            _ => Self::Any(all),
        }
    }
}

impl WayBack {
    pub(super) fn new(root: Back, definitions: Vec<Back>) -> Self {
        let fields = match root {
            Back::Object(fields) => fields,
            _ => BTreeMap::new(),
        };
        Self {
            fields,
            definitions,
        }
    }

    /// The same for arguments that the server calls by what `own` says.
    pub(crate) fn renamed(self, own: impl Fn(&str) -> Option<String>) -> Self {
        let named = self.fields.into_iter();
        let named = named.map(|(name, field)| (own(&name).unwrap_or(name), field));
        Self {
            fields: named.collect(),
            definitions: self.definitions,
        }
    }

    /// The server's form of the argument `name`; nothing when it is left out.
    ///
    /// # Errors
    ///
    /// When an object in a value that would be rewritten repeats a key: readers may disagree on which one counts.
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
        if matches!(field.back, Back::Keep) {
            return Ok(Some(Cow::Borrowed(written)));
        }
        let value = match Json::parse(written) {
            Ok(value) => value,
            Err(error) if error.repeated_key().is_some() => return Err(error),
            // What cannot be read is the server's to refuse.
            Err(_) => return Ok(Some(Cow::Borrowed(written))),
        };
        let returned = self.value(value.clone(), &self.resolved(&[&field.back]));
        Ok(Some(if returned == value {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(returned.to_json())
        }))
    }

    /// What becomes of a value in a place where one of `backs` applies.
    fn value<'t>(&self, value: Json<'t>, backs: &[&Back]) -> Json<'t> {
        match value {
            Json::Object(members) => {
                let objects = meant(&members, backs);
                let members = members.into_iter().filter_map(|(name, value)| {
                    let value = self.member(&name, value, &objects)?;
                    Some((name, value))
                });
                Json::Object(members.collect())
            }
            Json::Array(elements) => {
                let items: Vec<&Back> = backs
                    .iter()
                    .filter_map(|back| match back {
                        Back::Items(items) => Some(items.as_ref()),
                        _ => None,
                    })
                    .collect();
                let items = self.resolved(&items);
                let elements = elements
                    .into_iter()
                    .map(|element| self.value(element, &items));
                Json::Array(elements.collect())
            }
            Json::String(text) => untexted(text, backs),
            other => other,
        }
    }

    /// A property's value; nothing when it is left out.
    fn member<'t>(&self, name: &str, value: Json<'t>, objects: &[&Fields]) -> Option<Json<'t>> {
        let fields: Vec<&Field> = objects
            .iter()
            .filter_map(|fields| fields.get(name))
            .collect();
        let left_out = fields.iter().any(|field| field.optional)
            && fields.iter().all(|field| field.optional || !field.null);
        if left_out && value == Json::Null {
            return None;
        }
        let backs: Vec<&Back> = fields.iter().map(|field| &field.back).collect();
        Some(self.value(value, &self.resolved(&backs)))
    }

    /// What definitions and choices come down to, each once.
    fn resolved<'b>(&'b self, backs: &[&'b Back]) -> Vec<&'b Back> {
        let mut pending: Vec<&Back> = backs.to_vec();
        let (mut seen, mut resolved) = (BTreeSet::new(), Vec::new());
        while let Some(back) = pending.pop() {
            if seen.len() >= MOST || !seen.insert(std::ptr::from_ref(back)) {
                continue;
            }
            match back {
                Back::Any(all) => pending.extend(all),
                Back::Definition(number) => pending.extend(self.definitions.get(*number)),
                Back::Keep => {}
                other => resolved.push(other),
            }
        }
        resolved
    }
}

/// The kinds of objects that one may be of these members: those that have just them, if there are such,
/// since in the dialect an object has all properties and no others.
fn meant<'b>(members: &[(Cow<'_, str>, Json<'_>)], backs: &[&'b Back]) -> Vec<&'b Fields> {
    let objects = backs.iter().filter_map(|back| match back {
        Back::Object(fields) => Some(fields),
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

/// The object or array that a text is, where one is written so.
fn untexted<'t>(text: Cow<'t, str>, backs: &[&Back]) -> Json<'t> {
    let object = backs.iter().any(|back| matches!(back, Back::ObjectAsText));
    let array = backs.iter().any(|back| matches!(back, Back::ArrayAsText));
    if object || array {
        match Json::parse(&text).ok().map(Json::into_owned) {
            Some(value @ Json::Object(_)) if object => return value,
            Some(value @ Json::Array(_)) if array => return value,
            _ => {}
        }
    }
    Json::String(text)
}

/// How many choices are looked at for one value.
const MOST: usize = 256;
