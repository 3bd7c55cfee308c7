//! `prompts/get`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::steps::forward::{ForwardRequest, forward};
use crate::pipeline::steps::{policy, response_plan, round_trips, view};

/// Forwards `prompts/get`.
pub(crate) async fn get(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    context.require_list(ListKind::Prompts).await?;
    let name = context.request.params.string("name")?;
    let scope = view::enter(context).await?;
    let prompt = view::find_prompt(scope, &name).await?;
    scope.client.observation.found(&name);
    let written = scope.arguments()?;
    let arguments = match &prompt.prepared {
        Some(prepared) => prepared
            .arguments(written)
            .map_err(|errors| view::invalid_prompt_arguments(context, &errors))?,
        None => Cow::Borrowed(written),
    };
    let item_ref = &prompt.item_ref;
    policy::check_access(scope, ListKind::Prompts, item_ref, Some(&arguments))?;
    policy::count_read(scope, item_ref.server).await?;
    let forwarding = ForwardRequest {
        name: Some(Arc::clone(&item_ref.upstream_name)),
        plan: ResponsePlan {
            origin: Some(item_ref.link_source(ListKind::Prompts)),
            names: prompt.name_rewriter.clone(),
            request_state: round_trips::state_codec(scope, item_ref.server, &name),
            shape: response_plan::prompt_shape(scope, &prompt, &arguments),
            ..ResponsePlan::default()
        },
        ..ForwardRequest::new(scope.view, item_ref.server)
    };
    let prepared_arguments = prompt.prepared.is_some().then(|| arguments.into_owned());
    if let Some(arguments) = prepared_arguments {
        context.request.params.members.set("arguments", arguments);
    }
    context.rename_to_upstream(&name, item_ref);
    forward(context, forwarding).await
}
