//! The extensions that the gateway negotiates itself: when they are on, where a client declares them, and what the gateway
//! advertises.
//!
//! Another one is a line of [`NEGOTIATED`] here, and one of [`EXTENSIONS`](mcp_vary::extension::EXTENSIONS) for what is not
//! forwarded.

use mcp_vary::extension::{self, CONTENT_NEGOTIATION, Carrier, SERVER_VARIANTS};
use mcp_vary_results::negotiation_log::IgnoredCounter;
use serde_json::{Map, Value, json};

use mcp_vary_session::client::{DeclaredFeatures, ReadExtension, read_features, read_hints};
use mcp_vary_settings::config::Config;

/// One extension.
#[derive(Clone, Copy, Debug)]
struct NegotiatedExtension {
    id: &'static str,
    /// Whether the operator has it on.
    is_on: fn(&Config) -> bool,
    /// Reads what a client declares of it.
    read: ReadExtension,
    /// The settings that a client with these declarations gets; none if it is not advertised.
    settings: fn(&Advertisement<'_>, &DeclaredFeatures) -> Option<Value>,
}

/// Extensions, in the order in which they are advertised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtensionTable(&'static [NegotiatedExtension]);

/// Those of the gateway.
pub(crate) const NEGOTIATED: ExtensionTable = ExtensionTable(&[
    NegotiatedExtension {
        id: CONTENT_NEGOTIATION,
        is_on: |config| config.negotiation,
        read: read_features,
        settings: |advertisement, _| advertisement.config.negotiation.then(|| json!({})),
    },
    NegotiatedExtension {
        id: SERVER_VARIANTS,
        is_on: |config| config.variants,
        read: read_hints,
        settings: |advertisement, _| advertisement.variants.clone(),
    },
]);

/// What the settings of the extensions are made of.
#[derive(Debug)]
pub(crate) struct Advertisement<'a> {
    pub(crate) config: &'a Config,
    /// The settings of server variants; none if the client is offered none.
    pub(crate) variants: Option<Value>,
}

impl ExtensionTable {
    /// What a client declares of the extensions.
    pub(crate) fn read(self, capabilities: &Value, ignorings: &IgnoredCounter) -> DeclaredFeatures {
        let declared = self.0.iter().filter_map(|negotiated| {
            let declared = (negotiated.read)(capabilities, ignorings)?;
            Some((negotiated.id, declared))
        });
        declared.collect()
    }

    /// Adds the extensions to the capabilities that a client with `declared` gets.
    pub(crate) fn advertise(
        self,
        advertisement: &Advertisement<'_>,
        capabilities: &mut Map<String, Value>,
        declared: &DeclaredFeatures,
    ) {
        for negotiated in self.0 {
            if let Some(settings) = (negotiated.settings)(advertisement, declared) {
                let carrier = declared.carrier(negotiated.id);
                let carrier = carrier.unwrap_or(Carrier::Extensions);
                extension::advertise(capabilities, negotiated.id, settings, carrier);
            }
        }
    }

    /// Whether a client that declares `capabilities` has the extension `id`, or need not have it since it is off.
    pub(crate) fn is_satisfied(
        self,
        id: &str,
        config: &Config,
        capabilities: &Value,
        declared: &DeclaredFeatures,
    ) -> bool {
        match self.0.iter().find(|negotiated| negotiated.id == id) {
            Some(negotiated) => !(negotiated.is_on)(config) || declared.carrier(id).is_some(),
            None => extension::settings(capabilities, id).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary::extension::{Declaration, EXTENSIONS, declared};
    use mcp_vary::hints::VariantHints;
    use mcp_vary::ignored::Ignored;
    use mcp_vary_base::environment::Environment;

    use super::*;
    use mcp_vary_session::client::DeclaredExtension;

    /// A third extension: the client declares a currency, and gets it back.
    #[derive(Debug, Default, PartialEq)]
    struct Prices(String);

    impl Declaration for Prices {
        const ID: &'static str = "com.example/prices";

        fn read(settings: &Value) -> (Option<Self>, Ignored) {
            let currency = settings["currency"].as_str();
            (currency.map(|it| Self(it.to_owned())), Ignored::default())
        }
    }

    const WITH_PRICES: ExtensionTable = ExtensionTable(&[
        NEGOTIATED.0[1],
        NegotiatedExtension {
            id: Prices::ID,
            is_on: |_| true,
            read: |capabilities, _| DeclaredExtension::of(declared::<Prices>(capabilities)),
            settings: |_, declared| {
                let prices = declared.get::<Prices>()?;
                Some(json!({"pricesIn": prices.0}))
            },
        },
    ]);

    /// EXT-8: a third extension is read, acted on, advertised where the client declared it, and required, by one row.
    #[test]
    fn a_third_extension_is_one_row() {
        let config = Config::with_servers(Vec::new(), Environment::new(|| 0, |_| {}));
        let advertisement = Advertisement {
            config: &config,
            variants: Some(json!({})),
        };
        let answered = |capabilities: &Value| {
            let declared = WITH_PRICES.read(capabilities, &IgnoredCounter::default());
            let mut answer = Map::new();
            WITH_PRICES.advertise(&advertisement, &mut answer, &declared);
            let has = WITH_PRICES.is_satisfied(Prices::ID, &config, capabilities, &declared);
            (Value::Object(answer), has, declared)
        };
        let variants = json!({SERVER_VARIANTS: {"variantHints": {"hints": {"useCase": "chat"}}}});
        let capabilities = json!({
            "extensions": variants, "experimental": {Prices::ID: {"currency": "CHF"}},
        });
        let (answer, has, declared) = answered(&capabilities);
        let expected = json!({
            "extensions": {SERVER_VARIANTS: {}, Prices::ID: {"pricesIn": "CHF"}},
            "experimental": {Prices::ID: {"pricesIn": "CHF"}},
        });
        assert_eq!((answer, has), (expected, true));
        assert_eq!(declared.get().as_deref(), Some(&Prices("CHF".to_owned())));
        let hints = declared.get::<VariantHints>().unwrap();
        assert_eq!(hints.values("useCase"), ["chat"]);
        let (answer, has, declared) = answered(&json!({}));
        let expected = (json!({"extensions": {SERVER_VARIANTS: {}}}), false);
        assert_eq!((answer, has), expected);
        assert_eq!(declared.get::<VariantHints>(), None);
    }

    #[test]
    fn what_is_negotiated_is_what_is_not_forwarded() {
        let negotiated: Vec<&str> = NEGOTIATED.0.iter().map(|it| it.id).collect();
        let not_forwarded: Vec<&str> = EXTENSIONS.iter().map(|it| it.id).collect();
        assert_eq!(negotiated, not_forwarded);
    }
}
