//! Errors of the protocol, and their only conversion to JSON-RPC.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error_code::{
    HEADER_MISMATCH, INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND,
    TOO_MANY_SWITCHES,
};
use crate::extension::ExtensionId;
use crate::ignored::for_display;
use crate::json::{self, Members};
use crate::variant::VariantId;

/// Characters of a client's input that an error echoes.
pub const MAX_ECHO: usize = 128;

/// Which generation of the protocol a client speaks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "readers must handle a third era")]
pub enum Era {
    /// 2025-11-25 and earlier: `initialize` and sessions.
    Legacy,
    /// 2026-07-28: stateless, capabilities in every request.
    Modern,
}

/// Errors in a client's request.
///
/// # Examples
///
/// ```
/// use mcp_vary::error::Error;
/// use serde_json::json;
///
/// let error = Error::invalid_variant(&json!("unknown-variant"), Some(vec!["compact".parse()?]));
/// assert_eq!(
///     error.to_error_object().to_json(),
///     r#"{"code":-32602,"message":"Invalid server variant","data":{"requestedVariant":"unknown-variant","availableVariants":["compact"]}}"#,
/// );
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The selector names no variant that this client sees.
    #[error("the server variant {} is invalid", for_display(&requested.to_string()))]
    InvalidServerVariant {
        /// The requested selector, truncated: use [`Error::invalid_variant`].
        requested: Value,
        /// The variants that the client sees, unless it must not enumerate them.
        available: Option<Vec<VariantId>>,
    },
    /// The request has a selector, but the server has no variants.
    #[error("server variants are not supported")]
    VariantsNotSupported,
    /// The header selects another variant than `_meta`, and the server is strict about it.
    #[error("the header selects the server variant {}, `_meta` {}", for_display(header), for_display(&requested.to_string()))]
    HeaderVariantMismatch {
        /// The value of the header, truncated: use [`Error::header_variant_mismatch`].
        header: String,
        /// The selector in `_meta`, truncated.
        requested: Value,
        /// Decides the code.
        era: Era,
    },
    /// The client changes its variant more often than the server allows.
    #[error("the variant changes too often; it stays `{active}` for {retry_after} s")]
    TooManySwitches {
        /// The variant that stays active.
        active: VariantId,
        /// Seconds until it may change again.
        retry_after: u64,
    },
    /// The cursor was created for another variant, which the client sees.
    #[error("the cursor of variant `{cursor}` is invalid for variant `{requested}`")]
    CursorVariantMismatch {
        /// The variant of the cursor.
        cursor: VariantId,
        /// The variant of the request.
        requested: VariantId,
    },
    /// The cursor is malformed or forged.
    #[error("the cursor is invalid")]
    InvalidCursor {
        /// The variant of the request.
        active: VariantId,
    },
    /// The identifier does not exist in the variant of the request.
    #[error("{identifier} does not exist")]
    NotFound {
        /// The requested identifier.
        identifier: Identifier,
        /// The variant of the request; `None` if the server has no variants.
        active: Option<VariantId>,
        /// Decides the code for resources.
        era: Era,
    },
    /// The client lacks a required extension.
    #[error("the extension `{id}` is required")]
    RequiredExtension {
        /// The extension.
        id: ExtensionId,
        /// Decides the code.
        era: Era,
    },
}

/// An identifier in a request.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Identifier {
    /// The name of a tool.
    #[error("the tool `{}`", for_display(.0))]
    Tool(String),
    /// The name of a prompt.
    #[error("the prompt `{}`", for_display(.0))]
    Prompt(String),
    /// The URI of a resource to read.
    #[error("the resource `{}`", for_display(.0))]
    Resource(String),
    /// The URI of a resource to subscribe to.
    #[error("the resource `{}`", for_display(.0))]
    SubscribedResource(String),
}

/// An error as JSON-RPC carries it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The data.
    pub data: Option<Value>,
}

impl ErrorObject {
    /// The `error` member of a response, as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error.to_string()
    }
}

impl Error {
    /// The error for the selector `requested`, which may be any JSON.
    ///
    /// `requested` is echoed as it is if its JSON has at most [`MAX_ECHO`] characters, else as a truncated string.
    /// `available` lists the variants that the client sees, best first, or is `None` if the client must not
    /// enumerate them. Unknown and hidden variants give the same error.
    #[must_use]
    pub fn invalid_variant(requested: &Value, available: Option<Vec<VariantId>>) -> Self {
        Self::InvalidServerVariant {
            requested: echo(requested),
            available,
        }
    }

