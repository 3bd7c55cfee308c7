//! A cache of the values that were parsed from texts.

use std::sync::Arc;

use foldhash::quality::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

/// Values by the text that they were parsed from.
///
/// Modern clients send the same capabilities with every request. The cache is bounded in bytes and split into
/// shards with a lock each; a hit takes a read lock on one shard.
#[derive(Debug)]
pub struct Memo<T> {
    // The hash has a random key, so that no client can choose texts that collide.
    cache: Cache<Box<str>, Arc<T>, TextBytes, RandomState>,
}

/// Weighs an entry by its text.
#[derive(Clone, Debug)]
struct TextBytes;

impl<T> Weighter<Box<str>, Arc<T>> for TextBytes {
    fn weight(&self, text: &Box<str>, _: &Arc<T>) -> u64 {
        (text.len() + ENTRY) as u64
    }
}

impl<T> Memo<T> {
    /// A cache of at most twice `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let capacity = 2 * capacity;
        let cache = Cache::with(
            capacity / ENTRY,
            capacity as u64,
            TextBytes,
            RandomState::default(),
            DefaultLifecycle::default(),
        );
        Self { cache }
    }

    /// The cached value for `text`, or else the result of `read`, which is then cached.
    pub fn get_or_read(&self, text: &str, read: impl FnOnce(&str) -> T) -> Arc<T> {
        self.get_if(text, |_| true, read)
    }

    /// The cached value if `is_wanted` returns true for it, or else the result of `read`, which replaces it.
    pub fn get_if(
        &self,
        text: &str,
        is_wanted: impl FnOnce(&T) -> bool,
        read: impl FnOnce(&str) -> T,
    ) -> Arc<T> {
        if text.len() > MAX_REMEMBERED {
            return Arc::new(read(text));
        }
        let known = self.cache.get(text);
        if let Some(known) = known.filter(|known| is_wanted(known)) {
            return known;
        }
        let value = Arc::new(read(text));
        self.cache.insert(text.into(), Arc::clone(&value));
        value
    }

    /// The number of cached values.
    #[expect(clippy::len_without_is_empty, reason = "tests count what is stored")]
    pub fn len(&self) -> usize {
        self.cache.len()
    }
}

/// Longer texts are parsed each time.
const MAX_REMEMBERED: usize = 8 << 10;

/// The approximate cost of an entry besides its text, in bytes.
const ENTRY: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_count_by_their_length() {
        let memo = Memo::new(16 * ENTRY);
        for text in 'a'..='z' {
            memo.get_or_read(&text.to_string().repeat(MAX_REMEMBERED), |_| ());
        }
        // Twice 16 KiB have room for three texts of 8 KiB with their entries, and for many short ones.
        assert!(memo.len() <= 3, "{}", memo.len());
        for text in 'a'..='z' {
            memo.get_or_read(&text.to_string(), |_| ());
        }
        assert!((10..=32).contains(&memo.len()), "{}", memo.len());
    }

    #[test]
    fn a_text_of_more_than_8_kib_is_read_each_time() {
        let memo = Memo::new(64 * ENTRY);
        for (length, expected) in [(MAX_REMEMBERED, 1), (MAX_REMEMBERED + 1, 2)] {
            let text = "a".repeat(length);
            let mut reads = 0;
            for _ in 0..2 {
                memo.get_or_read(&text, |_| reads += 1);
            }
            assert_eq!(reads, expected, "{length}");
        }
    }

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
