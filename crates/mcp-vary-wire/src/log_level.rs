//! The levels of log messages.

use mcp_vary::json::{Members, edit, string};

/// The levels, least severe first.
///
/// Source: MCP 2025-11-25, server/utilities/logging, "Log Levels".
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The rank of a level's name, 0 for `debug`.
pub fn level_from_name(name: &str) -> Option<u8> {
    let at = LEVELS.iter().position(|level| *level == name)?;
    u8::try_from(at).ok()
}

/// The name of a level.
pub fn level_name(level: u8) -> &'static str {
    LEVELS
        .get(usize::from(level))
        .copied()
        .unwrap_or("emergency")
}

/// The parameters of `logging/setLevel`.
pub fn level_params(level: u8) -> String {
    Members::from_iter([("level", string(level_name(level)))]).to_json()
}

/// Whether a log message with these params reaches a legacy client that set the level `wanted`.
///
/// > If no `logging/setLevel` request has been sent from the client, the server MAY decide which messages to
/// > send automatically. (MCP 2025-11-25, server/utilities/logging)
pub fn is_level_enabled(params: &str, wanted: Option<u8>) -> bool {
    match (level_of(params), wanted) {
        (Some(level), Some(wanted)) => level >= wanted,
        _ => true,
    }
}

/// The level of a log message.
pub fn level_of(params: &str) -> Option<u8> {
    let level = edit::get(params, "level")?;
    level_from_name(&serde_json::from_str::<String>(level).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ranked_by_severity() {
        assert_eq!(level_from_name("debug"), Some(0));
        assert_eq!(level_from_name("emergency"), Some(7));
        assert_eq!(level_from_name("loud"), None);
        assert_eq!(level_name(3), "warning");
    }
}
