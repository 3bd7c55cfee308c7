//! Errors of the extensions as rmcp errors.

use mcp_vary::error::{Era, Error, Identifier, concerns_identifier};
use mcp_vary::variant::VariantId;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

pub(super) fn to_error_data(error: &Error) -> ErrorData {
    let rpc = error.to_error_object();
    // The codes of the extensions fit.
    let code = i32::try_from(rpc.code).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, rpc.message, rpc.data)
}

/// The handler returned the result of another method.
pub(super) fn mismatched_result() -> ErrorData {
    ErrorData::internal_error("the handler returned the result of another method", None)
}

/// Adds the active variant to a handler's error about an identifier.
pub(super) fn with_active_variant(mut error: ErrorData, active: Option<&VariantId>) -> ErrorData {
    let Some(active) = active else {
        return error;
    };
    if !concerns_identifier(error.code.0.into()) {
        return error;
    }
    let data = error.data.get_or_insert_with(|| json!({}));
    if let Value::Object(data) = data {
        data.entry("activeVariant").or_insert_with(|| json!(active));
    }
    error
}

/// The error for an identifier that does not exist in the variant `active`.
pub(super) fn not_found(what: Identifier, active: Option<&VariantId>, era: Era) -> ErrorData {
    to_error_data(&Error::NotFound {
        identifier: what,
        active: active.cloned(),
        era,
    })
}
