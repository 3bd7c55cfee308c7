//! Which resource a URI names that a client wrote, in a variant that selects or renames resources.

use std::borrow::Cow;

use mcp_vary_view::{Candidate, UriRejection, UriTemplate, check_uri};

use super::item::Place;
use super::listing::ListKind;
use crate::catalog::Catalog;
use crate::variant_config::{Faces, VariantConfig};

/// A resource as a client asked for it.
#[derive(Debug)]
pub struct Address<'u> {
    /// How it is written to its server: as that lists it, else as the client wrote it, or as its variant's URI leads to it.
    pub own: Cow<'u, str>,
    /// The server that lists it.
    pub listed_by: Option<usize>,
    /// Why Vary cannot decide which resource a URI names that no server lists.
    pub fault: Option<UriRejection>,
}

impl VariantConfig {
    /// Whether it shows the resource that server `server` calls `own` and does not list.
    pub fn shows_unlisted(&self, own: &str, server: &str) -> bool {
        let candidate = Candidate {
            name: own,
            upstream_name: own,
            server,
            hints: None,
        };
        !self.selects_resources() || self.resources.selects_unlisted_resource(candidate)
    }
}

impl Faces {
    /// Whether the variant at `index` selects or renames resources, so that it counts how their URIs are written. Without
    /// that every URI is sent as it was written.
    pub fn checks_uris(&self, index: usize) -> bool {
        self.all[index].selects_resources() || !self.uris(index).is_empty()
    }
}

impl Catalog {
    /// The server's URI of the resource that has the URI `uri` in the variant at `variant`; none when the variant has no such
    /// resource.
    ///
    /// Any spelling of a listed URI means the listed resource. A URI that is not listed must be in normal form, since servers
    /// read other spellings differently. `fault` says why such a URI is refused, unless the caller finds the resource by
    /// other means.
    pub fn address<'u>(&self, faces: &Faces, variant: usize, uri: &'u str) -> Option<Address<'u>> {
        if !faces.checks_uris(variant) {
            return Some(Address {
                own: Cow::Borrowed(uri),
                listed_by: self.listed_resource(variant, uri),
                fault: None,
            });
        }
        let listed = self.view(ListKind::Resources, variant);
        if let Some(place) = listed.and_then(|view| view.spelled(uri)) {
            return Some(Address::listed_at(place, uri));
        }
        let uris = faces.uris(variant);
        let own = uris.to_upstream(uri)?;
        let written = || match own == uri || uris.is_assigned(uri) {
            true => None,
            false => check_uri(uri).err(),
        };
        let fault = written().or_else(|| self.fault(variant, &own));
        Some(Address {
            own,
            listed_by: None,
            fault,
        })
    }

    /// The same of a template that `uri` is, if the variant lists it.
    pub fn listed_template<'u>(&self, variant: usize, uri: &'u str) -> Option<Address<'u>> {
        let view = self.view(ListKind::Templates, variant)?;
        Some(Address::listed_at(view.spelled(uri)?, uri))
    }

    /// Why Vary cannot decide which resource of the server has the URI `own`, apart from what its template says.
    fn fault(&self, variant: usize, own: &str) -> Option<UriRejection> {
        let checked = match self.template_for(variant, own) {
            Some((template, _)) => template.check(own),
            None => check_uri(own),
        };
        checked.err()
    }

    /// The server whose template matches a resource that no server lists, if the variant shows that server's resource and it
    /// is certain which one the URI names.
    pub fn by_checked_template(
        &self,
        variant: usize,
        address: &Address<'_>,
        shows: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        match address.fault {
            None => self.by_template(variant, &address.own).filter(shows),
            Some(_) => None,
        }
    }

    /// The server that has a template which may match its URI `own`.
    pub fn by_template(&self, variant: usize, own: &str) -> Option<usize> {
        self.template_for(variant, own)
            .map(|(_, place)| place.server)
    }

    fn template_for(&self, variant: usize, own: &str) -> Option<(&UriTemplate, &Place)> {
        self.view(ListKind::Templates, variant)?.template_for(own)
    }
}

impl<'u> Address<'u> {
    fn listed_at(place: &Place, uri: &'u str) -> Self {
        Self {
            own: match *place.own == *uri {
                true => Cow::Borrowed(uri),
                false => Cow::Owned(place.own.to_string()),
            },
            listed_by: Some(place.server),
            fault: None,
        }
    }
}
