//! Feature tags: what a client declares about itself and about the content it wants.
//!
//! Source: the content negotiation extension, "Feature Tag Registry" and "Feature Tag Predicate Syntax". Tags shape
//! content. They never authenticate, authorize, or skip a confirmation.
//!
//! [`REGISTRY`] has the tags and their effects.

mod registry;

use serde_json::{Value, json};

pub use self::registry::*;
use crate::extension::{CONTENT_NEGOTIATION, Declaration};
pub use crate::feature_tag::{FeatureTag, Form, MAX_TAG, TagError};
use crate::ignored::{Ignored, Reason};

/// The maximum number of tags of one declaration.
pub const MAX_TAGS: usize = 64;

/// The tags that a client declared.
///
/// # Properties
///
/// At most [`MAX_TAGS`] distinct tags, in the order of declaration. Reading never fails. Without tags, every
/// question has a safe answer: not an agent, not a human, no format, `standard`.
///
/// A tag is [present, absent or undeclared](Presence): `!tag` declares absence and wins over `tag`. Absence of a key
/// also removes its values. `key!=value` excludes one value and selects nothing.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::{Features, Format, Verbosity};
/// use serde_json::json;
///
/// let settings = json!({"version": "1.0", "features": ["agent", "format=json", "verbosity=compact"]});
/// let (features, ignored) = Features::read(&settings);
/// assert!(features.agent() && ignored.is_empty());
/// assert_eq!(features.format(), Some(Format::Json));
/// assert_eq!(features.verbosity(), Verbosity::Compact);
///
/// // Not declared is not the same as declared absent.
/// assert!(!features.interactive() && !features.denies("interactive"));
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Features {
    tags: Vec<FeatureTag>,
}

impl Features {
    /// Reads the extension's settings: `{"version": "1.0", "features": ["agent", …]}`.
    ///
    /// A missing version means `1.0`; another major version declares nothing.
    /// [`declared`](crate::extension::declared) distinguishes that from a declaration without tags.
    #[must_use]
    pub fn read(settings: &Value) -> (Self, Ignored) {
        let (features, ignored) = <Self as Declaration>::read(settings);
        (features.unwrap_or_default(), ignored)
    }

    /// Reads tags from a command line or a configuration.
    ///
    /// ```
    /// use mcp_vary::feature::Features;
    ///
    /// let (features, ignored) = Features::from_tags("agent,format=json".split(','));
    /// assert!(features.has("format=json") && ignored.is_empty());
    /// ```
    #[must_use]
    pub fn from_tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> (Self, Ignored) {
        let (mut features, mut ignored) = Default::default();
        for tag in tags {
            Self::read_tag(&mut features, tag, &mut ignored);
        }
        (features, ignored)
    }

    /// The settings with which a client declares these features.
    #[must_use]
    pub fn to_settings(&self) -> Value {
        let tags: Vec<_> = self.tags().map(FeatureTag::as_str).collect();
        json!({"version": "1.0", "features": tags})
    }

    /// These features, with `others` overriding those about the same topic.
    ///
    /// For declarations closer to a result than the client's own, such as an argument of the tool. `agent` and
    /// `human` are one topic: each overrides the other.
    ///
    /// ```
    /// use mcp_vary::feature::Features;
    ///
    /// let (declared, _) = Features::from_tags(["agent", "format=json", "x-acme=1"]);
    /// let overridden = |tag| {
    ///     let features = declared.overridden_by(&Features::from_tags([tag]).0);
    ///     features.tags().map(|tag| tag.as_str().to_owned()).collect::<Vec<_>>()
    /// };
    /// assert_eq!(overridden("format=text"), ["format=text", "agent", "x-acme=1"]);
    /// assert_eq!(overridden("human"), ["human", "format=json", "x-acme=1"]);
    /// ```
    #[must_use]
    pub fn overridden_by(&self, others: &Self) -> Self {
        let topic = |tag: &FeatureTag| match tag.key() {
            "human" => "agent".to_owned(),
            key => key.to_owned(),
        };
        let overridden: Vec<_> = others.tags().map(topic).collect();
        let unchanged = self.tags().filter(|tag| !overridden.contains(&topic(tag)));
        others.tags().chain(unchanged).cloned().collect()
    }

