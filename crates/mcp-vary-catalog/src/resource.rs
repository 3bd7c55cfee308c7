//! Resolves a URI from a client to a resource, in a variant that selects or renames resources.

use std::borrow::Cow;

use mcp_vary_view::{Candidate, Selection, UriRejection, UriTemplate, check_uri};

use super::index::{ServerIndex, ViewIndex};
use super::item::ItemRef;
use super::listing::ListKind;
use crate::catalog::Catalog;
use crate::variant_config::VariantConfig;
use crate::variant_set::VariantSet;

/// The resource that a client requested.
#[derive(Debug)]
pub struct ResourceTarget<'u> {
    /// The URI to send to the server: as the server lists it, else as the client wrote it, or as the variant's URI maps
    /// to it.
    pub upstream_uri: Cow<'u, str>,
    /// The server that lists it.
    pub listed_by: Option<ServerIndex>,
    /// The error if the URI is not listed and it is ambiguous which resource it means.
    pub fault: Option<UriRejection>,
}

impl VariantConfig {
    /// Whether it shows the unlisted resource with the URI `upstream_uri` of the server `server`.
    pub fn allows_unlisted(&self, upstream_uri: &str, server: &str) -> bool {
        let candidate = Candidate {
            name: upstream_uri,
            upstream_name: upstream_uri,
            server,
            hints: None,
        };
        let access = self.access.as_ref();
        let may_show = access.is_none_or(|access| access.shows_unlisted(upstream_uri, server));
        let selects = self.resources != Selection::default();
        may_show && (!selects || self.resources.selects_unlisted_resource(candidate))
    }
}

impl VariantSet {
    /// Whether the variant of `view` selects or renames resources, so that the spelling of URIs must be checked.
    /// Otherwise all URIs are sent as written.
    pub fn checks_uris(&self, view: ViewIndex) -> bool {
        self.config(view).selects_resources() || !self.uris(view).is_empty()
    }
}

impl Catalog {
    /// Resolves the URI `uri` in `view` to the server's URI. `None` if the view has no such resource.
    ///
    /// Any spelling of a listed URI resolves to the listed resource. A URI that is not listed must be in normal form,
    /// since servers interpret other spellings differently. `fault` is the reason to reject such a URI, unless the
    /// caller finds the resource in another way.
    pub fn resolve_resource<'u>(
        &self,
        variant_set: &VariantSet,
        view: ViewIndex,
        uri: &'u str,
    ) -> Option<ResourceTarget<'u>> {
        if !variant_set.checks_uris(view) {
            return Some(ResourceTarget {
                upstream_uri: Cow::Borrowed(uri),
                listed_by: self.listed_resource_server(view, uri),
                fault: None,
            });
        }
        let listed = self.view(ListKind::Resources, view);
        if let Some(item_ref) = listed.and_then(|view| view.find_by_uri(uri)) {
            return Some(ResourceTarget::listed_at(item_ref, uri));
        }
        let uris = variant_set.uris(view);
        let server_uri = uris.to_upstream(uri)?;
        let written = || {
            if server_uri == uri || uris.is_assigned(uri) {
                None
            } else {
                check_uri(uri).err()
            }
        };
        let fault = written().or_else(|| self.uri_fault(view, &server_uri));
        Some(ResourceTarget {
            upstream_uri: server_uri,
            listed_by: None,
            fault,
        })
    }

    /// Resolves the template `uri`, if the view lists it.
    pub fn resolve_template<'u>(
        &self,
        view: ViewIndex,
        uri: &'u str,
    ) -> Option<ResourceTarget<'u>> {
        let view = self.view(ListKind::Templates, view)?;
        Some(ResourceTarget::listed_at(view.find_by_uri(uri)?, uri))
    }

    /// The error if it is ambiguous which resource of the server the URI `upstream_uri` means, considering the template that
    /// matches it.
    fn uri_fault(&self, view: ViewIndex, upstream_uri: &str) -> Option<UriRejection> {
        let checked = match self.template_for(view, upstream_uri) {
            Some((template, _)) => template.check(upstream_uri),
            None => check_uri(upstream_uri),
        };
        checked.err()
    }

    /// The server whose template matches an unlisted resource, if the variant shows that resource and the URI is
    /// unambiguous.
    pub fn checked_template_server(
        &self,
        view: ViewIndex,
        address: &ResourceTarget<'_>,
        shows: impl Fn(ServerIndex) -> bool,
    ) -> Option<ServerIndex> {
        match address.fault {
            None => self
                .template_server(view, &address.upstream_uri)
                .filter(|server| shows(*server)),
            Some(_) => None,
        }
    }

    /// The server with a template that matches its URI `upstream_uri`.
    pub fn template_server(&self, view: ViewIndex, upstream_uri: &str) -> Option<ServerIndex> {
        self.template_for(view, upstream_uri)
            .map(|(_, item_ref)| item_ref.server)
    }

    fn template_for(
        &self,
        view: ViewIndex,
        upstream_uri: &str,
    ) -> Option<(&UriTemplate, &ItemRef)> {
        self.view(ListKind::Templates, view)?
            .template_for(upstream_uri)
    }
}

impl<'u> ResourceTarget<'u> {
    fn listed_at(item_ref: &ItemRef, uri: &'u str) -> Self {
        Self {
            upstream_uri: if *item_ref.upstream_name == *uri {
                Cow::Borrowed(uri)
            } else {
                Cow::Owned(item_ref.upstream_name.to_string())
            },
            listed_by: Some(item_ref.server),
            fault: None,
        }
    }
}
