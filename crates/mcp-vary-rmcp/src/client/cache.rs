//! The cache of a client: lists and resource contents by variant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use mcp_vary_base::lock::Lock;
use rmcp::model::{
    NotificationMetaObject, Prompt, ReadResourceResult, Resource, ResourceTemplate,
    ServerNotification, SubscriptionFilter, Tool,
};
use tokio::sync::watch;
use tokio::time::Instant;

/// The selector of a request; `None` is the server's default, whichever variant that is.
pub(super) type Selector = Option<VariantId>;

/// The acknowledged filter of each notification stream, by the id of its request.
pub(super) type Acknowledged = BTreeMap<String, SubscriptionFilter>;

/// The largest number of cached lists of one kind.
const MAX_LISTS: usize = 64;

/// The largest number of cached resource contents.
const MAX_CONTENTS: usize = 256;

/// The largest number of stored acknowledgements.
const MAX_ACKNOWLEDGED: usize = 64;

/// The largest number of variants that are told apart after changes. Beyond it, all count as changed.
const MAX_CHANGED: usize = 64;

/// The upper limit for a server's `ttlMs`.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Lists and resource contents by variant, until they expire or a notification invalidates them.
#[derive(Debug)]
pub(super) struct VariantCache {
    pub(super) tools: TtlCache<Selector, Arc<[Tool]>>,
    pub(super) prompts: TtlCache<Selector, Arc<[Prompt]>>,
    pub(super) resources: TtlCache<Selector, Arc<[Resource]>>,
    pub(super) templates: TtlCache<Selector, Arc<[ResourceTemplate]>>,
    pub(super) contents: TtlCache<(Selector, String), ReadResourceResult>,
    pub(super) acknowledged: watch::Sender<Acknowledged>,
    /// The changes of lists of resources after which subscriptions were not revalidated yet.
    changed_resources: Lock<ChangedVariants>,
}

/// The variants that notifications of changes named since the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedVariants {
    /// Whether all may have changed.
    all: bool,
    some: BTreeSet<VariantId>,
}

impl ChangedVariants {
    fn add(&mut self, changed: Selector) {
        match changed {
            Some(variant) if self.some.len() < MAX_CHANGED => drop(self.some.insert(variant)),
            _ => self.all = true,
        }
    }

    /// Whether `selected` may have changed.
    pub(super) fn affect(&self, selected: &Selector) -> bool {
        let mut some = self.some.iter();
        self.all || some.any(|changed| affects(Some(changed), selected))
    }
}

impl Default for VariantCache {
    fn default() -> Self {
        Self {
            tools: TtlCache::new(MAX_LISTS),
            prompts: TtlCache::new(MAX_LISTS),
            resources: TtlCache::new(MAX_LISTS),
            templates: TtlCache::new(MAX_LISTS),
            contents: TtlCache::new(MAX_CONTENTS),
            acknowledged: watch::Sender::default(),
            changed_resources: Lock::default(),
        }
    }
}

impl VariantCache {
    /// Invalidates what `notification` reports as changed.
    pub(super) fn handle_notification(
        &self,
        notification: &ServerNotification,
        meta: &NotificationMetaObject,
    ) {
        let changed = changed_variant(meta);
        let lists = |selected: &Selector| affects(changed.as_ref(), selected);
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.tools.invalidate(lists),
            ServerNotification::PromptListChangedNotification(_) => self.prompts.invalidate(lists),
            ServerNotification::ResourceListChangedNotification(_) => {
                self.resources.invalidate(lists);
                self.templates.invalidate(lists);
                self.changed_resources.lock().add(changed);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.contents.invalidate(|(selected, uri)| {
                    *uri == updated.params.uri && affects(changed.as_ref(), selected)
                })
            }
            ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged) => {
                if let Some(id) = meta.subscription_id() {
                    self.acknowledge(id.to_string(), acknowledged.params.notifications.clone());
                }
            }
            _ => {}
        }
    }

    /// Removes all entries.
    pub(super) fn clear(&self) {
        self.tools.invalidate(|_| true);
        self.prompts.invalidate(|_| true);
        self.resources.invalidate(|_| true);
        self.templates.invalidate(|_| true);
        self.contents.invalidate(|_| true);
    }

    /// The variants whose resources have changed since the last call.
    pub(super) fn take_changed_resources(&self) -> ChangedVariants {
        std::mem::take(&mut *self.changed_resources.lock())
    }

    /// Keeps `changes` for the next call.
    pub(super) fn return_changed_resources(&self, changes: ChangedVariants) {
        let mut changed = self.changed_resources.lock();
        changed.all |= changes.all;
        changes
            .some
            .into_iter()
            .for_each(|variant| changed.add(Some(variant)));
    }

    fn acknowledge(&self, id: String, filter: SubscriptionFilter) {
        self.acknowledged.send_modify(|acknowledged| {
            while acknowledged.len() >= MAX_ACKNOWLEDGED {
                acknowledged.pop_first();
            }
            acknowledged.insert(id, filter);
        });
    }
}

/// The variant that a notification names; `None` if all may be affected.
///
/// "If `params._meta["io.modelcontextprotocol/server-variant"]` is absent on `list_changed`,
/// clients SHOULD assume all variants may be affected": the same holds for an invalid identifier.
fn changed_variant(meta: &NotificationMetaObject) -> Selector {
    meta.get(SERVER_VARIANT_META)?.as_str()?.parse().ok()
}

