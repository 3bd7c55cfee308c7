//! The checks, a file for each topic. A file begins with its checks as data; their functions follow in the same order.

pub(crate) mod cursors;
pub(crate) mod features;
pub(crate) mod formats;
pub(crate) mod framework;
pub(crate) mod hints;
pub(crate) mod identifiers;
pub(crate) mod offers;
pub(crate) mod results;
pub(crate) mod selection;
pub(crate) mod unknown_variants;

/// Where the sentences are from.
mod source {
    pub(super) const EXTENSIONS: &str = "SEP-2133, Definition";
    pub(super) const NEGOTIATION_OF_EXTENSIONS: &str = "SEP-2133, Negotiation";
    pub(super) const DEGRADATION: &str = "SEP-2133, Graceful Degradation";
    pub(super) const SECURITY_OF_EXTENSIONS: &str = "SEP-2133, Security Implications";
    pub(super) const DECISION: &str =
        "a decision of this project; the documents are silent or contradict each other";

    pub(super) const SETTINGS: &str = "Content Negotiation SEP, Extension Settings Schema";
    pub(super) const ADOPTION: &str =
        "Content Negotiation SEP, Extension Adoption and Graceful Degradation";
    pub(super) const BEHAVIOR: &str = "Content Negotiation SEP, Behavioral Requirements";
    pub(super) const TESTING: &str = "Content Negotiation SEP, Testing Content Negotiation";
    pub(super) const TAGS: &str = "Content Negotiation SEP, Feature Tag Predicate Syntax";
    pub(super) const INJECTION: &str = "Content Negotiation SEP, Risk 2: Tag Injection";
    pub(super) const DESIGN: &str = "Content Negotiation SEP, Why This Design?";

    pub(super) const TYPES: &str = "SEP-2053, New Types";
    pub(super) const VARIANT_HINTS: &str = "SEP-2053, VariantHints";
    pub(super) const INITIALIZE_RESULT: &str = "SEP-2053, InitializeResult";
    pub(super) const RANKING: &str = "SEP-2053, Server Ranking Best Practices";
    pub(super) const SELECTION: &str = "SEP-2053, Per-Request Variant Selection";
    pub(super) const CAPABILITIES: &str = "SEP-2053, Variant-Aware Capability Behavior";
    pub(super) const SUBSCRIPTIONS: &str =
        "SEP-2053, Variant-Scoped Subscriptions and Notifications";
    pub(super) const CURSORS: &str = "SEP-2053, Cursor and Pagination Scoping";
    pub(super) const IDENTIFIERS: &str = "SEP-2053, Identifier Namespace Scoping";
    pub(super) const ERRORS: &str = "SEP-2053, Implementation Notes, Debugging Consistency";

    pub(super) const VISIBILITY: &str = "Tool Result Visibility SEP, Specification";
    pub(super) const OUTPUT_SCHEMA: &str = "MCP 2025-11-25 and 2026-07-28, Tools, Output Schema";
}
