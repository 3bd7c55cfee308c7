//! `resources/subscribe` and `resources/unsubscribe`, one for each resource.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary::json::{self, Members};
use mcp_vary_wire::method_names::SUBSCRIBE;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;
use tokio::sync::watch;

use super::{activate, may_offer, refusal, reject_all};
use crate::connection::UpstreamConnection;
use crate::error::UpstreamError;
use crate::message::{Answer, Event, Request};
use crate::supervised::shared::Shared;
use crate::supervised::subscriptions::SubscribeError;
use crate::supervised::topic::Topic;

/// One request to the server.
enum Change {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

pub(super) async fn maintain(upstream: &Arc<UpstreamConnection>, shared: &Shared) -> Infallible {
    let subscriptions = shared.subscriptions(Topic::Resources);
    let mut changes = subscriptions.changes();
    let mut renewals = upstream.transport.session_renewed();
    let mut openings = upstream.transport.stream_opened();
    let mut session = None;
    let mut held = BTreeSet::new();
    loop {
        let now = renewals.as_mut().map(|last| *last.borrow_and_update());
        if session.replace(now).is_some_and(|before| before != now) {
            held.clear();
            subscriptions.reset();
        }
        changes.borrow_and_update();
        if !may_offer(Topic::Resources, upstream, shared) {
            return reject_all(subscriptions).await;
        }
        for uri in subscriptions.pending_of(&held) {
            activate(shared, Topic::Resources, upstream, &uri);
        }
        let asks = pending_changes(&subscriptions.wanted(), &held);
        if asks.is_empty() {
            tokio::select! {
                _ = changes.changed() => {}
                () = changed(renewals.as_mut()) => {}
                () = changed(openings.as_mut()) => publish_all(shared),
            }
            continue;
        }
        // At most one request per resource is in flight, so that answers cannot overtake each other.
        let requests = stream::iter(asks).map(|ask| send(upstream, ask));
        let mut answers = requests.buffer_unordered(MAX_CONCURRENT);
        let mut has_failed = false;
        while let Some((ask, answer)) = answers.next().await {
            has_failed |= answer.is_err();
            apply((upstream, shared), &mut held, ask, &answer);
        }
        if has_failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The requests that turn the subscriptions `held` by the server into those that are `wanted`.
fn pending_changes(wanted: &BTreeSet<Arc<str>>, held: &BTreeSet<Arc<str>>) -> Vec<Change> {
    let new = wanted.difference(held).cloned().map(Change::Subscribe);
    let gone = held.difference(wanted).cloned().map(Change::Unsubscribe);
    new.chain(gone).collect()
}

async fn send(
    upstream: &UpstreamConnection,
    ask: Change,
) -> (Change, Result<Answer, UpstreamError>) {
    let (method, uri) = match &ask {
        Change::Subscribe(uri) => (SUBSCRIBE, uri),
        Change::Unsubscribe(uri) => ("resources/unsubscribe", uri),
    };
    let params = Members::from_iter([("uri", json::string(uri))]).to_json();
    let sending = async {
        let exchange = upstream.request(Request::new(method, Some(params))).await?;
        exchange.answer().await
    };
    let answer = sending.await;
    (ask, answer)
}

/// Applies an answer. Requests that failed with the connection are sent again, those that the endpoint refused are not.
fn apply(
    (upstream, shared): (&Arc<UpstreamConnection>, &Shared),
    held: &mut BTreeSet<Arc<str>>,
    ask: Change,
    answer: &Result<Answer, UpstreamError>,
) {
    let server = &shared.config.name;
    let outcome = match answer {
        Ok(answer) => answer.outcome().map(drop),
        Err(error) => {
            let details = error.details();
            tracing::debug!(server, details, "subscription not asked for");
            if let Some(refused) = refusal(error)
                && let Change::Subscribe(uri) = ask
            {
                shared.subscriptions(Topic::Resources).reject(&uri, refused);
            }
            return;
        }
    };
    match (ask, outcome) {
        (Change::Subscribe(uri), Ok(())) => {
            if !Topic::Resources.is_offered(upstream.handshake()) {
                shared
                    .server_facts
                    .undeclared_methods()
                    .note(SUBSCRIBE, true);
            }
            activate(shared, Topic::Resources, upstream, &uri);
            held.insert(uri);
        }
        (Change::Subscribe(uri), Err(error)) => {
            let why = excerpt(error.as_bytes(), 200);
            tracing::debug!(server, why, "subscription refused");
            let is_lacking = RpcError::from_upstream_or_internal(error).code() == METHOD_NOT_FOUND;
            if is_lacking && !Topic::Resources.is_offered(upstream.handshake()) {
                shared
                    .server_facts
                    .undeclared_methods()
                    .note(SUBSCRIBE, false);
            }
            shared
                .subscriptions(Topic::Resources)
                .reject(&uri, SubscribeError::Rejected(error.into()));
        }
        // The subscription has ended, whatever the answer is.
        (Change::Unsubscribe(uri), _) => drop(held.remove(&uri)),
    }
}

/// Waits until the value changes; for ever without a receiver.
pub(super) async fn changed(number: Option<&mut watch::Receiver<u64>>) {
    match number {
        // An error means that the connection has ended, and this task with it.
        Some(number) => drop(number.changed().await),
        None => std::future::pending().await,
    }
}

/// Publishes that every subscribed resource may have changed.
fn publish_all(shared: &Shared) {
    for uri in shared.subscriptions(Topic::Resources).active() {
        shared.publish(Event::resource_may_have_changed(&uri));
    }
}

/// Concurrent requests at most.
const MAX_CONCURRENT: usize = 8;
/// The pause before a failed request is sent again.
const PAUSE: Duration = Duration::from_secs(1);
