//! The extensions that the gateway negotiates itself: when they are on, where a client declares them, and what the gateway
//! advertises.
//!
//! Another one is a line of [`NEGOTIATED`] here, and one of [`EXTENSIONS`](mcp_vary::extension::EXTENSIONS) for what is not
//! forwarded.

use mcp_vary::extension::{self, CONTENT_NEGOTIATION, Carrier, SERVER_VARIANTS};
use serde_json::{Map, Value, json};

use crate::session::client::DeclaredFeatures;
use crate::settings::config::Config;

/// One extension.
#[derive(Debug)]
struct NegotiatedExtension {
    id: &'static str,
    /// Whether the operator has it on.
    is_on: fn(&Config) -> bool,
    /// Where the client declared it, if it did.
    carrier: fn(&DeclaredFeatures) -> Option<Carrier>,
    /// The settings that are advertised; none if it is not.
    settings: fn(&Advertisement<'_>) -> Option<Value>,
}

/// The extensions, in the order in which they are advertised.
const NEGOTIATED: &[NegotiatedExtension] = &[
    NegotiatedExtension {
        id: CONTENT_NEGOTIATION,
        is_on: |config| config.negotiation,
        carrier: |declared| declared.negotiation,
        settings: |advertisement| advertisement.config.negotiation.then(|| json!({})),
    },
    NegotiatedExtension {
        id: SERVER_VARIANTS,
        is_on: |config| config.variants,
        carrier: |declared| declared.variants,
        settings: |advertisement| advertisement.variants.clone(),
    },
];

/// What the settings of the extensions are made of.
#[derive(Debug)]
pub(crate) struct Advertisement<'a> {
    pub(crate) config: &'a Config,
    /// The settings of server variants; none if the client is offered none.
    pub(crate) variants: Option<Value>,
}

impl Advertisement<'_> {
    /// Adds the extensions to the capabilities that a client with `declared` gets.
    pub(crate) fn add_to(
        &self,
        capabilities: &mut Map<String, Value>,
        declared: &DeclaredFeatures,
    ) {
        for negotiated in NEGOTIATED {
            if let Some(settings) = (negotiated.settings)(self) {
                let carrier = (negotiated.carrier)(declared).unwrap_or(Carrier::Extensions);
                extension::advertise(capabilities, negotiated.id, settings, carrier);
            }
        }
    }
}

/// Whether a client that declares `capabilities` has the extension `id`, or need not have it since it is off.
pub(crate) fn is_satisfied(
    id: &str,
    config: &Config,
    capabilities: &Value,
    declared: &DeclaredFeatures,
) -> bool {
    match NEGOTIATED.iter().find(|negotiated| negotiated.id == id) {
        Some(negotiated) => !(negotiated.is_on)(config) || (negotiated.carrier)(declared).is_some(),
        None => extension::settings(capabilities, id).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary::extension::EXTENSIONS;

    use super::*;

    #[test]
    fn what_is_negotiated_is_what_is_not_forwarded() {
        let negotiated: Vec<&str> = NEGOTIATED.iter().map(|it| it.id).collect();
        let own: Vec<&str> = EXTENSIONS.iter().map(|it| it.id).collect();
        assert_eq!(negotiated, own);
    }
}
