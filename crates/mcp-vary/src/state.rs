//! The state of a request with several rounds: it opens only for the request that it was created for, and before it
//! expires.
//!
//! Source: MCP 2026-07-28, "Multi Round-Trip Requests"; the binding is a decision of this project.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use crate::cursor::{self, CursorKeys};
use crate::json::{JsonError, Key, folded};
use crate::variant::VariantId;

/// A digest of a request's name and arguments, in 32 bytes.
///
/// # Properties
///
/// The order of an object's members has no effect; everything else has, even the spelling of numbers: a client
/// repeats what it has sent.
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
/// // Missing arguments differ from an empty object.
/// assert_ne!(pay(json!({})), Parameters::of("pay", None));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameters([u8; 32]);

impl Parameters {
    /// The digest of a request for `name` (a tool, prompt or URI) with `arguments`.
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

    /// The same for arguments in JSON text, in one pass and without a tree.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, when an object repeats a key (also in another spelling that some readers treat as
    /// equal), and when a number does not fit an `f64`.
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
                let read = HashingVisitor(&mut hash, &repeated).deserialize(&mut json);
                if let Some(key) = repeated.take() {
                    return Err(JsonError::duplicate_key_error(&key));
                }
                read?;
                json.end()?;
            }
        }
        Ok(Self(hash.finalize().into()))
    }
}

/// What a request state is bound to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as a literal where a state is sealed; a fifth part must be added everywhere"
)]
pub struct StateBinding<'a> {
    /// The active variant.
    pub variant: &'a VariantId,
    /// The method, such as `tools/call`.
    pub method: &'a str,
    /// The principal of the request; empty if there is none.
    pub principal: &'a str,
    /// The digest of the request.
    pub parameters: &'a Parameters,
}

/// Why a state does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Malformed, forged, or created for another variant, method, principal or other parameters.
    #[error("the request state is invalid")]
    Invalid,
    /// The state is authentic, for this request, but expired.
    #[error("the request state has expired")]
    Expired,
}

/// Seals the `state` of a server until `expires`, in seconds since 1970 like `now` of [`open`].
///
/// A sealed state is authentic, not secret, like a [cursor](cursor::seal); both may use the same keys.
///
/// # Examples
///
/// ```
/// use mcp_vary::cursor::CursorKeys;
/// use mcp_vary::state::{StateBinding, Parameters, StateError, open, seal};
///
/// let keys = CursorKeys::new([7; 32]);
/// let (standard, pay) = ("standard".parse()?, Parameters::of("pay", None));
/// let binding = StateBinding { variant: &standard, method: "tools/call", principal: "ada", parameters: &pay };
///
/// let state = seal(&keys, &binding, "asked for the PIN", 1_000);
/// assert_eq!(open(&keys, &binding, &state, 999).as_deref(), Ok("asked for the PIN"));
/// assert_eq!(open(&keys, &binding, &state, 1_000), Err(StateError::Expired));
///
/// let other = StateBinding { principal: "eve", ..binding };
/// assert_eq!(open(&keys, &other, &state, 999), Err(StateError::Invalid));
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn seal(keys: &CursorKeys, binding: &StateBinding<'_>, state: &str, expires: u64) -> String {
    let what = purpose(binding);
    cursor::seal(
        keys,
        &cursor_binding(binding, &what),
        &format!("{expires} {state}"),
    )
}

/// Opens a state that a client sent back at `now`, and returns what [`seal`] was given.
///
/// # Errors
///
/// When it was not created for this request, or has expired. Expiry is reported only for authentic states.
pub fn open(
    keys: &CursorKeys,
    binding: &StateBinding<'_>,
    sealed: &str,
    now: u64,
) -> Result<String, StateError> {
    let what = purpose(binding);
    let opened = cursor::open(keys, &cursor_binding(binding, &what), sealed)
        .map_err(|_| StateError::Invalid)?;
    let (written, state) = opened.split_once(' ').ok_or(StateError::Invalid)?;
    let expires: u64 = written.parse().map_err(|_| StateError::Invalid)?;
    if now < expires {
        Ok(state.to_owned())
    } else {
        Err(StateError::Expired)
    }
}

/// The remaining bound parts, as the method of a cursor. No list has such a name, so cursors and states cannot be
/// confused.
fn purpose(binding: &StateBinding<'_>) -> String {
    let mut what = format!("{} state ", binding.method);
    for byte in binding.parameters.0 {
        what.push_str(&format!("{byte:02x}"));
    }
    what
}

fn cursor_binding<'a>(binding: &StateBinding<'a>, what: &'a str) -> cursor::CursorBinding<'a> {
    cursor::CursorBinding {
        variant: binding.variant,
        method: what,
        principal: binding.principal,
    }
}

/// Hashes each value after a letter for its kind and, if needed, its length or end, so that no two values are alike.
///
/// Members of objects are hashed as digests, so that they can be sorted without storing them.
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
    let digests = members.iter().map(|(key, value)| {
        let mut digest = Sha256::new();
        hash_value(&mut digest, value);
        (Cow::Borrowed(key.as_str()), digest.finalize().into())
    });
    hash_sorted(hash, digests.collect());
}

/// Hashes the members of an object, sorted by key, each with the digest of its value.
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

/// Hashes the next value, and records a repeated key.
struct HashingVisitor<'h>(&'h mut Sha256, &'h Cell<Option<String>>);

impl<'de> DeserializeSeed<'de> for HashingVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HashingVisitor<'_> {
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
        while items
            .next_element_seed(HashingVisitor(self.0, self.1))?
            .is_some()
        {}
        self.0.update(b"e");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members: Vec<(Cow<'de, str>, [u8; 32])> = Vec::new();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let mut digest = Sha256::new();
            map.next_value_seed(HashingVisitor(&mut digest, self.1))?;
            members.push((key, digest.finalize().into()));
        }
        if let Some(key) = repeated_folded_key(&members) {
            self.1.set(Some(key));
            return Err(A::Error::custom("a key occurs twice"));
        }
        hash_sorted(self.0, members);
        Ok(())
    }
}

/// A key that occurs twice, or in two spellings that [fold](folded) to the same text.
fn repeated_folded_key<V>(members: &[(Cow<'_, str>, V)]) -> Option<String> {
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
        let values = json!([
            null, true, false, 1, 1.0, "1", "", [], {}, [1], [[1]], [1, 1], ["", ""], [["", ""]],
            {"a": 1}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 1}, "n", [[], 1], [[1], []],
        ]);
        differ(values.as_array().unwrap());
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
        let without = Parameters::of_json("x", None);
        assert_eq!(without, Ok(Parameters::of("x", None)));
        let repeated = r#"{"a":[{"q":1,"q":2}]}"#;
        for text in ["", "{", repeated, r#"{"a":1e400}"#, "{} 1"] {
            assert!(Parameters::of_json("x", Some(text)).is_err(), "{text}");
        }
    }

    /// SV-26: neither a cursor is a state, nor a state a cursor.
    #[test]
    fn a_state_is_no_cursor() {
        let (keys, variant) = (CursorKeys::new([1; 32]), "v".parse().unwrap());
        let parameters = Parameters::of("x", None);
        let binding = StateBinding {
            variant: &variant,
            method: "tools/list",
            principal: "",
            parameters: &parameters,
        };
        let of_list = cursor::CursorBinding {
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
        for (error, text) in [
            (StateError::Invalid, "the request state is invalid"),
            (StateError::Expired, "the request state has expired"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
