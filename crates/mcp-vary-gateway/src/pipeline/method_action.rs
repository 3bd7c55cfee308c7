//! The methods that the gateway handles, and the error for others.

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::response::RpcError;

/// How a method is handled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MethodAction {
    Ping,
    Discover,
    SetLevel,
    List(ListKind),
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
    ListTasks,
    Task(TaskAction),
    /// A method of an extension that the gateway does not know.
    Extension,
}

impl MethodAction {
    /// The method, if its requests may take several round trips.
    ///
    /// > Servers MUST NOT send `InputRequiredResult` responses on any other client requests.
    /// > (MCP 2026-07-28, basic/patterns/mrtr, "Supported Requests")
    pub(crate) const fn round_trip_method(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("tools/call"),
            Self::ReadResource => Some("resources/read"),
            Self::GetPrompt => Some("prompts/get"),
            _ => None,
        }
    }
}

/// The request about a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskAction {
    Get,
    Update,
    Cancel,
    /// Its result alone, as if the call had just been answered.
    Result,
}

/// Known methods that this gateway does not forward, and why.
const NOT_CARRIED: &[(&str, &str)] = &[(
    "tasks/",
    "no server behind this gateway offers tasks to such a client",
)];

/// The error for a method that does not exist, or is not forwarded.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    let known = NOT_CARRIED
        .iter()
        .find(|(name, _)| method.starts_with(name));
    let cut: String = method.chars().take(128).collect();
    RpcError::method_not_found(match known {
        Some((_, why)) => format!("Method not found: {cut}: {why}"),
        None => format!("Method not found: {cut}"),
    })
}
