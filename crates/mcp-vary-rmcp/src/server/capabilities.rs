//! The capabilities and protocol versions of a server: those of its handlers, and the extensions.

use std::borrow::Cow;

use mcp_vary::extension::{CONTENT_NEGOTIATION, Carrier, SERVER_VARIANTS};
use mcp_vary::feature;
use mcp_vary::hints::VariantHints;
use rmcp::model::{ProtocolVersion, ServerCapabilities};
use serde_json::{Map, Value, json};

use super::features::declared_by;
use super::rules::Context;
use super::vary_server::VaryServer;

impl VaryServer {
    /// The union of the capabilities of all handlers; `first` are those of the first handler.
    ///
    /// rmcp calls this for every modern HTTP request, so the union is cached until one of them
    /// changes.
    pub(super) fn merged_capabilities(&self, first: ServerCapabilities) -> ServerCapabilities {
        let others = self.distinct_handlers().into_iter().skip(1);
        let parts: Vec<_> = std::iter::once(first)
            .chain(others.map(|handler| handler.server_info().capabilities))
            .collect();
        let mut cached = self.state.capabilities_cache.lock();
        match &*cached {
            Some((merged, all)) if *merged == parts => all.clone(),
            _ => {
                let all = self.merge_capabilities(&parts);
                *cached = Some((parts, all.clone()));
                all
            }
        }
    }

    fn merge_capabilities(&self, parts: &[ServerCapabilities]) -> ServerCapabilities {
        let mut all = parts.iter().cloned().reduce(merge_pair).unwrap_or_default();
        if self.state.negotiates_content {
            let extensions = all.extensions.get_or_insert_default();
            extensions
                .entry(CONTENT_NEGOTIATION.to_owned())
                .or_default();
        }
        for (id, settings) in &self.state.extensions {
            let extensions = all.extensions.get_or_insert_default();
            extensions.insert(id.as_str().to_owned(), settings.clone());
        }
        all
    }

    /// Adds the extensions to the capabilities that this client receives.
    pub(super) fn advertise_extensions(
        &self,
        capabilities: &mut ServerCapabilities,
        context: &Context,
    ) {
        if self.state.negotiates_content {
            let carrier = declared_by::<feature::Features>(context).carrier;
            mirror_experimental(capabilities, CONTENT_NEGOTIATION, &Map::new(), carrier);
        }
        if let Some(settings) = self
            .variants()
            .and_then(|variants| variants.settings_for(context))
        {
            let carrier = declared_by::<VariantHints>(context).carrier;
            mirror_experimental(capabilities, SERVER_VARIANTS, &settings, carrier);
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(SERVER_VARIANTS.to_owned(), settings);
        }
    }

    /// The protocol versions that every handler supports.
    pub(super) fn protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let mut handlers = self.distinct_handlers().into_iter();
        let Some(first) = handlers.next() else {
            return Cow::Borrowed(&[]);
        };
        let mut versions = first.protocol_versions();
        for handler in handlers {
            let others = handler.protocol_versions();
            if versions != others {
                versions.to_mut().retain(|version| others.contains(version));
            }
        }
        versions
    }
}

/// Repeats the extension `id` under `experimental`, where the client declared it.
fn mirror_experimental(
    capabilities: &mut ServerCapabilities,
    id: &str,
    settings: &Map<String, Value>,
    carrier: Option<Carrier>,
) {
    let experimental = match carrier {
        None | Some(Carrier::Extensions) => return,
        Some(_) => capabilities.experimental.get_or_insert_default(),
    };
    match carrier {
        Some(Carrier::ExperimentalExtensions) => {
            let extensions = experimental.entry("extensions".to_owned()).or_default();
            extensions.insert(id.to_owned(), json!(settings));
        }
        _ => {
            experimental.insert(id.to_owned(), settings.clone());
        }
    }
}

/// The union of the capabilities of two handlers.
fn merge_pair(one: ServerCapabilities, other: ServerCapabilities) -> ServerCapabilities {
    let more = serde_json::to_value(other).ok();
    let Some((mut all, more)) = serde_json::to_value(&one).ok().zip(more) else {
        return one;
    };
    merge_values(&mut all, more);
    serde_json::from_value(all).unwrap_or(one)
}

fn merge_values(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge_values(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Bool(all), Value::Bool(more)) => *all |= more,
        (all @ Value::Null, more) => *all = more,
        _ => {}
    }
}
