//! Extensions: their identifiers, the settings that peers declare, and the keys that belong to them.
//!
//! Source: SEP-2133 (Extensions). To add an extension, implement [`Declaration`] for a type, and add it to
//! [`EXTENSIONS`] if the gateway must strip it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ignored::{Ignored, Reason};
use crate::json::{JsonError, Members};

/// The extension with which a client declares how it wants its content.
pub const CONTENT_NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";

/// The extension with which a server offers several variants of itself.
pub const SERVER_VARIANTS: &str = "io.modelcontextprotocol/server-variants";

/// The key in a request's `_meta` that selects a variant.
pub const SERVER_VARIANT_META: &str = "io.modelcontextprotocol/server-variant";

/// The key in a modern request's `_meta` that holds the client's capabilities.
pub const CLIENT_CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";

/// The extensions that a gateway negotiates itself, and hides from upstream servers.
pub const EXTENSIONS: &[Extension] = &[
    Extension {
        id: CONTENT_NEGOTIATION,
        meta: &[],
    },
    Extension {
        id: SERVER_VARIANTS,
        meta: &[SERVER_VARIANT_META],
    },
];

/// The wire names of one extension.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "written in tables of extensions")]
pub struct Extension {
    /// The identifier under which settings are declared.
    pub id: &'static str,
    /// The extension's own keys in `_meta`.
    pub meta: &'static [&'static str],
}

/// The identifier of an extension: `{vendor-prefix}/{name}`.
///
/// # Grammar
///
/// "The names follow the same rules as the `_meta` keys, except that the prefix is mandatory"
/// (SEP-2133, Definition). The prefix is one or more labels joined by dots; a label starts with a
/// letter, ends with a letter or digit, and holds letters, digits and hyphens. The name starts and
/// ends with a letter or digit and holds letters, digits, hyphens, underscores and dots.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::ExtensionId;
///
/// let id: ExtensionId = "com.example/websocket-transport".parse()?;
/// assert_eq!(id.prefix(), "com.example");
/// assert!("websocket-transport".parse::<ExtensionId>().is_err());
///
/// // `_meta` rules say of the name "unless empty", so this is an identifier.
/// assert!("com.example/".parse::<ExtensionId>().is_ok());
/// # Ok::<(), mcp_vary::extension::ExtensionIdError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExtensionId(String);

impl ExtensionId {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash.
    pub fn prefix(&self) -> &str {
        self.0.split_once('/').map_or("", |(prefix, _)| prefix)
    }

    /// The part after the slash.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// Whether the prefix is reserved for MCP: its second label is `modelcontextprotocol` or `mcp`.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(
            self.prefix().split('.').nth(1),
            Some("modelcontextprotocol" | "mcp")
        )
    }
}

impl FromStr for ExtensionId {
    type Err = ExtensionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, name) = text.split_once('/').ok_or(ExtensionIdError::NoPrefix)?;
        if !prefix.split('.').all(is_label) {
            return Err(ExtensionIdError::Prefix);
        }
        if !is_name(name) {
            return Err(ExtensionIdError::Name);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for ExtensionId {
    type Error = ExtensionIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ExtensionId> for String {
    fn from(id: ExtensionId) -> Self {
        id.0
    }
}

impl fmt::Display for ExtensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not an extension's identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionIdError {
    /// There is no slash.
    #[error(
        "an extension is named `{{vendor-prefix}}/{{name}}`; put a prefix such as `com.example/` before it"
    )]
    NoPrefix,
    /// A label of the prefix breaks the rules.
    #[error(
        "each label of the prefix starts with a letter, ends with a letter or digit and holds letters, digits and `-`"
    )]
    Prefix,
    /// The name breaks the rules.
    #[error(
        "the name starts and ends with a letter or digit and holds letters, digits, `-`, `_` and `.`"
    )]
    Name,
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_name(name: &str) -> bool {
    name.is_empty()
        || (name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)))
}

/// The location of an extension's settings in the capabilities.
///
/// The specification says `extensions`; SDKs in use have all three.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every reader must decide what to mirror in a fourth location"
)]
pub enum Carrier {
    /// `extensions[id]`
    Extensions,
    /// `experimental[id]`
    Experimental,
    /// `experimental.extensions[id]`
    ExperimentalExtensions,
}

