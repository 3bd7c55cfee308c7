//! The ids of events that the gateway sends.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_vary::json::to_value;

/// The id of an event: `<stream>-<number>` and, on the stream of one request, `-<request id>`.
///
/// The last event of a stream has `end` as its number.
///
/// # Properties
///
/// No two streams of a session have the same number, on any replica and in any run of the gateway.
///
/// > Event IDs SHOULD encode sufficient information to identify the originating stream. (MCP 2025-11-25,
/// > basic/transports, "Resumability and Redelivery")
///
/// The request id allows the gateway to report that a response is no longer stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventId {
    /// The number of the stream.
    pub stream: u64,
    /// The position in the stream.
    pub position: EventPosition,
    /// JSON text.
    pub request: Option<String>,
}

/// The position of an event in its stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventPosition {
    /// The number of the event, from 0.
    Number(u64),
    /// The end of the stream.
    End,
}

/// Longer request ids are omitted from event ids.
const MAX_REQUEST_ID: usize = 256;

impl EventId {
    /// Parses the id that a client sent back; `None` if the gateway did not create it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let stream = u64::from_str_radix(parts.next()?, 16).ok()?;
        let at = match parts.next()? {
            "end" => EventPosition::End,
            number => EventPosition::Number(number.parse().ok()?),
        };
        let request = match parts.next() {
            Some(encoded) if encoded.len() > MAX_REQUEST_ID * 2 => return None,
            Some(encoded) => Some(request_id(encoded)?),
            None => None,
        };
        Some(Self {
            stream,
            position: at,
            request,
        })
    }

    /// The id as it was sent.
    pub fn to_text(&self) -> String {
        let ending = Self::suffix(self.request.as_deref());
        match self.position {
            EventPosition::Number(number) => format!("{:x}-{number}{ending}", self.stream),
            EventPosition::End => format!("{:x}-end{ending}", self.stream),
        }
    }

    /// The suffix of event ids on the stream of `request`.
    pub fn suffix(request: Option<&str>) -> String {
        let short = request.filter(|id| id.len() <= MAX_REQUEST_ID);
        short.map_or_else(String::new, |id| format!("-{}", URL_SAFE_NO_PAD.encode(id)))
    }
}

/// Decodes a request id, which must be a string or a number.
fn request_id(encoded: &str) -> Option<String> {
    let id = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    let value = to_value(&id).ok()?;
    (value.is_string() || value.is_number()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(text: &str, at: EventPosition, request: Option<&str>) {
        let request = request.map(str::to_owned);
        let stream = 0x1f;
        let expected = EventId {
            stream,
            position: at,
            request,
        };
        assert_eq!(expected.to_text(), text);
        assert_eq!(EventId::parse(text), Some(expected), "{text}");
    }

    #[test]
    fn an_id_says_which_stream_where_and_whose() {
        says("1f-0", EventPosition::Number(0), None);
        says("1f-end", EventPosition::End, None);
        says("1f-12-Nw", EventPosition::Number(12), Some("7"));
        let ending = EventId::suffix(Some(r#""é-""#));
        let text = format!("1f-end{ending}");
        says(&text, EventPosition::End, Some(r#""é-""#));
        assert_eq!(EventId::suffix(Some(&"1".repeat(MAX_REQUEST_ID + 1))), "");
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
            // An object whose only key is `$serde_json::private::RawValue`.
            "1f-1-eyIkc2VyZGVfanNvbjo6cHJpdmF0ZTo6UmF3VmFsdWUiOiI3In0",
        ] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
        let long = format!("1f-1-{}", "MTEx".repeat(MAX_REQUEST_ID));
        assert_eq!(EventId::parse(&long), None);
    }
}
