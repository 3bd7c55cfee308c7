//! Two people, one provider, and servers with tokens in exchange for theirs, with the credentials of a service, with a fixed
//! header, and with nothing.

use std::collections::BTreeSet;

use http::header::AUTHORIZATION;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::Credentials;
use mcp_vary_login::service::ServiceCredentials;
use mcp_vary_login::source::AuthorizationSource;
use mcp_vary_testkit::login_server::LoginServer;
use mcp_vary_upstream::{HeaderSource, UpstreamConfig};

use super::every_method::{self, methods};
use super::exchanged::{Provider, environment, service};
use super::people::ask_both;
use crate::support::*;

/// The user or service as whom a request arrived: what follows `Bearer `, without the number of a token.
pub(super) fn identity(seen: &ReceivedRequest) -> String {
    let authorization = seen.header("authorization").unwrap_or("nobody");
    let identity = authorization.trim_start_matches("Bearer ");
    identity
        .trim_end_matches(|it: char| it == '-' || it.is_ascii_digit())
        .to_owned()
}

/// A server of `era` with the tool `as-IDENTITY`, whose results name the identity too. Without a token it says that tokens
/// are from `issuer`.
pub(super) async fn server(era: Era, issuer: &LoginServer) -> ScriptedServer {
    let issuer = issuer.url("");
    let script = every_method::server(era)
        .reply("tools/list", |seen| {
            seen.answer(&tool_list(&[&format!("as-{}", identity(seen)), "odd"]))
        })
        .reply("tools/call", |seen| {
            let text = json!({"type": "text", "text": identity(seen)});
            seen.answer(&json!({"content": [text]}))
        });
    ScriptedServer::start(move |seen| {
        if seen.path.starts_with("/.well-known/") {
            let resource = format!("http://{}/mcp", seen.header("host").unwrap());
            let document = json!({"resource": resource, "authorization_servers": [issuer]});
            return Some(Reply::json(200, &document));
        }
        script.reply_to(seen)
    })
    .await
}

/// `config`, whose server `service` gets the tokens of a service and whose server `fixed` a header.
fn with_credentials(config: &mut Config) {
    let servers = std::mem::take(&mut config.servers).into_iter();
    let servers = servers.map(|server: UpstreamConfig| match server.name.as_str() {
        "service" => {
            let Target::Http { url, .. } = &server.target else {
                panic!("a program has no headers");
            };
            let settings = service(Address::parse(&url.to_string()).unwrap());
            let credentials = ServiceCredentials::new(settings, environment());
            let credentials = Credentials::Service(credentials);
            let source = AuthorizationSource::configured(credentials, "service".to_owned());
            server.with_credential(AUTHORIZATION, Arc::new(source))
        }
        "fixed" => {
            let value = HeaderSource::Fixed("Bearer of-the-operator".parse().unwrap());
            server.with_header(AUTHORIZATION, value)
        }
        _ => server,
    });
    config.servers = servers.collect();
}

/// The servers, and the identities as whom requests of this user arrive there.
fn identities(who: &str) -> [(&'static str, String); 4] {
    [
        ("own", format!("exchanged-{who}")),
        ("service", SERVICE.to_owned()),
        ("fixed", "of-the-operator".to_owned()),
        ("bare", "nobody".to_owned()),
    ]
}

/// The tokens of the service, without their number.
pub(super) const SERVICE: &str = "TOPSECRET-access";

/// LI-6: each lists and calls as itself, and no token reaches a server that it is not for.
#[tokio::test]
async fn each_of_several_servers_gets_its_own_credentials_and_no_others() {
    for era in [Era::Legacy, Era::Modern] {
        let (provider, issuer) = (Provider::start().await, LoginServer::start().await);
        let own = server(era, &issuer).await;
        let service = server(era, &issuer).await;
        let (fixed, bare) = (server(era, &issuer).await, server(era, &issuer).await);
        let servers = [
            ("own", &own),
            ("service", &service),
            ("fixed", &fixed),
            ("bare", &bare),
        ];
        let mut config = before(&servers);
        with_credentials(&mut config);
        let harness = Harness::behind(own, provider.in_front_of(config)).await;
        let people = ["ann", "bob"].map(|who| (who, provider.token(who)));
        for (who, token) in &people {
            for answer in ask_both(&harness, token, "tools/list", json!({})).await {
                let seen: BTreeSet<_> = names(&answer).into_iter().map(str::to_owned).collect();
                let expected = identities(who).into_iter();
                let expected = expected.flat_map(|(server, identity)| {
                    [format!("{server}_as-{identity}"), format!("{server}_odd")]
                });
                let expected: BTreeSet<_> = expected.collect();
                assert_eq!(seen, expected, "{era:?} {who}");
            }
            for (server, identity) in identities(who) {
                let call = tool(&format!("{server}_odd"));
                for answer in ask_both(&harness, token, "tools/call", call).await {
                    let text = &answer["result"]["content"][0]["text"];
                    assert_eq!(*text, identity, "{era:?} {who} {server}: {answer}");
                }
            }
            for (method, params) in methods() {
                ask_both(&harness, token, method, params).await;
            }
        }
        let received = [&harness.peer, &service, &fixed, &bare].map(ScriptedServer::received);
        for (at, received) in received.iter().enumerate() {
            let allowed = people
                .each_ref()
                .map(|(who, _)| identities(who)[at].1.clone());
            let requests = received
                .iter()
                .filter(|seen| !seen.path.starts_with("/.well-known/"));
            let seen: BTreeSet<_> = requests.map(identity).collect();
            assert_eq!(seen, BTreeSet::from(allowed), "{era:?}");
            let texts = received
                .iter()
                .map(|seen| format!("{:?} {}", seen.headers, seen.text));
            let inbound = |text: &String| people.iter().any(|(_, token)| text.contains(token));
            assert!(
                !texts.into_iter().any(|text| inbound(&text)),
                "{era:?}: an inbound token"
            );
        }
        assert_eq!(provider.exchanges(), people.len(), "{era:?}");
    }
}
