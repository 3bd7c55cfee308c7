//! Variant hints: what a client declares so that a server can rank its variants.
//!
//! Source: the server variants extension, "VariantHints".

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::extension::{Declaration, SERVER_VARIANTS};
use crate::ignored::{Ignored, Reason};

/// The maximum number of hint keys.
pub const MAX_KEYS: usize = 32;

/// The longest hint key, in bytes.
pub const MAX_KEY: usize = 128;

/// The maximum number of values of one key.
pub const MAX_VALUES: usize = 16;

/// The longest hint value, in bytes.
pub const MAX_VALUE: usize = 128;

/// The longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 2048;

/// The hint with which a client requests experimental variants: `"status": "experimental"`.
pub const STATUS: &str = "status";

/// What a client declares about itself to help rank variants.
///
/// # Properties
///
/// Within the limits above. A key has at least one value, each once, preferred first. The description was written by
/// a client: never show it to a model as trusted text.
///
/// # Examples
///
/// ```
/// use mcp_vary::hints::VariantHints;
/// use serde_json::json;
///
/// let settings = json!({"variantHints": {"hints": {
///     "modelFamily": "anthropic",
///     "useCase": ["planning", 5, "execution"],
///     "contextSize": {"max": 8000},
/// }}});
/// let (hints, ignored) = VariantHints::read(&settings);
/// assert_eq!(hints.values("modelFamily"), ["anthropic"]);
/// assert_eq!(hints.values("useCase"), ["planning", "execution"]);
/// assert!(hints.values("contextSize").is_empty());
/// assert_eq!(ignored.count(), 2);
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VariantHints {
    description: Option<String>,
    hints: BTreeMap<String, Vec<String>>,
}

impl VariantHints {
    /// Reads the extension's settings: `{"variantHints": {"description": …, "hints": {…}}}`.
    #[must_use]
    pub fn read(settings: &Value) -> (Self, Ignored) {
        let (hints, ignored) = <Self as Declaration>::read(settings);
        (hints.unwrap_or_default(), ignored)
    }

    /// Creates hints from keys and values, preferred values first; the limits apply here too.
    ///
    /// ```
    /// use mcp_vary::hints::VariantHints;
    ///
    /// let (hints, _) = VariantHints::from_pairs([("useCase", "planning"), ("useCase", "execution")]);
    /// assert_eq!(hints.values("useCase"), ["planning", "execution"]);
    /// ```
    #[must_use]
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Self, Ignored) {
        let (mut read, mut ignored) = (Self::default(), Ignored::default());
        for (key, value) in pairs {
            if read.has_room_for(key, &mut ignored) {
                read.add_value(key, value, &mut ignored);
            }
        }
        (read, ignored)
    }

    /// The settings with which a client declares these hints.
    #[must_use]
    pub fn to_settings(&self) -> Value {
        let mut hints = Map::new();
        if let Some(description) = &self.description {
            hints.insert("description".to_owned(), json!(description));
        }
        if !self.hints.is_empty() {
            hints.insert("hints".to_owned(), json!(self.hints));
        }
        if hints.is_empty() {
            return json!({});
        }
        json!({ "variantHints": hints })
    }

    /// The client's description of its context; treat it as untrusted.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The values of `key`, preferred first; empty if there are none.
    #[must_use]
    pub fn values(&self, key: &str) -> &[String] {
        self.hints.get(key).map_or(&[], Vec::as_slice)
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.hints
            .iter()
            .map(|(key, values)| (key.as_str(), values.as_slice()))
    }

    /// Whether nothing was declared.
    pub fn is_empty(&self) -> bool {
        self.description.is_none() && self.hints.is_empty()
    }

    /// Whether the client requested experimental variants with the hint [`STATUS`].
    #[must_use]
    pub fn requests_experimental(&self) -> bool {
        self.values(STATUS)
            .iter()
            .any(|value| value == "experimental")
    }

    fn read_members(&mut self, members: &Map<String, Value>, ignored: &mut Ignored) {
        match members.get("description") {
            None => {}
            Some(Value::String(text)) if text.len() > MAX_DESCRIPTION => {
                ignored.add("description", Reason::TooLong(MAX_DESCRIPTION));
            }
            Some(Value::String(text)) => self.description = Some(text.clone()),
            Some(_) => ignored.add("description", Reason::NotAString),
        }
        match members.get("hints") {
            None => {}
            Some(Value::Object(hints)) => {
                for (key, value) in hints {
                    self.read_hint(key, value, ignored);
                }
            }
            Some(_) => ignored.add("hints", Reason::NotAnObject),
        }
    }

    fn read_hint(&mut self, key: &str, value: &Value, ignored: &mut Ignored) {
        if !self.has_room_for(key, ignored) {
            return;
        }
        match value {
            Value::String(value) => self.add_value(key, value, ignored),
            Value::Array(values) => {
                for value in values {
                    match value {
                        Value::String(value) => self.add_value(key, value, ignored),
                        _ => ignored.add(key, Reason::NotAString),
                    }
                }
            }
            _ => ignored.add(key, Reason::NotStrings),
        }
    }

    fn has_room_for(&self, key: &str, ignored: &mut Ignored) -> bool {
        let reason = if key.is_empty() {
            Reason::Empty
        } else if key.len() > MAX_KEY {
            Reason::TooLong(MAX_KEY)
        } else if self.hints.len() == MAX_KEYS && !self.hints.contains_key(key) {
            Reason::TooMany(MAX_KEYS)
        } else {
            return true;
        };
        ignored.add(key, reason);
        false
    }

    fn add_value(&mut self, key: &str, value: &str, ignored: &mut Ignored) {
        let held = self.values(key);
        if held.iter().any(|other| other == value) {
            return;
        }
        let reason = if value.is_empty() {
            Reason::Empty
        } else if value.len() > MAX_VALUE {
            Reason::TooLong(MAX_VALUE)
        } else if held.len() == MAX_VALUES {
            Reason::TooMany(MAX_VALUES)
        } else {
            let values = self.hints.entry(key.to_owned()).or_default();
            return values.push(value.to_owned());
        };
        ignored.add(key, reason);
    }
}

