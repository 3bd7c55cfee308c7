//! The two dialects of tasks: the core of revision 2025-11-25, and the tasks extension.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_vary::error::Era;
use mcp_vary::json::{self, edit, may_contain};

use crate::handshake::Handshake;

/// The identifier of the tasks extension.
///
/// Source: the extension `io.modelcontextprotocol/tasks` (SEP-2663).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The key of `_meta` that names the related task, in revision 2025-11-25.
pub const RELATED_TASK_META: &str = "io.modelcontextprotocol/related-task";

/// The two dialects of tasks. A server that supports both creates a task in the dialect that the client requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskDialect {
    /// Revision 2025-11-25: the client requests each task.
    Core,
    /// The extension, if both sides declare it: the server decides.
    Extension,
}

impl TaskDialect {
    /// Both dialects.
    pub const BOTH: [Self; 2] = [Self::Core, Self::Extension];

    /// The method of the status notification.
    pub const fn status_method(self) -> &'static str {
        let [core, extension] = TASK_STATUS_METHODS;
        match self {
            Self::Core => core,
            Self::Extension => extension,
        }
    }

    /// The status notification with `params`.
    pub fn status_notification(self, params: &str) -> Bytes {
        let method = json::string(self.status_method());
        Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#
        ))
    }

    /// Whether a server creates tasks in this dialect.
    pub fn is_supported_by(self, handshake: &Handshake) -> bool {
        match self {
            Self::Core => {
                let path = ["tasks", "requests", "tools", "call"];
                handshake.era() == Era::Legacy && is_object_at(&handshake.capabilities, &path)
            }
            Self::Extension => has_extension(&handshake.capabilities),
        }
    }
}

/// Whether the capabilities of either side declare the extension.
pub fn has_extension(capabilities: &str) -> bool {
    may_contain(capabilities, TASKS_EXTENSION)
        && is_object_at(capabilities, &["extensions", TASKS_EXTENSION])
}

/// `capabilities` of a client, with the extension.
pub fn with_extension(capabilities: &str) -> Cow<'_, str> {
    if has_extension(capabilities) {
        return Cow::Borrowed(capabilities);
    }
    let extensions = edit::get(capabilities, "extensions").unwrap_or("{}");
    let extensions = edit::set(extensions, TASKS_EXTENSION, "{}");
    edit::set(capabilities, "extensions", &extensions)
}

/// `text`, a result or the params of a message, with the id of its related task replaced by `name`.
///
/// > All requests, responses, and notifications associated with a task MUST include the
/// > `io.modelcontextprotocol/related-task` key in `_meta` (MCP 2025-11-25, basic/utilities/tasks)
pub fn rename_related_task<'a>(
    text: &'a str,
    name: &dyn Fn(&str) -> Option<String>,
) -> Cow<'a, str> {
    if !may_contain(text, RELATED_TASK_META) {
        return Cow::Borrowed(text);
    }
    let renamed = || {
        let meta = edit::get(text, "_meta")?;
        let related = edit::get(meta, RELATED_TASK_META)?;
        let id: String = serde_json::from_str(edit::get(related, "taskId")?).ok()?;
        let related = edit::set(related, "taskId", &json::string(&name(&id)?));
        let meta = edit::set(meta, RELATED_TASK_META, &related);
        Some(edit::set(text, "_meta", &meta).into_owned())
    };
    renamed().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Whether there is an object at `path`.
fn is_object_at(object: &str, path: &[&str]) -> bool {
    let found = path
        .iter()
        .try_fold(object, |object, key| edit::get(object, key));
    found.is_some_and(|value| value.starts_with('{'))
}

/// The methods of the status notifications: that of revision 2025-11-25, and that of the extension
/// `io.modelcontextprotocol/tasks` (SEP-2663).
pub const TASK_STATUS_METHODS: [&str; 2] = ["notifications/tasks/status", "notifications/tasks"];

#[cfg(test)]
mod tests {
    use super::*;

    /// PHP escapes slashes, and half of the keys of the protocol have one.
    #[test]
    fn what_a_server_writes_with_escaped_slashes_is_the_same() {
        let declared = r#"{"extensions":{"io.modelcontextprotocol\/tasks":{}}}"#;
        assert!(has_extension(declared));
        let result = r#"{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"a"}}}"#;
        let renamed = rename_related_task(result, &|id| Some(format!("gw-{id}")));
        let expected = r#"{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"gw-a"}}}"#;
        assert_eq!(renamed, expected);
    }
}
