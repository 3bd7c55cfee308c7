//! People with credentials, and what the gateway is configured with for them.

use mcp_vary_access::{ClaimMapping, Claims};
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::TrustedIssuer;
use mcp_vary_gateway::settings::authentication::{IssuerConfig, KeySource, TokenConfig};

use super::*;

/// Where the gateway is reached.
pub(crate) const PUBLIC: &str = "https://mcp.example";

/// The API key of a person.
pub(crate) fn key(who: &str) -> String {
    let mut random = [7; 32];
    random[..who.len()].copy_from_slice(who.as_bytes());
    ApiKey::from_random(random).expose().to_owned()
}

/// The entry of that key.
pub(crate) fn key_entry(who: &str, claims: Claims) -> KeyEntry {
    KeyEntry {
        name: who.to_owned(),
        digest: ApiKey::parse(&key(who)).unwrap().digest(),
        claims,
        expires_at: None,
    }
}

/// The keys of people in the group of their name.
pub(crate) fn keys_with_groups(people: &[&str]) -> KeyTable {
    let groups = |who| Claims::from_json(&json!({"groups": [who]}).to_string()).unwrap();
    let entries = people.iter().map(|who| key_entry(who, groups(*who)));
    KeyTable::new(entries.collect()).unwrap()
}

/// Trust in the tokens of `server` for one of `audiences`, with these claims of them.
pub(crate) fn trusted(
    server: &AuthorizationServer,
    audiences: &[&str],
    claims: &[&str],
) -> TrustedIssuer {
    TrustedIssuer {
        issuer: Issuer::parse(&server.issuer()).unwrap(),
        audiences: audiences.iter().map(|it| (*it).to_owned()).collect(),
        scopes: Vec::new(),
        claims: ClaimMapping::default()
            .with_names(claims.iter().copied())
            .unwrap(),
    }
}

/// The configuration for the tokens of this issuer.
pub(crate) fn token_config(trusted: TrustedIssuer) -> TokenConfig {
    TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse(PUBLIC).unwrap(),
        issuers: vec![IssuerConfig {
            trusted,
            keys: KeySource::Discovery.into(),
        }],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    }
}

/// `post` with a bearer token.
pub(crate) fn bearer(post: HttpRequest, token: &str) -> HttpRequest {
    post.with("Authorization", format!("Bearer {token}"))
}

/// A request with a credential; none for anonymous clients.
pub(crate) fn with_credential(post: HttpRequest, token: &str) -> HttpRequest {
    match token {
        "" => post,
        token => bearer(post, token),
    }
}

/// The answer to a modern request with a token.
pub(crate) async fn ask_modern(
    harness: &Harness,
    token: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    let post = with_credential(HttpRequest::modern_request(method, params), token);
    harness.connect().await.ask(&post).await
}

/// What answers a request with a token, in a new session and to a modern client.
pub(crate) async fn ask_both(
    harness: &Harness,
    token: &str,
    method: &str,
    params: Value,
) -> [Value; 2] {
    let mut session = Session::open(harness, token, &json!({})).await;
    let legacy = session.ask(token, method, params.clone()).await;
    let modern = ask_modern(harness, token, method, params).await;
    [legacy.json(), modern.json()]
}

/// A session that was opened with a token.
pub(crate) struct Session {
    pub(crate) http: RawHttp,
    pub(crate) id: String,
}

impl Session {
    pub(crate) async fn open(harness: &Harness, token: &str, capabilities: &Value) -> Self {
        let mut http = harness.connect().await;
        let post = HttpRequest::initialize(capabilities);
        let answer = http.ask(&with_credential(post, token)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        Self { http, id }
    }

    /// The answer to a request in the session, sent with `token`.
    pub(crate) async fn ask(&mut self, token: &str, method: &str, params: Value) -> HttpResponse {
        let message = request(json!(1), method, params).to_string();
        let post = HttpRequest::of(&self.id, message);
        self.http.ask(&with_credential(post, token)).await
    }
}

/// A client of either era that connects anew for each of its requests, which may have different tokens.
pub(crate) struct PersonClient {
    address: SocketAddr,
    /// Its session; none for a modern client.
    pub(crate) session: Option<String>,
    capabilities: Value,
}

impl PersonClient {
    pub(crate) async fn open(
        address: SocketAddr,
        era: Era,
        token: &str,
        capabilities: Value,
    ) -> Self {
        let session = match era {
            Era::Legacy => {
                let post = bearer(HttpRequest::initialize(&capabilities), token);
                Some(RawHttp::connect(address).await.open_session(&post).await)
            }
            Era::Modern => None,
        };
        Self {
            address,
            session,
            capabilities,
        }
    }

    /// The message that answers a request.
    pub(crate) async fn ask(&self, token: &str, method: &str, params: Value) -> Value {
        let post = match &self.session {
            Some(id) => HttpRequest::of(id, request(json!(1), method, params).to_string()),
            None => HttpRequest::modern_request_as(method, params, &self.capabilities),
        };
        let mut http = RawHttp::connect(self.address).await;
        http.ask(&bearer(post, token)).await.json()
    }
}
