//! Names and seals in the store, under one key of the gateway.

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::ended::{ENDED_ID, SessionKey};
use crate::tallies::{TALLY_RECORD, TallyRecord};

/// What replicas with one key have in a store. Gateways with other keys can use the same store.
pub(crate) struct Namespace {
    key: [u8; 32],
    /// The start of all keys. The braces put them into one slot of a cluster, so that a script may use several.
    pub(crate) prefix: String,
    /// The sorted set of ended sessions, and the channel of those that end now.
    pub(crate) ended: String,
    /// The channel of requests that are cancelled.
    pub(crate) cancelled: String,
    /// The channel of records of tallies.
    pub(crate) tallies: String,
}

/// A member of the set of ended sessions: when the session would have expired, its id, and a seal.
pub(crate) const SEALED: usize = 8 + ENDED_ID + SEAL;
const SEAL: usize = 16;

impl Namespace {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        let tag = hex(&mac(&key, "namespace", &[b""])[..8]);
        let prefix = format!("vary:{{{tag}}}:");
        Self {
            key,
            ended: format!("{prefix}ended"),
            cancelled: format!("{prefix}cancelled"),
            tallies: format!("{prefix}tallies"),
            prefix,
        }
    }

    /// A key for one purpose.
    pub(crate) fn derived(&self, label: &str, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.key, label, parts)
    }

    /// The key of a count with this name.
    pub(crate) fn count(&self, name: &str) -> String {
        let hash = mac(&self.key, "count", &[name.as_bytes()]);
        format!("{}rate:{}", self.prefix, hex(&hash[..16]))
    }

    /// What stands for a variant of a client.
    pub(crate) fn variant_token(&self, client: &str, variant: &str) -> [u8; 32] {
        mac(
            &self.key,
            "variant of",
            &[client.as_bytes(), b"\0", variant.as_bytes()],
        )
    }

    /// The key of the value of a `kind` with this id.
    pub(crate) fn hashed(&self, kind: &str, id: &str) -> String {
        let hash = mac(&self.key, kind, &[id.as_bytes()]);
        format!("{}{kind}:{}", self.prefix, hex(&hash[..16]))
    }

    /// The text of an ended session for the store; the same session has the same text.
    pub(crate) fn seal(&self, session: &SessionKey) -> Vec<u8> {
        let expires = session.expires.to_be_bytes();
        let seal = mac(&self.key, "ended", &[&expires, &session.id]);
        [&expires[..], &session.id, &seal[..SEAL]].concat()
    }

    /// The session of a text in the store; `None` if no replica with this key wrote it.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<SessionKey> {
        let sealed: &[u8; SEALED] = sealed.try_into().ok()?;
        let (expires, others) = sealed.split_first_chunk()?;
        let (id, seal) = others.split_first_chunk()?;
        let whole = keyed(&self.key, "ended", &[expires, id]);
        whole.verify_truncated_left(seal).ok()?;
        Some(SessionKey {
            expires: u64::from_be_bytes(*expires),
            id: *id,
        })
    }
}

impl Namespace {
    /// The message that cancels a request of a session, by the JSON text of its id.
    pub(crate) fn seal_cancelled(&self, session: &SessionKey, request: &str) -> Vec<u8> {
        let expires = session.expires.to_be_bytes();
        let parts = [&expires[..], &session.id, request.as_bytes()];
        let seal = mac(&self.key, "cancelled", &parts);
        [&parts.concat(), &seal[..SEAL]].concat()
    }

    /// The session and the request of such a message; `None` if no replica with this key wrote it.
    pub(crate) fn open_cancelled(&self, sealed: &[u8]) -> Option<(SessionKey, String)> {
        let (text, seal) = sealed.split_last_chunk::<SEAL>()?;
        let whole = keyed(&self.key, "cancelled", &[text]);
        whole.verify_truncated_left(seal).ok()?;
        let (expires, others) = text.split_first_chunk()?;
        let (id, request) = others.split_first_chunk()?;
        let session = SessionKey {
            expires: u64::from_be_bytes(*expires),
            id: *id,
        };
        Some((session, String::from_utf8(request.to_vec()).ok()?))
    }
}

/// A record of a tally with its seal.
pub(crate) const SEALED_RECORD: usize = TALLY_RECORD + SEAL;

impl Namespace {
    /// The key of a tally.
    pub(crate) fn tally(&self, id: u64) -> String {
        let hash = mac(&self.key, "tally", &[&id.to_be_bytes()]);
        format!("{}tally:{}", self.prefix, hex(&hash[..16]))
    }

