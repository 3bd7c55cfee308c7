//! Every credential of the table over HTTP: status, `WWW-Authenticate` and body of what may not pass.

use std::sync::atomic::AtomicU64;

use mcp_vary_access::{ClaimMapping, Claims};
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::TrustedIssuer;
use mcp_vary_gateway::settings::authentication::{
    Authentication, IssuerConfig, KeySource, TokenConfig,
};
use mcp_vary_testkit::credentials::{
    Head, ISSUER, KEY_OF_CI, KEY_OF_OLD, NOW, OTHER_ISSUER, PUBLIC, Row, TABLES, bearer, good, keys,
};

use crate::support::*;

/// The variants that tokens of the table are pinned to; `x` does not exist.
const VARIANTS: [&str; 5] = ["a", "b", "compact", "full", "für"];

/// Longer than what the gateway reads of a head, so that the answer is 431 before a header is looked at.
const TOO_LARGE_FOR_A_HEAD: [&str; 3] = ["1 MB of kid", "a sub of 1 MB", "10,000 groups"];

/// The issuers of the table, whose keys are at `url`.
fn authentication(url: &str) -> Authentication {
    let issuer = |name: &str, audiences: &[&str], scopes: &[&str]| IssuerConfig {
        trusted: TrustedIssuer {
            issuer: Issuer::parse(name).unwrap(),
            audiences: audiences.iter().map(|&audience| audience.into()).collect(),
            scopes: { scopes.iter() }
                .map(|&scope| Scope::parse(scope).unwrap())
                .collect(),
            claims: ClaimMapping::default().with_names(["groups"]).unwrap(),
        },
        keys: KeySource::Url(url.to_owned()).into(),
    };
    let entry = |name: &str, key: &str, expires_at: Option<u64>| KeyEntry {
        name: name.to_owned(),
        digest: ApiKey::parse(key).unwrap().digest(),
        claims: Claims::default(),
        expires_at,
    };
    let keys = vec![
        entry("ci", KEY_OF_CI, None),
        entry("old", KEY_OF_OLD, Some(NOW)),
    ];
    let tokens = TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse(PUBLIC).unwrap(),
        issuers: vec![
            issuer(ISSUER, &["api://vary", "client-of-vary"], &["mcp:read"]),
            issuer(OTHER_ISSUER, &[], &[]),
        ],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    };
    Authentication::new(KeyTable::new(keys).unwrap(), Some(tokens), false).unwrap()
}

/// A gateway that knows the clients of the table, at the time of `clock`.
async fn gateway(clock: fn() -> u64) -> (Harness, AuthorizationServer) {
    let server = AuthorizationServer::start().await;
    let published = keys::set(&keys::PUBLISHED).to_string();
    server.respond("/published", "200 OK", &published);
    let peer = places_server::start(Era::Legacy).await;
    let environment = Environment::new(clock, |bytes| getrandom::fill(bytes).unwrap());
    let upstream = UpstreamConfig::new("peer", Target::http(peer.url.clone()));
    let config = Config::new(upstream, environment).with_limits(limits());
    let mut config = config
        .with_variants_of(VARIANTS.map(variant).into())
        .unwrap();
    config.authentication = Some(authentication(&format!("{}/published", server.issuer())));
    (Harness::behind(peer, config).await, server)
}

/// `post` with the credentials of `head`.
fn with_head(post: HttpRequest, head: &Head) -> HttpRequest {
    let line = format!("POST {} HTTP/1.1", head.target());
    let values = { head.authorization.iter() }.map(|value| str::from_utf8(value).unwrap());
    values.fold(post.line(&line), |post, value| {
        post.with_another("Authorization", value)
    })
}

fn list(params: Value) -> HttpRequest {
    HttpRequest::modern_request("tools/list", params)
}

