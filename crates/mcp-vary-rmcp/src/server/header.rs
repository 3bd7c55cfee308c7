//! The header `MCP-Server-Variant`: a selector for clients that cannot write `_meta`.

use mcp_vary::error::{Era, Error};
use serde_json::Value;

use super::rules::Context;

/// How the server treats the header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum HeaderPolicy {
    /// The header is ignored.
    #[default]
    Ignored,
    /// The header selects the default variant.
    SelectsDefault,
    /// The header selects the default variant; it must not contradict `_meta` or name a variant
    /// that the client cannot see.
    Strict,
}

impl HeaderPolicy {
    /// The value of the header, if it is present and not ignored.
    pub(super) fn read(self, context: &Context) -> Option<String> {
        if self == Self::Ignored {
            return None;
        }
        let parts = context.extensions.get::<http::request::Parts>()?;
        // Repeated headers are joined to a list, like any header, which is not a valid variant.
        let values: Vec<_> = parts
            .headers
            .get_all(HEADER)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Checks `header` against `selector`, the variant in `_meta`.
    ///
    /// "The `_meta` field is the normative mechanism and takes precedence over the header"; a
    /// strict server rejects requests in which the two differ.
    pub(super) fn check(self, header: &str, selector: &Value, era: Era) -> Result<(), Error> {
        if self == Self::Strict && selector != header {
            Err(Error::header_variant_mismatch(header, selector, era))
        } else {
            Ok(())
        }
    }
}

const HEADER: &str = "mcp-server-variant";
