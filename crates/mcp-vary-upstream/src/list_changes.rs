//! Hears of list changes: on the stream of a legacy endpoint, or by `subscriptions/listen`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ::http::StatusCode;
use mcp_vary::json::Members;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::Frame;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::error::UpstreamError;
use super::handshake::modern_params;
use super::message::{Event, Message, Request, RequestKind};
use super::{Exchange, Transport, UpstreamConnection, http};

/// Starts to listen where there is something to hear; ends with the connection.
pub(super) fn start(upstream: &Arc<UpstreamConnection>) {
    let stop = upstream.stop.clone();
    match (upstream.handshake.era(), &upstream.transport) {
        // A legacy process tells on its standard output.
        (Era::Legacy, Transport::Stdio(_)) => {}
        (Era::Legacy, Transport::Http(connection)) => {
            let listening = http::listen(Arc::clone(connection));
            tokio::spawn(async move { stop.run_until_cancelled(listening).await });
        }
        (Era::Modern, _) => {
            let kinds = Kind::ALL
                .into_iter()
                .filter(|kind| upstream.handshake.offers(kind.capability(), "listChanged"));
            let kinds: Vec<_> = kinds.collect();
            if !kinds.is_empty() {
                let listening = subscribe(Arc::downgrade(upstream), kinds);
                tokio::spawn(async move { stop.run_until_cancelled(listening).await });
            }
        }
    }
}

/// Keeps one subscription open.
async fn subscribe(upstream: Weak<UpstreamConnection>, kinds: Vec<Kind>) {
    let mut failures = 0;
    loop {
        // The connection must not be kept alive by listening to it.
        let Some(strong) = upstream.upgrade() else {
            return;
        };
        let events = strong.events.clone();
        let opened = strong
            .send(
                request(&strong.config.capabilities, &kinds),
                RequestKind::Subscription,
            )
            .await;
        drop(strong);
        let began = Instant::now();
        let end = match opened {
            Ok(exchange) => hear(exchange, &events, &kinds).await,
            Err(error) => End::of(&error),
        };
        match end {
            End::Refused => return,
            // One that ends again and again at once shall not have all lists read as often.
            End::Ended if began.elapsed() >= STEADY => failures = 0,
            End::Ended | End::Failed => failures += 1,
        }
        tokio::time::sleep(PAUSE * (1 << failures.min(6))).await;
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
    /// Before it was; it may go better later.
    Failed,
    /// For good.
    Refused,
}

impl End {
    fn of(error: &UpstreamError) -> Self {
        match error {
            UpstreamError::Closed { .. } => Self::Refused,
            UpstreamError::Status { status, .. } if !may_pass(*status) => Self::Refused,
            _ => Self::Failed,
        }
    }

    fn of_answer(error: &str) -> Self {
        if is_refusal(error) {
            Self::Refused
        } else {
            Self::Failed
        }
    }
}

/// Whether the error that a server answered is final: only what says that there is no such thing.
pub(super) fn is_refusal(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    matches!(
        members.get("code"),
        Some("-32600" | "-32601" | "-32602" | "-32020" | "-32021" | "-32022")
    )
}

/// Whether a request that was answered with `status` may be answered differently later.
///
/// 409 is what servers say that have not noticed yet that the stream before is broken.
pub(super) fn may_pass(status: StatusCode) -> bool {
    !status.is_client_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// Listens until the subscription ends. The list changes themselves are told by the connection.
///
/// Once it is acknowledged, all `kinds` are told: what changed before, from the first list that was read
/// or since the last subscription broke, was told nowhere.
async fn hear(mut exchange: Exchange, events: &broadcast::Sender<Event>, kinds: &[Kind]) -> End {
    let mut was_open = false;
    loop {
        match exchange.next().await {
            Ok(Message::Notification(message)) => match Frame::read(&message) {
                Ok(Frame::Notification { method, .. }) if method == CANCELLED => return End::Ended,
                Ok(Frame::Notification { method, .. }) if method == ACKNOWLEDGED && !was_open => {
                    was_open = true;
                    for kind in kinds {
                        let _ = events.send(Event::ListMayHaveChanged(*kind));
                    }
                }
                _ => {}
            },
            // Dropped, it is refused.
            Ok(Message::Request(_)) => {}
            Ok(Message::Answer(answer)) => match answer.outcome() {
                Ok(_) => return End::Ended,
                Err(error) => {
                    let said = excerpt(error.as_bytes(), 200);
                    tracing::debug!(said, "subscription refused");
                    return End::of_answer(error);
                }
            },
            Err(_) if was_open => return End::Ended,
            Err(error) => return End::of(&error),
        }
    }
}

pub(super) const CANCELLED: &str = "notifications/cancelled";
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const PAUSE: Duration = Duration::from_secs(1);
/// A subscription that held so long did not fail.
const STEADY: Duration = Duration::from_secs(60);
