//! The two forms of tasks, and the extension that declares one of them.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_vary::error::Era;
use mcp_vary::json;
use mcp_vary::json::edit;

use crate::handshake::Hello;

/// The extension of modern servers and clients.
///
/// Source: the extension `io.modelcontextprotocol/tasks` (SEP-2663).
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// In the `_meta` of everything that is about a task, in revision 2025-11-25.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The two forms of tasks. A server that knows both makes them in that which the client asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// That of revision 2025-11-25: the client wishes for each task.
    Core,
    /// The extension, in whatever era both declare it: the server decides.
    Extension,
}

impl Form {
    /// Both forms.
    pub const BOTH: [Self; 2] = [Self::Core, Self::Extension];

    /// The notification that one stands otherwise.
    pub const fn status_method(self) -> &'static str {
        let [core, extension] = TASK_STATUS;
        match self {
            Self::Core => core,
            Self::Extension => extension,
        }
    }

    /// The notification that a task of this form stands as `params` say.
    pub fn status(self, params: &str) -> Bytes {
        let method = json::string(self.status_method());
        Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#
        ))
    }

    /// Whether a server makes tasks of this form.
    pub fn is_offered(self, hello: &Hello) -> bool {
        match self {
            Self::Core => {
                let path = ["tasks", "requests", "tools", "call"];
                hello.era() == Era::Legacy && is_object_at(&hello.capabilities, &path)
            }
            Self::Extension => has_extension(&hello.capabilities),
        }
    }
}

/// Whether a server makes tasks by the extension alone, and for each request that declares it: so legacy clients may
/// have them in the core form, which the server does not know.
///
/// A legacy server is told once for all requests of a connection, and would make tasks for clients that wish for
/// none.
pub fn gives_core_form(hello: &Hello) -> bool {
    hello.era() == Era::Modern && Form::Extension.is_offered(hello)
}

/// Whether capabilities, of either side, hold the extension.
pub fn has_extension(capabilities: &str) -> bool {
    capabilities.contains(EXTENSION) && is_object_at(capabilities, &["extensions", EXTENSION])
}

/// `capabilities` of a client, with the extension.
pub fn with_extension(capabilities: &str) -> Cow<'_, str> {
    if has_extension(capabilities) {
        return Cow::Borrowed(capabilities);
    }
    let extensions = edit::get(capabilities, "extensions").unwrap_or("{}");
    let extensions = edit::set(extensions, EXTENSION, "{}");
    edit::set(capabilities, "extensions", &extensions)
}

/// Whether there is an object at the end of `path`.
fn is_object_at(object: &str, path: &[&str]) -> bool {
    let found = path
        .iter()
        .try_fold(object, |object, key| edit::get(object, key));
    found.is_some_and(|value| value.starts_with('{'))
}

/// The notifications that a task stands otherwise: that of revision 2025-11-25, and that of the extension
/// `io.modelcontextprotocol/tasks` (SEP-2663).
pub const TASK_STATUS: [&str; 2] = ["notifications/tasks/status", "notifications/tasks"];
