//! What a client may see and use: access rules, and the author's function.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::error_code::INSUFFICIENT_SCOPE;
use mcp_vary::variant::VariantId;
use mcp_vary_access::{
    AccessClass, AccessPolicy, Call, Decision, HiddenBy, Item, Principal, RuleIndex, Verdict,
};
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject};
use serde_json::json;

use super::clients::Clients;
use super::errors::with_active_variant;
use super::request_record::RequestRecord;
use super::rules::{Context, PermissionFn};

/// What restricts clients. There is one value for a server, if something does.
pub(super) struct Permissions {
    clients: Clients,
    policy: Option<AccessPolicy>,
    permission: Option<PermissionFn>,
    anonymous: Arc<Principal>,
}

impl Permissions {
    /// `None` if nothing restricts clients.
    pub(super) fn new(
        clients: Clients,
        policy: Option<AccessPolicy>,
        permission: Option<PermissionFn>,
    ) -> Option<Arc<Self>> {
        if policy.is_none() && permission.is_none() {
            return None;
        }
        Some(Arc::new(Self {
            clients,
            policy,
            permission,
            anonymous: Arc::new(Principal::anonymous()),
        }))
    }

    /// What the client of a request may see and use.
    pub(super) fn of<'a>(&'a self, context: &'a Context) -> ClientPermissions<'a> {
        ClientPermissions {
            context,
            permission: self.permission.as_ref(),
            rules: self
                .policy
                .as_ref()
                .map(|policy| self.rules(policy, context)),
        }
    }

    fn rules<'a>(&self, policy: &'a AccessPolicy, context: &Context) -> ClientRules<'a> {
        let principal = self.clients.principal(context);
        let principal = principal.unwrap_or_else(|| Arc::clone(&self.anonymous));
        ClientRules {
            policy,
            class: policy.class_of(&principal),
            principal,
        }
    }

    /// The access class of a request's client, if there are access rules. It decides which variants
    /// the client is offered.
    pub(super) fn class(&self, context: &Context) -> Option<Arc<AccessClass>> {
        let policy = self.policy.as_ref()?;
        Some(self.rules(policy, context).class)
    }
}

/// What the client of one request may see and use.
pub(super) struct ClientPermissions<'a> {
    context: &'a Context,
    permission: Option<&'a PermissionFn>,
    rules: Option<ClientRules<'a>>,
}

/// The access rules for one client.
struct ClientRules<'a> {
    policy: &'a AccessPolicy,
    principal: Arc<Principal>,
    class: Arc<AccessClass>,
}

/// Why a client may not do what it requests.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The item does not exist for the client.
    Hidden,
    /// Another error, for an item that the client sees.
    Error(ErrorData),
}

impl ClientPermissions<'_> {
    /// Whether the item exists for the client. `identifier` is what the author's function gets.
    pub(super) fn shows(&self, identifier: &Identifier, item: &Item<'_>) -> bool {
        let is_permitted = self
            .permission
            .is_none_or(|permission| permission(self.context, identifier));
        let is_visible = |rules: &ClientRules<'_>| rules.decide(item).is_visible();
        is_permitted && self.rules.as_ref().is_none_or(is_visible)
    }

    /// Checks a request for an item in the variant `active`; records the rule that decides.
    pub(super) fn check(
        &self,
        identifier: &Identifier,
        item: &Item<'_>,
        arguments: Option<&JsonObject>,
        active: Option<&VariantId>,
    ) -> Result<(), Refusal> {
        let record = RequestRecord::of(self.context);
        if let Some(permission) = self.permission
            && !permission(self.context, identifier)
        {
            record.denied_by("permission");
            return Err(Refusal::Hidden);
        }
        let Some(rules) = &self.rules else {
            return Ok(());
        };
        let decision = rules.decide(item);
        match decision {
            Decision::Allowed(rule) => {
                record.allowed_by(&rules.policy.label(rule));
                Ok(())
            }
            Decision::Hidden(by) => {
                record.denied_by(&match by {
                    HiddenBy::Default => DEFAULT_DENIAL.to_owned(),
                    HiddenBy::Rule(rule) => rules.policy.label(rule),
                });
                Err(Refusal::Hidden)
            }
            Decision::NeedsScopes(_) | Decision::Conditional(_) => {
                rules.check_call(&decision, item, arguments, active, record)
            }
        }
    }
}

impl ClientRules<'_> {
    fn decide(&self, item: &Item<'_>) -> Decision {
        self.policy.decide(&self.class, item)
    }

    /// What scopes and expressions decide on one call.
    fn check_call(
        &self,
        decision: &Decision,
        item: &Item<'_>,
        arguments: Option<&JsonObject>,
        active: Option<&VariantId>,
        record: RequestRecord<'_>,
    ) -> Result<(), Refusal> {
        let denied = || ErrorData::invalid_params(DENIED_CALL, None);
        let without_variants = VariantId::try_from(STANDARD.to_owned());
        let Some(variant) = active.or(without_variants.as_ref().ok()) else {
            return Err(Refusal::Error(denied()));
        };
        let arguments = arguments.map(|arguments| json!(arguments).to_string());
        let verdict = self.policy.check(
            decision,
            &Call {
                principal: &self.principal,
                item: *item,
                variant,
                arguments: arguments.as_deref(),
            },
        );
        match verdict {
            Verdict::Allowed(rule) => {
                record.allowed_by(&self.policy.label(rule));
                Ok(())
            }
            Verdict::NeedsScopes(rule) => {
                record.denied_by(&self.policy.label(rule));
                Err(Refusal::Error(self.insufficient_scope(rule)))
            }
            Verdict::Denied(denial) => {
                let label = denial.rule.map(|rule| self.policy.label(rule));
                record.denied_by(label.as_deref().unwrap_or(DEFAULT_DENIAL));
                tracing::debug!(rule = ?label, error = ?denial.error, "call refused by access rules");
                Err(Refusal::Error(with_active_variant(denied(), active)))
            }
        }
    }

    fn insufficient_scope(&self, rule: RuleIndex) -> ErrorData {
        let scopes = self.policy.rule(rule).into_iter();
        let scopes: Vec<&str> = scopes.flat_map(|rule| rule.scopes()).collect();
        let code = i32::try_from(INSUFFICIENT_SCOPE).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
        ErrorData::new(code, MISSING_SCOPE, Some(json!({"scopes": scopes})))
    }
}

/// What expressions see as the variant of a server without variants.
const STANDARD: &str = "standard";

/// The rule in records of what no rule allows.
const DEFAULT_DENIAL: &str = "access: default";

const DENIED_CALL: &str = "the access rules do not allow this call with these arguments";

const MISSING_SCOPE: &str = "the token lacks a scope that this call needs";
