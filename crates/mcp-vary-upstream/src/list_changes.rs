//! Receives the list changes of a modern server, by `subscriptions/listen`.

use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary_wire::extension_methods::is_of_an_extension;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::ServerMessage;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::error::{UpstreamError, is_rejection, is_transient};
use super::handshake::modern_params;
use super::message::{Event, Message, Request, RequestKind};
use super::transport::{Exchange, Transport};
use super::upstream_variant;
use crate::config::UpstreamConfig;

/// The subscription to the lists whose changes a modern server announces.
pub(super) struct ListSubscription {
    kinds: Vec<Kind>,
    request: Request,
}

impl ListSubscription {
    /// The subscription to a server with this handshake; `None` if it announces no changes.
    pub(super) fn new(config: &UpstreamConfig, handshake: &Handshake) -> Option<Self> {
        let reports = |kind: &Kind| handshake.has_capability_flag(kind.capability(), "listChanged");
        let kinds: Vec<_> = Kind::ALL.into_iter().filter(reports).collect();
        let mut request = request(&config.capabilities, &kinds);
        if let Some(variant) = &config.variant {
            upstream_variant::select(variant, &mut request);
        }
        (!kinds.is_empty()).then_some(Self { kinds, request })
    }

    /// Opens the subscription, and opens it again whenever it ends.
    pub(super) async fn run(self, transport: Weak<Transport>, events: broadcast::Sender<Event>) {
        let mut failures = 0;
        loop {
            // The subscription must not keep the connection alive.
            let Some(strong) = transport.upgrade() else {
                return;
            };
            let request = self.request.clone();
            let opened = strong.request(request, RequestKind::Subscription).await;
            drop(strong);
            let began = Instant::now();
            let end = match opened {
                Ok(exchange) => receive(exchange, &events, &self.kinds).await,
                Err(error) => End::of(&error),
            };
            match end {
                End::Rejected => return,
                // A subscription that ends at once must not cause all lists to be read each time.
                End::Ended if began.elapsed() >= STEADY => failures = 0,
                End::Ended | End::Failed => failures += 1,
            }
            tokio::time::sleep(PAUSE * (1 << failures.min(6))).await;
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
    /// It ended after it was open.
    Ended,
    /// It could not be opened; a retry may succeed.
    Failed,
    /// The server rejected it for good.
    Rejected,
}

impl End {
    fn of(error: &UpstreamError) -> Self {
        match error {
            UpstreamError::Closed { .. } => Self::Rejected,
            UpstreamError::Status { status, .. } if !is_transient(*status) => Self::Rejected,
            _ => Self::Failed,
        }
    }

    fn of_answer(error: &str) -> Self {
        if is_rejection(error) {
            Self::Rejected
        } else {
            Self::Failed
        }
    }
}

/// Reads the subscription until it ends. The connection itself publishes the list changes, and on stdio what is of
/// extensions.
///
/// On the acknowledgement, [`Event::ListMayHaveChanged`] is published for all `kinds`: earlier changes, since the first
/// list was read or the last subscription broke, were not announced.
async fn receive(mut exchange: Exchange, events: &broadcast::Sender<Event>, kinds: &[Kind]) -> End {
    let mut was_open = false;
    loop {
        match exchange.next().await {
            Ok(Message::Notification(message)) => match ServerMessage::read(&message) {
                Ok(ServerMessage::Notification { method, .. }) if method == CANCELLED => {
                    return End::Ended;
                }
                Ok(ServerMessage::Notification { method, .. })
                    if method == ACKNOWLEDGED && !was_open =>
                {
                    was_open = true;
                    for kind in kinds {
                        let _ = events.send(Event::ListMayHaveChanged(*kind));
                    }
                }
                Ok(ServerMessage::Notification { method, .. }) if is_of_an_extension(&method) => {
                    let _ = events.send(Event::Notification(Bytes::copy_from_slice(&message)));
                }
                _ => {}
            },
            // Dropping the request answers it with an error.
            Ok(Message::Request(_)) => {}
            Ok(Message::Answer(answer)) => match answer.outcome() {
                Ok(_) => return End::Ended,
                Err(error) => {
                    let error_excerpt = excerpt(error.as_bytes(), 200);
                    tracing::debug!(error = error_excerpt, "subscription refused");
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
/// A subscription that lasted this long counts as successful.
const STEADY: Duration = Duration::from_secs(60);
