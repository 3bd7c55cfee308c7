//! The headers are on every request to the server, of whatever method.

use std::collections::{BTreeMap, BTreeSet};

use super::people::{Session, ask_modern, for_people, headers_of, key};
use crate::support::*;

/// Methods, their params, and what reaches the server for them. A list may have been read before.
pub(super) fn methods() -> Vec<(&'static str, Value)> {
    let completion = json!({
        "ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": "B"},
    });
    vec![
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("tools/call", tool("odd")),
        ("resources/read", json!({"uri": "place:bern"})),
        ("resources/read", json!({"uri": "place:zug"})),
        ("prompts/get", json!({"name": "greet"})),
        ("completion/complete", completion),
        ("vendor/thing", json!({})),
    ]
}

/// A server of `era` with an extension, each of whose sessions has its own id.
pub(super) fn server(era: Era) -> Script {
    let script = places_server::script(era)
        .declares(places_server::capabilities())
        .declares(
            json!({"resources": {"subscribe": true}, "extensions": {"example.org/vendor": {}}}),
        )
        .results(json!({
            "vendor/thing": {},
            "resources/subscribe": {},
        }));
    match era {
        Era::Legacy => script.in_sessions(|_| format!("s-{}", next())),
        Era::Modern => script.introduces(),
    }
}

pub(super) fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Every request arrived with the headers of one person, and no session at the server has two people.
#[track_caller]
fn each_has_its_headers(received: &[ReceivedRequest]) {
    let ann = (Some("user ann@example.com"), Some("7"));
    let eve = (Some("user eve@example.com"), Some("8"));
    let mut sessions = BTreeMap::<_, BTreeSet<_>>::new();
    for seen in received {
        let headers = headers_of(seen);
        assert!(
            headers == ann || headers == eve,
            "{} with {headers:?}",
            seen.method()
        );
        if let Some(session) = seen.header("mcp-session-id") {
            sessions.entry(session).or_default().insert(headers);
        }
    }
    let shared = sessions.values().find(|people| people.len() > 1);
    assert_eq!(shared, None);
    for (who, headers) in [("ann", ann), ("eve", eve)] {
        let of_it = received.iter().filter(|seen| headers_of(seen) == headers);
        let methods: BTreeSet<_> = of_it.map(ReceivedRequest::method).collect();
        for (method, _) in self::methods() {
            assert!(
                methods.contains(method),
                "{who}: {method} not in {methods:?}"
            );
        }
    }
}

#[tokio::test]
async fn every_method_of_every_client_has_the_headers_of_its_user() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::with_server(server(era), for_people).await;
        assert!(harness.peer.received().is_empty(), "nobody is there yet");
        for (token, capabilities) in [
            (key("ann"), json!({})),
            (key("eve"), json!({})),
            (
                key("ann"),
                json!({"elicitation": {}, "sampling": {}, "roots": {}}),
            ),
            (
                key("eve"),
                json!({"elicitation": {}, "sampling": {}, "roots": {}}),
            ),
        ] {
            let mut session = Session::open(&harness, &token, &capabilities).await;
            for (method, params) in methods() {
                let client = (token.as_str(), &capabilities);
                let modern = ask_modern(&harness, client, method, params.clone()).await;
                let legacy = session.ask(&token, method, params.clone()).await;
                let is_answered = |answer: &Value| answer["result"].is_object();
                let fails = params["uri"] == "place:zug";
                for answer in [modern.json(), legacy.json()] {
                    assert!(is_answered(&answer) || fails, "{era:?} {method}: {answer}");
                }
            }
            let arguments = json!({"uri": "place:bern"});
            session.ask(&token, "resources/subscribe", arguments).await;
            let arguments = json!({"level": "info"});
            session.ask(&token, "logging/setLevel", arguments).await;
        }
        each_has_its_headers(&harness.peer.received());
    }
}

/// As `isolation: principal` has it: people with the same values share nothing but the values.
#[tokio::test]
async fn users_with_the_same_claims_do_not_share_a_session_at_the_server() {
    let harness = Harness::with_server(server(Era::Legacy), |mut config| {
        let template =
            mcp_vary_upstream::HeaderTemplate::new([mcp_vary_upstream::TemplatePart::Claim(
                "team".into(),
            )]);
        let source = mcp_vary_upstream::HeaderSource::Claims(template.unwrap());
        let team = http::HeaderName::from_static("x-team");
        let server = config.servers.remove(0).with_header(team, source);
        config
            .servers
            .push(server.with_isolation(mcp_vary_upstream::Isolation::Shared));
        super::people::with_people(config, None)
    })
    .await;
    for who in ["ann", "eve", "ann"] {
        let answer = ask_modern(&harness, (&key(who), &json!({})), "tools/call", tool("odd")).await;
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
    }
    let calls = harness.peer.of("tools/call");
    let session = |at: usize| calls[at].header("mcp-session-id").map(str::to_owned);
    assert_eq!(session(0), session(2));
    assert_ne!(session(0), session(1));
    let mut calls = calls.iter();
    assert!(calls.all(|call| call.header("x-team") == Some("red")));
}
