//! One request: what each method checks, and how it is answered or forwarded.
//!
//! Some methods the gateway [answers](RequestContext::answer) itself. The others check that their item exists in the
//! active variant, replace the variant's names by the server's, and are [forwarded](forward) with a plan that turns the
//! answer into the client's.

mod access;
pub(crate) mod active_view;
mod completion;
pub(crate) mod directory;
mod dispatch;
mod extensions;
mod forward;
mod gateway_tools;
pub(crate) mod initialize;
mod lists;
mod logging;
mod prompts;
mod rates;
pub(crate) mod read_result;
mod resources;
pub(crate) mod response_plan;
mod round_trips;
mod starting;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
mod tools;
mod undeclared;

use std::sync::Arc;

use mcp_vary::error::{Error, Identifier};
use mcp_vary::json;
use mcp_vary_view::{ArgumentError, wrong_arguments};

pub(crate) use self::dispatch::Dispatch;
pub(crate) use self::forward::ForwardRequest;
use crate::pipeline::method_action::{MethodAction, method_not_found};
pub(crate) use crate::pipeline::methods::extensions::{forward_notification, is_of_an_extension};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::ServerSource;
use crate::pool::{CapabilityClass, ConnectionUse};
use crate::session::client::Client;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::meta;
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::{self, RpcError};

/// One request while it is handled.
pub(crate) struct RequestContext<'a> {
    pub(crate) snapshot: &'a Arc<ConfigSnapshot>,
    pub(crate) client: &'a Client,
    /// The class whose connections and lists the request uses.
    pub(crate) class: Arc<CapabilityClass>,
    /// Keeps its connections open meanwhile.
    pub(crate) _connections: ConnectionUse,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) request: IncomingRequest<'a>,
    pub(crate) action: MethodAction,
}

