//! Reads events from bytes in pieces.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// One event of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SseEvent {
    /// The `event` field; empty means `message`.
    pub kind: String,
    /// The `data` lines, joined by line feeds.
    pub data: Bytes,
}

/// An event or a line is larger than allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit.
    pub limit: usize,
}

/// Reads one stream, piece by piece.
///
/// # Properties
///
/// The result does not depend on how the bytes are split. A byte order mark at the start of the stream, or of the value of
/// `data`, is skipped. Never buffers more than twice the limit.
///
/// # Examples
///
/// ```
/// use mcp_vary_wire::sse::Parser;
///
/// let mut parser = Parser::new(1024);
/// assert!(parser.feed(b": hello\nid: 7\nda")?.is_empty());
/// let events = parser.feed(b"ta: {}\r\n\r\n")?;
/// assert_eq!(&events[0].data[..], b"{}");
/// assert_eq!(parser.last_id(), Some("7"));
///
/// // An event without data is ignored, but its id counts: servers send one first, to resume from.
/// assert!(parser.feed(b"id: 8\n\n")?.is_empty());
/// assert_eq!(parser.last_id(), Some("8"));
/// # Ok::<(), mcp_vary_wire::sse::EventTooLarge>(())
/// ```
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    line: BytesMut,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    after_return: bool,
    is_at_start: bool,
    kind: String,
    data: BytesMut,
    has_data: bool,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Parser {
    /// A parser that rejects events and lines of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: BytesMut::new(),
            after_return: false,
            is_at_start: true,
            kind: String::new(),
            data: BytesMut::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// The bytes of the event that has begun.
    pub fn unfinished(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// The id to resume from: that of the last complete event.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The reconnection delay, if the server sent one.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Parses the next piece; returns the events that it completes.
    ///
    /// # Errors
    ///
    /// When an event or a line exceeds the limit; the stream cannot be parsed further.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut events = Vec::new();
        let mut remaining = piece;
        while !remaining.is_empty() {
            if std::mem::take(&mut self.after_return) && remaining[0] == b'\n' {
                remaining = &remaining[1..];
                continue;
            }
            let end = remaining
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'));
            let text = &remaining[..end.unwrap_or(remaining.len())];
            if self.line.len() + text.len() + self.data.len() > self.limit {
                return Err(EventTooLarge { limit: self.limit });
            }
            self.line.extend_from_slice(text);
            let Some(end) = end else { break };
            self.after_return = remaining[end] == b'\r';
            remaining = &remaining[end + 1..];
            let line = self.line.split();
            events.extend(self.read_line(&line));
        }
        Ok(events)
    }

    fn read_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(remaining) if self.is_at_start => remaining,
            _ => line,
        };
        self.is_at_start = false;
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        self.read_field(name, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn read_field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                if self.has_data {
                    self.data.extend_from_slice(b"\n");
                }
                // It is never a part of JSON, and "MAY [be] ignore[d]" (RFC 8259, section 8.1).
                let data = value.strip_prefix(BYTE_ORDER_MARK).unwrap_or(value);
                self.data.extend_from_slice(data);
                self.has_data = true;
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(value).unwrap_or("");
                self.retry = text.parse().ok().map(Duration::from_millis);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        if let Some(id) = self.id.take() {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let kind = std::mem::take(&mut self.kind);
        let has_data = std::mem::take(&mut self.has_data);
        let data = self.data.split().freeze();
        (has_data && !data.is_empty()).then_some(SseEvent { kind, data })
    }
}

/// Parses a whole stream, for the fuzz target and the tests.
///
/// # Errors
///
/// When an event or a line exceeds `limit`.
pub fn parse(stream: &[u8], limit: usize) -> Result<Vec<SseEvent>, EventTooLarge> {
    Parser::new(limit).feed(stream)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn gives(stream: &str, expected: &[&str]) {
        let events = parse(stream.as_bytes(), 100).unwrap();
        let data: Vec<_> = events
            .iter()
            .map(|event| String::from_utf8_lossy(&event.data))
            .collect();
        assert_eq!(data, expected);
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        gives("data: a\n\ndata: b\r\rdata: c\r\n\r\n", &["a", "b", "c"]);
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_not_data() {
        gives("data:a\ndata:  b\ndata\n\n", &["a\n b\n"]);
    }

    #[test]
    fn comments_unknown_fields_and_a_mark_at_the_start_are_no_data() {
        gives("\u{feff}data: a\n: hi\nfoo: bar\n\n", &["a"]);
        gives(
            "data:\u{feff}a\n\ndata: \u{feff}\u{feff}b\n\n",
            &["a", "\u{feff}b"],
        );
    }

    #[test]
    fn an_event_that_does_not_end_is_none() {
        gives("data: a\n", &[]);
        gives("data\n\n", &[]);
    }

    #[test]
    fn the_id_counts_when_its_event_ends() {
        let mut parser = Parser::new(100);
        parser.feed(b"id: 1\ndata: x\n\nid: 2\n").unwrap();
        assert_eq!(parser.last_id(), Some("1"));
        parser
            .feed(b"\nid: a\0b\n\nretry: 250\nretry: soon\n")
            .unwrap();
        assert_eq!(parser.last_id(), Some("2"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn a_large_event_is_refused_whole_or_in_pieces() {
        assert_eq!(parse(&[b'x'; 200], 100), Err(EventTooLarge { limit: 100 }));
        let lines = "data: 0123456789\n".repeat(20);
        let found = parse(lines.as_bytes(), 100);
        assert_eq!(found, Err(EventTooLarge { limit: 100 }));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(stream in stream(), cut in 0usize..200) {
            let whole = parse(&stream, 4096).unwrap();
            let cut = cut.min(stream.len());
            let mut parser = Parser::new(4096);
            let mut events = parser.feed(&stream[..cut]).unwrap();
            for byte in &stream[cut..] {
                events.extend(parser.feed(&[*byte]).unwrap());
            }
            prop_assert_eq!(events, whole);
        }
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"id: ".to_vec()),
            Just(b"retry: 1".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }
}
