//! The state of a request that takes several rounds: it comes back only to where it was made, and in time.
//!
//! Source: MCP 2026-07-28, "Multi Round-Trip Requests"; what binds it is a decision of this project.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use crate::cursor::{self, CursorKeys};
use crate::json::{JsonError, Key, folded};
use crate::variant::VariantId;

/// What a request is about, in 32 bytes: what it names, and its arguments.
///
/// # Properties
///
/// The order of an object's members does not count, everything else does, also how a number is
/// written: a client sends again what it has sent.
///
/// # Examples
///
/// ```
/// use mcp_vary::state::Parameters;
/// use serde_json::json;
///
/// let pay = |arguments: serde_json::Value| Parameters::of("pay", arguments.as_object());
/// assert_eq!(pay(json!({"to": "Ada", "francs": 5})), pay(json!({"francs": 5, "to": "Ada"})));
/// assert_ne!(pay(json!({"francs": 5})), pay(json!({"francs": 50})));
/// // No arguments are not the same as an object without any.
/// assert_ne!(pay(json!({})), Parameters::of("pay", None));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameters([u8; 32]);

impl Parameters {
    /// Of a request for `name` (of a tool or prompt, or a URI) with `arguments`.
    #[must_use]
    pub fn of(name: &str, arguments: Option<&Map<String, Value>>) -> Self {
        let mut hash = Sha256::new();
        hash_text(&mut hash, name);
        match arguments {
            None => hash.update(b"-"),
            Some(arguments) => hash_members(&mut hash, arguments),
        }
        Self(hash.finalize().into())
    }

    /// The same of arguments that are JSON text, in one pass and without a tree of them.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, when an object in it repeats a key, be it in another spelling that some readers take
    /// for the same, and when no `f64` holds a number of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::state::Parameters;
    /// use serde_json::json;
    ///
    /// let pay = json!({"to": "Ada", "francs": 5});
    /// let written = Parameters::of_json("pay", Some(r#"{"francs": 5, "to": "\u0041da"}"#))?;
    /// assert_eq!(written, Parameters::of("pay", pay.as_object()));
    /// assert!(Parameters::of_json("pay", Some(r#"{"francs": 5, "francs": 500}"#)).is_err());
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    pub fn of_json(name: &str, arguments: Option<&str>) -> Result<Self, JsonError> {
        let mut hash = Sha256::new();
        hash_text(&mut hash, name);
        match arguments {
            None => hash.update(b"-"),
            Some(text) => {
                let mut json = serde_json::Deserializer::from_str(text);
                let repeated = Cell::new(None);
                let read = Hashed(&mut hash, &repeated).deserialize(&mut json);
                if let Some(key) = repeated.take() {
                    return Err(JsonError::repeated(&key));
                }
                read?;
                json.end()?;
            }
        }
        Ok(Self(hash.finalize().into()))
    }
}

/// What the state of a request is bound to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as a literal where a state is sealed; a fifth part must be said everywhere"
)]
pub struct Binding<'a> {
    /// The active variant.
    pub variant: &'a VariantId,
    /// The method, such as `tools/call`.
    pub method: &'a str,
    /// Who asks; empty for nobody in particular.
    pub principal: &'a str,
    /// What the request is about.
    pub parameters: &'a Parameters,
}

/// Why a state does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Malformed, forged, or made for another variant, method, principal or other parameters.
    #[error("the request state is invalid")]
    Invalid,
    /// We made it for this request, and its time is over.
    #[error("the request state has expired")]
    Expired,
}

