//! The extensions that the gateway forwards between clients and servers, as they are declared in capabilities.

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::json::{self, edit};
use mcp_vary_wire::task_dialect::TASKS_EXTENSION;
use serde_json::{Map, Value};

/// MCP Apps (SEP-1865), whose notifications pass between an app and its host.
pub(crate) const UI: &str = "io.modelcontextprotocol/ui";

/// The members of capabilities that declare extensions.
pub(crate) const CARRIERS: [&str; 2] = ["extensions", "experimental"];

/// Whether an extension is forwarded unchanged. The gateway's own are not, and neither is a member `extensions` of
/// `experimental`.
pub(crate) fn is_forwarded(id: &str) -> bool {
    id != "extensions" && !EXTENSIONS.iter().any(|extension| extension.id == id)
}

/// Whether a server's capabilities declare an extension that may have methods that the gateway does not know.
pub(crate) fn declares_unknown(capabilities: &str) -> bool {
    let parsed = json::to_map(capabilities).unwrap_or_default();
    CARRIERS.iter().any(|member| {
        let declared = parsed.get(*member).and_then(Value::as_object);
        let mut ids = declared.into_iter().flat_map(Map::keys);
        ids.any(|id| id != TASKS_EXTENSION && is_forwarded(id))
    })
}

/// Whether capabilities declare the extension `id`.
pub(crate) fn declares(capabilities: &str, id: &str) -> bool {
    let declared = |member| edit::get(edit::get(capabilities, member)?, id);
    let mut declared = CARRIERS.into_iter().filter_map(declared);
    declared.any(|settings| settings.starts_with('{'))
}

/// Whether an extension may have notifications for a server. The extensions that the gateway knows have none.
pub(crate) fn may_notify(id: &str) -> bool {
    is_forwarded(id) && id != TASKS_EXTENSION && id != UI
}
