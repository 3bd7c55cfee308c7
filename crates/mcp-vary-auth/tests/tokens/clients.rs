//! Requests to a gateway that knows its clients, and its answers.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use mcp_vary_access::{ClaimMapping, Claims};
use mcp_vary_auth::address::{EndpointPath, PublicUrl};
use mcp_vary_auth::authenticator::{Admission, Authenticator, Denial};
use mcp_vary_auth::challenge::{Challenge, Challenges};
use mcp_vary_auth::credential::Credential;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::jwks::KeySet;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::refresh::KeysUnavailable;
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::{TokenVerifier, TrustedIssuer};
use mcp_vary_testkit::credentials::{
    Head, ISSUER, KEY_OF_CI, KEY_OF_OLD, NOW, OTHER_ISSUER, PUBLIC, keys,
};
use serde_json::Value;

pub(crate) fn public() -> PublicUrl {
    PublicUrl::parse(PUBLIC).unwrap()
}

pub(crate) fn trusted() -> Vec<TrustedIssuer> {
    let issuer = |name: &str, audiences: &[&str], scopes: &[&str]| TrustedIssuer {
        issuer: Issuer::parse(name).unwrap(),
        audiences: audiences.iter().map(|it| (*it).to_owned()).collect(),
        scopes: scopes.iter().map(|it| Scope::parse(it).unwrap()).collect(),
        claims: ClaimMapping::default().with_names(["groups"]).unwrap(),
    };
    vec![
        issuer(ISSUER, &["api://vary", "client-of-vary"], &["mcp:read"]),
        issuer(OTHER_ISSUER, &[], &[]),
    ]
}

pub(crate) fn verifier() -> TokenVerifier {
    TokenVerifier::new(Provider::install().unwrap(), public(), trusted()).unwrap()
}

pub(crate) fn gateway() -> Authenticator {
    let entry = |name: &str, key: &str, expires_at: Option<u64>| KeyEntry {
        name: name.to_owned(),
        digest: ApiKey::parse(key).unwrap().digest(),
        claims: Claims::from_json(r#"{"groups": ["build"]}"#).unwrap(),
        expires_at,
    };
    let (ci, old) = (
        entry("ci", KEY_OF_CI, None),
        entry("old", KEY_OF_OLD, Some(NOW)),
    );
    Authenticator::new(KeyTable::new(vec![ci, old]).unwrap(), Some(verifier()))
}

pub(crate) fn challenges() -> Challenges {
    Challenges::new(public(), trusted()[0].scopes.clone())
}

/// The keys of every issuer.
pub(crate) fn published() -> Result<Arc<KeySet>, KeysUnavailable> {
    Ok(all_keys())
}

/// The set of the keys that every issuer publishes.
pub(crate) fn all_keys() -> Arc<KeySet> {
    key_set(&keys::PUBLISHED)
}

/// The set of these keys.
pub(crate) fn key_set(names: &[&str]) -> Arc<KeySet> {
    Arc::new(KeySet::parse(keys::set(names).to_string().as_bytes()).unwrap())
}

/// What `gateway` decides on `request` with these keys.
pub(crate) fn decide(
    gateway: &Authenticator,
    request: &Head,
    keys: Result<Arc<KeySet>, KeysUnavailable>,
) -> Result<Admission, Denial> {
    let mut headers = HeaderMap::new();
    for value in &request.authorization {
        headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
    }
    let target = EndpointPath::parse(&request.path).unwrap();
    let credential = Credential::read(&headers, request.query.as_deref())?;
    gateway.authenticate(credential, &target, NOW, |_| keys)
}

/// The answer to `denial`.
pub(crate) fn challenge(denial: &Denial, request: &Head) -> Challenge {
    let path = EndpointPath::parse(&request.path).unwrap();
    challenges().answer(&denial.refusal, &path)
}

/// The outcome in a line: `200 KIND PIN`, or status, error and description.
pub(crate) fn outcome(gateway: &Authenticator, request: &Head) -> String {
    match decide(gateway, request, published()) {
        Ok(admission) => {
            let pin = admission
                .pin
                .map(|pin| format!(" pinned to {}", pin.as_str()));
            let pin = pin.unwrap_or_default();
            format!("200 {}{pin}", admission.principal.kind())
        }
        Err(denial) => {
            let challenge = challenge(&denial, request);
            let body: Value = serde_json::from_str(&challenge.body).unwrap();
            let text = |name: &str| body[name].as_str().unwrap();
            let (error, description) = (text("error"), text("error_description"));
            check_header(&challenge, error, description);
            format!("{} {error}: {description}", challenge.status.as_u16())
        }
    }
}

/// The header says what the body says, and where the metadata is; without a credential it names no error.
#[track_caller]
fn check_header(challenge: &Challenge, error: &str, description: &str) {
    let header = challenge.www_authenticate.as_ref();
    let header = header.map(|header| header.to_str().unwrap());
    if matches!(challenge.status.as_u16(), 400 | 401 | 403) {
        let header = header.unwrap();
        let expected = "resource_metadata=\"https://mcp.example/.well-known/";
        assert!(header.contains(expected), "{header}");
        let named = format!("error=\"{error}\", error_description=\"{description}\"");
        let named = header.contains(&named);
        assert_eq!(named, error != "unauthorized", "{header}");
        let found = header.contains("scope=\"mcp:read\"");
        assert_eq!(found, challenge.status != 400, "{header}");
    } else {
        assert_eq!(header, None);
    }
}
