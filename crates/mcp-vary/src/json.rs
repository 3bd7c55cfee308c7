//! JSON as it was written: order, number spelling and unknown members survive.
//!
//! [`Members`] and [`elements`] open one level and leave every value as the slice of text it was;
//! [`Json`] is the whole tree, for renderings and rules that look at every value. Neither goes
//! through a number type, so `1.10`, `1e5` and a 30-digit integer come out as they went in.

mod skip;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use self::skip::{Invalid, ObjectReader, skip};

/// Containers inside containers deeper than this are refused.
pub const MAX_DEPTH: usize = 128;

/// Why a text is not the JSON that was asked for.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    message: String,
}

impl JsonError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// The members of one JSON object, in the order they were written, each value as its own text.
///
/// # Properties
///
/// Keys are unique: an object that repeats a key is refused, since two readers may
/// disagree on which of the two counts.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Members;
///
/// let mut params = Members::parse(r#"{"name": "add", "a": 1.10, "_meta": {}}"#)?;
/// params.set("name", r#""sum""#);
/// params.remove("_meta");
/// assert_eq!(params.to_json(), r#"{"name":"sum","a":1.10}"#);
///
/// assert!(Members::parse(r#"{"a": 1, "\u0061": 2}"#).is_err());
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    members: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Members<'a> {
    /// Opens the object that `text` is.
    ///
    /// # Errors
    ///
    /// When `text` is not JSON, is not an object, or repeats a key.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        if let Some(members) = Self::parse_plain(text) {
            return Ok(members);
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let members = (&mut json).deserialize_map(MembersVisitor)?;
        json.end()?;
        Ok(members)
    }

    /// The same for nearly all texts, in a fraction of the time; the others are valid but unusual, or an
    /// error that has to be explained.
    fn parse_plain(text: &'a str) -> Option<Self> {
        let mut members = Vec::with_capacity(USUAL);
        let mut reader = ObjectReader::open(text, MAX_DEPTH)?;
        while let Some((key, value)) = reader.member().ok()? {
            if key.contains('\\') {
                return None;
            }
            members.push((Cow::Borrowed(key), Cow::Borrowed(value)));
        }
        let is_whole = reader.is_at_end() && repeated_key(&members).is_none();
        is_whole.then_some(Self { members })
    }

    /// The value of `key`, as written.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.position(key).map(|at| self.members[at].1.as_ref())
    }

    /// The value of `key` as a part of the text that was read; `None` once it was [set](Self::set)
    /// to text of its own.
    #[must_use]
    pub fn get_written(&self, key: &str) -> Option<&'a str> {
        match &self.members[self.position(key)?].1 {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// The value of `key` when it is a string.
    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<String> {
        unquoted(self.get(key)?).map(Cow::into_owned)
    }

    /// Whether `key` is there.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Replaces the value of `key` where it stands, or appends it.
    ///
    /// `json` must be valid JSON; it is written as it is.
    pub fn set(&mut self, key: impl Into<Cow<'a, str>>, json: impl Into<Cow<'a, str>>) {
        let key = key.into();
        match self.position(&key) {
            Some(at) => self.members[at].1 = json.into(),
            None => self.members.push((key, json.into())),
        }
    }

    /// Takes `key` out and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.position(key).map(|at| self.members.remove(at).1)
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// The object as compact JSON; the values are written as they were read.
    #[must_use]
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

/// Few objects of the protocol have more members.
const USUAL: usize = 8;

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
        match repeated_key(&object.members) {
            Some(key) => Err(serde::de::Error::custom(given_twice(key))),
            None => Ok(object),
        }
    }
}

