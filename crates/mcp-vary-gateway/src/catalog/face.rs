//! The three variants that exist without any configuration.

use std::borrow::Cow;

use mcp_vary::rank::Weights;
use mcp_vary::variant::{Date, ServerVariant, VariantId, Variants};
use mcp_vary::view::derive;

use super::listing::ListKind;

/// How a built-in variant shows what the server lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Face {
    /// As the server lists it.
    Standard,
    /// First sentences, schemas without prose; the same inputs are accepted.
    Compact,
    /// Only tools that declare `readOnlyHint`.
    ReadOnly,
}

impl Face {
    /// All of them, in the order of declaration.
    pub(crate) const ALL: [Self; 3] = [Self::Standard, Self::Compact, Self::ReadOnly];

    /// The item as this face shows it; `None` when it does not.
    pub(crate) fn show(self, kind: ListKind, item: &str) -> Option<Cow<'_, str>> {
        match (self, kind) {
            (Self::Compact, _) => Some(compact(kind, item)),
            (Self::ReadOnly, ListKind::Tools) if !derive::is_read_only(item) => None,
            (Self::Standard | Self::ReadOnly, _) => Some(Cow::Borrowed(item)),
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Compact => "compact",
            Self::ReadOnly => "read-only",
        }
    }

    fn variant(self, id: VariantId) -> ServerVariant {
        match self {
            Self::Standard => ServerVariant::new(
                id,
                "Everything as the server describes it: all tools, full descriptions and schemas.",
            )
            .with_hint("contextSize", "standard"),
            Self::Compact => ServerVariant::new(
                id,
                "All tools in few tokens: the first sentence of each description, schemas without \
                 prose. Accepts the same arguments. For small context windows and execution; for \
                 planning with unfamiliar tools prefer `standard`.",
            )
            .with_hint("contextSize", "compact"),
            Self::ReadOnly => ServerVariant::new(
                id,
                "Only the tools that declare that they change nothing. For analysis and review. A \
                 selection by the server's own word, no protection against the server.",
            )
            .with_hint("contextSize", "standard")
            .with_hint("accessLevel", "readonly"),
        }
    }
}

/// What cannot be read cannot be derived; it is shown as it is rather than lost.
fn compact(kind: ListKind, item: &str) -> Cow<'_, str> {
    let derived = match kind {
        ListKind::Tools => derive::compact_tool(item),
        ListKind::Prompts => derive::compact_prompt(item),
        ListKind::Resources | ListKind::Templates => derive::compact_resource(item),
    };
    derived.map_or(Cow::Borrowed(item), Cow::Owned)
}

/// The built-in variants as the server declares them.
pub(crate) fn built_in() -> Variants {
    let declared = Face::ALL
        .into_iter()
        .filter_map(|face| Some(face.variant(face.id().parse().ok()?)))
        .collect();
    // None of them is deprecated, so that no date matters.
    match Variants::new(declared, Date::from_unix(0)) {
        Ok((variants, _)) => variants,
        Err(mistakes) => unreachable!("the built-in variants are valid: {mistakes}"),
    }
}

/// The ids of all variants, in the order of declaration.
pub(crate) fn ids() -> Vec<VariantId> {
    let all = built_in();
    all.iter().map(|variant| variant.id.clone()).collect()
}

/// The SEP's weights, and one for the hint that tells `read-only` from the rest.
pub(crate) fn weights() -> Weights {
    Weights::default().with("accessLevel", 80, 10)
}
