//! How a view lists its items: how much of descriptions, schemas and results, and for which models.

use serde::{Deserialize, Serialize};

use super::dialect::Dialect;

/// How a view lists its items, or one item.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct Style {
    /// How much of a description is listed.
    pub description: Description,
    /// How much of an input schema is listed.
    pub schema: SchemaStyle,
    /// The schema dialect; without one, schemas are not restricted.
    pub dialect: Option<Dialect>,
    /// Which fields of a result clients get.
    pub result: ResultFields,
    /// Which arguments an open schema lists.
    pub arguments: ListedArguments,
    /// Whether the arguments of calls are checked against the server's own schema.
    pub check: ArgumentCheck,
}

/// How much of a description is listed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "every reader handles each of them")]
pub enum Description {
    /// All of it.
    #[default]
    Full,
    /// Its first sentence.
    FirstSentence,
}

/// How much of an input schema is listed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "every reader handles each of them")]
pub enum SchemaStyle {
    /// All of it.
    #[default]
    Full,
    /// What decides which arguments are accepted, and of the prose what callers need
    /// ([`compact_tool`](crate::derive::compact_tool)).
    Compact,
    /// An open schema: the names and types of the arguments that [`Style::arguments`] says. Clients get the rest from
    /// [`PreparedTool::describe`](crate::PreparedTool::describe).
    ///
    /// A tool whose compact form costs no more is listed in that form. One with a user interface is listed as with
    /// [`Compact`](Self::Compact), without any prose in the schema.
    OnDemand,
    /// Like [`OnDemand`](Self::OnDemand), with the names of the arguments in the description and none in the schema.
    OnDemandBare,
}

impl SchemaStyle {
    /// Whether clients get schemas on demand.
    #[must_use]
    pub const fn is_on_demand(self) -> bool {
        match self {
            Self::Full | Self::Compact => false,
            Self::OnDemand | Self::OnDemandBare => true,
        }
    }
}

/// Which arguments an open schema lists. Calls may give the others, too.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "every reader handles each of them")]
pub enum ListedArguments {
    /// Every argument.
    #[default]
    All,
    /// Those that the schema requires.
    Required,
    /// None.
    None,
}

/// Whether the arguments of calls are checked against the server's own schema before they are sent.
///
/// Besides what the schema rejects, an argument that it does not name is an error, unless the schema says which others
/// it takes (`additionalProperties`, `patternProperties`) or has no `properties`. A `null` that the schema rejects for an
/// optional property counts as left out. What parsers may read in different ways is an error: a key that is given twice,
/// at any depth, and a number beyond `f64`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "every reader handles each of them")]
pub enum ArgumentCheck {
    /// They are not, unless the view has a [`Dialect`].
    #[default]
    Off,
    /// They are.
    On,
    /// They are, and a text is accepted where the number, boolean or `null` that it spells is: some servers convert it.
    TypesOff,
}

/// Which fields of a tool's result the clients of a view get.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "every reader handles each of them")]
pub enum ResultFields {
    /// All that the server sends.
    #[default]
    Both,
    /// Only `content`. The view lists no `outputSchema` then.
    Content,
    /// `structuredContent`, if the result has one.
    Structured,
}

impl ResultFields {
    /// Whether the view lists `outputSchema`: clients that get one expect `structuredContent`.
    #[must_use]
    pub const fn lists_output_schema(self) -> bool {
        match self {
            Self::Both | Self::Structured => true,
            Self::Content => false,
        }
    }
}
