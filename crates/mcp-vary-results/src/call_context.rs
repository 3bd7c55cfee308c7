//! The call that a result belongs to.

use std::sync::Arc;

/// The call that a result belongs to.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The server's own name of the tool or prompt.
    pub name: Arc<str>,
    /// The name of the server.
    pub server: Arc<str>,
    /// The arguments that the server received, as JSON.
    pub arguments: String,
}
