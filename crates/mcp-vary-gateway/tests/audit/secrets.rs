//! What never is in the log, whatever happens.

use mcp_vary_audit::{ArgumentsDetail, IdentityDetail};

use super::principals::{key, with_keys};
use super::recorded::{Recorded, settings};
use crate::support::*;

const SECRET: &str = "s3cret-of-the-user";

/// A call with a secret wherever a client can put one that is not the name of a target.
fn call() -> Value {
    let mut params = tool("say");
    params["arguments"] = json!({"password": SECRET});
    params["_meta"] = json!({"com.example/token": SECRET});
    params[SECRET] = json!(SECRET);
    params
}

#[tokio::test]
async fn tokens_keys_sessions_arguments_and_headers_are_in_no_record() {
    let mut log = settings();
    log.identity = IdentityDetail::Full;
    let recorded = Recorded::with(log, with_keys).await;
    let mut secrets = vec![SECRET.to_owned(), key("ann"), key("bob")];
    for authorization in [
        format!("Bearer {}", key("ann")),
        format!("Bearer {SECRET}"),
        format!("Basic {SECRET}"),
    ] {
        let mut http = RawHttp::connect(recorded.harness.address()).await;
        let with = |post: HttpRequest| {
            post.with("Authorization", &*authorization)
                .with("Cookie", SECRET)
                .with("X-Key", SECRET)
        };
        let open = HttpRequest::initialize(&json!({}));
        let opened = http.ask(&with(open)).await;
        let session = opened.header("mcp-session-id").unwrap_or("no").to_owned();
        let message = request(json!(1), "tools/call", call()).to_string();
        let mut http = RawHttp::connect(recorded.harness.address()).await;
        http.ask(&with(HttpRequest::of(&session, message))).await;
        let mut http = RawHttp::connect(recorded.harness.address()).await;
        http.ask(&with(HttpRequest::modern_request("tools/call", call())))
            .await;
        if session != "no" {
            secrets.push(session);
        }
    }
    for kind in [ClientKind::StdioLegacy, ClientKind::StdioModern] {
        recorded.harness.ask(kind, "tools/call", call()).await;
    }
    recorded.harness.gateway.close().await;
    let text = recorded.sink.text();
    assert_eq!(secrets.len(), 4);
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret} in\n{text}");
    }
    // The log has these requests.
    let calls = recorded.sink.of("request");
    let calls = calls.iter().filter(|it| it["method"] == "tools/call");
    assert_eq!(calls.count(), 4);
    assert_eq!(recorded.sink.of("auth.refused").len(), 6);
}

/// The same for access tokens: of a good one, and of one that is refused for its claims.
#[tokio::test]
async fn an_access_token_is_in_no_record() {
    let server = AuthorizationServer::start().await;
    let authentication = super::operations::tokens(&server);
    let mut log = settings();
    log.identity = IdentityDetail::Full;
    let adapt = edited(|config| config.authentication = Some(authentication));
    let recorded = Recorded::with(log, adapt);
    let recorded = recorded.await;
    let mut tokens = Vec::new();
    for (expiry, status) in [(1_000_600, 200), (999_000, 401)] {
        let claims = json!({"sub": "ann", "aud": "here", "exp": expiry, "client_id": "ide"});
        let token = server.sign(claims);
        let post = HttpRequest::modern_request("tools/list", json!({}))
            .with("Authorization", format!("Bearer {token}"));
        let mut http = RawHttp::connect(recorded.harness.address()).await;
        let answer = http.ask(&post).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        tokens.push(token);
    }
    let record = recorded.sink.request("tools/list").await;
    let issuer = server.issuer();
    let principal = &record["principal"];
    principal.has("/sub", "ann");
    principal.has("/iss", issuer.as_str());
    principal.has("/client_id", "ide");
    let refused = recorded.sink.wait_for("auth.refused", 1).await;
    refused[0].starts("/rule", "auth: it has expired");
    let text = recorded.sink.text();
    for token in tokens {
        let signature = token.rsplit('.').next().unwrap();
        assert!(
            !text.contains(signature) && !text.contains(&token),
            "{text}"
        );
    }
}

/// Arguments are written only if the operator chooses so.
#[tokio::test]
async fn arguments_in_full_are_the_operators_choice() {
    for (detail, has_digest, has_text) in [
        (ArgumentsDetail::Off, false, false),
        (ArgumentsDetail::Digest, true, false),
        (ArgumentsDetail::Full { limit: 1024 }, true, true),
    ] {
        for kind in ClientKind::ALL {
            let mut log = settings();
            log.arguments = detail;
            let recorded = Recorded::with(log, |config| config).await;
            recorded.harness.ask(kind, "tools/call", call()).await;
            let record = recorded.sink.request("tools/call").await;
            let arguments = &record["arguments"];
            let written = json!({"password": SECRET}).to_string();
            arguments.has("/bytes", written.len());
            assert_eq!(arguments["digest"].is_string(), has_digest, "{kind:?}");
            let text = has_text.then_some(written.as_str());
            assert_eq!(arguments["text"].as_str(), text, "{kind:?}");
        }
    }
}
