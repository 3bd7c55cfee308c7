//! The checks of clients, a file for each topic. A file begins with its checks as data; their functions follow in the same
//! order.

pub(crate) mod declarations;
pub(crate) mod reactions;
pub(crate) mod selection;

use crate::check::{ClientObjection, ClientVerdict, Objection};

/// Where the sentences are from.
mod source {
    pub(super) const EXTENSIONS: &str = "SEP-2133, Definition";
    pub(super) const NEGOTIATION_OF_EXTENSIONS: &str = "SEP-2133, Negotiation";
    pub(super) const DEGRADATION: &str = "SEP-2133, Graceful Degradation";
    pub(super) const SECURITY_OF_EXTENSIONS: &str = "SEP-2133, Security Implications";
    pub(super) const DECISION: &str =
        "a decision of this project; the documents are silent or contradict each other";

    pub(super) const SETTINGS: &str = "Content Negotiation SEP, Extension Settings Schema";
    pub(super) const BEHAVIOR: &str = "Content Negotiation SEP, Behavioral Requirements";
    pub(super) const TAGS: &str = "Content Negotiation SEP, Feature Tag Predicate Syntax";

    pub(super) const TYPES: &str = "SEP-2053, New Types";
    pub(super) const VARIANT_HINTS: &str = "SEP-2053, VariantHints";
    pub(super) const INITIALIZE_PARAMS: &str = "SEP-2053, InitializeRequestParams";
    pub(super) const INITIALIZE_RESULT: &str = "SEP-2053, InitializeResult";
    pub(super) const SELECTION: &str = "SEP-2053, Per-Request Variant Selection";
    pub(super) const SUBSCRIPTIONS: &str =
        "SEP-2053, Variant-Scoped Subscriptions and Notifications";
    pub(super) const CURSORS: &str = "SEP-2053, Cursor and Pagination Scoping";
    pub(super) const CACHING: &str = "SEP-2053, Implementation Notes, Response Caching";
    pub(super) const ERRORS: &str = "SEP-2053, Implementation Notes, Debugging Consistency";
}

/// The objection that an event shows.
fn violation(last_event: usize, finding: impl Into<String>) -> ClientVerdict {
    Err(ClientObjection {
        objection: Objection::Violation(finding.into()),
        last_event: Some(last_event),
    })
}

/// The objection that a whole run shows.
fn violation_of_run(finding: impl Into<String>) -> ClientVerdict {
    Err(ClientObjection {
        objection: Objection::Violation(finding.into()),
        last_event: None,
    })
}

fn not_applicable(reason: impl Into<String>) -> ClientVerdict {
    Err(ClientObjection {
        objection: Objection::NotApplicable(reason.into()),
        last_event: None,
    })
}
