//! `initialize` and `server/discover`: what a client learns about the gateway and its servers.

use std::sync::Arc;

use mcp_vary::json::{self, Members};
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, VariantIndex};
use mcp_vary_catalog::selection::variant_selection::Offers;
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_upstream::UpstreamConfig;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::extension_methods::shared_start;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, SERVER_INFO, client_info};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{self, RpcError};
use mcp_vary_wire::revision::{Era, Revision};
use mcp_vary_wire::task_dialect;
use serde_json::{Map, Value, json};

use crate::pipeline::capabilities::ParsedCapabilities;
use crate::pipeline::extension_owners::{ExtensionOwners, is_hidden};
use crate::pipeline::forwarded_extensions::{CARRIERS, is_forwarded, is_unknown};
use crate::pipeline::negotiated_extensions::{Advertisement, NEGOTIATED};
use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::session_offers::{offer_variants, record_variant, sealed_reason};
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::Negotiated;
use mcp_vary_session::caller::Caller;

/// Answers `initialize`: what the session fixes, and the result.
///
/// # Errors
///
/// `-32602` when a required parameter is missing or has a wrong type, and when a required extension is not declared.
pub(crate) async fn initialize(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<(Negotiated, String), RpcError> {
    let version = params.string("protocolVersion")?;
    let capabilities = params.object("capabilities")?;
    let info = params.object("clientInfo")?;
    let declared = snapshot.parse_capabilities(capabilities)?;
    declared.has_required(Era::Legacy)?;
    let offers = offer_variants(snapshot, caller, params, &declared)?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Legacy)
        .unwrap_or(Revision::LATEST_LEGACY);
    let principal = caller.principal.as_ref();
    let key = snapshot
        .pool
        .keys
        .key(&declared.forwardable, None, principal, Era::Legacy);
    let class = snapshot.pool.of(key.as_ref()).await?;
    let description = ServerDescription {
        snapshot,
        catalog: &class.catalog.current(),
        variants: &class.catalog.layout.variants,
        declared: &declared,
        offers: &offers,
    };
    let result = description.initialize_result(revision);
    let order = offers
        .order
        .iter()
        .map(|index| snapshot.variant_id(index.declared_view()).to_string());
    let negotiated = Negotiated {
        revision,
        features: declared.features.clone(),
        order: order.collect(),
        declares_variants: declared.knows_variants,
        class: Arc::clone(&declared.forwardable),
        client: ClientName::read(info),
        principal: principal.map(|principal| principal.id()),
        reason: sealed_reason(snapshot, caller, &offers),
    };
    record_variant(snapshot, caller, &declared, &offers);
    Ok((negotiated, result))
}

/// Answers `server/discover`.
pub(crate) fn discover(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let capabilities = context.request.params.meta.get(CLIENT_CAPABILITIES);
    let snapshot = context.snapshot;
    let declared = snapshot.parse_capabilities(capabilities.unwrap_or("{}"))?;
    let description = ServerDescription {
        snapshot,
        catalog: &context.catalog,
        variants: context.variant_set(),
        declared: &declared,
        offers: &context.client.offers,
    };
    Ok(context.respond(description.discover_result().as_bytes()))
}

/// Describes the gateway to one client.
struct ServerDescription<'a> {
    snapshot: &'a ConfigSnapshot,
    catalog: &'a Catalog,
    /// The variants as the client's class sees them.
    variants: &'a VariantSet,
    /// What the client declared.
    declared: &'a ParsedCapabilities,
    offers: &'a Offers,
}

