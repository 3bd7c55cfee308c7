//! The variants that servers offer themselves, and that clients can select: `passthrough`
//! ([0047](../../../../../docs/decisions/0047-passthrough.md)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS};
use mcp_vary::variant::{Date, DeprecationInfo, ServerVariant, VariantId};
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::UpstreamConfig;
use tracing::warn;

use super::source::ServerSource;

/// The variants of each server with `passthrough`, as its last handshake declared them.
///
/// # Properties
///
/// What is known outlives configurations and lost connections: a server that restarts keeps its variants until a
/// handshake shows others. Of each server at most [`MAX_OFFERED_VARIANTS`] are known.
///
/// [`MAX_OFFERED_VARIANTS`]: mcp_vary_wire::handshake::MAX_OFFERED_VARIANTS
#[derive(Debug, Default)]
pub(crate) struct UpstreamVariants(Lock<BTreeMap<Arc<str>, Declared>>);

/// What a server declares of the two extensions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Declared {
    variants: Vec<ServerVariant>,
    negotiates_content: bool,
}

/// What new handshakes of servers show.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Recorded {
    /// The variants that were known before.
    Same,
    /// That a server has no variants, of which nothing was known before.
    Nothing,
    /// Others than were known before.
    Others,
}

/// The sources of these variants, and how clients see them.
#[derive(Debug, Default)]
pub(crate) struct OfferedVariants {
    /// The servers of the configuration, then a source for each variant.
    pub(crate) servers: Vec<UpstreamConfig>,
    /// The variants with their ids for clients: `<server>/<id>`.
    pub(crate) variants: Vec<ServerVariant>,
    /// Those that hints of clients do not rank.
    pub(crate) unranked: BTreeSet<VariantId>,
}

impl UpstreamVariants {
    /// Records what the servers of `sources` declared in their last handshake.
    pub(crate) fn record(&self, sources: &[Arc<ServerSource>]) -> Recorded {
        let mut known = self.0.lock();
        let mut recorded = Recorded::Same;
        for source in sources.iter().filter(|source| is_passed_through(source)) {
            let Some(connection) = source.connection.current() else {
                continue;
            };
            let handshake = connection.handshake();
            let declared = Declared {
                variants: handshake.variant_declarations(),
                negotiates_content: handshake.negotiates_content(),
            };
            let before = known.get(&source.server_name);
            let found = match before {
                Some(before) if *before == declared => Recorded::Same,
                None if declared == Declared::default() => Recorded::Nothing,
                _ => Recorded::Others,
            };
            recorded = recorded.max(found);
            known.insert(Arc::clone(&source.server_name), declared);
        }
        recorded
    }

    /// Whether it is known which variants this server has.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.0.lock().contains_key(server)
    }

    /// The sources and variants to offer with `servers`, besides the variants of the configuration, whose ids are reserved. A server that
    /// negotiates content shapes the results of its variants itself, or all of its results if it has no variants, except
    /// those that are `shaped_here`: under one variant, or any. Its variants get the hints of clients.
    pub(crate) fn offered(
        &self,
        mut servers: Vec<UpstreamConfig>,
        is_reserved: impl Fn(&VariantId) -> bool,
        shaped_here: impl Fn(&str, Option<&VariantId>) -> bool,
    ) -> OfferedVariants {
        // A configuration that is used again has the sources that were known before.
        servers.retain(|server| server.variant_of.is_none());
        let mut known = self.0.lock();
        known.retain(|name, _| servers.iter().any(|server| *server.name == **name));
        let mut offered = OfferedVariants::default();
        let mut sources = Vec::new();
        for server in &mut servers {
            server
                .forwarded_extensions
                .retain(|id| id != CONTENT_NEGOTIATION);
            let Some(passthrough) = server.passthrough else {
                continue;
            };
            let Some(declared) = known.get(server.name.as_str()) else {
                continue;
            };
            let negotiates = declared.negotiates_content;
            if negotiates && declared.variants.is_empty() && !shaped_here(&server.name, None) {
                let extension = CONTENT_NEGOTIATION.to_owned();
                server.forwarded_extensions.push(extension);
            }
            for variant in &declared.variants {
                let Some(seen) = as_offered(server, variant, &declared.variants) else {
                    continue;
                };
                let is_known = offered.variants.iter().any(|known| known.id == seen.id);
                if is_known || is_reserved(&seen.id) {
                    warn!(id = %seen.id, "variant of a server left out: another has this id");
                    continue;
                }
                if !passthrough.rank {
                    offered.unranked.insert(seen.id.clone());
                }
                let mut source = server.of_upstream_variant(&variant.id);
                let hints = SERVER_VARIANTS.to_owned();
                source.forwarded_extensions.push(hints);
                if negotiates && !shaped_here(&server.name, Some(&seen.id)) {
                    let extension = CONTENT_NEGOTIATION.to_owned();
                    source.forwarded_extensions.push(extension);
                }
                sources.push(source);
                offered.variants.push(seen);
            }
        }
        servers.extend(sources);
        offered.servers = servers;
        offered
    }
}

