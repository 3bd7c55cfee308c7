//! Bytes that this replica has in the store.

use std::collections::BTreeMap;

/// Bytes in the store, until they expire there.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// By the last second in which they are there.
    by_expiry: BTreeMap<u64, usize>,
    total: usize,
}

/// What a value takes in the store beside its bytes, about: a key, a seal, and what Redis keeps of both.
pub(crate) const OVERHEAD: usize = 256;

impl Account {
    /// The bytes that have not expired.
    pub(crate) fn used(&mut self, now: u64) -> usize {
        while let Some(first) = self.by_expiry.first_entry()
            && *first.key() < now
        {
            self.total -= first.remove();
        }
        self.total
    }

    pub(crate) fn add(&mut self, expires: u64, bytes: usize) {
        *self.by_expiry.entry(expires).or_default() += bytes;
        self.total += bytes;
    }

    /// Removes bytes that were added, and are not in the store.
    pub(crate) fn remove(&mut self, expires: u64, bytes: usize) {
        if let Some(known) = self.by_expiry.get_mut(&expires) {
            let removed = bytes.min(*known);
            *known -= removed;
            self.total -= removed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_they_expire_or_are_removed() {
        let mut account = Account::default();
        for (expires, bytes) in [(9, 1), (9, 2), (12, 4), (20, 8)] {
            account.add(expires, bytes);
        }
        assert_eq!(account.used(9), 15);
        assert_eq!(account.used(10), 12);
        account.remove(9, 3);
        account.remove(12, 3);
        account.remove(20, 100);
        assert_eq!(account.used(10), 1);
        assert_eq!(account.used(13), 0);
    }
}
