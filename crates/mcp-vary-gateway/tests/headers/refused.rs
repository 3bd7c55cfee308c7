//! Users without usable claims are refused before the server is called.

use mcp_vary_upstream::UpstreamConfig;

use super::people::{ask_both, for_people, key, with_headers, with_people};
use crate::support::*;

const NO_VALUE: &str = "server `peer` cannot be used by this client: the claim `email` is";
const MISSING: &str =
    "server `peer` cannot be used by this client: the claim `email` is missing or empty";
const NOT_ONE: &str = "server `peer` cannot be used by this client: the claim `email` is not one string, number or boolean";
const CHARACTERS: &str = "server `peer` cannot be used by this client: the claim `email` has characters that a header \
                          cannot have; only visible ASCII is sent";

#[tokio::test]
async fn a_claim_without_a_usable_value_refuses_the_call_before_the_server_is_called() {
    let harness = Harness::before(Era::Legacy, for_people).await;
    for (who, message) in [
        ("absent", MISSING),
        ("empty", MISSING),
        ("list", NOT_ONE),
        ("object", NOT_ONE),
        ("umlaut", CHARACTERS),
        ("space", CHARACTERS),
        ("", MISSING),
    ] {
        let token = match who {
            "" => String::new(),
            who => key(who),
        };
        for (method, params) in [
            ("tools/call", tool("odd")),
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/read", json!({"uri": "place:bern"})),
            ("prompts/get", json!({"name": "greet"})),
        ] {
            for answer in ask_both(&harness, &token, method, params).await {
                let error = &answer["error"];
                assert_eq!(error["code"], -32603, "{who} {method}: {answer}");
                assert_eq!(error["message"], message, "{who} {method}");
                assert!(!answer.to_string().contains("TOPSECRET"), "{answer}");
            }
        }
    }
    assert!(
        harness.peer.received().is_empty(),
        "{:?}",
        harness.peer.received()
    );
    let status = harness.status();
    status.has("/servers/0/state", "per-user");
    assert!(!status.to_string().contains("TOPSECRET"), "{status}");
}

#[tokio::test]
async fn the_other_servers_work_for_a_client_without_the_claim() {
    let peer = places_server::start(Era::Legacy).await;
    let other = ScriptedServer::start(|seen| match seen.method() {
        "tools/list" => Some(seen.answer(&json!({"tools": [
            {"name": "free", "inputSchema": {"type": "object"}},
        ]}))),
        _ => None,
    })
    .await;
    let mut config = before(&[("peer", &peer), ("other", &other)]);
    let server: UpstreamConfig = config.servers.remove(0);
    config.servers.insert(0, with_headers(server));
    let harness = Harness::behind(peer, with_people(config, None)).await;
    for answer in ask_both(&harness, &key("absent"), "tools/list", json!({})).await {
        assert_eq!(names(&answer), ["other_free"]);
    }
    for answer in ask_both(&harness, &key("absent"), "tools/call", tool("other_free")).await {
        assert!(answer["result"].is_object(), "{answer}");
    }
    for answer in ask_both(&harness, &key("absent"), "tools/call", tool("peer_odd")).await {
        answer.starts("/error/message", NO_VALUE);
    }
    for answer in ask_both(&harness, &key("ann"), "tools/list", json!({})).await {
        let names = names(&answer);
        assert!(
            names.contains(&"other_free") && names.contains(&"peer_odd"),
            "{names:?}"
        );
    }
    assert!(
        other
            .received()
            .iter()
            .all(|seen| seen.header("x-user").is_none())
    );
}

/// A server that repeats what it was sent, as debugging servers do.
#[tokio::test]
async fn values_of_claims_are_in_no_log_and_no_error() {
    let (log, _listening) = CapturedLog::listen("", Level::TRACE);
    let script = places_server::script(Era::Legacy).reply("tools/call", |seen| {
        let headers = seen.headers.values().map(|value| value.to_str().unwrap());
        Reply::json(500, &json!({"echo": headers.collect::<Vec<_>>()}))
    });
    let harness = Harness::with_server(script, for_people).await;
    for answer in ask_both(&harness, &key("ann"), "tools/call", tool("odd")).await {
        assert!(answer["error"].is_object(), "{answer}");
        assert!(!answer.to_string().contains("ann@"), "{answer}");
    }
    let said = log.take();
    assert!(said.iter().any(|line| line.contains("***")), "{said:?}");
    let leak = said.iter().find(|line| line.contains("ann@example.com"));
    assert_eq!(leak, None);
}
