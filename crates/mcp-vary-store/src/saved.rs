//! Values that outlive the replica that made them: results that are read later, tasks that have ended, and streams whose client
//! has gone.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_vary_base::lock::Lock;
use redis::aio::MultiplexedConnection;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;

use crate::account::{Account, OVERHEAD};
use crate::namespace::Namespace;
use crate::operations::{Operation, Operations, Outcome};

/// The most bytes of one value. Longer ones are not saved.
pub const MAX_SAVED: usize = 1 << 20;

/// The most bytes that one replica has in the store. If there were more, a value is not saved.
pub const MAX_SAVED_TOTAL: usize = 64 << 20;

/// The most bytes that wait to be written.
const MAX_WAITING: usize = 8 << 20;

/// Bytes that are written at once, if one value does not have more: other commands wait behind them.
const MAX_BATCH: usize = 128 << 10;

/// What a value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SavedKind {
    /// A whole result, of which the client got a part.
    Result,
    /// A task that has ended.
    Task,
    /// The events of a stream that has ended, whose client may not have got them.
    Stream,
}

impl SavedKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Task => "task",
            Self::Stream => "stream",
        }
    }
}

impl SavedValue {
    pub(crate) fn new(
        kind: SavedKind,
        id: &str,
        value: Vec<u8>,
        (lifetime, now): (Duration, u64),
    ) -> Self {
        let seconds = lifetime.as_secs().max(1);
        Self {
            kind,
            id: id.to_owned(),
            value,
            lifetime: seconds,
            expires: now.saturating_add(seconds),
        }
    }

    fn cost(&self) -> usize {
        self.value.len() + OVERHEAD
    }
}

/// Values on their way to the store.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    queue: Lock<Queue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<SavedValue>,
    waiting_bytes: usize,
    /// The values in the store.
    stored: Account,
}

#[derive(Debug)]
pub(crate) struct SavedValue {
    kind: SavedKind,
    id: String,
    value: Vec<u8>,
    /// In seconds.
    lifetime: u64,
    expires: u64,
}

impl Saving {
    /// Whether there is room for a value of so many bytes.
    pub(crate) fn has_room(&self, bytes: usize, now: u64) -> bool {
        self.queue.lock().has_room(bytes, now)
    }

    /// Whether there is room for a value; then it is written later.
    pub(crate) fn add(&self, value: SavedValue, now: u64) -> bool {
        let mut queue = self.queue.lock();
        let has_room = queue.has_room(value.value.len(), now);
        if has_room {
            queue.waiting_bytes += value.cost();
            queue.waiting.push_back(value);
            drop(queue);
            self.added.notify_one();
        }
        has_room
    }

    /// The bytes of this replica in the store.
    pub(crate) fn stored(&self, now: u64) -> usize {
        self.queue.lock().stored.used(now)
    }

    /// Writes what is added, until the connection is of no use.
    pub(crate) async fn run(
        &self,
        namespace: &Namespace,
        connection: MultiplexedConnection,
        operations: &Operations,
    ) {
        loop {
            self.flush(namespace, connection.clone(), operations).await;
            self.added.notified().await;
        }
    }

    /// Writes what waits. What cannot be written is lost for other replicas.
    pub(crate) async fn flush(
        &self,
        namespace: &Namespace,
        mut connection: MultiplexedConnection,
        operations: &Operations,
    ) {
        loop {
            let batch = self.queue.lock().next_batch();
            if batch.is_empty() {
                return;
            }
            let mut set = redis::pipe();
            for command in batch.iter().filter_map(|value| namespace.set_saved(value)) {
                set.add_command(command).ignore();
            }
            let written = set.query_async::<()>(&mut connection).await;
            if written.is_ok() {
                let mut queue = self.queue.lock();
                for value in &batch {
                    queue.stored.add(value.expires, value.cost());
                }
            }
            let outcome = written.map_or(Outcome::Failed, |()| Outcome::Ok);
            for _ in batch {
                operations.add(Operation::Save, outcome);
            }
        }
    }
}

impl Queue {
    fn has_room(&mut self, bytes: usize, now: u64) -> bool {
        let cost = bytes + OVERHEAD;
        bytes <= MAX_SAVED
            && self.waiting_bytes + cost <= MAX_WAITING
            && self.stored.used(now) + self.waiting_bytes + cost <= MAX_SAVED_TOTAL
    }

    fn next_batch(&mut self) -> Vec<SavedValue> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < MAX_BATCH
            && let Some(value) = self.waiting.pop_front()
        {
            bytes += value.cost();
            batch.push(value);
        }
        self.waiting_bytes -= bytes;
        batch
    }
}

/// The most bytes of a sealed value.
pub(crate) const MAX_SEALED: usize = NONCE_LEN + MAX_SAVED + 16;

