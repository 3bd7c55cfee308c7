//! The body of a response, with a limit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use mcp_vary_wire::sanitize::excerpt;

use super::content_coding::{Coding, Decoder, UnknownCoding};
use crate::answer_memory::AnswerLease;

/// The body of a response, as it was before the server compressed it.
pub struct Incoming {
    body: hyper::body::Incoming,
    content: Content,
    /// The charset that the server names, if it is not UTF-8.
    charset: Option<Box<str>>,
}

enum Content {
    Plain,
    Coded(Box<Decoder>),
    /// The name of a coding that was not asked for and cannot be decoded.
    Unknown(Box<str>),
}

/// Why a body broke off or cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection failed.
    #[error(transparent)]
    Transport(#[from] hyper::Error),
    /// The server used a content coding that Vary did not accept and cannot decode.
    #[error("it is compressed with `{0}`, though Vary accepts no compression")]
    Coding(Box<str>),
    /// The bytes are not those of the content coding, or end too early.
    #[error("it is compressed otherwise than its `Content-Encoding` says, or incomplete")]
    Corrupt,
    /// JSON in another charset.
    #[error("it is in the charset `{0}`, as its `Content-Type` says, and not in UTF-8")]
    Charset(Box<str>),
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

impl Incoming {
    pub(crate) fn of_response(response: Response<hyper::body::Incoming>) -> Response<Self> {
        let charset = charset(response.headers());
        let coding = response.headers().get(CONTENT_ENCODING);
        let coding = String::from_utf8_lossy(coding.map_or(b"", HeaderValue::as_bytes));
        let content = match Coding::parse(&coding) {
            Ok(None) => Content::Plain,
            Ok(Some(coding)) => Content::Coded(Box::new(Decoder::new(coding))),
            Err(UnknownCoding) => Content::Unknown(excerpt(coding.as_bytes(), MAX_NAME).into()),
        };
        response.map(|body| Self {
            body,
            content,
            charset,
        })
    }

    /// Checks that what was read is UTF-8, if the server names another charset.
    pub(super) fn check_charset(&self, text: &[u8]) -> Result<(), ReadError> {
        match &self.charset {
            // Neither is UTF-16, which can be UTF-8 with zeros.
            Some(charset) if std::str::from_utf8(text).is_err() || text.contains(&0) => {
                Err(ReadError::Charset(charset.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = ReadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReadError>>> {
        let Self { body, content, .. } = self.get_mut();
        let mut body = Pin::new(body);
        let decoder = match content {
            Content::Plain => return body.poll_frame(context).map_err(Into::into),
            Content::Unknown(name) => {
                return Poll::Ready(Some(Err(ReadError::Coding(name.clone()))));
            }
            Content::Coded(decoder) => decoder,
        };
        let corrupt = Poll::Ready(Some(Err(ReadError::Corrupt)));
        loop {
            match decoder.decode() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Err(_) => return corrupt,
            }
            match ready!(body.as_mut().poll_frame(context)?) {
                Some(frame) => decoder.push(&frame.into_data().unwrap_or_default()),
                None if decoder.is_complete() => return Poll::Ready(None),
                None => return corrupt,
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.content {
            Content::Plain => self.body.size_hint(),
            Content::Coded(_) | Content::Unknown(_) => SizeHint::default(),
        }
    }
}

/// The charset of a `Content-Type`, if it is not UTF-8 or a part of it.
fn charset(headers: &HeaderMap) -> Option<Box<str>> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let mut parameters = content_type.split(';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    })?;
    let usual = ["", "utf-8", "utf8", "us-ascii"];
    let is_usual = usual.iter().any(|name| charset.eq_ignore_ascii_case(name));
    (!is_usual).then(|| excerpt(charset.as_bytes(), MAX_NAME).into())
}

/// `text` without the byte order mark that it may begin with.
///
/// > implementations that parse JSON texts MAY ignore the presence of a byte order mark (RFC 8259, section 8.1)
#[must_use]
pub fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with(b"\xef\xbb\xbf") {
        text.advance(3);
    }
    text
}

/// How much of the name of a coding or charset an error has.
const MAX_NAME: usize = 60;

/// Collects a body in one piece of memory.
#[derive(Debug)]
pub(super) struct Collect {
    body: Incoming,
    limit: usize,
    first: Bytes,
    /// Used from the second frame on; most bodies have one and are not copied.
    all: BytesMut,
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    /// It finds no room in the memory for answers.
    NoRoom,
    /// It broke off, or cannot be read.
    Broken(ReadError),
}

impl Collect {
    pub(super) fn new(body: Incoming, limit: usize) -> Self {
        Self {
            body,
            limit,
            first: Bytes::new(),
            all: BytesMut::new(),
        }
    }

    /// Reads to the end, without a byte order mark at the start. Safe to drop while it waits, and to call again.
    pub(super) async fn run(&mut self) -> Result<Bytes, BodyError> {
        self.run_in(&mut AnswerLease::default()).await
    }

    /// The same for an answer that takes `memory`. One of a known size waits for room before it is read.
    pub(super) async fn run_in(&mut self, memory: &mut AnswerLease) -> Result<Bytes, BodyError> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.limit {
            return Err(BodyError::TooLarge);
        }
        if self.first.is_empty() && self.all.is_empty() {
            let room = memory.wait_for(announced).await;
            room.map_err(|_| BodyError::NoRoom)?;
        }
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(BodyError::Broken)?;
            if let Ok(data) = frame.into_data() {
                let length = self.first.len() + self.all.len() + data.len();
                let room = memory.grow_to(length);
                room.map_err(|_| BodyError::NoRoom)?;
                self.push(data)?;
            }
        }
        let whole = if self.all.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            self.all.split().freeze()
        };
        self.body.check_charset(&whole).map_err(BodyError::Broken)?;
        Ok(without_mark(whole))
    }

    fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        if self.first.len() + self.all.len() + data.len() > self.limit {
            return Err(BodyError::TooLarge);
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = data;
            return Ok(());
        }
        if self.all.is_empty() {
            let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(0);
            let whole = self.first.len() + data.len() + announced;
            self.all.reserve(whole.min(self.limit).min(RESERVED));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&data);
        Ok(())
    }
}

/// The memory that is reserved for an announced body; more is reserved as it arrives.
const RESERVED: usize = 1 << 20;

/// Reads and drops what follows an answer, so that the connection can be reused.
pub(super) async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, all).await;
}

const DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Whether a body is HTML.
pub(super) fn is_web_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let starts_with = |word: &[u8]| {
        let start = start.get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    starts_with(b"<!doctype html") || starts_with(b"<html")
}
