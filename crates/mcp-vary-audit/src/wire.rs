//! The members of a line, in their order.

use std::net::IpAddr;

use serde::Serialize;

use crate::text::{LongText, Text};

/// A line as it is serialised. What is `None` is left out.
#[derive(Debug, Serialize)]
pub(crate) struct WireRecord<'a> {
    pub(crate) v: u32,
    pub(crate) run: &'a Text,
    pub(crate) seq: u64,
    pub(crate) time: &'a str,
    pub(crate) event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<WirePrincipal<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<WireClient<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) era: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<WireTarget<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<WireVariant<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ranking: Option<WireRanking<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<WireArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replica: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WirePrincipal<'a> {
    pub(crate) id: &'a Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iss: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<&'a Text>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WireClient<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WireTarget<'a> {
    pub(crate) kind: &'static str,
    pub(crate) name: &'a LongText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_name: Option<&'a LongText>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WireVariant<'a> {
    pub(crate) id: &'a Text,
    pub(crate) reason: &'a Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hints: Option<&'a LongText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<&'a LongText>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WireRanking<'a> {
    pub(crate) model: &'a Text,
    pub(crate) variants: &'a LongText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<&'a LongText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<&'a Text>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WireArguments {
    pub(crate) bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}
