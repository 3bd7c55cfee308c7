//! Servers that refuse the gateway: whatever credentials it has, each method gets an error, and no list is empty.

use std::collections::BTreeSet;

use http::header::AUTHORIZATION;
use mcp_vary_http_client::credential_source::CredentialSource;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::Credentials;
use mcp_vary_login::login::{LoginCredentials, LoginSettings};
use mcp_vary_login::service::ServiceCredentials;
use mcp_vary_login::source::AuthorizationSource;
use mcp_vary_login::store::TokenStore;
use mcp_vary_testkit::login_server::LoginServer;
use mcp_vary_upstream::header_command::{HeaderCommand, HeaderCommandSettings};
use mcp_vary_upstream::{HeaderSource, UpstreamConfig};

use super::every_method::methods;
use super::exchanged::{Provider, environment, service};
use super::people::{Session, ask_modern};
use crate::support::*;

/// What the gateway has for the server.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Nothing,
    Header,
    Command,
    Login,
    ImpliedLogin,
    ClientCredentials,
    TokenExchange,
    SharedLists,
}

const KINDS: [Kind; 8] = [
    Kind::Nothing,
    Kind::Header,
    Kind::Command,
    Kind::Login,
    Kind::ImpliedLogin,
    Kind::ClientCredentials,
    Kind::TokenExchange,
    Kind::SharedLists,
];

/// What the server refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refused {
    Everything,
    /// All but the handshake, in which it declares everything.
    Requests,
    /// The same, and it declares nothing.
    Undeclared,
}

/// A server of `era` that refuses what is `refused`. Its authorization server is `issuer`.
async fn server(era: Era, refused: Refused, issuer: String) -> ScriptedServer {
    ScriptedServer::start(move |seen| {
        if seen.path.starts_with("/.well-known/") {
            let resource = format!("http://{}/mcp", seen.header("host").unwrap());
            let document = json!({"resource": resource, "authorization_servers": [issuer]});
            return Some(Reply::json(200, &document));
        }
        let declared = match refused {
            Refused::Undeclared => json!({}),
            _ => json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}),
        };
        match (seen.method(), era) {
            _ if refused == Refused::Everything => {}
            ("initialize", Era::Legacy) => return Some(seen.answer(&introduced("peer", declared))),
            ("initialize", Era::Modern) => return Some(seen.refuse(400, -32601, "Method not found")),
            ("server/discover", Era::Modern) => return Some(seen.answer(&discovered(declared))),
            ("notifications/initialized", _) => return None,
            _ => {}
        }
        let error = json!({"code": -32001, "message": "TOPSECRET"});
        let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        let challenge = "Bearer realm=\"TOPSECRET\"";
        Some(Reply::json(401, &body).with_header("www-authenticate", challenge))
    })
    .await
}

