//! What access rules leave to the call: scopes, and expressions over the arguments.

use mcp_vary_access::{
    AccessPolicy, Call, Decision, Denial, HiddenBy, Item as AccessItem, Principal, RuleIndex,
    Verdict,
};
use mcp_vary_catalog::access::AccessView;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::RpcError;
use tracing::debug;

use super::RequestContext;
use crate::audit::RequestRecord;

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
        if let Some(record) = self.client.observation.record() {
            record.set_server(&server, Some(&place.upstream_name));
        }
        // The item may be listed since the request began: its server was starting.
        let latest = self.class.catalog.current();
        let listed = self.catalog.merged_item(kind, place);
        match listed.or_else(|| latest.merged_item(kind, place)) {
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
        let policy = access.policy();
        if let Decision::Allowed(rule) = decision {
            self.record_rule(policy, rule, RequestRecord::allowed_by);
            return Ok(());
        }
        let anonymous = Principal::anonymous();
        let call = Call {
            principal: self.client.principal.as_deref().unwrap_or(&anonymous),
            item,
            variant: self.snapshot.variant_id(view),
            arguments,
        };
        match policy.check(&decision, &call) {
            Verdict::Allowed(rule) => {
                self.record_rule(policy, rule, RequestRecord::allowed_by);
                Ok(())
            }
            Verdict::NeedsScopes(rule) => {
                self.record_rule(policy, rule, RequestRecord::denied_by);
                self.count_refusal();
                let scopes = policy.rule(rule).into_iter().flat_map(|rule| rule.scopes());
                Err(RpcError::insufficient_scope(scopes))
            }
            Verdict::Denied(Denial { rule, error, .. }) => {
                self.count_refusal();
                match rule {
                    Some(rule) => self.record_rule(policy, rule, RequestRecord::denied_by),
                    None => self.record_default_denial(),
                }
                let rule = rule.map(|rule| policy.label(rule));
                let error = error.map(|(rule, error)| format!("{}: {error}", policy.label(rule)));
                debug!(?rule, ?error, "call refused by access rules");
                let why = "the access rules do not allow this call with these arguments";
                Err(self.with_active_variant(view, RpcError::invalid_params(why)))
            }
        }
    }

    /// Records that access rules hide the item `name` of a list, if it is there and hidden. The client gets the answer
    /// to a name that nobody has.
    pub(super) fn record_hidden(&self, kind: ListKind, name: &str) {
        let observation = &self.client.observation;
        let (Some(_), Some(access)) = (observation.record(), self.variant_set().access()) else {
            return;
        };
        let Some(item) = self.catalog.merged_item_named(kind, name) else {
            return;
        };
        let server = self.server_name(item.item_ref.server);
        match access.decide(&access.item(kind, item, &server)) {
            Decision::Hidden(HiddenBy::Default) => self.record_default_denial(),
            Decision::Hidden(HiddenBy::Rule(rule)) => {
                self.record_rule(access.policy(), rule, RequestRecord::denied_by);
            }
            _ => return,
        }
        if let Some(record) = self.client.observation.record() {
            record.set_server(&server, Some(&item.item_ref.upstream_name));
        }
    }

    fn count_refusal(&self) {
        let counters = &self.snapshot.services.counters;
        counters.increment(Counter::RefusedByAccessRules);
    }

    fn record_default_denial(&self) {
        if let Some(record) = self.client.observation.record() {
            record.denied_by("access: default");
        }
    }

    fn record_rule(
        &self,
        policy: &AccessPolicy,
        rule: RuleIndex,
        record_as: impl FnOnce(&RequestRecord, &str),
    ) {
        if let Some(record) = self.client.observation.record() {
            record_as(record, &policy.label(rule));
        }
    }
}
