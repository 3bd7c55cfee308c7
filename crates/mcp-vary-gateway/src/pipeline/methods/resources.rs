//! `resources/read`.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_results::any_rule_matches;
use mcp_vary_results::result_store::{ReadError, ResultStore};
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::exchange::{ResponsePlan, UndeclaredMethod};
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::steps::forward::{ForwardRequest, forward};
use crate::pipeline::steps::resources::LocatedResource;
use crate::pipeline::steps::undeclared_methods::undeclared;
use crate::pipeline::steps::{
    policy, resources, response_plan, round_trips, skills, stored_results, view,
};

/// Forwards `resources/read`, or reads a stored part of a result.
pub(crate) async fn read(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let uri = context.request.params.string("uri").unwrap_or_default();
    if ResultStore::is_uri(&uri) {
        return read_stored(context, uri).await;
    }
    let undeclared = require_resources(context).await?;
    let uri = context.request.params.string("uri")?;
    let scope = view::enter(context).await?;
    let (located, plan) = if let Some(skill) = skills::locate(scope, &uri) {
        skill.check(scope, || scope.not_found(Identifier::Resource(uri.clone())))?;
        let plan = skill.response_plan(scope);
        (skill.at, plan)
    } else {
        let located = resources::locate(scope, &uri, Identifier::Resource).await?;
        resources::check(scope, &located)?;
        let plan = response_plan(scope, &located);
        (located, plan)
    };
    policy::count_read(scope, located.server).await?;
    let forwarding = ForwardRequest {
        plan: ResponsePlan {
            undeclared,
            request_state: round_trips::state_codec(scope, located.server, &uri),
            ..plan
        },
        ..ForwardRequest::new(scope.view, located.server)
    };
    if located.upstream_uri != uri {
        let upstream_uri = json::string(&located.upstream_uri);
        context.request.params.members.set("uri", upstream_uri);
    }
    let name = Some(located.upstream_uri.into());
    forward(context, ForwardRequest { name, ..forwarding }).await
}

fn response_plan(scope: ViewScope<'_>, located: &LocatedResource) -> ResponsePlan {
    let origin = Some(located.item_ref().link_source(ListKind::Resources));
    let rules = &scope.snapshot.config.resource_results.0;
    let server = scope.server_name(located.server);
    ResponsePlan {
        origin,
        caching: if any_rule_matches(rules, &server, &located.upstream_uri) {
            Caching::Never
        } else {
            scope.class.catalog.layout.caching
        },
        resource_rules: Arc::clone(rules),
        renders_json: scope.snapshot.config.negotiation,
        shape: response_plan::resource_shape(scope, located.server),
        ..ResponsePlan::default()
    }
}

/// Refuses the request if no server has resources. A single server is not asked for its lists first: its answer shows
/// whether it has the method, and is recorded in the returned value.
async fn require_resources(
    context: &mut RequestContext<'_>,
) -> Result<Option<Box<UndeclaredMethod>>, RpcError> {
    let is_offered = context.catalog.has_list(ListKind::Resources);
    let is_only = context.class.sources().len() == 1 && context.visible_sources().next().is_some();
    if !is_offered && is_only {
        return undeclared(context, ServerIndex::FIRST, "resources", "resources/read");
    }
    let listed = context.require_list(ListKind::Resources).await;
    if listed.is_err() {
        context.require_list(ListKind::Templates).await?;
    }
    Ok(None)
}

/// Reads a stored part of a shortened result. It belongs to no server, and to no view.
async fn read_stored(context: &RequestContext<'_>, uri: String) -> Result<Dispatch, RpcError> {
    let scope = view::enter(context).await?;
    stored_results::require_readable(scope, &uri).await?;
    let store = &scope.snapshot.services.result_store;
    match store.read(&uri, stored_results::reader(context)) {
        Ok(page) => Ok(scope.answer_uncached(&page.contents())),
        Err(ReadError::NotFound) => Err(scope.not_found(Identifier::Resource(uri))),
        Err(ReadError::Part(error)) => Err(RpcError::invalid_params(format!("`uri`: {error}"))),
    }
}
