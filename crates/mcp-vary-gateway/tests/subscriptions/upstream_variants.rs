//! Changes of a server that offers variants itself, under the one that the operator selected.

use futures_util::future::join_all;

use crate::support::*;

/// A gateway without variants in front of one whose variant `compact` it selects. It listens to changes there.
async fn chain(stage: &ChangingServer) -> (Harness, Harness) {
    let inner = Harness::changing(stage).await;
    let url = format!("http://{}/mcp", inner.address).parse().unwrap();
    let mut config = config(Target::http(url));
    config.servers[0].variant = Some("compact".parse().unwrap());
    let outer = Harness::alone(config).await;
    until(async || inner.gateway.status().listeners != 0).await;
    (outer, inner)
}

/// The eras of servers, with a client of each era.
const PAIRS: [(Era, ClientKind); 4] = [
    (Era::Legacy, ClientKind::HttpLegacy),
    (Era::Legacy, ClientKind::HttpModern),
    (Era::Modern, ClientKind::HttpLegacy),
    (Era::Modern, ClientKind::HttpModern),
];

/// The server says that a resource has changed as soon as the inner gateway has subscribed to it.
async fn reports_update(era: Era, stage: &ChangingServer, inner: &Harness) {
    match era {
        Era::Legacy => drop(inner.peer.wait_for("resources/subscribe", 1).await),
        Era::Modern => stage.wait_for_subscriptions(&["note:a"]).await,
    }
    stage.notify_updated("note:a");
}

/// EXT-9: clients of both eras hear of changes of the selected variant, and see the list that it has by then. Their
/// notifications have the variant of their own gateway.
#[tokio::test]
async fn changes_of_the_selected_variant_reach_clients() {
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let (outer, inner) = chain(&stage).await;
        let filter = everything(&["note:a"]);
        let mut subscriber =
            NotificationClient::listening(&outer, way, filter, Some("standard")).await;
        if !way.is_modern() {
            let uri = json!({"uri": "note:a"});
            subscriber.succeeds("resources/subscribe", uri).await;
        }
        reports_update(era, &stage, &inner).await;
        let expected = updated("note:a", "standard");
        assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        stage.set_tools(&["first", "added"]);
        stage.notify_list_changed("tools");
        let expected = changed("tools", "standard");
        assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        let listed = way.ask(&outer, &json!({}), "tools/list", json!({})).await;
        listed.has("/result/tools/1/name", "added");
    };
    join_all(PAIRS.map(check)).await;
}
