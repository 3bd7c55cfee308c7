//! People in groups, and gateways with rules for them.

use mcp_vary_access::{
    AccessPolicy, AccessRule, ClaimMapping, Claims, ItemPattern, Presence, When,
};
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::TrustedIssuer;
use mcp_vary_gateway::settings::access::AccessSettings;
use mcp_vary_gateway::settings::authentication::{
    Authentication, IssuerConfig, KeySource, TokenConfig,
};
use mcp_vary_view::Rule;

use crate::support::*;

/// The people of all tests, each in the group of its name.
pub(super) const PEOPLE: [&str; 3] = ["dev", "sre", "guest"];

/// The API key of a person.
pub(super) fn key(who: &str) -> String {
    let mut random = [7; 32];
    random[..who.len()].copy_from_slice(who.as_bytes());
    ApiKey::from_random(random).expose().to_owned()
}

fn entry(who: &str, claims: Claims) -> KeyEntry {
    KeyEntry {
        name: who.to_owned(),
        digest: ApiKey::parse(&key(who)).unwrap().digest(),
        claims,
        expires_at: None,
    }
}

/// One key, of a person with these claims.
pub(super) fn key_with(who: &str, claims: Claims) -> Authentication {
    let entries = vec![entry(who, claims)];
    Authentication::new(KeyTable::new(entries).unwrap(), None, false).unwrap()
}

/// Keys for all people.
pub(super) fn everybody() -> Authentication {
    let groups = |who| Claims::from_json(&json!({"groups": [who]}).to_string()).unwrap();
    let entries = PEOPLE.map(|who| entry(who, groups(who))).into();
    Authentication::new(KeyTable::new(entries).unwrap(), None, false).unwrap()
}

/// Authentication by the tokens of `server`, whose `groups` rules use.
pub(super) fn tokens(server: &AuthorizationServer) -> Authentication {
    let trusted = TrustedIssuer {
        issuer: Issuer::parse(&server.issuer()).unwrap(),
        audiences: vec!["here".to_owned()],
        scopes: Vec::new(),
        claims: ClaimMapping::default().with_names(["groups"]).unwrap(),
    };
    let tokens = TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse("https://mcp.example").unwrap(),
        issuers: vec![IssuerConfig {
            trusted,
            keys: KeySource::Discovery.into(),
        }],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    };
    Authentication::new(KeyTable::default(), Some(tokens), false).unwrap()
}

/// The claims of ann as a member of a group.
pub(super) fn claims(group: &str) -> Value {
    json!({"sub": "ann", "aud": "here", "exp": 1_000_600, "groups": [group]})
}

/// A rule for the members of a group.
pub(super) fn for_group(name: &str) -> AccessRule {
    let groups = Presence::of([name]).unwrap();
    AccessRule::new(When::new().with_claim("groups", groups).unwrap())
}

/// A pattern over the names of all kinds of items.
pub(super) fn named(pattern: &str) -> ItemPattern {
    ItemPattern::any(Rule::by_name(pattern.parse().unwrap()))
}

/// `config` with keys for all people, and these rules.
pub(super) fn with_rules(
    mut config: Config,
    rules: impl IntoIterator<Item = AccessRule>,
) -> Config {
    config.authentication = Some(everybody());
    config.access = Some(AccessSettings {
        policy: Arc::new(AccessPolicy::new(rules).unwrap()),
        trusted_annotations: Arc::default(),
    });
    config
}

/// The answer to a modern request.
pub(super) async fn ask_modern(
    harness: &Harness,
    who: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    let message = modern(json!(1), method, params, &json!({}));
    let post = HttpRequest::modern(&message).with("Authorization", bearer(who));
    RawHttp::connect(harness.address()).await.ask(&post).await
}

/// The answer to a request in a new session.
pub(super) async fn ask_legacy(
    harness: &Harness,
    who: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    let mut http = RawHttp::connect(harness.address()).await;
    let open = HttpRequest::new(initialize("2025-11-25", &json!({})).to_string());
    let opened = http.ask(&open.with("Authorization", bearer(who))).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let message = request(json!(1), method, params).to_string();
    let post = HttpRequest::of(&id, message).with("Authorization", bearer(who));
    http.ask(&post).await
}

/// The answers of both eras.
pub(super) async fn ask(harness: &Harness, who: &str, method: &str, params: Value) -> [Value; 2] {
    let legacy = ask_legacy(harness, who, method, params.clone()).await;
    let modern = ask_modern(harness, who, method, params).await;
    [legacy.json(), modern.json()]
}

pub(super) fn bearer(who: &str) -> String {
    format!("Bearer {}", key(who))
}