    /// The tags, in the order of declaration.
    pub fn tags(&self) -> impl ExactSizeIterator<Item = &FeatureTag> {
        self.tags.iter()
    }

    /// Whether no tag was declared.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Whether `tag` is present, absent or undeclared.
    ///
    /// `tag` may have any form: `state("format=json")` is absent after `format!=json`, and `state("!interactive")`
    /// is the opposite of `state("interactive")`. Invalid tags are undeclared. A value is not presence: after
    /// `x-acme=1`, `x-acme` is undeclared. `agent` together with `human` leaves both undeclared.
    #[must_use]
    pub fn state(&self, tag: &str) -> Presence {
        tag.parse()
            .map_or(Presence::Undeclared, |tag| self.state_of(&tag))
    }

    /// Like [`state`](Self::state), for a parsed tag.
    #[must_use]
    pub fn state_of(&self, tag: &FeatureTag) -> Presence {
        let key = tag.key();
        match (tag.form(), tag.value()) {
            (Form::Equality, Some(value)) => self.state_of_value(key, value),
            (Form::Inequality, Some(value)) => self.state_of_value(key, value).opposite(),
            (Form::Negation, _) => self.state_of_key(key).opposite(),
            _ => self.state_of_key(key),
        }
    }

    /// Whether `tag` was declared, and not declared absent as well.
    #[must_use]
    pub fn has(&self, tag: &str) -> bool {
        self.state(tag) == Presence::Present
    }

    /// Whether the client declared that it lacks `tag`. False for tags that it did not mention.
    #[must_use]
    pub fn denies(&self, tag: &str) -> bool {
        self.state(tag) == Presence::Absent
    }

    /// The first value declared for `key`, excluded values skipped.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values(key).next()
    }

    /// The values declared for `key`, the preferred first, excluded values skipped.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        let denied = self.declares(Form::Negation, key, None);
        self.tags
            .iter()
            .filter(move |tag| !denied && tag.form() == Form::Equality && tag.key() == key)
            .filter_map(FeatureTag::value)
            .filter(move |value| !self.declares(Form::Inequality, key, Some(value)))
    }

    /// Whether the content is for an agent: declared `agent`, and not `human` as well.
    pub fn agent(&self) -> bool {
        self.audience() == Some(Audience::Agent)
    }

    /// Whether the content is for a person: declared `human`, and not `agent` as well.
    pub fn human(&self) -> bool {
        self.audience() == Some(Audience::Human)
    }

    /// Who reads the content; `None` if the client declared neither or both.
    #[must_use]
    pub fn audience(&self) -> Option<Audience> {
        [("agent", Audience::Agent), ("human", Audience::Human)]
            .into_iter()
            .find_map(|(tag, audience)| self.has_key(tag).then_some(audience))
    }

    /// Chooses the format of a result among the `supported` formats.
    ///
    /// The first explicit format that is supported wins. Without an explicit format, an agent gets JSON (as text and
    /// as the structured value) and a person gets markdown. `None` means the server's default.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::feature::{Features, Format};
    ///
    /// let choose = |tags: &[&str]| {
    ///     let (features, _) = Features::from_tags(tags.iter().copied());
    ///     features.choose_format(&[Format::Markdown, Format::Json])
    /// };
    /// assert_eq!(choose(&["human", "format=json"]), Some(Format::Json));
    /// assert_eq!(choose(&["format=text", "format=markdown"]), Some(Format::Markdown));
    /// assert_eq!(choose(&["agent"]), Some(Format::Json));
    /// assert_eq!(choose(&[]), None);
    ///
    /// // The requested format is not supported: nothing is inferred instead.
    /// assert_eq!(choose(&["human", "format=text"]), None);
    /// ```
    #[must_use]
    pub fn choose_format(&self, supported: &[Format]) -> Option<Format> {
        if self.format().is_some() {
            return self.formats().find(|format| supported.contains(format));
        }
        let inferred = match self.audience()? {
            Audience::Agent => Format::Json,
            Audience::Human => Format::Markdown,
        };
        let excluded = self.state_of_value("format", inferred.as_str()) == Presence::Absent;
        (!excluded && supported.contains(&inferred)).then_some(inferred)
    }

    fn read_member(&mut self, member: &Value, ignored: &mut Ignored) {
        match member {
            Value::String(tag) => self.read_tag(tag, ignored),
            other if self.is_full() => ignored.add(type_name(other), Reason::TooMany(MAX_TAGS)),
            Value::Number(number) => ignored.add(&number.to_string(), Reason::NotAString),
            other => ignored.add(type_name(other), Reason::NotAString),
        }
    }

    fn read_tag(&mut self, tag: &str, ignored: &mut Ignored) {
        if self.is_full() {
            return ignored.add(tag, Reason::TooMany(MAX_TAGS));
        }
        match tag.parse() {
            Ok(tag) => self.insert(tag),
            Err(error) => ignored.add(tag, Reason::Tag(error)),
        }
    }

    fn insert(&mut self, tag: FeatureTag) {
        if !self.is_full() && !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
    }

    fn is_full(&self) -> bool {
        self.tags.len() == MAX_TAGS
    }

    fn declares(&self, form: Form, key: &str, value: Option<&str>) -> bool {
        self.tags
            .iter()
            .any(|tag| tag.form() == form && tag.key() == key && tag.value() == value)
    }

    /// The declared state of `key` itself; `agent` together with `human` is not resolved.
    fn declared_state(&self, key: &str) -> Presence {
        if self.declares(Form::Negation, key, None) {
            Presence::Absent
        } else if self.declares(Form::Presence, key, None) {
            Presence::Present
        } else {
            Presence::Undeclared
        }
    }

    /// Like [`has`](Self::has), for a plain key.
    fn has_key(&self, key: &str) -> bool {
        self.state_of_key(key) == Presence::Present
    }

    fn state_of_key(&self, key: &str) -> Presence {
        let state = self.declared_state(key);
        let rival = match key {
            "agent" => "human",
            "human" => "agent",
            _ => return state,
        };
        if state == Presence::Present && self.declared_state(rival) == Presence::Present {
            return Presence::Undeclared;
        }
        state
    }

    fn state_of_value(&self, key: &str, value: &str) -> Presence {
        if self.declares(Form::Negation, key, None)
            || self.declares(Form::Inequality, key, Some(value))
        {
            Presence::Absent
        } else if self.declares(Form::Equality, key, Some(value)) {
            Presence::Present
        } else {
            Presence::Undeclared
        }
    }
}

