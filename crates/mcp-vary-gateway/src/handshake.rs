//! `initialize` and `server/discover`: how a client learns who is there and what is offered.

use mcp_vary::extension::{self, CONTENT_NEGOTIATION, Carrier, SERVER_VARIANTS};
use mcp_vary::json::{self, Members};
use serde_json::{Map, Value, json};

use crate::bridge::{self, Caching};
use crate::gateway::{Gateway, Known};
use crate::meta::SERVER_INFO;
use crate::params::Params;
use crate::reply::{self, Failure};
use crate::revision::{Era, Revision};
use crate::session::{Fixed, NO_CLASS};

impl Gateway {
    /// Answers `initialize`: what the session fixes, and the result.
    ///
    /// # Errors
    ///
    /// `-32602` when a required parameter is missing or of a wrong type; it names the parameter.
    pub(crate) fn initialize(&self, params: &Params<'_>) -> Result<(Fixed, String), Failure> {
        let asked = params.string("protocolVersion")?;
        let capabilities = params.object("capabilities")?;
        params.object("clientInfo")?;
        let known = self.know(capabilities);
        let revision = Revision::parse(&asked)
            .filter(|revision| revision.era() == Era::Legacy)
            .unwrap_or(Revision::LATEST_LEGACY);
        let result = self.initialize_result(revision, &known);
        let order = known
            .order
            .iter()
            .map(|index| self.variant_id(*index).to_string());
        let fixed = Fixed {
            revision,
            features: known.features.clone(),
            order: order.collect(),
            class: NO_CLASS.into(),
        };
        Ok((fixed, result))
    }

    /// A server of the same era is repeated as it spoke, but for what the gateway itself decides.
    fn initialize_result(&self, revision: Revision, known: &Known) -> String {
        let hello = self.upstream.hello();
        let mut result = match hello.era() {
            Era::Legacy => Members::parse(&hello.result).unwrap_or_default(),
            Era::Modern => Members::default(),
        };
        result.set("protocolVersion", json::string(revision.as_str()));
        result.set("capabilities", self.capabilities(known));
        result.set("serverInfo", self.server_info());
        if let Some(instructions) = &hello.instructions {
            result.set("instructions", instructions.as_str());
        }
        result.to_json()
    }

    /// Answers `server/discover` for a client of these capabilities.
    pub(crate) fn discover(&self, known: &Known) -> String {
        let hello = self.upstream.hello();
        let mut result = match hello.era() {
            Era::Modern => Members::parse(&hello.result).unwrap_or_default(),
            Era::Legacy => Members::default(),
        };
        result.set("supportedVersions", reply::supported_versions());
        result.set("capabilities", self.capabilities(known));
        let told = result.get("_meta").unwrap_or("{}").to_owned();
        let mut meta = Members::parse(&told).unwrap_or_default();
        meta.set(SERVER_INFO, self.server_info());
        result.set("_meta", meta.to_json());
        if let Some(instructions) = &hello.instructions {
            result.set("instructions", instructions.as_str());
        }
        bridge::cacheable(&result.to_json(), Caching::Never)
    }

    fn server_info(&self) -> String {
        let told = self.upstream.hello().server_info.clone();
        told.unwrap_or_else(|| {
            let name = json::string(&self.config.upstream.name);
            format!(r#"{{"name":{name},"version":"unknown"}}"#)
        })
    }

    /// What the server can do and the gateway carries, with the extensions that it adds.
    ///
    /// The same for all variants (SV-11).
    fn capabilities(&self, known: &Known) -> String {
        let told: Map<String, Value> =
            serde_json::from_str(&self.upstream.hello().capabilities).unwrap_or_default();
        let mut offered = Map::new();
        for (capability, left_out) in CARRIED {
            if self.offered.contains(*capability) {
                let told = told.get(*capability).and_then(Value::as_object);
                let mut flags = told.cloned().unwrap_or_default();
                flags.retain(|flag, _| !left_out.contains(&flag.as_str()));
                offered.insert((*capability).to_owned(), Value::Object(flags));
            }
        }
        if self.config.negotiation {
            let carrier = known.declared.negotiation.unwrap_or(Carrier::Extensions);
            extension::advertise(&mut offered, CONTENT_NEGOTIATION, json!({}), carrier);
        }
        if !known.order.is_empty() {
            let carrier = known.declared.variants.unwrap_or(Carrier::Extensions);
            extension::advertise(&mut offered, SERVER_VARIANTS, self.offer(known), carrier);
        }
        Value::Object(offered).to_string()
    }

    /// The settings of the extension server-variants, ranked for this client (SV-2).
    fn offer(&self, known: &Known) -> Value {
        let all = self.variants.as_slice();
        let offered: Vec<_> = known
            .order
            .iter()
            .filter_map(|index| all.get(*index))
            .collect();
        let mut settings = json!({"availableVariants": offered});
        if known.more {
            settings["moreVariantsAvailable"] = Value::Bool(true);
        }
        settings
    }
}

/// The capabilities that the gateway carries, and of each the flags that it does not.
const CARRIED: &[(&str, &[&str])] = &[
    ("tools", &["listChanged"]),
    ("resources", &["listChanged", "subscribe"]),
    ("prompts", &["listChanged"]),
    ("completions", &[]),
    ("logging", &[]),
];
