//! The messages of OTLP for traces, as far as they are written and read.
//!
//! Source: opentelemetry-proto 1.10, `collector/trace/v1/trace_service.proto` and what it imports.
//!
//! What is sent is written by hand, each fact as it becomes known. A derived message has all texts in allocations of their
//! own, and measures each attribute once for each message around it: half of what a recorded request costs.

use prost::Message;

use crate::context::TraceContext;

/// The longest text in a span, in bytes.
pub const MAX_TEXT: usize = 512;

/// A span, as the bytes of its message.
#[derive(Debug)]
pub(crate) struct Span {
    message: Writer,
    start: u64,
    is_named: bool,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Number(u16),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl Span {
    /// A span that begins at `start`, in nanoseconds since 1970-01-01 UTC.
    pub(crate) fn new(
        context: TraceContext,
        parent: Option<TraceContext>,
        kind: u8,
        start: u64,
    ) -> Self {
        let mut message = Writer(Vec::with_capacity(640));
        message.bytes(1, &context.trace());
        message.bytes(2, &context.span());
        if let Some(parent) = parent {
            message.bytes(4, &parent.span());
        }
        message.number(6, kind.into());
        message.fixed64(7, start);
        message.varint(16 << 3 | 5);
        message.0.extend(SAMPLED.to_le_bytes());
        Self {
            message,
            start,
            is_named: false,
        }
    }

    /// What vendors added, unless it is longer than programs must pass on (W3C Trace Context, section 3.3.1.5).
    pub(crate) fn trace_state(&mut self, state: Option<&str>) {
        if let Some(state) = state.filter(|text| (1..=MAX_TEXT).contains(&text.len())) {
            self.message.bytes(3, state.as_bytes());
        }
    }

    /// Another span that the request belongs to.
    pub(crate) fn link(&mut self, link: TraceContext) {
        let trace = link.trace();
        let span = link.span();
        self.message
            .begin(13, bytes_len(trace.len()) + bytes_len(span.len()));
        self.message.bytes(1, &trace);
        self.message.bytes(2, &span);
    }

    /// The method and its tool or prompt, of which at most [`MAX_TEXT`] bytes are written.
    pub(crate) fn name(&mut self, method: &str, target: Option<&str>) {
        let short = target.map(cut);
        let length = method.len() + short.map_or(0, |short| 1 + short.len());
        self.message.begin(5, length);
        self.message.0.extend_from_slice(method.as_bytes());
        if let Some(target) = short {
            self.message.0.push(b' ');
            self.message.0.extend_from_slice(target.as_bytes());
        }
        self.is_named = true;
    }

    /// An attribute, with at most [`MAX_TEXT`] bytes of a text. A span must not have two of one key.
    pub(crate) fn attribute<'a>(&mut self, key: &str, value: impl Into<Value<'a>>) {
        let value = match value.into() {
            Value::Text(text) => Value::Text(cut(text)),
            number @ Value::Number(_) => number,
        };
        self.message.attribute(ATTRIBUTES, key, value);
    }

    /// The span, which ends now, is that of a failure.
    pub(crate) fn error(&mut self) {
        self.message.begin(15, 2);
        self.message.number(3, ERROR);
    }

    /// The message of a span that ends at `end`, or when it began if the clock was set back meanwhile. Without another name
    /// it has that of its method.
    pub(crate) fn into_bytes(mut self, end: u64, method: &str) -> Vec<u8> {
        if !self.is_named {
            self.name(method, None);
        }
        self.message.fixed64(8, end.max(self.start));
        self.message.0
    }
}

/// At most [`MAX_TEXT`] bytes of a text.
fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_TEXT);
    text.get(..end).unwrap_or_default()
}

/// What all spans of this program have around them.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// Of `ResourceSpans`.
    resource: Vec<u8>,
    /// Of `ScopeSpans`.
    scope: Vec<u8>,
}

impl Envelope {
    /// `resource` are the attributes of the program.
    pub(crate) fn new(resource: &[(&str, &str)], scope: &str, version: &str) -> Self {
        let mut attributes = Writer::default();
        for (key, text) in resource {
            attributes.attribute(1, key, Value::Text(text));
        }
        let mut named = Writer::default();
        named.bytes(1, scope.as_bytes());
        named.bytes(2, version.as_bytes());
        let [mut resource, mut scope] = [Writer::default(), Writer::default()];
        resource.bytes(1, &attributes.0);
        scope.bytes(1, &named.0);
        Self {
            resource: resource.0,
            scope: scope.0,
        }
    }