/// Whether clients can select the variants that the server of `source` offers itself.
pub(crate) fn is_passed_through(source: &ServerSource) -> bool {
    let config = source.connection.config();
    config.passthrough.is_some() && config.variant_of.is_none()
}

/// The variants that the server of `source` offers itself, and that clients cannot select; none if the configuration
/// selects one of them.
pub(crate) fn unselectable_variants(source: &ServerSource) -> Vec<VariantId> {
    let config = source.connection.config();
    let is_selected = config.variant.is_some() || config.passthrough.is_some();
    let snapshot = source.snapshot();
    let handshake = snapshot.handshake.as_ref().filter(|_| !is_selected);
    handshake.map_or_else(Vec::new, |handshake| handshake.offered_variants())
}

/// Whether the server of `source` negotiates content itself and offers no variants, and gets no feature tags of clients.
pub(crate) fn lacks_feature_tags(source: &ServerSource) -> bool {
    let config = source.connection.config();
    let snapshot = source.snapshot();
    let handshake = snapshot.handshake.as_ref();
    handshake
        .filter(|_| config.passthrough.is_none() && config.variant.is_none())
        .is_some_and(|it| it.negotiates_content() && it.offered_variants().is_empty())
}

/// A variant of `server` as clients see it: with the id `<server>/<id>`. `None` if that is too long for an id.
fn as_offered(
    server: &UpstreamConfig,
    variant: &ServerVariant,
    declared: &[ServerVariant],
) -> Option<ServerVariant> {
    let id_of = |id: &VariantId| -> Option<VariantId> {
        let id = format!("{}/{id}", server.name).parse();
        id.inspect_err(|error| warn!(server = server.name, %error, "variant of a server left out"))
            .ok()
    };
    let mut seen = variant.clone();
    seen.id = id_of(&variant.id)?;
    let is_declared = |id: &VariantId| declared.iter().any(|other| other.id == *id);
    seen.deprecation_info = variant.deprecation_info.as_ref().map(|info| {
        let mut shown = DeprecationInfo::new(info.message.as_str());
        // Clients get what they can use: a replacement that they can select, and a valid date.
        let replacement = info.replacement.as_ref();
        let replacement = replacement.filter(|id| **id != variant.id && is_declared(id));
        shown.replacement = replacement.and_then(id_of);
        let date = info.removal_date.as_ref();
        let date = date.filter(|date| date.parse::<Date>().is_ok());
        shown.removal_date = date.cloned();
        shown
    });
    Some(seen)
}

#[cfg(test)]
mod tests {
    use mcp_vary::variant::Status;
    use mcp_vary_upstream::{Passthrough, Target};

    use super::*;

    fn variant(id: &str) -> ServerVariant {
        ServerVariant::new(id.parse().unwrap(), "For tests.")
    }

    fn server(name: &str, passthrough: Option<Passthrough>) -> UpstreamConfig {
        let mut server = UpstreamConfig::new(name, Target::command("x", []));
        server.passthrough = passthrough;
        server
    }

    fn known(variants: &[(&str, Vec<ServerVariant>)]) -> UpstreamVariants {
        let known = variants.iter().cloned();
        let known = known.map(|(server, variants)| {
            let negotiates_content = server == "crm";
            let declared = Declared {
                variants,
                negotiates_content,
            };
            (server.into(), declared)
        });
        UpstreamVariants(Lock::new(known.collect()))
    }

