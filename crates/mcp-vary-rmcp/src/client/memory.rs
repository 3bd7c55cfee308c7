//! What a client remembers of a server: lists and resources, each for the variant it came from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use rmcp::model::{
    NotificationMetaObject, Prompt, ReadResourceResult, Resource, ResourceTemplate,
    ServerNotification, SubscriptionFilter, Tool,
};
use tokio::sync::watch;
use tokio::time::Instant;

/// What a request selected: none is the server's default, whichever that is.
pub(super) type Selected = Option<VariantId>;

/// What the server agreed to tell on each stream, by the identifier of its request.
pub(super) type Acknowledged = BTreeMap<String, SubscriptionFilter>;

/// How many lists of one kind are kept.
const LISTS: usize = 64;

/// How many resources are kept.
const READS: usize = 256;

/// How many acknowledged streams are remembered.
const ACKNOWLEDGED: usize = 64;

/// The longest that a server's `ttlMs` is believed.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Lists and resources by variant, forgotten when their time is over or a notification says so.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) tools: Shelf<Selected, Arc<[Tool]>>,
    pub(super) prompts: Shelf<Selected, Arc<[Prompt]>>,
    pub(super) resources: Shelf<Selected, Arc<[Resource]>>,
    pub(super) templates: Shelf<Selected, Arc<[ResourceTemplate]>>,
    pub(super) reads: Shelf<(Selected, String), ReadResourceResult>,
    pub(super) acknowledged: watch::Sender<Acknowledged>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            tools: Shelf::new(LISTS),
            prompts: Shelf::new(LISTS),
            resources: Shelf::new(LISTS),
            templates: Shelf::new(LISTS),
            reads: Shelf::new(READS),
            acknowledged: watch::Sender::default(),
        }
    }
}

impl Memory {
    /// Forgets what `notification` says has changed.
    pub(super) fn hear(&self, notification: &ServerNotification, meta: &NotificationMetaObject) {
        let changed = affected(meta);
        let lists = |selected: &Selected| touches(changed.as_ref(), selected);
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.tools.forget(lists),
            ServerNotification::PromptListChangedNotification(_) => self.prompts.forget(lists),
            ServerNotification::ResourceListChangedNotification(_) => {
                self.resources.forget(lists);
                self.templates.forget(lists);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.reads.forget(|(selected, uri)| {
                    *uri == updated.params.uri && touches(changed.as_ref(), selected)
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

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.tools.forget(|_| true);
        self.prompts.forget(|_| true);
        self.resources.forget(|_| true);
        self.templates.forget(|_| true);
        self.reads.forget(|_| true);
    }

    fn acknowledge(&self, id: String, filter: SubscriptionFilter) {
        self.acknowledged.send_modify(|acknowledged| {
            while acknowledged.len() >= ACKNOWLEDGED {
                acknowledged.pop_first();
            }
            acknowledged.insert(id, filter);
        });
    }
}

/// The variant that a notification names; none when all may be affected.
///
/// "If `params._meta["io.modelcontextprotocol/server-variant"]` is absent on `list_changed`, clients
/// SHOULD assume all variants may be affected": so too where it names none that can exist.
fn affected(meta: &NotificationMetaObject) -> Selected {
    meta.get(SERVER_VARIANT_META)?.as_str()?.parse().ok()
}

/// Whether a change of `changed` touches what was asked for with `selected`. Any variant may be the default.
fn touches(changed: Option<&VariantId>, selected: &Selected) -> bool {
    changed.is_none() || selected.is_none() || changed == selected.as_ref()
}

/// A bounded cache whose entries have each their own end.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    held: Mutex<Held<K, V>>,
    most: usize,
}

#[derive(Debug)]
struct Held<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Counts what was forgotten, so that an answer from before is not put back after.
    generation: Generation,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    until: Instant,
}

/// When a request was sent, in changes heard of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Generation(u64);

impl<K: Ord + Clone, V: Clone> Shelf<K, V> {
    fn new(most: usize) -> Self {
        let held = Held {
            entries: BTreeMap::new(),
            generation: Generation::default(),
        };
        Self {
            held: Mutex::new(held),
            most,
        }
    }

