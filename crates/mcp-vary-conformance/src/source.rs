//! The sections of the documents that checks quote.

pub(crate) const EXTENSIONS: &str = "SEP-2133, Definition";
pub(crate) const NEGOTIATION_OF_EXTENSIONS: &str = "SEP-2133, Negotiation";
pub(crate) const DEGRADATION: &str = "SEP-2133, Graceful Degradation";
pub(crate) const SECURITY_OF_EXTENSIONS: &str = "SEP-2133, Security Implications";
pub(crate) const DECISION: &str =
    "a decision of this project; the documents are silent or contradict each other";

pub(crate) const SETTINGS: &str = "Content Negotiation SEP, Extension Settings Schema";
pub(crate) const ADOPTION: &str =
    "Content Negotiation SEP, Extension Adoption and Graceful Degradation";
pub(crate) const ADOPTION_AND_TESTING: &str = "Content Negotiation SEP, Extension Adoption and Graceful Degradation, Testing Content Negotiation";
pub(crate) const BEHAVIOR: &str = "Content Negotiation SEP, Behavioral Requirements";
pub(crate) const TESTING: &str = "Content Negotiation SEP, Testing Content Negotiation";
pub(crate) const TAGS: &str = "Content Negotiation SEP, Feature Tag Predicate Syntax";
pub(crate) const TAGS_AND_TESTING: &str =
    "Content Negotiation SEP, Feature Tag Predicate Syntax, Testing Content Negotiation";
pub(crate) const INJECTION: &str = "Content Negotiation SEP, Risk 2: Tag Injection";
pub(crate) const DESIGN: &str = "Content Negotiation SEP, Why This Design?";

pub(crate) const TYPES: &str = "SEP-2053, New Types";
pub(crate) const VARIANT_HINTS: &str = "SEP-2053, VariantHints";
pub(crate) const INITIALIZE_PARAMS: &str = "SEP-2053, InitializeRequestParams";
pub(crate) const INITIALIZE_RESULT: &str = "SEP-2053, InitializeResult";
pub(crate) const RANKING: &str = "SEP-2053, Server Ranking Best Practices";
pub(crate) const SELECTION: &str = "SEP-2053, Per-Request Variant Selection";
pub(crate) const CAPABILITIES: &str = "SEP-2053, Variant-Aware Capability Behavior";
pub(crate) const SUBSCRIPTIONS: &str = "SEP-2053, Variant-Scoped Subscriptions and Notifications";
pub(crate) const CURSORS: &str = "SEP-2053, Cursor and Pagination Scoping";
pub(crate) const IDENTIFIERS: &str = "SEP-2053, Identifier Namespace Scoping";
pub(crate) const SECURITY_OF_SELECTION: &str = "SEP-2053, Security Considerations";
pub(crate) const AUTHORIZATION: &str =
    "SEP-2053, Authorization-Aware Variant Lists; Variant-Based Authorization";
pub(crate) const CACHING: &str = "SEP-2053, Implementation Notes, Response Caching";
pub(crate) const ERRORS: &str = "SEP-2053, Implementation Notes, Debugging Consistency";

pub(crate) const HEADER: &str = "SEP-2053, HTTP Header Support";
pub(crate) const RATE_LIMITS: &str =
    "SEP-2053, Implementation Notes, Rate Limiting and DoS Hardening";

pub(crate) const VISIBILITY: &str = "Tool Result Visibility SEP, Specification";
pub(crate) const OUTPUT_SCHEMA: &str = "MCP 2025-11-25 and 2026-07-28, Tools, Output Schema";
