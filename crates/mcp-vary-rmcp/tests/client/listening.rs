//! Change notifications: subscriptions of both eras, each in its variant.

use crate::prelude::*;
use mcp_vary::variant::VariantId;
use rmcp::model::SubscriptionFilter;

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::builder()
        .tools_list_changed()
        .resource_subscriptions(["test://a".to_owned()])
        .build()
}

/// SV-8, SV-16: a modern subscription selects its variant, and its notifications invalidate the
/// cache.
#[tokio::test]
async fn a_modern_client_listens_in_a_variant() {
    for way in each(WAYS.into_iter().filter(|way| way.modern)) {
        let mut connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.view("compact");
        let listening = view.listen(filter()).await.unwrap();
        assert_eq!(*listening.acknowledged(), filter());
        let expected = [Some(json!("compact"))];
        assert_eq!(connected.server.selectors("subscriptions/listen"), expected);
        assert_eq!(view.tools().await.unwrap()[0].name, "compact-a0");
        connected.change_and_hear("tools", Some("compact")).await;
        assert_eq!(view.tools().await.unwrap()[0].name, "compact-a1");
        connected.change_and_hear("test://a", Some("compact")).await;
    }
}

/// SV-19: listening in a rejected variant is an error, not a subscription to another.
#[tokio::test]
async fn listening_never_falls_back() {
    let connected = Connected::new(WAYS[1], Scripted::with_variants()).await;
    let view = connected.view("compact");
    connected.server.retire("compact");
    // The SDK acknowledges before its handler sees the request, so the rejection may come as the
    // end.
    let error = match view.listen(filter()).await {
        Ok(listening) => soon(listening.closed()).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, Error::VariantRejected { .. }), "{error:?}");
    let expected = [Some(json!("compact"))];
    assert_eq!(connected.server.selectors("subscriptions/listen"), expected);
}

/// A subscription ends when it is dropped.
#[tokio::test]
async fn a_dropped_subscription_is_cancelled() {
    for way in each(WAYS.into_iter().filter(|way| way.modern)) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let mut cancelled = connected.server.cancellations();
        let view = connected.view("compact");
        drop(view.listen(filter()).await.unwrap());
        soon(cancelled.recv()).await.unwrap();
    }
}

/// SV-14, SV-19: the same URI in another variant is unsubscribed first; in the same variant it is
/// not.
#[tokio::test]
async fn a_legacy_client_unsubscribes_before_it_changes_the_variant() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let [compact, debug] = ["compact", "debug"].map(|name| connected.view(name));
        compact.subscribe("test://a").await.unwrap();
        compact.subscribe("test://a").await.unwrap();
        debug.subscribe("test://b").await.unwrap();
        debug.subscribe("test://a").await.unwrap();
        debug.unsubscribe("test://a").await.unwrap();
        compact.subscribe("test://a").await.unwrap();
        let seen: Vec<String> = connected
            .server
            .seen()
            .iter()
            .map(|one| {
                let method = one.method.trim_start_matches("resources/");
                format!("{method} {}", one.selector.clone().unwrap_or_default())
            })
            .collect();
        let expected = [
            r#"subscribe "compact""#,
            r#"subscribe "compact""#,
            r#"subscribe "debug""#,
            "unsubscribe null",
            r#"subscribe "debug""#,
            "unsubscribe null",
            r#"subscribe "compact""#,
        ];
        assert_eq!(seen, expected);
    }
}

/// SV-16: after a change of the list, subscriptions in its variant are requested again, once; those that the server
/// does not accept any more are returned and forgotten.
#[tokio::test]
async fn a_changed_list_revalidates_subscriptions() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let mut connected = Connected::new(way, Scripted::with_variants()).await;
        let [compact, debug] = ["compact", "debug"].map(|name| connected.view(name));
        compact.subscribe("test://a").await.unwrap();
        debug.subscribe("test://b").await.unwrap();
        assert!(revalidated(&connected).await.is_empty());
        let selectors = connected.server.selectors("resources/subscribe");
        assert_eq!(selectors.len(), 2, "nothing has changed");

        connected
            .change_and_hear("resources", Some("compact"))
            .await;
        assert!(revalidated(&connected).await.is_empty());
        let selectors = connected.server.selectors("resources/subscribe");
        assert_eq!(selectors[2..], [Some(json!("compact"))]);

        connected.server.retire("compact");
        connected.change_and_hear("resources", None).await;
        let lost = revalidated(&connected).await;
        assert_eq!(lost, [("test://a".to_owned(), Some(id("compact")))]);
        let selectors = connected.server.selectors("resources/subscribe");
        let again = [Some(json!("compact")), Some(json!("debug"))];
        assert_eq!(selectors[3..], again);

        // What is lost is not requested again.
        connected
            .change_and_hear("resources", Some("compact"))
            .await;
        assert!(revalidated(&connected).await.is_empty());
        assert_eq!(connected.server.selectors("resources/subscribe").len(), 5);
    }
}

async fn revalidated(connected: &Connected) -> Vec<(String, Option<VariantId>)> {
    let lost = connected.client.revalidate_subscriptions().await.unwrap();
    lost.into_iter()
        .map(|lost| {
            assert!(
                matches!(lost.error, Error::VariantRejected { .. }),
                "{lost:?}"
            );
            (lost.uri, lost.variant)
        })
        .collect()
}

/// SV-16: notifications of the SDK's own subscription, which cannot select a variant, can be passed
/// to the client.
#[tokio::test]
async fn the_sdks_subscription_can_be_passed_on() {
    for way in each(WAYS.into_iter().filter(|way| way.modern)) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.client.default_variant();
        let mut subscription = connected.peer().listen(filter()).await.unwrap();
        assert_eq!(view.tools().await.unwrap()[0].name, "standard-a0");
        connected.change("tools", None).await;
        let notification = soon(subscription.next()).await.unwrap().unwrap();
        assert_eq!(view.tools().await.unwrap()[0].name, "standard-a0");
        connected.client.handle_notification(&notification);
        assert_eq!(view.tools().await.unwrap()[0].name, "standard-a1");
        assert_eq!(connected.server.selectors("subscriptions/listen"), [None]);
    }
}

/// SV-16: fails when the SDK gives a notification's metadata to its handler, as it should; then
/// `declaring_client.rs` need not look for it elsewhere.
#[tokio::test]
async fn the_sdk_still_hides_the_metadata_of_notifications() {
    let mut connected = Connected::new(WAYS[0], Scripted::with_variants()).await;
    let received = connected.change_and_hear("tools", Some("compact")).await;
    assert_eq!(received, "tools");
}
