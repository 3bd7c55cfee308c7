//! The members of one object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::compact::compact_end;
use super::error::JsonError;
use super::key::{Key, duplicate_key};
use super::skip::{MAX_DEPTH, ObjectReader};
use super::strings::{unquoted, write_string};

/// The members of a JSON object, in order, each value as its own text.
///
/// # Properties
///
/// Keys are unique: an object that repeats a key is rejected, since readers may disagree on which one counts.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::Members;
///
/// let mut params = Members::parse(r#"{"name": "add", "a": 1.10, "_meta": {}}"#)?;
/// params.set("name", r#""sum""#);
/// params.remove("_meta");
/// assert_eq!(params.to_json(), r#"{"name":"sum","a":1.10}"#);
///
/// assert!(Members::parse(r#"{"a": 1, "\u0061": 2}"#).is_err());
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    members: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Members<'a> {
    /// Parses an object.
    ///
    /// # Errors
    ///
    /// When `text` is not JSON, is not an object, or repeats a key.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        if let Some(members) = Self::parse_plain(text, |reader, _| reader.value().ok()) {
            return Ok(members);
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let object = (&mut json).deserialize_map(MembersVisitor)?;
        json.end()?;
        match duplicate_key(&object.members) {
            Some(key) => Err(JsonError::duplicate_key_error(key)),
            None => Ok(object),
        }
    }

    /// Like [`parse`](Self::parse), and whether the value of `key` is known to be what [`compacted`](super::compacted)
    /// would return, which is found in the same pass.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_json::Members;
    ///
    /// let (_, is_compact) = Members::parse_compact(r#"{"a": {"b":1}}"#, "a")?;
    /// assert!(is_compact);
    ///
    /// // `compacted` would refuse the repeated key.
    /// let (_, is_compact) = Members::parse_compact(r#"{"a": {"b":1,"b":2}}"#, "a")?;
    /// assert!(!is_compact);
    /// # Ok::<(), mcp_vary_json::JsonError>(())
    /// ```
    pub fn parse_compact(text: &'a str, key: &str) -> Result<(Self, bool), JsonError> {
        let mut is_compact = false;
        let members = Self::parse_plain(text, |reader, name| {
            if name != key {
                return reader.value().ok();
            }
            let (text, at) = reader.position();
            match compact_end(text, at) {
                Some(end) => {
                    is_compact = true;
                    Some(reader.value_until(end))
                }
                None => reader.value().ok(),
            }
        });
        match members {
            Some(members) => Ok((members, is_compact)),
            None => Ok((Self::parse(text)?, false)),
        }
    }

    /// The fast path for nearly all texts, with values read by `value`; `None` for unusual ones and for errors, which
    /// [`parse`](Self::parse) explains.
    fn parse_plain(
        text: &'a str,
        value: impl FnMut(&mut ObjectReader<'a>, &str) -> Option<&'a str>,
    ) -> Option<Self> {
        let mut reader = ObjectReader::open(text, MAX_DEPTH)?;
        let members = Self::read_plain(&mut reader, value)?;
        reader.is_at_end().then_some(members)
    }

    /// Reads the object that is the value of the key that `reader` read last, and in the same pass the members of its
    /// member `inner`: the text of the object, its members, and those of `inner` (none if it does not exist).
    ///
    /// `None` for unusual texts and for errors, which [`parse`](Self::parse) explains: if the value or `inner` is not
    /// an object, repeats a key, or has a key with an escape.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_json::{Members, ObjectReader};
    ///
    /// let mut reader = ObjectReader::open(r#"{"params": {"a": 1, "_meta": {"b": 2}}}"#, 9).unwrap();
    /// assert_eq!(reader.key(), Ok(Some("params")));
    /// let (text, members, meta) = Members::read_nested(&mut reader, "_meta").unwrap();
    /// assert_eq!(text, r#"{"a": 1, "_meta": {"b": 2}}"#);
    /// assert_eq!((members.get("_meta"), meta.get("b")), (Some(r#"{"b": 2}"#), Some("2")));
    /// assert_eq!(reader.member(), Ok(None));
    /// ```
    pub fn read_nested(
        reader: &mut ObjectReader<'a>,
        inner: &str,
    ) -> Option<(&'a str, Self, Self)> {
        let mut nested = Self::default();
        let (text, members) = reader.object(|object| {
            Self::read_plain(object, |reader, key| {
                if key != inner {
                    return reader.value().ok();
                }
                let plain = |object: &mut _| Self::read_plain(object, |it, _| it.value().ok());
                let (text, inside) = reader.object(plain)?;
                nested = inside;
                Some(text)
            })
        })?;
        Some((text, members, nested))
    }

    /// The members that `reader` has still to read, their values read by `value`, which gets their keys.
    fn read_plain(
        reader: &mut ObjectReader<'a>,
        mut value: impl FnMut(&mut ObjectReader<'a>, &str) -> Option<&'a str>,
    ) -> Option<Self> {
        let mut next = reader.plain_key().ok()?;
        let capacity = next.map_or(0, |_| TYPICAL_MEMBERS);
        let mut members = Vec::with_capacity(capacity);
        while let Some(key) = next {
            members.push((Cow::Borrowed(key), Cow::Borrowed(value(reader, key)?)));
            next = reader.plain_key().ok()?;
        }
        let is_unique = duplicate_key(&members).is_none();
        is_unique.then_some(Self { members })
    }

    /// The value of `key`, as written.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.position(key).map(|at| self.members[at].1.as_ref())
    }

    /// The value of `key` as a slice of the original text; `None` if it was [set](Self::set) to another text.
    pub fn get_written(&self, key: &str) -> Option<&'a str> {
        match &self.members[self.position(key)?].1 {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// The value of `key`, if it is a string.
    pub fn get_str(&self, key: &str) -> Option<String> {
        unquoted(self.get(key)?).map(Cow::into_owned)
    }

    /// The same, borrowed if it has no escapes.
    pub fn get_text(&self, key: &str) -> Option<Cow<'_, str>> {
        unquoted(self.get(key)?)
    }

    /// Whether `key` exists.
    pub fn contains(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Replaces the value of `key` in place, or appends it.
    ///
    /// `json` must be valid JSON; it is written unchanged.
    pub fn set(&mut self, key: impl Into<Cow<'a, str>>, json: impl Into<Cow<'a, str>>) {
        let name = key.into();
        match self.position(&name) {
            Some(at) => self.members[at].1 = json.into(),
            None => self.members.push((name, json.into())),
        }
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.position(key).map(|at| self.members.remove(at).1)
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// The object as compact JSON; the values stay as written.
    pub fn to_json(&self) -> String {
        let size = self.members.iter().map(|(k, v)| k.len() + v.len() + 4);
        let mut out = String::with_capacity(size.sum::<usize>() + 2);
        out.push('{');
        for (at, (key, value)) in self.members.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_string(&mut out, key);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|(name, _)| name == key)
    }
}

impl<'a, K: Into<Cow<'a, str>>, V: Into<Cow<'a, str>>> FromIterator<(K, V)> for Members<'a> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut object = Self::default();
        for (key, json) in members {
            object.set(key, json);
        }
        object
    }
}

/// An object with these members, in order, as compact JSON. Each value must be valid JSON; it is written unchanged.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::{object, string};
///
/// let request = object(&[("id", "7"), ("method", &string("ping"))]);
/// assert_eq!(request, r#"{"id":7,"method":"ping"}"#);
/// ```
pub fn object(members: &[(&str, &str)]) -> String {
    let members: Members<'_> = members.iter().copied().collect();
    members.to_json()
}

/// Few objects of the protocol have more members.
const TYPICAL_MEMBERS: usize = 8;

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Members::default();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            object.members.push((key, Cow::Borrowed(value.get())));
        }
        Ok(object)
    }
}
