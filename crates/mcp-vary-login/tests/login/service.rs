//! Client credentials.

use futures_util::future::join_all;
use http::StatusCode;
use mcp_vary_http_client::credential_source::CredentialSource as _;
use mcp_vary_login::address::Address;
use mcp_vary_login::assertion::SigningKey;
use mcp_vary_login::credentials::{Credentials, Retry};
use mcp_vary_login::secret::Secret;
use mcp_vary_login::service::{ServiceAuthentication, ServiceCredentials, ServiceSettings};
use mcp_vary_login::source::AuthorizationSource;
use mcp_vary_testkit::login_server::{LoginServer, parameter};
use mcp_vary_testkit::wait::soon;
use serde_json::json;

use crate::scene::{access_token, assert_all, environment, pass, refuse, token};

fn settings(peer: &LoginServer, authentication: ServiceAuthentication) -> ServiceSettings {
    let server = Address::parse(&peer.url("/mcp")).unwrap();
    ServiceSettings::new(server, "robot".to_owned(), authentication)
}

fn service(settings: ServiceSettings) -> Credentials {
    Credentials::Service(ServiceCredentials::new(settings, environment()))
}

fn secret() -> ServiceAuthentication {
    ServiceAuthentication::Secret(Secret::new("TOPSECRET-pw"))
}

fn with_secret(peer: &LoginServer) -> Credentials {
    let mut settings = settings(peer, secret());
    settings.issuer = Address::parse(&peer.url("")).ok();
    service(settings)
}

#[tokio::test]
async fn a_secret_goes_only_to_an_authorization_server_that_the_operator_named() {
    let peer = LoginServer::start().await;
    let unnamed = service(settings(&peer, secret()));
    let refused = token(&unnamed).await.unwrap_err();
    let advice = format!("add `issuer: {}`", peer.url(""));
    assert!(refused.contains(&advice), "{refused}");
    assert!(peer.requests("POST /token").is_empty());
    // The server names another one later.
    let named = with_secret(&peer);
    assert_eq!(access_token(&named).await, "access-1");
    let other = LoginServer::start().await;
    peer.resource(json!({"authorization_servers": [other.url("")]}));
    let refused = refuse(&named, StatusCode::UNAUTHORIZED, "Bearer").await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(other.requests("").is_empty());
}

#[tokio::test]
async fn a_service_authenticates_by_its_secret_or_key() {
    let peer = LoginServer::start().await;
    peer.resource(json!({"scopes_supported": ["a", "b"]}));
    assert_eq!(access_token(&with_secret(&peer)).await, "access-1");
    let key = SigningKey::from_pem(include_str!("../keys/p256.pem"), None).unwrap();
    let signing = service(settings(&peer, ServiceAuthentication::PrivateKey(key)));
    assert_eq!(access_token(&signing).await, "access-2");
    let forms = peer.requests("POST /token");
    let head = forms[0].head.to_lowercase();
    assert!(head.contains("authorization: basic "), "{head}");
    for form in &forms {
        assert_eq!(parameter(&form.body, "grant_type"), "client_credentials");
        assert_eq!(parameter(&form.body, "scope"), "a%20b");
        assert!(parameter(&form.body, "resource").ends_with("%2Fmcp"));
    }
    let assertion = parameter(&forms[1].body, "client_assertion");
    assert_eq!(assertion.split('.').count(), 3);
    assert!(peer.requests("POST /register").is_empty());
}

#[tokio::test]
async fn many_callers_make_one_request() {
    let peer = LoginServer::start().await;
    let service = with_secret(&peer);
    let tokens = soon(join_all((0..100).map(|_| token(&service)))).await;
    assert_all(&tokens, "access-1");
    pass(80);
    soon(join_all((0..100).map(|_| token(&service)))).await;
    assert_eq!(access_token(&service).await, "access-2");
    assert_eq!(peer.requests("POST /token").len(), 2);
}

#[tokio::test]
async fn a_failure_is_not_repeated_for_each_caller() {
    let peer = LoginServer::start().await;
    let service = with_secret(&peer);
    peer.next_token("401 Unauthorized", &json!({"error": "invalid_client"}));
    let tokens = soon(join_all((0..100).map(|_| token(&service)))).await;
    let expected = Err("the authorization server answered: invalid_client".to_owned());
    for token in tokens {
        assert_eq!(token, expected);
    }
    assert_eq!(peer.requests("POST /token").len(), 1);
    pass(5);
    assert_eq!(access_token(&service).await, "access-1");
}

/// The words of the authorization server are for the operator, and never what was sent to it.
#[tokio::test]
async fn an_authorization_server_that_repeats_the_request_reveals_nothing() {
    for status in ["400 Bad Request", "401 Unauthorized", "200 OK"] {
        for (code, shown) in [
            ("invalid_scope", "invalid_scope"),
            ("invalid_client", "invalid_client"),
            ("no TOPSECRET-pw", "an error that no specification has"),
        ] {
            let peer = LoginServer::start().await;
            let source = AuthorizationSource::configured(with_secret(&peer), String::new());
            let said = "you sent Basic cm9ib3Q6VE9QU0VDUkVULXB3, TOPSECRET-pw, TOPSECRE and T-pw";
            let error = json!({"error": code, "error_description": said});
            peer.next_token(status, &error);
            let refused = source.authorization().await.unwrap_err();
            let expected = format!("the authorization server answered: {shown}");
            assert_eq!(refused.to_string(), expected, "{status}");
            let code = code.replace("TOPSECRET-pw", "***");
            let details = format!(
                "{expected}: the authorization server answered: {code} (you sent Basic ***, ***, *** and T-pw)"
            );
            assert_eq!(refused.details(), details, "{status}");
        }
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let peer = LoginServer::start().await;
    let service = with_secret(&peer);
    let unauthorized = StatusCode::UNAUTHORIZED;
    let retry = refuse(&service, unauthorized, "Bearer").await;
    assert_eq!(retry, Ok(Retry::Once));
    assert_eq!(access_token(&service).await, "access-2");
    let again = refuse(&service, unauthorized, "Bearer").await.unwrap_err();
    assert!(again.contains("has just issued"), "{again}");
    let shown = format!("{service:?}");
    assert!(!shown.contains("TOPSECRET"), "{shown}");
}

#[tokio::test]
async fn a_missing_scope_is_requested_once() {
    let peer = LoginServer::start().await;
    let service = with_secret(&peer);
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let forbidden = StatusCode::FORBIDDEN;
    let retry = refuse(&service, forbidden, challenge).await;
    assert_eq!(retry, Ok(Retry::Once));
    let form = peer.requests("POST /token").pop().unwrap().body;
    assert_eq!(parameter(&form, "scope"), "write");
    let retry = refuse(&service, forbidden, challenge).await;
    assert_eq!(retry, Ok(Retry::Never));
}
