//! What authenticated clients may see and use.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_vary_access::AccessPolicy;

/// The access rules of a configuration. Without them, everybody who may use the gateway may use everything.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct AccessSettings {
    /// The rules.
    pub policy: Arc<AccessPolicy>,
    /// The names of the servers whose annotations can allow something: the operator trusts what they say of their
    /// tools.
    pub trusted_annotations: Arc<BTreeSet<String>>,
}
