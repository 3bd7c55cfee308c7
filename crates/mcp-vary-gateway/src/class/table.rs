//! The classes of clients that can do something particular: those in use, and what others left behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;
use tracing::warn;

use super::connections::{Connections, Follower};
use super::{Class, ClassKey, lock};
use crate::session::ClientId;

/// The classes by key, and room for some more.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Mutex<BTreeMap<ClassKey, Place>>,
    /// What classes had under the configuration before this one, until they are asked for again.
    inherited: Mutex<BTreeMap<ClassKey, Arc<Connections>>>,
    /// Whether there was no room for the last class that was asked for.
    is_full: AtomicBool,
}

/// Where a class is, or will be when whoever makes it is done.
pub(super) type Place = Arc<OnceCell<Arc<Class>>>;

impl Table {
    /// The place of a class; none when there are too many.
    pub(super) fn place(&self, key: &ClassKey) -> Option<Place> {
        let mut places = lock(&self.places);
        if let Some(place) = places.get(key) {
            return Some(Arc::clone(place));
        }
        let is_own = key.session.is_some();
        let like_it = places
            .keys()
            .filter(|other| other.session.is_some() == is_own);
        let most = if is_own { MAX_OWN } else { MAX_SHARED - 1 };
        if like_it.count() >= most {
            // Said once, until there was room again.
            if !self.is_full.swap(true, Ordering::Relaxed) {
                warn!(
                    most,
                    "too many classes of clients; further ones share what the others have, or are refused"
                );
            }
            return None;
        }
        self.is_full.store(false, Ordering::Relaxed);
        let place = Place::default();
        places.insert(key.clone(), Arc::clone(&place));
        Some(place)
    }

    /// Frees the place of a class that could not be made, unless somebody else is about to make it.
    pub(super) fn give_up(&self, key: &ClassKey) {
        let mut places = lock(&self.places);
        let is_free = |place: &Place| Arc::strong_count(place) == 1 && !place.initialized();
        if places.get(key).is_some_and(is_free) {
            places.remove(key);
        }
    }

    /// Takes over from the classes of `before` what followers they have that are `ours`, too, for clients that
    /// come back.
    pub(super) fn inherit(&self, before: &Self, is_ours: impl Fn(&Follower) -> bool) {
        let others = lock(&before.places);
        let open = others
            .iter()
            .filter_map(|(key, place)| Some((key, &place.get()?.connections)));
        let waiting = lock(&before.inherited);
        let (mine, mut inherited) = (lock(&self.places), lock(&self.inherited));
        for (key, connections) in open.chain(waiting.iter()) {
            let is_open = mine.get(key).is_some_and(|place| place.initialized());
            let kept = connections.only(&is_ours).filter(|_| !is_open);
            if let Some(kept) = kept {
                inherited
                    .entry(key.clone())
                    .or_insert_with(|| Arc::new(kept));
            }
        }
    }

    /// What a class had under the configuration before.
    pub(super) fn inherited(&self, key: &ClassKey) -> Option<Arc<Connections>> {
        lock(&self.inherited).get(key).cloned()
    }

    /// Lets go of what a class had that has opened.
    pub(super) fn settle(&self, key: &ClassKey) {
        lock(&self.inherited).remove(key);
    }

    /// Closes the class of a session that has ended.
    pub(super) fn forget(&self, session: ClientId) {
        lock(&self.places).retain(|key, _| key.session != Some(session));
        lock(&self.inherited).retain(|key, _| key.session != Some(session));
    }

    /// Closes what nobody has used for as long as `unused`.
    pub(super) fn sweep(&self, unused: Duration) {
        lock(&self.places).retain(|_, place| is_used(place, unused));
        lock(&self.inherited).retain(|_, connections| connections.are_used(unused));
    }
}

fn is_used(place: &Place, unused: Duration) -> bool {
    // Whoever holds the place is about to use it.
    let is_held = Arc::strong_count(place) > 1;
    match place.get() {
        Some(class) => {
            is_held || Arc::strong_count(class) > 1 || class.connections.are_used(unused)
        }
        None => is_held,
    }
}

/// Classes of shared connections; a client that would need one more is served as one that can do nothing
/// particular.
const MAX_SHARED: usize = 8;
/// Classes of one session each, over all servers; what a server allows is checked before.
const MAX_OWN: usize = 4096;
