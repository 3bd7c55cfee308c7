//! Who sends a request: its principal, and its address.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_rates::Caller;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::rules::{AddressFn, Context, PrincipalFn};

/// The principal that a layer in front of the server has recognised: an `Arc<Principal>` in the
/// extensions of the HTTP request, or of the context.
///
/// [`Builder::with_principal`](super::Builder::with_principal) replaces this function.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use mcp_vary_rmcp::access::{Claims, Principal};
///
/// // In the layer, after it has checked the credential:
/// let principal = Principal::key("ann", Claims::from_json(r#"{"groups": ["dev"]}"#)?)?;
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Arc::new(principal));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn principal(context: &RequestContext<RoleServer>) -> Option<Arc<Principal>> {
    if let Some(principal) = context.extensions.get::<Arc<Principal>>() {
        return Some(Arc::clone(principal));
    }
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.extensions.get::<Arc<Principal>>().cloned()
}

/// How the clients of requests are recognised.
#[derive(Clone, Default)]
pub(super) struct Clients {
    pub(super) principal: Option<PrincipalFn>,
    pub(super) address: Option<AddressFn>,
}

impl Clients {
    /// The principal of a request; `None` for anonymous clients.
    pub(super) fn principal(&self, context: &Context) -> Option<Arc<Principal>> {
        let found = match &self.principal {
            Some(principal) => principal(context),
            None => principal(context),
        };
        found.filter(|principal| !principal.is_anonymous())
    }

    /// The id of the principal, to which cursors and states are bound; empty for anonymous clients.
    pub(super) fn principal_id(&self, context: &Context) -> String {
        let principal = self.principal(context);
        principal.map_or_else(String::new, |principal| principal.id_text().to_owned())
    }

    /// The address of the client, if the author's function returns one.
    pub(super) fn address(&self, context: &Context) -> Option<IpAddr> {
        self.address.as_ref().and_then(|address| address(context))
    }

    /// What distinguishes a client without a session from others: its principal, else its address.
    /// Empty if nothing does.
    pub(super) fn key(&self, context: &Context) -> String {
        let id = self.principal_id(context);
        match self.address(context) {
            Some(address) if id.is_empty() => address.to_canonical().to_string(),
            _ => id,
        }
    }

    /// Calls `act` with the client as rate limits see it.
    pub(super) fn with_caller<T>(
        &self,
        context: &Context,
        act: impl FnOnce(&Caller<'_, PrincipalId>) -> T,
    ) -> T {
        let principal = self.principal(context);
        act(&Caller {
            principal: principal.as_ref().map(|principal| principal.id()),
            key: principal
                .as_ref()
                .and_then(|principal| principal.key_name()),
            address: self.address(context),
        })
    }
}
