//! Methods and notifications of extensions that the gateway does not know.

use std::sync::Arc;

use mcp_vary::json::Members;
use mcp_vary::json::edit;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::method_names::is_of_the_protocol;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use tracing::{debug, info};

use super::RequestContext;
use super::forward::ForwardRequest;
use crate::pipeline::member_check;
use crate::pipeline::method_action::{MethodAction, method_not_found};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::initialize;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::session::client::Client;

impl RequestContext<'_> {
    /// Forwards a method of an extension to the server that declares one, if only one does.
    pub(crate) async fn extension_request(mut self) -> Result<Dispatch, RpcError> {
        let view = self.active_view()?;
        let server_snapshot = self.catalog.servers();
        let mut declaring = server_snapshot.filter(|(server, server_snapshot)| {
            let hello = server_snapshot.handshake.as_ref();
            self.is_source_of(view, *server)
                && hello
                    .is_some_and(|hello| initialize::declares_other_extensions(&hello.capabilities))
        });
        let (Some((server, _)), None) = (declaring.next(), declaring.next()) else {
            return Err(method_not_found(self.request.method));
        };
        drop(declaring);
        self.may_forward(view, server)?;
        self.count_read(view, server)?;
        let forwarding = ForwardRequest {
            server,
            ..ForwardRequest::default()
        };
        self.forward(view, forwarding).await
    }

    /// Refuses an unknown method if the view hides items, since the method could reach them.
    ///
    /// # Errors
    ///
    /// `-32601` unless the view hides nothing, or the operator allows the method for this server.
    fn may_forward(&self, view: ViewIndex, server: ServerIndex) -> Result<(), RpcError> {
        let config = server.get(&self.snapshot.config.servers);
        let mut allowed = config.iter().flat_map(|config| &config.allowed_methods);
        let is_allowed = allowed.any(|method| method == self.request.method);
        if is_allowed || !self.variant_set().config(view).hides_something() {
            return Ok(());
        }
        let counters = &self.snapshot.services.counters;
        counters.increment(Counter::RefusedExtensionMethods);
        let cut: String = self.request.method.chars().take(128).collect();
        if self.variant_set().access().is_some() {
            // The client would learn that something is hidden from it.
            let server = &*self.server_name(server);
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
        Err(self.with_active_variant(view, RpcError::method_not_found(why)))
    }

    /// The server that declares an extension that the client declares, too, if only one does.
    fn server_of_the_same_extension(&self, view: ViewIndex) -> Option<ServerIndex> {
        let extensions = edit::get(&self.client.forwardable, "extensions")?;
        let extensions = Members::parse(extensions).ok()?;
        let server_snapshot = self.catalog.servers();
        let mut sharing = server_snapshot.filter(|(server, server_snapshot)| {
            let hello = server_snapshot.handshake.as_ref();
            let declared =
                |id| hello.is_some_and(|hello| initialize::declares(&hello.capabilities, id));
            let mut ids = extensions.iter().map(|(id, _)| id);
            self.is_source_of(view, *server)
                && ids.any(|id| initialize::may_notify(id) && declared(id))
        });
        match (sharing.next(), sharing.next()) {
            (Some((server, _)), None) => Some(server),
            _ => None,
        }
    }

    /// Forwards a notification to its server, on the connection of the client's calls.
    async fn forward_extension_notification(&mut self) -> Result<(), RpcError> {
        let view = self.active_view()?;
        let Some(server) = self.server_of_the_same_extension(view) else {
            return Err(method_not_found(self.request.method));
        };
        let counters = &self.snapshot.services.counters;
        member_check::check(self.action, &self.request.params)
            .map_err(|refusal| refusal.into_counted_error(counters))?;
        self.may_forward(view, server)?;
        let dedicated = self.dedicated_connection(server).await?;
        let source = self.class.source(server);
        let line = Arc::clone(
            dedicated
                .as_ref()
                .map_or(&source.connection, DedicatedLease::connection),
        );
        let upstream = line.ready().await?;
        let capabilities_sent = self.sent_capabilities(server, upstream.handshake().era());
        let upward = UpstreamContext {
            revision: upstream.handshake().revision,
            capabilities: capabilities_sent
                .as_deref()
                .unwrap_or_else(|| upstream.capabilities()),
            progress_token: None,
            log_level: None,
        };
        self.relate_upward();
        let has_params = !self.request.params.members.is_empty();
        let params = era::to_upstream_params(&mut self.request.params, &upward);
        let params = (has_params || params != "{}").then_some(params);
        upstream
            .notify(self.request.method.to_owned(), params)
            .await?;
        dedicated.iter().for_each(DedicatedLease::mark_clean);
        Ok(())
    }
}

/// Forwards a notification of an extension to the server that declares the same one, unless that takes too long.
/// Notifications of the protocol, in any revision, and of other extensions are ignored as JSON-RPC requires.
pub(crate) async fn forward_notification(
    gateway: &Arc<ConfigSnapshot>,
    client: &Client,
    method: &str,
    params: Params<'_>,
) {
    if !is_of_an_extension(method) {
        return;
    }
    let carried = async {
        let class = gateway
            .pool
            .of_client(client.class.as_ref(), client.list_owner());
        let class = class.await?;
        let mut call = RequestContext {
            snapshot: gateway,
            catalog: class.catalog.current(),
            _connections: ConnectionUse::new(&class),
            class,
            client,
            request: IncomingRequest {
                id: "null",
                method,
                params,
                headers: None,
                message: None,
            },
            action: MethodAction::Extension,
        };
        call.forward_extension_notification().await
    };
    let patience = gateway.pool.servers.ready_timeout();
    match tokio::time::timeout(patience, carried).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => debug!(method, why = failure.message(), "notification not carried"),
        Err(_elapsed) => debug!(method, "notification given up: its server does not take it"),
    }
}

/// Whether a notification may be of an extension.
pub(crate) fn is_of_an_extension(method: &str) -> bool {
    const OF_THE_PROTOCOL: [&str; 4] = ["initialized", "cancelled", "progress", "message"];
    match method.strip_prefix("notifications/") {
        Some(rest) => {
            let mut known = OF_THE_PROTOCOL.iter();
            !is_of_the_protocol(rest) && !known.any(|known| known.eq_ignore_ascii_case(rest))
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
