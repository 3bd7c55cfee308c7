//! The messages of OTLP for traces, as far as they are written and read.
//!
//! Source: opentelemetry-proto 1.10, `collector/trace/v1/trace_service.proto` and what it imports. A field of a `oneof` is
//! written like any other, so that a value is one of two fields here.
//!
//! Spans are written by hand. A derived message has all texts in allocations of their own, and measures each attribute once
//! for each message around it: half of what a recorded request costs.

use std::borrow::Cow;

use prost::Message;

use crate::context::TraceContext;

/// A span.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<TraceContext>,
    pub(crate) link: Option<TraceContext>,
    pub(crate) trace_state: String,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: u8,
    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) is_error: bool,
}

/// The value of an attribute.
#[derive(Debug)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Number(u16),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl Span {
    /// The message.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(512));
        writer.bytes(1, &self.context.trace());
        writer.bytes(2, &self.context.span());
        if !self.trace_state.is_empty() {
            writer.bytes(3, self.trace_state.as_bytes());
        }
        if let Some(parent) = self.parent {
            writer.bytes(4, &parent.span());
        }
        writer.bytes(5, self.name.as_bytes());
        writer.number(6, self.kind.into());
        writer.fixed64(7, self.start);
        writer.fixed64(8, self.end);
        for (key, value) in &self.attributes {
            writer.attribute(key, value);
        }
        if let Some(link) = self.link {
            let (trace, span) = (link.trace(), link.span());
            writer.begin(13, bytes_len(trace.len()) + bytes_len(span.len()));
            writer.bytes(1, &trace);
            writer.bytes(2, &span);
        }
        if self.is_error {
            writer.begin(15, 2);
            writer.number(3, ERROR);
        }
        writer.varint(16 << 3 | 5);
        writer.0.extend(SAMPLED.to_le_bytes());
        writer.0
    }
}

/// Writes the fields of a message.
///
/// Source: Protocol Buffers, "Encoding".
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
    fn attribute(&mut self, key: &str, value: &Value) {
        let length = match value {
            Value::Text(text) => bytes_len(text.len()),
            Value::Number(number) => 1 + varint_len((*number).into()),
        };
        self.begin(9, bytes_len(key.len()) + bytes_len(length));
        self.bytes(1, key.as_bytes());
        self.begin(2, length);
        match value {
            Value::Text(text) => self.bytes(1, text.as_bytes()),
            Value::Number(number) => self.number(3, (*number).into()),
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

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<Scope>,
    /// Messages that are written already.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) spans: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

/// One of the two.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub(crate) text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) number: Option<i64>,
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

impl KeyValue {
    /// An attribute with a text.
    pub(crate) fn text(key: &'static str, value: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(AnyValue {
                text: Some(value.into()),
                number: None,
            }),
        }
    }
}

/// `SPAN_KIND_SERVER`.
pub(crate) const SERVER: u8 = 2;
/// `SPAN_KIND_CLIENT`.
pub(crate) const CLIENT: u8 = 3;
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

    fn derived(key: &str, text: Option<&str>, number: Option<i64>) -> KeyValue {
        let text = text.map(str::to_owned);
        KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { text, number }),
        }
    }

    #[test]
    fn a_span_is_the_message_that_is_derived_from_its_fields() {
        let context = |byte: u8| TraceContext::new([byte; 16], [byte; 8], true).unwrap();
        let long = "a".repeat(300);
        let mut span = Span {
            context: context(1),
            parent: None,
            link: None,
            trace_state: String::new(),
            name: "tools/list".into(),
            kind: SERVER,
            start: 1 << 60,
            end: 7,
            attributes: Vec::new(),
            is_error: false,
        };
        let mut expected = DerivedSpan {
            trace_id: vec![1; 16],
            span_id: vec![1; 8],
            name: "tools/list".to_owned(),
            kind: 2,
            start: 1 << 60,
            end: 7,
            flags: 1,
            ..DerivedSpan::default()
        };
        assert_eq!(span.to_bytes(), expected.encode_to_vec());
        span.parent = Some(context(2));
        span.link = Some(context(3));
        span.trace_state = "a=1".to_owned();
        span.attributes = vec![
            ("a", "b".into()),
            ("long", long.clone().into()),
            ("edge", "c".repeat(124).into()),
            ("port", Value::Number(127)),
            ("port", Value::Number(u16::MAX)),
        ];
        span.is_error = true;
        expected.parent_span_id = vec![2; 8];
        expected.links = vec![DerivedLink {
            trace_id: vec![3; 16],
            span_id: vec![3; 8],
        }];
        expected.trace_state = "a=1".to_owned();
        expected.attributes = vec![
            derived("a", Some("b"), None),
            derived("long", Some(&long), None),
            derived("edge", Some(&"c".repeat(124)), None),
            derived("port", None, Some(127)),
            derived("port", None, Some(u16::MAX.into())),
        ];
        expected.status = Some(DerivedStatus { code: 2 });
        assert_eq!(span.to_bytes(), expected.encode_to_vec());
    }
}
