//! Notifications and requests of handlers: tagged with the variant, in order, to the right client.

use crate::prelude::*;
use crate::shop::{Shop, WAS_CANCELLED};
use crate::support::{Told, connect_to};
use crate::variants::variant;
use rmcp::RoleServer;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::mpsc;

fn server() -> VaryServer {
    VaryServer::builder()
        .with_variant(variant("a"), Shop::new("a"))
        .with_variant(variant("b"), Shop::new("b"))
        .build()
        .unwrap()
}

/// The error for a URI to which the client is subscribed in another variant.
const ELSEWHERE: &str = "Resource is subscribed in another variant; unsubscribe first";

/// The error for `uri`, requested in `b`, to which the client is subscribed in `a`.
fn is_elsewhere(error: ErrorData, uri: &str) {
    let data = json!({"uri": uri, "activeVariant": "b", "subscribedVariant": "a"});
    assert_eq!(data_of(error, -32602, ELSEWHERE), data);
}

/// The error of the shop `a` for a resource that it does not have.
fn is_missing(error: ErrorData) {
    let data = json!({"shop": "a", "activeVariant": "a"});
    assert_eq!(data_of(error, -32602, "nothing there"), data);
}

/// The variant `a`, which hides `shop:///all`.
fn hiding() -> VaryServer {
    let view = View::new().with_resources_where(|uri| uri != "shop:///all");
    let shop = VariantHandler::new(Shop::new("a")).with_view(view);
    let builder = VaryServer::builder().with_variant(variant("a"), shop);
    builder.build().unwrap()
}

fn changed(what: &'static str, variant: &str) -> Told {
    Told::Changed(what, Some(variant.to_owned()))
}

/// SV-14, SV-16: a change notification names its variant.
#[tokio::test]
async fn a_change_carries_the_variant_of_its_handler() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let mut client = connect(&server(), (Era::Legacy, wire)).await;
        for variant in ["b", "a", "b"] {
            client.call(variant, "put_tools", json!({})).await;
            assert_eq!(client.hear().await, changed("tools", variant));
            client.call(variant, "put_resource", json!({})).await;
            assert_eq!(client.hear().await, changed("resource", variant));
        }
    }
}

/// SV-16: it reaches the client to which the handler sent it, and no other, even if all share a
/// handler.
#[tokio::test]
async fn a_change_reaches_its_client_only() {
    let server = serve_http(server()).await;
    let mut one = join(&server.url, Era::Legacy, json!({}), &[]).await;
    let mut other = join(&server.url, Era::Legacy, json!({}), &[]).await;
    one.call("a", "put_tools", json!({})).await;
    other.call("b", "put_tools", json!({})).await;
    assert_eq!(one.hear().await, changed("tools", "a"));
    assert_eq!(other.hear().await, changed("tools", "b"));
    one.call("b", "put_resource", json!({})).await;
    assert_eq!(one.hear().await, changed("resource", "b"));
    assert!(other.told.try_recv().is_err());
}

struct Keeper(mpsc::UnboundedSender<Peer<RoleServer>>);

impl ServerHandler for Keeper {
    async fn list_tools(&self, _: PageParams, context: Context) -> McpResult<ListToolsResult> {
        self.0.send(context.peer).unwrap();
        Ok(ListToolsResult::default())
    }
}