impl Declaration for Features {
    const ID: &'static str = CONTENT_NEGOTIATION;

    fn read(settings: &Value) -> (Option<Self>, Ignored) {
        let mut ignored = Ignored::default();
        if !settings.is_object() {
            ignored.add("settings", Reason::NotAnObject);
            return (None, ignored);
        }
        match settings.get("version").map(major) {
            None | Some(MajorVersion::One) => {}
            Some(MajorVersion::Other(version)) => {
                ignored.add(version, Reason::OtherMajor);
                return (None, ignored);
            }
            Some(MajorVersion::Unreadable) => ignored.add("version", Reason::NotAVersion),
        }
        let mut features = Self::default();
        match settings.get("features") {
            None => {}
            Some(Value::Array(members)) => {
                for member in members {
                    features.read_member(member, &mut ignored);
                }
            }
            Some(_) => ignored.add("features", Reason::NotAnArray),
        }
        (Some(features), ignored)
    }
}

/// Takes the first [`MAX_TAGS`] distinct tags.
impl FromIterator<FeatureTag> for Features {
    fn from_iter<I: IntoIterator<Item = FeatureTag>>(tags: I) -> Self {
        let mut features = Self::default();
        for tag in tags {
            features.insert(tag);
        }
        features
    }
}

enum MajorVersion<'a> {
    One,
    Other(&'a str),
    Unreadable,
}

/// The major version that `version` names: the number before the first `.`, `-` or `+`.
fn major(version: &Value) -> MajorVersion<'_> {
    let Some(text) = version.as_str() else {
        return MajorVersion::Unreadable;
    };
    let number = text.split(['.', '-', '+']).next().unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return MajorVersion::Unreadable;
    }
    match number.trim_start_matches('0') {
        "1" => MajorVersion::One,
        _ => MajorVersion::Other(text),
    }
}

/// The text in a log for a value that is not a string.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