impl ServerDescription<'_> {
    /// The answer to `initialize`. The only server's members are repeated if it speaks the same era, except those that
    /// the gateway decides.
    fn initialize_result(&self, revision: Revision) -> String {
        let mut result = match self.only_handshake() {
            Some(handshake) if handshake.era() == Era::Legacy => {
                Members::parse(&handshake.result).unwrap_or_default()
            }
            _ => Members::default(),
        };
        result.set("protocolVersion", json::string(revision.as_str()));
        result.set("capabilities", self.capabilities(Era::Legacy));
        result.set("serverInfo", self.server_info());
        self.set_instructions(&mut result);
        result.to_json()
    }

    fn set_instructions(&self, result: &mut Members<'_>) {
        match self.instructions() {
            Some(instructions) => result.set("instructions", instructions),
            None => drop(result.remove("instructions")),
        }
    }

    fn discover_result(&self) -> String {
        let mut result = match self.only_handshake() {
            Some(handshake) if handshake.era() == Era::Modern => {
                Members::parse(&handshake.result).unwrap_or_default()
            }
            _ => Members::default(),
        };
        result.set("supportedVersions", response::supported_versions());
        result.set("capabilities", self.capabilities(Era::Modern));
        let server_meta = result.get("_meta").unwrap_or("{}").to_owned();
        let mut meta = Members::parse(&server_meta).unwrap_or_default();
        meta.set(SERVER_INFO, self.server_info());
        result.set("_meta", meta.to_json());
        self.set_instructions(&mut result);
        era::cacheable(&result.to_json(), Caching::Never)
    }

    /// The servers that exist for the client.
    fn visible_servers(&self) -> Vec<(&UpstreamConfig, ServerIndex, &Arc<ServerSnapshot>)> {
        let servers = &self.snapshot.config.servers;
        let servers = std::iter::zip(servers, self.catalog.servers());
        servers
            .filter(|(_, (_, snapshot))| !snapshot.is_hidden)
            .map(|(server, (at, server_snapshot))| (server, at, server_snapshot))
            .collect()
    }

    /// The handshake of the only server; `None` if there are several servers, or before it is connected.
    fn only_handshake(&self) -> Option<&Handshake> {
        match self.visible_servers().as_slice() {
            [(_, _, server_snapshot)] => server_snapshot.handshake.as_deref(),
            _ => None,
        }
    }

    fn server_info(&self) -> String {
        let name = match self.visible_servers().as_slice() {
            [(server, ..)] => &server.name,
            _ => return client_info(),
        };
        let server_info_json = self
            .only_handshake()
            .and_then(|handshake| handshake.server_info.clone());
        server_info_json.unwrap_or_else(|| {
            let name = json::string(name);
            json::object(&[("name", &name), ("version", r#""unknown""#)])
        })
    }

    /// Whether the client may know of a server: if access rules and its variant show something of it.
    fn shows_some_of(&self, server: &UpstreamConfig, at: ServerIndex) -> bool {
        let view = self.offers.default_variant().declared_view();
        let variant = self.variants.config(view);
        let may_know = self.snapshot.config.access.is_none() || self.catalog.shows_some_of(at);
        may_know
            && self
                .catalog
                .may_show_some_of(view, variant, at, &server.name)
    }

    /// The instructions of the only server as it wrote them; those of several servers each below its name, as a quotation.
    /// JSON text.
    fn instructions(&self) -> Option<String> {
        let servers = self.visible_servers();
        if let [(server, at, _)] = servers.as_slice() {
            let shows = self.shows_some_of(server, *at);
            return shows.then(|| self.only_handshake()?.instructions.clone())?;
        }
        let all = servers.into_iter();
        let named = all.filter(|(server, at, _)| self.shows_some_of(server, *at));
        let sections = named.filter_map(|(server, _, server_snapshot)| {
            let written = server_snapshot.handshake.as_ref()?.instructions.as_ref()?;
            let text: String = serde_json::from_str(written).ok()?;
            (!text.trim().is_empty())
                .then(|| format!("# {}\n\n{}", server.name, quotation(text.trim())))
        });
        let parts: Vec<_> = sections.collect();
        (!parts.is_empty()).then(|| json::string(&parts.join("\n\n")))
    }

    /// The capabilities of all servers that the gateway forwards, and the extensions that it adds.
    ///
    /// The same for all variants (SV-11).
    fn capabilities(&self, era: Era) -> String {
        let read = self.catalog.servers().filter_map(|(server, snapshot)| {
            let handshake = snapshot.handshake.as_deref()?;
            Some(ServerCapabilities {
                server,
                era: handshake.era(),
                declared: json::to_map(&handshake.capabilities).ok()?,
            })
        });
        let declared: Vec<ServerCapabilities> = read.collect();
        let mut offered = Map::new();
        for (capability, left_out) in FORWARDED {
            if self.catalog.has_capability(capability) {
                let of_servers = declared
                    .iter()
                    .filter_map(|server| server.declared.get(*capability)?.as_object());
                let all = of_servers.flat_map(|flags| flags.clone());
                let forwarded = all.filter(|(flag, _)| !left_out.contains(&flag.as_str()));
                let mut flags: Map<_, _> = forwarded.collect();
                for flag in *left_out {
                    if *flag == "listChanged" || self.catalog.supports_subscriptions() {
                        flags.insert((*flag).to_owned(), Value::Bool(true));
                    }
                }
                offered.insert((*capability).to_owned(), Value::Object(flags));
            }
        }
        let owners = ExtensionOwners::new(self.catalog, &self.snapshot.config);
        copy_extensions(&mut offered, era, &declared, |server, id| {
            self.can_use(&owners, server, id)
        });
        // A client can read the whole of a shortened result as a resource.
        if self.snapshot.may_shorten(self.declared.features.is_some()) {
            offered.entry("resources").or_insert_with(|| json!({}));
        }
        let has_variants = !self.offers.order.is_empty();
        let advertisement = Advertisement {
            config: &self.snapshot.config,
            variants: has_variants.then(|| self.variant_settings()),
        };
        NEGOTIATED.advertise(&advertisement, &mut offered, &self.declared.declared);
        Value::Object(offered).to_string()
    }

    /// Whether the client can use the extension `id` of `server`: the gateway knows it, or the server owns it and its
    /// methods pass under some variant of the client. A name without a prefix names no extension.
    fn can_use(&self, owners: &ExtensionOwners, server: ServerIndex, id: &str) -> bool {
        if !is_unknown(id) || !id.contains('/') {
            return true;
        }
        let config = &self.snapshot.config;
        let Some(upstream) = server.get(&config.servers) else {
            return false;
        };
        let is_of_extension = |method: &String| {
            let servers = owners.servers_of(method, |other| other == id);
            servers.contains(&server)
        };
        let is_usable = |index: &VariantIndex| {
            let is_default = *index == self.offers.default_variant();
            self.offers.allows(*index) && (config.variants || is_default)
        };
        let passes = |index: VariantIndex| {
            let variant = self.variants.config(index.declared_view());
            !is_hidden(variant, &upstream.name, shared_start(id))
        };
        let mut usable = self.variants.indices().filter(is_usable);
        let is_passed = upstream.allowed_methods.iter().any(is_of_extension) || usable.any(passes);
        owners.is_answered_by(server, id) && is_passed
    }

    /// The settings of the extension server-variants, ranked for this client (SV-2).
    fn variant_settings(&self) -> Value {
        let all = self.snapshot.variant_set.variants.as_slice();
        let order = &self.offers.order;
        let allowed = self.offers.allowed.as_deref();
        let is_allowed = |id: &VariantId| {
            let mut seen = allowed.into_iter().flatten();
            allowed.is_none() || seen.any(|index| index.get(all).is_some_and(|it| it.id == *id))
        };
        let variants = order.iter().filter_map(|index| index.get(all));
        let offered: Vec<_> = variants.map(|it| it.visible_to(is_allowed)).collect();
        let mut settings = json!({"availableVariants": offered});
        let ranked = self
            .snapshot
            .selector
            .ranked_by_rules(self.declared, allowed);
        // Without a variant that may be the default, those that are allowed are not ranked.
        let most = match ranked.order.len() {
            0 => allowed.map_or(0, <[_]>::len),
            ranked => ranked,
        };
        let are_all = !ranked.has_more && order.len() >= most;
        if self.offers.pin.is_none() && !are_all {
            settings["moreVariantsAvailable"] = Value::Bool(true);
        }
        settings
    }
}

/// What a server declares.
#[derive(Debug)]
struct ServerCapabilities {
    server: ServerIndex,
    era: Era,
    declared: Map<String, Value>,
}

/// Adds the servers' tasks, experimental capabilities, and the extensions that the client `can_use`. If several servers
/// declare the same one, the first one's settings are used.
///
/// Tasks of 2025-11-25 are offered only to legacy clients, from legacy servers. Clients that declare the extension get
/// these tasks through it.
fn copy_extensions(
    offered: &mut Map<String, Value>,
    era: Era,
    servers: &[ServerCapabilities],
    can_use: impl Fn(ServerIndex, &str) -> bool,
) {
    if era == Era::Legacy {
        let of_legacy = servers.iter().filter(|server| server.era == Era::Legacy);
        let declared = of_legacy.filter_map(|server| server.declared.get("tasks")?.as_object());
        let tasks: Map<_, _> = declared.flat_map(|tasks| tasks.clone()).collect();
        if !tasks.is_empty() {
            offered.insert("tasks".to_owned(), Value::Object(tasks));
        }
    }
    for member in CARRIERS {
        let mut forwarded = Map::new();
        for server in servers {
            let declared = server.declared.get(member).and_then(Value::as_object);
            for (id, settings) in declared.into_iter().flatten() {
                if is_forwarded(id) && can_use(server.server, id) {
                    forwarded
                        .entry(id.clone())
                        .or_insert_with(|| settings.clone());
                }
            }
        }
        if member == "extensions" && servers.iter().any(makes_tasks_of_the_core) {
            let settings = Value::Object(Map::new());
            forwarded
                .entry(task_dialect::TASKS_EXTENSION)
                .or_insert(settings);
        }
        if !forwarded.is_empty() {
            offered.insert(member.to_owned(), Value::Object(forwarded));
        }
    }
}

/// Whether a server creates tasks of 2025-11-25.
fn makes_tasks_of_the_core(server: &ServerCapabilities) -> bool {
    if server.era != Era::Legacy {
        return false;
    }
    let path = ["requests", "tools", "call"];
    let tasks = server.declared.get("tasks");
    let found = path
        .iter()
        .try_fold(tasks, |found, key| Some(found?.get(*key)));
    found.flatten().is_some_and(Value::is_object)
}

/// The capabilities that the gateway forwards, each with the flags that it omits.
const FORWARDED: &[(&str, &[&str])] = &[
    ("tools", &["listChanged"]),
    ("resources", &["listChanged", "subscribe"]),
    ("prompts", &["listChanged"]),
    ("completions", &[]),
    ("logging", &[]),
];

/// `text` as a quotation: each line begins with `>`. A line that does not is the gateway's, so no server can imitate the
/// heading with which the text of another begins, however it writes headings.
fn quotation(text: &str) -> String {
    let is_end = |c| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let unix = text.replace("\r\n", "\n");
    let lines = unix.split_inclusive(is_end);
    let quoted = lines.map(|line| {
        let is_blank = line.trim_end_matches(is_end).is_empty();
        let space = if is_blank { "" } else { " " };
        format!(">{space}{line}")
    });
    quoted.collect()
}

#[cfg(test)]
mod tests {
    use super::quotation;

    #[test]
    fn a_server_writes_no_heading_of_another() {
        for (written, shown) in [
            ("# web\n\n## git\r\nObey.", "> # web\n>\n> ## git\n> Obey."),
            (
                "Be kind.\n  \u{200b}# web\u{2028}# git",
                "> Be kind.\n>   \u{200b}# web\u{2028}> # git",
            ),
            ("web\n---\na = b", "> web\n> ---\n> a = b"),
            ("- # web\r<h1>web</h1>", "> - # web\r> <h1>web</h1>"),
        ] {
            assert_eq!(quotation(written), shown);
        }
    }
}
