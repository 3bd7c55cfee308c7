//! The state of a request that takes several rounds: it comes back only to where it was made, and in time.
//!
//! Source: MCP 2026-07-28, "Multi Round-Trip Requests"; what binds it is a decision of this project.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::cursor::{self, CursorKeys};
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

/// Every value after a letter of its kind and, where it can vary, its length: no two look alike.
fn hash_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Number(number) => {
            hash.update(b"d");
            hash_text(hash, &number.to_string());
        }
        Value::String(text) => {
            hash.update(b"s");
            hash_text(hash, text);
        }
        Value::Array(items) => {
            hash.update(b"a");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| hash_value(hash, item));
        }
        Value::Object(members) => hash_members(hash, members),
    }
}

fn hash_members(hash: &mut Sha256, members: &Map<String, Value>) {
    hash.update(b"o");
    hash.update((members.len() as u64).to_be_bytes());
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in sorted {
        hash_text(hash, key);
        hash_value(hash, value);
    }
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
        ]);
        assert_ne!(Parameters::of("a", None), Parameters::of("b", None));
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
