//! The state of a request that takes several round trips: it comes back only to where it was made.

use mcp_vary::cursor::{Binding, open, seal};
use mcp_vary::error::Identifier;
use mcp_vary::variant::VariantId;
use rmcp::model::InputRequiredResult;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::offers::{Active, Offers};

/// What the state of one request is bound to.
pub(super) struct StateSeal<'a> {
    offers: &'a Offers,
    variant: &'a VariantId,
    principal: String,
    what: String,
}

impl<'a> StateSeal<'a> {
    /// The seal for a request for `what`; none where there are no variants.
    pub(super) fn new(
        offers: Option<&'a Offers>,
        active: &Active<'a>,
        what: &Identifier,
        context: &RequestContext<RoleServer>,
    ) -> Option<Self> {
        let (offers, variant) = (offers?, active.variant?);
        let (method, name) = match what {
            Identifier::Tool(name) => ("tools/call", name),
            Identifier::Prompt(name) => ("prompts/get", name),
            Identifier::Resource(uri) => ("resources/read", uri),
            _ => return None,
        };
        Some(Self {
            offers,
            variant,
            principal: offers.principal(context),
            // No cursor is made for a method with a space in it.
            what: format!("{method} state {name}"),
        })
    }

    /// The handler's own state in place of what the client sent back.
    pub(super) fn open(&self, state: &mut Option<String>) -> Result<(), ErrorData> {
        let Some(sealed) = state.take() else {
            return Ok(());
        };
        let opened = open(&self.offers.keys, &self.binding(), &sealed).map_err(|_| {
            let data = json!({"activeVariant": self.variant});
            ErrorData::invalid_params("Invalid request state", Some(data))
        })?;
        *state = Some(opened);
        Ok(())
    }

    /// What the client is to send back.
    pub(super) fn seal(&self, result: &mut InputRequiredResult) {
        if let Some(state) = &mut result.request_state {
            *state = seal(&self.offers.keys, &self.binding(), state);
        }
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            variant: self.variant,
            method: &self.what,
            principal: &self.principal,
        }
    }
}
