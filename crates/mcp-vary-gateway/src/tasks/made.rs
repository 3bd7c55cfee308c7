//! The tasks that were made lately, and for whom.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client::Client;
use crate::session::ClientId;

/// Of each task who had it made, so that what a server tells of it, or lists, reaches nobody else.
///
/// # Properties
///
/// Bounded: of too many tasks the oldest are forgotten. Whoever holds the id of a forgotten task can still ask
/// for it; it is only not listed any more, and its changes are not told.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    /// By server, and what it calls the task.
    known: BTreeMap<Key, Entry>,
    /// In the order in which they were made.
    order: VecDeque<Key>,
}

type Key = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Entry {
    client: ClientId,
    sealed: Arc<str>,
}

/// Some hundred bytes each.
const MOST: usize = 4096;

impl Made {
    /// Notes that `client` had a task made, which it calls `sealed`.
    pub(crate) fn note(&self, server: &Arc<str>, own: &str, sealed: String, client: &Client) {
        let key = (Arc::clone(server), Arc::from(own));
        let entry = Entry {
            client: client.id,
            sealed: sealed.into(),
        };
        let mut tasks = self.lock();
        if tasks.known.insert(key.clone(), entry).is_none() {
            tasks.order.push_back(key);
        }
        while tasks.order.len() > MOST {
            if let Some(oldest) = tasks.order.pop_front() {
                tasks.known.remove(&oldest);
            }
        }
    }

    /// What `client` calls a task of its own.
    pub(crate) fn of(&self, server: &Arc<str>, own: &str, client: ClientId) -> Option<Arc<str>> {
        let tasks = self.lock();
        let entry = tasks.known.get(&(Arc::clone(server), Arc::from(own)))?;
        (entry.client == client).then(|| Arc::clone(&entry.sealed))
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
