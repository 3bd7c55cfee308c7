//! What the configuration says about issuers, and what becomes of a good token.

use crate::clients::{public, trusted};
use crate::prelude::*;
use mcp_vary_access::{Claim, ClaimMapping};
use mcp_vary_auth::authenticator::Authenticator;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::{
    IssuersError, MAX_HEADER, MAX_ISSUERS, MAX_PAYLOAD, TokenError, TokenVerifier, TrustedIssuer,
};
use mcp_vary_testkit::credentials::{Draft, Head, header};

fn build(issuers: Vec<TrustedIssuer>) -> Result<TokenVerifier, IssuersError> {
    TokenVerifier::new(Provider::install().unwrap(), public(), issuers)
}

fn issuer(name: &str) -> TrustedIssuer {
    TrustedIssuer {
        issuer: Issuer::parse(name).unwrap(),
        audiences: Vec::new(),
        scopes: Vec::new(),
        claims: ClaimMapping::default(),
    }
}

#[test]
fn the_provider_can_be_installed_again() {
    assert!(Provider::install().is_ok() && Provider::install().is_ok());
}

#[test]
fn issuers_are_different_and_few() {
    let issuers = [ISSUER, "https://a.example", ISSUER].map(issuer);
    let error = build(issuers.into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "issuer 3 is `https://idp.example/realms/a`, as an earlier one is; put its audiences and scopes into one entry"
    );
    let many = (0..=MAX_ISSUERS).map(|number| issuer(&format!("https://a.example/{number}")));
    assert_eq!(build(many.collect()).unwrap_err(), IssuersError::TooMany);
    let mut empty = issuer(ISSUER);
    empty.audiences.push(String::new());
    let error = build(vec![empty]).unwrap_err();
    let expected = "issuer 1 has an empty audience; leave it out";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn issuers_with_and_without_a_slash_are_two() {
    let issuers = ["https://a.example", "https://a.example/"].map(issuer);
    assert!(build(issuers.into()).is_ok());
}

#[test]
fn a_token_gives_the_principal_and_the_claims_that_rules_use() {
    let admission = decide(&gateway(), &bearer(good().sign()), published()).unwrap();
    let principal = &admission.principal;
    let expected = (Some(ISSUER), Some("ann"));
    assert_eq!((principal.issuer(), principal.subject()), expected);
    let expected = Some(&Claim::List(vec!["dev".into()].into()));
    assert_eq!(principal.claims().get("groups"), expected);
    assert!(principal.claims().has_scope("profile"));
    assert_eq!(admission.expires_at, Some(NOW + 600));
    assert_eq!(admission.client_id.as_deref(), Some("cli"));
    assert_eq!(admission.pin, None);
}

#[test]
fn a_refreshed_token_is_the_same_principal() {
    let id = |draft: Draft| {
        let admission = decide(&gateway(), &bearer(draft.sign()), published());
        admission.unwrap().principal.id()
    };
    let first = id(good());
    let refreshed = good().alg("EdDSA").claim("exp", NOW + 9);
    assert_eq!(first, id(refreshed.claim("groups", vec!["other"])));
    assert_ne!(first, id(good().claim("sub", "bob")));
    assert_ne!(first, id(good().claim("iss", OTHER_ISSUER)));
}

#[test]
fn anonymous_clients_pass_only_where_they_may_and_never_with_a_wrong_credential() {
    let nobody = Head {
        authorization: Vec::new(),
        ..header("")
    };
    let denial = decide(&gateway(), &nobody, published()).unwrap_err();
    assert_eq!(denial.refusal, Refusal::NoCredential);
    let open = gateway().with_anonymous(true);
    let admission = decide(&open, &nobody, published()).unwrap();
    assert!(admission.principal.is_anonymous());
    assert!(decide(&open, &bearer("opaque"), published()).is_err());
    assert!(decide(&open, &bearer("vary_x"), published()).is_err());
    assert!(decide(&open, &header("Basic x"), published()).is_err());
}

#[test]
fn without_issuers_every_token_is_somebody_elses() {
    let gateway = Authenticator::new(KeyTable::default(), None);
    let denial = decide(&gateway, &bearer(good().sign()), published()).unwrap_err();
    let found = denial.refusal;
    assert_eq!(found, Refusal::InvalidToken(InvalidToken::NotForThisServer));
}

#[test]
fn the_client_of_a_token_is_recorded_if_it_can_be_printed() {
    let client = |draft: Draft| {
        let admission = decide(&gateway(), &bearer(draft.sign()), published());
        admission.unwrap().client_id
    };
    assert_eq!(client(good().without("client_id")), None);
    let web = client(good().without("client_id").claim("azp", "web"));
    assert_eq!(web.as_deref(), Some("web"));
    assert_eq!(client(good().claim("client_id", "a\u{7}b")), None);
    assert_eq!(client(good().claim("client_id", 7)), None);
}

/// In a header the limit of a bearer token comes first; elsewhere these two hold by themselves.
#[test]
fn header_and_payload_are_bounded_whatever_brings_them() {
    let with_header = |size: usize| {
        let empty = good().header("x", "");
        let text = "x".repeat(size - empty.header.to_string().len());
        UnverifiedToken::parse(&empty.header("x", text).with_signature(&[1; 64])).err()
    };
    let with_payload = |size: usize| {
        let empty = good().claim("x", "");
        let text = "x".repeat(size - empty.claims.to_string().len());
        UnverifiedToken::parse(&empty.claim("x", text).with_signature(&[1; 64])).err()
    };
    assert_eq!(with_header(MAX_HEADER), None);
    assert_eq!(with_header(MAX_HEADER + 1), Some(TokenError::Header));
    assert_eq!(with_payload(MAX_PAYLOAD), None);
    assert_eq!(with_payload(MAX_PAYLOAD + 1), Some(TokenError::Payload));
}

#[test]
fn issuers_are_in_the_order_of_the_configuration() {
    let verifier = verifier();
    let names = verifier.issuers().iter().map(|it| it.issuer.as_str());
    let trusted = trusted();
    let expected = trusted.iter().map(|it| it.issuer.as_str());
    assert!(names.eq(expected));
}
