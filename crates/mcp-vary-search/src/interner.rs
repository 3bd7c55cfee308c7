//! Texts by number, with a value for each.

use std::sync::Arc;

use foldhash::quality::RandomState;
use indexmap::IndexMap;

/// A table of texts. A number is used again after its text was removed, so the table is as large as what it contains.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    numbers: IndexMap<Arc<str>, u32, RandomState>,
    entries: Vec<(Arc<str>, T)>,
    free: Vec<u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            numbers: IndexMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Default> Interner<T> {
    /// The number of `text`, if the table has it.
    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The number of `text`, which is added if the table does not have it.
    pub(crate) fn insert(&mut self, text: &str) -> u32 {
        if let Some(number) = self.number(text) {
            return number;
        }
        let shared: Arc<str> = text.into();
        let entry = (Arc::clone(&shared), T::default());
        let reused = self.free.pop();
        let slot = reused.and_then(|number| self.entries.get_mut(number as usize));
        let number = match (reused, slot) {
            (Some(number), Some(slot)) => {
                *slot = entry;
                number
            }
            _ => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.numbers.insert(shared, number);
        number
    }

    /// Removes the text of this number.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some((text, value)) = self.entries.get_mut(number as usize) else {
            return;
        };
        *value = T::default();
        if self.numbers.swap_remove(text).is_some() {
            *text = Arc::from("");
            self.free.push(number);
        }
    }

    pub(crate) fn value(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize).map(|(_, value)| value)
    }

    pub(crate) fn value_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries
            .get_mut(number as usize)
            .map(|(_, value)| value)
    }

    /// One more than the highest number.
    pub(crate) fn bound(&self) -> usize {
        self.entries.len()
    }

    /// The memory of the table in bytes, without what the values own.
    pub(crate) fn memory(&self) -> usize {
        let texts: usize = self.numbers.keys().map(|text| text.len() + ARC).sum();
        let entry = size_of::<(Arc<str>, T)>();
        let number = size_of::<(Arc<str>, u32)>() + HASH_AND_SLOT;
        texts + self.entries.capacity() * entry + self.numbers.capacity() * number
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }
}

/// The counters of an `Arc`.
const ARC: usize = 16;
/// What an `IndexMap` stores besides an entry: its hash, and its index at a load of a half to seven eighths.
const HASH_AND_SLOT: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again() {
        let mut table = Interner::<u8>::default();
        let found = [table.insert("a"), table.insert("b"), table.insert("a")];
        assert_eq!(found, [0, 1, 0]);
        table.remove(0);
        table.remove(0);
        assert_eq!(table.number("a"), None);
        assert_eq!([table.insert("c"), table.insert("a")], [0, 2]);
        assert_eq!(table.bound(), 3);
    }
}
