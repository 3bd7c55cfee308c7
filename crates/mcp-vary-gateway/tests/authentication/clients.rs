//! Clients with credentials, and gateways that want them.

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

use crate::support::*;

/// The time of all tests, in seconds since 1970-01-01 UTC.
pub(super) const NOW: u64 = 1_000_000;

pub(super) const PUBLIC: &str = "https://mcp.example";

/// The API key of somebody.
pub(super) fn key(name: &str) -> String {
    let mut random = [7; 32];
    let name = name.as_bytes();
    random[..name.len()].copy_from_slice(name);
    ApiKey::from_random(random).expose().to_owned()
}

fn entry(name: &str) -> KeyEntry {
    KeyEntry {
        name: name.to_owned(),
        digest: ApiKey::parse(&key(name)).unwrap().digest(),
        claims: Claims::default(),
        expires_at: (name == "old").then_some(NOW),
    }
}

/// Authentication with a key for each of `names`.
pub(super) fn keys(names: &[&str]) -> Authentication {
    let entries = names.iter().map(|name| entry(name)).collect();
    Authentication::new(KeyTable::new(entries).unwrap(), None, false).unwrap()
}

/// `config` with keys for ann and eve.
pub(super) fn for_ann_and_eve(mut config: Config) -> Config {
    config.authentication = Some(keys(&["ann", "eve"]));
    config
}

/// Authentication by the tokens of `server`, which need the scope `mcp`.
pub(super) fn tokens(server: &AuthorizationServer) -> Authentication {
    tokens_and_keys(server, &[])
}

/// The same, and a key for each of `names`.
pub(super) fn tokens_and_keys(server: &AuthorizationServer, names: &[&str]) -> Authentication {
    let entries = names.iter().map(|name| entry(name)).collect();
    let claims = ClaimMapping::default();
    let trusted = TrustedIssuer {
        issuer: Issuer::parse(&server.issuer()).unwrap(),
        audiences: Vec::new(),
        scopes: vec![Scope::parse("mcp").unwrap()],
        claims,
    };
    let tokens = TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse(PUBLIC).unwrap(),
        issuers: vec![IssuerConfig {
            trusted,
            keys: KeySource::Discovery.into(),
        }],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    };
    Authentication::new(KeyTable::new(entries).unwrap(), Some(tokens), false).unwrap()
}

/// The claims of a good token of `subject`.
pub(super) fn claims(subject: &str) -> Value {
    json!({
        "sub": subject, "aud": format!("{PUBLIC}/mcp"), "exp": NOW + 600, "iat": NOW, "scope": "mcp",
        "client_id": "cli",
    })
}

/// `post` with a bearer token.
pub(super) fn bearer(post: HttpRequest, token: &str) -> HttpRequest {
    post.with("Authorization", format!("Bearer {token}"))
}

/// The answer to a modern request with a token.
pub(super) async fn ask_modern(
    harness: &Harness,
    token: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    let message = modern(json!(1), method, params, &json!({}));
    let mut http = RawHttp::connect(harness.address()).await;
    http.ask(&bearer(HttpRequest::modern(&message), token))
        .await
}

/// A session that was opened with a token.
pub(super) struct Session {
    pub(super) http: RawHttp,
    pub(super) id: String,
}

impl Session {
    pub(super) async fn open(harness: &Harness, token: &str, capabilities: &Value) -> Self {
        let mut http = RawHttp::connect(harness.address()).await;
        let post = HttpRequest::new(initialize("2025-11-25", capabilities).to_string());
        let answer = http.ask(&bearer(post, token)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        Self { http, id }
    }

    /// The answer to a request in the session, sent with `token`.
    pub(super) async fn ask(&mut self, token: &str, method: &str, params: Value) -> HttpResponse {
        let message = request(json!(1), method, params);
        let post = HttpRequest::of(&self.id, message.to_string());
        self.http.ask(&bearer(post, token)).await
    }
}
