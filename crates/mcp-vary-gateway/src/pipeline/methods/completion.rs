//! `completion/complete`: arguments of prompts and templates, with the names of their server.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_results::name_rewriter::NameRewriter;
use mcp_vary_view::{ArgumentError, PreparedPrompt};
use mcp_vary_wire::method_names::COMPLETE;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::request::method_not_found;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::steps::forward::{ForwardRequest, forward};
use crate::pipeline::steps::resources::LocatedResource;
use crate::pipeline::steps::undeclared_methods::{may_have, undeclared};
use crate::pipeline::steps::{policy, resources, view};

/// The target of `ref`: the name of a prompt, or the URI of a resource template.
#[derive(Debug, Eq, PartialEq)]
enum Reference {
    Prompt(String),
    Resource(String),
}

impl Reference {
    /// Reads `ref` by its `type`, as servers do.
    ///
    /// # Errors
    ///
    /// When the type is unknown, or when it has the member of the other type: a server that reads that member would
    /// complete an item that was never checked.
    fn read(reference: &str) -> Result<Self, String> {
        let text = |key| serde_json::from_str::<String>(edit::get(reference, key)?).ok();
        let kind = text("type").unwrap_or_default();
        let (key, other) = match kind.as_str() {
            "ref/prompt" => ("name", "uri"),
            "ref/resource" => ("uri", "name"),
            _ => return Err("`ref.type` must be `ref/prompt` or `ref/resource`".to_owned()),
        };
        if edit::get(reference, other).is_some() {
            return Err(format!(
                "`ref.{other}` has no place in a `{kind}`; leave it out"
            ));
        }
        let value = text(key).ok_or_else(|| format!("`ref.{key}` must be a string"))?;
        Ok(match key {
            "name" => Self::Prompt(value),
            _ => Self::Resource(value),
        })
    }
}

/// The server that completes an argument, and the request as that server gets it.
struct UpstreamCompletion {
    server: ServerIndex,
    /// The names that the view changed.
    names: Option<Arc<NameRewriter>>,
    /// The members of the request that differ from the client's, each with its JSON text.
    changed_members: Vec<(&'static str, String)>,
}

impl UpstreamCompletion {
    /// The request as the client wrote it.
    const fn unchanged(server: ServerIndex) -> Self {
        Self {
            server,
            names: None,
            changed_members: Vec::new(),
        }
    }

