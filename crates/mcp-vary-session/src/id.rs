//! The content of a session id: `base64url(HMAC-SHA256 || JSON)`.
//!
//! The JSON starts with what `initialize` negotiated, which many sessions share, and ends with the session's own part:
//! expiry and nonce. The shared parts are parsed once.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use mcp_vary::feature::{self, Features};
use mcp_vary_audit::ClientInfo;
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_store::{ENDED_ID, SessionKey};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::revision::Revision;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::client_uses::info_of;
use crate::negotiated::{BASE_CLASS, Negotiated, ServerVisibility};

/// The parts that sessions with the same negotiation share.
#[derive(Debug)]
pub(super) struct SharedNegotiation {
    pub(super) negotiated: Arc<Negotiated>,
    /// Its client, for records of its requests.
    pub(super) client_info: Option<Arc<ClientInfo>>,
    pub(super) views: ArcSwapOption<VariantOrder>,
    pub(super) visibility: Arc<dyn ServerVisibility>,
    /// The letters of their ids after the seal, as far as they are the same.
    letters: Box<str>,
}

/// The variants of a session as views of one configuration.
#[derive(Debug)]
pub(super) struct VariantOrder {
    /// The generation of the configuration.
    pub(super) number: u64,
    /// `None` if one was removed.
    pub(super) order: Option<Arc<[VariantIndex]>>,
}

/// The session's own part.
#[derive(Debug)]
pub(super) struct SessionTail {
    /// Seconds since 1970-01-01 UTC.
    pub(super) expires: u64,
    pub(super) nonce: Nonce,
    /// The last letters of its id.
    letters: Box<str>,
}

/// Distinguishes sessions with the same negotiation and expiry.
pub(super) type Nonce = [u8; 16];

/// The letters of the HMAC at the start of an id, and of the brace after it. No two sessions share them.
pub(super) type Seal = [u8; SEAL_LENGTH];

const SEAL_LENGTH: usize = (MAC_LENGTH + 1) / 3 * 4;
const MAC_LENGTH: usize = 32;
/// The header that carries an id must stay far below common header limits.
const MAX_ID: usize = 2048;
const MAX_BYTES: usize = MAX_ID / 4 * 3;
const LABEL: &[u8] = b"vary session v1\0";
/// Bytes of the shared parts that are remembered. Others are stored per session.
const NEGOTIATIONS_MEMORY: usize = 4 << 20;

/// An id that was not checked yet.
#[derive(Clone, Copy)]
pub(super) struct SplitId<'a> {
    pub(super) seal: &'a Seal,
    tail: &'a [u8],
    whole: &'a str,
}

impl<'a> SplitId<'a> {
    /// `None` when it is too short or too long for an id.
    pub(super) fn read(id: &'a str) -> Option<Self> {
        let (seal, tail_letters) = id.as_bytes().split_first_chunk()?;
        (id.len() <= MAX_ID).then_some(Self {
            seal,
            tail: tail_letters,
            whole: id,
        })
    }

    /// Whether this is the complete id of the session with this seal.
    pub(super) fn is(&self, shared: &SharedNegotiation, tail: &SessionTail) -> bool {
        let tail_letters = self.tail.strip_prefix(shared.letters.as_bytes());
        tail_letters == Some(tail.letters.as_bytes())
    }
}

/// The first part of the JSON. Short names, since it travels with every request.
#[derive(Deserialize, Serialize)]
struct SealedNegotiation {
    r: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    f: Option<Vec<String>>,
    o: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<String>,
    /// Name and version of the client.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    i: Option<[String; 2]>,
    /// The id of the principal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<String>,
    /// Whether it declared server variants.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    v: Option<bool>,
    /// Why the first variant is its default, unless the client's hints ranked it first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    w: Option<String>,
}

/// The last part of the JSON.
#[derive(Deserialize, Serialize)]
struct SealedTail {
    e: u64,
    n: Nonce,
}

/// Where the last part begins. Only numbers follow, so that the last occurrence is the right one.
const SEPARATOR: &str = ",\"e\":";

impl SharedNegotiation {
    pub(super) fn of(fixed: Negotiated, visibility: Arc<dyn ServerVisibility>) -> Self {
        Self {
            client_info: info_of(&fixed.client),
            negotiated: Arc::new(fixed),
            views: ArcSwapOption::empty(),
            visibility,
            letters: Box::default(),
        }
    }