/// A key that `members` holds more than once.
///
/// A few keys are compared with each other, many are sorted: no object takes quadratic time.
fn repeated_key<'m, V>(members: &'m [(Cow<'_, str>, V)]) -> Option<&'m str> {
    if members.len() <= 16 {
        let mut keys = members.iter().enumerate();
        return keys.find_map(|(at, (key, _))| {
            let before = &members[..at];
            before.iter().any(|(k, _)| k == key).then_some(key.as_ref())
        });
    }
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| (pair[0] == pair[1]).then_some(pair[0]))
}

/// The sentence about a key that stands twice; a peer's key is cut.
fn given_twice(key: &str) -> String {
    let cut: String = key.chars().take(64).collect();
    format!("the key {cut:?} is given twice")
}

/// A key, borrowed where it holds no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The elements of the array that `text` is, each as written.
///
/// # Errors
///
/// When `text` is not a JSON array.
pub fn elements(text: &str) -> Result<Vec<&str>, JsonError> {
    if let Some(all) = skip::elements(text) {
        return Ok(all);
    }
    struct Elements;
    impl<'de> Visitor<'de> for Elements {
        type Value = Vec<&'de str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(element) = seq.next_element::<&'de RawValue>()? {
                all.push(element.get());
            }
            Ok(all)
        }
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let all = (&mut json).deserialize_seq(Elements)?;
    json.end()?;
    Ok(all)
}

/// The text of a valid JSON value that is a string, borrowed where it holds no escape; `None` when it is
/// none, or holds what no text can.
pub(crate) fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(value).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// Writes `text` as a JSON string, quotes included.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    loop {
        let at = skip::next_special(text.as_bytes(), from);
        out.push_str(&text[from..at]);
        match text.as_bytes().get(at) {
            None => break,
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(b'\n') => out.push_str("\\n"),
            Some(b'\r') => out.push_str("\\r"),
            Some(b'\t') => out.push_str("\\t"),
            Some(control) => out.push_str(&format!("\\u{control:04x}")),
        }
        from = at + 1;
    }
    out.push('"');
}

/// `text` as a JSON string, quotes included.
#[must_use]
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// The JSON pointer to the member or element `token` of what `parent` points to.
pub(crate) fn pointer(parent: &str, token: &str) -> String {
    let token = token.replace('~', "~0").replace('/', "~1");
    format!("{parent}/{token}")
}

/// A whole JSON value: numbers as they are spelled, members in the order they were written.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
///
/// let value = Json::parse(r#"{"b": 1.10, "a": [1e5, "\u00e9"]}"#)?;
/// assert_eq!(value.to_json(), r#"{"b":1.10,"a":[1e5,"é"]}"#);
///
/// // What serde_json would read as 1.0 and print as such stays what it was.
/// assert_eq!(Json::parse("10e-1")?.to_json(), "10e-1");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON has no seventh kind of value")]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it is spelled.
    Number(Cow<'a, str>),
    /// A string, its escapes resolved.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Self>),
    /// An object; keys are unique.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// Reads the one value that `text` is.
    ///
    /// # Errors
    ///
    /// When `text` is not one JSON value, repeats a key within an object, or nests deeper than
    /// [`MAX_DEPTH`].
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at < text.len() {
            return Err(reader.error("text after the value"));
        }
        Ok(value)
    }

    /// The value as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Appends the value as compact JSON.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(spelling) => out.push_str(spelling),
            Self::String(text) => write_string(out, text),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(out, key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Whether both are the same JSON value: members in any order, numbers by what they count.
    ///
    /// Numbers whose exponent does not fit 64 bits are the same only when spelled alike.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::json::Json;
    ///
    /// let value = Json::parse(r#"{"a": 1.0, "b": [1e2]}"#)?;
    /// assert!(value.is_same(&Json::parse(r#"{"b": [100], "a": 1}"#)?));
    ///
    /// // Neither goes through a float: these differ in the last of 17 digits.
    /// assert!(!Json::parse("10000000000000001")?.is_same(&Json::parse("10000000000000000")?));
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    #[must_use]
    pub fn is_same(&self, other: &Json<'_>) -> bool {
        match (self, other) {
            (Self::Null, Json::Null) => true,
            (Self::Bool(this), Json::Bool(other)) => this == other,
            (Self::Number(this), Json::Number(other)) => {
                this == other || decimal(this).is_some_and(|this| Some(this) == decimal(other))
            }
            (Self::String(this), Json::String(other)) => this == other,
            (Self::Array(this), Json::Array(other)) => {
                this.len() == other.len() && this.iter().zip(other).all(|(a, b)| a.is_same(b))
            }
            (Self::Object(this), Json::Object(other)) if this.len() == other.len() => {
                let (this, other) = (by_key(this), by_key(other));
                let mut pairs = this.iter().zip(&other);
                pairs.all(|(this, other)| this.0 == other.0 && this.1.is_same(other.1))
            }
            _ => false,
        }
    }

    /// The same value, apart from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(spelling) => Json::Number(owned(spelling)),
            Self::String(text) => Json::String(owned(text)),
            Self::Array(elements) => {
                Json::Array(elements.into_iter().map(Json::into_owned).collect())
            }
            Self::Object(members) => {
                let owned = |(key, value): (_, Self)| (owned(key), value.into_owned());
                Json::Object(members.into_iter().map(owned).collect())
            }
        }
    }

    /// The member `key` of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?
            .iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The members of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

