//! Vary's own entry in the file of a client, which may be the file that Vary serves.

use mcp_vary_upstream::{Target, UpstreamConfig};

use crate::document::Entry;

/// How the entries that lead to Vary itself are recognised in the file of a client, which may be the file that Vary serves.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers name both")]
pub struct VaryEntries<'a> {
    /// The names of those that Vary wrote.
    pub names: &'a [String],
    /// The port of this machine on which Vary serves.
    pub port: Option<u16>,
}

impl VaryEntries<'_> {
    /// Whether `entry`, which is read as `server`, leads to Vary itself.
    pub(super) fn contains(&self, entry: &Entry, server: &UpstreamConfig) -> bool {
        let Target::Http { url, .. } = &server.target else {
            return self.names.contains(&entry.key);
        };
        let is_loopback = matches!(url.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        let is_its_port = self.port.is_some() && url.port_u16() == self.port;
        self.names.contains(&entry.key) || is_loopback && is_its_port
    }
}
