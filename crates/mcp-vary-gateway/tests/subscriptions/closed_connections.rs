//! Clients whose dedicated connection is closed: they see the shared lists again.

use futures_util::future::join_all;

use crate::subscriptions::growing_lists::{Growing, RECOGNISED, Said, Shared, can_be_asked};
use crate::support::*;

/// A dedicated connection is closed when it was not used for this long.
const UNUSED: Duration = Duration::from_secs(3);

fn hasty(mut config: Config) -> Config {
    config.servers[0].limits.idle_timeout = UNUSED;
    config
}

async fn enable(client: &mut NotificationClient, arguments: Value) {
    let call = json!({"name": "enable", "arguments": arguments});
    let answer = soon(client.ask("tools/call", call)).await;
    answer.has("/result/content/0/text", "enable");
}

async fn lists(client: &mut NotificationClient) -> Vec<String> {
    let list = soon(client.ask("tools/list", json!({}))).await;
    names(&list).into_iter().map(str::to_owned).collect()
}

/// Waits for a notification about the tools of `standard`; those about other variants are skipped.
async fn is_notified(client: &mut NotificationClient) {
    while soon(client.change()).await != changed("tools", "standard") {}
}

/// A list that differs is announced once when the client begins to see it, and once when it no longer does.
async fn each_change_is_notified_once(said: Said, way: ClientKind) {
    let (growing, shared) = (Growing::new(said), Shared::new());
    let harness = match said {
        Said::Pipe => {
            Harness::behind(
                ScriptedServer::start(|_| None).await,
                hasty(shared.config()),
            )
            .await
        }
        _ => {
            let server = growing.clone();
            let peer = ScriptedServer::start(move |seen| server.answer(seen)).await;
            let target = Target::http(peer.url.clone());
            Harness::behind(peer, hasty(config(target))).await
        }
    };
    let what = (everything(&[]), None);
    let mut client = NotificationClient::listening_as(&harness, way, what, &can_be_asked()).await;
    enable(&mut client, json!({"tool": "new"})).await;
    is_notified(&mut client).await;
    let expected = ["enable", "new"];
    assert_eq!(lists(&mut client).await, expected, "{said:?} {way:?}");
    is_notified(&mut client).await;
    assert_eq!(lists(&mut client).await, ["enable"], "{said:?} {way:?}");
    let mut count = 0;
    while let Ok(told) = tokio::time::timeout(Duration::from_millis(2500), client.change()).await {
        count += usize::from(told == changed("tools", "standard"));
    }
    assert_eq!(count, 0, "{said:?} {way:?}");
}

/// SV-16.
#[tokio::test]
async fn a_client_that_returns_to_the_shared_lists_is_notified_once() {
    let all = [Said::Call, Said::Get, Said::Pipe].into_iter();
    let all = all.flat_map(|said| RECOGNISED.map(|way| each_change_is_notified_once(said, way)));
    join_all(all).await;
}