/// `server` with credentials of this kind.
fn with_credentials(kind: Kind, server: UpstreamConfig, provider: &Provider) -> UpstreamConfig {
    let Target::Http { url, .. } = &server.target else {
        panic!("a program has no headers");
    };
    let address = Address::parse(&url.to_string()).unwrap();
    let login = || {
        let name = format!("vary-gateway-logins-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let store = TokenStore::new(directory, Vec::new(), environment());
        let settings = LoginSettings::new("peer", address.clone());
        Credentials::Login(LoginCredentials::new(settings, store, None, environment()))
    };
    let identity = || "x".to_owned();
    let source: Arc<dyn CredentialSource> = match kind {
        Kind::Nothing => return server,
        Kind::Header => {
            let value = HeaderSource::Fixed("Bearer of-the-operator".parse().unwrap());
            return server.with_header(AUTHORIZATION, value);
        }
        Kind::TokenExchange => return provider.exchanged(server),
        Kind::SharedLists => return provider.exchanged_with_lists(server),
        Kind::Command => {
            let settings = HeaderCommandSettings {
                program: "echo".to_owned(),
                args: vec!["of-the-operator".to_owned()],
                scheme: Some("Bearer".to_owned()),
                cache: Duration::from_secs(60),
                timeout: Duration::from_secs(10),
            };
            Arc::new(HeaderCommand::new("peer", settings))
        }
        Kind::Login => Arc::new(AuthorizationSource::configured(login(), identity())),
        Kind::ImpliedLogin => Arc::new(AuthorizationSource::implied(login(), identity())),
        Kind::ClientCredentials => {
            let settings = service(address);
            let service = ServiceCredentials::new(settings, environment());
            let credentials = Credentials::Service(service);
            Arc::new(AuthorizationSource::configured(credentials, identity()))
        }
    };
    server.with_credential(AUTHORIZATION, source)
}

/// All methods that have an answer. A server that refuses everything has no task.
fn all_methods() -> Vec<(&'static str, Value)> {
    let task = json!({"taskId": "t-1"});
    let mut all = methods();
    all.extend([
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("resources/subscribe", json!({"uri": "place:bern"})),
        ("resources/unsubscribe", json!({"uri": "place:bern"})),
        ("resources/directory/read", json!({"uri": "place:bern"})),
        ("logging/setLevel", json!({"level": "info"})),
        ("tasks/list", json!({})),
        ("tasks/get", task.clone()),
        ("tasks/update", task.clone()),
        ("tasks/cancel", task.clone()),
        ("tasks/result", task),
    ]);
    all
}

/// The method that opens a stream, which no server is asked for.
const STREAM: &str = "subscriptions/listen";

#[test]
fn no_method_of_the_gateway_is_missing_here() {
    let table = include_str!("../../src/pipeline/router.rs");
    let rows = table.lines().filter(|line| line.contains("\", Eras::"));
    let names = rows.filter_map(|row| row.split('"').nth(1));
    let mut names: BTreeSet<_> = names.collect();
    assert!(names.len() > 15 && names.remove(STREAM), "{names:?}");
    let asked: BTreeSet<_> = all_methods()
        .into_iter()
        .map(|(method, _)| method)
        .collect();
    let missing: Vec<_> = names.difference(&asked).collect();
    assert_eq!(missing, [&""; 0]);
}

/// LI-7: a server that refuses the gateway has no empty list, and what it says reaches no client.
async fn is_an_error(kind: Kind, era: Era, refused: Refused) {
    let issuer = LoginServer::start().await;
    let provider = Provider::start().await;
    let peer = server(era, refused, issuer.url("")).await;
    let harness = Harness::behind_one(peer, |mut config| {
        let server = with_credentials(kind, config.servers.remove(0), &provider);
        config.servers.insert(0, server);
        config.allow_empty_start = true;
        provider.with_people(config)
    })
    .await;
    let token = provider.token("ann");
    let is_list = |method: &str| method.ends_with("/list");
    for (method, params) in all_methods() {
        let mut answers = Vec::new();
        for capabilities in [json!({}), features(&["agent"])] {
            let client = (token.as_str(), &capabilities);
            let modern = ask_modern(&harness, client, method, params.clone()).await;
            let mut session = Session::open(&harness, &token, &capabilities).await;
            let legacy = session.ask(&token, method, params.clone()).await;
            answers.extend([modern.json(), legacy.json()]);
        }
        for answer in answers {
            let case = format!("{kind:?}, {era:?}, {refused:?}, {method}: {answer}");
            assert!(!answer.to_string().contains("TOPSECRET"), "{case}");
            // It refuses at once, and is not waited for.
            assert!(!answer.to_string().contains("did not answer"), "{case}");
            if !is_list(method) {
                continue;
            }
            assert!(answer["error"].is_object(), "{case}");
            if method != "tasks/list" {
                assert_eq!(answer["error"]["code"], -32603, "{case}");
                let message = answer["error"]["message"].as_str().unwrap();
                let reasons = [
                    "HTTP 401",
                    "log in with `vary login",
                    "does not accept its user",
                ];
                assert!(reasons.iter().any(|it| message.contains(it)), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_everything_has_no_empty_list() {
    for kind in KINDS {
        for era in [Era::Legacy, Era::Modern] {
            is_an_error(kind, era, Refused::Everything).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_all_but_the_handshake_has_no_empty_list() {
    for kind in KINDS {
        for era in [Era::Legacy, Era::Modern] {
            is_an_error(kind, era, Refused::Requests).await;
            is_an_error(kind, era, Refused::Undeclared).await;
        }
    }
}
