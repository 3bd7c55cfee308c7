//! The list of one kind from one server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::Members;

pub use mcp_vary_wire::list_kind::ListKind;

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