    fn read(text: &str, visibility: &Arc<dyn ServerVisibility>) -> Option<Self> {
        let beginning: SealedNegotiation = serde_json::from_str(&format!("{text}}}")).ok()?;
        let fixed = Negotiated {
            revision: Revision::parse(&beginning.r)?,
            features: beginning
                .f
                .map(|tags| Arc::new(Features::from_tags(tags.iter().map(String::as_str)).0)),
            order: beginning.o,
            declares_variants: beginning.v == Some(true),
            reason: beginning
                .w
                .as_deref()
                .map(VariantReason::open)
                .unwrap_or_default(),
            principal: match beginning.p {
                Some(id) => Some(id.parse().ok()?),
                None => None,
            },
            class: beginning.c.map_or_else(|| BASE_CLASS.into(), Arc::from),
            client: beginning
                .i
                .map_or_else(ClientName::default, |[name, version]| ClientName {
                    name,
                    version,
                }),
        };
        // The brace is in the seal; then every three bytes are four letters.
        let (groups, _) = text.as_bytes().get(1..)?.as_chunks::<3>();
        Some(Self {
            letters: URL_SAFE_NO_PAD.encode(groups.as_flattened()).into(),
            ..Self::of(fixed, Arc::clone(visibility))
        })
    }
}

impl SessionTail {
    /// For a session without an id.
    pub(super) fn unnamed() -> Self {
        Self {
            expires: u64::MAX,
            nonce: Nonce::default(),
            letters: Box::default(),
        }
    }

    /// What replicas need to know of the session with this seal when it has ended.
    pub(super) fn ended(&self, seal: &Seal) -> SessionKey {
        let mut id = [0; ENDED_ID];
        let (nonce, letters) = id.split_at_mut(self.nonce.len());
        nonce.copy_from_slice(&self.nonce);
        letters.copy_from_slice(seal);
        SessionKey {
            expires: self.expires,
            id,
        }
    }

    /// The session that has ended, with its seal.
    pub(super) fn of_ended(ended: &SessionKey) -> Option<(Self, Seal)> {
        let (nonce, seal) = ended.id.split_first_chunk()?;
        let tail = Self {
            expires: ended.expires,
            nonce: *nonce,
            letters: Box::default(),
        };
        Some((tail, seal.try_into().ok()?))
    }

    /// The client of the session, the same wherever and however often the id is opened.
    pub(super) fn client(&self) -> ClientId {
        let (half, _) = self.nonce.as_chunks::<8>();
        // Clients without a session are counted from less than 1 << 62, and never get that far.
        ClientId::from_be_bytes(half[0]) | 1 << 63
    }

    /// The tag of the replica that has opened the session.
    pub(super) fn replica(&self) -> u32 {
        let (parts, _) = self.nonce.as_chunks::<4>();
        u32::from_be_bytes(parts[2])
    }

    fn of(ending: &SealedTail, shared: &SharedNegotiation, id: &str) -> Self {
        let letters = id.get(SEAL_LENGTH + shared.letters.len()..);
        Self {
            expires: ending.e,
            nonce: ending.n,
            letters: letters.unwrap_or_default().into(),
        }
    }
}

/// The keys that seal and open ids, and the recent shared parts.
pub(super) struct SessionKeys {
    /// The first one seals, all of them open.
    keys: Vec<[u8; 32]>,
    shared: Memo<Option<Arc<SharedNegotiation>>>,
    visibility: Arc<dyn ServerVisibility>,
}

impl SessionKeys {
    pub(super) fn new(keys: Vec<[u8; 32]>, visibility: Arc<dyn ServerVisibility>) -> Self {
        Self {
            keys,
            visibility,
            shared: Memo::new(NEGOTIATIONS_MEMORY),
        }
    }

