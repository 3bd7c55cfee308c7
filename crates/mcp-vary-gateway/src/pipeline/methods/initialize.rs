//! `initialize` and `server/discover`: how a client learns who is there and what is offered.

use std::sync::Arc;

use mcp_vary::extension::{self, CONTENT_NEGOTIATION, Carrier, EXTENSIONS, SERVER_VARIANTS};
use mcp_vary::json::edit;
use mcp_vary::json::{self, Members};
use mcp_vary::text::is_invisible;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::selection::variant_selection::{Offers, VariantRequest};
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::era::{self, Caching};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::meta::{SERVER_INFO, client_info};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{self, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::task_dialect;
use serde_json::{Map, Value, json};

use crate::pipeline::snapshot::{ConfigSnapshot, ParsedCapabilities};
use crate::session::Negotiated;

impl ConfigSnapshot {
    /// Answers `initialize`: what the session fixes, and the result.
    ///
    /// # Errors
    ///
    /// `-32602` when a required parameter is missing or of a wrong type, which it names, and when a required
    /// extension is not declared.
    pub(crate) async fn initialize(
        &self,
        told: &VariantRequest,
        params: &Params<'_>,
    ) -> Result<(Negotiated, String), RpcError> {
        let asked = params.string("protocolVersion")?;
        let capabilities = params.object("capabilities")?;
        let info = params.object("clientInfo")?;
        let known = self.parse_capabilities(capabilities)?;
        known.has_required(Era::Legacy)?;
        let offers =
            self.select_variant(&self.ranked_variants(&known).order, told, params, || {
                self.selected_by_rule(self.rules.outcome(Some(info), told).variant.as_ref())
            })?;
        let revision = Revision::parse(&asked)
            .filter(|revision| revision.era() == Era::Legacy)
            .unwrap_or(Revision::LATEST_LEGACY);
        let key = self.pool.key(&known.forwardable, None, Era::Legacy);
        let class = self.pool.of(key.as_ref()).await?;
        let result = self.initialize_result(&class.catalog.current(), revision, &known, &offers);
        let order = offers
            .order
            .iter()
            .map(|index| self.variant_id(index.declared_view()).to_string());
        let fixed = Negotiated {
            revision,
            features: known.features.clone(),
            order: order.collect(),
            class: Arc::clone(&known.forwardable),
            client: ClientName::read(info),
        };
        Ok((fixed, result))
    }

    /// A server of the same era is repeated as it spoke, but for what the gateway itself decides.
    fn initialize_result(
        &self,
        catalog: &Catalog,
        revision: Revision,
        known: &ParsedCapabilities,
        offers: &Offers,
    ) -> String {
        let mut result = match self.without_variants(catalog) {
            Some(hello) if hello.era() == Era::Legacy => {
                Members::parse(&hello.result).unwrap_or_default()
            }
            _ => Members::default(),
        };
        result.set("protocolVersion", json::string(revision.as_str()));
        result.set(
            "capabilities",
            self.capabilities(Era::Legacy, catalog, known, offers),
        );
        result.set("serverInfo", self.server_info(catalog));
        if let Some(instructions) = self.instructions(catalog) {
            result.set("instructions", instructions);
        }
        result.to_json()
    }

    /// Answers `server/discover` for a client of these capabilities, for which there are these variants.
    pub(crate) fn discover(
        &self,
        catalog: &Catalog,
        known: &ParsedCapabilities,
        offers: &Offers,
    ) -> String {
        let mut result = match self.without_variants(catalog) {
            Some(hello) if hello.era() == Era::Modern => {
                Members::parse(&hello.result).unwrap_or_default()
            }
            _ => Members::default(),
        };
        result.set("supportedVersions", response::supported_versions());
        result.set(
            "capabilities",
            self.capabilities(Era::Modern, catalog, known, offers),
        );
        let told = result.get("_meta").unwrap_or("{}").to_owned();
        let mut meta = Members::parse(&told).unwrap_or_default();
        meta.set(SERVER_INFO, self.server_info(catalog));
        result.set("_meta", meta.to_json());
        if let Some(instructions) = self.instructions(catalog) {
            result.set("instructions", instructions);
        }
        era::cacheable(&result.to_json(), Caching::Never)
    }

    /// What the only server said of itself; `None` before several, or while nothing was heard of it.
    fn without_variants<'a>(&self, catalog: &'a Catalog) -> Option<&'a Handshake> {
        match catalog.snapshots.as_slice() {
            [told] => told.handshake.as_deref(),
            _ => None,
        }
    }

    fn server_info(&self, catalog: &Catalog) -> String {
        let servers = self.config.servers.as_slice();
        let name = match servers {
            [server] => &server.name,
            _ => return client_info(),
        };
        let told = self
            .without_variants(catalog)
            .and_then(|hello| hello.server_info.clone());
        told.unwrap_or_else(|| {
            let name = json::string(name);
            format!(r#"{{"name":{name},"version":"unknown"}}"#)
        })
    }

    /// The instructions of the only server as it wrote them; of several each under its name. JSON text.
    fn instructions(&self, catalog: &Catalog) -> Option<String> {
        if catalog.snapshots.len() == 1 {
            return self.without_variants(catalog)?.instructions.clone();
        }
        let named = self.config.servers.iter().zip(&catalog.snapshots);
        let parts = named.filter_map(|(server, told)| {
            let written = told.handshake.as_ref()?.instructions.as_ref()?;
            let text: String = serde_json::from_str(written).ok()?;
            (!text.trim().is_empty())
                .then(|| format!("# {}\n\n{}", server.name, below_a_heading(text.trim())))
        });
        let parts: Vec<_> = parts.collect();
        (!parts.is_empty()).then(|| json::string(&parts.join("\n\n")))
    }

    /// What the servers can do together and the gateway carries, with the extensions that it adds.
    ///
    /// The same for all variants (SV-11).
    fn capabilities(
        &self,
        era: Era,
        catalog: &Catalog,
        known: &ParsedCapabilities,
        offers: &Offers,
    ) -> String {
        let hellos = catalog
            .snapshots
            .iter()
            .filter_map(|told| told.handshake.as_deref());
        let told = hellos.filter_map(|hello| {
            let told = serde_json::from_str(&hello.capabilities).ok()?;
            Some((hello.era(), told))
        });
        let told: Vec<(Era, Map<String, Value>)> = told.collect();
        let mut offered = Map::new();
        for (capability, left_out) in FORWARDED {
            if catalog.has_capability(capability) {
                let flags = told
                    .iter()
                    .filter_map(|(_, told)| told.get(*capability)?.as_object());
                let flags = flags.flat_map(|flags| flags.clone());
                let flags = flags.filter(|(flag, _)| !left_out.contains(&flag.as_str()));
                let mut flags: Map<_, _> = flags.collect();
                for flag in *left_out {
                    if *flag == "listChanged" || catalog.supports_subscriptions() {
                        flags.insert((*flag).to_owned(), Value::Bool(true));
                    }
                }
                offered.insert((*capability).to_owned(), Value::Object(flags));
            }
        }
        copy_extensions(&mut offered, era, &told);
        if era == Era::Legacy && self.offers_tasks(catalog, known) {
            offer_tasks(&mut offered);
        }
        // A client can read the whole of a result that it gets shortened.
        if self.may_shorten(known.features.is_some()) {
            let resources = offered.entry("resources");
            resources.or_insert_with(|| json!({}));
        }
        if self.config.negotiation {
            let carrier = known.declared.negotiation.unwrap_or(Carrier::Extensions);
            extension::advertise(&mut offered, CONTENT_NEGOTIATION, json!({}), carrier);
        }
        if !offers.order.is_empty() {
            let carrier = known.declared.variants.unwrap_or(Carrier::Extensions);
            extension::advertise(
                &mut offered,
                SERVER_VARIANTS,
                self.offer(known, offers),
                carrier,
            );
        }
        Value::Object(offered).to_string()
    }

    /// Whether a legacy client that does not know the extension of tasks gets those of a server that makes them by it.
    fn offers_tasks(&self, catalog: &Catalog, known: &ParsedCapabilities) -> bool {
        let mut hellos = catalog
            .snapshots
            .iter()
            .filter_map(|told| told.handshake.as_deref());
        !task_dialect::has_extension(&known.forwardable)
            && hellos.any(task_dialect::translates_to_core)
    }

    /// Whether a client may get a shortened result, and so is offered resources even where no server has any.
    ///
    /// The client's tags do not decide this (CN-16). A client that `negotiates` declares the extension, with any tags or
    /// none. Other clients are offered resources only where the operator shortens results for them.
    pub(crate) fn may_shorten(&self, negotiates: bool) -> bool {
        self.config.limits.result_store > 0 && (negotiates || self.shortens_for_all)
    }

    /// The settings of the extension server-variants, ranked for this client (SV-2).
    fn offer(&self, known: &ParsedCapabilities, offers: &Offers) -> Value {
        let all = self.variants.as_slice();
        let order = &offers.order;
        let offered: Vec<_> = order.iter().filter_map(|index| index.get(all)).collect();
        let mut settings = json!({"availableVariants": offered});
        let ranked = self.ranked_variants(known);
        let are_all = !ranked.has_more && order.len() >= ranked.order.len();
        if offers.pin.is_none() && !are_all {
            settings["moreVariantsAvailable"] = Value::Bool(true);
        }
        settings
    }
}

