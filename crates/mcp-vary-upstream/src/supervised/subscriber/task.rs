//! Tasks of a legacy server with the tasks extension. It notifies the client that created a task without a subscription.

use std::convert::Infallible;
use std::sync::Arc;

use mcp_vary::json::{self, Members, edit};

use super::activate;
use super::legacy::changed;
use crate::connection::UpstreamConnection;
use crate::handshake::modern_params;
use crate::message::{Event, Request};
use crate::supervised::shared::Shared;
use crate::supervised::topic::Topic;

/// Sends no subscription requests; after an interruption it requests the status of the tasks.
pub(super) async fn maintain(upstream: &Arc<UpstreamConnection>, shared: &Shared) -> Infallible {
    let subscriptions = shared.subscriptions(Topic::Tasks);
    let mut changes = subscriptions.changes();
    let mut openings = upstream.transport.stream_opened();
    loop {
        let held = subscriptions.active().into_iter().collect();
        for id in subscriptions.wanted().difference(&held) {
            activate(shared, Topic::Tasks, upstream, id);
        }
        changes.borrow_and_update();
        tokio::select! {
            _ = changes.changed() => {}
            () = changed(openings.as_mut()) => {
                for id in subscriptions.active() {
                    publish_state(upstream, shared, &id);
                }
            }
        }
    }
}

/// Requests the status of the task `id` and publishes it.
///
/// > Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get` would
/// > have returned at that moment. (SEP-2663, "Task Status Notifications")
pub(super) fn publish_state(upstream: &Arc<UpstreamConnection>, shared: &Shared, id: &Arc<str>) {
    let weak = Arc::downgrade(upstream);
    let events = shared.events.clone();
    let id = Arc::clone(id);
    let stop = shared.stop.clone();
    let reading = async move {
        let upstream = weak.upgrade()?;
        let exchange = upstream.request(request(&upstream, &id)).await.ok()?;
        drop(upstream);
        let answer = exchange.answer().await.ok()?;
        // The error for a removed task is the answer to the client's own requests.
        let task = edit::remove(answer.outcome().ok()?, "resultType").into_owned();
        // An error only means that there is no subscriber.
        let _ = events.send(Event::task_changed(Some(&task))?);
        Some(())
    };
    shared.tasks.spawn(stop.run_until_cancelled_owned(reading));
}

fn request(upstream: &UpstreamConnection, id: &str) -> Request {
    let mut params = Members::from_iter([("taskId", json::string(id))]).to_json();
    if !upstream.client_meta().is_empty() {
        let capabilities = Topic::Tasks.declared_with(upstream.capabilities());
        params = modern_params(&capabilities, &[("taskId", json::string(id))]);
    }
    Request::new("tasks/get", Some(params)).with_name(id)
}
