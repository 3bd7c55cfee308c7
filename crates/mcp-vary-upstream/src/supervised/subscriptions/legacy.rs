//! `resources/subscribe` and `resources/unsubscribe`, one for each resource.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use mcp_vary::json;
use mcp_vary_wire::methods::SUBSCRIBE;
use mcp_vary_wire::response::{Failure, METHOD_NOT_FOUND};
use mcp_vary_wire::sanitize::excerpt;
use tokio::sync::watch;

use super::{Refused, Shared, Topic, may_offer, refuse_all};
use crate::message::{Event, Request};
use crate::{Answer, Upstream, UpstreamError};

/// What is asked of the server in one step.
enum Ask {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

pub(super) async fn keep(upstream: &Arc<Upstream>, shared: &Shared) -> Infallible {
    let subscriptions = shared.of(Topic::Resources);
    let mut changes = subscriptions.changes.subscribe();
    let mut renewals = upstream.renewals();
    let mut hearings = upstream.hearings();
    let mut session = None;
    let mut held = BTreeSet::new();
    loop {
        let now = renewals.as_mut().map(|it| *it.borrow_and_update());
        if session.replace(now).is_some_and(|before| before != now) {
            held.clear();
            subscriptions.ask_anew();
        }
        changes.borrow_and_update();
        if !may_offer(Topic::Resources, upstream, shared) {
            return refuse_all(subscriptions).await;
        }
        let asks = asks(&subscriptions.wanted(), &held);
        if asks.is_empty() {
            tokio::select! {
                _ = changes.changed() => {}
                () = changed(renewals.as_mut()) => {}
                () = changed(hearings.as_mut()) => tell_all(shared),
            }
            continue;
        }
        // Each resource is in it once, so that one answer cannot overtake another.
        let asked = stream::iter(asks).map(|ask| asked(upstream, ask));
        let mut asked = asked.buffer_unordered(AT_ONCE);
        let mut has_failed = false;
        while let Some((ask, answer)) = asked.next().await {
            has_failed |= answer.is_err();
            take_in((upstream, shared), &mut held, ask, &answer);
        }
        if has_failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// What makes the server tell of what is `wanted`, and of nothing else.
fn asks(wanted: &BTreeSet<Arc<str>>, held: &BTreeSet<Arc<str>>) -> Vec<Ask> {
    let new = wanted.difference(held).cloned().map(Ask::Subscribe);
    let gone = held.difference(wanted).cloned().map(Ask::Unsubscribe);
    new.chain(gone).collect()
}

async fn asked(upstream: &Upstream, ask: Ask) -> (Ask, Result<Answer, UpstreamError>) {
    let (method, uri) = match &ask {
        Ask::Subscribe(uri) => (SUBSCRIBE, uri),
        Ask::Unsubscribe(uri) => ("resources/unsubscribe", uri),
    };
    let params = format!(r#"{{"uri":{}}}"#, json::string(uri));
    let answer = async {
        let exchange = upstream.request(Request::new(method, Some(params))).await?;
        exchange.answer().await
    };
    let answer = answer.await;
    (ask, answer)
}

/// Takes note of an answer. What was asked in vain, since the connection failed, is asked again.
fn take_in(
    (upstream, shared): (&Arc<Upstream>, &Shared),
    held: &mut BTreeSet<Arc<str>>,
    ask: Ask,
    answer: &Result<Answer, UpstreamError>,
) {
    let server = &shared.config.name;
    let outcome = match answer {
        Ok(answer) => answer.outcome().map(drop),
        Err(error) => {
            let error = error.details();
            return tracing::debug!(server, error, "subscription not asked for");
        }
    };
    match (ask, outcome) {
        (Ask::Subscribe(uri), Ok(())) => {
            if !Topic::Resources.is_offered(upstream.hello()) {
                shared.learned.undeclared().note(SUBSCRIBE, true);
            }
            shared.hold(Topic::Resources, upstream, &uri);
            held.insert(uri);
        }
        (Ask::Subscribe(uri), Err(error)) => {
            let why = excerpt(error.as_bytes(), 200);
            tracing::debug!(server, why, "subscription refused");
            let is_lacking = Failure::told_by_upstream(error).code() == METHOD_NOT_FOUND;
            if is_lacking && !Topic::Resources.is_offered(upstream.hello()) {
                shared.learned.undeclared().note(SUBSCRIBE, false);
            }
            shared
                .of(Topic::Resources)
                .refuse(&uri, Refused::Answered(error.into()));
        }
        // Whatever it answered, it was told.
        (Ask::Unsubscribe(uri), _) => drop(held.remove(&uri)),
    }
}

/// Waits until it is another.
pub(super) async fn changed(number: Option<&mut watch::Receiver<u64>>) {
    match number {
        // An error means that the connection is gone, and with it whoever waits here.
        Some(number) => drop(number.changed().await),
        None => std::future::pending().await,
    }
}

/// Each resource that is subscribed to may have changed unheard.
fn tell_all(shared: &Shared) {
    for uri in shared.of(Topic::Resources).held() {
        shared.tell(Event::may_be_updated(&uri));
    }
}

/// Requests on their way at once.
const AT_ONCE: usize = 8;
/// What could not be asked is asked again after this long.
const PAUSE: Duration = Duration::from_secs(1);
