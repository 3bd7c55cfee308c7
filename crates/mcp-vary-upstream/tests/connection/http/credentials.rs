//! Credentials that change while a connection is open.

use std::sync::atomic::AtomicU32;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::AUTHORIZATION;
use mcp_vary_http_client::credential_source::{CredentialError, CredentialSource, Refusal, Retry};

use super::*;

/// Gives `Bearer SECRET-TOKEN-N`, where N grows with each refusal of the latest value.
#[derive(Debug, Default)]
struct Tokens {
    number: AtomicU32,
    refusals: Mutex<Vec<(StatusCode, usize)>>,
    /// After a refusal there is no other value.
    is_final: bool,
    /// There is no value at all.
    is_empty: bool,
    /// Nobody is logged in before the first refusal.
    is_late: bool,
}

impl CredentialSource for Tokens {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
        let number = self.number.load(Ordering::SeqCst);
        let value = format!("Bearer SECRET-TOKEN-{number}");
        let error = CredentialError::new("log in with `vary login remote`");
        Box::pin(async move {
            // As a source does that fetches its value.
            tokio::task::yield_now().await;
            if self.is_empty {
                Err(error.with_details("the file `tokens.json` is empty"))
            } else {
                Ok(Some(value.parse().unwrap()))
            }
        })
    }

    fn is_absent(&self) -> bool {
        self.is_late && self.refusals.lock().unwrap().is_empty()
    }

    fn refused<'a>(
        &'a self,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Retry, CredentialError>> {
        let challenges = refusal.challenges.len();
        self.refusals
            .lock()
            .unwrap()
            .push((refusal.status, challenges));
        let number = self.number.load(Ordering::SeqCst);
        if refusal
            .sent
            .is_some_and(|sent| *sent == format!("Bearer SECRET-TOKEN-{number}"))
        {
            self.number.store(number + 1, Ordering::SeqCst);
        }
        let retry = if self.is_final {
            Retry::Never
        } else {
            Retry::Once
        };
        Box::pin(async move { Ok(retry) })
    }

    fn identity(&self) -> &str {
        "tokens"
    }
}

fn config_with(peer: &ScriptedServer, tokens: &Arc<Tokens>) -> UpstreamConfig {
    let source: Arc<dyn CredentialSource> = Arc::clone(tokens) as _;
    config(peer).with_credential(AUTHORIZATION, source)
}

fn unauthorized(challenge: &str) -> Reply {
    Reply::new(401, "text/plain", "who are you, SECRET-TOKEN-0?")
        .with_header("www-authenticate", challenge)
}

/// A server that accepts the tokens from this number on, for all requests or for calls alone.
async fn server_from(number: u32, only: Option<&'static str>) -> ScriptedServer {
    ScriptedServer::start(move |seen| {
        let sent = seen
            .header("authorization")
            .and_then(|it| it.rsplit('-').next());
        let sent = sent.and_then(|it| it.parse::<u32>().ok());
        let is_checked = only.is_none_or(|method| seen.method() == method);
        (is_checked && sent.is_none_or(|sent| sent < number)).then(|| unauthorized("Bearer"))
    })
    .await
}

