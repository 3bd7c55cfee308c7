//! The owners of series by name: servers, tools, variants, issuers, rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use mcp_vary_base::lock::Lock;

/// How many tools have series of their own.
pub const MAX_TOOLS: usize = 2000;

/// For how many seconds an owner has series after it was last listed or used.
pub const RETENTION: u64 = 60 * 60;

/// The name of the owner that stands for all others.
pub(crate) const OTHER: &str = "_other";

/// Owners of series by name.
///
/// # Properties
///
/// Finding one takes no lock. Adding and removing one copies the table.
pub(crate) struct Directory<V> {
    owners: ArcSwap<Owners<V>>,
    /// Locked while the table is replaced.
    activities: Lock<BTreeMap<Arc<str>, Activity>>,
    /// For how many more owners there is room; several directories can share it.
    room: Arc<AtomicUsize>,
    /// The owner that stands for those without room.
    other: Arc<V>,
    create: Box<dyn Fn() -> V + Send + Sync>,
}

/// Omits how owners are created.
impl<V> fmt::Debug for Directory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners = self.owners.load().len();
        f.debug_struct("Directory")
            .field("owners", &owners)
            .finish_non_exhaustive()
    }
}

type Owners<V> = IndexMap<Arc<str>, Arc<V>, RandomState>;

/// What has series.
pub(crate) trait Owner {
    /// How often it was used.
    fn total(&self) -> u64;
}

/// When an owner was last listed or used.
#[derive(Debug, Default)]
struct Activity {
    /// How often it had been used at the last scrape.
    total: u64,
    /// Seconds since 1970-01-01 UTC; 0 before the first scrape.
    last: u64,
}

impl Activity {
    /// Whether the owner was active in the [`RETENTION`] before `now`.
    fn is_recent(&mut self, now: u64, total: u64, is_listed: bool) -> bool {
        let is_used = std::mem::replace(&mut self.total, total) != total;
        if is_listed || is_used || self.last == 0 {
            self.last = now;
            return true;
        }
        now.saturating_sub(self.last) < RETENTION
    }
}

/// What exists at the moment. What does not, loses its series after some time.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The servers of the configuration, each with the tools that it lists.
    pub servers: BTreeMap<String, BTreeSet<String>>,
    /// The variants of the configuration.
    pub variants: BTreeSet<String>,
}

impl Listed {
    pub(crate) fn has_tool(&self, server: &str, tool: &str) -> bool {
        let tools = self.servers.get(server);
        tools.is_some_and(|tools| tools.contains(tool))
    }
}

impl<V: Owner> Directory<V> {
    /// An empty directory with this much `room`, whose owners are created by `create`.
    pub(crate) fn new(
        room: Arc<AtomicUsize>,
        create: impl Fn() -> V + Send + Sync + 'static,
    ) -> Self {
        Self {
            other: Arc::new(create()),
            create: Box::new(create),
            owners: ArcSwap::from_pointee(Owners::default()),
            activities: Lock::default(),
            room,
        }
    }

    /// The owner `name`, which is added if it is not there, or the other one if there is no room for it.
    pub(crate) fn get(&self, name: &str) -> Arc<V> {
        if let Some(owner) = self.owners.load().get(name) {
            return Arc::clone(owner);
        }
        // Without a lock, since a client may use many tools that have no room.
        if self.room.load(Ordering::Relaxed) == 0 {
            return Arc::clone(&self.other);
        }
        self.add(name)
    }

    fn add(&self, name: &str) -> Arc<V> {
        let _changing = self.activities.lock();
        if let Some(owner) = self.owners.load().get(name) {
            return Arc::clone(owner);
        }
        let less = |room: usize| room.checked_sub(1);
        let has_room = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if has_room.is_err() {
            return Arc::clone(&self.other);
        }
        let mut owners = Owners::clone(&self.owners.load());
        let owner = Arc::new((self.create)());
        owners.insert(name.into(), Arc::clone(&owner));
        self.owners.store(Arc::new(owners));
        owner
    }

    /// Removes the owners that are neither `listed` nor used for some time before `now`.
    pub(crate) fn retire(&self, now: u64, listed: impl Fn(&str) -> bool) {
        let mut activities = self.activities.lock();
        let mut owners = Owners::clone(&self.owners.load());
        let before = owners.len();
        owners.retain(|name, owner| {
            let activity = activities.entry(Arc::clone(name)).or_default();
            activity.is_recent(now, owner.total(), listed(name))
        });
        let removed = before - owners.len();
        if removed > 0 {
            activities.retain(|name, _| owners.contains_key(name));
            self.owners.store(Arc::new(owners));
            self.room.fetch_add(removed, Ordering::Relaxed);
        }
    }

    /// How many owners there are, without the other one.
    pub(crate) fn len(&self) -> usize {
        self.owners.load().len()
    }

    /// All owners with their names, the other one last.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<V>)> {
        let owners = self.owners.load();
        let entries = owners.iter();
        let named = entries.map(|(name, owner)| (Arc::clone(name), Arc::clone(owner)));
        let other = (Arc::from(OTHER), Arc::clone(&self.other));
        named.chain([other]).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    impl Owner for AtomicU64 {
        fn total(&self) -> u64 {
            self.load(Ordering::Relaxed)
        }
    }

    fn names(directory: &Directory<AtomicU64>) -> Vec<String> {
        let all = directory.all();
        all.iter().map(|(name, _)| name.to_string()).collect()
    }

    #[test]
    fn an_owner_goes_an_hour_after_it_was_listed_or_used() {
        let directory = Directory::new(Arc::new(AtomicUsize::new(9)), AtomicU64::default);
        for name in ["listed", "used", "gone"] {
            directory.get(name);
        }
        directory.retire(1, |_| true);
        directory.retire(RETENTION, |name| name == "listed");
        assert_eq!(names(&directory).len(), 4);
        directory.get("used").fetch_add(1, Ordering::Relaxed);
        directory.retire(RETENTION + 1, |name| name == "listed");
        assert_eq!(names(&directory), ["listed", "used", "_other"]);
        directory.retire(2 * RETENTION + 1, |name| name == "listed");
        assert_eq!(names(&directory), ["listed", "_other"]);
        assert_eq!(directory.room.load(Ordering::Relaxed), 8);
    }

    #[test]
    fn what_has_no_room_shares_one_owner() {
        let room = Arc::new(AtomicUsize::new(2));
        let (one, two) = (
            Directory::new(Arc::clone(&room), AtomicU64::default),
            Directory::new(room, AtomicU64::default),
        );
        let (a, b) = (one.get("a"), two.get("b"));
        assert!(!Arc::ptr_eq(&a, &b));
        assert!(Arc::ptr_eq(&one.get("c"), &one.get("d")));
        assert!(Arc::ptr_eq(&one.get("a"), &a), "it keeps its own");
        assert_eq!(names(&one), ["a", "_other"]);
    }
}