/// A session has one peer for each variant that was used. All of them close with the session, even
/// if a handler still holds one.
#[tokio::test]
async fn a_session_takes_its_peers_along() {
    let (sender, mut peers) = mpsc::unbounded_channel();
    let keeper = VariantHandler::new(Keeper(sender));
    let server = VaryServer::builder()
        .with_variant(variant("a"), keeper.clone())
        .with_variant(variant("b"), keeper);
    let server = server.build().unwrap();
    let client = connect(&server, (Era::Legacy, Wire::Pipe)).await;
    for id in ["a", "b", "a"] {
        client.names(id, "tools").await;
    }
    client.service.cancel().await.unwrap();
    for _ in 0..3 {
        let peer = soon(peers.recv()).await.unwrap();
        soon(async {
            while !peer.is_transport_closed() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// SV-14: no notifications are sent for a resource that the variant hides.
#[tokio::test]
async fn a_hidden_resource_is_not_spoken_of() {
    let server = hiding();
    for wire in each([Wire::Pipe, Wire::Http]) {
        let mut client = connect(&server, (Era::Legacy, wire)).await;
        client.call("a", "put_resource", json!({})).await;
        client.call("a", "put_tools", json!({})).await;
        assert_eq!(client.hear().await, changed("tools", "a"));

        let client = connect(&server, (Era::Modern, wire)).await;
        let uris = ["shop:///all", "shop:///a"];
        let filter = SubscriptionFilter::builder().resource_subscriptions(uris);
        let mut stream = client.service.listen(filter.build()).await.unwrap();
        let told = serde_json::to_value(soon(stream.next()).await.unwrap()).unwrap();
        assert_eq!(told["params"]["uri"], "shop:///a");
    }
}

/// SV-14: a subscription belongs to its variant.
#[tokio::test]
async fn a_subscription_is_bound_to_its_variant() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(), (Era::Legacy, wire)).await;
        let all = json!({"uri": "shop:///all"});
        let method = "resources/subscribe";
        let subscribe = |variant, uri: &Value| client.under(variant, method, uri.clone());
        subscribe("a", &all).await.unwrap();
        subscribe("a", &all).await.unwrap();
        is_elsewhere(subscribe("b", &all).await.unwrap_err(), "shop:///all");

        // It does not exist in this variant, and is not bound to it either.
        let only_b = json!({"uri": "shop:///b"});
        is_missing(subscribe("a", &only_b).await.unwrap_err());
        subscribe("b", &only_b).await.unwrap();

        // Whatever variant is selected, and even if the handler fails.
        for uri in [all.clone(), json!({"uri": "shop:///none"})] {
            client.result("b", "resources/unsubscribe", uri).await;
        }
        subscribe("b", &all).await.unwrap();

        // A rejected second subscription leaves the first one bound.
        let once = json!({"uri": "shop:///once"});
        subscribe("a", &once).await.unwrap();
        is_missing(subscribe("a", &once).await.unwrap_err());
        is_elsewhere(subscribe("b", &once).await.unwrap_err(), "shop:///once");
    }
}

/// SV-14: when a resource disappears from its variant's list, the client gets one list change and
/// then nothing, and the subscription is over.
#[tokio::test]
async fn a_resource_that_has_gone_is_told_once() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let mut client = connect(&server(), (Era::Legacy, wire)).await;
        let all = json!({"uri": "shop:///all"});
        let subscribe = |variant| client.under(variant, "resources/subscribe", all.clone());
        subscribe("a").await.unwrap();
        is_elsewhere(subscribe("b").await.unwrap_err(), "shop:///all");

        client.call("a", "put_list", json!({"gone": true})).await;
        client.call("a", "put_resource", json!({})).await;
        client.call("a", "put_tools", json!({})).await;
        assert_eq!(client.hear().await, changed("resources", "a"));
        assert_eq!(client.hear().await, changed("tools", "a"));

        // The ended subscription does not prevent a new one.
        let subscribe = |variant| client.under(variant, "resources/subscribe", all.clone());
        soon(async {
            while subscribe("b").await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        client.call("a", "put_resource", json!({})).await;
        client.call("b", "put_resource", json!({})).await;
        assert_eq!(client.hear().await, changed("resource", "b"));
    }
}

/// SV-14: a list change does not end subscriptions to resources that still exist, listed or not.
#[tokio::test]
async fn a_resource_that_is_there_is_spoken_of() {
    for uri in ["shop:///all", "shop:///once", "shop:///a/7"] {
        let mut client = connect(&server(), (Era::Legacy, Wire::Pipe)).await;
        let params = json!({"uri": uri});
        let subscribed = client.under("a", "resources/subscribe", params).await;
        assert_eq!(subscribed.is_err(), uri == "shop:///a/7");
        for _ in 0..2 {
            client.call("a", "put_list", json!({"gone": false})).await;
            client.call("a", "put_resource", json!({"uri": uri})).await;
            assert_eq!(client.hear().await, changed("resources", "a"), "{uri}");
            assert_eq!(client.hear().await, changed("resource", "a"), "{uri}");
        }
    }
}

/// Removes its resource, and still sends updates of it.
#[derive(Default)]
struct Withdrawing {
    is_withdrawn: AtomicBool,
}

impl ServerHandler for Withdrawing {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_resources(&self, _: PageParams, _: Context) -> McpResult<ListResourcesResult> {
        let mut resources = vec![Resource::new("a:kept", "kept")];
        if !self.is_withdrawn.load(Ordering::Relaxed) {
            resources.push(Resource::new("a:gone", "gone"));
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> McpResult<()> {
        let sink = context.sink();
        // The sink drops what the client did not subscribe to.
        let _ = sink.notify_resource_updated("a:gone").await;
        self.is_withdrawn.store(true, Ordering::Relaxed);
        let _ = sink.notify_resource_list_changed().await;
        let _ = sink.notify_resource_updated("a:gone").await;
        let _ = sink.notify_resource_updated("a:kept").await;
        context.cancelled().await;
        Ok(())
    }
}

/// SV-14, SV-15: the same on a modern stream, where the list change is sent only if the client
/// asked for it.
#[tokio::test]
async fn a_stream_tells_once_of_what_has_gone() {
    let updated = |uri: &str| json!(["notifications/resources/updated", uri]);
    let listed = json!(["notifications/resources/list_changed", null]);
    for wire in each([Wire::Pipe, Wire::Http]) {
        for asks in [true, false] {
            let server = VaryServer::builder().with_variant(variant("a"), Withdrawing::default());
            let client = connect(&server.build().unwrap(), (Era::Modern, wire)).await;
            let uris = ["a:gone", "a:kept"];
            let mut filter = SubscriptionFilter::builder().resource_subscriptions(uris);
            if asks {
                filter = filter.resources_list_changed();
            }
            let mut stream = client.service.listen(filter.build()).await.unwrap();
            let mut expected = vec![updated("a:gone")];
            expected.extend(asks.then(|| listed.clone()));
            expected.push(updated("a:kept"));
            for expected in expected {
                let notification = json!(soon(stream.next()).await.unwrap().unwrap());
                let found = json!([notification["method"], notification["params"]["uri"]]);
                assert_eq!(found, expected);
            }
        }
    }
}

/// SV-14: hidden and unknown resources give the same error.
#[tokio::test]
async fn what_is_hidden_cannot_be_subscribed_to() {
    let client = connect(&hiding(), (Era::Legacy, Wire::Pipe)).await;
    let mut answers = Vec::new();
    for uri in ["shop:///all", "shop:///none"] {
        let params = json!({"uri": uri});
        let error = client.error("a", "resources/subscribe", params).await;
        let expected = (-32602, "Resource not found");
        assert_eq!((error.code.0, &*error.message), expected);
        answers.push(serde_json::to_string(&error).unwrap().replace(uri, "…"));
    }
    assert_eq!(answers[0], answers[1]);
}

/// SV-16: even if sessions share the handler itself, a change reaches its own client.
#[tokio::test]
async fn sessions_may_share_a_handler() {
    let server = Arc::new(server());
    let mut one = connect_to(server.clone(), Era::Legacy).await;
    let mut other = connect_to(server, Era::Legacy).await;
    for client in [&mut one, &mut other] {
        client.call("a", "put_tools", json!({})).await;
        assert_eq!(client.hear().await, changed("tools", "a"));
    }
    assert!(one.told.try_recv().is_err() && other.told.try_recv().is_err());
}

/// A legacy session uses one task for each variant that was used; modern requests use none.
#[tokio::test]
async fn tasks_are_few() {
    for (era, expected) in [(Era::Legacy, 2), (Era::Modern, 0)] {
        let client = connect(&server(), (era, Wire::Pipe)).await;
        // The first modern request makes rmcp serve the connection in a task of its own.
        if era == Era::Modern {
            client.names("a", "tools").await;
        }
        let before = settled_tasks().await;
        for variant in ["a", "b", "a", "b", "a"] {
            client.names(variant, "tools").await;
        }
        assert_eq!(settled_tasks().await - before, expected, "{era:?}");
    }
}

/// The number of tasks once those that are ending have ended.
async fn settled_tasks() -> usize {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let runtime = tokio::runtime::Handle::current();
    runtime.metrics().num_alive_tasks()
}

/// SV-15: every notification on a modern stream carries its variant and its subscription.
#[tokio::test]
async fn a_stream_belongs_to_its_variant() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(), (Era::Modern, wire)).await;
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .resource_subscription("shop:///all")
            .build();
        let mut stream = client.service.listen(filter).await.unwrap();
        let id = serde_json::to_value(stream.id()).unwrap();
        for change in ["tools/list_changed", "resources/updated"] {
            let notification = json!(soon(stream.next()).await.unwrap().unwrap());
            let expected = format!("notifications/{change}");
            assert_eq!(notification["method"], expected);
            let meta = &notification["params"]["_meta"];
            assert_eq!(meta[VARIANT], "a", "{notification}");
            assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], id);
        }
        stream.cancel().await.unwrap();
    }
}

