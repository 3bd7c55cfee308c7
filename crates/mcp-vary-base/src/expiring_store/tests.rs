use proptest::prelude::*;

use super::*;

const LIMITS: StoreLimits = StoreLimits {
    entries: 4,
    bytes: 10,
};

fn entry(owner: u64, bytes: usize, expires_at: u64) -> Entry<u64> {
    Entry {
        value: owner,
        owner,
        bytes,
        expires_at,
    }
}

/// The keys that can be read.
fn keys(store: &ExpiringStore<u8, u64>, now: u64) -> Vec<u8> {
    (0..=u8::MAX)
        .filter(|key| store.get(key, now).is_some())
        .collect()
}

#[test]
fn a_store_is_empty_until_it_has_an_entry() {
    let mut store = ExpiringStore::new(LIMITS);
    assert!(store.is_empty());
    store.insert(0, entry(1, 1, 9), 0);
    assert!(!store.is_empty());
    assert_eq!(store.remove(&0), Some(1));
    assert!(store.is_empty());
}

#[test]
fn the_oldest_goes_for_space() {
    let mut store = ExpiringStore::new(LIMITS);
    for key in 0..3 {
        assert!(store.insert(key, entry(u64::from(key), 4, 9), 0));
    }
    assert_eq!(keys(&store, 0), [1, 2]);
    assert_eq!((store.len(), store.bytes()), (2, 8));
    // Reading makes nothing younger.
    assert_eq!(store.get(&1, 0), Some(&1));
    assert!(store.insert(3, entry(3, 3, 9), 0));
    assert_eq!(keys(&store, 0), [2, 3]);
}

#[test]
fn whoever_has_most_makes_room() {
    let mut store = ExpiringStore::new(LIMITS);
    for (key, owner, bytes) in [(0, 7, 2), (1, 8, 3), (2, 8, 3), (3, 9, 4)] {
        assert!(store.insert(key, entry(owner, bytes, 9), 0));
    }
    assert_eq!(keys(&store, 0), [0, 2, 3]);
}

#[test]
fn the_oldest_goes_for_the_number_of_entries() {
    let mut store = ExpiringStore::new(LIMITS);
    for (key, owner) in [(0, 7), (1, 8), (2, 8), (3, 9), (4, 9)] {
        store.insert(key, entry(owner, 0, 9), 0);
    }
    assert_eq!(keys(&store, 0), [1, 2, 3, 4]);
    let own: Vec<_> = store.of_owner(8, 0).map(|(key, _)| *key).collect();
    assert_eq!(own, [1, 2]);
}

#[test]
fn what_has_expired_is_not_read_and_gives_way_first() {
    let mut store = ExpiringStore::new(LIMITS);
    store.insert(0, entry(1, 6, 9), 0);
    store.insert(1, entry(1, 4, 5), 0);
    assert_eq!((keys(&store, 4), keys(&store, 5)), (vec![0, 1], vec![0]));
    assert_eq!(store.get_mut(&1, 4).copied(), Some(1));
    assert_eq!(store.get_mut(&1, 5), None);
    assert_eq!(store.get_mut(&1, 6), None);
    *store.get_mut(&0, 8).unwrap() = 2;
    assert_eq!(store.get(&0, 8), Some(&2));
    assert_eq!(store.of_owner(1, 5).count(), 1);
    assert_eq!(store.len(), 2, "reading removes nothing");
    // The younger one, which has expired, leaves space for another.
    store.insert(2, entry(1, 4, 9), 5);
    assert_eq!(keys(&store, 5), [0, 2]);
    store.sweep(9);
    assert!(store.is_empty() && store.bytes() == 0);
}

#[test]
fn what_is_larger_than_the_store_is_refused() {
    let mut store = ExpiringStore::new(LIMITS);
    store.insert(0, entry(1, 2, 9), 0);
    assert!(!store.insert(1, entry(1, 11, 9), 0));
    assert_eq!(keys(&store, 0), [0]);
    assert!(store.insert(1, entry(1, 10, 9), 0));
    assert_eq!(keys(&store, 0), [1]);
    assert!(!store.set_bytes(&1, 11) && !store.set_bytes(&2, 1));
    assert_eq!(store.bytes(), 10);
    let none = StoreLimits {
        entries: 0,
        ..StoreLimits::UNBOUNDED
    };
    assert!(!ExpiringStore::new(none).insert(1, entry(1, 0, 9), 0));
}

