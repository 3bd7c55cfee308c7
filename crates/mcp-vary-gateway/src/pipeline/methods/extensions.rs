//! Methods and notifications of extensions that the gateway does not know.

use std::sync::Arc;

use mcp_vary::json::{Members, edit};
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::method_names::is_of_the_protocol;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use tracing::{debug, info};

use crate::pipeline::forwarded_extensions::{declares, declares_unknown, may_notify};
use crate::pipeline::member_check;
use crate::pipeline::request::{IncomingRequest, MethodAction, method_not_found};
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pipeline::steps::forward::{ForwardRequest, RequestConnection, forward};
use crate::pipeline::steps::{forward, policy, task_mode, view};
use mcp_vary_session::client::Client;

/// Forwards a method of an extension to the server that declares one, if only one does.
pub(crate) async fn request(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let scope = view::enter(context).await?;
    let declares_one = |handshake: &Handshake| declares_unknown(&handshake.capabilities);
    let server = only_server(scope, declares_one);
    let server = server.ok_or_else(|| method_not_found(scope.request.method))?;
    check_allowed(scope, server)?;
    policy::count_read(scope, server).await?;
    let forwarding = ForwardRequest::new(scope.view, server);
    forward(context, forwarding).await
}

/// The server that `declares` what a message needs, if only one does.
fn only_server(scope: ViewScope<'_>, declares: impl Fn(&Handshake) -> bool) -> Option<ServerIndex> {
    let servers = scope.catalog.servers();
    let mut declaring =
        servers.filter(|(_, snapshot)| snapshot.handshake.as_deref().is_some_and(&declares));
    match (declaring.next(), declaring.next()) {
        (Some((server, _)), None) => Some(server),
        _ => None,
    }
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
    if is_allowed || !scope.config().hides_something() {
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
        return Err(method_not_found(method));
    }
    let why = format!(
        "Method not found: {cut}: it could reach what the active view hides; the operator can let it pass \
         with `allow-methods`"
    );
    Err(scope.with_active_variant(RpcError::method_not_found(why)))
}

/// The server that declares an extension that the client declares, too, if only one does.
fn server_of_same_extension(scope: ViewScope<'_>) -> Option<ServerIndex> {
    let extensions = edit::get(&scope.client.forwardable, "extensions")?;
    let extensions = Members::parse(extensions).ok()?;
    only_server(scope, |handshake| {
        let mut ids = extensions.iter().map(|(id, _)| id);
        ids.any(|id| may_notify(id) && declares(&handshake.capabilities, id))
    })
}

/// Sends a notification to its server, on the connection of the client's calls.
async fn notify(context: &mut RequestContext<'_>) -> Result<(), RpcError> {
    let scope = view::enter(context).await?;
    let server = server_of_same_extension(scope);
    let server = server.ok_or_else(|| method_not_found(scope.request.method))?;
    member_check::check(scope.action, &scope.request.params)
        .map_err(|refusal| refusal.into_counted_error(scope.counters()))?;
    check_allowed(scope, server)?;
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

/// Forwards a notification of an extension to the server that declares the same one, unless that takes too long.
/// Notifications of the protocol, in any revision, and of other extensions are ignored as JSON-RPC requires.
pub(crate) async fn forward_notification(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Arc<Client>,
    method: &str,
    params: Params<'_>,
) {
    if !is_of_an_extension(method) {
        return;
    }
    let request = IncomingRequest {
        id: "null",
        method,
        params,
        headers: None,
        message: None,
    };
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

/// Whether a notification may be of an extension.
pub(crate) fn is_of_an_extension(method: &str) -> bool {
    const OF_THE_PROTOCOL: [&str; 4] = ["initialized", "cancelled", "progress", "message"];
    match method.strip_prefix("notifications/") {
        Some(name) => {
            let mut known = OF_THE_PROTOCOL.iter();
            !is_of_the_protocol(name) && !known.any(|known| known.eq_ignore_ascii_case(name))
        }
        None => !is_of_the_protocol(method),
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_an_extension;

    #[track_caller]
    fn is_carried(methods: &[&str], expected: bool) {
        for method in methods {
            assert_eq!(is_of_an_extension(method), expected, "{method}");
        }
    }

    #[test]
    fn what_may_be_the_protocols_own_is_not_carried() {
        is_carried(
            &["notifications/ledger/changed", "com.example/changed"],
            true,
        );
        is_carried(
            &[
                "notifications/initialized",
                "notifications/cancelled",
                "notifications/progress",
            ],
            false,
        );
        is_carried(
            &[
                "notifications/tools/list_changed",
                "notifications/tasks",
                "notifications/",
                "tools/call",
                "Tools/call",
                " tools/call",
                "tools\0/call",
                "tool\u{17f}/call",
                "tools:call",
                "./tools/call",
                "x/../tools/call",
                "Notifications/tools/call",
                "notifications/Cancelled",
                "",
            ],
            false,
        );
    }
}
