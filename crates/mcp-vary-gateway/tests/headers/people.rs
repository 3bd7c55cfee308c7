//! People with claims, and gateways that send them to a server.

use http::HeaderName;
use mcp_vary_access::{ClaimMapping, Claims};
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::TrustedIssuer;
use mcp_vary_gateway::settings::authentication::{
    Authentication, IssuerConfig, KeySource, TokenConfig,
};
use mcp_vary_upstream::{HeaderSource, HeaderTemplate, TemplatePart};

use crate::support::*;

/// The people of all tests, with their claims.
pub(super) fn people() -> Vec<(&'static str, Value)> {
    vec![
        (
            "ann",
            json!({"email": "ann@example.com", "level": 7, "team": "red"}),
        ),
        (
            "eve",
            json!({"email": "eve@example.com", "level": 8, "team": "red"}),
        ),
        ("absent", json!({"level": 1})),
        ("empty", json!({"email": "", "level": 1})),
        (
            "list",
            json!({"email": ["TOPSECRET@example.com"], "level": 1}),
        ),
        ("object", json!({"email": {"a": "TOPSECRET"}, "level": 1})),
        (
            "umlaut",
            json!({"email": "TOPSECRETänn@example.com", "level": 1}),
        ),
        ("space", json!({"email": "TOPSECRET ", "level": 1})),
    ]
}

/// The API key of a person.
pub(super) fn key(who: &str) -> String {
    let mut random = [7; 32];
    random[..who.len()].copy_from_slice(who.as_bytes());
    ApiKey::from_random(random).expose().to_owned()
}

/// `config` with keys for all people, and tokens of a server.
pub(super) fn with_people(mut config: Config, server: Option<&AuthorizationServer>) -> Config {
    let entry = |(who, claims): (&str, Value)| KeyEntry {
        name: who.to_owned(),
        digest: ApiKey::parse(&key(who)).unwrap().digest(),
        claims: Claims::from_json(&claims.to_string()).unwrap(),
        expires_at: None,
    };
    let keys = KeyTable::new(people().into_iter().map(entry).collect()).unwrap();
    let tokens = server.map(|server| TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse("https://mcp.example").unwrap(),
        issuers: vec![IssuerConfig {
            trusted: TrustedIssuer {
                issuer: Issuer::parse(&server.issuer()).unwrap(),
                audiences: vec!["here".to_owned()],
                scopes: Vec::new(),
                claims: ClaimMapping::default()
                    .with_names(["email", "level"])
                    .unwrap(),
            },
            keys: KeySource::Discovery.into(),
        }],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    });
    config.authentication = Some(Authentication::new(keys, tokens, true).unwrap());
    config
}

/// `server` with the headers `X-User: user EMAIL` and `X-Level: LEVEL`.
pub(super) fn with_headers(server: UpstreamConfig) -> UpstreamConfig {
    let template = |parts: &[TemplatePart]| {
        HeaderSource::Claims(HeaderTemplate::new(parts.iter().cloned()).unwrap())
    };
    let user = [
        TemplatePart::Text("user ".into()),
        TemplatePart::Claim("email".into()),
    ];
    let level = [TemplatePart::Claim("level".into())];
    server
        .with_header(HeaderName::from_static("x-user"), template(&user))
        .with_header(HeaderName::from_static("x-level"), template(&level))
}

/// `config` whose first server has those headers, with keys for all people.
pub(super) fn for_people(mut config: Config) -> Config {
    let server = config.servers.remove(0);
    config.servers.insert(0, with_headers(server));
    with_people(config, None)
}

/// The headers with which a request arrived.
pub(super) fn headers_of(seen: &ReceivedRequest) -> (Option<&str>, Option<&str>) {
    (seen.header("x-user"), seen.header("x-level"))
}

/// A request with a credential; none for anonymous clients.
pub(super) fn with_credential(post: HttpRequest, token: &str) -> HttpRequest {
    match token {
        "" => post,
        token => post.with("Authorization", format!("Bearer {token}")),
    }
}

/// The answer to a modern request.
pub(super) async fn ask_modern(
    harness: &Harness,
    (token, capabilities): (&str, &Value),
    method: &str,
    params: Value,
) -> HttpResponse {
    let message = modern(json!(1), method, params, capabilities);
    let post = with_credential(HttpRequest::modern(&message), token);
    RawHttp::connect(harness.address()).await.ask(&post).await
}

/// A session that was opened with a token.
pub(super) struct Session {
    http: RawHttp,
    id: String,
}

impl Session {
    pub(super) async fn open(harness: &Harness, token: &str, capabilities: &Value) -> Self {
        let mut http = RawHttp::connect(harness.address()).await;
        let post = HttpRequest::new(initialize("2025-11-25", capabilities).to_string());
        let answer = http.ask(&with_credential(post, token)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        Self { http, id }
    }

    /// The answer to a request in the session, sent with `token`.
    pub(super) async fn ask(&mut self, token: &str, method: &str, params: Value) -> HttpResponse {
        let message = request(json!(1), method, params).to_string();
        let post = HttpRequest::of(&self.id, message);
        self.http.ask(&with_credential(post, token)).await
    }
}
