//! The upstream server over streamable HTTP.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::{Answer, Answers, Kind};
use crate::servers::{SESSION, empty, json, serve_http};

/// The body of any answer: frames, one at a time.
#[derive(Debug, Default)]
struct Frames {
    frames: VecDeque<Bytes>,
    /// Whether the next frame waits until the previous one has been written.
    waits: bool,
    /// The last frame, if it is not known yet.
    later: Option<oneshot::Receiver<Bytes>>,
}

struct Server {
    answers: Answers,
    sessions: RefCell<BTreeSet<String>>,
    /// The answers that wait for their clients' responses, by the ids of the server requests.
    asked: RefCell<BTreeMap<String, (Bytes, oneshot::Sender<Bytes>)>>,
}

/// Serves at `/mcp` until standard input closes.
pub(crate) fn serve(answers: Answers) -> io::Result<()> {
    let server = Rc::new(Server {
        answers,
        sessions: RefCell::default(),
        asked: RefCell::default(),
    });
    serve_http("/mcp", move |request| {
        let server = Rc::clone(&server);
        async move { server.respond(request).await }
    })
}

impl Server {
    async fn respond(&self, request: Request<Incoming>) -> Response<Frames> {
        if request.method() == Method::DELETE {
            return empty(StatusCode::OK);
        }
        if request.method() != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let session = request.headers().get(SESSION).cloned();
        let Ok(body) = request.into_body().collect().await else {
            return empty(StatusCode::BAD_REQUEST);
        };
        let message = body.to_bytes();
        let opened = match self.session(session.as_ref(), &message) {
            Ok(opened) => opened,
            Err(status) => return empty(status),
        };
        let mut response = self.answer(&message).await;
        if let Some(opened) = opened {
            response.headers_mut().insert(SESSION, opened);
        }
        response
    }

    /// The session that a message opens, if any. Refuses messages that need a session and have none.
    fn session(
        &self,
        sent: Option<&HeaderValue>,
        message: &[u8],
    ) -> Result<Option<HeaderValue>, StatusCode> {
        if self.answers.kind != Kind::Sessions {
            return Ok(None);
        }
        let mut sessions = self.sessions.borrow_mut();
        if let Some(sent) = sent {
            let known = sent.to_str().is_ok_and(|sent| sessions.contains(sent));
            return if known {
                Ok(None)
            } else {
                Err(StatusCode::NOT_FOUND)
            };
        }
        // A client may detect the era first.
        if !Answers::is_initialize(message) {
            return Err(StatusCode::BAD_REQUEST);
        }
        let opened = format!("0f7ac5b2-7d1e-4c4c-9a39-{:012x}", sessions.len());
        let header = HeaderValue::try_from(opened.as_str());
        sessions.insert(opened);
        Ok(header.ok())
    }

    async fn answer(&self, message: &[u8]) -> Response<Frames> {
        match self.answers.answer(message) {
            Answer::Nothing => empty(StatusCode::ACCEPTED),
            Answer::One(answer, delay) => {
                if delay > Duration::ZERO {
                    tokio::time::sleep(delay).await;
                }
                json(Frames::from(answer))
            }
            Answer::Several(messages) => stream(Frames {
                frames: messages.iter().map(event).collect(),
                ..Frames::default()
            }),
            Answer::Asks {
                id,
                question,
                answer,
            } => {
                let (sender, later) = oneshot::channel();
                let waiting = (event(&answer), sender);
                self.asked.borrow_mut().insert(id, waiting);
                stream(Frames {
                    frames: [event(&question)].into(),
                    later: Some(later),
                    ..Frames::default()
                })
            }
            Answer::Answered(id) => {
                if let Some((answer, sender)) = self.asked.borrow_mut().remove(&id) {
                    // The receiver is gone if the call was abandoned.
                    let _ = sender.send(answer);
                }
                empty(StatusCode::ACCEPTED)
            }
        }
    }
}

fn stream(events: Frames) -> Response<Frames> {
    let mut response = Response::new(events);
    let stream = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, stream);
    response
}

fn event(message: &Bytes) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + 24);
    event.put_slice(b"event: message\ndata: ");
    event.put_slice(message);
    event.put_slice(b"\n\n");
    event.freeze()
}

impl From<Bytes> for Frames {
    fn from(frame: Bytes) -> Self {
        Self {
            frames: [frame].into(),
            ..Self::default()
        }
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Each event is sent before the next is written, as from a tool that works between them.
        if std::mem::take(&mut self.waits) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut frame = self.frames.pop_front();
        if let (None, Some(later)) = (&frame, &mut self.later) {
            frame = ready!(Pin::new(later).poll(cx)).ok();
            self.later = None;
        }
        self.waits = frame.is_some() && !self.frames.is_empty();
        Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.later.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self.frames.len() {
            _ if self.later.is_some() => http_body::SizeHint::default(),
            0 => http_body::SizeHint::with_exact(0),
            1 if !self.waits => http_body::SizeHint::with_exact(self.frames[0].len() as u64),
            _ => http_body::SizeHint::default(),
        }
    }
}