    /// The error for a `header` that selects another variant than `requested` in `_meta`.
    #[must_use]
    pub fn header_variant_mismatch(header: &str, requested: &Value, era: Era) -> Self {
        Self::HeaderVariantMismatch {
            header: truncated(header),
            requested: echo(requested),
            era,
        }
    }

    /// The JSON-RPC code.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::InvalidServerVariant { .. }
            | Self::VariantsNotSupported
            | Self::CursorVariantMismatch { .. }
            | Self::InvalidCursor { .. } => INVALID_PARAMS,
            Self::TooManySwitches { .. } => TOO_MANY_SWITCHES,
            Self::HeaderVariantMismatch { era, .. } => match era {
                Era::Legacy => INVALID_PARAMS,
                Era::Modern => HEADER_MISMATCH,
            },
            Self::NotFound {
                identifier, era, ..
            } => not_found_code(identifier, *era),
            Self::RequiredExtension { era, .. } => match era {
                Era::Legacy => INVALID_PARAMS,
                Era::Modern => MISSING_CLIENT_CAPABILITY,
            },
        }
    }

    /// Code, message and data for the wire.
    #[must_use]
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject {
            code: self.code(),
            message: self.message(),
            data: self.data(),
        }
    }

    fn message(&self) -> String {
        let message = match self {
            Self::InvalidServerVariant { .. } => "Invalid server variant",
            Self::VariantsNotSupported => "Server variants not supported",
            Self::HeaderVariantMismatch { .. } => HEADER_VARIANT_MISMATCH,
            Self::TooManySwitches { .. } => "Too many switches of the server variant",
            Self::CursorVariantMismatch { .. } => "Cursor invalid for requested variant",
            Self::InvalidCursor { .. } => "Invalid cursor",
            Self::NotFound { identifier, .. } => return not_found_message(identifier),
            Self::RequiredExtension { id, .. } => {
                return format!("Server requires the extension {id}");
            }
        };
        message.to_owned()
    }

    fn data(&self) -> Option<Value> {
        Some(match self {
            Self::InvalidServerVariant {
                requested,
                available,
            } => invalid_variant_data(requested, available.as_deref()),
            Self::VariantsNotSupported => return None,
            Self::HeaderVariantMismatch {
                header, requested, ..
            } => json!({"headerVariant": header, "requestedVariant": requested}),
            Self::TooManySwitches {
                active,
                retry_after,
            } => json!({"activeVariant": active, "retryAfter": retry_after}),
            Self::CursorVariantMismatch { cursor, requested } => {
                json!({"cursorVariant": cursor, "requestedVariant": requested})
            }
            Self::InvalidCursor { active } => json!({"activeVariant": active}),
            Self::NotFound {
                identifier, active, ..
            } => return not_found_data(identifier, active.as_ref()),
            Self::RequiredExtension { id, .. } => {
                json!({"requiredCapabilities": {"extensions": {id.as_str(): {}}}})
            }
        })
    }
}

/// Whether an upstream error with `code` is about an unknown or invalid identifier, so that `activeVariant` helps to
/// understand it.
#[must_use]
pub fn concerns_identifier(code: i64) -> bool {
    matches!(code, INVALID_PARAMS | RESOURCE_NOT_FOUND)
}

/// The `data` of a server's error with the active variant added.
///
/// Data that is not an object, or that already has an `activeVariant`, stays as it is. Everything else arrives as
/// written.
///
/// # Examples
///
/// ```
/// use mcp_vary::error::with_active_variant;
///
/// let compact = "compact".parse()?;
/// assert_eq!(with_active_variant(None, &compact), r#"{"activeVariant":"compact"}"#);
/// assert_eq!(
///     with_active_variant(Some(r#"{"uri": "file:///a", "n": 1.0}"#), &compact),
///     r#"{"uri":"file:///a","n":1.0,"activeVariant":"compact"}"#,
/// );
/// assert_eq!(with_active_variant(Some("[1]"), &compact), "[1]");
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn with_active_variant(data: Option<&str>, active: &VariantId) -> String {
    let Some(data) = data else {
        return json!({"activeVariant": active}).to_string();
    };
    match Members::parse(data) {
        Ok(mut members) if !members.contains("activeVariant") => {
            members.set("activeVariant", json::string(active.as_str()));
            members.to_json()
        }
        _ => data.to_owned(),
    }
}

