//! One message from replica to replica: encoded, and sealed for one reader.

use bytes::{Buf as _, BufMut as _, Bytes};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::namespace::Namespace;

/// What a frame says of its exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first bytes of a request.
    Open,
    /// The owner reads the request.
    Ack,
    /// More bytes of the request or of its response.
    Data,
    /// So many bytes were read, and as many more may be sent.
    Credit,
    /// The sender has forgotten the exchange.
    Cancel,
    /// The sender lives.
    Ping,
    /// The sender has forgotten all exchanges with the reader.
    Reset,
}

const KINDS: [Kind; 7] = [
    Kind::Open,
    Kind::Ack,
    Kind::Data,
    Kind::Credit,
    Kind::Cancel,
    Kind::Ping,
    Kind::Reset,
];

/// One message of an exchange.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// Whether the owner sends it, not the replica that asks.
    pub(super) is_of_owner: bool,
    /// Whether the request or the response ends with it.
    pub(super) is_last: bool,
    /// The number that the replica that asks has given to the exchange.
    pub(super) exchange: u64,
    /// Its place among the frames of one exchange and sender.
    pub(super) sequence: u32,
    pub(super) payload: Bytes,
}

/// Bytes before the payload.
const HEAD: usize = 14;
/// What a frame without payload counts in a window.
const OVERHEAD: usize = 64;

impl Frame {
    /// A frame that belongs to no exchange.
    pub(super) const fn to_peer(kind: Kind) -> Self {
        Self {
            kind,
            is_of_owner: false,
            is_last: false,
            exchange: 0,
            sequence: 0,
            payload: Bytes::new(),
        }
    }

    /// How much of a window it takes.
    pub(super) const fn cost(&self) -> usize {
        self.payload.len() + OVERHEAD
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len() + AES_256_GCM.tag_len());
        bytes.put_u8(self.kind as u8);
        bytes.put_u8(u8::from(self.is_of_owner) << 1 | u8::from(self.is_last));
        bytes.put_u64(self.exchange);
        bytes.put_u32(self.sequence);
        bytes.put_slice(&self.payload);
        bytes
    }

    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        if bytes.len() < HEAD {
            return None;
        }
        let kind = *KINDS.get(usize::from(bytes.get_u8()))?;
        let flags = bytes.get_u8();
        Some(Self {
            kind,
            is_of_owner: flags & 2 != 0,
            is_last: flags & 1 != 0,
            exchange: bytes.get_u64(),
            sequence: bytes.get_u32(),
            payload: bytes,
        })
    }
}

/// A message that opened: who sent it, and its place among all messages of the sender.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Opened {
    pub(super) from: u64,
    pub(super) count: u64,
    pub(super) frame: Frame,
}

impl Namespace {
    /// The channel of the replica with this tag.
    pub(crate) fn mailbox(&self, tag: u32) -> String {
        format!("{}mailbox:{tag:08x}", self.prefix)
    }

    /// The key for messages of the replica `from` to the one with the tag `to`.
    fn message_key(&self, from: u64, to: u32) -> LessSafeKey {
        let parts: [&[u8]; 2] = [&from.to_be_bytes(), &to.to_be_bytes()];
        let key = self.derived("mailbox", &parts);
        let key = UnboundKey::new(&AES_256_GCM, &key);
        LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("the key has 32 bytes")))
    }

    /// Seals a frame. `count` must be another one for each message of the process: it is the nonce.
    pub(super) fn seal_frame(&self, from: u64, to: u32, count: u64, frame: &Frame) -> Vec<u8> {
        let mut sealed = [from.to_be_bytes(), count.to_be_bytes()].concat();
        let mut text = frame.encode();
        let aad = Aad::from(to.to_be_bytes());
        let key = self.message_key(from, to);
        let added = key.seal_in_place_append_tag(nonce(count), aad, &mut text);
        // It fails only for texts of many gigabytes.
        added.unwrap_or_else(|_| unreachable!("frames are small"));
        sealed.append(&mut text);
        sealed
    }

    /// Opens a message to the replica with the tag `to`; `None` if no replica with this key sealed it.
    pub(super) fn open_frame(&self, to: u32, sealed: &[u8]) -> Option<Opened> {
        let (from, text) = sealed.split_first_chunk()?;
        let (count, text) = text.split_first_chunk()?;
        let from = u64::from_be_bytes(*from);
        let count = u64::from_be_bytes(*count);
        let mut text = text.to_vec();
        let aad = Aad::from(to.to_be_bytes());
        let key = self.message_key(from, to);
        let length = key.open_in_place(nonce(count), aad, &mut text).ok()?.len();
        text.truncate(length);
        let frame = Frame::decode(Bytes::from(text))?;
        Some(Opened { from, count, frame })
    }
}

fn nonce(count: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            is_of_owner: true,
            exchange: 7,
            sequence: 3,
            payload: Bytes::from_static(b"hello"),
            ..Frame::to_peer(Kind::Data)
        }
    }

    #[test]
    fn a_message_opens_at_its_reader_alone_and_as_it_was_sent() {
        let namespace = Namespace::new([1; 32]);
        let sealed = namespace.seal_frame(5, 6, 9, &frame());
        assert!(!sealed.windows(5).any(|part| part == b"hello"));
        let opened = namespace.open_frame(6, &sealed).unwrap();
        let expected = Opened {
            from: 5,
            count: 9,
            frame: frame(),
        };
        assert_eq!(opened, expected);
        assert_eq!(namespace.open_frame(7, &sealed), None);
        assert_eq!(Namespace::new([2; 32]).open_frame(6, &sealed), None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(namespace.open_frame(6, &forged), None, "{at}");
        }
        for length in 0..sealed.len() {
            assert_eq!(namespace.open_frame(6, &sealed[..length]), None);
        }
    }

    #[test]
    fn each_kind_is_read_as_written_and_no_other() {
        for kind in KINDS {
            let frame = Frame { kind, ..frame() };
            assert_eq!(Frame::decode(Bytes::from(frame.encode())), Some(frame));
        }
        assert_eq!(Frame::decode(Bytes::from_static(&[7; HEAD])), None);
        assert_eq!(Frame::decode(Bytes::from_static(&[0; HEAD - 1])), None);
    }
}
