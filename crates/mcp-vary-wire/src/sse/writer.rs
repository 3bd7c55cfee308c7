//! Messages as events.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Writes a message as an event; line breaks between its tokens become separate data lines.
pub fn event(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 24);
    write(&mut out, message);
    out.freeze()
}

/// Like [`event`], with an id.
pub fn event_with_id(id: &str, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + id.len() + 29);
    out.put_slice(b"id: ");
    out.put_slice(id.as_bytes());
    out.put_u8(b'\n');
    write(&mut out, message);
    out.freeze()
}

/// The first event of a stream, so that its client can resume before the first message.
///
/// > The server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field in
/// > order to prime the client to reconnect. (MCP 2025-11-25, basic/transports, "Sending Messages to the
/// > Server")
///
/// Clients of earlier revisions would try to parse the empty data as a message.
pub fn priming_event(id: &str) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {RETRY}\ndata: \n\n"))
}

/// Milliseconds that a client waits before it reconnects.
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

/// The first bytes of a stream without an id, so that its client sees it open.
pub const OPENING_COMMENT: &[u8] = b": open\n\n";

/// A comment that keeps a stream open.
pub const KEEP_ALIVE: &[u8] = b": still here\n\n";

/// A comment that keeps a stream open whose events have ids.
///
/// After an empty line, httpx-sse would dispatch an event without data under the last id, which earlier clients take
/// for a message.
pub const KEEP_ALIVE_WITH_IDS: &[u8] = b": still here\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_over_several_lines_is_one_event() {
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
        assert_eq!(event(b"{\n}"), "event: message\ndata: {\ndata: }\n\n");
        let expected = "id: a-1\nevent: message\ndata: {}\n\n";
        assert_eq!(event_with_id("a-1", b"{}"), expected);
    }
}
