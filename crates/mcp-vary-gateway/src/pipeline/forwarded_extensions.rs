//! The extensions that the gateway forwards between clients and servers, as they are declared in capabilities.

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::json::edit;
use mcp_vary_wire::task_dialect::TASKS_EXTENSION;

/// MCP Apps (SEP-1865), whose notifications pass between an app and its host.
pub(crate) const UI: &str = "io.modelcontextprotocol/ui";

/// The members of capabilities that declare extensions.
pub(crate) const CARRIERS: [&str; 2] = ["extensions", "experimental"];

/// Whether an extension is forwarded unchanged. The gateway's own are not, and neither is a member `extensions` of
/// `experimental`.
pub(crate) fn is_forwarded(id: &str) -> bool {
    id != "extensions" && !EXTENSIONS.iter().any(|extension| extension.id == id)
}

/// Whether capabilities declare the extension `id`.
pub(crate) fn declares(capabilities: &str, id: &str) -> bool {
    let declared = |member| edit::get(edit::get(capabilities, member)?, id);
    let mut declared = CARRIERS.into_iter().filter_map(declared);
    declared.any(|settings| settings.starts_with('{'))
}

/// Whether the gateway does not know an extension, whose methods and notifications then go to the server that declares it.
pub(crate) fn is_unknown(id: &str) -> bool {
    is_forwarded(id) && id != TASKS_EXTENSION && id != UI
}