    /// The value of `key` while its time lasts; else the generation to [keep](Self::keep) a new one with.
    pub(super) fn find(&self, key: &K) -> Result<V, Generation> {
        let now = Instant::now();
        let mut held = self.lock();
        match held.entries.get(key) {
            Some(entry) if entry.until > now => return Ok(entry.value.clone()),
            Some(_) => {
                held.entries.remove(key);
            }
            None => {}
        }
        Err(held.generation)
    }

    /// Keeps `value` for `time`, unless something was forgotten since `generation`.
    pub(super) fn keep(&self, key: K, value: V, time: Duration, generation: Generation) {
        let now = Instant::now();
        let mut held = self.lock();
        if time.is_zero() || held.generation != generation {
            return;
        }
        if held.entries.len() >= self.most && !held.entries.contains_key(&key) {
            // What ends first goes first.
            let first = held.entries.iter().min_by_key(|(_, entry)| entry.until);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                held.entries.remove(&key);
            }
        }
        let until = now + time.min(LONGEST);
        held.entries.insert(key, Entry { value, until });
    }

    fn forget(&self, touched: impl Fn(&K) -> bool) {
        let mut held = self.lock();
        held.generation.0 += 1;
        held.entries.retain(|key, _| !touched(key));
    }

    fn lock(&self) -> MutexGuard<'_, Held<K, V>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn shelf(most: usize) -> (Shelf<&'static str, u32>, Generation) {
        let shelf = Shelf::new(most);
        let generation = shelf.find(&"").unwrap_err();
        (shelf, generation)
    }

    fn kept(shelf: &Shelf<&'static str, u32>, keys: &[&'static str]) -> Vec<u32> {
        let found = keys.iter().filter_map(|key| shelf.find(key).ok());
        found.collect()
    }

    /// SV-16: an answer that was under way when its list changed is not kept.
    #[test]
    fn an_answer_from_before_a_change_is_not_kept() {
        let (shelf, before) = shelf(8);
        shelf.keep("a", 1, MINUTE, before);
        shelf.forget(|key| *key == "a");
        shelf.keep("a", 2, MINUTE, before);
        assert!(kept(&shelf, &["a"]).is_empty());
        let after = shelf.find(&"a").unwrap_err();
        shelf.keep("a", 3, MINUTE, after);
        assert_eq!(kept(&shelf, &["a"]), [3]);
    }

    #[test]
    fn a_full_shelf_gives_up_what_ends_first() {
        let (shelf, generation) = shelf(2);
        shelf.keep("short", 1, MINUTE, generation);
        shelf.keep("long", 2, 3 * MINUTE, generation);
        shelf.keep("none", 3, Duration::ZERO, generation);
        shelf.keep("middle", 4, 2 * MINUTE, generation);
        shelf.keep("long", 5, 3 * MINUTE, generation);
        assert_eq!(kept(&shelf, &["short", "long", "none", "middle"]), [5, 4]);
    }

    /// A server may acknowledge what nobody asked for.
    #[test]
    fn acknowledgements_are_bounded() {
        let memory = Memory::default();
        for id in 0..1_000 {
            memory.acknowledge(id.to_string(), SubscriptionFilter::new());
        }
        assert_eq!(memory.acknowledged.borrow().len(), ACKNOWLEDGED);
    }

    /// Whether a notification with `meta` touches `compact`, `debug` and the default.
    #[track_caller]
    fn touched(meta: Value, expected: [bool; 3]) {
        let meta: NotificationMetaObject = serde_json::from_value(meta).unwrap();
        let changed = affected(&meta);
        let parse = |id: &str| id.parse().unwrap();
        let selected = [Some("compact"), Some("debug"), None].map(|id| id.map(parse));
        let touched = selected.map(|selected| touches(changed.as_ref(), &selected));
        assert_eq!(touched, expected);
    }

    /// SV-16: a tag names one variant; what is no tag names all, and the default may be any.
    #[test]
    fn a_change_names_one_variant_or_all() {
        touched(json!({SERVER_VARIANT_META: "compact"}), [true, false, true]);
        touched(json!({SERVER_VARIANT_META: "other"}), [false, false, true]);
        touched(json!({SERVER_VARIANT_META: ""}), [true; 3]);
        touched(json!({SERVER_VARIANT_META: 7}), [true; 3]);
        touched(json!({}), [true; 3]);
    }
}
