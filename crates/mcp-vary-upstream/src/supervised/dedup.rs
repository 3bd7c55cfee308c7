//! Resource updates that arrived on other connections to the same server, without duplicates.

use mcp_vary_base::lock::ScopedLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Updates that arrived on other connections and are not published here yet: URIs, with the parameters of the latest
/// notification. `None` if the resource may have changed without one.
#[derive(Debug, Default)]
pub(super) struct UpdateDedup(ScopedLock<Pending>);

type Pending = BTreeMap<Arc<str>, Option<Arc<str>>>;

impl UpdateDedup {
    /// Adds an update; `true` if no other one of the same resource is pending.
    pub(super) fn insert(&self, uri: Arc<str>, params: Option<Arc<str>>) -> bool {
        let mut pending = self.0.lock();
        let is_new = !pending.contains_key(&uri);
        let known = pending.entry(uri).or_default();
        *known = params.or_else(|| known.take());
        is_new
    }

    /// Removes the pending update of a resource.
    pub(super) fn take(&self, uri: &str) -> Option<Option<Arc<str>>> {
        self.0.lock().remove(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_connections_tell_is_one_news_with_the_last_words() {
        let overheard = UpdateDedup::default();
        assert!(overheard.insert("a".into(), Some("1".into())));
        assert!(!overheard.insert("a".into(), Some("2".into())));
        assert!(!overheard.insert("a".into(), None));
        assert!(overheard.insert("b".into(), None));
        assert_eq!(overheard.take("a"), Some(Some("2".into())));
        assert_eq!(overheard.take("a"), None);
        assert_eq!(overheard.take("b"), Some(None));
        assert!(overheard.insert("a".into(), Some("3".into())));
    }
}