type Member<'m, 'a> = (&'m str, &'m Json<'a>);

fn by_key<'m, 'a>(members: &'m [(Cow<'a, str>, Json<'a>)]) -> Vec<Member<'m, 'a>> {
    let mut sorted: Vec<_> = members.iter().map(|(k, v)| (k.as_ref(), v)).collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted
}

/// What a number counts: its sign, its digits without zeros at either end, and the power of ten.
///
/// Zero has no digits and no sign. None when the exponent is beyond counting.
fn decimal(spelling: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match spelling.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (spelling, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole.trim_start_matches('-'), fraction].concat();
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let shift = zeros - i64::try_from(fraction.len()).ok()?;
    match significant.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        significant => Some((
            is_negative,
            significant.to_owned(),
            exponent.checked_add(shift)?,
        )),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.space();
        match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err(self.error("nested too deep")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => Err(self.error("no value starts like this")),
            None => Err(self.error("the text ends before its value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key"));
            }
            let key = self.string()?;
            self.space();
            if !self.eat(b':') {
                return Err(self.error("expected `:`"));
            }
            members.push((key, self.value(depth + 1)?));
            self.space();
            if self.eat(b'}') {
                return match repeated_key(&members) {
                    Some(key) => Err(self.error(&given_twice(key))),
                    None => Ok(Json::Object(members)),
                };
            }
            if !self.eat(b',') {
                return Err(self.error("expected `,` or `}`"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.space();
            if self.eat(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.eat(b',') {
                return Err(self.error("expected `,` or `]`"));
            }
        }
    }

    /// Finds the closing quote, then leaves the escapes to `serde_json`.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        let mut plain = true;
        loop {
            match bytes.get(end) {
                None => return Err(self.error("the text ends inside a string")),
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    end += 2;
                }
                Some(byte) => {
                    plain &= *byte >= b' ';
                    end += 1;
                }
            }
        }
        self.at = end + 1;
        if plain {
            return Ok(Cow::Borrowed(&self.text[start + 1..end]));
        }
        serde_json::from_str(&self.text[start..=end])
            .map(Cow::Owned)
            .map_err(|_| self.error("a string holds an invalid escape or control character"))
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return Err(self.error("expected a digit"));
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(self.error("expected a digit after the point"));
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return Err(self.error("expected a digit in the exponent"));
            }
        }
        Ok(Json::Number(Cow::Borrowed(&self.text[start..self.at])))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("no value starts like this"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn error(&self, what: &str) -> JsonError {
        JsonError::new(format!("{what} at byte {}", self.at))
    }
}