/// SV-15: the acknowledgement should contain only what exists in the variant, and an invalid
/// variant should be rejected without one. rmcp 3.8 acknowledges before a handler has a context
/// (`accepted_subscription_filter`, handler/server.rs). When this test fails, it no longer does.
#[tokio::test]
async fn rmcp_still_acknowledges_without_a_context() {
    let client = connect(&server(), (Era::Modern, Wire::Pipe)).await;
    let filter = SubscriptionFilter::builder().resource_subscription("shop:///none");
    let stream = client.service.listen(filter.build()).await.unwrap();
    let acknowledged = stream.acknowledged().resource_subscriptions.clone();
    assert_eq!(acknowledged.unwrap(), ["shop:///none"]);
}

/// Handlers can still send requests to their clients and get the responses.
#[tokio::test]
async fn a_handler_can_ask_its_client() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let mut client = connect_tagged(&server(), (Era::Legacy, wire), &[]).await;
        let result = client.call("b", "put_question", json!({})).await;
        assert_eq!(client.hear().await, Told::Asked("Who are you?".to_owned()));
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        assert_eq!(result["content"][0]["text"], answer.to_string());
    }
}

/// Handlers can still report progress, and all of it arrives.
#[tokio::test]
async fn a_handler_reports_progress() {
    for era in each([Era::Legacy, Era::Modern]) {
        for wire in each([Wire::Pipe, Wire::Http]) {
            let mut client = connect(&server(), (era, wire)).await;
            client.call("b", "put_progress", json!({})).await;
            let mut steps = Vec::new();
            for _ in 0..3 {
                match client.hear().await {
                    Told::Progress(step) => steps.push(step as u32),
                    other => panic!("{other:?}"),
                }
            }
            // rmcp's client handles each notification in its own task.
            steps.sort_unstable();
            assert_eq!(steps, [1, 2, 3]);
        }
    }
}

/// Handlers are still notified that their call was cancelled.
#[tokio::test]
async fn a_call_can_be_cancelled() {
    for era in each([Era::Legacy, Era::Modern]) {
        let client = connect(&server(), (era, Wire::Pipe)).await;
        let call = json!({"name": "put_wait", "arguments": {}});
        let meta = json!({VARIANT: "b"});
        let handle = client.begin("tools/call", call, meta).await;
        handle.cancel(None).await.unwrap();
        soon(WAS_CANCELLED.notified()).await;
    }
}
