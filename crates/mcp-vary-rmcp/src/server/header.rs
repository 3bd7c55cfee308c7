//! The header `MCP-Server-Variant`: a selector for whoever cannot write `_meta`.

use mcp_vary::error::{Era, Error};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::Value;

/// What the header is to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum HeaderRule {
    /// Nothing.
    #[default]
    Unread,
    /// It chooses the default.
    Default,
    /// It chooses the default, and neither contradicts `_meta` nor names what is not there.
    Strict,
}

impl HeaderRule {
    /// What the header of a request says, if it is read and there.
    pub(super) fn read(self, context: &RequestContext<RoleServer>) -> Option<String> {
        if self == Self::Unread {
            return None;
        }
        let parts = context.extensions.get::<http::request::Parts>()?;
        // Said twice it is a list, as any header, and so names no variant.
        let values: Vec<_> = parts
            .headers
            .get_all(HEADER)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Whether `header` may stand beside `selector`, the variant in `_meta`.
    ///
    /// "The `_meta` field is the normative mechanism and takes precedence over the header"; strict
    /// servers refuse what has to be decided by that.
    pub(super) fn check(self, header: &str, selector: &Value, era: Era) -> Result<(), Error> {
        match self == Self::Strict && selector != header {
            true => Err(Error::another_variant_in_header(header, selector, era)),
            false => Ok(()),
        }
    }
}

const HEADER: &str = "mcp-server-variant";