impl RequestContext<'_> {
    pub(crate) fn answer(&self, result: &str) -> Dispatch {
        let sent = era::to_client_result(result, self.client.era(), Caching::None);
        Dispatch::Done(response::result(self.request.id, sent.as_bytes()))
    }

    pub(crate) fn discover(&self) -> Result<Dispatch, RpcError> {
        let capabilities = self
            .request
            .params
            .meta
            .get(meta::CLIENT_CAPABILITIES)
            .unwrap_or("{}");
        let declared = self.snapshot.parse_capabilities(capabilities)?;
        let offers = &self.client.offers;
        let result = initialize::discover(self.snapshot, &self.catalog, &declared, offers);
        Ok(Dispatch::Done(response::result(
            self.request.id,
            result.as_bytes(),
        )))
    }

    /// The variants as the client's class sees them.
    pub(crate) fn variant_set(&self) -> &Arc<VariantSet> {
        &self.class.catalog.layout.variants
    }

    /// Refuses a method about items of a list that no server has. Servers that do not declare the list are asked once.
    async fn require_list(&mut self, kind: ListKind) -> Result<(), RpcError> {
        if !self.catalog.has_list(kind) {
            self.catalog = Box::pin(self.class.catalog.fresh(kind)).await;
        }
        match self.catalog.has_list(kind) {
            true => Ok(()),
            false => Err(method_not_found(self.request.method)),
        }
    }

    /// Finds an item of a list. If it is missing, the list is read again, also on the client's dedicated connections
    /// (SV-12). If the list cannot be read, the error says so.
    pub(crate) async fn find_item<T>(
        &self,
        (kind, name): (ListKind, &str),
        find: impl Fn(&Catalog) -> Option<T>,
        not_found: impl FnOnce() -> RpcError,
    ) -> Result<T, RpcError> {
        if let Some(found) = find(&self.catalog) {
            return Ok(found);
        }
        // The item may be one of a server that is not connected to for this client. The name does not matter here.
        let not_found = || self.connection_refusal().unwrap_or_else(not_found);
        let has_access_rules = self.variant_set().access().is_some();
        if has_access_rules {
            self.record_hidden(kind, name);
        }
        if let Some(found) = Box::pin(self.find_when_started((kind, name), &find)).await? {
            return Ok(found);
        }
        // What access rules hide is answered as what nobody has, and without a word to a server.
        if has_access_rules {
            return Err(not_found());
        }
        let failure = match self.class.catalog.find(kind, &find).await {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        let (classes, client) = (&self.snapshot.pool, self.client.list_owner());
        let again = classes.read_again(&self.class, client, kind).await;
        let found = again.and_then(|class| find(&class.catalog.current()));
        found.ok_or_else(|| failure.unwrap_or_else(not_found))
    }

    /// The sources of the servers that exist for the client.
    fn visible_sources(&self) -> impl Iterator<Item = &Arc<ServerSource>> {
        let sources = std::iter::zip(self.class.sources(), &self.catalog.snapshots);
        let visible = sources.filter(|(_, snapshot)| !snapshot.is_hidden);
        visible.map(|(source, _)| source)
    }

    /// Why a server is not connected to for the clients of this class, if there is one.
    fn connection_refusal(&self) -> Option<RpcError> {
        let is_unknown = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
        let mut sources = self.visible_sources().filter(is_unknown);
        sources.find_map(|source| source.refusal())
    }

    /// The error for an item that the variant does not have. The request is counted as refused.
    pub(crate) fn not_found(&self, view: ViewIndex, what: Identifier) -> RpcError {
        let counter = match &what {
            Identifier::Tool(_) => Counter::RefusedUnknownTools,
            Identifier::Prompt(_) => Counter::RefusedUnknownPrompts,
            _ => Counter::RefusedUnknownResources,
        };
        self.snapshot.services.counters.increment(counter);
        let active = self.active_variant(view);
        let era = self.client.era();
        RpcError::from(&Error::NotFound {
            identifier: what,
            active,
            era,
        })
    }

    /// Adds the active variant to the data of an error.
    pub(crate) fn with_active_variant(&self, view: ViewIndex, failure: RpcError) -> RpcError {
        match self.active_variant(view) {
            Some(id) => failure.with_data(mcp_vary::error::with_active_variant(None, &id)),
            None => failure,
        }
    }

    /// The only source of a view: that of a variant that a server offers itself, or the only server. `None` if the view
    /// has items of several.
    fn only_source(&self, view: ViewIndex) -> Option<ServerIndex> {
        let sources = self.class.sources();
        if self.variant_set().config(view).is_upstream() {
            let id = self.snapshot.variant_id(view).as_str();
            return ServerIndex::find(sources, |source| source.name() == id);
        }
        let is_configured = |source: &&Arc<ServerSource>| !source.is_upstream_variant();
        let configured = sources.iter().filter(is_configured).count();
        (configured == 1).then_some(ServerIndex::FIRST)
    }

    /// Whether requests of a view can go to a source: that of its variant, if a server offers that itself, else a server.
    fn is_source_of(&self, view: ViewIndex, server: ServerIndex) -> bool {
        match self.variant_set().config(view).is_upstream() {
            true => self.only_source(view) == Some(server),
            false => !self.class.source(server).is_upstream_variant(),
        }
    }

    fn arguments(&self) -> Result<&str, RpcError> {
        if !self.request.params.members.contains("arguments") {
            return Ok("{}");
        }
        self.request.params.object("arguments")
    }

    /// Replaces the name of a tool or prompt by the server's.
    fn rename_to_upstream(&mut self, name: &str, place: &ItemRef) {
        if *place.upstream_name != *name {
            let upstream_name = json::string(&place.upstream_name);
            self.request.params.members.set("name", upstream_name);
        }
    }
}

impl RequestContext<'_> {
    /// The error for arguments that a prompt does not take.
    fn invalid_arguments(&self, faults: &[ArgumentError]) -> RpcError {
        match ParamsError::of_arguments(faults) {
            Some(refusal) => refusal.into_counted_error(&self.snapshot.services.counters),
            None => RpcError::invalid_params(wrong_arguments(faults)),
        }
    }
}