/// `requested` as it is if its JSON has at most [`MAX_ECHO`] characters, else truncated.
fn echo(requested: &Value) -> Value {
    match requested {
        Value::String(text) => Value::String(truncated(text)),
        other => {
            let text = other.to_string();
            if text.chars().count() <= MAX_ECHO {
                other.clone()
            } else {
                Value::String(truncated(&text))
            }
        }
    }
}

fn invalid_variant_data(requested: &Value, available: Option<&[VariantId]>) -> Value {
    let mut data = json!({"requestedVariant": requested});
    if let Some(available) = available {
        data["availableVariants"] = json!(available);
    }
    data
}

fn not_found_code(what: &Identifier, era: Era) -> i64 {
    match (what, era) {
        (Identifier::Resource(_), Era::Legacy) => RESOURCE_NOT_FOUND,
        (Identifier::Resource(_), Era::Modern)
        | (Identifier::Tool(_) | Identifier::Prompt(_) | Identifier::SubscribedResource(_), _) => {
            INVALID_PARAMS
        }
    }
}

fn not_found_message(what: &Identifier) -> String {
    match what {
        Identifier::Tool(name) => format!("Unknown tool: {}", truncated(name)),
        Identifier::Prompt(name) => format!("Unknown prompt: {}", truncated(name)),
        Identifier::Resource(_) | Identifier::SubscribedResource(_) => {
            "Resource not found".to_owned()
        }
    }
}

fn not_found_data(what: &Identifier, active: Option<&VariantId>) -> Option<Value> {
    let mut data = Map::new();
    match what {
        Identifier::Tool(_) | Identifier::Prompt(_) => {}
        Identifier::Resource(uri) | Identifier::SubscribedResource(uri) => {
            data.insert("uri".to_owned(), json!(truncated(uri)));
        }
    }
    if let Some(active) = active {
        data.insert("activeVariant".to_owned(), json!(active));
    }
    (!data.is_empty()).then_some(Value::Object(data))
}

fn truncated(text: &str) -> String {
    text.chars().take(MAX_ECHO).collect()
}

const HEADER_VARIANT_MISMATCH: &str =
    "Header mismatch: MCP-Server-Variant does not select the variant of _meta";

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-12: of which upstream errors the active variant is said.
    #[test]
    fn errors_about_identifiers_are_known_by_code() {
        assert!(concerns_identifier(-32602) && concerns_identifier(-32002));
        for code in [-32600, -32601, -32603, -32700, -32021, 0, 32602] {
            assert!(!concerns_identifier(code), "{code}");
        }
    }

    /// SV-9: JSON of exactly the limit is echoed as it is.
    #[test]
    fn the_limit_of_an_echo_counts_characters() {
        let echo = |requested: &Value| {
            let data = Error::invalid_variant(requested, None)
                .to_error_object()
                .data;
            data.unwrap()["requestedVariant"].take()
        };
        let fits = json!(["\u{e4}".repeat(MAX_ECHO - 4)]);
        assert_eq!(echo(&fits), fits);
        let too_long = json!(["\u{e4}".repeat(MAX_ECHO - 3)]);
        assert_eq!(
            echo(&too_long),
            json!(format!("[\"{}\"", "\u{e4}".repeat(MAX_ECHO - 3)))
        );
    }

    /// SV-9, SV-12: for a person, errors are sentences that cannot forge a log line.
    #[test]
    fn errors_are_sentences() {
        let not_found = |what| Error::NotFound {
            identifier: what,
            active: None,
            era: Era::Legacy,
        };
        let said = |error: Error| error.to_string();
        let found = said(not_found(Identifier::Tool("a\nb".to_owned())));
        assert_eq!(found, r"the tool `a\nb` does not exist");
        let found = said(not_found(Identifier::Prompt("p".to_owned())));
        assert_eq!(found, "the prompt `p` does not exist");
        assert_eq!(
            said(not_found(Identifier::Resource("file:///a".to_owned()))),
            "the resource `file:///a` does not exist"
        );
        let found = said(Error::invalid_variant(&json!("x\u{202e}y"), None));
        assert_eq!(found, r#"the server variant \"x\u{202e}y\" is invalid"#);
        assert_eq!(Error::VariantsNotSupported.code(), -32602);
    }
}