    /// Seals an id. The session has only what the id holds, here and wherever it is opened next.
    pub(super) fn seal(
        &self,
        fixed: Negotiated,
        expires: u64,
        nonce: Nonce,
    ) -> (String, Arc<SharedNegotiation>, SessionTail) {
        let ending = SealedTail {
            e: expires,
            n: nonce,
        };
        let json = serde_json::to_string(&ending).unwrap_or_default();
        let end = json.replacen('{', ",", 1);
        let begin = negotiation_text(&fixed, MAX_BYTES - MAC_LENGTH - end.len());
        let payload = format!("{begin}{end}");
        let mac = mac(&self.keys[0], payload.as_bytes()).finalize();
        let id = URL_SAFE_NO_PAD.encode([&mac.into_bytes()[..], payload.as_bytes()].concat());
        let known = self.shared_negotiation(&begin);
        let shared = known.unwrap_or_else(|| Arc::new(self.unsealed(fixed)));
        let tail = SessionTail::of(&ending, &shared, &id);
        (id, shared, tail)
    }

    /// Opens an id; `None` when none of the keys sealed it.
    pub(super) fn open(&self, id: SplitId<'_>) -> Option<(Arc<SharedNegotiation>, SessionTail)> {
        // Base64 without padding has one spelling for each value.
        let bytes = URL_SAFE_NO_PAD.decode(id.whole).ok()?;
        let (mac_of_id, payload) = bytes.split_at_checked(MAC_LENGTH)?;
        let genuine = |key| mac(key, payload).verify_slice(mac_of_id).is_ok();
        if !self.keys.iter().any(genuine) {
            return None;
        }
        let payload = std::str::from_utf8(payload).ok()?;
        let (begin, end) = payload.split_at_checked(payload.rfind(SEPARATOR)?)?;
        let shared = self.shared_negotiation(begin)?;
        let ending = serde_json::from_str(&end.replacen(',', "{", 1)).ok()?;
        let tail = SessionTail::of(&ending, &shared, id.whole);
        Some((shared, tail))
    }

    /// What a session without an id has in common with nobody.
    pub(super) fn unsealed(&self, fixed: Negotiated) -> SharedNegotiation {
        SharedNegotiation::of(fixed, Arc::clone(&self.visibility))
    }

    fn shared_negotiation(&self, text: &str) -> Option<Arc<SharedNegotiation>> {
        let read = |text: &str| SharedNegotiation::read(text, &self.visibility).map(Arc::new);
        Option::clone(&self.shared.get_or_read(text, read))
    }
}

/// The sealed text of the negotiation, at most `limit` bytes: a JSON object without its closing brace.
fn negotiation_text(fixed: &Negotiated, limit: usize) -> String {
    let client = &fixed.client;
    let mut beginning = SealedNegotiation {
        r: fixed.revision.as_str().to_owned(),
        f: fixed.features.as_deref().map(tags_by_weight),
        o: fixed.order.clone(),
        c: (*fixed.class != *BASE_CLASS).then(|| fixed.class.to_string()),
        i: (!client.is_empty()).then(|| [client.name.clone(), client.version.clone()]),
        p: fixed.principal.map(|id| id.to_string()),
        v: fixed.declares_variants.then_some(true),
        w: (fixed.reason != VariantReason::default()).then(|| fixed.reason.seal()),
    };
    loop {
        let mut text = serde_json::to_string(&beginning).unwrap_or_default();
        text.pop();
        if text.len() <= limit || !beginning.shorten() {
            return text;
        }
    }
}

impl SealedNegotiation {
    /// Removes the least important part. Returns whether there was one.
    fn shorten(&mut self) -> bool {
        // The client's name is used for counting only.
        if self.i.take().is_some() {
            return true;
        }
        // Tags without an effect of their own come last and are removed first.
        let tag = self.f.as_mut().and_then(Vec::pop);
        // The first variant is the session's default; the others only appear in error messages.
        tag.is_some() || (self.o.len() > 1 && self.o.pop().is_some()) || self.w.take().is_some()
    }
}

fn mac(key: &[u8; 32], payload: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(key);
    mac.update(LABEL);
    mac.update(payload);
    mac
}

/// An HMAC under `key`. Keys of any length are valid, so this cannot fail.
pub fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