    /// The request to export `spans`, which [`append`] wrote.
    pub(crate) fn request(&self, spans: &[u8]) -> Vec<u8> {
        let inner = self.scope.len() + spans.len();
        let outer = self.resource.len() + bytes_len(inner);
        let mut writer = Writer(Vec::with_capacity(bytes_len(outer)));
        writer.begin(1, outer);
        writer.0.extend_from_slice(&self.resource);
        writer.begin(2, inner);
        writer.0.extend_from_slice(&self.scope);
        writer.0.extend_from_slice(spans);
        writer.0
    }
}

/// Appends the message of a span to others.
pub(crate) fn append(spans: &mut Vec<u8>, span: &[u8]) {
    let mut writer = Writer(std::mem::take(spans));
    writer.bytes(2, span);
    *spans = writer.0;
}

/// Writes the fields of a message.
///
/// Source: Protocol Buffers, "Encoding".
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// The beginning of a field of this length.
    fn begin(&mut self, field: u64, length: usize) {
        self.varint(field << 3 | 2);
        self.varint(length as u64);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.begin(field, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(number.to_le_bytes());
    }

    /// A `KeyValue` with an `AnyValue` in it.
    fn attribute(&mut self, field: u64, key: &str, value: Value<'_>) {
        let length = match value {
            Value::Text(text) => bytes_len(text.len()),
            Value::Number(number) => 1 + varint_len(number.into()),
        };
        self.begin(field, bytes_len(key.len()) + bytes_len(length));
        self.bytes(1, key.as_bytes());
        self.begin(2, length);
        match value {
            Value::Text(text) => self.bytes(1, text.as_bytes()),
            Value::Number(number) => self.number(3, number.into()),
        }
    }
}

