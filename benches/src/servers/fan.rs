//! The limit of a notification to many clients: an HTTP server that writes what it receives to every listener.
//!
//! It has no sessions, parses no message and builds the bytes of an event once.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use clap::Parser;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{json, serve_http};

/// The options of the limit of a notification to many.
#[derive(Debug, Parser)]
pub(crate) struct Options {}

/// The connected listeners.
type Listeners = Rc<RefCell<Vec<UnboundedSender<Bytes>>>>;

/// Serves until standard input closes.
pub(crate) fn serve() -> io::Result<()> {
    let listeners = Listeners::default();
    serve_http("/mcp", move |request| {
        let listeners = Rc::clone(&listeners);
        async move { respond(&listeners, request).await }
    })
}

async fn respond(listeners: &Listeners, request: Request<Incoming>) -> Response<Body> {
    if request.method() == Method::GET {
        let (sender, messages) = unbounded_channel();
        // The head is sent with the first byte of its body.
        let _ = sender.send(Bytes::from_static(b": open\n\n"));
        listeners.borrow_mut().push(sender);
        let mut response = Response::new(Body::Stream(messages));
        let stream = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, stream);
        return response;
    }
    // The content of the request is ignored.
    let _ = request.into_body().collect().await;
    let event = Bytes::from_static(CHANGED.as_bytes());
    let mut listeners = listeners.borrow_mut();
    listeners.retain(|listener| listener.send(event.clone()).is_ok());
    json(Body::Whole(Some(Bytes::from_static(b"{}"))))
}

enum Body {
    Whole(Option<Bytes>),
    Stream(UnboundedReceiver<Bytes>),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Whole(whole) => Poll::Ready(whole.take()),
            Self::Stream(messages) => messages.poll_recv(cx),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(whole) => {
                http_body::SizeHint::with_exact(whole.as_ref().map_or(0, Bytes::len) as u64)
            }
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}

/// As long as Vary's notification, which names its variant.
const CHANGED: &str = concat!(
    "id: 123456789012-1\nevent: message\ndata: ",
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/server-variant":"standard"}}}"#,
    "\n\n"
);
