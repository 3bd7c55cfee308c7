//! The stream of one `subscriptions/listen` request: the queue between the hub and the client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_vary::variant::VariantId;
use mcp_vary_wire::response;
use tokio::sync::mpsc;

use super::hub::SubscriptionHub;
use super::notification::{EncodedNotification, NotificationSender, closed};

/// The messages of one stream, until it ends.
///
/// # Properties
///
/// The acknowledgement comes first. If the gateway ends the stream (at shutdown, because the variant was removed, or
/// because the client does not read), `notifications/cancelled` and the result come last.
///
/// > A server MUST send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it tears
/// > down that subscription stream. (MCP 2026-07-28, basic/patterns/cancellation)
///
/// > When a server ends a subscription on its own initiative, it SHOULD respond to the original
/// > `subscriptions/listen` request with a completion result before closing the stream.
/// > (MCP 2026-07-28, basic/patterns/subscriptions, "Graceful Closure")
pub(crate) struct ListenStream {
    messages: mpsc::Receiver<Bytes>,
    closing_message: VecDeque<Bytes>,
    /// The stream ends when one of them is ready.
    ends: Vec<BoxFuture<'static, ()>>,
    membership: SubscriberGuard,
}

/// Removes the subscriber from the hub when dropped.
#[derive(Debug)]
pub(crate) struct SubscriberGuard {
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) number: u64,
}

impl Drop for SubscriberGuard {
    fn drop(&mut self) {
        self.hub.remove(self.number);
    }
}

/// The client's end of a stream whose other end is not in the hub yet.
#[derive(Debug)]
pub(crate) struct OpenListenStream {
    messages: mpsc::Receiver<Bytes>,
    closing_message: VecDeque<Bytes>,
}

/// The two ends of a stream for the subscription `id`, JSON text. The acknowledgement of `filter` is in it.
pub(crate) fn open(
    id: &str,
    filter: &str,
    variant: Option<&VariantId>,
) -> (NotificationSender, OpenListenStream) {
    let (sender, messages) = NotificationSender::channel(id);
    sender.send(&EncodedNotification::acknowledged(filter, variant));
    let cancelled = EncodedNotification::cancelled(id, REASON, variant).to_stream(id);
    let result = response::result(id, closed(id).as_bytes()).body;
    let tail = OpenListenStream {
        messages,
        closing_message: VecDeque::from([cancelled, result]),
    };
    (sender, tail)
}

impl OpenListenStream {
    pub(crate) fn listener(self, membership: SubscriberGuard) -> Box<ListenStream> {
        Box::new(ListenStream {
            messages: self.messages,
            closing_message: self.closing_message,
            ends: Vec::new(),
            membership,
        })
    }
}

impl ListenStream {
    /// The same stream, which also ends, with its closing messages, after `end`.
    pub(crate) fn until(
        mut self: Box<Self>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Box<Self> {
        self.ends.push(Box::pin(end));
        self
    }

    /// The next message; none at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.messages.poll_recv(cx) {
            Poll::Ready(Some(message)) => return Poll::Ready(Some(message)),
            // It was removed from the hub, since its client reads too slowly or its variant is gone.
            Poll::Ready(None) => return Poll::Ready(self.closing_message.pop_front()),
            Poll::Pending => {}
        }
        if !self
            .ends
            .iter_mut()
            .any(|end| end.as_mut().poll(cx).is_ready())
        {
            return Poll::Pending;
        }
        // Queued messages come before the end, and nothing after it.
        self.membership.hub.remove(self.membership.number);
        self.messages.close();
        self.poll_next(cx)
    }
}

const REASON: &str = "the gateway ends the subscription";
