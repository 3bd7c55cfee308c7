//! The list of one kind from one server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::Members;
use mcp_vary_wire::list_kind::Kind;

/// The four lists of MCP.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// All kinds, in the order in which they are read.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The lists that may have changed when a server notifies about `kind`.
    pub const fn affected_by(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Tools => &[Self::Tools],
            Kind::Resources => &[Self::Resources, Self::Templates],
            Kind::Prompts => &[Self::Prompts],
        }
    }

    /// The kind of change notification for the list.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Tools => Kind::Tools,
            Self::Resources | Self::Templates => Kind::Resources,
            Self::Prompts => Kind::Prompts,
        }
    }

    /// The method that reads the list.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the items.
    pub const fn items_key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The capability without which a server has no such list.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The member that identifies an item.
    pub const fn id_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// All items of one list, and the other members of its result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listing {
    /// The result of the only page, as written.
    pub passthrough: Option<Arc<str>>,
    /// The members of the first page's result, with an empty array of items and without the cursor.
    pub frame: Arc<str>,
    /// The items, in the order of the server.
    pub items: Vec<ListedItem>,
    /// How long the list is fresh, as declared by a modern server.
    pub ttl: Option<Duration>,
}

/// One item as listed, and its identifier.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedItem {
    /// The name or URI that identifies it.
    pub id: Arc<str>,
    /// The item as the server wrote it.
    pub json: Arc<str>,
}

impl Listing {
    /// This list, sharing the texts of unchanged items with `before`.
    pub fn reusing(mut self, before: Option<&Self>) -> Self {
        let known = before.map_or(&[][..], |before| &before.items);
        let known: BTreeMap<_, _> = known.iter().map(|item| (&*item.id, item)).collect();
        for item in &mut self.items {
            if let Some(same) = known.get(&*item.id).filter(|known| **known == item) {
                *item = (*same).clone();
            }
        }
        self
    }
}

impl ListedItem {
    /// Reads an item. An item without an identifier cannot be requested, so it is logged and left out.
    pub fn read(json: &str, kind: ListKind) -> Option<Self> {
        let id = Members::parse(json)
            .ok()
            .and_then(|members| members.get_str(kind.id_key()));
        if id.is_none() {
            tracing::warn!(
                list = kind.method(),
                "item without a readable `{}` left out",
                kind.id_key()
            );
        }
        Some(Self {
            id: id?.into(),
            json: json.into(),
        })
    }
}
