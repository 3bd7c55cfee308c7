//! Resource updates that arrived on other connections to the same server, without duplicates.

use mcp_vary_base::lock::ScopedLock;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

/// Updates that arrived on other connections and are not published here yet: URIs, with the latest parameters.
#[derive(Debug, Default)]
pub(super) struct UpdateDedup(ScopedLock<BTreeMap<Arc<str>, Arc<str>>>);

impl UpdateDedup {
    /// Adds an update; `true` if no other one of the same resource is pending.
    pub(super) fn insert(&self, uri: Arc<str>, params: Arc<str>) -> bool {
        self.lock().insert(uri, params).is_none()
    }

    /// Removes the pending update of a resource.
    pub(super) fn take(&self, uri: &str) -> Option<Arc<str>> {
        self.lock().remove(uri)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<str>>> {
        self.0.lock()
    }
}

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
