//! Cursors for lists: where a client stopped reading, so that it can continue even if the list has changed.
//!
//! A page ends between two items. Its cursor names items before that position: each of the last few, then fewer and
//! fewer, back to the beginning. The client continues after the nearest of them that still exists.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::item::ItemRef;

/// A short fingerprint for each item of a list, independent of the item's position.
///
/// # Properties
///
/// Within a list, each item has its own fingerprint, even if two items have the same name. An item keeps its
/// fingerprint when other items are added or removed, when its description changes, and when another replica lists it.
#[derive(Debug, Default)]
pub struct CursorIndex {
    fingerprints: Vec<Fingerprint>,
    /// The position of each fingerprint. Only needed after the list has changed.
    positions: OnceLock<BTreeMap<Fingerprint, usize>>,
}

/// In about one of 200 lists with 100,000 items, two items have the same fingerprint. At worst, a page is then repeated
/// or skipped.
type Fingerprint = [u8; 5];

impl CursorIndex {
    /// Computes the fingerprints of items from the name of each item's server and its name there.
    pub fn new<'a>(items: impl Iterator<Item = (&'a str, &'a ItemRef)>) -> Self {
        let mut times: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let marks = items.map(|(server, place)| {
            let time = times.entry((server, &place.upstream_name)).or_default();
            *time += 1;
            fingerprint(server, &place.upstream_name, *time)
        });
        Self {
            fingerprints: marks.collect(),
            positions: OnceLock::new(),
        }
    }

    /// The cursor of the page that starts at the item `next`.
    pub fn cursor_at(&self, next: usize) -> String {
        let position = next.min(self.fingerprints.len());
        let marks: Vec<u8> = reference_positions(position)
            .flat_map(|at| self.fingerprints[at])
            .collect();
        format!("{position}.{}", URL_SAFE_NO_PAD.encode(marks))
    }

    /// The index of the item to continue with, or `None` if `cursor` is invalid.
    ///
    /// # Properties
    ///
    /// As long as the remaining items keep their order, no item after the cursor is skipped. Items are repeated only if
    /// the last four items before the cursor were removed.
    pub fn position(&self, cursor: &str) -> Option<usize> {
        let (next, marks) = cursor.split_once('.')?;
        let position: usize = next.parse().ok()?;
        let marks = URL_SAFE_NO_PAD.decode(marks).ok()?;
        let (marks, []) = marks.as_chunks::<FINGERPRINT_BYTES>() else {
            return None;
        };
        let Some(last) = marks.first() else {
            return (position == 0).then_some(0);
        };
        let before = position.checked_sub(1)?;
        if self.fingerprints.get(before) == Some(last) {
            return Some(position);
        }
        let positions = self.positions.get_or_init(|| {
            let marks = self.fingerprints.iter().copied().enumerate();
            marks.map(|(at, mark)| (mark, at)).collect()
        });
        let nearest = marks.iter().find_map(|mark| positions.get(mark));
        Some(nearest.map_or(0, |at| at + 1))
    }
}

/// The indices of the items that the cursor at `next` names, nearest first.
fn reference_positions(next: usize) -> impl Iterator<Item = usize> {
    let near = 1..=ADJACENT;
    let far = std::iter::successors(Some(2 * ADJACENT), |back| back.checked_mul(2));
    near.chain(far)
        .map_while(move |back| next.checked_sub(back))
}

/// How many consecutive items before the cursor are named.
const ADJACENT: usize = 4;
const FINGERPRINT_BYTES: usize = size_of::<Fingerprint>();

