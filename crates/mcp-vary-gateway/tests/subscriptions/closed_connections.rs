//! Clients whose dedicated connection is closed: they see the shared lists again.

use futures_util::future::join_all;

use crate::subscriptions::growing_lists::{
    Announcement, Growing, RECOGNISED, Shared, can_be_asked,
};
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
async fn each_change_is_notified_once(announcement: Announcement, kind: ClientKind) {
    let (growing, shared) = (Growing::new(announcement), Shared::new());
    let harness = match announcement {
        Announcement::Pipe => Harness::alone(hasty(shared.config())).await,
        _ => Harness::behind_one(growing.start().await, hasty).await,
    };
    let what = (everything(&[]), None);
    let mut client = NotificationClient::listening_as(&harness, kind, what, &can_be_asked()).await;
    enable(&mut client, json!({"tool": "new"})).await;
    is_notified(&mut client).await;
    let listed = lists(&mut client).await;
    assert_eq!(listed, ["enable", "new"], "{announcement:?} {kind:?}");
    is_notified(&mut client).await;
    let listed = lists(&mut client).await;
    assert_eq!(listed, ["enable"], "{announcement:?} {kind:?}");
    let mut count = 0;
    while let Ok(sent) = tokio::time::timeout(Duration::from_millis(2500), client.change()).await {
        count += usize::from(sent == changed("tools", "standard"));
    }
    assert_eq!(count, 0, "{announcement:?} {kind:?}");
}

/// SV-16.
#[tokio::test]
async fn a_client_that_returns_to_the_shared_lists_is_notified_once() {
    let all = [Announcement::Call, Announcement::Get, Announcement::Pipe].into_iter();
    let all = all.flat_map(|announcement| {
        RECOGNISED.map(|way| each_change_is_notified_once(announcement, way))
    });
    join_all(all).await;
}
