//! The body of a request: from a client, or from another replica.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use mcp_vary_store::ReplicaBody;

/// The body of a request.
pub(super) enum RequestBody {
    /// As the client sends it.
    Client(Incoming),
    /// As another replica forwards it.
    Replica(ReplicaBody),
}

/// The request has ended before its body has.
#[derive(Debug)]
pub(super) struct BrokenBody;

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match self.get_mut() {
            Self::Client(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(frame.map(|frame| frame.map_err(|_| BrokenBody)))
            }
            Self::Replica(body) => {
                let data = ready!(body.poll_data(cx));
                Poll::Ready(data.map(|data| data.map(Frame::data).map_err(|_| BrokenBody)))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Client(body) => body.size_hint(),
            Self::Replica(_) => SizeHint::default(),
        }
    }
}
