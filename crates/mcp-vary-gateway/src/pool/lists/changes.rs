//! The events of a server, and the changes that they report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::Event;
use mcp_vary_wire::list_kind::Kind;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// The lists and resources of a server that changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) lists: BTreeSet<ListKind>,
    /// Announced as changed, but the same when read again.
    pub(crate) announced: BTreeSet<Kind>,
    pub(crate) updates: ResourceUpdates,
}

impl Changes {
    /// The result of `pending` after reading: `lists` differ.
    pub(super) fn found(lists: BTreeSet<ListKind>, pending: PendingChanges) -> Self {
        let mut announced = pending.announced;
        announced.retain(|kind| {
            !ListKind::affected_by(*kind)
                .iter()
                .any(|list| lists.contains(list))
        });
        Self {
            lists,
            announced,
            updates: pending.updates,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.lists.is_empty() && self.announced.is_empty() && self.updates.is_empty()
    }

    pub(super) fn of(updates: ResourceUpdates) -> Self {
        Self {
            updates,
            ..Self::default()
        }
    }
}

/// The resources that changed.
#[derive(Debug)]
pub(crate) enum ResourceUpdates {
    /// By the server's URIs, each with the params of its last notification; `None` if it may have changed without one.
    Some(BTreeMap<Arc<str>, Option<Arc<str>>>),
    /// Events were missed: any resource may have changed.
    Any,
}

impl Default for ResourceUpdates {
    fn default() -> Self {
        Self::Some(BTreeMap::new())
    }
}

impl ResourceUpdates {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Some(updates) if updates.is_empty())
    }

    pub(super) fn add(&mut self, more: Self) {
        match (self, more) {
            (Self::Some(known), Self::Some(more)) => {
                for (uri, params) in more {
                    let latest = known.entry(uri).or_default();
                    // What the server sent says more than that the resource may have changed.
                    *latest = params.or_else(|| latest.take());
                }
            }
            (all, _) => *all = Self::Any,
        }
    }
}

/// What the events of a connection report.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    /// Whether the connection was opened again.
    pub(super) reconnected: bool,
    /// The lists that may have changed.
    pub(crate) kinds: BTreeSet<ListKind>,
    /// The lists that the server announced as changed.
    pub(crate) announced: BTreeSet<Kind>,
    pub(super) updates: ResourceUpdates,
}

impl PendingChanges {
    pub(super) fn of(event: &Event) -> Self {
        let kinds = match event {
            Event::ListChanged(kind) | Event::ListMayHaveChanged(kind) => {
                ListKind::affected_by(*kind)
            }
            Event::ResourceUpdated { .. }
            | Event::TaskChanged { .. }
            | Event::ServerRequest(_)
            | Event::Notification(_)
            | Event::Connected
            | Event::Lost { .. }
            | Event::Closed { .. } => &[],
        };
        let announced = match event {
            Event::ListChanged(kind) => Some(*kind),
            _ => None,
        };
        let updated = match event {
            Event::ResourceUpdated { uri, params } => Some((Arc::clone(uri), params.clone())),
            _ => None,
        };
        Self {
            reconnected: matches!(event, Event::Connected),
            kinds: kinds.iter().copied().collect(),
            announced: announced.into_iter().collect(),
            updates: ResourceUpdates::Some(updated.into_iter().collect()),
        }
    }

    /// Events were missed: anything may have changed.
    pub(super) fn missed() -> Self {
        Self {
            reconnected: true,
            kinds: BTreeSet::from(ListKind::ALL),
            announced: BTreeSet::new(),
            updates: ResourceUpdates::Any,
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.reconnected |= more.reconnected;
        self.kinds.extend(more.kinds);
        self.announced.extend(more.announced);
        self.updates.add(more.updates);
    }

    /// The next changes; `None` when the connection is closed.
    pub(crate) async fn receive(events: &mut broadcast::Receiver<Event>) -> Option<Self> {
        match events.recv().await {
            Ok(event) => Some(Self::of(&event)),
            Err(RecvError::Lagged(_)) => Some(Self::missed()),
            Err(RecvError::Closed) => None,
        }
    }

    /// Adds the changes that have already arrived.
    pub(crate) fn add_received(&mut self, events: &mut broadcast::Receiver<Event>) {
        loop {
            match events.try_recv() {
                Ok(event) => self.add(Self::of(&event)),
                Err(TryRecvError::Lagged(_)) => self.add(Self::missed()),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_resource_may_have_changed_replaces_no_params() {
        let update = |params: Option<&str>| {
            let params = params.map(Arc::from);
            ResourceUpdates::Some(BTreeMap::from([("note:a".into(), params)]))
        };
        let mut updates = ResourceUpdates::default();
        for (more, expected) in [
            (None, None),
            (Some("1"), Some("1")),
            (None, Some("1")),
            (Some("2"), Some("2")),
        ] {
            updates.add(update(more));
            let ResourceUpdates::Some(known) = &updates else {
                panic!("nothing was missed");
            };
            assert_eq!(known["note:a"].as_deref(), expected);
        }
    }
}
