//! One request while it is handled, and the view that it runs under.

use crate::pipeline::exchange::InFlightRequest;
use crate::pipeline::request::{IncomingRequest, MethodAction, method_not_found};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::ServerSource;
use crate::pool::{CapabilityClass, ConnectionUse};
use crate::subscriptions::ListenStream;
use mcp_vary::error::{Error, Identifier, with_active_variant};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_session::InFlightGuard;
use mcp_vary_session::client::Client;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use std::ops::Deref;
use std::sync::Arc;

/// One request while it is handled.
pub(crate) struct RequestContext<'a> {
    pub(crate) snapshot: &'a Arc<ConfigSnapshot>,
    pub(crate) client: &'a Arc<Client>,
    /// The class whose connections and lists the request uses.
    pub(crate) class: Arc<CapabilityClass>,
    /// Keeps the connections of the class open meanwhile.
    _connections: ConnectionUse,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) request: IncomingRequest<'a>,
    pub(crate) action: MethodAction,
}

impl<'a> RequestContext<'a> {
    /// Begins to handle `request` of `client`.
    ///
    /// # Errors
    ///
    /// When the connections of the client's class cannot be opened.
    pub(crate) async fn open(
        snapshot: &'a Arc<ConfigSnapshot>,
        client: &'a Arc<Client>,
        request: IncomingRequest<'a>,
        action: MethodAction,
    ) -> Result<Self, RpcError> {
        let pool = &snapshot.pool;
        let owner = client.list_owner();
        if let Some(session) = &client.session {
            pool.note_session(session);
        }
        let class = pool.of_client(client.class.as_ref(), owner).await?;
        Ok(Self {
            snapshot,
            client,
            catalog: class.catalog.current(),
            _connections: ConnectionUse::new(&class),
            class,
            request,
            action,
        })
    }

    /// Refuses a method about items of a list that no server has. Servers that do not declare the list are asked once.
    pub(crate) async fn require_list(&mut self, kind: ListKind) -> Result<(), RpcError> {
        if !self.catalog.has_list(kind) {
            self.catalog = Box::pin(self.class.catalog.fresh(kind)).await;
        }
        if self.catalog.has_list(kind) {
            Ok(())
        } else {
            Err(method_not_found(self.request.method))
        }
    }

    /// The response with a `result` that is already written for the client's era.
    pub(crate) fn respond(&self, result: &[u8]) -> Dispatch {
        Dispatch::Done(response::result(self.request.id, result))
    }

    /// The response with a `result` of the gateway, to a method whose results have no caching hints.
    pub(crate) fn answer(&self, result: &str) -> Dispatch {
        self.respond(era::to_client_result(result, self.client.era(), Caching::None).as_bytes())
    }

    /// The response with a `result` of the gateway that clients must not cache.
    pub(crate) fn answer_uncached(&self, result: &str) -> Dispatch {
        self.respond(era::to_client_result(result, self.client.era(), Caching::Never).as_bytes())
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.snapshot.services.counters
    }

    /// The variants as the client's class sees them.
    pub(crate) fn variant_set(&self) -> &Arc<VariantSet> {
        &self.class.catalog.layout.variants
    }

    /// The sources of the servers that exist for the client.
    pub(crate) fn visible_sources(&self) -> impl Iterator<Item = &Arc<ServerSource>> {
        let sources = std::iter::zip(self.class.sources(), &self.catalog.snapshots);
        let visible = sources.filter(|(_, snapshot)| !snapshot.is_hidden);
        visible.map(|(source, _)| source)
    }

    /// The name of a server, which rules and limits go by.
    pub(crate) fn server_name(&self, server: ServerIndex) -> Arc<str> {
        Arc::clone(&self.class.source(server).name)
    }

    /// Whether what a server begins for a client is in a program, a pipe or a session that only this replica has.
    pub(crate) fn has_state_here(&self, server: ServerIndex) -> bool {
        let handshake = self.catalog.handshake(server);
        let is_legacy = handshake.is_some_and(|handshake| handshake.era() == Era::Legacy);
        let config = server.get(&self.snapshot.config.servers);
        is_legacy || config.is_some_and(|config| config.target.is_local())
    }

    /// The arguments of the request, JSON text.
    ///
    /// # Errors
    ///
    /// When they are not an object.
    pub(crate) fn arguments(&self) -> Result<&str, RpcError> {
        if !self.request.params.members.contains("arguments") {
            return Ok("{}");
        }
        self.request.params.object("arguments")
    }

