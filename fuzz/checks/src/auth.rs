//! What the readers of credentials must hold.
//!
//! Each check is run by a fuzz target, and by `tests/corpora.rs`, which replays the corpora.

use std::sync::OnceLock;

use mcp_vary_access::ClaimMapping;
use mcp_vary_auth::address::{EndpointPath, PublicUrl};
use mcp_vary_auth::credential::BearerToken;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::jwks::{KeySet, MAX_KEYS};
use mcp_vary_auth::key::ApiKey;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::{TokenVerifier, TrustedIssuer, UnverifiedToken};

/// A check, after the name of its target and corpus.
pub type Check = (&'static str, fn(&[u8]));

/// Every check.
pub const CHECKS: &[Check] = &[("token", token)];

/// Only the token that the issuer signed is accepted, letter by letter; and what the readers of keys, of metadata and of
/// addresses accept, they write as they read it.
///
/// The token is signed by Ed25519: unlike those of ECDSA, its signatures have one form.
pub fn token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // Any text, and any text in the place of a part of the token.
    let (at, part) = data.split_first_chunk::<2>().unwrap_or((&[0, 0], data));
    let at = usize::from(u16::from_le_bytes(*at)) % SIGNED.len();
    let part = String::from_utf8_lossy(part);
    let end = (at + part.len()).min(SIGNED.len());
    let spliced = format!("{}{part}{}", &SIGNED[..at], &SIGNED[end..]);
    for token in [&*text, spliced.as_str()] {
        assert_eq!(is_accepted(token), token == SIGNED, "{token}");
    }
    assert!(is_accepted(SIGNED));
    other_readers(data, &text);
}

/// Whether the token is verified, at a time at which the signed one is good.
fn is_accepted(token: &str) -> bool {
    static VERIFIER: OnceLock<(TokenVerifier, KeySet)> = OnceLock::new();
    let (verifier, keys) = VERIFIER.get_or_init(|| (verifier(), key_set()));
    let Ok(token) = UnverifiedToken::parse(token) else {
        return false;
    };
    let verified = verifier.verify(&token, keys, 1_800_000_000);
    verified.is_ok_and(|token| token.admit(&EndpointPath::Base, 1_800_000_000).is_ok())
}

fn key_set() -> KeySet {
    KeySet::parse(KEYS.as_bytes()).expect("a key set")
}

fn issuer() -> Issuer {
    Issuer::parse("https://idp.example/realms/a").expect("an issuer")
}

fn public() -> PublicUrl {
    PublicUrl::parse("https://mcp.example").expect("a URL")
}

fn verifier() -> TokenVerifier {
    let provider = Provider::install().expect("no other provider");
    let trusted = TrustedIssuer {
        issuer: issuer(),
        audiences: Vec::new(),
        scopes: Vec::new(),
        claims: ClaimMapping::default(),
    };
    TokenVerifier::new(provider, public(), vec![trusted]).expect("one issuer")
}

fn other_readers(data: &[u8], text: &str) {
    if let Ok(token) = BearerToken::parse(data) {
        assert_eq!(token.as_str().as_bytes(), data);
    }
    if let Some(key) = ApiKey::parse(text) {
        assert_eq!(key.expose(), text);
    }
    if let Ok(set) = KeySet::parse(data) {
        assert!((1..=MAX_KEYS).contains(&set.len()));
    }
    if let Ok(url) = issuer().check_metadata(data) {
        assert!(url.starts_with("https://idp.example"), "{url}");
    }
    if let Some(path) = EndpointPath::of_request(text) {
        assert_eq!(EndpointPath::parse(&path.to_string()), Some(path));
    }
    if let Some(target) = EndpointPath::parse(text) {
        assert_eq!(EndpointPath::of_request(text).as_ref(), Some(&target));
        assert_eq!(target.to_string(), text);
        assert!(
            public()
                .resource(&target)
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"')
        );
    }
    if let Ok(issuer) = Issuer::parse(text) {
        let urls = issuer.metadata_urls();
        assert!(
            urls.len() >= 2 && urls.iter().all(|url| Issuer::parse(url).is_ok()),
            "{urls:?}"
        );
    }
}

/// Signed by OpenSSL.
const SIGNED: &str = "eyJ0eXAiOiAiYXQrand0IiwgImFsZyI6ICJFZERTQSIsICJraWQiOiAiZWQyNTUxOSJ9.\
    eyJpc3MiOiAiaHR0cHM6Ly9pZHAuZXhhbXBsZS9yZWFsbXMvYSIsICJzdWIiOiAiYW5uIiwgImF1ZCI6ICJodHRwczovL21jcC5leGFtcGxlL21jcCIsICJleHAiOiAxODAwMDAwNjAwLCAiaWF0IjogMTgwMDAwMDAwMCwgInNjb3BlIjogIm1jcDpyZWFkIn0.\
    v0Z0rwMtbaQwq3-RbDbgwbDc6RrQhDbXi9pgEZ7LQw7RTck1PpnZTrKWucEOzCjF_F0_P4fD1VfNpBd-4rbdAg";

/// The public key.
const KEYS: &str = r#"{"keys":[{"kid":"ed25519","kty":"OKP","crv":"Ed25519","x":"9QEdOAopW7M77EPBE-gZAcC052jlWVo1vvfudpWCljk"}]}"#;