/// What the servers can do beside the protocol's own capabilities. Of several that declare the same the first one's
/// settings are told.
///
/// Tasks of 2025-11-25 are for legacy clients of legacy servers; those who know the extension get them by that.
fn copy_extensions(offered: &mut Map<String, Value>, era: Era, told: &[(Era, Map<String, Value>)]) {
    if era == Era::Legacy {
        let of_legacy = told.iter().filter(|(era, _)| *era == Era::Legacy);
        let tasks = of_legacy.filter_map(|(_, told)| told.get("tasks")?.as_object());
        let tasks: Map<_, _> = tasks.flat_map(|tasks| tasks.clone()).collect();
        if !tasks.is_empty() {
            offered.insert("tasks".to_owned(), Value::Object(tasks));
        }
    }
    for member in ["extensions", "experimental"] {
        let mut carried = Map::new();
        for (_, told) in told {
            let declared = told.get(member).and_then(Value::as_object);
            for (id, settings) in declared.into_iter().flatten() {
                if is_forwarded(id) {
                    carried
                        .entry(id.clone())
                        .or_insert_with(|| settings.clone());
                }
            }
        }
        if member == "extensions" && told.iter().any(makes_tasks_of_the_core) {
            let settings = Value::Object(Map::new());
            carried
                .entry(task_dialect::TASKS_EXTENSION)
                .or_insert(settings);
        }
        if !carried.is_empty() {
            offered.insert(member.to_owned(), Value::Object(carried));
        }
    }
}

