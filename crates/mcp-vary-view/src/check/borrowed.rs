//! Arguments as a tree that borrows their text: what `jsonschema` validates calls in.
//!
//! A tree of [`serde_json::Value`] copies each text and hashes each name; to read it takes longer than to validate it.

use std::borrow::Cow;
use std::fmt;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use mcp_vary::json::to_value;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value that borrows those texts of its source that have no escapes.
#[derive(Debug)]
pub(super) enum BorrowedValue<'t> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'t, str>),
    Array(Vec<Self>),
    /// Names are unique. More than [`MAX_SCANNED`] members are sorted by name, since a lookup must not visit each.
    Object(Vec<Member<'t>>),
}

type Member<'t> = (Cow<'t, str>, BorrowedValue<'t>);

impl<'t> BorrowedValue<'t> {
    /// Reads what [`to_value`] reads, as it reads it; `None` if an object repeats a key.
    pub(super) fn read(json: &'t str) -> Option<Self> {
        let read = serde_json::from_str(json);
        // Reserved names are rare; everything else that fails here fails there as well.
        let slowly = || {
            mcp_vary::json::Json::parse(json).ok()?;
            Some(Self::from(to_value(json).ok()?))
        };
        read.ok().or_else(slowly)
    }

    /// How many containers enclose the innermost value.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Array(elements) => 1 + elements.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => {
                let depths = members.iter().map(|(_, value)| value.depth());
                1 + depths.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The object with these members; `None` if a name repeats.
    fn object(mut members: Vec<Member<'t>>) -> Option<Self> {
        let repeats = match members.len() {
            ..=MAX_SCANNED => {
                let mut names = members.iter().enumerate();
                names.any(|(at, (name, _))| find(&members[..at], name).is_some())
            }
            _ => {
                members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                members.windows(2).any(|pair| pair[0].0 == pair[1].0)
            }
        };
        (!repeats).then_some(Self::Object(members))
    }

    /// The object with these members, whose names do not repeat.
    fn of_unique(mut members: Vec<Member<'t>>) -> Self {
        if members.len() > MAX_SCANNED {
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        }
        Self::Object(members)
    }
}

/// The value of `name` among the members of an object.
fn find<'m, 't>(members: &'m [Member<'t>], name: &str) -> Option<&'m BorrowedValue<'t>> {
    if members.len() > MAX_SCANNED {
        let found = members.binary_search_by(|(other, _)| other.as_ref().cmp(name));
        return found.ok().map(|at| &members[at].1);
    }
    members
        .iter()
        .find_map(|(other, value)| (other == name).then_some(value))
}

impl From<Value> for BorrowedValue<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(Cow::Owned(text)),
            Value::Array(elements) => Self::Array(elements.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                let owned = |(name, value)| (Cow::Owned(name), Self::from(value));
                Self::of_unique(members.into_iter().map(owned).collect())
            }
        }
    }
}

impl<'t> From<&'t Value> for BorrowedValue<'t> {
    fn from(value: &'t Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(Cow::Borrowed(text)),
            Value::Array(elements) => Self::Array(elements.iter().map(Self::from).collect()),
            Value::Object(members) => {
                let borrow =
                    |(name, value)| (Cow::Borrowed(String::as_str(name)), Self::from(value));
                Self::of_unique(members.iter().map(borrow).collect())
            }
        }
    }
}

impl<'de: 't, 't> Deserialize<'de> for BorrowedValue<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = BorrowedValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(BorrowedValue::Null, BorrowedValue::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(BorrowedValue::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut object = Vec::new();
        while let Some((Name(name), value)) = members.next_entry()? {
            object.push((name, value));
        }
        if let [(Cow::Borrowed(NUMBER_NAME), _)] = object.as_slice() {
            return Err(A::Error::custom(
                "a number in the form of an object, or an object in that of a number",
            ));
        }
        BorrowedValue::object(object).ok_or_else(|| A::Error::custom("a name repeats"))
    }
}

/// The name of a member, borrowed where it can be. `Cow` by itself never borrows.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

