//! Resource updates that arrived on other connections to the same server, without duplicates.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{SupervisedConnection, Topic};
use crate::message::Event;

/// Updates that arrived on other connections and are not published here yet: URIs, with the latest parameters.
#[derive(Debug, Default)]
pub(super) struct UpdateDedup(Mutex<BTreeMap<Arc<str>, Arc<str>>>);

impl UpdateDedup {
    /// Adds an update; `true` if no other one of the same resource is pending.
    fn insert(&self, uri: Arc<str>, params: Arc<str>) -> bool {
        self.lock().insert(uri, params).is_none()
    }

    /// Removes the pending update of a resource.
    pub(super) fn take(&self, uri: &str) -> Option<Arc<str>> {
        self.lock().remove(uri)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SupervisedConnection {
    /// Reports that a resource update arrived on another connection. If the resource is subscribed here, the update is
    /// published here as well, unless the server sends its own within `DEDUP_WINDOW`. Updates of several connections
    /// within that time are published once.
    pub fn resource_updated_elsewhere(&self, uri: Arc<str>, params: Arc<str>) {
        let shared = Arc::clone(&self.shared);
        // Bounded by the number of subscriptions.
        if !shared.subscriptions(Topic::Resources).contains(&uri)
            || !shared.dedup.insert(Arc::clone(&uri), params)
        {
            return;
        }
        let stop = shared.stop.clone();
        let telling = async move {
            tokio::time::sleep(DEDUP_WINDOW).await;
            if let Some(params) = shared.dedup.take(&uri) {
                shared.publish(Event::ResourceUpdated { uri, params });
            }
        };
        let tasks = &self.shared.tasks;
        tasks.spawn(stop.run_until_cancelled_owned(telling));
    }

    /// Reports that a resource may have changed without a notification.
    pub fn resource_may_have_changed(&self, uri: &Arc<str>) {
        if let Event::ResourceUpdated { uri, params } = Event::resource_may_have_changed(uri) {
            self.resource_updated_elsewhere(uri, params);
        }
    }
}

/// Servers that notify every session of an update do so at the same time.
const DEDUP_WINDOW: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_connections_tell_is_one_news_with_the_last_words() {
        let overheard = UpdateDedup::default();
        assert!(overheard.insert("a".into(), "1".into()));
        assert!(!overheard.insert("a".into(), "2".into()));
        assert!(overheard.insert("b".into(), "1".into()));
        assert_eq!(overheard.take("a").as_deref(), Some("2"));
        assert_eq!(overheard.take("a"), None);
        assert!(overheard.insert("a".into(), "3".into()));
    }
}
