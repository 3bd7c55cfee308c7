//! Verified tokens are remembered: not for long, not many, and not beyond what they allow.

use std::sync::Arc;

use crate::prelude::*;
use mcp_vary_auth::cache::{MAX_AGE, TokenCache, TokenDigest};
use mcp_vary_auth::credential::{BearerToken, Credential};
use mcp_vary_auth::token::VerifiedToken;

fn verified(exp: u64) -> Arc<VerifiedToken> {
    let token = good().claim("exp", exp).sign();
    let token = UnverifiedToken::parse(&token).unwrap();
    Arc::new(verifier().verify(&token, &all_keys(), NOW).unwrap())
}

/// Whether a token with this `exp`, remembered at `NOW`, is there at `at`.
fn is_remembered(exp: u64, at: u64) -> bool {
    let cache = TokenCache::default();
    let digest = TokenDigest::of("a");
    cache.insert(digest, verified(exp), NOW);
    cache.get(digest, at).is_some()
}

#[test]
fn a_token_is_remembered_until_it_expires_and_for_five_minutes_at_most() {
    assert!(is_remembered(NOW + 10, NOW + 9));
    assert!(!is_remembered(NOW + 10, NOW + 10));
    assert!(is_remembered(NOW + 9999, NOW + MAX_AGE - 1));
    assert!(!is_remembered(NOW + 9999, NOW + MAX_AGE));
    // It is accepted by the leeway, and not remembered.
    assert!(!is_remembered(NOW - 30, NOW));
}

#[test]
fn an_expired_entry_is_forgotten() {
    let cache = TokenCache::default();
    cache.insert(TokenDigest::of("a"), verified(NOW + 10), NOW);
    assert_eq!(cache.len(), 1);
    assert!(cache.get(TokenDigest::of("a"), NOW + 10).is_none());
    assert!(cache.is_empty());
}

#[test]
fn the_cache_is_bounded() {
    let cache = TokenCache::with_capacity(64);
    let token = verified(NOW + 10);
    for number in 0..1000 {
        let digest = TokenDigest::of(&number.to_string());
        cache.insert(digest, Arc::clone(&token), NOW);
    }
    assert!((32..=64).contains(&cache.len()), "{}", cache.len());
}

#[test]
fn a_remembered_token_is_still_checked_against_the_address_and_the_clock() {
    let gateway = gateway();
    let token = good().claim("aud", format!("{PUBLIC}/mcp/v/a"));
    let token = token.claim("exp", NOW + 100).sign();
    assert!(decide(&gateway, &bearer(&token).at("/mcp/v/a"), published()).is_ok());
    assert_eq!(gateway.cache().len(), 1);
    let denial = decide(&gateway, &bearer(&token).at("/mcp/v/b"), published()).unwrap_err();
    let found = denial.refusal;
    assert_eq!(found, Refusal::InvalidToken(InvalidToken::NotForThisServer));
    let later = gateway.authenticate(
        Credential::Bearer(BearerToken::parse(token.as_bytes()).unwrap()),
        &EndpointPath::parse("/mcp/v/a").unwrap(),
        NOW + 160,
        |_| published(),
    );
    let found = later.unwrap_err().refusal;
    assert_eq!(found, Refusal::InvalidToken(InvalidToken::Expired));
}

#[test]
fn what_was_refused_is_not_remembered() {
    let gateway = gateway();
    for token in [
        good().key("p256-other").sign(),
        good().claim("exp", 1).sign(),
        good().claim("aud", "x").sign(),
    ] {
        assert!(decide(&gateway, &bearer(token), published()).is_err());
    }
    assert!(gateway.cache().is_empty());
    // It lacks a scope, but its signature need not be verified each time.
    let request = bearer(good().without("scope").sign());
    assert!(decide(&gateway, &request, published()).is_err());
    assert_eq!(gateway.cache().len(), 1);
}

#[test]
fn a_token_that_differs_in_one_character_is_another_one() {
    let gateway = gateway();
    let token = good().alg("EdDSA").sign();
    assert!(decide(&gateway, &bearer(&token), published()).is_ok());
    let last = if token.ends_with('A') { "Q" } else { "A" };
    let other = format!("{}{last}", &token[..token.len() - 1]);
    assert!(decide(&gateway, &bearer(other), published()).is_err());
}

#[test]
fn keys_do_not_come_from_the_cache_of_another_configuration() {
    let token = bearer(good().sign());
    assert!(decide(&gateway(), &token, published()).is_ok());
    assert!(decide(&gateway(), &token, Err(KeysUnavailable::NeverLoaded)).is_err());
}
