//! The position of a span in a trace.

use std::fmt;

/// A trace, a span in it, and whether that span was recorded.
///
/// Source: W3C Trace Context, section 3.2 (`version-traceid-parentid-flags`).
///
/// # Properties
///
/// Neither id is zero.
///
/// # Examples
///
/// ```
/// use mcp_vary_traces::TraceContext;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
/// let context = TraceContext::parse(text).unwrap();
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), text);
/// // Later versions may have further parts. What is sent is always of this version.
/// let later = TraceContext::parse("cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00-more").unwrap();
/// assert_eq!(later.to_string(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
}

impl TraceContext {
    /// The position with these ids; `None` if one of them is zero.
    pub fn new(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Option<Self> {
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self {
            trace,
            span,
            is_sampled,
        })
    }

    /// Reads a value of `traceparent`; `None` if it is malformed.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let (version, remaining) = traceparent.split_at_checked(2)?;
        let (ids, more) = remaining.split_at_checked(LENGTH - 2)?;
        let has_more = !more.is_empty();
        let is_version = version.bytes().all(is_hex) && version != "ff";
        let is_later = version != "00" && more.starts_with('-');
        if !is_version || (has_more && !is_later) {
            return None;
        }
        let mut parts = ids.strip_prefix('-')?.split('-');
        let trace = read_hex::<16>(parts.next()?)?;
        let span = read_hex::<8>(parts.next()?)?;
        let [flags] = read_hex::<1>(parts.next()?)?;
        Self::new(trace, span, flags & 1 == 1)
    }

    /// The id of the trace.
    pub const fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The id of the span.
    pub const fn span(&self) -> [u8; 8] {
        self.span
    }

    /// Whether the span was recorded.
    pub const fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

/// The value of `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(LENGTH);
        text.push_str("00-");
        push_hex(&mut text, &self.trace);
        text.push('-');
        push_hex(&mut text, &self.span);
        text.push_str(if self.is_sampled { "-01" } else { "-00" });
        f.write_str(&text)
    }
}

/// Appends two digits for each byte. Each recorded request has some, and formatted numbers take several times as long.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let digits = [byte >> 4, byte & 15].into_iter();
        text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
    }
}

/// The length of `traceparent` in the version 00.
const LENGTH: usize = 55;

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_malformed_is_not_a_context() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        for bad in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-"),
            format!("00-{trace}-{span}-1"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("0G-{trace}-{span}-01"),
            format!("cc-{trace}-{span}-01more"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-+{}-{span}-01", &trace[1..]),
            format!("00_{trace}-{span}-01"),
            format!("0ü-{trace}-{span}-01"),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn only_the_first_flag_is_read_and_written() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        for (flags, sent) in [("00", "00"), ("01", "01"), ("02", "00"), ("ff", "01")] {
            let context = TraceContext::parse(&format!("00-{trace}-{span}-{flags}")).unwrap();
            assert_eq!(context.to_string(), format!("00-{trace}-{span}-{sent}"));
        }
    }
}
