//! Values that were read from texts, by the text.

use std::sync::{Arc, Mutex, PoisonError};

use foldhash::quality::RandomState;
use indexmap::IndexMap;

/// What was read from capabilities, by the bytes they were written in.
///
/// Modern clients send the same capabilities with every request. Two generations bound the memory:
/// when the young one is full it becomes the old one, and what is used again moves back.
#[derive(Debug)]
pub struct Memo<T> {
    generations: Mutex<Generations<T>>,
}

#[derive(Debug)]
struct Generations<T> {
    young: Generation<T>,
    old: Generation<T>,
    /// What a generation may cost.
    capacity: usize,
    cost: usize,
}

/// Hashed, since texts of clients begin alike, which makes an order of them slow; and with a key, so that
/// no client can choose texts that collide.
type Generation<T> = IndexMap<Box<str>, Arc<T>, RandomState>;

/// Longer texts are read anew each time.
const MAX_REMEMBERED: usize = 8 << 10;

/// What an entry costs beside its text, in bytes; roughly.
const ENTRY: usize = 1 << 10;

impl<T> Generations<T> {
    fn get(&mut self, text: &str) -> Option<Arc<T>> {
        if let Some(known) = self.young.get(text) {
            return Some(Arc::clone(known));
        }
        let (text, known) = self.old.swap_remove_entry(text)?;
        self.insert(text, Arc::clone(&known));
        Some(known)
    }

    fn insert(&mut self, text: Box<str>, value: Arc<T>) {
        let cost = text.len() + ENTRY;
        if self.cost + cost > self.capacity {
            self.old = std::mem::take(&mut self.young);
            self.cost = 0;
        }
        self.cost += cost;
        self.young.insert(text, value);
    }
}

impl<T> Memo<T> {
    /// `capacity` is in bytes, for each of two generations.
    pub fn new(capacity: usize) -> Self {
        Self {
            generations: Mutex::new(Generations {
                young: Generation::default(),
                old: Generation::default(),
                capacity,
                cost: 0,
            }),
        }
    }

    /// What was read from `text` before, else what `read` makes of it now.
    pub fn get_or_read(&self, text: &str, read: impl FnOnce(&str) -> T) -> Arc<T> {
        self.get_if(text, |_| true, read)
    }

    /// What is remembered if it is as `is_wanted` says, else what is read, which takes its place.
    pub fn get_if(
        &self,
        text: &str,
        is_wanted: impl FnOnce(&T) -> bool,
        read: impl FnOnce(&str) -> T,
    ) -> Arc<T> {
        if text.len() > MAX_REMEMBERED {
            return Arc::new(read(text));
        }
        let known = self.lock().get(text);
        if let Some(known) = known.filter(|known| is_wanted(known)) {
            return known;
        }
        let value = Arc::new(read(text));
        self.lock().insert(text.into(), Arc::clone(&value));
        value
    }

    /// How many are remembered.
    #[expect(clippy::len_without_is_empty, reason = "tests count what is stored")]
    pub fn len(&self) -> usize {
        let generations = self.lock();
        generations.young.len() + generations.old.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations<T>> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let memo = Memo::new(2 * (ENTRY + 1));
        let mut reads = 0;
        for text in ["a", "b", "a", "c", "a", "d", "a"] {
            memo.get_or_read(text, |_| reads += 1);
        }
        assert_eq!(reads, 4);
        assert!(memo.len() <= 4);
    }
}
