//! Subscribes at a server: once for all subscribers of a resource or task, and again on every new connection or session.

mod legacy;
mod modern;
mod task;

use std::convert::Infallible;
use std::sync::Arc;

use mcp_vary::error_code::INTERNAL_ERROR;
use mcp_vary_wire::method_names::SUBSCRIBE;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message::error_json;

use super::shared::Shared;
use super::subscriptions::{SubscribeError, Subscriptions};
use super::topic::Topic;
use crate::connection::UpstreamConnection;
use crate::error::{UpstreamError, is_transient};
use crate::message::Event;

/// Subscribes and unsubscribes at the server as the entries change, for as long as the connection lasts.
pub(super) async fn maintain(upstream: &Arc<UpstreamConnection>, shared: &Shared) -> Infallible {
    let resources = maintain_topic(Topic::Resources, upstream, shared);
    let tasks = maintain_topic(Topic::Tasks, upstream, shared);
    tokio::join!(resources, tasks).0
}

async fn maintain_topic(
    topic: Topic,
    upstream: &Arc<UpstreamConnection>,
    shared: &Shared,
) -> Infallible {
    let subscriptions = shared.subscriptions(topic);
    subscriptions.reset();
    if !may_offer(topic, upstream, shared) {
        return reject_all(subscriptions).await;
    }
    match (upstream.handshake().era(), topic) {
        (Era::Modern, _) => modern::maintain(topic, upstream, shared).await,
        (Era::Legacy, Topic::Resources) => legacy::maintain(upstream, shared).await,
        (Era::Legacy, Topic::Tasks) => task::maintain(upstream, shared).await,
    }
}

/// Whether the server may offer subscriptions to `topic`: it declares them, or is a legacy server that is not known to
/// lack the method.
fn may_offer(topic: Topic, upstream: &UpstreamConnection, shared: &Shared) -> bool {
    let is_resource = topic == Topic::Resources && upstream.handshake().era() == Era::Legacy;
    let may_have = || shared.server_facts.undeclared_methods().has(SUBSCRIBE) != Some(false);
    topic.is_offered(upstream.handshake()) || is_resource && may_have()
}

/// The refusal in an error that another attempt would get again.
fn refusal(error: &UpstreamError) -> Option<SubscribeError> {
    let is_final = match error {
        UpstreamError::Status { status, .. } => !is_transient(*status),
        // Without a status the request was not sent: the authorization server may be away for a moment.
        UpstreamError::Credentials { status, .. } => status.is_some(),
        _ => false,
    };
    let refused = || error_json(INTERNAL_ERROR, &error.to_string());
    is_final.then(|| SubscribeError::Rejected(refused().into()))
}

async fn reject_all(subscriptions: &Subscriptions) -> Infallible {
    let mut changes = subscriptions.changes();
    loop {
        for uri in subscriptions.wanted() {
            subscriptions.reject(&uri, SubscribeError::NotOffered);
        }
        changes.borrow_and_update();
        if subscriptions.wanted().is_empty() {
            let _ = changes.changed().await;
        }
    }
}

/// Marks `id` as active, and publishes an update if one may have been missed.
fn activate(shared: &Shared, topic: Topic, upstream: &Arc<UpstreamConnection>, id: &Arc<str>) {
    if !shared.subscriptions(topic).activate(id) {
        return;
    }
    match topic {
        Topic::Resources => shared.publish(Event::resource_may_have_changed(id)),
        Topic::Tasks => task::publish_state(upstream, shared, id),
    }
}