/// Seals the `state` of a server until `expires`, in seconds since 1970 like `now` of [`open`].
///
/// What is sealed is authentic, not secret, as with a [cursor](cursor::seal); the keys may be the same.
///
/// # Examples
///
/// ```
/// use mcp_vary::cursor::CursorKeys;
/// use mcp_vary::state::{Binding, Parameters, StateError, open, seal};
///
/// let keys = CursorKeys::new([7; 32]);
/// let (standard, pay) = ("standard".parse()?, Parameters::of("pay", None));
/// let binding = Binding { variant: &standard, method: "tools/call", principal: "ada", parameters: &pay };
///
/// let state = seal(&keys, &binding, "asked for the PIN", 1_000);
/// assert_eq!(open(&keys, &binding, &state, 999).as_deref(), Ok("asked for the PIN"));
/// assert_eq!(open(&keys, &binding, &state, 1_000), Err(StateError::Expired));
///
/// let other = Binding { principal: "eve", ..binding };
/// assert_eq!(open(&keys, &other, &state, 999), Err(StateError::Invalid));
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn seal(keys: &CursorKeys, binding: &Binding<'_>, state: &str, expires: u64) -> String {
    let what = what(binding);
    cursor::seal(
        keys,
        &of_cursor(binding, &what),
        &format!("{expires} {state}"),
    )
}

/// Opens a state that a client sent back at `now`, and returns what [`seal`] was given.
///
/// # Errors
///
/// When it was not made for this request, and when its time is over. Which of both is said only of
/// a state that is authentic.
pub fn open(
    keys: &CursorKeys,
    binding: &Binding<'_>,
    sealed: &str,
    now: u64,
) -> Result<String, StateError> {
    let what = what(binding);
    let opened =
        cursor::open(keys, &of_cursor(binding, &what), sealed).map_err(|_| StateError::Invalid)?;
    let (expires, state) = opened.split_once(' ').ok_or(StateError::Invalid)?;
    let expires: u64 = expires.parse().map_err(|_| StateError::Invalid)?;
    match now < expires {
        true => Ok(state.to_owned()),
        false => Err(StateError::Expired),
    }
}

/// The rest of what is bound. No list is called that, so no cursor is a state or the other way round.
fn what(binding: &Binding<'_>) -> String {
    let mut what = format!("{} state ", binding.method);
    for byte in binding.parameters.0 {
        what.push_str(&format!("{byte:02x}"));
    }
    what
}

fn of_cursor<'a>(binding: &Binding<'a>, what: &'a str) -> cursor::Binding<'a> {
    cursor::Binding {
        variant: binding.variant,
        method: what,
        principal: binding.principal,
    }
}

/// Every value after a letter of its kind and, where it can vary, its length or its end: no two look alike.
///
/// Of an object's members digests are hashed, so that they can be sorted without being held.
fn hash_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(is) => hash_bool(hash, *is),
        Value::Number(number) => hash_number(hash, number),
        Value::String(text) => hash_string(hash, text),
        Value::Array(items) => {
            hash.update(b"a");
            items.iter().for_each(|item| hash_value(hash, item));
            hash.update(b"e");
        }
        Value::Object(members) => hash_members(hash, members),
    }
}

fn hash_members(hash: &mut Sha256, members: &Map<String, Value>) {
    let members = members.iter().map(|(key, value)| {
        let mut digest = Sha256::new();
        hash_value(&mut digest, value);
        (Cow::Borrowed(key.as_str()), digest.finalize().into())
    });
    hash_sorted(hash, members.collect());
}

/// The members of an object by their keys, each with the digest of its value.
fn hash_sorted(hash: &mut Sha256, mut members: Vec<(Cow<'_, str>, [u8; 32])>) {
    hash.update(b"o");
    hash.update((members.len() as u64).to_be_bytes());
    members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (key, digest) in members {
        hash_text(hash, &key);
        hash.update(digest);
    }
}

fn hash_bool(hash: &mut Sha256, is: bool) {
    hash.update(if is { b"t" } else { b"f" });
}

fn hash_number(hash: &mut Sha256, number: &Number) {
    hash.update(b"d");
    hash_text(hash, &number.to_string());
}

fn hash_string(hash: &mut Sha256, text: &str) {
    hash.update(b"s");
    hash_text(hash, text);
}

/// Hashes the value that is read next, and remembers a key that readers may take for two values.
struct Hashed<'h>(&'h mut Sha256, &'h Cell<Option<String>>);

impl<'de> DeserializeSeed<'de> for Hashed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hashed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.update(b"n");
        Ok(())
    }

    fn visit_bool<E>(self, is: bool) -> Result<(), E> {
        hash_bool(self.0, is);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        hash_number(self.0, &number.into());
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        hash_number(self.0, &number.into());
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        let number = Number::from_f64(number).ok_or_else(|| E::custom("number out of range"))?;
        hash_number(self.0, &number);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        hash_string(self.0, text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.update(b"a");
        while items.next_element_seed(Hashed(self.0, self.1))?.is_some() {}
        self.0.update(b"e");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members: Vec<(Cow<'de, str>, [u8; 32])> = Vec::new();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let mut digest = Sha256::new();
            map.next_value_seed(Hashed(&mut digest, self.1))?;
            members.push((key, digest.finalize().into()));
        }
        if let Some(key) = folded_twice(&members) {
            self.1.set(Some(key));
            return Err(A::Error::custom("a key is given twice"));
        }
        hash_sorted(self.0, members);
        Ok(())
    }
}