impl Namespace {
    /// The key of a value.
    pub(crate) fn saved_name(&self, kind: SavedKind, id: &str) -> String {
        self.hashed(kind.name(), id)
    }

    fn saved_key(&self, kind: SavedKind, id: &str) -> LessSafeKey {
        let key = self.derived("saved", &[kind.name().as_bytes(), b"\0", id.as_bytes()]);
        let key = UnboundKey::new(&AES_256_GCM, &key);
        LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("the key has 32 bytes")))
    }

    /// The command that writes a value; `None` if the system has no random numbers.
    pub(crate) fn set_saved(&self, value: &SavedValue) -> Option<redis::Cmd> {
        let mut set = redis::cmd("SET");
        set.arg(self.saved_name(value.kind, &value.id));
        set.arg(self.seal_saved(value.kind, &value.id, &value.value)?);
        set.arg("EX").arg(value.lifetime);
        Some(set)
    }

    /// The value encrypted; `None` if the system has no random numbers.
    fn seal_saved(&self, kind: SavedKind, id: &str, value: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut text = value.to_vec();
        let key = self.saved_key(kind, id);
        let nonce_of_key = Nonce::assume_unique_for_key(nonce);
        let sealed = key.seal_in_place_append_tag(nonce_of_key, Aad::empty(), &mut text);
        sealed.ok()?;
        Some([&nonce[..], &text].concat())
    }

    /// The value, if a replica with this key has saved it with this id.
    pub(crate) fn open_saved(
        &self,
        kind: SavedKind,
        id: &str,
        mut sealed: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk_mut()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let key = self.saved_key(kind, id);
        let opened = key.open_in_place(nonce, Aad::empty(), text).ok()?;
        Some(opened.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that takes so many bytes in all, and expires after the second 9.
    fn value(bytes: usize) -> SavedValue {
        let (lifetime, value) = (Duration::from_secs(9), vec![0; bytes - OVERHEAD]);
        SavedValue::new(SavedKind::Result, "a", value, (lifetime, 0))
    }

    #[test]
    fn a_value_is_opened_under_its_kind_id_and_key_alone() {
        let namespace = Namespace::new([1; 32]);
        let seal = || namespace.seal_saved(SavedKind::Task, "a", b"text").unwrap();
        let sealed = seal();
        assert_ne!(sealed, seal(), "no nonce is used twice");
        let open = |kind, id| namespace.open_saved(kind, id, sealed.clone());
        assert_eq!(open(SavedKind::Task, "a").as_deref(), Some(&b"text"[..]));
        assert_eq!(open(SavedKind::Task, "b"), None);
        assert_eq!(open(SavedKind::Result, "a"), None);
        let other = Namespace::new([2; 32]);
        let opened = other.open_saved(SavedKind::Task, "a", sealed.clone());
        assert_eq!(opened, None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(namespace.open_saved(SavedKind::Task, "a", forged), None);
            let short = sealed[..at].to_vec();
            assert_eq!(namespace.open_saved(SavedKind::Task, "a", short), None);
        }
    }

    #[test]
    fn what_waits_and_what_is_stored_are_bounded() {
        let saving = Saving::default();
        assert!(!saving.add(value(MAX_SAVED + OVERHEAD + 1), 0), "too long");
        for _ in 0..MAX_WAITING / MAX_SAVED {
            assert!(saving.add(value(MAX_SAVED), 0));
        }
        assert!(!saving.add(value(OVERHEAD), 0), "too much waits");
        let mut written = 0;
        loop {
            let mut queue = saving.queue.lock();
            let batch = queue.next_batch();
            written += batch.len();
            for value in &batch {
                queue.stored.add(value.expires, value.cost());
            }
            drop(queue);
            if batch.is_empty() && !saving.add(value(MAX_SAVED), 0) {
                break;
            }
        }
        assert_eq!(written, MAX_SAVED_TOTAL / MAX_SAVED, "the store has enough");
        assert!(!saving.has_room(0, 9) && !saving.add(value(OVERHEAD), 9));
        assert!(saving.has_room(MAX_SAVED, 10), "the others have expired");
    }

    #[test]
    fn small_values_are_written_together_and_a_large_one_by_itself() {
        let saving = Saving::default();
        for bytes in [1, 2, MAX_SAVED, 3] {
            assert!(saving.add(value(bytes + OVERHEAD), 0));
        }
        let next = || {
            let batch = saving.queue.lock().next_batch();
            let sizes = batch.iter().map(|value| value.value.len());
            sizes.collect::<Vec<_>>()
        };
        assert_eq!(
            [next(), next(), next()],
            [vec![1, 2, MAX_SAVED], vec![3], vec![]]
        );
    }
}
