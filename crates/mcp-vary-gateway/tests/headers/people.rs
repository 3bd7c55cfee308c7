//! People with claims, and gateways that send them to a server.

use http::HeaderName;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_upstream::{HeaderSource, HeaderTemplate, TemplatePart};

pub(super) use crate::support::people::{Session, ask_both, key};
use crate::support::people::{key_entry, token_config, trusted, with_credential};
use crate::support::*;

/// The people of all tests, with their claims.
pub(super) fn people() -> Vec<(&'static str, Value)> {
    let all = rows(
        r#"
        ann    | {"email": "ann@example.com", "level": 7, "team": "red"}
        eve    | {"email": "eve@example.com", "level": 8, "team": "red"}
        absent | {"level": 1}
        empty  | {"email": "", "level": 1}
        list   | {"email": ["TOPSECRET@example.com"], "level": 1}
        object | {"email": {"a": "TOPSECRET"}, "level": 1}
        umlaut | {"email": "TOPSECRETänn@example.com", "level": 1}
        space  | {"email": "TOPSECRET ", "level": 1}
    "#,
    );
    all.map(|[who, claims]| (who, cell(claims))).collect()
}

/// `config` with keys for all people, and tokens of a server.
pub(super) fn with_people(mut config: Config, server: Option<&AuthorizationServer>) -> Config {
    let entry = |(who, claims): (&str, Value)| {
        key_entry(who, Claims::from_json(&claims.to_string()).unwrap())
    };
    let keys = KeyTable::new(people().into_iter().map(entry).collect()).unwrap();
    let tokens = server.map(|server| token_config(trusted(server, &["here"], &["email", "level"])));
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
