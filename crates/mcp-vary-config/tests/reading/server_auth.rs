//! `auth` of a server.

use mcp_vary_config::AuthMethod;
use mcp_vary_login::exchange::{ExchangeForm, ExchangeServer, ExchangeSettings};
use mcp_vary_login::service::ServiceAuthentication;
use mcp_vary_login::user_agent::Flow;

use super::*;

const KEY: &str = include_str!("../../../mcp-vary-login/tests/keys/p256.pem");

/// How the file authenticates at its server, and the digest of that.
fn auth(auth: &str) -> (AuthMethod, String) {
    let text = format!("servers: {{a: {{url: 'https://x/mcp', ca: ca.pem, auth: {auth}}}}}");
    let mut file = read("vary.yaml", &text);
    let auth = file.auth.remove("a").unwrap();
    assert!(!format!("{auth:?}").contains(SECRET), "{auth:?}");
    (auth.method, auth.identity)
}

/// Checks what is wrong with `auth`, which is at 2:35.
#[track_caller]
fn refuses_auth(auth: &str, expected: &str) {
    refuses_server(&format!("{{url: 'https://x/mcp', auth: {auth}}}"), expected);
}

#[test]
fn a_server_has_a_login() {
    for text in ["login", "{login: {}}"] {
        let (AuthMethod::Login { settings, flow }, _) = auth(text) else {
            panic!("{text}");
        };
        assert_eq!(settings.name, "a");
        assert_eq!(settings.server.as_str(), "https://x/mcp");
        assert_eq!(settings.ca.unwrap().to_str(), Some("ca.pem"));
        assert!(settings.client.id.is_none() && settings.issuer.is_none());
        assert_eq!(flow, Flow::AuthorizationCode);
    }
    let text = "{login: {client-id: vary, client-secret: '${SECRET}', redirect-port: 8123, scopes: [a, b], \
        issuer: 'https://idp.example/', device: on}}";
    let (AuthMethod::Login { settings, flow }, _) = auth(text) else {
        panic!("no login");
    };
    assert_eq!(settings.client.id.as_deref(), Some("vary"));
    assert_eq!(settings.client.secret.unwrap().expose(), SECRET);
    assert_eq!(settings.client.redirect_port, Some(8123));
    assert_eq!(settings.scope.to_string(), "a b");
    assert_eq!(settings.issuer.unwrap().as_str(), "https://idp.example/");
    assert_eq!(flow, Flow::Device);
}

#[test]
fn a_server_has_the_credentials_of_a_service() {
    let text = "{client-credentials: {client-id: robot, client-secret: '${SECRET}', scopes: [a]}}";
    let (AuthMethod::ClientCredentials(settings), _) = auth(text) else {
        panic!("no credentials");
    };
    assert_eq!(
        (&*settings.client_id, settings.scope.to_string()),
        ("robot", "a".to_owned())
    );
    assert_eq!(settings.ca.unwrap().to_str(), Some("ca.pem"));
    let ServiceAuthentication::Secret(secret) = settings.authentication else {
        panic!("no secret");
    };
    assert_eq!(secret.expose(), SECRET);
    let key = serde_json::to_string(KEY).unwrap();
    let text = format!("{{client-credentials: {{client-id: r, private-key: {key}, key-id: k}}}}");
    let (AuthMethod::ClientCredentials(settings), _) = auth(&text) else {
        panic!("no credentials");
    };
    let authentication = settings.authentication;
    assert!(matches!(
        authentication,
        ServiceAuthentication::PrivateKey(_)
    ));
}

/// A reload replaces the credentials of a server if one of these has changed.
#[test]
fn each_setting_changes_the_identity() {
    let secret = "{client-credentials: {client-id: a, client-secret: b";
    let texts = [
        "login".to_owned(),
        "{login: {client-id: a}}".to_owned(),
        "{login: {client-id: a, client-secret: b}}".to_owned(),
        "{login: {client-id: a, device: on}}".to_owned(),
        format!("{secret}}}}}"),
        format!("{secret}, scopes: [a]}}}}"),
        format!("{secret}, issuer: 'https://i/'}}}}"),
    ];
    let identities: std::collections::BTreeSet<_> = texts.iter().map(|text| auth(text).1).collect();
    assert_eq!(identities.len(), texts.len());
    assert_eq!(auth("login").1, auth("{login: {}}").1);
}

