//! Finds the server that a resource is read from.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json::{self, Members};
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::resource::ResourceTarget;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_upstream::Request;
use mcp_vary_view::{UriRejection, check_uri};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::RpcError;

use super::{policy, view};
use crate::pipeline::request_context::ViewScope;

/// A resource or template at its server.
pub(crate) struct LocatedResource {
    pub(crate) server: ServerIndex,
    /// The server's URI.
    pub(crate) upstream_uri: String,
}

impl LocatedResource {
    pub(crate) fn new(server: ServerIndex, upstream_uri: impl Into<String>) -> Self {
        Self {
            server,
            upstream_uri: upstream_uri.into(),
        }
    }

    pub(crate) fn item_ref(&self) -> ItemRef {
        ItemRef {
            server: self.server,
            upstream_name: self.upstream_uri.as_str().into(),
        }
    }
}

/// The server whose resources, listed or not, the view shows with their own URIs. `None` if the view has resources of
/// several servers, or selects some.
pub(crate) fn server_of_all(scope: ViewScope<'_>) -> Option<ServerIndex> {
    let selects_resources = scope.config().selects_resources();
    (!selects_resources).then(|| scope.only_server())?
}

/// Locates the resource `uri`: at the server that lists it, has a template for it, or linked to it in a result. A
/// variant of a single server that selects no resources shows all of them.
///
/// # Errors
///
/// `-32602` with the fix when `uri` is ambiguous. The error about `identifier` when the variant has no such resource.
pub(crate) async fn locate(
    scope: ViewScope<'_>,
    uri: &str,
    identifier: impl FnOnce(String) -> Identifier,
) -> Result<LocatedResource, RpcError> {
    let variant_set = scope.variant_set();
    let shows_file =
        |server: &ServerIndex| scope.config().shows_file(uri, &scope.server_name(*server));
    let only = server_of_all(scope).filter(shows_file);
    let checks_uris = variant_set.checks_uris(scope.view);
    if !checks_uris && let Some(server) = only {
        return Ok(LocatedResource::new(server, uri));
    }
    let find = |catalog: &Catalog| {
        let target = catalog.resolve_resource(variant_set, scope.view, uri)?;
        let server = target.listed_by.or_else(|| match (&target.fault, only) {
            (None, Some(only)) => Some(only),
            _ => unlisted_resource(scope, catalog, &target),
        });
        Some(LocatedResource::new(server?, target.upstream_uri))
    };
    let not_found = || no_such_uri(scope, uri, identifier);
    view::find_item(&scope, ListKind::Resources, uri, find, not_found).await
}

/// Whether a resource exists that a client subscribes to. If it is neither listed, nor of a template, nor linked, its server is
/// asked by a read: servers accept subscriptions to anything.
pub(crate) async fn exists(scope: ViewScope<'_>, uri: &str, located: &LocatedResource) -> bool {
    let catalog = scope.class.catalog.current();
    let target = catalog.resolve_resource(scope.variant_set(), scope.view, uri);
    let is_known = target.is_some_and(|target| {
        target.listed_by.is_some() || unlisted_resource(scope, &catalog, &target).is_some()
    });
    if is_known {
        return true;
    }
    let connection = &scope.class.source(located.server).connection;
    let answer = async {
        let upstream = connection.ready().await?;
        let mut params = Members::default();
        params.set("uri", json::string(&located.upstream_uri));
        upstream.add_meta(&mut params);
        let exchange = upstream.request(Request::new("resources/read", Some(params.to_json())));
        exchange.await?.answer().await
    };
    // Without an answer nothing is known, and the subscription shows why.
    answer.await.map_or(true, |answer| answer.outcome().is_ok())
}

/// Checks the read of a resource, listed or not, by its URI on the server.
pub(crate) fn check(scope: ViewScope<'_>, located: &LocatedResource) -> Result<(), RpcError> {
    policy::check_access(scope, ListKind::Resources, &located.item_ref(), None)
}

/// Whether the variant shows a resource of `server` that no server lists: it must be selected by its own URI.
pub(crate) fn allows_unlisted(
    scope: ViewScope<'_>,
    upstream_uri: &str,
    server: ServerIndex,
) -> bool {
    let server = scope.server_name(server);
    scope.config().allows_unlisted(upstream_uri, &server)
}

/// The error for a `uri` that the variant does not have, or that is ambiguous.
pub(crate) fn no_such_uri(
    scope: ViewScope<'_>,
    uri: &str,
    identifier: impl FnOnce(String) -> Identifier,
) -> RpcError {
    let catalog = scope.class.catalog.current();
    let fault = match catalog.resolve_resource(scope.variant_set(), scope.view, uri) {
        Some(target) => target.fault,
        None => check_uri(uri).err(),
    };
    let Some(fault) = fault else {
        return scope.not_found(identifier(uri.to_owned()));
    };
    scope.counters().increment(Counter::RefusedUris);
    scope.with_active_variant(RpcError::invalid_params(format!("`uri` {fault}")))
}

/// The server of a resource that no server lists.
fn unlisted_resource(
    scope: ViewScope<'_>,
    catalog: &Catalog,
    target: &ResourceTarget<'_>,
) -> Option<ServerIndex> {
    let upstream_uri = &*target.upstream_uri;
    let is_shown = |server: ServerIndex| allows_unlisted(scope, upstream_uri, server);
    let of_interface = || {
        let tools = catalog.view(ListKind::Tools, scope.view)?;
        tools.ui_resource_server(upstream_uri, is_shown)
    };
    let of_template = catalog.checked_template_server(scope.view, target, is_shown);
    of_template.or_else(of_interface).or_else(|| {
        // A server may spell the link in any equivalent way.
        let fault = target.fault.as_ref();
        if fault.is_none_or(UriRejection::is_spelling) {
            linked_resource(scope, catalog, upstream_uri, is_shown)
        } else {
            None
        }
    })
}

/// The first server whose resource `is_shown`, and whose visible items linked to it.
fn linked_resource(
    scope: ViewScope<'_>,
    catalog: &Catalog,
    upstream_uri: &str,
    is_shown: impl Fn(ServerIndex) -> bool,
) -> Option<ServerIndex> {
    let shows_origin = |server: ServerIndex, origin: &LinkSource| {
        let item_ref = ItemRef {
            server,
            upstream_name: Arc::clone(&origin.upstream_name),
        };
        let list = catalog.view(origin.kind, scope.view);
        let is_listed = list.is_some_and(|list| list.contains(&item_ref));
        let is_of_template = || {
            origin.kind == ListKind::Resources
                && catalog.template_server(scope.view, &origin.upstream_name) == Some(server)
                && allows_unlisted(scope, &origin.upstream_name, server)
        };
        is_listed || is_of_template()
    };
    let links = &scope.snapshot.services.exchange.link_index;
    let mut servers = ServerIndex::enumerate(&scope.snapshot.config.servers);
    let found = servers.find(|(at, server)| {
        let shows = |origin: &LinkSource| shows_origin(*at, origin);
        is_shown(*at) && links.is_reachable(&server.name, upstream_uri, shows)
    });
    found.map(|(at, _)| at)
}
