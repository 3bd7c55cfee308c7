//! The messages of OTLP for traces, as far as they are written and read.
//!
//! Source: opentelemetry-proto 1.10, `collector/trace/v1/trace_service.proto` and what it imports. A field of a `oneof` is
//! written like any other, so that a value is one of two fields here.

use prost::Message;

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
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
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

    /// An attribute with a whole number.
    pub(crate) fn number(key: &'static str, value: i64) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(AnyValue {
                text: None,
                number: Some(value),
            }),
        }
    }
}

/// `SPAN_KIND_SERVER`.
pub(crate) const SERVER: i32 = 2;
/// `SPAN_KIND_CLIENT`.
pub(crate) const CLIENT: i32 = 3;
/// `STATUS_CODE_ERROR`.
pub(crate) const ERROR: i32 = 2;
/// The flag of a span that was sampled.
pub(crate) const SAMPLED: u32 = 1;