/// Status, challenge and body, as RFC 6750, section 3, and RFC 9728, section 5.1, want them.
fn refusal(expected: &str, head: &Head) -> (u16, Option<String>, String) {
    let (status, text) = expected.split_once(' ').unwrap();
    let (error, description) = text.split_once(": ").unwrap();
    let metadata = format!(
        r#"resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource{}""#,
        head.path
    );
    // A request without a credential is told of no error.
    let named = match error {
        "unauthorized" => String::new(),
        _ => format!(r#"error="{error}", error_description="{description}", "#),
    };
    // The issuers have no scope in common, so that only the refusal of a known issuer's token names one.
    let scope = match status {
        "403" => r#", scope="mcp:read""#,
        _ => "",
    };
    (
        status.parse().unwrap(),
        Some(format!("Bearer {named}{metadata}{scope}")),
        format!(r#"{{"error":"{error}","error_description":"{description}"}}"#),
    )
}

fn seen(answer: &HttpResponse) -> (u16, Option<String>, String) {
    let challenge = answer.header("www-authenticate").map(str::to_owned);
    (answer.status, challenge, answer.text())
}

/// What is wrong with the answers to a row; nothing, hopefully.
async fn check(harness: &Harness, (name, head, expected): &Row) -> Vec<String> {
    let head = head();
    let initialize = HttpRequest::initialize(&json!({}));
    // The second answer to a good token comes from the cache.
    let posts = [list(json!({})), list(json!({})), initialize];
    let mut wrong = Vec::new();
    for post in posts {
        let answer = with_head(post, &head).send_to(harness.address).await;
        let is_right = match expected.strip_prefix("200 ") {
            _ if TOO_LARGE_FOR_A_HEAD.contains(name) => seen(&answer) == (431, None, String::new()),
            // The address of a variant that does not exist.
            Some("token pinned to x") => {
                let error = &answer.answer()["error"];
                let data = json!({"requestedVariant": "x", "availableVariants": []});
                error["code"] == -32602 && error["data"] == data
            }
            Some(_) => answer.status == 200 && answer.answer()["result"].is_object(),
            None => seen(&answer) == refusal(expected, &head),
        };
        if !is_right {
            wrong.push(format!(
                "{name}: expected {expected}\n    {:?}",
                seen(&answer)
            ));
        }
    }
    if let Some((_, pin)) = expected.split_once("pinned to ") {
        let post = with_head(list(under("standard", json!({}))), &head);
        let answer = post.send_to(harness.address).await;
        let offered = &answer.json()["error"]["data"]["availableVariants"];
        if VARIANTS.contains(&pin) && *offered != json!([pin]) {
            wrong.push(format!(
                "{name}: not pinned to {pin}\n    {}",
                answer.text()
            ));
        }
    }
    wrong
}

/// SV-9, AU-4. What is refused has no effect: it opens no session, and reaches no server.
#[tokio::test]
async fn every_credential_is_answered_as_the_table_says() {
    let (harness, _server) = gateway(|| NOW).await;
    let rows: Vec<&Row> = TABLES.iter().copied().flatten().collect();
    let (good, bad): (Vec<&Row>, Vec<&Row>) =
        rows.into_iter().partition(|row| row.2.starts_with("200"));
    assert!(good.len() >= 30 && bad.len() >= 120);
    let mut wrong = Vec::new();
    let before = harness.peer.received().len();
    for row in bad {
        wrong.extend(check(&harness, row).await);
    }
    assert_eq!(harness.peer.received().len(), before);
    for row in good {
        wrong.extend(check(&harness, row).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The seconds by which the clock of the next test is wrong, around an hour.
static OFFSET: AtomicU64 = AtomicU64::new(HOUR);

const HOUR: u64 = 3600;

#[tokio::test]
async fn a_clock_that_is_an_hour_off_accepts_no_token_that_it_has_not_seen() {
    let (harness, _server) = gateway(|| NOW - HOUR + OFFSET.load(Ordering::Relaxed)).await;
    let ask_with = async |subject: &str| {
        let token = bearer(good().claim("sub", subject).sign());
        let post = with_head(list(json!({})), &token);
        let answer = post.send_to(harness.address).await;
        let description = match answer.status {
            200 => json!(names(&answer.json()).contains(&"odd")),
            _ => answer.json()["error_description"].clone(),
        };
        (answer.status, description)
    };
    assert_eq!(ask_with("ann").await, (200, json!(true)));
    OFFSET.store(2 * HOUR, Ordering::Relaxed);
    let expired = (401, json!("the token has expired"));
    assert_eq!(ask_with("bob").await, expired);
    // A token that was verified in time ends with its `exp`, too.
    let again = with_head(list(json!({})), &bearer(good().sign()));
    OFFSET.store(HOUR, Ordering::Relaxed);
    assert_eq!(again.send_to(harness.address).await.status, 200);
    OFFSET.store(2 * HOUR, Ordering::Relaxed);
    assert_eq!(again.send_to(harness.address).await.status, 401);
    OFFSET.store(0, Ordering::Relaxed);
    let early = (401, json!("the token is not valid yet"));
    assert_eq!(ask_with("eve").await, early);
    OFFSET.store(HOUR, Ordering::Relaxed);
    assert_eq!(ask_with("bob").await, (200, json!(true)));
}
