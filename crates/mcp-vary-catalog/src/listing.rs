//! The list of one kind from one server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::Members;
use mcp_vary_wire::revision::Era;

use crate::list_fault::ListFaults;
use crate::repair::repair_item;

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
    /// What was wrong with items.
    pub faults: ListFaults,
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
        let items = before.map_or(&[][..], |before| &before.items);
        let known: BTreeMap<_, _> = items.iter().map(|item| (&*item.id, item)).collect();
        for item in &mut self.items {
            if let Some(same) = known.get(&*item.id).filter(|known| **known == item) {
                *item = (*same).clone();
            }
        }
        self
    }
}

impl ListedItem {
    /// Reads an item of a server of `era`, repaired so that every client can read it, and notes in `faults` what was wrong.
    /// One that cannot be used is left out.
    pub fn read(
        json: &str,
        kind: ListKind,
        era: Era,
        position: usize,
        faults: &mut ListFaults,
    ) -> Option<Self> {
        let id_of = |json: &str| {
            let members = Members::parse(json).ok()?;
            members.get_str(kind.id_key())
        };
        let repaired = match repair_item(json, kind, era) {
            Ok(repaired) => repaired,
            Err(why) => {
                let id = id_of(json).filter(|id| !id.is_empty());
                faults.add(&id.unwrap_or_else(|| format!("#{position}")), &why, true);
                return None;
            }
        };
        let id = id_of(&repaired.json)?;
        for problem in &repaired.problems {
            faults.add(&id, problem, false);
        }
        Some(Self {
            id: id.into(),
            json: repaired.json.into(),
        })
    }
}