/// The tags, those with a registered effect first.
fn tags_by_weight(features: &Features) -> Vec<String> {
    let mut tags: Vec<_> = features.tags().collect();
    tags.sort_by_key(|tag| !feature::is_registered(tag));
    tags.into_iter().map(ToString::to_string).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use mcp_vary_access::{Claims, Principal};
    use mcp_vary_catalog::selection::variant_selection::DecidedBy;
    use proptest::prelude::*;

    use super::*;

    /// Hides no server.
    #[derive(Debug)]
    pub(crate) struct AllServers;

    impl ServerVisibility for AllServers {
        fn may_know(&self, _: ClientId, _: &str) -> bool {
            true
        }

        fn may_know_tool(&self, _: ClientId, _: &str, _: &str) -> bool {
            true
        }
    }

    pub(crate) fn fixed(tags: &[String]) -> Negotiated {
        let tags = tags.iter().map(String::as_str);
        Negotiated {
            revision: Revision::V2025_06_18,
            features: Some(Arc::new(Features::from_tags(tags).0)),
            order: vec!["compact".to_owned(), "standard".to_owned()],
            declares_variants: false,
            class: BASE_CLASS.into(),
            client: ClientName::default(),
            principal: None,
            reason: VariantReason::default(),
        }
    }

    fn keys() -> SessionKeys {
        SessionKeys::new(vec![[1; 32], [2; 32]], Arc::new(AllServers))
    }

    fn seal(fixed: Negotiated) -> (String, Arc<SharedNegotiation>, SessionTail) {
        keys().seal(fixed, 1_000, [7; 16])
    }

    fn open(keys: &SessionKeys, id: &str) -> Option<(Arc<SharedNegotiation>, SessionTail)> {
        keys.open(SplitId::read(id)?)
    }

    pub(crate) fn tail(expires: u64, nonce: Nonce) -> SessionTail {
        SessionTail {
            expires,
            nonce,
            letters: Box::default(),
        }
    }

    /// The JSON that an id seals.
    fn json(id: &str) -> String {
        let bytes = URL_SAFE_NO_PAD.decode(id).unwrap();
        String::from_utf8(bytes[MAC_LENGTH..].to_vec()).unwrap()
    }

    proptest! {
        /// CN-18: an id opens to what it sealed, and is short whatever was declared.
        #[test]
        fn an_id_opens_to_what_it_sealed(
            tags in proptest::collection::vec("[a-z]{1,6}(=[ -~]{0,120})?", 0..80),
            class in "\\{[ -~]{0,510}\\}",
            expires: u64,
            nonce: Nonce,
        ) {
            let fixed = Negotiated { class: class.as_str().into(), ..fixed(&tags) };
            let (id, shared, tail) = keys().seal(fixed.clone(), expires, nonce);
            prop_assert!(id.len() <= MAX_ID);
            let read = SplitId::read(&id).unwrap();
            prop_assert!(read.is(&shared, &tail));
            let (opened, opened_own) = open(&keys(), &id).unwrap();
            prop_assert!(read.is(&opened, &opened_own));
            prop_assert_eq!(&opened.negotiated.features, &shared.negotiated.features);
            prop_assert_eq!(&opened.negotiated.order, &fixed.order);
            prop_assert_eq!(&*opened.negotiated.class, class.as_str());
            prop_assert_eq!(opened.negotiated.revision, Revision::V2025_06_18);
            prop_assert_eq!((opened_own.expires, opened_own.nonce), (expires, nonce));
        }

        /// Nothing else opens: no random bytes, and no id with a changed byte; and no such id is taken for the session
        /// that it resembles.
        #[test]
        fn nothing_else_opens(text in ".{0,300}", at in any::<prop::sample::Index>(), by in 1u8..64) {
            prop_assert!(open(&keys(), &text).is_none());
            let (id, shared, tail) = seal(fixed(&[]));
            let mut bytes = URL_SAFE_NO_PAD.decode(&id).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            let forged = URL_SAFE_NO_PAD.encode(bytes);
            prop_assert!(open(&keys(), &forged).is_none());
            let (read, genuine) = (SplitId::read(&forged).unwrap(), SplitId::read(&id).unwrap());
            prop_assert!(genuine.is(&shared, &tail));
            prop_assert!(read.seal != genuine.seal || !read.is(&shared, &tail));
        }
    }

    /// An id has one spelling: with other bits in its last letter it is invalid.
    #[test]
    fn an_id_is_spelled_in_one_way() {
        let (id, _, _) = keys().seal(fixed(&[]), 10, [7; 16]);
        let others = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9');
        let opened = others.filter(|last| {
            let other = format!("{}{}", &id[..id.len() - 1], *last as char);
            open(&keys(), &other).is_some()
        });
        assert_eq!(opened.count(), 1, "{id}");
    }

    #[test]
    fn sessions_that_agreed_on_the_same_share_it() {
        let keys = keys();
        let (one, first, _) = keys.seal(fixed(&[]), 1, [1; 16]);
        let (_, second, _) = keys.seal(fixed(&[]), 2, [2; 16]);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&first, &open(&keys, &one).unwrap().0));
        let (_, other, _) = keys.seal(fixed(&["agent".to_owned()]), 1, [1; 16]);
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn a_class_is_sealed_unless_it_is_empty() {
        let (id, _, _) = seal(fixed(&[]));
        assert_eq!(
            json(&id),
            r#"{"r":"2025-06-18","f":[],"o":["compact","standard"],"e":1000,"n":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]}"#
        );
        let class = r#"{"sampling":{}}"#;
        let fixed = Negotiated {
            class: class.into(),
            ..fixed(&[])
        };
        let (id, _, _) = seal(fixed);
        assert!(json(&id).contains(r#","c":"{\"sampling\":{}}","e":1000,"#));
    }

    #[test]
    fn the_principal_is_sealed_as_its_id() {
        let ann = Principal::token("https://idp.example", "ann", Claims::default()).unwrap();
        let fixed = Negotiated {
            principal: Some(ann.id()),
            ..fixed(&[])
        };
        let (id, _, _) = seal(fixed);
        let sealed = json(&id);
        assert!(
            sealed.contains(&format!(r#","p":"{}","e":1000,"#, ann.id())),
            "{sealed}"
        );
        assert!(!sealed.contains("ann"), "{sealed}");
        let (shared, _) = open(&keys(), &id).unwrap();
        assert_eq!(shared.negotiated.principal, Some(ann.id()));
    }

    #[test]
    fn whether_a_client_declares_variants_is_sealed() {
        let fixed = Negotiated {
            declares_variants: true,
            ..fixed(&[])
        };
        let (id, _, _) = seal(fixed);
        assert!(json(&id).contains(r#","v":true,"#));
        let (shared, _) = open(&keys(), &id).unwrap();
        assert!(shared.negotiated.declares_variants);
    }

    /// SV-22: also if the declarations of the client leave little room.
    #[test]
    fn why_a_session_has_its_variant_is_sealed() {
        let reason = VariantReason::new(DecidedBy::Experiment, Some("words".into()));
        let fixed = Negotiated {
            reason: reason.clone(),
            ..fixed(&vec!["x=y".repeat(30); 64])
        };
        let (id, _, _) = seal(fixed);
        assert!(json(&id).contains(r#","w":"experiment words","e":1000,"#));
        let (shared, _) = open(&keys(), &id).unwrap();
        assert_eq!(shared.negotiated.reason, reason);
    }

    /// The longest class, of characters that JSON writes as two, leaves room for all tags with an effect.
    #[test]
    fn the_longest_class_leaves_room_for_tags_with_an_effect() {
        let mut tags: Vec<_> = (0..62)
            .map(|n| format!("x{n}={}", "y".repeat(110)))
            .collect();
        tags.extend(["format=json", "agent"].map(str::to_owned));
        let class = format!("{{{}}}", "\"".repeat(510));
        let fixed = Negotiated {
            class: class.as_str().into(),
            ..fixed(&tags)
        };
        let (id, shared, _) = seal(fixed);
        assert!(id.len() <= MAX_ID);
        let features = shared.negotiated.features.as_ref().unwrap();
        let kept: Vec<_> = features.tags().map(ToString::to_string).collect();
        assert!(
            ["format=json", "agent"]
                .iter()
                .all(|tag| kept.contains(&(*tag).to_owned()))
        );
        assert_eq!(
            (shared.negotiated.order.len(), &*shared.negotiated.class),
            (2, &*class)
        );
    }

    #[test]
    fn an_earlier_key_still_opens() {
        let sealed_with = |key| {
            SessionKeys::new(vec![[key; 32]], Arc::new(AllServers))
                .seal(fixed(&[]), 1, [1; 16])
                .0
        };
        assert!(open(&keys(), &sealed_with(2)).is_some());
        assert!(open(&keys(), &sealed_with(3)).is_none());
    }
}
