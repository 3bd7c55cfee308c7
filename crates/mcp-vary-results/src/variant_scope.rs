//! The variants that a rule applies in.

use mcp_vary::variant::VariantId;

/// The variants that a rule applies in.
///
/// # Examples
///
/// ```
/// use mcp_vary_results::VariantScope;
///
/// let brief = "brief".parse()?;
/// assert!(VariantScope::default().contains(&brief));
/// assert!(!VariantScope::of(vec!["verbose".parse()?]).contains(&brief));
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct VariantScope(Option<Vec<VariantId>>);

impl VariantScope {
    /// The scope of a rule that names `variants`.
    pub const fn of(variants: Vec<VariantId>) -> Self {
        Self(Some(variants))
    }

    /// The variants that the rule names.
    pub fn ids(&self) -> impl Iterator<Item = &VariantId> {
        self.0.iter().flatten()
    }

    /// Whether the rule applies in `variant`. A rule that names no variants applies in all of them.
    pub fn contains(&self, variant: &VariantId) -> bool {
        self.0.as_ref().is_none_or(|all| all.contains(variant))
    }
}
