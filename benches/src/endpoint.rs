//! The HTTP endpoint of a server on this machine.

use std::net::SocketAddr;

/// An address, and the path of the MCP endpoint there.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    /// More header lines of requests.
    pub(crate) headers: String,
}

impl Endpoint {
    /// Reads the first `http://127.0.0.1:PORT/PATH` in `line`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_, remaining) = line.split_once("http://127.0.0.1:")?;
        let end = remaining.find(|c: char| !c.is_ascii_graphic() || matches!(c, '"' | ','));
        let remaining = &remaining[..end.unwrap_or(remaining.len())];
        let (port, path) = remaining.split_once('/')?;
        Some(Self {
            address: SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?)),
            path: format!("/{path}"),
            headers: String::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_where_it_stands() {
        let endpoint = Endpoint::parse("serving at http://127.0.0.1:8800/mcp").unwrap();
        assert_eq!(
            (endpoint.address.port(), endpoint.path.as_str()),
            (8800, "/mcp")
        );
    }
}
