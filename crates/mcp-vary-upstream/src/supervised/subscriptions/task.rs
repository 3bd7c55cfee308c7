//! Tasks of a legacy server that has them by the extension: it tells of each to whoever had it made, asked or not.

use std::convert::Infallible;
use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;

use super::legacy::changed;
use super::{Shared, Topic};
use crate::Upstream;
use crate::message::{Event, Request};

/// Nothing is asked for; after an interruption it is asked how tasks stand.
pub(super) async fn keep(upstream: &Arc<Upstream>, shared: &Shared) -> Infallible {
    let subscriptions = shared.of(Topic::Tasks);
    let mut changes = subscriptions.changes.subscribe();
    let mut hearings = upstream.hearings();
    loop {
        let held = subscriptions.held().into_iter().collect();
        for id in subscriptions.wanted().difference(&held) {
            shared.hold(Topic::Tasks, upstream, id);
        }
        changes.borrow_and_update();
        tokio::select! {
            _ = changes.changed() => {}
            () = changed(hearings.as_mut()) => {
                for id in subscriptions.held() {
                    tell(upstream, shared, &id);
                }
            }
        }
    }
}

/// Asks how the task `id` stands, and tells that.
///
/// > Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get` would
/// > have returned at that moment. (SEP-2663, "Task Status Notifications")
pub(super) fn tell(upstream: &Arc<Upstream>, shared: &Shared, id: &Arc<str>) {
    let (upstream, events) = (Arc::downgrade(upstream), shared.events.clone());
    let (id, stop) = (Arc::clone(id), shared.stop.clone());
    let asked = async move {
        let request = upstream.upgrade().map(|it| (request(&it, &id), it));
        let (request, upstream) = request?;
        let exchange = upstream.request(request).await.ok()?;
        drop(upstream);
        let answer = exchange.answer().await.ok()?;
        // What is not there any more is said to whoever asks.
        let stands = edit::remove(answer.outcome().ok()?, "resultType").into_owned();
        // Nobody listening is fine.
        let _ = events.send(Event::task_changed(Some(&stands))?);
        Some(())
    };
    shared.tasks.spawn(stop.run_until_cancelled_owned(asked));
}

fn request(upstream: &Upstream, id: &str) -> Request {
    let mut params = format!(r#"{{"taskId":{}}}"#, json::string(id));
    if !upstream.client_meta().is_empty() {
        let capabilities = Topic::Tasks.declared_with(upstream.capabilities());
        params = crate::handshake::modern_params(&capabilities, &[("taskId", json::string(id))]);
    }
    Request::new("tasks/get", Some(params)).with_name(id)
}