/// A key that is given twice, or in two spellings that [fold](folded) to the same.
fn folded_twice<V>(members: &[(Cow<'_, str>, V)]) -> Option<String> {
    let mut keys: Vec<String> = members
        .iter()
        .map(|(key, _)| folded(key).collect())
        .collect();
    keys.sort_unstable();
    let repeated = keys.windows(2).find(|pair| pair[0] == pair[1]);
    repeated.map(|pair| pair[0].clone())
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn differ(values: &[Value]) {
        let of = |value| Parameters::of("x", json!({"a": value}).as_object());
        for (at, one) in values.iter().enumerate() {
            for other in &values[at + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }

    /// SV-26: whatever differs in the arguments differs in the digest.
    #[test]
    fn arguments_that_differ_are_told_apart() {
        differ(&[
            json!(null),
            json!(true),
            json!(false),
            json!(1),
            json!(1.0),
            json!("1"),
            json!(""),
            json!([]),
            json!({}),
            json!([1]),
            json!([[1]]),
            json!([1, 1]),
            json!(["", ""]),
            json!([["", ""]]),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"b": 1}),
            json!({"a": 1, "b": 1}),
            json!("n"),
            json!([[], 1]),
            json!([[1], []]),
        ]);
        assert_ne!(Parameters::of("a", None), Parameters::of("b", None));
    }

    /// SV-26: what is read as text is the same as what is read as a tree.
    #[test]
    fn a_text_is_the_value_that_it_says() {
        for text in [
            r#"{}"#,
            r#"{"b": [1, -2, 3.50, 1e2, [], [[]]], "a": {"z": null, "y": [true, false]}}"#,
            r#"{"\u0061": "\ud83d\ude00", "b": "\n"}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let read = Parameters::of_json("x", Some(text)).unwrap();
            assert_eq!(read, Parameters::of("x", value.as_object()), "{text}");
        }
        assert_eq!(
            Parameters::of_json("x", None),
            Ok(Parameters::of("x", None))
        );
        for text in [
            "",
            "{",
            r#"{"a":[{"q":1,"q":2}]}"#,
            r#"{"a":1e400}"#,
            "{} 1",
        ] {
            assert!(Parameters::of_json("x", Some(text)).is_err(), "{text}");
        }
    }

    /// SV-26: neither a cursor is a state, nor a state a cursor.
    #[test]
    fn a_state_is_no_cursor() {
        let (keys, variant) = (CursorKeys::new([1; 32]), "v".parse().unwrap());
        let parameters = Parameters::of("x", None);
        let binding = Binding {
            variant: &variant,
            method: "tools/list",
            principal: "",
            parameters: &parameters,
        };
        let of_list = cursor::Binding {
            variant: &variant,
            method: "tools/list",
            principal: "",
        };
        let cursor = cursor::seal(&keys, &of_list, "99 x");
        assert_eq!(open(&keys, &binding, &cursor, 0), Err(StateError::Invalid));
        let state = seal(&keys, &binding, "x", 99);
        assert!(cursor::open(&keys, &of_list, &state).is_err());
    }

    #[test]
    fn errors_are_sentences() {
        let said = [StateError::Invalid, StateError::Expired].map(|error| error.to_string());
        assert_eq!(
            said,
            [
                "the request state is invalid",
                "the request state has expired"
            ]
        );
    }
}
