//! Methods and notifications of extensions that the gateway does not know.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_vary::json::{self, Members, edit};
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::extension_methods::{belongs_to, known_extension};
use mcp_vary_wire::response::RpcError;
use tracing::{debug, info};

use crate::pipeline::extension_owners::{ExtensionOwners, is_hidden};
use crate::pipeline::member_check;
use crate::pipeline::request::{IncomingRequest, MethodAction, method_not_found};
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pipeline::steps::forward::{ForwardRequest, RequestConnection, forward};
use crate::pipeline::steps::{forward, policy, skills, task_mode, view};
use mcp_vary_session::client::Client;

/// Forwards a method of an extension to the server that owns it.
pub(crate) async fn request(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let scope = view::enter(context).await?;
    let owners = ExtensionOwners::new(&scope.catalog, &scope.snapshot.config);
    let view = scope.view;
    let servers = owners.servers_of(scope.request.method, |_| true);
    if known_extension(scope.request.method).is_some() {
        let passes = |server: &ServerIndex| check_allowed(scope, *server).is_ok();
        let passing: Vec<ServerIndex> = servers.into_iter().filter(passes).collect();
        if passing.is_empty() {
            return Err(unknown_method(scope));
        }
        return skills::request(context, view, &passing).await;
    }
    let named = match servers.len() {
        0 | 1 => None,
        _ => Some(named_item(scope, &servers).ok_or_else(|| unknown_method(scope))?),
    };
    let of_item = named.as_ref().map(|(_, item_ref)| item_ref.server);
    let server = of_item.or(servers.first().copied());
    let server = server.ok_or_else(|| unknown_method(scope))?;
    check_allowed(scope, server)?;
    policy::count_read(scope, server).await?;
    if let Some((member, item_ref)) = named {
        let upstream_name = json::string(&item_ref.upstream_name);
        context.request.params.members.set(member, upstream_name);
    }
    forward(context, ForwardRequest::new(view, server)).await
}

/// The item that the request names, if one of `servers` lists it in the view; with the member that names it.
fn named_item(
    scope: ViewScope<'_>,
    servers: &BTreeSet<ServerIndex>,
) -> Option<(&'static str, ItemRef)> {
    const MEMBERS: [(&str, ListKind); 3] = [
        ("uri", ListKind::Resources),
        ("name", ListKind::Tools),
        ("name", ListKind::Prompts),
    ];
    MEMBERS.into_iter().find_map(|(member, kind)| {
        let id = scope.request.params.members.get_str(member)?;
        let item_ref = scope.catalog.view(kind, scope.view)?.item_ref(&id)?;
        let is_of_extension = servers.contains(&item_ref.server);
        is_of_extension.then(|| (member, item_ref.clone()))
    })
}

fn unknown_method(scope: ViewScope<'_>) -> RpcError {
    scope.with_active_variant(method_not_found(scope.request.method))
}

/// Refuses an unknown method if the view hides items, since the method could reach them.
///
/// # Errors
///
/// `-32601` unless the view hides nothing, or the operator allows the method for this server.
fn check_allowed(scope: ViewScope<'_>, server: ServerIndex) -> Result<(), RpcError> {
    let config = server.get(&scope.snapshot.config.servers);
    let mut allowed = config.iter().flat_map(|config| &config.allowed_methods);
    let is_allowed = allowed.any(|method| method == scope.request.method);
    let name = scope.server_name(server);
    if is_allowed || !is_hidden(scope.config(), &name, scope.request.method) {
        return Ok(());
    }
    scope.counters().increment(Counter::RefusedExtensionMethods);
    let cut: String = scope.request.method.chars().take(128).collect();
    if scope.variant_set().access().is_some() {
        // The client would learn that something is hidden from it.
        let server = &*scope.server_name(server);
        let method = cut.as_str();
        info!(
            server,
            method,
            "method of an extension refused: it could reach what access rules hide; list it in `allow-methods` to let it pass"
        );
        return Err(unknown_method(scope));
    }
    let why = format!(
        "Method not found: {cut}: it could reach what the active view hides; the operator can let it pass \
         with `allow-methods`"
    );
    Err(scope.with_active_variant(RpcError::method_not_found(why)))
}

/// The servers that declare an extension of the notification which the client declares, too. One that names no extension
/// goes to the only server that it can be for.
fn notified_servers(scope: ViewScope<'_>) -> BTreeSet<ServerIndex> {
    let declared = edit::get(&scope.client.forwardable, "extensions").unwrap_or("{}");
    let declared = Members::parse(declared).unwrap_or_default();
    let owners = ExtensionOwners::new(&scope.catalog, &scope.snapshot.config);
    let method = scope.request.method;
    let servers = owners.servers_of(method, |id| declared.contains(id));
    let names_extension = declared.iter().any(|(id, _)| belongs_to(method, id));
    if names_extension || servers.len() == 1 {
        servers
    } else {
        BTreeSet::new()
    }
}

/// Sends a notification to the servers of its extension.
async fn notify(context: &mut RequestContext<'_>) -> Result<(), RpcError> {
    let scope = view::enter(context).await?;
    let servers = notified_servers(scope);
    member_check::check(scope.action, &scope.request.params)
        .map_err(|refusal| refusal.into_counted_error(scope.counters()))?;
    for server in &servers {
        check_allowed(scope, *server)?;
    }
    let params = std::mem::take(&mut context.request.params);
    for server in servers {
        context.request.params = params.clone();
        notify_server(context, server).await?;
    }
    Ok(())
}

/// Sends a notification to `server`, on the connection of the client's calls.
async fn notify_server(
    context: &mut RequestContext<'_>,
    server: ServerIndex,
) -> Result<(), RpcError> {
    let leased = RequestConnection::to(context, server).await?;
    let upstream = leased.connection.ready().await?;
    let capabilities = forward::sent_capabilities(context, server, upstream.handshake().era());
    let upstream_context = UpstreamContext {
        revision: upstream.handshake().revision,
        capabilities: capabilities
            .as_deref()
            .unwrap_or_else(|| upstream.capabilities()),
        progress_token: None,
        log_level: None,
    };
    task_mode::rename_related_task(context);
    let has_params = !context.request.params.members.is_empty();
    let params = era::to_upstream_params(&mut context.request.params, &upstream_context);
    let params = (has_params || params != "{}").then_some(params);
    let method = context.request.method.to_owned();
    upstream.notify(method, params).await?;
    if let Some(dedicated) = &leased.dedicated {
        dedicated.mark_clean();
    }
    Ok(())
}

/// Forwards a notification of an extension to the servers that declare the same one, unless that takes too long.
/// Those of other extensions are ignored as JSON-RPC requires.
pub(crate) async fn forward_notification(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Arc<Client>,
    request: IncomingRequest<'_>,
) {
    let method = request.method;
    let forwarded = async {
        let action = MethodAction::Extension;
        let context = RequestContext::open(snapshot, client, request, action).await;
        notify(&mut context?).await
    };
    match tokio::time::timeout(snapshot.pool.servers.ready_timeout(), forwarded).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => debug!(method, why = failure.message(), "notification not carried"),
        Err(_elapsed) => debug!(method, "notification given up: its server does not take it"),
    }
}
