//! The table of tokens: the rank of each, found by its bytes.

use miniz_oxide::inflate::decompress_to_vec;

/// The tokens of an encoding, by rank.
#[derive(Debug)]
pub(crate) struct Table {
    bytes: Vec<u8>,
    /// Where the token of each rank ends in `bytes`. It begins where the one before ends.
    ends: Vec<usize>,
    /// A hash table of ranks, with open addressing. Its length is a power of two, and at least half of it is [`EMPTY`].
    slots: Vec<u32>,
}

impl Table {
    /// Reads a file of `examples/table.rs`: compressed, the length of each token in one byte, then the bytes of all.
    pub(crate) fn new(file: &[u8], tokens: usize) -> Self {
        let mut lengths = decompress_to_vec(file).expect("the file is a constant");
        let mut table = Self {
            bytes: lengths.split_off(tokens),
            ends: Vec::with_capacity(tokens),
            slots: vec![EMPTY; (tokens * 2).next_power_of_two()],
        };
        let mut end = 0;
        for (length, rank) in lengths.iter().zip(0..) {
            let start = end;
            end += usize::from(*length);
            table.ends.push(end);
            let slot = table.slot(&table.bytes[start..end]);
            table.slots[slot] = rank;
        }
        table
    }

    /// The rank of a token; `None` if these bytes are not one.
    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        Some(self.slots[self.slot(token)]).filter(|rank| *rank != EMPTY)
    }

    /// The slot that has `token`, or the empty one that would get it.
    fn slot(&self, token: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(token) & mask;
        while self.slots[slot] != EMPTY && self.token(self.slots[slot]) != token {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn token(&self, rank: u32) -> &[u8] {
        let index = rank as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// The table is always the same, so nobody can choose tokens that collide.
fn hash(token: &[u8]) -> usize {
    let mixed = token.iter().fold(0, |hash: u64, byte| {
        (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    (mixed >> 32) as usize
}

const EMPTY: u32 = u32::MAX;
