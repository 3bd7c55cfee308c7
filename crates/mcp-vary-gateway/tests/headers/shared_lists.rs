//! Lists that a service reads for all users of a server, who call with tokens in exchange for theirs.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{BoxFuture, join_all};
use http::HeaderValue;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_http_client::credential_source::{
    ClientCredentials, CredentialError, CredentialSource, Refusal, Retry,
};
use mcp_vary_testkit::login_server::LoginServer;

use super::every_method::methods;
use super::exchanged::Provider;
use super::people::{Session, ask_both, ask_modern, key};
use super::several_servers::{SERVICE, identity, server};
use crate::support::people::bearer;
use crate::support::*;

/// The methods that read lists.
const LISTS: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

/// LI-9: each list is read once, each call has the token of its user, and no token of a client leaves the gateway.
#[tokio::test]
async fn lists_are_read_once_for_twenty_users_and_each_calls_with_its_own_token() {
    for era in [Era::Legacy, Era::Modern] {
        let (provider, issuer) = (Provider::start().await, LoginServer::start().await);
        let harness = Harness::behind_one(server(era, &issuer).await, |mut config| {
            let server = provider.exchanged_with_lists(config.servers.remove(0));
            config.servers.insert(0, server);
            provider.with_people(config)
        })
        .await;
        let people = (0..20).map(|number| {
            let who = format!("user{}", char::from(b'a' + number));
            (provider.token(&who), who)
        });
        let people: BTreeMap<_, _> = people.collect();
        for (token, who) in &people {
            for capabilities in [json!({}), json!({"elicitation": {}, "sampling": {}})] {
                let mut session = Session::open(&harness, token, &capabilities).await;
                for (method, params) in methods() {
                    let client = (token.as_str(), &capabilities);
                    let modern = ask_modern(&harness, client, method, params.clone()).await;
                    let legacy = session.ask(token, method, params.clone()).await;
                    let fails = params["uri"] == "place:zug";
                    for answer in [modern.json(), legacy.json()] {
                        assert!(
                            answer["result"].is_object() || fails,
                            "{era:?} {who} {method}: {answer}"
                        );
                        if method == "tools/list" {
                            assert_eq!(names(&answer), [&*format!("as-{SERVICE}"), "odd"]);
                        }
                        if method == "tools/call" {
                            let text = &answer["result"]["content"][0]["text"];
                            assert_eq!(*text, format!("exchanged-{who}"), "{answer}");
                        }
                    }
                }
            }
        }
        let received = harness.peer.received();
        for method in LISTS {
            let of_list = received.iter().filter(|seen| seen.method() == method);
            let identities: Vec<_> = of_list.map(identity).collect();
            assert_eq!(identities, [SERVICE], "{era:?} {method}");
        }
        let calls = received.iter().filter(|seen| seen.method() == "tools/call");
        let callers: BTreeSet<_> = calls.map(identity).collect();
        let users = people.values().map(|who| format!("exchanged-{who}"));
        assert_eq!(callers, users.collect::<BTreeSet<_>>(), "{era:?}");
        for seen in &received {
            let text = format!("{:?} {}", seen.headers, seen.text);
            let inbound = people.keys().find(|token| text.contains(*token));
            assert!(inbound.is_none(), "a token of a client at the server");
        }
        assert_eq!(provider.exchanges(), people.len(), "{era:?}");
    }
}

#[tokio::test]
async fn clients_without_an_access_token_neither_see_the_lists_nor_call() {
    let (provider, issuer) = (Provider::start().await, LoginServer::start().await);
    let harness = Harness::behind_one(server(Era::Modern, &issuer).await, |mut config| {
        let server = provider.exchanged_with_lists(config.servers.remove(0));
        config.servers.insert(0, server);
        provider.with_people(config)
    })
    .await;
    harness.peer.wait_for("prompts/list", 1).await;
    for token in [key("robot"), String::new()] {
        for method in LISTS.into_iter().chain(["tools/call"]) {
            let params = tool("odd");
            for answer in ask_both(&harness, &token, method, params).await {
                answer.contains("/error/message", "not recognised by an access token");
            }
        }
    }
    assert!(harness.peer.of("tools/call").is_empty());
}

/// The tokens of a service and of users, without an authorization server.
#[derive(Debug)]
struct Fixed(&'static str);

impl CredentialSource for Fixed {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
        let value = HeaderValue::from_str(&format!("Bearer {}", self.0)).unwrap();
        Box::pin(async move { Ok(Some(value)) })
    }

    fn refused<'a>(&'a self, _: Refusal<'a>) -> BoxFuture<'a, Result<Retry, CredentialError>> {
        Box::pin(async { Ok(Retry::Never) })
    }

    fn identity(&self) -> &str {
        self.0
    }
}

impl ClientCredentials for Fixed {
    fn for_client(&self, _: &CallerToken) -> Arc<dyn CredentialSource> {
        Arc::new(Self("of-the-user"))
    }

    fn for_lists(&self) -> Option<Arc<dyn CredentialSource>> {
        Some(Arc::new(Self("of-the-service")))
    }

    fn identity(&self) -> &str {
        self.0
    }
}

/// The stream of a session of this user, and one that listens without.
async fn streams(harness: &Harness, token: &str) -> [RawHttp; 2] {
    let session = Session::open(harness, token, &json!({})).await;
    let get = HttpRequest::get(&session.id);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(json!(1), "subscriptions/listen", params, &json!({}));
    let mut streams = [harness.connect().await, harness.connect().await];
    for (stream, request) in streams.iter_mut().zip([get, HttpRequest::modern(&listen)]) {
        stream.send(&bearer(request, token).bytes()).await;
        assert_eq!(stream.head().await.status, 200);
    }
    streams
}

/// Waits until the stream announces other tools.
async fn announces(stream: &mut RawHttp) {
    soon(async {
        while stream.event().await.unwrap()["method"] != "notifications/tools/list_changed" {}
    })
    .await;
}

#[tokio::test]
async fn a_list_that_changes_is_read_again_once_and_announced_to_each_user() {
    for era in [Era::Legacy, Era::Modern] {
        let changing = ChangingServer::new(era);
        let provider = Provider::start().await;
        let harness = Harness::changing_with(&changing, |mut config| {
            let server = config.servers.remove(0);
            let server = server.with_client_credentials(Arc::new(Fixed("fixed")));
            config.servers.insert(0, server);
            provider.with_people(config)
        })
        .await;
        let tokens = ["ann", "bob"].map(|who| provider.token(who));
        for token in &tokens {
            for answer in ask_both(&harness, token, "tools/list", json!({})).await {
                assert_eq!(names(&answer), ["first"], "{era:?}");
            }
        }
        let streams = join_all(tokens.iter().map(|token| streams(&harness, token)));
        let streams = streams.await.into_iter().flatten();
        let before = harness.peer.of("tools/list").len();
        changing.set_tools(&["first", "second"]);
        changing.notify_list_changed("tools");
        for mut stream in streams {
            announces(&mut stream).await;
        }
        for token in &tokens {
            for answer in ask_both(&harness, token, "tools/list", json!({})).await {
                assert_eq!(names(&answer), ["first", "second"], "{era:?}");
            }
        }
        let readings = harness.peer.of("tools/list");
        let of_service =
            |seen: &ReceivedRequest| seen.header("authorization") == Some("Bearer of-the-service");
        assert!(readings.iter().all(of_service), "{era:?}");
        assert_eq!(readings.len(), before + 1, "{era:?}");
    }
}