/// Whether a change of the variant `changed` affects entries of `selected`. Any variant may be the
/// default.
fn affects(changed: Option<&VariantId>, selected: &Selector) -> bool {
    changed.is_none() || selected.is_none() || changed == selected.as_ref()
}

/// A bounded cache with a TTL for each entry.
#[derive(Debug)]
pub(super) struct TtlCache<K, V> {
    entries: Lock<Entries<K, V>>,
    capacity: usize,
}

#[derive(Debug)]
struct Entries<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Counts invalidations, so that an answer to a request from before one is not inserted after
    /// it.
    generation: Generation,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    expires_at: Instant,
}

/// The number of invalidations when a request was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Generation(u64);

impl<K: Ord + Clone, V: Clone> TtlCache<K, V> {
    fn new(capacity: usize) -> Self {
        let entries = Entries {
            entries: BTreeMap::new(),
            generation: Generation::default(),
        };
        Self {
            entries: Lock::new(entries),
            capacity,
        }
    }

    /// The value of `key` if it has not expired; otherwise the generation to [insert](Self::insert)
    /// a new value with.
    pub(super) fn get(&self, key: &K) -> Result<V, Generation> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        match entries.entries.get(key) {
            Some(entry) if entry.expires_at > now => return Ok(entry.value.clone()),
            Some(_) => {
                entries.entries.remove(key);
            }
            None => {}
        }
        Err(entries.generation)
    }

    /// Inserts `value` for `time`, unless there was an invalidation since `generation`.
    pub(super) fn insert(&self, key: K, value: V, time: Duration, generation: Generation) {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        if time.is_zero() || entries.generation != generation {
            return;
        }
        if entries.entries.len() >= self.capacity && !entries.entries.contains_key(&key) {
            // Evict the entry that expires first.
            let first = entries
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.expires_at);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                entries.entries.remove(&key);
            }
        }
        let until = now + time.min(MAX_TTL);
        entries.entries.insert(
            key,
            Entry {
                value,
                expires_at: until,
            },
        );
    }

    fn invalidate(&self, touched: impl Fn(&K) -> bool) {
        let mut entries = self.entries.lock();
        entries.generation.0 += 1;
        entries.entries.retain(|key, _| !touched(key));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn cache(most: usize) -> (TtlCache<&'static str, u32>, Generation) {
        let cache = TtlCache::new(most);
        let generation = cache.get(&"").unwrap_err();
        (cache, generation)
    }

    fn cached(cache: &TtlCache<&'static str, u32>, keys: &[&'static str]) -> Vec<u32> {
        let found = keys.iter().filter_map(|key| cache.get(key).ok());
        found.collect()
    }

    /// SV-16: an answer that was under way when its list changed is not cached.
    #[test]
    fn an_answer_from_before_a_change_is_not_kept() {
        let (cache, before) = cache(8);
        cache.insert("a", 1, MINUTE, before);
        cache.invalidate(|key| *key == "a");
        cache.insert("a", 2, MINUTE, before);
        assert!(cached(&cache, &["a"]).is_empty());
        let after = cache.get(&"a").unwrap_err();
        cache.insert("a", 3, MINUTE, after);
        assert_eq!(cached(&cache, &["a"]), [3]);
    }

    #[test]
    fn a_full_cache_evicts_what_expires_first() {
        let (cache, generation) = cache(2);
        cache.insert("short", 1, MINUTE, generation);
        cache.insert("long", 2, 3 * MINUTE, generation);
        cache.insert("none", 3, Duration::ZERO, generation);
        cache.insert("middle", 4, 2 * MINUTE, generation);
        cache.insert("long", 5, 3 * MINUTE, generation);
        assert_eq!(cached(&cache, &["short", "long", "none", "middle"]), [5, 4]);
    }

    /// A server may acknowledge what no client requested.
    #[test]
    fn acknowledgements_are_bounded() {
        let memory = VariantCache::default();
        for id in 0..1_000 {
            memory.acknowledge(id.to_string(), SubscriptionFilter::new());
        }
        assert_eq!(memory.acknowledged.borrow().len(), MAX_ACKNOWLEDGED);
    }

    /// Whether a notification with `meta` affects `compact`, `debug` and the default.
    #[track_caller]
    fn touched(meta: Value, expected: [bool; 3]) {
        let meta: NotificationMetaObject = serde_json::from_value(meta).unwrap();
        let changed = changed_variant(&meta);
        let parse = |id: &str| id.parse().unwrap();
        let selected = [Some("compact"), Some("debug"), None].map(|id| id.map(parse));
        let touched = selected.map(|selected| affects(changed.as_ref(), &selected));
        assert_eq!(touched, expected);
    }

    /// SV-16: a valid tag names one variant; an invalid tag names all, and the default may be any.
    #[test]
    fn a_change_names_one_variant_or_all() {
        touched(json!({SERVER_VARIANT_META: "compact"}), [true, false, true]);
        touched(json!({SERVER_VARIANT_META: "other"}), [false, false, true]);
        touched(json!({SERVER_VARIANT_META: ""}), [true; 3]);
        touched(json!({SERVER_VARIANT_META: 7}), [true; 3]);
        touched(json!({}), [true; 3]);
    }
}
