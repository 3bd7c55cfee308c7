//! Why a request is refused.

use serde_json::{Map, Value};

pub(crate) type JsonObject = Map<String, Value>;

/// Why a request is refused: a JSON-RPC error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Refusal {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

pub(crate) const INVALID_PARAMS: i64 = -32602;
/// 2026-07-28 has invalid parameters in its place.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