fn fingerprint(server: &str, upstream_name: &str, time: u32) -> Fingerprint {
    let mut digest = Sha256::new();
    for part in [server, upstream_name] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.update(time.to_be_bytes());
    let mut mark = [0; FINGERPRINT_BYTES];
    mark.copy_from_slice(&digest.finalize()[..FINGERPRINT_BYTES]);
    mark
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::index::ServerIndex;

    /// Items by server and name; `a0` is the item `0` of the server `a`.
    fn marks(items: &[(u8, u8)]) -> CursorIndex {
        let places: Vec<_> = items
            .iter()
            .map(|(server, item)| {
                let place = ItemRef {
                    server: ServerIndex::at(usize::from(*server)),
                    upstream_name: item.to_string().into(),
                };
                (server.to_string(), place)
            })
            .collect();
        CursorIndex::new(places.iter().map(|(server, place)| (&**server, place)))
    }

    /// What a client reads page by page of a list that `list` tells for each page, by its number and by what
    /// was read last.
    fn read(size: usize, list: impl Fn(usize, Option<(u8, u8)>) -> Vec<(u8, u8)>) -> Vec<(u8, u8)> {
        let (mut read, mut next) = (Vec::new(), None);
        for turn in 0.. {
            let list = list(turn, read.last().copied());
            let marks = marks(&list);
            let first = next.map_or(0, |cursor: String| marks.position(&cursor).unwrap());
            let last = (first + size).min(list.len());
            read.extend(&list[first..last]);
            if last == list.len() {
                break;
            }
            next = Some(marks.cursor_at(last));
        }
        read
    }

    fn both(one: &[(u8, u8)], other: &[(u8, u8)]) -> Vec<(u8, u8)> {
        let all: BTreeSet<_> = one.iter().chain(other).copied().collect();
        all.into_iter().collect()
    }

    fn items() -> impl Strategy<Value = Vec<(u8, u8)>> {
        let list = prop::collection::btree_set((0..3_u8, 0..40_u8), 0..40);
        list.prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        /// SV-13: whatever comes and goes between two pages, nothing that stays is skipped.
        #[test]
        fn what_stays_is_read(
            size in 1..6_usize,
            lists in prop::collection::vec(items(), 1..12),
            stays in items(),
        ) {
            let read = read(size, |turn, _| both(&lists[turn.min(lists.len() - 1)], &stays));
            for item in &stays {
                prop_assert!(read.contains(item), "{item:?} is missing in {read:?}");
            }
        }

        /// SV-13: as long as what was read last stays, nothing is read twice.
        #[test]
        fn nothing_is_read_twice(size in 1..6_usize, lists in prop::collection::vec(items(), 1..12)) {
            let read = read(size, |turn, last| {
                let last: Vec<_> = last.into_iter().collect();
                both(&lists[turn.min(lists.len() - 1)], &last)
            });
            let different: BTreeSet<_> = read.iter().collect();
            prop_assert_eq!(different.len(), read.len(), "{:?}", read);
        }

        /// No text makes it panic, and only a place in the list is found.
        #[test]
        fn a_bookmark_is_read_or_refused(text in ".{0,40}|[0-9]{1,22}\\.[A-Za-z0-9_-]{0,30}", list in items()) {
            let found = marks(&list).position(&text);
            prop_assert!(found.is_none_or(|at| at <= list.len()));
        }
    }

    #[test]
    fn items_of_one_name_are_told_apart() {
        let twice = [(0, 1), (0, 1), (0, 1), (1, 1)];
        assert_eq!(read(1, |_, _| twice.to_vec()), twice);
    }

    /// Only what stood last tells where a client was; without it what is near does.
    #[test]
    fn what_is_gone_repeats_as_little_as_it_can() {
        let all: Vec<(u8, u8)> = (0..40).map(|item| (0, item)).collect();
        let cursor = marks(&all).cursor_at(20);
        let without = |gone: std::ops::Range<u8>| {
            let rest = all.iter().filter(|(_, item)| !gone.contains(item)).copied();
            let rest: Vec<_> = rest.collect();
            rest.get(marks(&rest).position(&cursor).unwrap())
                .map(|(_, item)| *item)
        };
        assert_eq!(without(50..60), Some(20));
        assert_eq!(without(0..19), Some(20));
        assert_eq!(without(19..20), Some(20));
        assert_eq!(without(17..23), Some(23));
        assert_eq!(
            without(16..20),
            Some(13),
            "the eighth before is the nearest that is left"
        );
        assert_eq!(without(5..40), None, "the fifth is a landmark");
        assert_eq!(without(0..20), Some(20), "nothing that was read is left");
    }

    /// As when a page had no room for the first item.
    #[test]
    fn a_cursor_without_fingerprints_is_at_the_beginning() {
        let list = marks(&[(0, 1), (0, 2)]);
        assert_eq!(list.cursor_at(0), "0.");
        assert_eq!(list.position("0."), Some(0));
        assert_eq!(list.position("1."), None);
    }

    #[test]
    fn a_bookmark_is_short() {
        let all: Vec<(u8, u8)> = (0..200).map(|item| (0, item)).collect();
        assert_eq!(marks(&all).cursor_at(150).len(), "150.".len() + 60);
    }
}
