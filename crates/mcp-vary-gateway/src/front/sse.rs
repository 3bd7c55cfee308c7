//! Server-sent events on their way to a client.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::running::{Running, Step};
use crate::session::OpenStream;

/// The body of any response of the gateway.
#[derive(Debug)]
pub(crate) enum Body {
    Whole(Option<Bytes>),
    Stream(Box<Stream>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Stream(stream) => ready!(stream.poll_data(cx)),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}

/// Events one after the other, with a comment now and then so that nobody thinks the stream dead.
pub(crate) struct Stream {
    source: Source,
    first: Option<Bytes>,
    quiet: Pin<Box<Sleep>>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

enum Source {
    /// A request that the server works on.
    Request(Next),
    /// Messages of several requests of a batch.
    Channel(tokio::sync::mpsc::Receiver<Bytes>),
    /// What the client is told on its own, until its session ends or the listener stops; the stream of a
    /// `GET`.
    Told {
        told: OpenStream,
        stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    },
    Over,
}

type Next = Pin<Box<dyn Future<Output = (Box<Running>, Step)> + Send>>;

/// A comment is sent after this long without an event.
const QUIET: Duration = Duration::from_secs(15);

impl Stream {
    /// The stream of `running`, whose first notification has arrived.
    pub(crate) fn of_request(running: Box<Running>, first: &[u8]) -> Box<Self> {
        Self::new(Source::Request(next(running)), event(first))
    }

    pub(crate) fn of_channel(
        messages: tokio::sync::mpsc::Receiver<Bytes>,
        first: &[u8],
    ) -> Box<Self> {
        Self::new(Source::Channel(messages), event(first))
    }

    /// What the client is told on its own, until its session ends or the listener stops.
    pub(crate) fn standalone(told: OpenStream, stopping: &CancellationToken) -> Box<Self> {
        let stopping = Box::pin(stopping.clone().cancelled_owned());
        let source = Source::Told { told, stopping };
        Self::new(source, Bytes::from_static(b": open\n\n"))
    }

    fn new(source: Source, first: Bytes) -> Box<Self> {
        Box::new(Self {
            source,
            first: Some(first),
            quiet: Box::pin(tokio::time::sleep(QUIET)),
        })
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(message) = self.source.poll_message(cx) {
            self.quiet.as_mut().reset(Instant::now() + QUIET);
            return Poll::Ready(message.map(|message| event(&message)));
        }
        ready!(self.quiet.as_mut().poll(cx));
        self.quiet.as_mut().reset(Instant::now() + QUIET);
        Poll::Ready(Some(Bytes::from_static(b": still here\n\n")))
    }
}

impl Source {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Request(waiting) => {
                let (running, step) = ready!(waiting.as_mut().poll(cx));
                let (message, after) = match step {
                    Step::Message(message) => (Some(message), Self::Request(next(running))),
                    Step::Done(reply) => (Some(reply.body), Self::Over),
                    Step::Cancelled => (None, Self::Over),
                };
                *self = after;
                Poll::Ready(message)
            }
            Self::Channel(messages) => messages.poll_recv(cx),
            Self::Told { told, stopping } => {
                let message = match stopping.as_mut().poll(cx) {
                    Poll::Ready(()) => None,
                    Poll::Pending => ready!(told.poll_next(cx)),
                };
                if message.is_none() {
                    *self = Self::Over;
                }
                Poll::Ready(message)
            }
            Self::Over => Poll::Ready(None),
        }
    }
}

fn next(mut running: Box<Running>) -> Next {
    Box::pin(async move {
        let step = running.next().await;
        (running, step)
    })
}

/// One message as an event; line breaks between its tokens become lines of data.
fn event(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 24);
    out.put_slice(b"event: message\n");
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.put_slice(b"data: ");
        out.put_slice(line);
        out.put_u8(b'\n');
    }
    out.put_u8(b'\n');
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_over_several_lines_is_one_event() {
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
        assert_eq!(event(b"{\n}"), "event: message\ndata: {\ndata: }\n\n");
    }
}
