//! Server-sent events, and what their ids say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut as _, Bytes, BytesMut};

/// What the id of an event says: `<stream>-<number>` and, on the stream of one request, `-<its id>`.
///
/// The last event of a stream has `end` for its number.
///
/// # Properties
///
/// No two streams of a session have the same number, whichever replica or run of the gateway began them.
///
/// > Event IDs SHOULD encode sufficient information to identify the originating stream. (MCP 2025-11-25,
/// > basic/transports, "Resumability and Redelivery")
///
/// The id of the request is there so that a client whose answer is no longer kept can be told so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventId {
    /// The number of the stream.
    pub stream: u64,
    /// The position in the stream.
    pub at: At,
    /// JSON text.
    pub request: Option<String>,
}

/// Where in its stream an event stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum At {
    /// The number of the event, from 0.
    Number(u64),
    /// Nothing follows.
    End,
}

/// Ids of requests that are longer are not repeated in those of events.
const LONGEST: usize = 256;

impl EventId {
    /// The id that a client sent back; `None` when it is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let stream = u64::from_str_radix(parts.next()?, 16).ok()?;
        let at = match parts.next()? {
            "end" => At::End,
            number => At::Number(number.parse().ok()?),
        };
        let request = match parts.next() {
            Some(encoded) if encoded.len() > LONGEST * 2 => return None,
            Some(encoded) => Some(request_id(encoded)?),
            None => None,
        };
        Some(Self {
            stream,
            at,
            request,
        })
    }

    /// The id as it was sent.
    pub fn to_text(&self) -> String {
        let ending = Self::ending(self.request.as_deref());
        match self.at {
            At::Number(number) => format!("{:x}-{number}{ending}", self.stream),
            At::End => format!("{:x}-end{ending}", self.stream),
        }
    }

    /// What an id ends with on the stream of `request`.
    pub fn ending(request: Option<&str>) -> String {
        let short = request.filter(|id| id.len() <= LONGEST);
        short.map_or_else(String::new, |id| format!("-{}", URL_SAFE_NO_PAD.encode(id)))
    }
}

/// A string or a number, as JSON-RPC has for ids.
fn request_id(encoded: &str) -> Option<String> {
    let id = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    let value: serde_json::Value = serde_json::from_str(&id).ok()?;
    (value.is_string() || value.is_number()).then_some(id)
}

/// One message as an event; line breaks between its tokens become lines of data.
pub fn event(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 24);
    write(&mut out, message);
    out.freeze()
}

/// The same with an id.
pub fn event_with_id(id: &str, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + id.len() + 29);
    out.put_slice(b"id: ");
    out.put_slice(id.as_bytes());
    out.put_u8(b'\n');
    write(&mut out, message);
    out.freeze()
}

/// What a stream begins with, so that its client can come back to it before anything was said.
///
/// > The server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field in
/// > order to prime the client to reconnect. (MCP 2025-11-25, basic/transports, "Sending Messages to the
/// > Server")
///
/// Clients of earlier revisions take the empty data for a message and cannot read it.
pub fn priming(id: &str) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {RETRY}\ndata: \n\n"))
}

/// Milliseconds that a client waits before it comes back.
const RETRY: u32 = 1_000;

fn write(out: &mut BytesMut, message: &[u8]) {
    out.put_slice(b"event: message\n");
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.put_slice(b"data: ");
        out.put_slice(line);
        out.put_u8(b'\n');
    }
    out.put_u8(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_over_several_lines_is_one_event() {
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
        assert_eq!(event(b"{\n}"), "event: message\ndata: {\ndata: }\n\n");
        assert_eq!(
            event_with_id("a-1", b"{}"),
            "id: a-1\nevent: message\ndata: {}\n\n"
        );
    }

    #[track_caller]
    fn says(text: &str, at: At, request: Option<&str>) {
        let request = request.map(str::to_owned);
        let stream = 0x1f;
        let expected = EventId {
            stream,
            at,
            request,
        };
        assert_eq!(expected.to_text(), text);
        assert_eq!(EventId::parse(text), Some(expected), "{text}");
    }

    #[test]
    fn an_id_says_which_stream_where_and_whose() {
        says("1f-0", At::Number(0), None);
        says("1f-end", At::End, None);
        says("1f-12-Nw", At::Number(12), Some("7"));
        let ending = EventId::ending(Some(r#""é-""#));
        says(&format!("1f-end{ending}"), At::End, Some(r#""é-""#));
        assert_eq!(EventId::ending(Some(&"1".repeat(LONGEST + 1))), "");
    }

    #[test]
    fn what_is_no_id_of_ours_is_none() {
        for text in [
            "",
            "-",
            "1f",
            "1f-",
            "x-1",
            "1f-x",
            "1f-1-",
            "1f-1-!",
            "1f-1-e30",
            "1f-1-bnVsbA",
        ] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
        let long = format!("1f-1-{}", "MTEx".repeat(LONGEST));
        assert_eq!(EventId::parse(&long), None);
    }
}
