//! Tokens in exchange for those of clients.

use std::sync::Arc;

use futures_util::future::join_all;
use http::{HeaderValue, StatusCode};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_http_client::credential_source::{
    ClientCredentials, CredentialSource, Refusal, Retry,
};
use mcp_vary_login::address::Address;
use mcp_vary_login::exchange::{ExchangeForm, ExchangeServer, ExchangeSettings, TokenExchange};
use mcp_vary_login::secret::Secret;
use mcp_vary_login::service::ServiceAuthentication;
use mcp_vary_testkit::login_server::{LoginServer, parameter};
use mcp_vary_testkit::wait::soon;
use serde_json::json;

use crate::scene::{environment, pass};

/// Exchanges with the settings after `edit`.
fn exchange(peer: &LoginServer, edit: impl FnOnce(&mut ExchangeSettings)) -> TokenExchange {
    let server = Address::parse(&peer.url("/mcp")).unwrap();
    let issuer = ExchangeServer::Issuer(Address::parse(&peer.url("")).unwrap());
    let secret = ServiceAuthentication::Secret(Secret::new("TOPSECRET-pw"));
    let mut settings = ExchangeSettings::new(server, issuer, "vary".to_owned(), secret);
    edit(&mut settings);
    TokenExchange::new(settings, "x".to_owned(), environment())
}

/// The token of the client `number`, which ends in an hour.
fn caller(number: u8) -> CallerToken {
    let text = format!("TOPSECRET-caller-{number}");
    CallerToken::new(&text, [number; 32], (environment().now)() + 3600)
}

fn source(exchange: &TokenExchange, caller: &CallerToken) -> Arc<dyn CredentialSource> {
    exchange.for_client(caller)
}

/// The number of the token that a client gets, or why it gets none.
async fn token(source: &dyn CredentialSource, caller: &CallerToken) -> Result<String, String> {
    let value = source.authorization_for(caller).await;
    let value = value.map_err(|error| error.to_string())?.unwrap();
    assert!(value.is_sensitive());
    let token = value.to_str().unwrap();
    let number = token.strip_prefix("Bearer TOPSECRET-access-");
    Ok(number.unwrap().to_owned())
}

#[tokio::test]
async fn a_token_is_exchanged_in_the_form_of_rfc_8693() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |settings| {
        settings.audience = Some("crm".to_owned());
        settings.scope = mcp_vary_login::scope::Scopes::parse("a b");
    });
    let caller = caller(1);
    let source = source(&exchange, &caller);
    assert_eq!(token(&*source, &caller).await, Ok("1".to_owned()));
    let request = &peer.requests("POST /token")[0];
    assert!(
        request
            .head
            .to_lowercase()
            .contains("authorization: basic ")
    );
    let urn = "urn%3Aietf%3Aparams%3Aoauth%3A";
    for (name, value) in [
        ("grant_type", format!("{urn}grant-type%3Atoken-exchange")),
        ("subject_token", "TOPSECRET-caller-1".to_owned()),
        (
            "subject_token_type",
            format!("{urn}token-type%3Aaccess_token"),
        ),
        (
            "requested_token_type",
            format!("{urn}token-type%3Aaccess_token"),
        ),
        ("audience", "crm".to_owned()),
        ("scope", "a%20b".to_owned()),
    ] {
        assert_eq!(parameter(&request.body, name), value, "{name}");
    }
    assert!(parameter(&request.body, "resource").ends_with("%2Fmcp"));
    let shown = format!("{exchange:?} {source:?} {caller:?}");
    assert!(!shown.contains("TOPSECRET"), "{shown}");
}

#[tokio::test]
async fn a_token_is_exchanged_on_behalf_of_its_user() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |settings| {
        settings.form = ExchangeForm::OnBehalfOf;
        settings.resource = None;
        let endpoint = Address::parse(&peer.url("/token")).unwrap();
        settings.authorization_server = ExchangeServer::TokenEndpoint(endpoint);
    });
    let caller = caller(1);
    assert_eq!(
        token(&*source(&exchange, &caller), &caller).await,
        Ok("1".to_owned())
    );
    assert_eq!(peer.lines(), ["POST /token"], "no metadata is read");
    let form = &peer.requests("POST /token")[0].body;
    let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
    assert_eq!(parameter(form, "grant_type"), grant);
    assert_eq!(parameter(form, "assertion"), "TOPSECRET-caller-1");
    assert_eq!(parameter(form, "requested_token_use"), "on_behalf_of");
    assert_eq!(parameter(form, "resource"), "");
}

#[tokio::test]
async fn a_hundred_callers_make_a_hundred_exchanges_and_their_next_ten_thousand_requests_none() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    let callers: Vec<_> = (0..100).map(caller).collect();
    let sources = callers.iter().map(|caller| source(&exchange, caller));
    let sources: Vec<_> = sources.collect();
    // Ten requests of each caller at once.
    let pairs = || std::iter::zip(&sources, &callers);
    let asking = pairs().flat_map(|(source, caller)| (0..10).map(|_| token(&**source, caller)));
    let first = soon(join_all(asking)).await;
    for (at, tokens) in first.chunks(10).enumerate() {
        let is_own = tokens.iter().all(|token| *token == tokens[0]);
        assert!(tokens[0].is_ok() && is_own, "{at}: {tokens:?}");
    }
    let asking = pairs().flat_map(|(source, caller)| (0..100).map(|_| token(&**source, caller)));
    let next = soon(join_all(asking)).await;
    assert_eq!(next.len(), 10_000);
    for (first, next) in first.chunks(10).zip(next.chunks(100)) {
        assert!(next.iter().all(|token| *token == first[0]));
    }
    assert_eq!(peer.requests("POST /token").len(), 100);
    assert_eq!(peer.requests("GET /.well-known").len(), 1);
}