#[test]
fn an_entry_that_grows_takes_the_space_of_older_ones_of_its_owner() {
    let mut store = ExpiringStore::new(LIMITS);
    for (key, owner, bytes) in [(0, 1, 4), (1, 1, 4), (2, 2, 2)] {
        store.insert(key, entry(owner, bytes, 9), 0);
    }
    assert!(store.set_bytes(&1, 6));
    assert_eq!((keys(&store, 0), store.bytes()), (vec![1, 2], 8));
    // The oldest of its owner is itself.
    assert!(store.set_bytes(&1, 9));
    assert_eq!((keys(&store, 0), store.bytes()), (vec![2], 2));
}

#[test]
fn a_replaced_entry_is_the_youngest() {
    let mut store = ExpiringStore::new(LIMITS);
    store.insert(0, entry(1, 4, 9), 0);
    store.insert(1, entry(2, 4, 9), 0);
    store.insert(0, entry(3, 4, 9), 0);
    assert_eq!((store.len(), store.bytes()), (2, 8));
    store.insert(2, entry(4, 4, 9), 0);
    assert_eq!(keys(&store, 0), [0, 2]);
    assert_eq!(store.remove(&0), Some(3));
    assert_eq!((store.remove(&0), store.bytes()), (None, 4));
}

#[derive(Clone, Debug)]
enum Action {
    Insert(u8, u64, usize, u64),
    Grow(u8, usize),
    Remove(u8),
    Sweep,
    Wait(u64),
}

fn action() -> impl Strategy<Value = Action> {
    let insert = (0..8_u8, 0..3_u64, 0..12_usize, 0..6_u64);
    prop_oneof![
        4 => insert.prop_map(|(key, owner, bytes, ttl)| Action::Insert(key, owner, bytes, ttl)),
        1 => (0..8_u8, 0..12_usize).prop_map(|(key, bytes)| Action::Grow(key, bytes)),
        1 => (0..8_u8).prop_map(Action::Remove),
        1 => Just(Action::Sweep),
        1 => (0..4_u64).prop_map(Action::Wait),
    ]
}

/// The index of the oldest entry of the owner who has the most bytes; of several such owners, of the one with the oldest entry.
fn oldest_of_largest(list: &[(u8, Entry<u64>)]) -> usize {
    let of = |owner: u64| {
        list.iter()
            .map(|(_, it)| it)
            .filter(move |it| it.owner == owner)
    };
    let bytes = |owner| of(owner).map(|it| it.bytes).sum::<usize>();
    let most = list.iter().map(|(_, it)| bytes(it.owner)).max().unwrap();
    list.iter()
        .position(|(_, it)| bytes(it.owner) == most)
        .unwrap()
}

proptest! {
    /// The store does what a list does that is searched from its beginning.
    #[test]
    fn it_holds_what_a_plain_list_holds(actions in prop::collection::vec(action(), 0..60)) {
        let mut store = ExpiringStore::new(LIMITS);
        let mut list: Vec<(u8, Entry<u64>)> = Vec::new();
        let mut now = 0;
        for action in actions {
            let bytes = |list: &[(u8, Entry<u64>)]| list.iter().map(|(_, it)| it.bytes).sum::<usize>();
            match action {
                Action::Wait(time) => now += time,
                Action::Sweep => {
                    store.sweep(now);
                    list.retain(|(_, it)| it.expires_at > now);
                }
                Action::Remove(key) => {
                    store.remove(&key);
                    list.retain(|(other, _)| *other != key);
                }
                Action::Grow(key, bytes_of_key) => {
                    store.set_bytes(&key, bytes_of_key);
                    if bytes_of_key <= LIMITS.bytes
                        && let Some((_, it)) = list.iter_mut().find(|(other, _)| *other == key)
                    {
                        it.bytes = bytes_of_key;
                    }
                    while bytes(&list) > LIMITS.bytes {
                        list.remove(oldest_of_largest(&list));
                    }
                }
                Action::Insert(key, owner, bytes_of_key, ttl) => {
                    let new = entry(owner, bytes_of_key, now + ttl);
                    let is_stored = store.insert(key, new.clone(), now);
                    prop_assert_eq!(is_stored, bytes_of_key <= LIMITS.bytes);
                    list.retain(|(other, it)| *other != key && it.expires_at > now);
                    if is_stored {
                        while list.len() >= LIMITS.entries {
                            list.remove(0);
                        }
                        while bytes(&list) + bytes_of_key > LIMITS.bytes {
                            list.remove(oldest_of_largest(&list));
                        }
                        list.push((key, new));
                    }
                }
            }
            let mut expected: Vec<_> = list.iter().filter(|(_, it)| it.expires_at > now).map(|(key, _)| *key).collect();
            expected.sort_unstable();
            prop_assert_eq!(keys(&store, now), expected);
            prop_assert_eq!((store.len(), store.bytes()), (list.len(), bytes(&list)));
            prop_assert!(store.by_age.len() == list.len() && store.by_owner.len() == list.len() && store.by_expiry.len() == list.len());
        }
    }
}