#[test]
fn a_mistake_in_auth_is_named() {
    let example =
        "write `login`, or {client-credentials: {client-id: ..., client-secret: ..., issuer: ...}}";
    refuses_auth(
        "logins",
        &format!("2:35: `servers.a.auth` is not a way to authenticate at a server; {example}"),
    );
    refuses_auth(
        "{}",
        &format!("2:35: `servers.a.auth` has no method; {example}"),
    );
    refuses_auth(
        "{logn: {}}",
        "2:36: `servers.a.auth.logn` is not a known key; did you mean `login`?",
    );
    refuses_auth(
        "{login: {}, client-credentials: {client-id: a, client-secret: b}}",
        "2:35: `servers.a.auth` has several methods; keep one of them",
    );
    refuses_auth(
        "{login: {client-secret: a, scopes: ['a b'], issuer: x, redirect-port: 0}}",
        "2:43: `servers.a.auth.login` has `client-secret` without `client-id`; add `client-id: ...`, the client that the \
             secret belongs to\n\
         2:70: `servers.a.auth.login.scopes` has an item that is not a scope; write each scope as an item of its own, \
             without spaces and quotation marks\n\
         2:87: `servers.a.auth.login.issuer` cannot be used: it is not a URL such as `https://host.example/path`\n\
         2:105: `servers.a.auth.login.redirect-port` is not a number that can be used here; write one from 1 to 65535",
    );
    refuses_auth(
        "{client-credentials: {key-id: k}}",
        "2:56: `servers.a.auth.client-credentials` has no `client-id`; add `client-id: ...`, as the authorization server \
             knows the service\n\
         2:56: `servers.a.auth.client-credentials` has neither `client-secret` nor `private-key`; write one of them\n\
         2:56: `servers.a.auth.client-credentials` has `key-id` without `private-key`; add `private-key: ...`, or remove \
             `key-id`",
    );
    refuses_auth(
        "{client-credentials: {client-id: a, client-secret: '${SECRET}', private-key: b}}",
        "2:56: `servers.a.auth.client-credentials` has `client-secret` and `private-key`; keep one of them",
    );
    refuses_auth(
        "{client-credentials: {client-id: a, private-key: '${SECRET}'}}",
        "2:84: `servers.a.auth.client-credentials.private-key` cannot be used: it is not a private key in PEM: P-256 in \
             PKCS#8, or RSA of 2048 bits or more in PKCS#8 or PKCS#1",
    );
}

#[test]
fn auth_is_for_a_url_without_other_credentials() {
    refuses_server(
        "{command: x, auth: login}",
        "2:6: `servers.a` has `auth`, of no use beside `command`; leave it out",
    );
    refuses_server(
        "{url: 'https://x/', headers: {authorization: b}, auth: login}",
        "2:6: `servers.a` has `auth`, and `Authorization` in `headers`; keep one of them",
    );
    refuses_server(
        "{url: 'https://ann:pw@x/', auth: login}",
        "2:39: `servers.a.auth` needs a `url` without a user, a password and a fragment; remove them",
    );
}

const ISSUERS: &str =
    "public-url: https://mcp.example\nauth: {issuers: [{issuer: https://idp.example}]}\n";