impl Declaration for VariantHints {
    const ID: &'static str = SERVER_VARIANTS;

    fn read(settings: &Value) -> (Option<Self>, Ignored) {
        let (mut hints, mut ignored) = (Self::default(), Ignored::default());
        if !settings.is_object() {
            ignored.add("settings", Reason::NotAnObject);
            return (None, ignored);
        }
        match settings.get("variantHints") {
            None => {}
            Some(Value::Object(members)) => hints.read_members(members, &mut ignored),
            Some(_) => ignored.add("variantHints", Reason::NotAnObject),
        }
        (Some(hints), ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-4, EXT-5: why each entry was ignored.
    #[track_caller]
    fn ignores(settings: &Value, expected: &str) {
        assert_eq!(VariantHints::read(settings).1.to_string(), expected);
    }

    #[test]
    fn what_is_ignored_says_why() {
        ignores(&json!("x"), "`settings`: not an object");
        ignores(&json!({"variantHints": 1}), "`variantHints`: not an object");
        ignores(
            &json!({"variantHints": {"description": 1, "hints": []}}),
            "`description`: not a string; `hints`: not an object",
        );
        ignores(
            &json!({"variantHints": {"hints": {"a": 1, "b": [2], "c": "", "": "d"}}}),
            "`a`: not a string or an array of strings; `b`: not a string; `c`: empty; ``: empty",
        );
    }

    /// SV-4: a key that is full takes nothing from the others.
    #[test]
    fn pairs_keep_the_limits() {
        let values: Vec<_> = (0..20).map(|n| format!("v{n}")).collect();
        let pairs = values.iter().map(|value| ("a", value.as_str()));
        let (hints, ignored) = VariantHints::from_pairs(pairs.chain([("b", "x")]));
        assert_eq!(hints.values("a").len(), MAX_VALUES);
        assert_eq!(hints.values("b"), ["x"]);
        assert_eq!(ignored.count(), 4);

        let keys: Vec<_> = (0..34).map(|n| format!("k{n}")).collect();
        let pairs = keys.iter().map(|key| (key.as_str(), "x"));
        let (hints, ignored) = VariantHints::from_pairs(pairs.chain([("k0", "y")]));
        assert_eq!((hints.iter().count(), ignored.count()), (MAX_KEYS, 2));
        assert_eq!(hints.values("k0"), ["x", "y"]);
    }

    /// SV-3: only the hint `status` asks for experimental variants; a description never does.
    #[test]
    fn asking_for_experimental_has_one_way() {
        let asks = |hints: Value| {
            let (hints, _) = VariantHints::read(&json!({"variantHints": hints}));
            hints.requests_experimental()
        };
        assert!(asks(json!({"hints": {"status": "experimental"}})));
        assert!(asks(
            json!({"hints": {"status": ["stable", "experimental"]}})
        ));
        assert!(!asks(json!({"hints": {"status": "stable"}})));
        assert!(!asks(json!({"hints": {"useCase": "experimental"}})));
        assert!(!asks(json!({"description": "experimental, please"})));
    }

    /// SV-4: what a client declares is what a server reads.
    #[test]
    fn a_declaration_is_read_as_it_was_made() {
        let settings = json!({"variantHints": {"description": "d", "hints": {"a": ["b"]}}});
        let (hints, _) = VariantHints::read(&settings);
        assert_eq!(hints.to_settings(), settings);
        assert!(!hints.is_empty());
        let expected = [("a", &["b".to_owned()][..])];
        assert_eq!(hints.iter().collect::<Vec<_>>(), expected);
        assert_eq!(VariantHints::default().to_settings(), json!({}));
        assert!(VariantHints::default().is_empty());
        let (only, _) = VariantHints::read(&json!({"variantHints": {"description": "d"}}));
        assert_eq!(only.description(), Some("d"));
        assert!(!only.is_empty());
    }
}