/// The length of a field with so many bytes, with a number below 16.
const fn bytes_len(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

/// How long a number is as a varint: seven bits in each byte.
const fn varint_len(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// The response of a collector.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_spans: i64,
}

/// `SPAN_KIND_SERVER`.
pub(crate) const SERVER: u8 = 2;
/// `SPAN_KIND_CLIENT`.
pub(crate) const CLIENT: u8 = 3;
/// The field of a span with an attribute.
const ATTRIBUTES: u64 = 9;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;
/// The flag of a span that was sampled.
const SAMPLED: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct DerivedSpan {
        #[prost(bytes = "vec", tag = "1")]
        trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        span_id: Vec<u8>,
        #[prost(string, tag = "3")]
        trace_state: String,
        #[prost(bytes = "vec", tag = "4")]
        parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        name: String,
        #[prost(int32, tag = "6")]
        kind: i32,
        #[prost(fixed64, tag = "7")]
        start: u64,
        #[prost(fixed64, tag = "8")]
        end: u64,
        #[prost(message, repeated, tag = "9")]
        attributes: Vec<KeyValue>,
        #[prost(message, repeated, tag = "13")]
        links: Vec<DerivedLink>,
        #[prost(message, optional, tag = "15")]
        status: Option<DerivedStatus>,
        #[prost(fixed32, tag = "16")]
        flags: u32,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedLink {
        #[prost(bytes = "vec", tag = "1")]
        trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        span_id: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedStatus {
        #[prost(int32, tag = "3")]
        code: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedRequest {
        #[prost(message, repeated, tag = "1")]
        resource_spans: Vec<DerivedResourceSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedResourceSpans {
        #[prost(message, optional, tag = "1")]
        resource: Option<DerivedResource>,
        #[prost(message, repeated, tag = "2")]
        scope_spans: Vec<DerivedScopeSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedResource {
        #[prost(message, repeated, tag = "1")]
        attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedScopeSpans {
        #[prost(message, optional, tag = "1")]
        scope: Option<DerivedScope>,
        #[prost(message, repeated, tag = "2")]
        spans: Vec<DerivedSpan>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct DerivedScope {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        version: String,
    }

    #[derive(Clone, PartialEq, Message)]
    struct KeyValue {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(message, optional, tag = "2")]
        value: Option<AnyValue>,
    }

    /// One of the two.
    #[derive(Clone, PartialEq, Message)]
    struct AnyValue {
        #[prost(string, optional, tag = "1")]
        text: Option<String>,
        #[prost(int64, optional, tag = "3")]
        number: Option<i64>,
    }

    fn text(key: &str, text: &str) -> KeyValue {
        let value = AnyValue {
            text: Some(text.to_owned()),
            number: None,
        };
        let (key, value) = (key.to_owned(), Some(value));
        KeyValue { key, value }
    }

    fn number(key: &str, number: i64) -> KeyValue {
        let value = AnyValue {
            text: None,
            number: Some(number),
        };
        let (key, value) = (key.to_owned(), Some(value));
        KeyValue { key, value }
    }

    fn context(byte: u8) -> TraceContext {
        TraceContext::new([byte; 16], [byte; 8], true).unwrap()
    }

    /// A request to export these spans, as any other program reads it.
    fn exported(spans: &[&[u8]]) -> Vec<DerivedSpan> {
        let mut appended = Vec::new();
        spans.iter().for_each(|span| append(&mut appended, span));
        let resource = [("service.name", "vary"), ("service.version", "1.2")];
        let request = Envelope::new(&resource, "mcp-vary", "1.2").request(&appended);
        let mut request = DerivedRequest::decode(&*request).unwrap();
        let of_resource = &mut request.resource_spans[0];
        let attributes = vec![text("service.name", "vary"), text("service.version", "1.2")];
        assert_eq!(of_resource.resource, Some(DerivedResource { attributes }));
        let of_scope = &mut of_resource.scope_spans[0];
        let scope = of_scope.scope.take().unwrap();
        assert_eq!((&*scope.name, &*scope.version), ("mcp-vary", "1.2"));
        std::mem::take(&mut of_scope.spans)
    }

    #[test]
    fn a_span_is_the_message_that_is_derived_from_its_fields() {
        let plain = Span::new(context(1), None, SERVER, 1 << 60);
        let long = "a".repeat(300);
        let mut full = Span::new(context(1), Some(context(2)), CLIENT, 5);
        full.trace_state(Some("a=1"));
        full.link(context(3));
        full.attribute("a", "b");
        full.attribute("long", &*long);
        full.attribute("edge", &*"c".repeat(124));
        full.attribute("port", Value::Number(127));
        full.attribute("last port", Value::Number(u16::MAX));
        full.name("tools/call", Some("read"));
        full.error();
        let spans = [
            plain.into_bytes(7, "tools/list"),
            full.into_bytes(6, "tools/call"),
        ];
        let base = DerivedSpan {
            trace_id: vec![1; 16],
            span_id: vec![1; 8],
            flags: 1,
            ..DerivedSpan::default()
        };
        let expected = [
            DerivedSpan {
                name: "tools/list".to_owned(),
                kind: 2,
                start: 1 << 60,
                // The clock was set back.
                end: 1 << 60,
                ..base.clone()
            },
            DerivedSpan {
                name: "tools/call read".to_owned(),
                kind: 3,
                start: 5,
                end: 6,
                parent_span_id: vec![2; 8],
                trace_state: "a=1".to_owned(),
                links: vec![DerivedLink {
                    trace_id: vec![3; 16],
                    span_id: vec![3; 8],
                }],
                attributes: vec![
                    text("a", "b"),
                    text("long", &long),
                    text("edge", &"c".repeat(124)),
                    number("port", 127),
                    number("last port", u16::MAX.into()),
                ],
                status: Some(DerivedStatus { code: 2 }),
                ..base
            },
        ];
        assert_eq!(exported(&spans.each_ref().map(Vec::as_slice)), expected);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(300) + "x";
        let mut span = Span::new(context(1), None, SERVER, 1);
        span.attribute("text", &*long);
        span.trace_state(Some(&long));
        span.name("tools/call", Some(&long));
        let [span] = exported(&[&span.into_bytes(2, "tools/call")])
            .try_into()
            .unwrap();
        let cut = "ä".repeat(256);
        assert_eq!(span.attributes, [text("text", &cut)]);
        assert_eq!(span.trace_state, "", "half of it would mean something else");
        assert_eq!(span.name, format!("tools/call {cut}"));
    }
}
