//! Errors of a request in a variant, sorted by the party at fault.

use mcp_vary::variant::VariantId;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use rmcp::service::ServiceError;

/// Why a request in a variant has no result.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::{Error, TaskContext, VariantClient};
///
/// async fn after(error: Error, client: &VariantClient) -> Result<VariantClient, Error> {
///     match error {
///         // The server removed the variant. List the tools of the new one before you call any.
///         Error::VariantRejected { .. } => {
///             client.client().refresh_offers().await?;
///             Ok(client.client().choose(&TaskContext::new()))
///         }
///         error => Err(error),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A mistake of the caller: the server does not offer the variant, so no request was sent.
    #[error("variant `{}` is not offered; choose one of `Client::offers`", .0.as_str().escape_debug())]
    NotOffered(VariantId),
    /// The server offered the variant earlier, and rejects it now: refresh the offers and choose
    /// again.
    #[error("the server rejected the variant `{}`: {}", .variant.as_str().escape_debug(), .error.message.escape_debug())]
    VariantRejected {
        /// The selected variant.
        variant: VariantId,
        /// The server's error.
        error: Box<ErrorData>,
    },
    /// The server does not declare an extension that the client requires.
    #[error("the server does not support the extension `{0}`, which this client requires")]
    MissingExtension(&'static str),
    /// A fault of the server: its list never ends, or repeats a cursor.
    #[error("the server's list does not end; {0} pages of it were read")]
    EndlessList(usize),
    /// Any other error of a request.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl Error {
    /// Converts `error`, the answer to a request that selected `variant`.
    pub(super) fn from_service(error: ServiceError, variant: Option<&VariantId>) -> Self {
        match (error, variant) {
            (ServiceError::McpError(error), Some(variant)) if is_variant_rejection(&error) => {
                Self::VariantRejected {
                    variant: variant.clone(),
                    error: Box::new(error),
                }
            }
            (error, _) => Self::Service(error),
        }
    }
}

/// Whether the server rejected the selector.
///
/// The message is the extension's. A server with another message is recognized by the error's data.
fn is_variant_rejection(error: &ErrorData) -> bool {
    let has = |key| {
        error
            .data
            .as_ref()
            .is_some_and(|data| data.get(key).is_some())
    };
    error.code == ErrorCode::INVALID_PARAMS
        && (error.message == "Invalid server variant"
            || (has("requestedVariant") && !has("cursorVariant")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn refuses(code: i32, message: &'static str, data: &Value, expected: bool) {
        let error = ErrorData::new(ErrorCode(code), message, Some(data.clone()));
        assert_eq!(is_variant_rejection(&error), expected, "{error:?}");
    }

    /// SV-19: only the rejection of a variant is one, whatever else a server says about variants.
    #[test]
    fn a_refusal_is_known_by_its_message_or_its_data() {
        let said = "Invalid server variant";
        let data = json!({"requestedVariant": "a", "availableVariants": ["b"]});
        refuses(-32602, said, &data, true);
        refuses(-32602, said, &json!(null), true);
        refuses(-32602, "no such variant", &data, true);
        refuses(
            -32602,
            "no such variant",
            &json!({"requestedVariant": "a"}),
            true,
        );
        refuses(-32603, said, &data, false);
        let of_a_cursor = json!({"requestedVariant": "a", "cursorVariant": "b"});
        let message = "Cursor invalid for requested variant";
        refuses(-32602, message, &of_a_cursor, false);
        refuses(
            -32602,
            "Unknown tool: x",
            &json!({"activeVariant": "a"}),
            false,
        );
    }
}
