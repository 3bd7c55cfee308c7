//! The servers and clients that a check applies to.

use serde::Deserialize;

use crate::extension::Extension;

/// The servers or clients that a check applies to.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// Every server, or every client.
    #[default]
    Any,
    /// Servers that declare content negotiation.
    Negotiation,
    /// Servers that do not declare content negotiation.
    NoNegotiation,
    /// Servers that declare server variants, with or without any on offer.
    DeclaredVariants,
    /// Servers that offer at least one variant.
    Variants,
    /// Servers that do not declare server variants. Only a run that asks for it checks them: a server cannot be expected to
    /// know a document that it does not claim to implement.
    NoVariants,
    /// Clients that declare content negotiation.
    NegotiatingClient,
    /// Clients that declare server variants, or select one.
    VariantsClient,
}

impl Scope {
    /// Why a server or client is outside.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Any => "nobody is outside",
            Self::Negotiation => "the server does not declare content negotiation",
            Self::NoNegotiation => "the server declares content negotiation",
            Self::DeclaredVariants => "the server does not declare server variants",
            Self::Variants => "the server offers no variants",
            Self::NoVariants => "the server declares server variants",
            Self::NegotiatingClient => "the client does not declare content negotiation",
            Self::VariantsClient => "the client neither declares server variants nor selects one",
        }
    }

    /// The extension that the scope is about.
    pub(crate) const fn extension(self) -> Option<Extension> {
        match self {
            Self::Any => None,
            Self::Negotiation | Self::NoNegotiation | Self::NegotiatingClient => {
                Some(Extension::Negotiation)
            }
            Self::DeclaredVariants | Self::Variants | Self::NoVariants | Self::VariantsClient => {
                Some(Extension::Variants)
            }
        }
    }
}
