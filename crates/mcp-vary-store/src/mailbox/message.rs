//! A request and a response as text: their first line, their headers, and what replicas say of the connection.

use std::net::IpAddr;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

/// The head of a request that another replica answers.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The path and the query.
    pub uri: Uri,
    /// The headers as the client sent them.
    pub headers: HeaderMap,
    /// The address of the client, if it is needed.
    pub address: Option<IpAddr>,
    /// The subject of the client's certificate, if it has sent one.
    pub certificate: Option<String>,
}

/// The most bytes of a head.
pub(crate) const MAX_HEAD: usize = 256 << 10;

/// The bytes of the length before a head.
const LENGTH: usize = 4;

/// Not names of headers.
const ADDRESS: &[u8] = b":address";
const CERTIFICATE: &[u8] = b":certificate";

impl RequestHead {
    pub(crate) fn encode(&self) -> BytesMut {
        let mut lines = Lines::new(format!("{} {}", self.method, self.uri).as_bytes());
        if let Some(address) = self.address {
            lines.add(ADDRESS, address.to_string().as_bytes());
        }
        if let Some(subject) = &self.certificate {
            lines.add(CERTIFICATE, subject.as_bytes());
        }
        lines.add_headers(&self.headers);
        lines.finish()
    }

    pub(super) fn decode(text: &[u8]) -> Option<Self> {
        let (first, lines) = split(text)?;
        let (method, uri) = first.split_once(' ')?;
        let mut head = Self {
            method: method.parse().ok()?,
            uri: uri.parse().ok()?,
            headers: HeaderMap::new(),
            address: None,
            certificate: None,
        };
        for line in lines {
            let (name, value) = line?;
            match name {
                ADDRESS => head.address = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
                CERTIFICATE => {
                    head.certificate = Some(String::from_utf8(value.to_vec()).ok()?);
                }
                _ => add_header(&mut head.headers, name, value)?,
            }
        }
        Some(head)
    }
}

/// The text of a response's head.
pub(super) fn encode_response(status: StatusCode, headers: &HeaderMap) -> BytesMut {
    let mut lines = Lines::new(status.as_str().as_bytes());
    lines.add_headers(headers);
    lines.finish()
}

/// The head of a response.
pub(crate) fn decode_response(text: &[u8]) -> Option<(StatusCode, HeaderMap)> {
    let (first, lines) = split(text)?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line?;
        add_header(&mut headers, name, value)?;
    }
    Some((first.parse().ok()?, headers))
}

/// Cuts a head from the bytes that have arrived: the head, if it is complete.
///
/// # Errors
///
/// If it is too long.
pub(super) fn cut_head(arrived: &mut BytesMut) -> Result<Option<Bytes>, TooLong> {
    let Some(length) = arrived.first_chunk() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| TooLong)?;
    if length > MAX_HEAD {
        return Err(TooLong);
    }
    if arrived.len() < LENGTH + length {
        return Ok(None);
    }
    let head = arrived.split_to(LENGTH + length).freeze();
    Ok(Some(head.slice(LENGTH..)))
}

/// A head is longer than heads may be.
#[derive(Debug)]
pub(super) struct TooLong;

/// The lines of a head, after their length.
struct Lines(BytesMut);

impl Lines {
    fn new(first: &[u8]) -> Self {
        let mut bytes = BytesMut::new();
        bytes.put_u32(0);
        bytes.put_slice(first);
        Self(bytes)
    }

    /// Neither part has line breaks.
    fn add(&mut self, name: &[u8], value: &[u8]) {
        for part in [b"\n", name, b"\0", value] {
            self.0.put_slice(part);
        }
    }

    fn add_headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            self.add(name.as_str().as_bytes(), value.as_bytes());
        }
    }

    fn finish(mut self) -> BytesMut {
        let length = self.0.len() - LENGTH;
        // A longer one is refused where it arrives.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.0[..LENGTH].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// The name and the value of a line, if it has both.
type Line<'a> = Option<(&'a [u8], &'a [u8])>;

/// The first line, and the others.
fn split(text: &[u8]) -> Option<(&str, impl Iterator<Item = Line<'_>>)> {
    // No line feed is in a header, nor in what is said of a connection.
    let mut lines = text.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let fields = lines.map(|line| {
        let at = line.iter().position(|byte| *byte == 0)?;
        Some((&line[..at], &line[at + 1..]))
    });
    Some((first, fields))
}

fn add_header(headers: &mut HeaderMap, name: &[u8], value: &[u8]) -> Option<()> {
    let name = HeaderName::from_bytes(name).ok()?;
    let value = HeaderValue::from_bytes(value).ok()?;
    headers.try_append(name, value).ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: BytesMut) -> Bytes {
        let mut arrived = text;
        arrived.put_slice(b"body");
        let cut = cut_head(&mut arrived).unwrap().unwrap();
        assert_eq!(arrived, &b"body"[..]);
        cut
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let mut headers = HeaderMap::new();
        headers.append("accept", HeaderValue::from_static("a, b"));
        headers.append("x-two", HeaderValue::from_static("1"));
        headers.append("x-two", HeaderValue::from_bytes(b"\xff: 2").unwrap());
        let request = RequestHead {
            method: Method::POST,
            uri: Uri::from_static("/mcp/a?b=c"),
            headers,
            address: Some("::1".parse().unwrap()),
            certificate: Some("CN=ann, O=Acme".to_owned()),
        };
        let read = RequestHead::decode(&head(request.encode())).unwrap();
        assert_eq!(format!("{read:?}"), format!("{request:?}"));
    }

    #[test]
    fn a_response_is_read_as_it_was_written() {
        let headers = HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        )]);
        let text = encode_response(StatusCode::ACCEPTED, &headers);
        let read = decode_response(&head(text)).unwrap();
        assert_eq!(read, (StatusCode::ACCEPTED, headers));
        let empty = encode_response(StatusCode::OK, &HeaderMap::new());
        assert!(decode_response(&head(empty)).unwrap().1.is_empty());
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for text in ["", "x", "200\nname", "200\n\0value", "99"] {
            assert!(decode_response(text.as_bytes()).is_none(), "{text:?}");
        }
        for text in ["GET", "GET /\n:address\0x", "GET /\n:other\0x"] {
            assert!(RequestHead::decode(text.as_bytes()).is_none(), "{text:?}");
        }
        let mut long = BytesMut::from(&u32::MAX.to_be_bytes()[..]);
        assert!(cut_head(&mut long).is_err());
        let mut short = BytesMut::from(&[0, 0, 0, 9, b'x'][..]);
        assert!(cut_head(&mut short).unwrap().is_none());
    }
}