/// How the file exchanges the tokens of its users.
fn exchange(keys: &str) -> ExchangeSettings {
    let server =
        format!("{{url: 'https://x/mcp?a=b', ca: ca.pem, auth: {{token-exchange: {{{keys}}}}}}}");
    let mut file = read("vary.yaml", &format!("{ISSUERS}servers: {{a: {server}}}"));
    let auth = file.auth.remove("a").unwrap();
    assert!(!format!("{auth:?}").contains(SECRET), "{auth:?}");
    match auth.method {
        AuthMethod::TokenExchange(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_gets_tokens_in_exchange_for_those_of_users() {
    let settings =
        exchange("issuer: 'https://idp.example', client-id: vary, client-secret: '${SECRET}'");
    assert_eq!(settings.client_id, "vary");
    assert_eq!(settings.resource.as_deref(), Some("https://x/mcp"));
    assert_eq!(settings.form, ExchangeForm::TokenExchange);
    assert_eq!(settings.ca.unwrap().to_str(), Some("ca.pem"));
    assert!(settings.audience.is_none() && settings.scope.is_empty());
    let ExchangeServer::Issuer(issuer) = settings.authorization_server else {
        panic!("no issuer");
    };
    assert_eq!(issuer.as_str(), "https://idp.example");
    let settings = exchange(
        "token-endpoint: 'https://idp.example/t', client-id: vary, client-secret: s, form: on-behalf-of, scopes: [a, b], \
         audience: crm",
    );
    // Microsoft Entra ID refuses `resource` beside `scope`.
    assert_eq!(settings.resource, None);
    assert_eq!(settings.form, ExchangeForm::OnBehalfOf);
    assert_eq!(settings.scope.to_string(), "a b");
    assert_eq!(settings.audience.as_deref(), Some("crm"));
    let ExchangeServer::TokenEndpoint(endpoint) = settings.authorization_server else {
        panic!("no endpoint");
    };
    assert_eq!(endpoint.as_str(), "https://idp.example/t");
    assert!(settings.for_lists.is_none());
}

#[test]
fn a_service_reads_the_lists_of_all_users() {
    let settings = exchange(
        "issuer: 'https://idp.example', client-id: vary, client-secret: s, \
         for-lists: {client-id: lists, client-secret: '${SECRET}', scopes: [read], issuer: 'https://crm.example'}",
    );
    let service = settings.for_lists.unwrap();
    assert_eq!(service.client_id, "lists");
    assert_eq!(service.scope.to_string(), "read");
    assert_eq!(service.ca.unwrap().to_str(), Some("ca.pem"));
    assert_eq!(service.issuer.unwrap().as_str(), "https://crm.example");
    assert_eq!(service.server.resource(), "https://x/mcp");
}

#[test]
fn the_service_for_lists_has_the_authorization_server_of_the_exchange() {
    let settings = exchange(
        "issuer: 'https://idp.example', client-id: vary, client-secret: s, \
         for-lists: {client-id: lists, client-secret: '${SECRET}'}",
    );
    let issuer = settings.for_lists.unwrap().issuer;
    assert_eq!(issuer.unwrap().as_str(), "https://idp.example");
}

#[test]
fn a_mistake_in_an_exchange_is_named() {
    let refuses_exchange = |keys: &str, expected: &str| {
        let server = format!("{{url: 'https://x/', auth: {{token-exchange: {{{keys}}}}}}}");
        refuses(
            "vary.yaml",
            &format!("{ISSUERS}servers:\n  a: {server}"),
            expected,
        );
    };
    refuses_exchange(
        "form: on-behalf-of",
        "4:49: `servers.a.auth.token-exchange` has no `client-id`; add `client-id: ...`, as the authorization server knows \
             the gateway\n\
         4:49: `servers.a.auth.token-exchange` has neither `client-secret` nor `private-key`; write one of them\n\
         4:49: `servers.a.auth.token-exchange` has neither `issuer` nor `token-endpoint`; add `issuer: ...`, the \
             authorization server that gets the tokens of your users\n\
         4:49: `servers.a.auth.token-exchange` has `form: on-behalf-of` without `scopes`; add `scopes: [...]`, such as \
             `api://SERVER/.default`",
    );
    refuses_exchange(
        "client-id: a, client-secret: b, issuer: 'https://i', token-endpoint: 'https://i/t'",
        "4:49: `servers.a.auth.token-exchange` has `issuer` and `token-endpoint`; keep one of them",
    );
    refuses_exchange(
        "client-id: a, client-secret: b, issuer: 'https://i', for-lists: {scopes: [read]}",
        "4:114: `servers.a.auth.token-exchange.for-lists` has no `client-id`; add `client-id: ...`, as the authorization \
             server knows the service\n\
         4:114: `servers.a.auth.token-exchange.for-lists` has neither `client-secret` nor `private-key`; write one of \
             them",
    );
    refuses_exchange(
        "client-id: a, client-secret: b, token-endpoint: idp",
        "4:98: `servers.a.auth.token-exchange.token-endpoint` cannot be used: it is not a URL such as \
             `https://host.example/path`",
    );
}

/// Where clients have no tokens, and where users would share a session at the server.
#[test]
fn an_exchange_needs_users_with_tokens_and_connections_of_their_own() {
    const EXCHANGE: &str =
        "auth: {token-exchange: {issuer: 'https://i', client-id: a, client-secret: b}}";
    let no_tokens = "exchanges access tokens, but no client has any; add `auth` with `issuers`, whose tokens clients send";
    refuses(
        "vary.yaml",
        &format!("servers:\n  a: {{url: 'https://x/', {EXCHANGE}}}"),
        &format!("2:49: `servers.a.auth.token-exchange` {no_tokens}"),
    );
    for isolation in ["shared", "session"] {
        let server = format!("{{url: 'https://x/', isolation: {isolation}, {EXCHANGE}}}");
        refuses(
            "vary.yaml",
            &format!("{ISSUERS}servers:\n  a: {server}"),
            &format!(
                "4:37: `servers.a.isolation` is `{isolation}`, but with `token-exchange` connections and sessions at the \
                 server belong to one user; write `principal`, or leave it out"
            ),
        );
    }
    let server = format!("{{url: 'https://x/', isolation: principal, {EXCHANGE}}}");
    read("vary.yaml", &format!("{ISSUERS}servers: {{a: {server}}}"));
}
