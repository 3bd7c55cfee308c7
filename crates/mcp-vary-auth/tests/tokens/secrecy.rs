//! No `Debug`, error or answer shows a token, a key, a claim or a subject.

use std::fmt::Debug;

use crate::clients::challenge;
use crate::prelude::*;
use mcp_vary_auth::credential::BearerToken;
use mcp_vary_testkit::credentials::{Draft, header};

/// What no output may contain: values of claims, and each part of a token.
fn secrets(token: &str) -> Vec<String> {
    let parts = token.split('.').filter(|part| part.len() > 8);
    let parts = parts.chain(["s3cret-sub", "s3cret-group", "s3cret-client"]);
    parts.map(str::to_owned).collect()
}

#[track_caller]
fn hides(secrets: &[String], shown: &str) {
    for secret in secrets {
        assert!(!shown.contains(secret.as_str()), "{shown}");
    }
}

fn shown(value: &impl Debug) -> String {
    format!("{value:?} {value:#?}")
}

fn secret_token() -> Draft {
    let draft = good().claim("sub", "s3cret-sub");
    let draft = draft.claim("client_id", "s3cret-client");
    draft.claim("groups", vec!["s3cret-group"])
}

#[test]
fn debug_shows_nothing_of_a_token() {
    let token = secret_token().sign();
    let secrets = secrets(&token);
    let unverified = UnverifiedToken::parse(&token).unwrap();
    let verified = verifier().verify(&unverified, &all_keys(), NOW).unwrap();
    let expected = Some("s3cret-client");
    assert_eq!(verified.client_id.as_deref(), expected);
    let gateway = gateway();
    let admission = decide(&gateway, &bearer(&token), published()).unwrap();
    let bearer_token = BearerToken::parse(token.as_bytes()).unwrap();
    hides(&secrets, &shown(&bearer_token));
    hides(&secrets, &shown(&unverified));
    hides(&secrets, &shown(&verified));
    hides(&secrets, &shown(&admission));
    hides(&secrets, &shown(&gateway));
    hides(&secrets, &shown(gateway.cache()));
}

#[test]
fn debug_shows_no_api_key() {
    let key = ApiKey::parse(KEY_OF_CI).unwrap();
    let secrets = vec![key.expose()[5..].to_owned()];
    hides(&secrets, &shown(&key));
    hides(&secrets, &shown(&gateway()));
    let decision = decide(&gateway(), &bearer(key.expose()), published());
    hides(&secrets, &shown(&decision));
}

#[test]
fn debug_shows_no_key_material() {
    let set = all_keys();
    let secrets = ["n", "x", "y"].into_iter().flat_map(|member| {
        ["rsa", "p256", "ed25519"].map(|name| keys::jwk(name)[member].as_str().map(str::to_owned))
    });
    hides(&secrets.flatten().collect::<Vec<_>>(), &shown(&set));
    assert_eq!(shown(&set).matches("VerificationKey").count(), 8);
}

#[test]
fn errors_and_answers_show_nothing_of_a_token() {
    let drafts = [
        secret_token().claim("exp", 1),
        secret_token().claim("exp", "s3cret-sub"),
        secret_token().claim("sub", "s3cret-sub\n"),
        secret_token().claim("groups", vec!["s3cret-group\n"]),
        secret_token().claim("aud", "s3cret-sub"),
        secret_token().claim("iss", "s3cret-sub"),
        secret_token().claim("cnf", "s3cret-sub"),
        secret_token().without("scope"),
        secret_token().header("typ", "s3cret-sub"),
        secret_token().header("alg", "s3cret-sub"),
        secret_token().header("kid", "s3cret-sub"),
        secret_token().header("x", "s3cret-sub").key("p256-other"),
        secret_token().payload_text("\"s3cret-sub\"", "\"s3cret-sub"),
    ];
    for draft in drafts {
        let token = draft.sign_as("ES256");
        let request = bearer(&token);
        let denial = decide(&gateway(), &request, published()).unwrap_err();
        let reason = denial.reason.as_ref().map(ToString::to_string);
        let answer = challenge(&denial, &request);
        hides(&secrets(&token), &shown(&(denial, answer, reason)));
    }
    let request = header("Basic s3cret-sub");
    let denial = decide(&gateway(), &request, published()).unwrap_err();
    let answer = challenge(&denial, &request);
    hides(&secrets(""), &shown(&(denial, answer)));
}
