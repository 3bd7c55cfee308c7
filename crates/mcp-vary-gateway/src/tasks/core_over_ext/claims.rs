//! Tracks which input requests of tasks were sent to a client, and which were answered.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard};

use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};
use mcp_vary_base::lock::Lock;
use sha2::{Digest as _, Sha256};

use crate::tasks::id::TaskKey;

/// The input requests of tasks, so that each is sent to a client once, however many requests wait for the result.
///
/// > Keys are arbitrary identifiers for matching requests to responses, unique over the lifetime of the task.
/// > (SEP-2663)
///
/// # Properties
///
/// Bounded: the pending ones by the bound on requests that clients receive at once; of the answered ones the oldest are
/// forgotten.
#[derive(Debug, Default)]
pub(crate) struct InputClaims(Lock<ClaimTable>);

#[derive(Debug)]
struct ClaimTable {
    pending: BTreeSet<Digest>,
    answered: ExpiringStore<Digest, ()>,
}

/// The server, its task, and the key of one input request.
type Digest = [u8; 32];

/// The number of answered input requests that are stored.
const MAX_ANSWERED: usize = 4096;

impl Default for ClaimTable {
    fn default() -> Self {
        Self {
            pending: BTreeSet::new(),
            answered: ExpiringStore::new(StoreLimits {
                entries: MAX_ANSWERED,
                ..StoreLimits::UNBOUNDED
            }),
        }
    }
}

/// The right to send one input request to a client; returned when this is dropped before it was answered.
#[derive(Debug)]
pub(crate) struct InputClaim {
    claims: Arc<InputClaims>,
    digest: Digest,
    /// The server's key of the input request.
    pub(crate) key: String,
}

impl InputClaims {
    /// The right to send the input request `key` of a task; `None` while it is with a client, and after it was answered.
    pub(crate) fn claim(
        self: &Arc<Self>,
        (server, upstream_id): &TaskKey,
        key: &str,
    ) -> Option<InputClaim> {
        let mut hash = Sha256::new();
        for part in [server, upstream_id, key] {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize().into();
        let mut table = self.lock();
        if table.answered.get(&digest, NEVER).is_some() || !table.pending.insert(digest) {
            return None;
        }
        Some(InputClaim {
            claims: Arc::clone(self),
            digest,
            key: key.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ClaimTable> {
        self.0.lock()
    }
}

/// Claims do not expire.
const NEVER: u64 = 0;

impl InputClaim {
    /// Records that the server has the answer.
    pub(crate) fn settle(self) {
        let answered = Entry::new(());
        let mut table = self.claims.lock();
        table.answered.insert(self.digest, answered, NEVER);
    }
}

impl Drop for InputClaim {
    fn drop(&mut self) {
        self.claims.lock().pending.remove(&self.digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(server: &str, own: &str) -> TaskKey {
        (server.into(), own.into())
    }

    #[test]
    fn a_question_is_asked_by_one_and_answered_once() {
        let claims = Arc::new(InputClaims::default());
        let task = key("s", "1");
        let first = claims.claim(&task, "a").unwrap();
        assert!(claims.claim(&task, "a").is_none());
        assert!(claims.claim(&task, "b").is_some() && claims.claim(&key("s", "2"), "a").is_some());
        assert!(
            claims.claim(&key("s1", ""), "a").is_some(),
            "no other parts"
        );
        drop(first);
        claims.claim(&task, "a").unwrap().settle();
        assert!(claims.claim(&task, "a").is_none());
        let table = claims.lock();
        assert_eq!((table.pending.len(), table.answered.len()), (0, 1));
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let claims = Arc::new(InputClaims::default());
        let task = key("s", "1");
        for question in 0..=MAX_ANSWERED {
            claims.claim(&task, &question.to_string()).unwrap().settle();
        }
        assert_eq!(claims.lock().answered.len(), MAX_ANSWERED);
        assert!(claims.claim(&task, "0").is_some() && claims.claim(&task, "1").is_none());
    }
}