    /// Replaces the member `key` of `ref` by the server's.
    fn change_reference(&mut self, reference: &str, key: &str, upstream: &str) {
        let renamed = edit::set(reference, key, &json::string(upstream)).into_owned();
        self.changed_members.push(("ref", renamed));
    }
}

/// Forwards `completion/complete`.
pub(crate) async fn complete(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    require_completion(context)?;
    for key in ["ref", "argument"] {
        context.request.params.object(key)?;
    }
    let scope = view::enter(context).await?;
    let reference = scope.request.params.object("ref")?;
    let upstream = match Reference::read(reference).map_err(RpcError::invalid_params)? {
        Reference::Prompt(name) => of_prompt(scope, reference, &name).await?,
        Reference::Resource(uri) => of_template(scope, reference, &uri).await?,
    };
    let server = upstream.server;
    let undeclared = undeclared(context, server, "completions", COMPLETE)?;
    policy::count_read(scope, server).await?;
    let forwarding = ForwardRequest {
        plan: ResponsePlan {
            names: upstream.names,
            undeclared,
            ..ResponsePlan::default()
        },
        ..ForwardRequest::new(scope.view, server)
    };
    for (key, text) in upstream.changed_members {
        context.request.params.members.set(key, text);
    }
    forward(context, forwarding).await
}

/// Refuses the request if no server declares completions, and all are known not to have them.
fn require_completion(context: &RequestContext<'_>) -> Result<(), RpcError> {
    let is_declared = context.catalog.capabilities.contains("completions");
    if is_declared || context.visible_sources().any(|it| may_have(it, COMPLETE)) {
        Ok(())
    } else {
        Err(method_not_found(context.request.method))
    }
}

async fn of_prompt(
    scope: ViewScope<'_>,
    reference: &str,
    name: &str,
) -> Result<UpstreamCompletion, RpcError> {
    // A server that declares no prompts lists none, and may have some all the same.
    let may_be_unlisted =
        !scope.catalog.capabilities.contains("prompts") && !scope.config().selects_prompts();
    if may_be_unlisted && let Some(only) = scope.only_server() {
        return Ok(UpstreamCompletion::unchanged(only));
    }
    let prompt = view::find_prompt(scope, name).await?;
    let item_ref = &prompt.item_ref;
    policy::check_access(scope, ListKind::Prompts, item_ref, None)?;
    let mut upstream = UpstreamCompletion {
        names: prompt.name_rewriter.clone(),
        ..UpstreamCompletion::unchanged(item_ref.server)
    };
    if let Some(prepared) = &prompt.prepared {
        upstream.changed_members = upstream_argument(scope, prepared)?;
    }
    if *item_ref.upstream_name != *name {
        upstream.change_reference(reference, "name", &item_ref.upstream_name);
    }
    Ok(upstream)
}

async fn of_template(
    scope: ViewScope<'_>,
    reference: &str,
    uri: &str,
) -> Result<UpstreamCompletion, RpcError> {
    let located = locate_template(scope, uri).await?;
    policy::check_access(scope, ListKind::Templates, &located.item_ref(), None)?;
    let mut upstream = UpstreamCompletion::unchanged(located.server);
    if located.upstream_uri != uri {
        upstream.change_reference(reference, "uri", &located.upstream_uri);
    }
    Ok(upstream)
}

/// Locates the template or resource `uri` of the variant.
async fn locate_template(scope: ViewScope<'_>, uri: &str) -> Result<LocatedResource, RpcError> {
    let variant_set = scope.variant_set();
    let only = resources::server_of_all(scope);
    let checks_uris = variant_set.checks_uris(scope.view);
    if !checks_uris && let Some(server) = only {
        return Ok(LocatedResource::new(server, uri));
    }
    let find = |catalog: &Catalog| {
        if let Some(template) = catalog.resolve_template(scope.view, uri) {
            let server = template.listed_by?;
            return Some(LocatedResource::new(server, template.upstream_uri));
        }
        let target = catalog.resolve_resource(variant_set, scope.view, uri)?;
        let upstream_uri = &*target.upstream_uri;
        let template_server = || {
            let server = catalog.template_server(scope.view, upstream_uri)?;
            resources::allows_unlisted(scope, upstream_uri, server).then_some(server)
        };
        let server = match (target.listed_by, &target.fault) {
            (Some(server), _) => Some(server),
            (None, None) => only.or_else(template_server),
            (None, Some(_)) => None,
        };
        Some(LocatedResource::new(server?, target.upstream_uri))
    };
    let not_found = || resources::no_such_uri(scope, uri, Identifier::Resource);
    view::find_item(&scope, ListKind::Templates, uri, find, not_found).await
}

/// The argument to complete and those completed before, by the server's names: the members `argument` and `context`.
fn upstream_argument(
    scope: ViewScope<'_>,
    prepared: &PreparedPrompt,
) -> Result<Vec<(&'static str, String)>, RpcError> {
    let argument = scope.request.params.object("argument")?;
    let name = edit::get(argument, "name").unwrap_or("null");
    let name: String = serde_json::from_str(name).unwrap_or_default();
    let upstream_name = prepared.upstream_argument(&name).ok_or_else(|| {
        let why = "`argument.name` is not an argument of the prompt";
        scope.with_active_variant(RpcError::invalid_params(why))
    })?;
    let renamed = edit::set(argument, "name", &json::string(upstream_name)).into_owned();
    let context = upstream_context(&scope, prepared, &name, upstream_name).map_err(|errors| {
        scope.with_active_variant(view::invalid_prompt_arguments(&scope, &errors))
    })?;
    let member = context.map(|context| ("context", context));
    Ok([("argument", renamed)].into_iter().chain(member).collect())
}

/// The `context` for completing the argument `name`, which the server calls `completed`: the other arguments, as
/// `prompts/get` would send them, by the server's names. `None` if there are no others.
///
/// > `context.arguments`: Previously-resolved variables (MCP 2025-06-18, server/utilities/completion)
fn upstream_context(
    context: &RequestContext<'_>,
    prepared: &PreparedPrompt,
    name: &str,
    completed: &str,
) -> Result<Option<String>, Vec<ArgumentError>> {
    let members = &context.request.params.members;
    let completed_context = members.get("context").unwrap_or("{}");
    let written = edit::get(completed_context, "arguments").unwrap_or("{}");
    let upstream_arguments = prepared.arguments(written)?;
    // A default is for requests without the argument. Here the client asks for its values.
    let upstream_arguments = match edit::get(written, name) {
        Some(_) => upstream_arguments,
        None => edit::remove(&upstream_arguments, completed)
            .into_owned()
            .into(),
    };
    if upstream_arguments == "{}" && !members.contains("context") {
        return Ok(None);
    }
    Ok(Some(
        edit::set(completed_context, "arguments", &upstream_arguments).into_owned(),
    ))
}