#[tokio::test]
async fn a_token_is_used_until_shortly_before_its_end_and_never_after_that_of_its_client() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    // What is issued lives 100 seconds, and a fifth of that is the margin.
    let caller = CallerToken::new("TOPSECRET-caller", [1; 32], (environment().now)() + 150);
    let source = source(&exchange, &caller);
    for (seconds, expected) in [(0, "1"), (79, "1"), (1, "2"), (69, "2")] {
        pass(seconds);
        assert_eq!(token(&*source, &caller).await, Ok(expected.to_owned()));
    }
    pass(1);
    let ended = Err("the access token of its user has ended".to_owned());
    assert_eq!(token(&*source, &caller).await, ended);
    assert_eq!(peer.requests("POST /token").len(), 2);
}

#[tokio::test]
async fn a_refused_token_is_exchanged_again_once() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    let caller = caller(1);
    let source = source(&exchange, &caller);
    let refuse = async |sent: &str, status: StatusCode| {
        let sent = HeaderValue::try_from(format!("Bearer TOPSECRET-access-{sent}")).unwrap();
        let refusal = Refusal {
            sent: Some(&sent),
            status,
            challenges: &[],
            caller: Some(&caller),
        };
        let retry = source.refused(refusal).await;
        retry.map_err(|error| error.to_string())
    };
    assert_eq!(token(&*source, &caller).await, Ok("1".to_owned()));
    assert_eq!(refuse("1", StatusCode::UNAUTHORIZED).await, Ok(Retry::Once));
    assert_eq!(token(&*source, &caller).await, Ok("2".to_owned()));
    // Another request was refused at the same time.
    assert_eq!(refuse("1", StatusCode::UNAUTHORIZED).await, Ok(Retry::Once));
    let rejected = Err("it does not accept its user".to_owned());
    assert_eq!(refuse("2", StatusCode::UNAUTHORIZED).await, rejected);
    assert_eq!(peer.requests("POST /token").len(), 2);
}

/// Another token has the same scopes. What the server wants is for the operator.
#[tokio::test]
async fn a_token_with_too_few_scopes_is_an_error_that_names_those_of_the_configuration() {
    let peer = LoginServer::start().await;
    for (scopes, requested) in [
        ("", "no `scopes` are configured for the exchange"),
        ("read list", "the exchange requests `read list`"),
    ] {
        let exchange = exchange(&peer, |settings| {
            settings.scope = mcp_vary_login::scope::Scopes::parse(scopes);
        });
        let caller = caller(1);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
        let refusal = Refusal {
            sent: None,
            status: StatusCode::FORBIDDEN,
            challenges: &[HeaderValue::from_static(challenge)],
            caller: Some(&caller),
        };
        let error = source(&exchange, &caller)
            .refused(refusal)
            .await
            .unwrap_err();
        let message = format!("its user's token has too few scopes; {requested}");
        assert_eq!(error.to_string(), message);
        let details =
            "the server wants `write`; add what is missing to `scopes` in `auth.token-exchange`";
        assert_eq!(error.details(), format!("{message}: {details}"));
    }
    assert!(peer.requests("POST /token").is_empty());
}

#[tokio::test]
async fn what_the_authorization_server_says_is_for_the_operator_alone() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    let said = "tenant 7 sent TOPSECRET-caller-1 and TOPSECRET-pw";
    let refusal = json!({"error": "invalid_grant", "error_description": said});
    peer.next_token("400 Bad Request", &refusal);
    let caller = caller(1);
    let source = source(&exchange, &caller);
    let why = "no token was issued in exchange for the access token of its user";
    let failures = soon(join_all(
        (0..100).map(|_| source.authorization_for(&caller)),
    ))
    .await;
    for failure in failures {
        let error = failure.unwrap_err();
        assert_eq!(error.to_string(), why);
        let details =
            "the authorization server answered: invalid_grant (tenant 7 sent *** and ***)";
        assert_eq!(error.details(), format!("{why}: {details}"));
    }
    assert_eq!(peer.requests("POST /token").len(), 1);
    pass(5);
    assert_eq!(token(&*source, &caller).await, Ok("1".to_owned()));
}

/// Such a token would be the client's own at the server.
#[tokio::test]
async fn a_token_that_comes_back_unchanged_is_not_used() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    let same = json!({"access_token": "TOPSECRET-caller-1", "token_type": "Bearer"});
    peer.next_token("200 OK", &same);
    let caller = caller(1);
    let source = source(&exchange, &caller);
    let error = source.authorization_for(&caller).await.unwrap_err();
    assert!(
        error
            .details()
            .ends_with(": the authorization server did not exchange the token")
    );
}

#[tokio::test]
async fn requests_of_the_gateway_have_the_latest_token_of_the_user() {
    let peer = LoginServer::start().await;
    let exchange = exchange(&peer, |_| {});
    let (old, new) = (caller(1), caller(2));
    let source = source(&exchange, &old);
    assert!(!source.present(&old) && source.present(&new) && !source.present(&new));
    soon(source.renewed()).await;
    source.authorization().await.unwrap();
    let form = &peer.requests("POST /token")[0].body;
    assert_eq!(parameter(form, "subject_token"), "TOPSECRET-caller-2");
}
