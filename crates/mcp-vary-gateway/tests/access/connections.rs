//! Clients that may use nothing of a server have no connection to it.

use mcp_vary_access::ItemPattern;
use mcp_vary_view::Rule;

use super::groups::{ask_both, for_group, named, with_rules};
use crate::support::*;

fn of_server(server: &str) -> ItemPattern {
    let server = server.parse().unwrap();
    ItemPattern::any(default_with::<Rule>(|it| it.server = Some(server)))
}

/// SV-20
#[tokio::test]
async fn a_person_who_may_use_nothing_of_a_server_opens_no_connection_to_it() {
    let rules = [
        for_group("dev").with_allow([of_server("peer")]),
        for_group("sre").with_allow([named("*")]),
        for_group("sre").with_deny([of_server("p*")]),
    ];
    let harness = Harness::before(Era::Legacy, |mut config| {
        config.servers[0].limits.connections = 2;
        with_rules(config, rules)
    })
    .await;
    let opened = || harness.peer.of("initialize").len();
    assert_eq!(opened(), 1, "the gateway's own");
    for who in ["guest", "sre"] {
        for answer in ask_both(&harness, who, "tools/list", json!({})).await {
            answer.has("/result/tools", json!([]));
        }
        for answer in ask_both(&harness, who, "tools/call", tool("odd")).await {
            answer.has("/error/message", "Unknown tool: odd");
        }
    }
    assert_eq!(opened(), 1);
    for answer in ask_both(&harness, "dev", "tools/call", tool("odd")).await {
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(opened(), 2, "the room was not used up");
}