    /// The cursor of the request, JSON text. Some clients write an empty one for the first page.
    pub(crate) fn cursor(&self) -> Option<&str> {
        let cursor = self.request.params.members.get("cursor");
        cursor.filter(|cursor| *cursor != r#""""#)
    }

    /// Replaces the name of a tool or prompt by the server's.
    pub(crate) fn rename_to_upstream(&mut self, name: &str, item_ref: &ItemRef) {
        if *item_ref.upstream_name != *name {
            let upstream_name = json::string(&item_ref.upstream_name);
            self.request.params.members.set("name", upstream_name);
        }
    }

    /// The request in `view`.
    pub(crate) fn in_view(&self, view: ViewIndex) -> ViewScope<'_> {
        ViewScope {
            context: self,
            view,
        }
    }
}

/// A request in the view that it runs under.
///
/// For most methods [`view::enter`](crate::pipeline::steps::view::enter) makes it, so that what takes one
/// cannot run before the variant is selected and counted. A request about a task runs under the view of the task.
#[derive(Clone, Copy)]
pub(crate) struct ViewScope<'a> {
    pub(crate) context: &'a RequestContext<'a>,
    pub(crate) view: ViewIndex,
}

impl<'a> Deref for ViewScope<'a> {
    type Target = RequestContext<'a>;

    fn deref(&self) -> &Self::Target {
        self.context
    }
}

impl<'a> ViewScope<'a> {
    /// The configuration of the view's variant.
    pub(crate) fn config(self) -> &'a VariantConfig {
        self.context.variant_set().config(self.view)
    }

    /// The name of a tool of the gateway, if the view lists it.
    pub(crate) fn gateway_tool_name(self, tool: GatewayTool) -> Option<&'a Arc<str>> {
        let tools = self.context.catalog.view(ListKind::Tools, self.view)?;
        tools.gateway_tool_name(tool)
    }

    /// The id of the active variant, unless variants are off.
    pub(crate) fn active_variant(self) -> Option<VariantId> {
        let has_variants = self.snapshot.config.variants;
        has_variants.then(|| self.snapshot.variant_id(self.view).clone())
    }

    /// The id of the active variant, for the errors of servers: a client that neither declared server variants nor
    /// selected one gets them as they are.
    pub(crate) fn variant_for_errors(self) -> Option<VariantId> {
        let is_selected = self.request.params.meta.contains(SERVER_VARIANT_META);
        let knows_variants = self.client.knows_variants || is_selected;
        knows_variants.then(|| self.active_variant())?
    }

    /// Adds the active variant to the data of an error.
    pub(crate) fn with_active_variant(self, failure: RpcError) -> RpcError {
        match self.active_variant() {
            Some(id) => {
                let data = with_active_variant(failure.data(), &id);
                failure.with_data(data)
            }
            None => failure,
        }
    }

    /// The error for an item that the variant does not have. The request is counted as refused.
    pub(crate) fn not_found(self, identifier: Identifier) -> RpcError {
        self.counters().increment(match &identifier {
            Identifier::Tool(_) => Counter::RefusedUnknownTools,
            Identifier::Prompt(_) => Counter::RefusedUnknownPrompts,
            _ => Counter::RefusedUnknownResources,
        });
        if let (Identifier::Tool(_), Some(record)) = (&identifier, self.client.observation.record())
        {
            record.set_unknown_tool();
        }
        RpcError::from(&Error::NotFound {
            identifier,
            active: self.active_variant(),
            era: self.client.era(),
        })
    }

    /// The only server; `None` if there are several.
    pub(crate) fn only_server(self) -> Option<ServerIndex> {
        (self.class.sources().len() == 1).then_some(ServerIndex::FIRST)
    }
}

/// How a request goes on after its method was handled.
pub(crate) enum Dispatch {
    /// The gateway answered.
    Done(Reply),
    /// The server works on it.
    InFlight(Box<InFlightRequest>),
    /// The client is notified of changes until it cancels the request or the gateway ends the stream.
    Listen(ListeningRequest),
}

/// A request whose client is notified of changes.
pub(crate) struct ListeningRequest {
    pub(crate) stream: Box<ListenStream>,
    /// The registration in its session; `None` for modern HTTP.
    pub(crate) guard: Option<InFlightGuard>,
}
