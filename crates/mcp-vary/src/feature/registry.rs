//! The feature tags of the registry: a row for each key, what a client prefers by them, and the types of that.
//!
//! A new tag is a row here, a method of [`Features`], and its effect in [`shape`](crate::shape).

use super::Features;
use crate::feature_tag::{FeatureTag, Form};

/// A key of the registry, with all tags that it defines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RegisteredTag {
    /// The key.
    pub key: &'static str,
    /// Its tags: one for each value, or the key itself if it has no values.
    pub tags: &'static [&'static str],
}

impl RegisteredTag {
    const fn new(key: &'static str, tags: &'static [&'static str]) -> Self {
        Self { key, tags }
    }

    /// Whether tags of the key have a value.
    pub fn has_values(&self) -> bool {
        self.tags != [self.key]
    }

    fn has(&self, value: Option<&str>) -> bool {
        let is_of = |tag: &&str| match tag.strip_prefix(self.key) {
            Some("") => value.is_none(),
            Some(ending) => ending.strip_prefix('=') == value,
            None => false,
        };
        self.tags.iter().any(is_of)
    }
}

/// The registered tags.
///
/// | tag | effect |
/// |---|---|
/// | `agent`, `human` | the audience: without an explicit format, structured or markdown |
/// | `format=json`, `format=text`, `format=markdown` | the form of the content |
/// | `verbosity=compact`, `=standard`, `=verbose` | how much of it |
/// | `sampling` | reasoning hints, if the author provides some |
/// | `mcp-capable`, `interactive`, `elicitation`, `roots`, `tasks` | select an author's alternatives |
/// | `x-*`, and any other | no built-in effect; readable, and select an author's alternatives |
///
/// Whatever depends on the registry reads it here: which tags a full session id keeps, which ones are suggested for
/// others, of which values a gateway warns, and with which tags results are tested.
pub const REGISTRY: &[RegisteredTag] = &[
    RegisteredTag::new("agent", &["agent"]),
    RegisteredTag::new("human", &["human"]),
    RegisteredTag::new("format", &Format::TAGS),
    RegisteredTag::new("verbosity", &Verbosity::TAGS),
    RegisteredTag::new("mcp-capable", &["mcp-capable"]),
    RegisteredTag::new("interactive", &["interactive"]),
    RegisteredTag::new("sampling", &["sampling"]),
    RegisteredTag::new("elicitation", &["elicitation"]),
    RegisteredTag::new("roots", &["roots"]),
    RegisteredTag::new("tasks", &["tasks"]),
];

/// All registered tags, each as it is declared.
pub fn registered_tags() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().flat_map(|row| row.tags).copied()
}

fn row(key: &str) -> Option<&'static RegisteredTag> {
    REGISTRY.iter().find(|row| row.key == key)
}

/// Whether the registry defines `tag`, in whatever form: `!tasks` is registered because `tasks` is.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::is_registered;
///
/// assert!(is_registered(&"interactive".parse()?) && is_registered(&"format!=json".parse()?));
/// assert!(!is_registered(&"x-acme".parse()?));
///
/// // The registry defines the key, but not this value.
/// assert!(!is_registered(&"format=xml".parse()?));
/// # Ok::<(), mcp_vary::feature::TagError>(())
/// ```
#[must_use]
pub fn is_registered(tag: &FeatureTag) -> bool {
    row(tag.key()).is_some_and(|row| row.has(tag.value()))
}

/// Whether `tag` prefers a value that its key does not have, such as `format=xml`.
#[must_use]
pub fn is_unsupported(tag: &FeatureTag) -> bool {
    let has_values = row(tag.key()).is_some_and(RegisteredTag::has_values);
    has_values && tag.form() == Form::Equality && !is_registered(tag)
}

/// The registered tags that a client declared.
impl Features {
    /// Whether the client can show dialogs.
    pub fn interactive(&self) -> bool {
        self.has_key("interactive")
    }

    /// Whether the client declared that it can sample. Only the declared capability allows requests.
    pub fn sampling(&self) -> bool {
        self.has_key("sampling")
    }

    /// Whether the client declared that it can elicit. Only the declared capability allows requests.
    pub fn elicitation(&self) -> bool {
        self.has_key("elicitation")
    }

    /// The preferred known format, if the client declared one.
    pub fn format(&self) -> Option<Format> {
        self.formats().next()
    }

    /// The known formats that the client declared, preferred first.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        self.values("format").filter_map(Format::from_value)
    }

    /// The preferred verbosity; `standard` if none was declared.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.values("verbosity")
            .find_map(Verbosity::from_value)
            .unwrap_or_default()
    }

    /// Whether results are shorter than without these features.
    pub fn shortens(&self) -> bool {
        self.verbosity() == Verbosity::Compact
    }
}

/// What a client declared about a tag.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "yes, no and undeclared are all")]
pub enum Presence {
    /// The client has it.
    Present,
    /// The client declared that it lacks it.
    Absent,
    /// The client declared nothing, or contradicts itself without a safe choice.
    Undeclared,
}

impl Presence {
    /// Swaps present and absent; undeclared stays.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Present => Self::Absent,
            Self::Absent => Self::Present,
            Self::Undeclared => Self::Undeclared,
        }
    }
}

/// Who reads the content.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Audience {
    /// A model or program.
    Agent,
    /// A person.
    Human,
}

/// The form of the content: `format=…`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Format {
    /// The structured value.
    Json,
    /// Plain prose without markup.
    Text,
    /// Markdown.
    Markdown,
}

/// How much content: `verbosity=…`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Verbosity {
    /// Without parts that carry no information.
    Compact,
    /// As it is.
    #[default]
    Standard,
    /// With more.
    Verbose,
}

/// The values of a key: the type, and its row in the registry.
macro_rules! values {
    ($type:ident, $key:literal: $($variant:ident = $value:literal),+) => {
        impl $type {
            #[doc = concat!("All values of `", $key, "` in the registry.")]
            pub const ALL: [Self; [$($value),+].len()] = [$(Self::$variant),+];

            const TAGS: [&'static str; Self::ALL.len()] = [$(concat!($key, "=", $value)),+];

            #[doc = concat!("The value after `", $key, "=`.")]
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value),+
                }
            }

            /// The one that `value` names; case-sensitive.
            #[must_use]
            pub fn from_value(value: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == value)
            }
        }
    };
}

values!(Format, "format": Json = "json", Text = "text", Markdown = "markdown");
values!(Verbosity, "verbosity": Compact = "compact", Standard = "standard", Verbose = "verbose");