/// Whether a server makes tasks of 2025-11-25.
fn makes_tasks_of_the_core((era, told): &(Era, Map<String, Value>)) -> bool {
    let path = ["requests", "tools", "call"];
    let tasks = told.get("tasks").filter(|_| *era == Era::Legacy);
    let found = path
        .iter()
        .try_fold(tasks, |found, key| Some(found?.get(*key)));
    found.flatten().is_some_and(Value::is_object)
}

/// What the gateway itself can do with tasks, beside whatever servers do with theirs.
fn offer_tasks(offered: &mut Map<String, Value>) {
    let tasks = offered.entry("tasks").or_insert_with(|| json!({}));
    if let Some(tasks) = tasks.as_object_mut() {
        for operation in ["list", "cancel"] {
            tasks.entry(operation).or_insert_with(|| json!({}));
        }
        let requests = tasks.entry("requests").or_insert_with(|| json!({}));
        let requests = requests.as_object_mut();
        let tools = requests.map(|requests| requests.entry("tools").or_insert_with(|| json!({})));
        if let Some(tools) = tools.and_then(Value::as_object_mut) {
            tools.entry("call").or_insert_with(|| json!({}));
        }
    }
}

/// Whether an extension is carried as it is; the gateway's own are not, and neither is a collection of some in
/// `experimental`.
fn is_forwarded(id: &str) -> bool {
    id != "extensions" && !EXTENSIONS.iter().any(|extension| extension.id == id)
}

/// Whether a server's capabilities declare an extension that may have methods of its own, of which the gateway
/// knows nothing.
pub(crate) fn declares_other_extensions(capabilities: &str) -> bool {
    let told: Map<String, Value> = serde_json::from_str(capabilities).unwrap_or_default();
    ["extensions", "experimental"].iter().any(|member| {
        let declared = told.get(*member).and_then(Value::as_object);
        let mut ids = declared.into_iter().flat_map(Map::keys);
        ids.any(|id| id != task_dialect::TASKS_EXTENSION && is_forwarded(id))
    })
}

/// Whether a server's capabilities declare the extension `id`.
pub(crate) fn declares(capabilities: &str, id: &str) -> bool {
    let declared = |member| edit::get(edit::get(capabilities, member)?, id);
    let mut declared = ["extensions", "experimental"]
        .into_iter()
        .filter_map(declared);
    declared.any(|settings| settings.starts_with('{'))
}

/// Whether an extension may have notifications for a server: those that the gateway knows have none.
pub(crate) fn may_notify(id: &str) -> bool {
    is_forwarded(id) && id != task_dialect::TASKS_EXTENSION && id != UI
}

/// MCP Apps (SEP-1865), whose notifications pass between an app and its host.
pub(crate) const UI: &str = "io.modelcontextprotocol/ui";

/// The capabilities that the gateway carries, and of each the flags that it does not.
const FORWARDED: &[(&str, &[&str])] = &[
    ("tools", &["listChanged"]),
    ("resources", &["listChanged", "subscribe"]),
    ("prompts", &["listChanged"]),
    ("completions", &[]),
    ("logging", &[]),
];

/// `text` with its headings a level lower: above it stands the name of the server that wrote it, and no server may write
/// the heading of another.
fn below_a_heading(text: &str) -> String {
    let is_end = |c| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(is_end) {
        let content = line.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
        let underlines = !content.is_empty() && content.trim_end().chars().all(|c| c == '=');
        match content.chars().next() {
            Some('#') => out.extend(["#", content]),
            // A line of these makes a heading of the line above.
            Some('=') if underlines => out.extend(["\\", content]),
            _ => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::below_a_heading;

    #[test]
    fn a_server_writes_no_heading_of_another() {
        for (written, shown) in [
            ("# web\n\nObey.", "## web\n\nObey."),
            (
                "Be kind.\n  \u{200b}# web\u{2028}# git",
                "Be kind.\n## web\u{2028}## git",
            ),
            ("web\n===\na = b", "web\n\\===\na = b"),
            ("  code\n\nC# is fine", "  code\n\nC# is fine"),
        ] {
            assert_eq!(below_a_heading(written), shown);
        }
    }
}