#[tokio::test]
async fn every_request_has_the_value_of_its_moment() {
    let (peer, tokens) = (server_from(0, None).await, Arc::<Tokens>::default());
    let upstream = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap();
    peer.wait_for("GET", 1).await;
    tokens.number.store(7, Ordering::SeqCst);
    result(&upstream, "x").await.unwrap();
    upstream
        .notify("notifications/roots/list_changed", None)
        .await
        .unwrap();
    upstream.close().await;
    for seen in peer.received() {
        let expected = match seen.method() {
            "tools/call" | "notifications/roots/list_changed" | "DELETE" => "Bearer SECRET-TOKEN-7",
            _ => "Bearer SECRET-TOKEN-0",
        };
        assert_eq!(
            seen.header("authorization"),
            Some(expected),
            "{}",
            seen.method()
        );
    }
    assert_eq!(peer.of("DELETE").len(), 1);
    assert!(tokens.refusals.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_request_is_sent_once_more_with_another_value() {
    let (peer, tokens) = (
        server_from(1, Some("tools/call")).await,
        Arc::<Tokens>::default(),
    );
    let upstream = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap();
    result(&upstream, "x").await.unwrap();
    assert_eq!(peer.of("tools/call").len(), 2);
    assert_eq!(
        *tokens.refusals.lock().unwrap(),
        [(StatusCode::UNAUTHORIZED, 1)]
    );
    // The handshake is repeated as well.
    let (peer, tokens) = (server_from(1, None).await, Arc::<Tokens>::default());
    let upstream = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap();
    result(&upstream, "x").await.unwrap();
    assert_eq!(tokens.refusals.lock().unwrap().len(), 1);
}

/// Without a login a request is sent at once; one that came since then is used when the server asks for it.
#[tokio::test]
async fn a_request_that_was_sent_without_a_login_is_sent_once_more_with_it() {
    let late = Tokens {
        is_late: true,
        ..Tokens::default()
    };
    let (peer, tokens) = (server_from(0, Some("tools/call")).await, Arc::new(late));
    let upstream = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap();
    result(&upstream, "x").await.unwrap();
    let sent = peer.of("tools/call");
    let sent: Vec<_> = sent
        .iter()
        .map(|seen| seen.header("authorization"))
        .collect();
    assert_eq!(sent, [None, Some("Bearer SECRET-TOKEN-0")]);
    let refusals = tokens.refusals.lock().unwrap().clone();
    assert_eq!(refusals, [(StatusCode::UNAUTHORIZED, 1)]);
}

/// A call to which the server always gives this reply is sent `count` times, and fails with `parts`.
async fn fails_after(count: usize, tokens: Tokens, reply: fn() -> Reply, parts: &[&str]) {
    let peer = legacy(move |_| reply()).await;
    let tokens = Arc::new(tokens);
    let upstream = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap();
    let exchange = upstream.request(call("x")).await.unwrap();
    let error = exchange.answer().await.unwrap_err();
    assert_eq!(peer.of("tools/call").len(), count);
    says(&error.details(), parts);
    for text in [
        error.to_string(),
        error.details(),
        format!("{error:?} {upstream:?}"),
    ] {
        assert!(!text.contains("SECRET-TOKEN"), "{text}");
    }
    says(&error, &["`remote`"]);
    assert!(!error.to_string().contains("who are you"), "{error}");
}

#[tokio::test]
async fn a_second_refusal_is_the_result_and_shows_neither_token_nor_body_to_clients() {
    fails_after(
        2,
        Tokens::default(),
        || unauthorized("Bearer"),
        &[
            "401",
            "who are you, ***?",
            "it refused the headers that were sent, `authorization`",
        ],
    )
    .await;
    let is_final = Tokens {
        is_final: true,
        ..Tokens::default()
    };
    fails_after(1, is_final, || unauthorized("Bearer"), &["401"]).await;
}

#[tokio::test]
async fn a_missing_scope_is_a_refusal_and_another_403_is_not() {
    let missing = || {
        Reply::new(403, "text/plain", "").with_header(
            "www-authenticate",
            r#"Bearer error="insufficient_scope", scope="a""#,
        )
    };
    fails_after(2, Tokens::default(), missing, &["403"]).await;
    fails_after(
        1,
        Tokens::default(),
        || Reply::new(403, "text/plain", ""),
        &["403"],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_repeats_the_latest_token_does_not_bring_it_into_errors() {
    let echo = || Reply::new(500, "text/plain", "Bearer SECRET-TOKEN-0 SECRET%2DTOKEN-0");
    fails_after(1, Tokens::default(), echo, &["500", "***"]).await;
}

#[tokio::test]
async fn without_a_value_nothing_is_sent_and_the_error_says_what_to_do() {
    let (peer, tokens) = (
        server_from(0, None).await,
        Arc::new(Tokens {
            is_empty: true,
            ..Tokens::default()
        }),
    );
    let error = UpstreamConnection::connect(config_with(&peer, &tokens))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `remote` has no usable credentials: log in with `vary login remote`: the file `tokens.json` is empty"
    );
    assert_eq!(
        error.client_message(),
        "server `remote` has no usable credentials: log in with `vary login remote`"
    );
    assert!(peer.received().is_empty());
}

#[tokio::test]
async fn connections_are_the_same_if_their_sources_are_made_from_the_same() {
    let peer = server_from(0, None).await;
    let (one, other) = (Arc::<Tokens>::default(), Arc::<Tokens>::default());
    assert!(config_with(&peer, &one).is_same_connection(&config_with(&peer, &other)));
    assert!(!config_with(&peer, &one).is_same_connection(&config(&peer)));
}
