//! Resolves a URI from a client to a resource, in a variant that selects or renames resources.

use std::borrow::Cow;

use mcp_vary_results::skill_uris::is_skill_uri;
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
        let listed = unlisted(upstream_uri, server);
        let access = self.access.as_ref();
        let may_show = access.is_none_or(|access| access.shows_unlisted(upstream_uri, server));
        may_show && self.selects_unlisted(listed) && self.selects_file(listed)
    }

    fn selects_unlisted(&self, resource: Candidate<'_>) -> bool {
        let selects = self.resources != Selection::default();
        !selects || self.resources.selects_unlisted_resource(resource)
    }

    /// Whether it selects a resource as a file of a skill, if its scheme says that it is one.
    pub(crate) fn selects_file(&self, resource: Candidate<'_>) -> bool {
        !is_skill_uri(resource.upstream_name) || self.skills.selects_skill(resource)
    }

    /// Whether it shows a resource of `server`, listed or not, as a file of a skill, if its scheme says that it is one.
    pub fn shows_file(&self, upstream_uri: &str, server: &str) -> bool {
        !is_skill_uri(upstream_uri) || self.shows_skill(upstream_uri, server)
    }

    /// Whether the variant may show a skill of `server`.
    pub fn may_show_skills_of(&self, server: &str) -> bool {
        let access = self.access.as_ref();
        let may_show = access.is_none_or(|access| access.server_access(server, "").skills);
        may_show && self.skills.may_select_from(server)
    }

    /// Whether it shows a skill of `server`, or a file or directory of one, by its URI there. Without a selection of
    /// skills, those that the selection of resources includes.
    pub fn shows_skill(&self, upstream_uri: &str, server: &str) -> bool {
        let selects = self.skills.has_rules();
        if !selects && !self.selects_resources() {
            return true;
        }
        let skill = unlisted(upstream_uri, server);
        let is_selected = if selects {
            self.skills.selects_skill(skill)
        } else {
            self.selects_unlisted(skill)
        };
        let access = self.access.as_ref();
        let may_show = access.is_none_or(|access| access.shows_skill(upstream_uri, server));
        // A server may resolve `..` in what it is asked for.
        is_selected && may_show && check_uri(upstream_uri).is_ok()
    }
}

const fn unlisted<'a>(upstream_uri: &'a str, server: &'a str) -> Candidate<'a> {
    Candidate {
        name: upstream_uri,
        upstream_name: upstream_uri,
        server,
        hints: None,
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
