//! What servers announce.

use super::*;
use crate::support::*;

/// SV-16: what a server says is told, of all variants, even if its list reads as before.
#[tokio::test]
async fn what_a_server_announces_is_told() {
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscriber =
            NotificationClient::listening(&harness, way, everything(&[]), Some("read-only")).await;
        for list in ["tools", "resources", "prompts"] {
            stage.notify_list_changed(list);
            let all = ["standard", "compact", "directory", "read-only"];
            for variant in if way.is_modern() { &all[3..] } else { &all } {
                let found = subscriber.change().await;
                assert_eq!(found, changed(list, variant), "{era:?} {way:?}");
            }
        }
    };
    join_all(every_pair().map(check)).await;
}

/// A call of a tool that is not known reads the list, maybe before the server announces the change.
#[tokio::test]
async fn a_change_that_was_found_before_it_was_announced_is_told_once() {
    let standard = async |subscriber: &mut NotificationClient| {
        let mut told = subscriber.change().await;
        while told.1.as_deref() != Some("standard") {
            told = subscriber.change().await;
        }
        told
    };
    let check = async |(era, way): (Era, ClientKind)| {
        let stage = ChangingServer::new(era);
        let harness = Harness::changing(&stage).await;
        let mut subscriber = listening(&harness, way, &[]).await;
        stage.set_tools(&["first", "early"]);
        let declared = json!({});
        let call = || way.ask(&harness, &declared, "tools/call", tool("early"));
        soon(async { while call().await.get("error").is_some() {} }).await;
        let expected = changed("tools", "standard");
        assert_eq!(standard(&mut subscriber).await, expected);
        stage.notify_list_changed("tools");
        stage.set_prompts(&["other"]);
        stage.notify_list_changed("prompts");
        let expected = changed("prompts", "standard");
        assert_eq!(standard(&mut subscriber).await, expected);
        // Nothing was found before this one.
        stage.notify_list_changed("tools");
        let expected = changed("tools", "standard");
        assert_eq!(standard(&mut subscriber).await, expected);
    };
    join_all(every_pair().map(check)).await;
}
