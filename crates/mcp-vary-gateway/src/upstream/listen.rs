//! Hears of list changes: on the stream of a legacy endpoint, or by `subscriptions/listen`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::error::UpstreamError;
use super::frame::Frame;
use super::handshake::modern_params;
use super::message::{Event, Kind, Message, Purpose, Request};
use super::{Exchange, Link, Upstream, http};
use crate::revision::Era;

/// Starts to listen where there is something to hear; ends with the connection.
pub(super) fn start(upstream: &Arc<Upstream>) {
    let stop = upstream.stop.clone();
    match (upstream.hello.era(), &upstream.link) {
        // A legacy process tells on its standard output.
        (Era::Legacy, Link::Stdio(_)) => {}
        (Era::Legacy, Link::Http(connection)) => {
            let listening = http::listen(Arc::clone(connection));
            tokio::spawn(async move { stop.run_until_cancelled(listening).await });
        }
        (Era::Modern, _) => {
            let kinds = Kind::ALL
                .into_iter()
                .filter(|kind| upstream.hello.offers(kind.capability(), "listChanged"));
            let kinds: Vec<_> = kinds.collect();
            if !kinds.is_empty() {
                let listening = subscribe(Arc::downgrade(upstream), kinds);
                tokio::spawn(async move { stop.run_until_cancelled(listening).await });
            }
        }
    }
}

/// Keeps one subscription open.
async fn subscribe(upstream: Weak<Upstream>, kinds: Vec<Kind>) {
    let mut failures = 0;
    loop {
        // The connection must not be kept alive by listening to it.
        let Some(strong) = upstream.upgrade() else {
            return;
        };
        let opened = strong
            .open(
                request(&strong.config.capabilities, &kinds),
                Purpose::Subscription,
            )
            .await;
        drop(strong);
        let end = match opened {
            Ok(exchange) => hear(exchange).await,
            Err(error) => End::of(&error),
        };
        match end {
            End::Refused => return,
            End::Ended => failures = 0,
            End::Failed => failures += 1,
        }
        tokio::time::sleep(PAUSE * (1 << failures.min(6))).await;
        let Some(strong) = upstream.upgrade() else {
            return;
        };
        for kind in &kinds {
            // What changed in between was not told.
            let _ = strong.events.send(Event::ListChanged(*kind));
        }
    }
}

fn request(capabilities: &str, kinds: &[Kind]) -> Request {
    let filter: Vec<_> = kinds
        .iter()
        .map(|kind| format!(r#""{}":true"#, kind.filter()))
        .collect();
    let filter = format!("{{{}}}", filter.join(","));
    let params = modern_params(capabilities, &[("notifications", filter)]);
    Request::new("subscriptions/listen", Some(params))
}

/// How a subscription ended.
enum End {
    /// After it was open.
    Ended,
    /// Before it was.
    Failed,
    /// For good.
    Refused,
}

impl End {
    fn of(error: &UpstreamError) -> Self {
        match error {
            UpstreamError::Closed { .. } => Self::Refused,
            UpstreamError::Status { status, .. } if status.is_client_error() => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// Listens until the subscription ends. The list changes themselves are told by the connection.
async fn hear(mut exchange: Exchange) -> End {
    let mut was_open = false;
    loop {
        match exchange.next().await {
            Ok(Message::Notification(message)) => match Frame::read(&message) {
                Ok(Frame::Notification { method, .. }) if method == "notifications/cancelled" => {
                    return End::Ended;
                }
                _ => was_open = true,
            },
            Ok(Message::Answer(answer)) => match answer.outcome() {
                Ok(_) => return End::Ended,
                Err(error) => {
                    tracing::debug!(error, "subscription refused");
                    return End::Refused;
                }
            },
            Err(_) if was_open => return End::Ended,
            Err(error) => return End::of(&error),
        }
    }
}

const PAUSE: Duration = Duration::from_secs(1);
