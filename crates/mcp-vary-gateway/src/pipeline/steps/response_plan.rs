//! The shape of a response, decided before the request is sent.
//!
//! A server that negotiates content itself shapes its results: [`leave_to_server`] then removes what it does from the
//! plan. What is left is applied in [`ResponseContext`](crate::pipeline::exchange::ResponseContext).

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::shown::{Prompt, Tool};
use mcp_vary_results::CallContext;
use mcp_vary_results::result_store::{ResultOwner, ToolRef};
use mcp_vary_results::shaper::{
    MatchedRule, PromptShaper, ResourceShaper, ResultShaper, ShapeTarget, Shaper, Spillover,
};
use mcp_vary_view::{ResultFields, UriMap};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Revision;

use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::pool::client_declarations::{declare_features, forwards_features};

/// The shape of the results of a call of `tool` with these `arguments`, as its server gets them.
pub(crate) fn tool_shape(scope: ViewScope<'_>, tool: &Tool, arguments: &str) -> Option<Shaper> {
    let config = &scope.snapshot.config;
    let features = features(scope);
    let fields = scope.config().style.result;
    let rules = tool.result_rules.as_ref();
    let negotiated = config.negotiation.then_some(features.as_deref()).flatten();
    let transform = rules.and_then(|rules| rules.choose(negotiated));
    let declared_output = rules.and_then(|rules| rules.output());
    let is_as_served = fields == ResultFields::Both && declared_output.is_none();
    if features.is_none() && transform.is_none() && is_as_served {
        return None;
    }
    let call = || call_context(&scope, &tool.item_ref, arguments);
    Some(Shaper::Tool(Box::new(ResultShaper {
        report: scope.client.features.is_some(),
        declared_output: declared_output.map(|output| (Arc::clone(output), call())),
        matched_rule: transform.map(|transform| MatchedRule {
            transform,
            call: call(),
        }),
        spillover: Spillover {
            store: Arc::clone(&scope.snapshot.services.result_store),
            owner: ResultOwner {
                client: storing_client(&scope),
                principal: scope.client.principal_id(),
                tool: ToolRef {
                    server: scope.server_name(tool.item_ref.server),
                    upstream_name: Arc::clone(&tool.item_ref.upstream_name),
                },
            },
            reader_tool: scope.gateway_tool_name(GatewayTool::ReadResult).cloned(),
        },
        output: tool.output.clone(),
        is_linked: scope.client.revision >= Revision::LINKS,
        fields,
        tool: tool.facts,
        json_content: scope.client.json.content.unwrap_or(config.json_content),
        lift_json_text: scope.client.json.lift.unwrap_or(config.lift_json_text),
        era: scope.client.era(),
        variant: scope.active_variant(),
        features,
    })))
}

/// The only client that may read what is stored of a result: its session. A principal may read it in others, too.
fn storing_client(context: &RequestContext<'_>) -> Option<ClientId> {
    let principal = context.client.principal.as_ref();
    let is_anonymous = principal.is_none_or(|principal| principal.is_anonymous());
    is_anonymous.then_some(context.client.session.as_ref()?.client)
}

/// The shape of resources of `server`.
pub(crate) fn resource_shape(scope: ViewScope<'_>, server: ServerIndex) -> Option<Shaper> {
    let rules = &scope.snapshot.config.resource_results.0;
    let target = shape_target(scope, rules.iter().any(|rule| rule.applies_to_all))?;
    Some(Shaper::Resource(ResourceShaper {
        rules: Arc::clone(rules),
        server: scope.server_name(server),
        uris: Arc::clone(scope.variant_set().uris(scope.view)),
        target,
    }))
}

/// The shape of `prompt` with these `arguments`, as its server gets them.
pub(crate) fn prompt_shape(
    scope: ViewScope<'_>,
    prompt: &Prompt,
    arguments: &str,
) -> Option<Shaper> {
    let rules = &scope.snapshot.config.prompt_results.0;
    if rules.is_empty() {
        return None;
    }
    let target = shape_target(scope, rules.iter().any(|rule| rule.applies_to_all))?;
    Some(Shaper::Prompt(PromptShaper {
        rules: Arc::clone(rules),
        id: Arc::clone(&prompt.id),
        call: call_context(&scope, &prompt.item_ref, arguments),
        target,
    }))
}

/// The client for which results are shaped; `None` if it declared nothing, unless rules are `for_all`.
fn shape_target(scope: ViewScope<'_>, for_all: bool) -> Option<ShapeTarget> {
    Some(ShapeTarget {
        features: features(scope).or_else(|| for_all.then(Arc::default))?,
        report: scope.client.features.is_some(),
        variant: scope.active_variant(),
        rules_of: scope.config().variant.id.clone(),
    })
}

/// The features that the client declared, or is presumed to have.
fn features(scope: ViewScope<'_>) -> Option<Arc<Features>> {
    let of_variant = scope.config().features.as_ref();
    let presumed = of_variant.or(scope.client.presumed_features.as_ref());
    let negotiates = scope.snapshot.config.negotiation;
    let presumable = if negotiates { presumed } else { None };
    scope.client.features.as_ref().or(presumable).cloned()
}

fn call_context(context: &RequestContext<'_>, item_ref: &ItemRef, arguments: &str) -> CallContext {
    CallContext {
        name: Arc::clone(&item_ref.upstream_name),
        server: context.server_name(item_ref.server),
        arguments: arguments.to_owned(),
    }
}

/// The URIs that the variant changed, if any.
pub(crate) fn changed_uris(scope: ViewScope<'_>) -> Option<Arc<UriMap>> {
    let uris = scope.variant_set().uris(scope.view);
    (!uris.is_empty()).then(|| Arc::clone(uris))
}

/// Leaves the shaping of the result to the server if that negotiates content itself, and got the client's feature
/// tags with the `declared` capabilities: nothing is shaped twice.
pub(crate) fn leave_to_server(
    context: &RequestContext<'_>,
    server: ServerIndex,
    handshake: Option<&Handshake>,
    declared: &str,
    plan: &mut ResponsePlan,
) {
    let config = context.class.source(server).connection.config();
    let Some(features) = &context.client.features else {
        return;
    };
    if forwards_features(config)
        && handshake.is_some_and(Handshake::negotiates_content)
        && declare_features(declared, features)
    {
        plan.shape = plan.shape.take().and_then(Shaper::after_server);
    }
}
