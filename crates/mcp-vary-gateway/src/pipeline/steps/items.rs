//! Finds the item that a request names.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use mcp_vary::error::Identifier;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Prompt;
use mcp_vary_view::{ArgumentError, wrong_arguments};
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;

use super::access;
use crate::pipeline::method_action::method_not_found;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::pool::source::ServerSource;

/// Refuses a method about items of a list that no server has. Servers that do not declare the list are asked once.
pub(crate) async fn require_list(
    context: &mut RequestContext<'_>,
    kind: ListKind,
) -> Result<(), RpcError> {
    if !context.catalog.has_list(kind) {
        context.catalog = Box::pin(context.class.catalog.fresh(kind)).await;
    }
    if context.catalog.has_list(kind) {
        Ok(())
    } else {
        Err(method_not_found(context.request.method))
    }
}

/// Finds an item of a list. If it is missing, the list is read again, also on the client's dedicated connections
/// (SV-12). If the list cannot be read, the error says so.
pub(crate) async fn find<T>(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
    find: impl Fn(&Catalog) -> Option<T>,
    not_found: impl FnOnce() -> RpcError,
) -> Result<T, RpcError> {
    if let Some(found) = find(&context.catalog) {
        return Ok(found);
    }
    // The item may be one of a server that is not connected to for this client. The name does not matter here.
    let not_found = || connection_refusal(context).unwrap_or_else(not_found);
    let has_access_rules = context.variant_set().access().is_some();
    if has_access_rules {
        access::record_hidden(context, kind, name);
    }
    if let Some(found) = Box::pin(find_when_started(context, kind, name, &find)).await? {
        return Ok(found);
    }
    // What access rules hide is answered as what nobody has, and without a request to a server.
    if has_access_rules {
        return Err(not_found());
    }
    let failure = match context.class.catalog.find(kind, &find).await {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let (pool, owner) = (&context.snapshot.pool, context.client.list_owner());
    let read_again = pool.read_again(&context.class, owner, kind).await;
    let found = read_again.and_then(|class| find(&class.catalog.current()));
    found.ok_or_else(|| failure.unwrap_or_else(not_found))
}

/// Why a server is not connected to for the clients of this class, if there is one.
fn connection_refusal(context: &RequestContext<'_>) -> Option<RpcError> {
    let is_unknown = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
    let mut sources = context.visible_sources().filter(is_unknown);
    sources.find_map(|source| source.refusal())
}

/// Finds an item that a server lists once it is ready. Waits for the servers that are starting, for `start-wait` at
/// most; `None` if all of them are ready or down and have no such item.
///
/// Servers of which access rules allow the client nothing do not count, so that it is answered as if they did not
/// exist.
///
/// # Errors
///
/// `-32603` when a server is still starting after that, and when the name is one of a server that is down and was
/// never reached.
async fn find_when_started<T>(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
    find: &impl Fn(&Catalog) -> Option<T>,
) -> Result<Option<T>, RpcError> {
    let starting = starting_servers(context);
    if starting.is_empty() {
        return refuse_if_down(context, name).await;
    }
    let readings = starting.iter().map(|source| source.first_reading());
    let mut readings: FuturesUnordered<_> = readings.collect();
    let search = async {
        while readings.next().await.is_some() {
            let catalog = context.class.catalog.fresh(kind).await;
            if let Some(found) = find(&catalog) {
                return Some(found);
            }
        }
        None
    };
    let limit = context.snapshot.config.start_wait;
    let found = tokio::time::timeout(limit, search).await;
    match (found.unwrap_or_default(), &starting_servers(context)[..]) {
        (Some(found), _) => Ok(Some(found)),
        (None, []) => refuse_if_down(context, name).await,
        (None, starting) => Err(still_starting(name, starting)),
    }
}

/// Refuses a name with the prefix of a server that is down and was never reached.
async fn refuse_if_down<T>(
    context: &RequestContext<'_>,
    name: &str,
) -> Result<Option<T>, RpcError> {
    let layout = &context.class.catalog.layout;
    let servers = context.class.sources().len();
    let named = context.visible_sources().filter_map(|source| {
        let prefix = layout.name_prefix(&source.server_name, servers);
        let is_its = !prefix.is_empty() && name.starts_with(&prefix);
        is_its.then_some((prefix.len(), source))
    });
    let Some((_, source)) = named.max_by_key(|(length, _)| *length) else {
        return Ok(None);
    };
    if source.snapshot().handshake.is_none() {
        source.connection.ready().await?;
    }
    Ok(None)
}

/// The servers whose first attempt to connect is running, and that exist for the client.
fn starting_servers<'a>(context: &'a RequestContext<'_>) -> Vec<&'a Arc<ServerSource>> {
    let is_starting = |it: &&Arc<ServerSource>| it.is_starting() && !it.is_upstream_variant();
    context.visible_sources().filter(is_starting).collect()
}

fn still_starting(name: &str, starting: &[&Arc<ServerSource>]) -> RpcError {
    let shown = starting.iter().take(SHOWN_SERVERS);
    let names: Vec<_> = shown.map(|it| format!("`{}`", it.server_name)).collect();
    let more = match starting.len().saturating_sub(SHOWN_SERVERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (servers, are) = match starting.len() {
        1 => ("server", "is"),
        _ => ("servers", "are"),
    };
    let names = names.join(", ");
    RpcError::internal(format!(
        "`{}` is not known yet: {servers} {names}{more} {are} still starting; try again in a moment",
        excerpt(name.as_bytes(), SHOWN_CHARACTERS)
    ))
}

/// The prompt that the view lists as `name`.
pub(crate) async fn find_prompt(scope: ViewScope<'_>, name: &str) -> Result<Arc<Prompt>, RpcError> {
    let listed = |catalog: &Catalog| catalog.prompt(scope.view, name).cloned();
    let not_found = || scope.not_found(Identifier::Prompt(name.to_owned()));
    find(&scope, ListKind::Prompts, name, listed, not_found).await
}

/// The error for arguments that a prompt does not take.
pub(crate) fn invalid_prompt_arguments(
    context: &RequestContext<'_>,
    errors: &[ArgumentError],
) -> RpcError {
    match ParamsError::of_arguments(errors) {
        Some(refusal) => refusal.into_counted_error(context.counters()),
        None => RpcError::invalid_params(wrong_arguments(errors)),
    }
}

/// The servers that an error names.
const SHOWN_SERVERS: usize = 3;
/// The characters of a name that an error repeats.
const SHOWN_CHARACTERS: usize = 100;
