//! The members of a line, in their order.

use std::net::IpAddr;

use serde::Serialize;

use crate::record::{Era, ModelRanking, Outcome, Target, Transport, VariantChoice};
use crate::text::Text;

/// A line as it is serialised. What is `None` is left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WireRecord<'a> {
    pub(crate) v: u32,
    pub(crate) run: Option<&'a Text>,
    pub(crate) seq: u64,
    pub(crate) time: &'a str,
    pub(crate) event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
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
    pub(crate) era: Option<Era>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<Transport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<&'a Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<&'a VariantChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ranking: Option<&'a ModelRanking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<WireArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_ms: Option<f64>,
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
    pub(crate) name: Option<&'a Text>,
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
pub(crate) struct WireArguments {
    pub(crate) bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}
