//! What a credential costs the request: `cargo bench -p mcp-vary-auth`. The limits are 1.0 µs for a token that was
//! verified lately, and 0.7 µs for an API key.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use mcp_vary_access::{ClaimMapping, Claims};
use mcp_vary_auth::address::{EndpointPath, PublicUrl};
use mcp_vary_auth::authenticator::Authenticator;
use mcp_vary_auth::credential::Credential;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::jwks::KeySet;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::{TokenVerifier, TrustedIssuer};
use mcp_vary_testkit::credentials::{ISSUER, KEY_OF_CI, NOW, PUBLIC, good, keys};

/// An authenticator with one issuer, and 1,000 API keys.
fn authenticator() -> Authenticator {
    let entry = |name: String, digest| KeyEntry {
        name,
        digest,
        claims: Claims::default(),
        expires_at: None,
    };
    let others = (0..999_u16).map(|number| {
        let mut random = [3; 32];
        random[..2].copy_from_slice(&number.to_be_bytes());
        entry(
            format!("key-{number}"),
            ApiKey::from_random(random).digest(),
        )
    });
    let ci = entry("ci".to_owned(), ApiKey::parse(KEY_OF_CI).unwrap().digest());
    let trusted = TrustedIssuer {
        issuer: Issuer::parse(ISSUER).unwrap(),
        audiences: Vec::new(),
        scopes: Vec::new(),
        claims: ClaimMapping::default(),
    };
    let public = PublicUrl::parse(PUBLIC).unwrap();
    let verifier = TokenVerifier::new(Provider::install().unwrap(), public, vec![trusted]);
    let keys = KeyTable::new(others.chain([ci]).collect());
    Authenticator::new(keys.unwrap(), Some(verifier.unwrap()))
}

/// The head of a request with this bearer token.
fn headers(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

fn authenticate(criterion: &mut Criterion) {
    let authenticator = authenticator();
    let published = keys::set(&keys::PUBLISHED).to_string();
    let published = Arc::new(KeySet::parse(published.as_bytes()).unwrap());
    let admit = |headers: &HeaderMap| {
        let credential = Credential::read(black_box(headers), None).unwrap();
        let keys = |_| Ok(Arc::clone(&published));
        let admission = authenticator.authenticate(credential, &EndpointPath::Base, NOW, keys);
        admission.unwrap()
    };
    for (name, token) in [
        ("a token that was verified lately", good().sign()),
        ("an API key of 1,000", KEY_OF_CI.to_owned()),
    ] {
        let headers = headers(&token);
        criterion.bench_function(name, |bencher| bencher.iter(|| admit(&headers)));
    }
    let headers = headers(&good().sign());
    criterion.bench_function("a token that is new (ES256)", |bencher| {
        bencher.iter(|| {
            authenticator.cache().clear();
            admit(&headers)
        });
    });
}

criterion_group!(benches, authenticate);
criterion_main!(benches);
