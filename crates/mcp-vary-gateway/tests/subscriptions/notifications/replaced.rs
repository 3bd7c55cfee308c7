//! Notifications when the configuration or a server is replaced.

use super::*;

/// SV-16: under another configuration the lists that are others are told, and subscriptions go on; a stream whose
/// variant is gone ends in order.
#[tokio::test]
async fn a_reload_is_told_like_any_change() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = house_of_variants(&stage).await;
        let mut ears = Vec::new();
        for way in ClientKind::ALL {
            let mut subscriber =
                NotificationClient::listening(&harness, way, everything(&["note:b"]), Some("all"))
                    .await;
            if !way.is_modern() {
                let params = under("all", json!({"uri": "note:b"}));
                subscriber.succeeds("resources/subscribe", params).await;
            }
            ears.push(subscriber);
        }
        let next = |variants| {
            let next = config(Target::http(harness.peer.url.clone()));
            next.with_variants_of(variants).unwrap()
        };
        let mut others = variants();
        others[0].tools = selection("none");
        harness.reload(next(others.clone())).await;
        for (way, subscriber) in ClientKind::ALL.into_iter().zip(&mut ears) {
            let expected = changed("tools", "all");
            assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        }
        stage.notify_updated("note:b");
        for (way, subscriber) in ClientKind::ALL.into_iter().zip(&mut ears) {
            let expected = updated("note:b", "all");
            assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        }

        let few = everything(&[]);
        let mut leaving =
            NotificationClient::listening(&harness, ClientKind::HttpModern, few, Some("few")).await;
        others.remove(1);
        harness.reload(next(others)).await;
        let expected = "notifications/cancelled";
        leaving.receive().await.has("/method", expected);
        leaving.receive().await.has("/id", "listen");
        assert_eq!(leaving.receive_or_end().await, None);
    }
}

/// SV-14: a reload that leaves the server as it is changes no resource.
#[tokio::test]
async fn a_reload_is_no_update_of_a_resource() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscribers = Vec::new();
        for way in ClientKind::ALL {
            let mut subscriber = listening(&harness, way, &["note:b"]).await;
            if !way.is_modern() {
                let params = json!({"uri": "note:b"});
                subscriber.succeeds("resources/subscribe", params).await;
            }
            subscribers.push(subscriber);
        }
        let next = config(Target::http(harness.peer.url.clone()));
        harness.reload(next).await;
        // What the gateway only suspects, it would have sent by then.
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.set_tools(&["first", "second"]);
        stage.notify_list_changed("tools");
        for (way, subscriber) in ClientKind::ALL.into_iter().zip(&mut subscribers) {
            let expected = changed("tools", "standard");
            assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
        }
    }
}

/// SV-14: a subscription outlives a reload while its resource is gone.
#[tokio::test]
async fn a_resource_that_returns_after_a_reload_is_told_of() {
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscriber = listening(&harness, way, &["note:a"]).await;
        if !way.is_modern() {
            let params = json!({"uri": "note:a"});
            subscriber.succeeds("resources/subscribe", params).await;
        }
        for (listed, reloads) in [(&["note:b"][..], true), (&["note:a", "note:b"], false)] {
            stage.set_resources(listed);
            stage.notify_list_changed("resources");
            for _ in 0..if way.is_modern() { 1 } else { 4 } {
                let change = subscriber.change().await;
                assert_eq!(change.0, "resources/list_changed", "{era:?} {way:?}");
            }
            if reloads {
                let next = config(Target::http(harness.peer.url.clone()));
                harness.reload(next).await;
            }
        }
        stage.notify_updated("note:a");
        let expected = updated("note:a", "standard");
        assert_eq!(subscriber.change().await, expected, "{era:?} {way:?}");
    };
    join_all(every_pair().map(check)).await;
}

/// What came after the change of a list is told after it, and reading the list takes its time.
#[tokio::test]
async fn the_order_of_changes_is_kept() {
    let check = async |era: Era| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscriber = listening(&harness, ClientKind::HttpModern, &["note:a"]).await;
        for round in ["x", "y", "z"] {
            stage.set_tools(&["first", round]);
            stage.notify_list_changed("tools");
            stage.notify_updated("note:a");
            if era == Era::Modern {
                // The server has a stream for each of the two.
                let mut told = [subscriber.change().await, subscriber.change().await];
                told.sort();
                let expected = [updated("note:a", "standard"), changed("tools", "standard")];
                assert_eq!(told, expected);
            } else {
                assert_eq!(subscriber.change().await, changed("tools", "standard"));
                assert_eq!(subscriber.change().await, updated("note:a", "standard"));
            }
        }
    };
    join_all(ERAS.map(check)).await;
}

/// SV-14: of a server that is connected to anew since its entry is another: what its resources did in between is taken for a
/// change.
#[tokio::test]
async fn a_resource_of_a_server_with_another_entry_is_told_once_more() {
    for era in ERAS {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        for (round, way) in [(0, ClientKind::HttpLegacy), (1, ClientKind::HttpModern)] {
            let mut subscriber = listening(&harness, way, &["note:b"]).await;
            if !way.is_modern() {
                let params = json!({"uri": "note:b"});
                subscriber.succeeds("resources/subscribe", params).await;
            }
            let mut next = config(Target::http(harness.peer.url.clone()));
            next.servers[0].forwarded_extensions = vec![format!("com.example/{round}")];
            harness.reload(next).await;
            let mut told = subscriber.change().await;
            while told.0 != "resources/updated" {
                told = subscriber.change().await;
            }
            assert_eq!(told, updated("note:b", "standard"), "{era:?} {way:?}");
        }
    }
}
