//! The errors of a declaration.

use std::fmt;

use mcp_vary::extension::ExtensionId;
use mcp_vary::rank::DEFAULT_ADVERTISED;
use mcp_vary::variant::{VariantDiagnostic, VariantId};

/// All problems of a declaration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BuildError(pub(super) Vec<BuildDiagnostic>);

impl BuildError {
    /// The problems; there is at least one.
    pub fn diagnostics(&self) -> &[BuildDiagnostic] {
        &self.0
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            let comma = if at > 0 { "; " } else { "" };
            write!(f, "{comma}{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// One problem of a declaration. All but the last are mistakes in the declaration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildDiagnostic {
    /// There is neither a variant nor a handler.
    #[error("nothing to serve; add a variant or a handler")]
    NothingToServe,
    /// There are variants and a handler without a variant.
    #[error("both variants and a handler are declared; remove one of them")]
    HandlerAndVariants,
    /// There are settings for variants, but no variants.
    #[error("there are settings for variants, but no variant; add one")]
    NoVariants,
    /// The settings of an extension are not a JSON object.
    #[error("the settings of the extension `{0}` are not a JSON object")]
    SettingsNotObject(ExtensionId),
    /// The number of advertised variants is out of range.
    #[error("the number of advertised variants must be 2 to {DEFAULT_ADVERTISED}")]
    AdvertisedOutOfRange,
    /// A variant, or the set of variants, is invalid.
    #[error(transparent)]
    Variant(#[from] VariantDiagnostic),
    /// A view contradicts itself.
    #[error("the view of {}: {what}", match variant { Some(id) => format!("variant `{id}`"), None => "the handler".to_owned() })]
    View {
        /// The variant; `None` for the handler of a server without variants.
        variant: Option<VariantId>,
        /// The problem and how to fix it.
        what: String,
    },
    /// The system has no random bytes.
    #[error("the system has no random bytes for a cursor key; set one with `with_cursor_keys`")]
    NoRandomness,
}
