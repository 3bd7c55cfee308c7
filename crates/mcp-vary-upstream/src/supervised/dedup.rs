//! What other connections to the same server tell of resources.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Line, Topic};
use crate::message::Event;

/// What was told elsewhere and not yet here: resources, and the parameters that came last with each.
#[derive(Debug, Default)]
pub(super) struct Overheard(Mutex<BTreeMap<Arc<str>, Arc<str>>>);

impl Overheard {
    /// Takes note of a change; whether it is the first of its resource that waits.
    fn note(&self, uri: Arc<str>, params: Arc<str>) -> bool {
        self.lock().insert(uri, params).is_none()
    }

    /// What waits is told now, or was.
    pub(super) fn take(&self, uri: &str) -> Option<Arc<str>> {
        self.lock().remove(uri)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Another connection told that a resource changed that somebody listens to here; it is told here, too, unless the
    /// server does that itself in a moment. Several connections that tell of it at once are one news.
    pub fn overhear(&self, uri: Arc<str>, params: Arc<str>) {
        let shared = Arc::clone(&self.shared);
        // No more of them than are listened to.
        if !shared.of(Topic::Resources).wants(&uri)
            || !shared.overheard.note(Arc::clone(&uri), params)
        {
            return;
        }
        let stop = shared.stop.clone();
        let telling = async move {
            tokio::time::sleep(IN_A_MOMENT).await;
            if let Some(params) = shared.overheard.take(&uri) {
                shared.tell(Event::ResourceUpdated { uri, params });
            }
        };
        let tasks = &self.shared.tasks;
        tasks.spawn(stop.run_until_cancelled_owned(telling));
    }

    /// The same for a change that was told nowhere.
    pub fn may_have_overheard(&self, uri: &Arc<str>) {
        if let Event::ResourceUpdated { uri, params } = Event::may_be_updated(uri) {
            self.overhear(uri, params);
        }
    }
}

/// Servers that tell every session of a change do so at once.
const IN_A_MOMENT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_connections_tell_is_one_news_with_the_last_words() {
        let overheard = Overheard::default();
        assert!(overheard.note("a".into(), "1".into()));
        assert!(!overheard.note("a".into(), "2".into()));
        assert!(overheard.note("b".into(), "1".into()));
        assert_eq!(overheard.take("a").as_deref(), Some("2"));
        assert_eq!(overheard.take("a"), None);
        assert!(overheard.note("a".into(), "3".into()));
    }
}
