//! What access rules leave to the call: scopes, and expressions over the arguments.

use mcp_vary_access::{Call, Decision, Denial, Item as AccessItem, Principal, Verdict};
use mcp_vary_catalog::access::AccessView;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use super::RequestContext;

impl RequestContext<'_> {
    /// Checks a call of a listed item with these `arguments`, JSON text.
    ///
    /// # Errors
    ///
    /// `-32602` when an expression refuses the call, and the error of [`RpcError::insufficient_scope`] when it needs
    /// scopes that the token lacks.
    pub(crate) fn check_access(
        &self,
        view: ViewIndex,
        (kind, place): (ListKind, &ItemRef),
        arguments: Option<&str>,
    ) -> Result<(), RpcError> {
        let Some(access) = self.variant_set().access() else {
            return Ok(());
        };
        let server = self.server_name(place.server);
        match self.catalog.merged_item(kind, place) {
            Some(item) => {
                let item = access.item(kind, item, &server);
                self.check_item(view, access, item, arguments)
            }
            None => self.check_unlisted(view, place.server, &place.upstream_name),
        }
    }

    /// Checks the read of a resource that no server lists.
    ///
    /// # Errors
    ///
    /// As those of [`check_access`](Self::check_access).
    pub(crate) fn check_unlisted(
        &self,
        view: ViewIndex,
        server: ServerIndex,
        upstream_uri: &str,
    ) -> Result<(), RpcError> {
        let Some(access) = self.variant_set().access() else {
            return Ok(());
        };
        let server = self.server_name(server);
        let item = AccessItem::unlisted_resource(upstream_uri, &server);
        self.check_item(view, access, item, None)
    }

    fn check_item(
        &self,
        view: ViewIndex,
        access: &AccessView,
        item: AccessItem<'_>,
        arguments: Option<&str>,
    ) -> Result<(), RpcError> {
        let decision = access.decide(&item);
        if let Decision::Allowed(_) = decision {
            return Ok(());
        }
        let anonymous = Principal::anonymous();
        let call = Call {
            principal: self.client.principal.as_deref().unwrap_or(&anonymous),
            item,
            variant: self.snapshot.variant_id(view),
            arguments,
        };
        let policy = access.policy();
        match policy.check(&decision, &call) {
            Verdict::Allowed(_) => Ok(()),
            Verdict::NeedsScopes(rule) => {
                let scopes = policy.rule(rule).into_iter().flat_map(|rule| rule.scopes());
                Err(RpcError::insufficient_scope(scopes))
            }
            Verdict::Denied(Denial { rule, error, .. }) => {
                let rule = rule.map(|rule| policy.label(rule));
                let error = error.map(|(rule, error)| format!("{}: {error}", policy.label(rule)));
                debug!(?rule, ?error, "call refused by access rules");
                let why = "the access rules do not allow this call with these arguments";
                Err(self.with_active_variant(view, RpcError::invalid_params(why)))
            }
        }
    }
}