impl Carrier {
    /// All locations, in the order of reading.
    pub const ALL: [Self; 3] = [
        Self::Extensions,
        Self::Experimental,
        Self::ExperimentalExtensions,
    ];

    /// The keys that lead from the capabilities to the map of extensions.
    #[must_use]
    pub fn path(self) -> &'static [&'static str] {
        match self {
            Self::Extensions => &["extensions"],
            Self::Experimental => &["experimental"],
            Self::ExperimentalExtensions => &["experimental", "extensions"],
        }
    }
}

/// The settings that a peer declared for an extension: an object and its location.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings<'a> {
    value: &'a Value,
    carrier: Carrier,
}

impl<'a> Settings<'a> {
    /// The settings; always an object. `{}` means that the extension is supported without settings.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// The location, so that the answer can be mirrored there.
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }
}

/// The settings of the extension `id` in a peer's `capabilities`, in any location.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::{CONTENT_NEGOTIATION, Carrier, settings};
/// use serde_json::json;
///
/// let capabilities = json!({"experimental": {CONTENT_NEGOTIATION: {"features": ["agent"]}}});
/// let found = settings(&capabilities, CONTENT_NEGOTIATION).unwrap();
/// assert_eq!(found.carrier(), Carrier::Experimental);
///
/// // A value that is not an object declares nothing.
/// let capabilities = json!({"extensions": {CONTENT_NEGOTIATION: true}});
/// assert!(settings(&capabilities, CONTENT_NEGOTIATION).is_none());
/// ```
#[must_use]
pub fn settings<'a>(capabilities: &'a Value, id: &str) -> Option<Settings<'a>> {
    find(capabilities, id).0
}

/// Like [`settings`], and reports the values that were ignored because they are not objects.
#[must_use]
pub fn find<'a>(capabilities: &'a Value, id: &str) -> (Option<Settings<'a>>, Ignored) {
    let mut ignored = Ignored::default();
    for carrier in Carrier::ALL {
        let mut place = Some(capabilities);
        for key in carrier.path() {
            place = place.and_then(|value| value.get(key));
        }
        match place.and_then(|extensions| extensions.get(id)) {
            Some(value) if value.is_object() => {
                return (Some(Settings { value, carrier }), ignored);
            }
            Some(_) => ignored.add(id, Reason::NotAnObject),
            None => {}
        }
    }
    (None, ignored)
}

/// The typed settings of one extension.
///
/// This is all that an extension needs to be read from a peer's capabilities.
pub trait Declaration: Default {
    /// The extension's identifier.
    const ID: &'static str;

    /// Reads the extension's settings. Never fails: unusable entries are ignored individually.
    ///
    /// `None` if the settings as a whole count as undeclared, such as those of another major version.
    fn read(settings: &Value) -> (Option<Self>, Ignored);
}

/// A [`Declaration`] with its location and its ignored entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Declared<D> {
    /// The declared value, or the default.
    pub value: D,
    /// The location; `None` if the peer lacks the extension.
    pub carrier: Option<Carrier>,
    /// The entries without effect.
    pub ignored: Ignored,
}

/// Reads what a peer's `capabilities` declare for the extension `D`.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::{SERVER_VARIANTS, declared};
/// use mcp_vary::{feature::Features, hints::VariantHints};
/// use serde_json::json;
///
/// let hints = json!({"variantHints": {"hints": {"contextSize": "compact"}}});
/// let capabilities = json!({"extensions": {SERVER_VARIANTS: hints}});
/// assert_eq!(declared::<VariantHints>(&capabilities).value.values("contextSize"), ["compact"]);
/// assert!(declared::<Features>(&capabilities).carrier.is_none());
/// ```
#[must_use]
pub fn declared<D: Declaration>(capabilities: &Value) -> Declared<D> {
    let (found, mut ignored) = find(capabilities, D::ID);
    let Some(settings) = found else {
        return Declared {
            ignored,
            ..Declared::default()
        };
    };
    let (value, of_settings) = D::read(settings.value());
    ignored.append(of_settings);
    Declared {
        carrier: value.as_ref().map(|_| settings.carrier()),
        value: value.unwrap_or_default(),
        ignored,
    }
}

