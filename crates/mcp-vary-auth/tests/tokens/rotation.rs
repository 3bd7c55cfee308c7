//! Keys that change, and keys that are missing.

use crate::clients::{challenge, key_set};
use crate::prelude::*;
use mcp_vary_auth::authenticator::Denial;
use mcp_vary_auth::refresh::{FetchReason, IssuerKeys};
use mcp_vary_auth::token::TokenError;

fn denial(outcome: Result<mcp_vary_auth::authenticator::Admission, Denial>) -> Denial {
    outcome.unwrap_err()
}

#[test]
fn an_unknown_key_asks_for_newer_keys_of_its_issuer() {
    let gateway = gateway();
    let request = bearer(good().alg("EdDSA").sign());
    let before = denial(decide(&gateway, &request, Ok(key_set(&["p256", "rsa"]))));
    let found = before.refusal;
    assert_eq!(found, Refusal::InvalidToken(InvalidToken::Signature));
    assert_eq!(before.reason, Some(TokenError::UnknownKey));
    let issuer = before.fetch.expect("an issuer to ask");
    assert_eq!(issuer.get(), 0);
    // The caller fetches, and asks again.
    assert!(decide(&gateway, &request, published()).is_ok());
}

#[test]
fn what_newer_keys_cannot_help_asks_for_none() {
    let gateway = gateway();
    let wrong = [
        good().key("p256-other").sign(),
        good().header("kid", "rsa").sign(),
        good().claim("iss", "https://evil.example").sign(),
        "opaque".to_owned(),
    ];
    for token in wrong {
        let found = denial(decide(&gateway, &bearer(token), published())).fetch;
        assert_eq!(found, None);
    }
}

#[test]
fn without_keys_the_answer_is_503_and_says_when_to_come_back() {
    let request = bearer(good().sign());
    for why in [KeysUnavailable::NeverLoaded, KeysUnavailable::TooOld] {
        let denial = denial(decide(&gateway(), &request, Err(why)));
        let challenge = challenge(&denial, &request);
        let found = (challenge.status.as_u16(), challenge.retry_after);
        assert_eq!(found, (503, Some(10)));
        assert_eq!(challenge.www_authenticate, None);
        assert!(denial.fetch.is_some());
    }
}

#[test]
fn without_keys_a_token_of_nobody_is_still_refused_as_such() {
    let request = bearer(good().claim("iss", "https://evil.example").sign());
    let denial = denial(decide(
        &gateway(),
        &request,
        Err(KeysUnavailable::NeverLoaded),
    ));
    let found = denial.refusal;
    assert_eq!(found, Refusal::InvalidToken(InvalidToken::NotForThisServer));
}

#[test]
fn a_verified_token_needs_no_keys_for_a_while() {
    let gateway = gateway();
    let request = bearer(good().sign());
    assert!(decide(&gateway, &request, published()).is_ok());
    assert!(decide(&gateway, &request, Err(KeysUnavailable::TooOld)).is_ok());
    gateway.cache().clear();
    assert!(decide(&gateway, &request, Err(KeysUnavailable::TooOld)).is_err());
}

#[test]
fn a_rotation_costs_one_fetch_and_a_thousand_unknown_keys_no_more() {
    let gateway = gateway();
    let mut issuer = IssuerKeys::default();
    assert!(issuer.begin(0, FetchReason::Schedule));
    issuer.succeed(0, key_set(&["rsa"]));
    let mut ask = |token: String| {
        let request = bearer(token);
        let first = decide(&gateway, &request, issuer.usable(1).cloned());
        if first.as_ref().is_err_and(|denial| denial.fetch.is_some())
            && issuer.begin(1, FetchReason::UnknownKey)
        {
            issuer.succeed(1, all_keys());
            return (
                decide(&gateway, &request, issuer.usable(1).cloned()).is_ok(),
                issuer.fetches(),
            );
        }
        (first.is_ok(), issuer.fetches())
    };
    assert_eq!(ask(good().alg("RS256").sign()), (true, 1));
    let found = ask(good().sign());
    assert_eq!(found, (true, 2), "a token of a new key passes at once");
    for kid in 0..1000 {
        let token = good()
            .header("kid", format!("unknown-{kid}"))
            .with_signature(&[1; 64]);
        assert_eq!(ask(token), (false, 2));
    }
}
