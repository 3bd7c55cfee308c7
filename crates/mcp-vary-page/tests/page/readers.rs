//! Who reads the page with an access token.

use mcp_vary_testkit::credentials::{
    DIGEST_OF_CI, Draft, KEY_OF_CI, KEY_OF_NOBODY, KEY_OF_OLD, OTHER_ISSUER, good, keys,
};

use crate::support::*;

/// The digest of [`KEY_OF_OLD`], whose claims are those of a developer here.
const DIGEST_OF_OLD: &str = "32be01bd3125873e4a030d528fad97daa50adb6e14bb489f71a3c436d13c4bc7";

/// A gateway whose page those of the group `operators` may read, and which calls tools for others.
async fn shown() -> (Shown, AuthorizationServer) {
    let server = AuthorizationServer::start().await;
    let published = keys::set(&keys::PUBLISHED).to_string();
    server.respond("/published", "200 OK", &published);
    let lines = format!(
        "
admin-readers: {{groups: operators}}
admin-calls: on
public-url: https://mcp.example
auth:
  anonymous: on
  issuers: [{{issuer: '{OTHER_ISSUER}', jwks: '{}/published'}}]
  keys:
    - {{name: ops, sha256: {DIGEST_OF_CI}, claims: {{groups: [operators, dev]}}}}
    - {{name: dev, sha256: {DIGEST_OF_OLD}, claims: {{groups: [dev]}}}}
",
        server.issuer()
    );
    (Shown::with(&lines).await, server)
}

/// A token that is good at the time of these gateways.
fn token() -> Draft {
    let token = good().claim("iss", OTHER_ISSUER).claim("iat", 999_000);
    token.claim("exp", 1_000_600)
}

fn with(path: &str, token: &str) -> HttpRequest {
    get(path)
        .without("Authorization")
        .with("Authorization", format!("Bearer {token}"))
}

/// OP-9
#[tokio::test]
async fn an_access_token_with_the_claim_reads_the_page() {
    let (shown, _server) = shown().await;
    let operator = token().claim("groups", json!(["dev", "operators"])).sign();
    let single = token().claim("groups", "operators").sign();
    let developer = token().sign();
    let expired = token().claim("groups", "operators");
    let expired = expired.claim("exp", 999_500).sign();
    for (token, status) in [
        (&*operator, 200),
        (&single, 200),
        (KEY_OF_CI, 200),
        (&developer, 401),
        (&expired, 401),
        (KEY_OF_OLD, 401),
        (KEY_OF_NOBODY, 401),
        ("", 401),
    ] {
        let answer = with("/api/status", token).send_to(shown.address).await;
        assert_eq!(answer.status, status, "{token}: {}", answer.text());
    }
    // Clients without a credential are let in as anonymous at the endpoint, not here.
    let without = get("/api/status").without("Authorization");
    assert_eq!(without.send_to(shown.address).await.status, 401);
    let status = with("/api/status", &operator)
        .send_to(shown.address)
        .await
        .json();
    let all = shown.get("/api/status").await.json();
    for permission in ["calls", "retries"] {
        assert_eq!(status[permission], false, "{status}");
        assert_eq!(all[permission], true, "{all}");
    }
}

#[tokio::test]
async fn the_operator_sees_where_the_audit_log_is_and_a_reader_does_not() {
    let file = std::env::temp_dir().join(format!("vary-page-audit-{}.jsonl", std::process::id()));
    let path = file.to_str().unwrap();
    let shown = Shown::with(&format!(
        "
admin-readers: {{groups: operators}}
audit: {{to: 'file {path}'}}
auth:
  keys: [{{name: ops, sha256: {DIGEST_OF_CI}, claims: {{groups: [operators]}}}}]
"
    ))
    .await;
    let of_operator = async || shown.get("/api/last-calls").await.json();
    let without = json!({"calls": []});
    assert_eq!(of_operator().await, json!({"calls": [], "auditFile": path}));
    let reader = with("/api/last-calls", KEY_OF_CI);
    assert_eq!(reader.send_to(shown.address).await.json(), without);
    // If it is gone, there is nothing to read.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(of_operator().await, without);
}

/// OP-9
#[tokio::test]
async fn an_access_token_only_reads() {
    let (shown, _server) = shown().await;
    let post = |path: &str| with(path, KEY_OF_CI).line(&format!("POST {path} HTTP/1.1"));
    for (request, status) in [
        (post("/api/call"), 403),
        (post("/api/save"), 403),
        (post("/api/undo"), 403),
        (with("/api/recorded", KEY_OF_CI), 403),
        (post("/api/retry?server=places"), 403),
        (post("/drain"), 401),
        (post("/reload"), 401),
        (post("/api/explain"), 200),
        (with("/status", KEY_OF_CI), 200),
        (with("/api/last-calls", KEY_OF_CI), 200),
        (post("/api/last-calls"), 405),
        (with("/status", KEY_OF_OLD), 401),
        (with("/api/variant?id=standard", KEY_OF_CI), 200),
        (
            with("/api/catalog", KEY_OF_CI).with("Host", "evil.example"),
            403,
        ),
        (
            with("/api/catalog", KEY_OF_CI).with("Origin", "https://evil.example"),
            403,
        ),
        (
            with("/api/catalog", KEY_OF_CI).with_another("Authorization", "Bearer x"),
            401,
        ),
    ] {
        let answer = request.send_to(shown.address).await;
        assert_eq!(answer.status, status, "{request:?}: {}", answer.text());
    }
}
