//! Subscriptions under variants that hide or rename resources.

use super::*;

/// SV-14: what another variant hides cannot be subscribed to there, and is not told apart from what there is not;
/// nothing is said of it in an acknowledgement either.
#[tokio::test]
async fn what_is_hidden_cannot_be_subscribed_to() {
    let stage = ChangingServer::new(Era::Legacy);
    let harness = house_of_variants(&stage).await;
    let refusal = |answer: Value, uri: &str| answer["error"].to_string().replace(uri, "…");
    for way in LEGACY {
        let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
        let mut said = Vec::new();
        for uri in ["note:a", "note:none"] {
            let params = under("few", json!({"uri": uri}));
            let answer = subscriber.ask("resources/subscribe", params).await;
            answer.has("/error/code", -32602);
            answer.has("/error/data/activeVariant", "few");
            said.push(refusal(answer, uri));
        }
        assert_eq!(said[0], said[1]);
        let params = under("few", json!({"uri": "note:b"}));
        subscriber.succeeds("resources/subscribe", params).await;
        stage.notify_updated("note:a");
        stage.notify_updated("note:b");
        assert_eq!(subscriber.change().await, updated("note:b", "few"));
    }
    for way in MODERN {
        let filter = everything(&["note:a", "note:b", "note:none"]);
        let mut subscriber = NotificationClient::open(&harness, way, filter, Some("few")).await;
        let told = subscriber.receive().await;
        let honoured = &told["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*honoured, json!(["note:b"]));
    }
}

/// SV-14: servers accept subscriptions to anything, so that their acceptance does not say that the resource exists.
#[tokio::test]
async fn what_no_server_has_cannot_be_subscribed_to_where_nothing_is_selected() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for variant in ["standard", "compact"] {
            for way in LEGACY {
                let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
                for uri in ["note:none", "nope://x"] {
                    let params = under(variant, json!({"uri": uri}));
                    let answer = subscriber.ask("resources/subscribe", params).await;
                    answer.has("/error/code", -32602);
                    answer.has("/error/data/activeVariant", variant);
                }
            }
            for way in MODERN {
                let filter = everything(&["note:a", "note:none", "nope://x"]);
                let mut subscriber =
                    NotificationClient::open(&harness, way, filter, Some(variant)).await;
                let acknowledged = subscriber.receive().await;
                let honoured = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
                assert_eq!(*honoured, json!(["note:a"]), "{era:?} {way:?} {variant}");
            }
        }
        let subscribed = harness.peer.of("resources/subscribe");
        assert!(
            subscribed
                .iter()
                .all(|seen| seen.body["params"]["uri"] == "note:a")
        );
    }
}

/// SV-11, SV-14: a client is told by the URI that its variant gives the resource.
#[tokio::test]
async fn a_resource_is_told_by_the_uri_of_its_variant() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = house_of_variants(&stage).await;
        for way in ClientKind::ALL {
            let mut subscriber =
                NotificationClient::listening(&harness, way, everything(&["mine:a"]), Some("own"))
                    .await;
            if !way.is_modern() {
                let params = under("own", json!({"uri": "mine:a"}));
                subscriber.succeeds("resources/subscribe", params).await;
            }
            stage.notify_updated("note:a");
            let expected = updated("mine:a", "own");
            assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        }
    }
}
