//! What carries a context between programs: `params._meta`, or HTTP headers.

use http::{HeaderMap, HeaderName};

use crate::context::TraceContext;

/// The three texts of a context, as they were received or are to be sent.
///
/// > The following keys are reserved for trace context: traceparent, tracestate, baggage
/// > (MCP 2026-07-28, basic/index, "`_meta`"; SEP-414)
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Carrier {
    /// The position in the trace.
    pub traceparent: Option<String>,
    /// What vendors add to it.
    pub tracestate: Option<String>,
    /// What callers tell all programs of the trace.
    pub baggage: Option<String>,
}

/// The header with the position in the trace.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

impl Carrier {
    /// The names of the texts in `_meta` and as headers.
    pub const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

    /// Reads the texts with a function that returns the one with a name. A text that is too long for a header is left out.
    pub fn read(mut get: impl FnMut(&str) -> Option<String>) -> Self {
        let read = |name| get(name).filter(|text| text.len() <= LONGEST);
        let [traceparent, tracestate, baggage] = Self::KEYS.map(read);
        Self {
            traceparent,
            tracestate,
            baggage,
        }
    }

    /// Reads the texts from HTTP headers, those that are text.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        // Most requests have none, and need no further look.
        if !headers.contains_key(TRACEPARENT) {
            return Self::default();
        }
        Self::read(|name| {
            // Several headers are one list (RFC 9110, section 5.3).
            let values = headers.get_all(name).iter();
            let texts: Option<Vec<&str>> = values.map(|value| value.to_str().ok()).collect();
            texts
                .map(|texts| texts.join(","))
                .filter(|list| !list.is_empty())
        })
    }

    /// The position in the trace, if there is a valid one.
    pub fn context(&self) -> Option<TraceContext> {
        TraceContext::parse(self.traceparent.as_deref()?)
    }

    /// The names and the texts.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let headers = [&self.traceparent, &self.tracestate, &self.baggage];
        let texts = headers.map(|text| text.as_deref());
        std::iter::zip(Self::KEYS, texts)
    }
}

/// The most bytes of a text: those of a baggage (W3C Baggage, section 3.3.2).
const LONGEST: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_headers_are_one_list_and_two_parents_are_none() {
        let mut headers = HeaderMap::new();
        let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        headers.append("traceparent", parent.parse().unwrap());
        headers.append("tracestate", "a=1".parse().unwrap());
        headers.append("tracestate", "b=2".parse().unwrap());
        let carrier = Carrier::of_headers(&headers);
        assert_eq!(carrier.tracestate.as_deref(), Some("a=1,b=2"));
        assert_eq!(carrier.context().unwrap().to_string(), parent);
        headers.append("traceparent", parent.parse().unwrap());
        assert_eq!(Carrier::of_headers(&headers).context(), None);
    }

    #[test]
    fn a_text_that_no_header_should_have_is_left_out() {
        let read = |length| Carrier::read(|_| Some("x".repeat(length)));
        assert_eq!(read(8193), Carrier::default());
        assert_eq!(read(8192).baggage.map(|text| text.len()), Some(8192));
    }
}