/// Declares the extension `id` in our own `capabilities`, for a peer that declared it in `carrier`.
///
/// Writes the settings to `extensions`, and also to the location that the peer itself used.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::{CONTENT_NEGOTIATION, Carrier, advertise};
/// use serde_json::{Map, json};
///
/// let mut capabilities = Map::new();
/// advertise(&mut capabilities, CONTENT_NEGOTIATION, json!({}), Carrier::Extensions);
/// assert_eq!(json!(capabilities), json!({"extensions": {CONTENT_NEGOTIATION: {}}}));
/// ```
pub fn advertise(
    capabilities: &mut Map<String, Value>,
    id: &str,
    settings: Value,
    carrier: Carrier,
) {
    if carrier != Carrier::Extensions {
        object_at(capabilities, carrier.path()).insert(id.to_owned(), settings.clone());
    }
    object_at(capabilities, Carrier::Extensions.path()).insert(id.to_owned(), settings);
}

/// The object at `path`, created if it is missing or not an object.
fn object_at<'a>(root: &'a mut Map<String, Value>, path: &[&str]) -> &'a mut Map<String, Value> {
    path.iter().fold(root, |object, key| {
        let value = object.entry(*key).or_insert(Value::Null);
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        match value {
            Value::Object(inner) => inner,
            _ => unreachable!("made an object above"),
        }
    })
}

/// A request's `_meta` without the keys of `extensions` and without their settings in the client's capabilities.
/// Everything else stays as written.
///
/// # Errors
///
/// When an object on the way repeats a key: two readers might disagree on what remains.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::{EXTENSIONS, strip_meta};
///
/// let meta = r#"{"io.modelcontextprotocol/server-variant": "compact", "progressToken": 1.0}"#;
/// assert_eq!(strip_meta(meta, EXTENSIONS)?, r#"{"progressToken":1.0}"#);
/// assert_eq!(strip_meta(r#"{ "a": 1 }"#, EXTENSIONS)?, r#"{ "a": 1 }"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
pub fn strip_meta<'a>(meta: &'a str, extensions: &[Extension]) -> Result<Cow<'a, str>, JsonError> {
    if !is_object(meta) {
        return Ok(Cow::Borrowed(meta));
    }
    let mut members = Members::parse(meta)?;
    let mut changed = false;
    for key in extensions.iter().flat_map(|extension| extension.meta) {
        changed |= members.remove(key).is_some();
    }
    if let Some(capabilities) = members.get(CLIENT_CAPABILITIES_META)
        && let Cow::Owned(stripped) = strip_capabilities(capabilities, extensions)?
    {
        members.set(CLIENT_CAPABILITIES_META, stripped);
        changed = true;
    }
    Ok(if changed {
        Cow::Owned(members.to_json())
    } else {
        Cow::Borrowed(meta)
    })
}

/// A peer's capabilities without its settings for `extensions`, in all locations.
///
/// A map that becomes empty is removed too, so that the result equals the capabilities of a peer without the
/// extensions.
///
/// # Errors
///
/// When an object on the way repeats a key.
pub fn strip_capabilities<'a>(
    capabilities: &'a str,
    extensions: &[Extension],
) -> Result<Cow<'a, str>, JsonError> {
    let mut text = Cow::Borrowed(capabilities);
    // The innermost location comes first, so that maps that become empty are removed too.
    for carrier in Carrier::ALL.into_iter().rev() {
        if let Stripped::Changed(remaining) = strip_at(&text, carrier.path(), extensions)? {
            text = Cow::Owned(remaining);
        }
    }
    Ok(text)
}

/// The result of stripping an object.
enum Stripped {
    /// Nothing was removed.
    Unchanged,
    /// The remaining object.
    Changed(String),
}

fn strip_at(text: &str, path: &[&str], extensions: &[Extension]) -> Result<Stripped, JsonError> {
    if !is_object(text) {
        return Ok(Stripped::Unchanged);
    }
    let mut members = Members::parse(text)?;
    let changed = match path {
        [] => remove_settings(&mut members, extensions),
        [key, remaining @ ..] => match members.get(key) {
            None => false,
            Some(inner) => match strip_at(inner, remaining, extensions)? {
                Stripped::Unchanged => false,
                Stripped::Changed(empty) if empty == "{}" => members.remove(key).is_some(),
                Stripped::Changed(inner) => {
                    members.set((*key).to_owned(), inner);
                    true
                }
            },
        },
    };
    Ok(if changed {
        Stripped::Changed(members.to_json())
    } else {
        Stripped::Unchanged
    })
}

