//! Methods that several crates name.

/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";

/// Subscribes to a resource of a legacy server.
pub const SUBSCRIBE: &str = "resources/subscribe";

/// Sets the log level of a legacy server.
pub const SET_LEVEL: &str = "logging/setLevel";

/// The prefixes of the protocol's methods, of all revisions and both sides.
const OF_THE_PROTOCOL: &[&str] = &[
    "completion",
    "elicitation",
    "initialize",
    "logging",
    "messages",
    "notifications",
    "ping",
    "prompts",
    "resources",
    "roots",
    "rpc",
    "sampling",
    "server",
    "subscriptions",
    "tasks",
    "tools",
];

/// Whether `method` is one of the protocol's own, may become one, or may be taken for one by a server: such a one is
/// never passed on unread, since it could reach around what a variant shows.
pub fn is_of_the_protocol(method: &str) -> bool {
    // Servers that trim, that end a text at a NUL, or that ignore case would take others for the protocol's.
    let is_plain = method.bytes().all(|byte| byte.is_ascii_graphic());
    let is_path = |segment| matches!(segment, "" | "." | "..");
    let mut parts = method.split(['/', '.', ':', '\\']);
    let first = parts.next().unwrap_or_default();
    !is_plain
        || method.split('/').any(is_path)
        || OF_THE_PROTOCOL
            .iter()
            .any(|known| known.eq_ignore_ascii_case(first))
}