/// [`BorrowedValue`] as a representation of JSON that `jsonschema` validates.
#[derive(Debug)]
pub(super) struct BorrowedJson;

impl Json for BorrowedJson {
    type Node<'a> = &'a BorrowedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        (): &mut (),
        string: &str,
        validate: impl FnOnce(Self::Node<'_>) -> T,
    ) -> T {
        validate(&BorrowedValue::String(Cow::Borrowed(string)))
    }
}

impl<'a> Node<'a, BorrowedJson> for &'a BorrowedValue<'a> {
    type Object = &'a [Member<'a>];
    type Array = &'a [BorrowedValue<'a>];
    type Number = &'a Number;

    fn as_object(&self) -> Option<&'a [Member<'a>]> {
        match self {
            BorrowedValue::Object(members) => Some(members),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<&'a [BorrowedValue<'a>]> {
        match self {
            BorrowedValue::Array(elements) => Some(elements),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            BorrowedValue::String(text) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self {
            BorrowedValue::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            BorrowedValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, BorrowedValue::Null)
    }

    fn json_type(&self) -> JsonType {
        match self {
            BorrowedValue::Null => JsonType::Null,
            BorrowedValue::Bool(_) => JsonType::Boolean,
            BorrowedValue::Number(_) => JsonType::Number,
            BorrowedValue::String(_) => JsonType::String,
            BorrowedValue::Array(_) => JsonType::Array,
            BorrowedValue::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (BorrowedValue::Null, Value::Null) => true,
            (BorrowedValue::Bool(value), Value::Bool(expected)) => value == expected,
            (BorrowedValue::Number(number), Value::Number(expected)) => {
                cmp::equal_numbers(number, expected)
            }
            (BorrowedValue::String(text), Value::String(expected)) => text == expected,
            (BorrowedValue::Array(elements), Value::Array(expected)) => {
                let mut pairs = elements.iter().zip(expected);
                elements.len() == expected.len()
                    && pairs.all(|(element, expected)| element.equals_value(expected))
            }
            (BorrowedValue::Object(members), Value::Object(expected)) => {
                let is_equal = |(name, expected): (&String, &Value)| {
                    find(members, name).is_some_and(|value| value.equals_value(expected))
                };
                members.len() == expected.len() && expected.iter().all(is_equal)
            }
            _ => false,
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            BorrowedValue::Null => Value::Null,
            BorrowedValue::Bool(value) => Value::Bool(*value),
            BorrowedValue::Number(number) => Value::Number(number.clone()),
            BorrowedValue::String(text) => Value::String(text.to_string()),
            BorrowedValue::Array(elements) => {
                let copies = elements
                    .iter()
                    .map(|element| element.to_value().into_owned());
                Value::Array(copies.collect())
            }
            BorrowedValue::Object(members) => {
                let copy =
                    |(name, value): &Member<'_>| (name.to_string(), value.to_value().into_owned());
                Value::Object(members.iter().map(copy).collect::<Map<_, _>>())
            }
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(*self) as usize))
    }
}

impl<'a> Object<'a, BorrowedJson> for &'a [Member<'a>] {
    type Node = &'a BorrowedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn get(&self, key: &String) -> Option<Self::Node> {
        find(self, key)
    }

    fn members(&self) -> Members<'a> {
        Members(self.iter())
    }
}

/// The members of an object, for [`Object::members`].
pub(super) struct Members<'a>(std::slice::Iter<'a, Member<'a>>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a BorrowedValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name.as_ref(), value))
    }
}

impl<'a> Array<'a, BorrowedJson> for &'a [BorrowedValue<'a>] {
    type Node = &'a BorrowedValue<'a>;
    type ElementsIter = std::slice::Iter<'a, BorrowedValue<'a>>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}

/// The name of the only member of numbers where `serde_json` is built with `arbitrary_precision`: it passes them as
/// objects.
const NUMBER_NAME: &str = "$serde_json::private::Number";
/// How many members are compared one by one to find a name.
const MAX_SCANNED: usize = 16;

#[cfg(test)]
mod tests;
