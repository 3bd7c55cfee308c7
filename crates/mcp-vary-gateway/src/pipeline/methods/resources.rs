//! `resources/read`, and which server a resource is read from.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::resource::ResourceTarget;
use mcp_vary_results::any_rule_matches;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_results::result_store::{ReadError, ResultStore};
use mcp_vary_view::{UriRejection, check_uri};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::response::{self, RpcError};

use super::RequestContext;
use super::forward::ForwardRequest;
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::methods::Dispatch;

impl RequestContext<'_> {
    pub(crate) async fn read(mut self) -> Result<Dispatch, RpcError> {
        let uri = self.request.params.string("uri").unwrap_or_default();
        if ResultStore::is_uri(&uri) {
            return self.read_stored(uri).await;
        }
        let undeclared = self.requires_resources().await?;
        let uri = self.request.params.string("uri")?;
        let view = self.active_view()?;
        let rules = &self.snapshot.config.resource_results.0;
        let located = self.located_resource(view, &uri, Identifier::Resource);
        let (server, upstream_uri) = located.await?;
        self.check_resource(view, server, &upstream_uri)?;
        self.count_read(view, server)?;
        let caching = match any_rule_matches(rules, &self.server_name(server), &upstream_uri) {
            true => Caching::Never,
            false => self.class.catalog.layout.caching,
        };
        if upstream_uri != uri {
            self.request
                .params
                .members
                .set("uri", json::string(&upstream_uri));
        }
        let origin = LinkSource {
            kind: ListKind::Resources,
            upstream_name: (&*upstream_uri).into(),
        };
        let forwarding = ForwardRequest {
            server,
            name: Some(upstream_uri),
            binding: self.request_binding(&uri),
            plan: ResponsePlan {
                origin: Some(origin),
                caching,
                resource_rules: Arc::clone(rules),
                renders_json: self.snapshot.config.negotiation,
                shape: self.resource_result_shape(view, server),
                undeclared,
                ..ResponsePlan::default()
            },
            ..ForwardRequest::default()
        };
        self.forward(view, forwarding).await
    }

    /// Checks the read of a resource, listed or not, by its URI on the server.
    pub(super) fn check_resource(
        &self,
        view: ViewIndex,
        server: ServerIndex,
        upstream_uri: &str,
    ) -> Result<(), RpcError> {
        let place = ItemRef {
            server,
            upstream_name: upstream_uri.into(),
        };
        self.check_access(view, (ListKind::Resources, &place), None)
    }

    /// Reads a stored part of a shortened result. It belongs to no server, and to no view.
    async fn read_stored(&self, uri: String) -> Result<Dispatch, RpcError> {
        let view = self.active_view()?;
        self.may_read_stored(view, &uri).await?;
        match self
            .snapshot
            .services
            .result_store
            .read(&uri, self.result_reader())
        {
            Ok(rest) => {
                let era = self.client.era();
                let contents = rest.contents();
                let sent = era::to_client_result(&contents, era, Caching::Never);
                Ok(Dispatch::Done(response::result(
                    self.request.id,
                    sent.as_bytes(),
                )))
            }
            Err(ReadError::NotFound) => Err(self.not_found(view, Identifier::Resource(uri))),
            Err(ReadError::Part(error)) => Err(RpcError::invalid_params(format!("`uri`: {error}"))),
        }
    }

    /// The server of the resource `uri`, and the server's URI: the server that lists it, has a template for it, or linked to
    /// it in a result. A variant of a single server that selects no resources shows all of them.
    ///
    /// # Errors
    ///
    /// `-32602` with the fix when `uri` is ambiguous. The error about `what` when the variant has no such resource.
    pub(crate) async fn located_resource(
        &self,
        view: ViewIndex,
        uri: &str,
        what: impl FnOnce(String) -> Identifier,
    ) -> Result<(ServerIndex, String), RpcError> {
        let variant_set = self.variant_set();
        let only = self.only_source(view);
        let only = only.filter(|_| !variant_set.config(view).selects_resources());
        if let Some(only) = only.filter(|_| !variant_set.checks_uris(view)) {
            return Ok((only, uri.to_owned()));
        }
        let find = |catalog: &Catalog| {
            let address = catalog.resolve_resource(variant_set, view, uri)?;
            let listed = address.listed_by;
            let server = listed.or_else(|| match (&address.fault, only) {
                (None, Some(only)) => Some(only),
                _ => self.unlisted_resource(catalog, view, &address),
            });
            Some((server?, address.upstream_uri.into_owned()))
        };
        self.find_item((ListKind::Resources, uri), find, || {
            self.no_such_uri(view, uri, what)
        })
        .await
    }

    /// The server of a resource that no server lists.
    fn unlisted_resource(
        &self,
        catalog: &Catalog,
        view: ViewIndex,
        address: &ResourceTarget<'_>,
    ) -> Option<ServerIndex> {
        let upstream_uri = &*address.upstream_uri;
        // A resource that is not listed must be selected by its own URI.
        let shows = |server: ServerIndex| self.allows_unlisted(view, upstream_uri, server);
        let fault = address.fault.as_ref();
        let interface = || {
            let view = catalog.view(ListKind::Tools, view)?;
            view.ui_resource_server(upstream_uri, shows)
        };
        let linked = || self.linked_resource(catalog, view, upstream_uri, shows);
        let template = catalog.checked_template_server(view, address, shows);
        let known = template.or_else(interface);
        // A server may spell the link in any equivalent way.
        known.or_else(|| {
            fault
                .is_none_or(UriRejection::is_spelling)
                .then(linked)
                .flatten()
        })
    }

    pub(super) fn allows_unlisted(
        &self,
        view: ViewIndex,
        upstream_uri: &str,
        server: ServerIndex,
    ) -> bool {
        let face = self.variant_set().config(view);
        face.allows_unlisted(upstream_uri, &self.server_name(server))
    }

    /// The error for a `uri` that the variant does not have, or that is ambiguous.
    pub(crate) fn no_such_uri(
        &self,
        view: ViewIndex,
        uri: &str,
        what: impl FnOnce(String) -> Identifier,
    ) -> RpcError {
        let catalog = self.class.catalog.current();
        let address = catalog.resolve_resource(self.variant_set(), view, uri);
        let fault = match address {
            Some(address) => address.fault,
            None => check_uri(uri).err(),
        };
        let Some(fault) = fault else {
            return self.not_found(view, what(uri.to_owned()));
        };
        let counters = &self.snapshot.services.counters;
        counters.increment(Counter::RefusedUris);
        let refused = RpcError::invalid_params(format!("`uri` {fault}"));
        self.with_active_variant(view, refused)
    }

    /// The first server that `may` have the resource, and whose visible items linked to it.
    fn linked_resource(
        &self,
        catalog: &Catalog,
        view: ViewIndex,
        upstream_uri: &str,
        may: impl Fn(ServerIndex) -> bool,
    ) -> Option<ServerIndex> {
        let (links, servers) = (
            &self.snapshot.services.exchange.link_index,
            &self.snapshot.config.servers,
        );
        let shows = |server: ServerIndex, origin: &LinkSource| {
            let place = ItemRef {
                server,
                upstream_name: Arc::clone(&origin.upstream_name),
            };
            let list = catalog.view(origin.kind, view);
            let is_listed = list.is_some_and(|list| list.contains(&place));
            let is_of_template = || {
                origin.kind == ListKind::Resources
                    && catalog.template_server(view, &origin.upstream_name) == Some(server)
                    && self.allows_unlisted(view, &origin.upstream_name, server)
            };
            is_listed || is_of_template()
        };
        let mut servers = ServerIndex::enumerate(servers);
        let found = servers.find(|(at, server)| {
            may(*at) && links.is_reachable(&server.name, upstream_uri, |origin| shows(*at, origin))
        });
        found.map(|(at, _)| at)
    }
}
