//! The body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame, SizeHint};
use mcp_vary_wire::sanitize::excerpt;

use crate::content_coding::{Coding, Decoder, UnknownCoding};

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

mcp_vary_base::debug_by_name!(Incoming);

impl Incoming {
    /// The response with its body decoded.
    pub fn of_response(response: Response<hyper::body::Incoming>) -> Response<Self> {
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
    ///
    /// # Errors
    ///
    /// [`ReadError::Charset`].
    pub fn check_charset(&self, text: &[u8]) -> Result<(), ReadError> {
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