fn remove_settings(members: &mut Members<'_>, extensions: &[Extension]) -> bool {
    let mut removed = false;
    for extension in extensions {
        removed |= members.remove(extension.id).is_some();
    }
    removed
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// EXT-8: a third extension is read by the same functions, and stripped by a line in a table.
    #[test]
    fn a_third_extension_touches_nothing() {
        const TASKS: &str = "com.example/tasks";

        #[derive(Debug, Default, PartialEq)]
        struct Tasks(bool);

        impl Declaration for Tasks {
            const ID: &'static str = TASKS;
            fn read(settings: &Value) -> (Option<Self>, Ignored) {
                (settings["on"].as_bool().map(Self), Ignored::default())
            }
        }

        let capabilities = json!({"experimental": {TASKS: {"on": true}}});
        let tasks = declared::<Tasks>(&capabilities);
        assert_eq!(tasks.value, Tasks(true));
        assert_eq!(tasks.carrier, Some(Carrier::Experimental));

        let table = [Extension {
            id: TASKS,
            meta: &["com.example/task"],
        }];
        let meta = json!({"com.example/task": 1, CLIENT_CAPABILITIES_META: capabilities});
        let expected = r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#;
        assert_eq!(strip_meta(&meta.to_string(), &table).unwrap(), expected);
    }

    /// EXT-7: settings that count as undeclared say so, although an object was there.
    #[test]
    fn what_counts_as_undeclared_has_no_carrier() {
        #[derive(Debug, Default, PartialEq)]
        struct Never;

        impl Declaration for Never {
            const ID: &'static str = "com.example/never";
            fn read(_: &Value) -> (Option<Self>, Ignored) {
                let mut ignored = Ignored::default();
                ignored.add("version", Reason::OtherMajor);
                (None, ignored)
            }
        }

        let found = declared::<Never>(&json!({"extensions": {"com.example/never": {}}}));
        assert_eq!(found.carrier, None);
        assert_eq!(found.ignored.count(), 1);
    }

    /// EXT-9: the table names what the two extensions put on the wire.
    #[test]
    fn the_two_extensions_are_stripped() {
        let ours: Vec<_> = EXTENSIONS.iter().map(|one| (one.id, one.meta)).collect();
        let selector: &[_] = &[SERVER_VARIANT_META];
        assert_eq!(
            ours,
            [(CONTENT_NEGOTIATION, &[][..]), (SERVER_VARIANTS, selector)]
        );
        for id in [CONTENT_NEGOTIATION, SERVER_VARIANTS] {
            assert!(id.parse::<ExtensionId>().unwrap().is_reserved());
        }
    }

    /// EXT-1: JSON goes through the same door.
    #[test]
    fn json_is_checked_too() {
        let read = serde_json::from_value::<ExtensionId>;
        let id = read(json!("com.example/x")).unwrap();
        assert_eq!(id.as_str(), "com.example/x");
        assert_eq!(json!(id), json!(id.to_string()));
        let error = read(json!("x")).unwrap_err().to_string();
        assert!(
            error.contains("put a prefix such as `com.example/` before it"),
            "{error}"
        );
    }

    /// EXT-6: an answer goes to `extensions`, and to no place that the client did not use.
    #[test]
    fn an_answer_is_mirrored_only_where_it_was_asked() {
        let answer = |carrier| {
            let mut capabilities = Map::new();
            advertise(&mut capabilities, "a/b", json!({}), carrier);
            json!(capabilities)
        };
        let plain = json!({"a/b": {}});
        assert_eq!(answer(Carrier::Extensions), json!({"extensions": plain}));
        let expected = json!({"experimental": plain, "extensions": plain});
        assert_eq!(answer(Carrier::Experimental), expected);
        let expected = json!({"experimental": {"extensions": plain}, "extensions": plain});
        assert_eq!(answer(Carrier::ExperimentalExtensions), expected);
    }
}