    /// EXT-9: a source for each variant of the servers with `passthrough`, after all servers; each has the identity of its
    /// server.
    #[test]
    fn each_variant_has_a_source_with_the_identity_of_its_server() {
        let variants = known(&[
            ("crm", vec![variant("agent"), variant("human")]),
            ("web", vec![variant("agent")]),
            ("off", vec![variant("agent")]),
        ]);
        let ranked = Some(Passthrough::ranked(true));
        let servers = vec![
            server("crm", Some(Passthrough::default())),
            server("off", None),
            server("web", ranked),
        ];
        let taken = |id: &VariantId| *id == *"crm/human";
        let offered = variants.offered(servers, taken, |_, _| false);
        let servers = offered.servers.iter();
        let names: Vec<_> = servers
            .map(|it| (it.name.as_str(), it.server_name()))
            .collect();
        let expected = [
            ("crm", "crm"),
            ("off", "off"),
            ("web", "web"),
            ("crm/agent", "crm"),
            ("web/agent", "web"),
        ];
        assert_eq!(names, expected);
        let unranked: Vec<_> = offered.unranked.iter().map(VariantId::as_str).collect();
        assert_eq!(unranked, ["crm/agent"]);
        // The same configuration again has the same sources.
        let again = variants.offered(offered.servers, taken, |_, _| false);
        assert_eq!(again.servers.len(), expected.len());
        assert_eq!(again.variants, offered.variants);
    }

    /// EXT-9: clients get a replacement that they can select, and a date that is one.
    #[test]
    fn a_deprecation_names_what_clients_can_use() {
        let deprecated = |id: &str, replacement: &str, date: &str| {
            let mut info = DeprecationInfo::new("Use another.");
            info.replacement = Some(replacement.parse().unwrap());
            info.removal_date = Some(date.to_owned());
            variant(id).deprecated(info)
        };
        let long = "x".repeat(mcp_vary::variant::MAX_ID);
        let variants = known(&[(
            "crm",
            vec![
                deprecated("a", "b", "2027-01-31"),
                deprecated("b", "b", "soon"),
                deprecated("c", "gone", "2027-01-31T00:00:00Z"),
                variant(&long),
                variant("a"),
            ],
        )]);
        let servers = vec![server("crm", Some(Passthrough::default()))];
        let offered = variants.offered(servers, |_| false, |_, _| false);
        let shown = offered.variants.iter().map(|it| {
            let info = it.deprecation_info.as_ref().unwrap();
            assert_eq!(it.status, Status::Deprecated);
            let replacement = info.replacement.as_ref().map(VariantId::as_str);
            (it.id.as_str(), replacement, info.removal_date.as_deref())
        });
        let shown = shown.collect::<Vec<_>>();
        let expected = [
            ("crm/a", Some("crm/b"), Some("2027-01-31")),
            ("crm/b", None, None),
            ("crm/c", None, Some("2027-01-31T00:00:00Z")),
        ];
        assert_eq!(shown, expected);
    }

    /// EXT-9: feature tags are forwarded to the variants of a server that negotiates content, and not to those whose
    /// results rules of the file shape.
    #[test]
    fn tags_are_forwarded_to_servers_that_negotiate_content() {
        let variants = known(&[
            ("crm", vec![variant("agent"), variant("human")]),
            ("web", vec![variant("agent")]),
        ]);
        let servers = ["crm", "web"].map(|name| server(name, Some(Passthrough::default())));
        let shaped_here = |server: &str, id: Option<&VariantId>| {
            server == "crm" && id.is_none_or(|id| *id == *"crm/human")
        };
        let offered = variants.offered(servers.into(), |_| false, shaped_here);
        let forwards = |source: &UpstreamConfig| {
            let mut forwarded = source.forwarded_extensions.iter();
            forwarded.any(|id| id == CONTENT_NEGOTIATION)
        };
        let sources = offered.servers.iter().filter(|source| forwards(source));
        let names: Vec<_> = sources.map(|source| source.name.as_str()).collect();
        assert_eq!(names, ["crm/agent"]);
    }
}