    /// The record of a tally for the store, which no other tally takes.
    pub(crate) fn seal_record(&self, id: u64, record: &TallyRecord) -> Vec<u8> {
        let seal = mac(&self.key, "record", &[&id.to_be_bytes(), record]);
        [record, &seal[..SEAL]].concat()
    }

    /// The record of a text in the store; `None` if no replica with this key wrote it for this tally.
    pub(crate) fn open_record(&self, id: u64, sealed: &[u8]) -> Option<TallyRecord> {
        let sealed: &[u8; SEALED_RECORD] = sealed.try_into().ok()?;
        let (record, seal) = sealed.split_first_chunk()?;
        let whole = keyed(&self.key, "record", &[&id.to_be_bytes(), record]);
        whole.verify_truncated_left(seal).ok()?;
        Some(*record)
    }

    /// Names a tally in the store at `url` for people and programs that compare it with others.
    pub(crate) fn tally_name(&self, id: u64, url: &str) -> String {
        let hash = mac(&self.key, "name", &[&id.to_be_bytes(), url.as_bytes()]);
        hex(&hash[..8])
    }
}

/// Leaves out the key.
impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({})", self.prefix)
    }
}

fn keyed(key: &[u8; 32], label: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac: Hmac<Sha256> =
        Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(b"vary store v1\0");
    mac.update(label.as_bytes());
    mac.update(b"\0");
    for part in parts {
        mac.update(part);
    }
    mac
}

fn mac(key: &[u8; 32], label: &str, parts: &[&[u8]]) -> [u8; 32] {
    keyed(key, label, parts).finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionKey = SessionKey {
        expires: 1_800_000_000,
        id: [7; ENDED_ID],
    };

    #[test]
    fn a_session_is_opened_by_the_key_that_sealed_it_alone() {
        let namespace = Namespace::new([1; 32]);
        let sealed = namespace.seal(&SESSION);
        assert_eq!(sealed, namespace.seal(&SESSION));
        assert_eq!(namespace.open(&sealed), Some(SESSION));
        assert_eq!(Namespace::new([2; 32]).open(&sealed), None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(namespace.open(&forged), None, "{at}");
        }
        assert_eq!(namespace.open(&sealed[1..]), None);
        assert_eq!(namespace.open(&[&sealed[..], b"x"].concat()), None);
    }

    #[test]
    fn a_cancellation_is_opened_by_the_key_that_sealed_it_alone() {
        let namespace = Namespace::new([1; 32]);
        let sealed = namespace.seal_cancelled(&SESSION, "\"a\"");
        let opened = namespace.open_cancelled(&sealed);
        assert_eq!(opened, Some((SESSION, "\"a\"".to_owned())));
        assert_eq!(Namespace::new([2; 32]).open_cancelled(&sealed), None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(namespace.open_cancelled(&forged), None, "{at}");
        }
        assert_eq!(namespace.open_cancelled(&namespace.seal(&SESSION)), None);
    }

    #[test]
    fn a_record_is_opened_by_the_key_that_sealed_it_for_its_tally_alone() {
        let namespace = Namespace::new([1; 32]);
        let record = [7; TALLY_RECORD];
        let sealed = namespace.seal_record(5, &record);
        assert_eq!(namespace.open_record(5, &sealed), Some(record));
        assert_eq!(namespace.open_record(6, &sealed), None);
        assert_eq!(Namespace::new([2; 32]).open_record(5, &sealed), None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(namespace.open_record(5, &forged), None, "{at}");
        }
        assert_eq!(namespace.open_record(5, &sealed[1..]), None);
        assert_eq!(
            namespace.open_record(5, &[&sealed[..], b"x"].concat()),
            None
        );
    }

    #[test]
    fn names_are_hashed_under_the_key_and_share_a_slot() {
        let (one, two) = (Namespace::new([1; 32]), Namespace::new([2; 32]));
        let names = [one.count("ann"), one.count("bob"), two.count("ann")];
        assert!(names[0] != names[1] && names[0] != names[2]);
        for name in &names[..2] {
            assert!(name.starts_with(&one.prefix) && !name.contains("ann"));
        }
        assert!(one.ended.starts_with(&one.prefix) && one.ended != two.ended);
        assert_eq!(format!("{one:?}"), format!("Namespace({})", one.prefix));
    }
}
