//! The name and version of a client.

use mcp_vary::json::Members;
use serde::{Deserialize, Serialize};

/// The name and version of a client, each truncated to 64 characters with control characters replaced.
///
/// Clients choose both; they are empty if a client does not send them.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ClientName {
    /// `clientInfo.name`.
    pub name: String,
    /// `clientInfo.version`.
    pub version: String,
}

impl ClientName {
    /// Reads a `clientInfo`, JSON text.
    pub fn read(info: &str) -> Self {
        let info = Members::parse(info).unwrap_or_default();
        let short = |key| truncated(&info.get_str(key).unwrap_or_default());
        Self {
            name: short("name"),
            version: short("version"),
        }
    }

    /// Whether the client gave neither a name nor a version.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty() && self.version.is_empty()
    }
}

fn truncated(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(MAX_LENGTH).map(visible).collect()
}

/// Characters of a name or a version.
const MAX_LENGTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// EXT-5: what a client says of itself is cut, and drives no terminal.
    #[test]
    fn a_clients_name_is_cut_and_harmless() {
        let long = "é".repeat(500);
        let read = ClientName::read(&format!(r#"{{"name":"a\u001b[2Jb","version":"{long}"}}"#));
        assert_eq!(read.name, "a\u{fffd}[2Jb");
        assert_eq!(read.version.chars().count(), 64);
        for odd in ["", "[]", "7", r#"{"name":7}"#, "{"] {
            assert!(ClientName::read(odd).is_empty(), "{odd}");
        }
    }
}
