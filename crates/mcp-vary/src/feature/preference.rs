//! What tags state: presence, and the audience, format and verbosity that a client prefers.

/// What a client declared about a tag.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(
    clippy::exhaustive_enums,
    reason = "yes, no and undeclared are exhaustive"
)]
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

impl Format {
    /// All formats of the registry.
    pub const ALL: [Self; 3] = [Self::Json, Self::Text, Self::Markdown];

    /// The value after `format=`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::Markdown => "markdown",
        }
    }

    /// The format that `value` names; case-sensitive.
    #[must_use]
    pub fn from_value(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == value)
    }
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

impl Verbosity {
    /// All levels of the registry.
    pub const ALL: [Self; 3] = [Self::Compact, Self::Standard, Self::Verbose];

    /// The value after `verbosity=`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Standard => "standard",
            Self::Verbose => "verbose",
        }
    }

    /// The level that `value` names; case-sensitive.
    #[must_use]
    pub fn from_value(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == value)
    }
}
