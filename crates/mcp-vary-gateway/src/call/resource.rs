//! `resources/read`, and which server a resource is read from.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary::view::Candidate;

use super::Call;
use super::forward::Forwarding;
use crate::bridge::{self, Caching};
use crate::catalog::Catalog;
use crate::catalog::item::Place;
use crate::catalog::listing::ListKind;
use crate::kept::{Kept, Unread};
use crate::links::Origin;
use crate::reply::{self, Failure};
use crate::route::Outcome;
use crate::running::Downward;

impl Call<'_> {
    pub(crate) async fn read(mut self) -> Result<Outcome, Failure> {
        let uri = self.asked.params.string("uri").unwrap_or_default();
        if Kept::is_uri(&uri) {
            return self.read_kept(uri).await;
        }
        self.requires("resources")?;
        let uri = self.asked.params.string("uri")?;
        let variant = self.active()?;
        let caching = if self.gateway.config.variants {
            Caching::Never
        } else {
            Caching::AsTold
        };
        let own = self.own_uri(variant, &uri)?;
        let server = self.server_of_resource(variant, &uri, &own).await?;
        if own != uri {
            self.asked.params.members.set("uri", json::string(&own));
        }
        let origin = Origin {
            kind: ListKind::Resources,
            own: (&*own).into(),
        };
        let forwarding = Forwarding {
            server,
            name: Some(own.into_owned()),
            subject: self.subject(&uri),
            downward: Downward {
                origin: Some(origin),
                caching,
                shape: self.resource_shape(variant, server),
                ..Downward::default()
            },
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }

    /// The rest of a result that was told in fewer words. It is no server's, and outside of the views.
    async fn read_kept(&self, uri: String) -> Result<Outcome, Failure> {
        let variant = self.active()?;
        self.may_read_kept(variant, &uri).await?;
        match self.gateway.lasting.kept.read(&uri, self.client.id) {
            Ok(rest) => {
                let era = self.client.era();
                let contents = rest.contents();
                let sent = bridge::result_downward(&contents, era, Caching::Never);
                Ok(Outcome::Done(reply::result(self.asked.id, sent.as_bytes())))
            }
            Err(Unread::Unknown) => Err(self.not_found(variant, Identifier::Resource(uri))),
            Err(Unread::Part(error)) => Err(Failure::invalid_params(format!("`uri`: {error}"))),
        }
    }

    /// What its server calls the resource or template `uri` of the variant.
    pub(crate) fn own_uri<'u>(
        &self,
        variant: usize,
        uri: &'u str,
    ) -> Result<Cow<'u, str>, Failure> {
        let own = self.gateway.faces.uris(variant).own(uri);
        own.ok_or_else(|| self.not_found(variant, Identifier::Resource(uri.to_owned())))
    }

    /// The server to read `uri` from, which it calls `own`: the one that lists it, whose template may stand for
    /// it, or that pointed to it. Of a single server a variant that does not select among resources shows
    /// whatever there is.
    pub(crate) async fn server_of_resource(
        &self,
        variant: usize,
        uri: &str,
        own: &str,
    ) -> Result<usize, Failure> {
        let face = &self.gateway.faces.all[variant];
        if self.is_before_one_server() && !face.selects_resources() {
            return Ok(0);
        }
        let servers = &self.gateway.config.servers;
        let shows = |server: &usize| {
            let candidate = Candidate {
                name: own,
                own,
                server: &servers[*server].name,
                hints: None,
            };
            face.resources.shows(candidate)
        };
        let find = |catalog: &Catalog| {
            // What is not listed must be selected by its own URI, too.
            catalog.listed_resource(variant, own).or_else(|| {
                let template = catalog.resource(variant, own).filter(shows);
                let interface = || {
                    let view = catalog.view(ListKind::Tools, variant)?;
                    view.server_of_interface(own, shows)
                };
                let linked = || self.linked(catalog, variant, own, shows);
                template.or_else(interface).or_else(linked)
            })
        };
        self.find(ListKind::Resources, find, || {
            self.not_found(variant, Identifier::Resource(uri.to_owned()))
        })
        .await
    }

    /// The first server that `may` have what it calls `own`, and of which something that the variant shows
    /// pointed to it.
    fn linked(
        &self,
        catalog: &Catalog,
        variant: usize,
        own: &str,
        may: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        let (links, servers) = (&self.gateway.lasting.links, &self.gateway.config.servers);
        let shows = |server: usize, origin: &Origin| {
            let place = Place {
                server,
                own: Arc::clone(&origin.own),
            };
            let view = catalog.view(origin.kind, variant);
            let is_listed = view.is_some_and(|view| view.lists(&place));
            let is_resource = origin.kind == ListKind::Resources;
            is_listed || is_resource && catalog.resource(variant, &origin.own) == Some(server)
        };
        let mut servers = servers.iter().enumerate();
        let found = servers.find(|(at, server)| {
            may(at) && links.leads(&server.name, own, |origin| shows(*at, origin))
        });
        found.map(|(at, _)| at)
    }
}
