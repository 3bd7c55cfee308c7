//! The configurations that the measured proxies are started with.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

/// How a proxy reaches an upstream server.
#[derive(Clone, Debug)]
pub(crate) enum ServerTarget {
    Url(String),
    Command(Vec<String>),
}

impl ServerTarget {
    /// As the arguments of a program that takes either a URL or, last, a command.
    pub(crate) fn to_args(&self, url: &str) -> Vec<String> {
        match self {
            Self::Url(sent) => vec![url.to_owned(), sent.clone()],
            Self::Command(arguments) => [vec!["--".to_owned()], arguments.clone()].concat(),
        }
    }
}

/// The name of the server at `index`, before the names of its tools.
pub(crate) fn server_name(index: usize) -> String {
    format!("server{}", index + 1)
}

/// The servers in the format of clients' configuration files.
pub(crate) fn mcp_servers(ways: &[ServerTarget]) -> String {
    json!({ "mcpServers": entries(ways) }).to_string()
}

/// The built-in variants, and additional ones that select, rename and shorten.
pub(crate) fn with_variants(ways: &[ServerTarget], variants: usize) -> String {
    let built_in = ["standard", "compact", "read-only"];
    let built_in = built_in.map(|id| (id.to_owned(), json!({})));
    let more = (built_in.len()..variants).map(variant);
    let variants: Map<_, _> = built_in.into_iter().chain(more).collect();
    json!({"servers": entries(ways), "variants": variants}).to_string()
}

/// `variants` variants with the same items, each with its own view.
pub(crate) fn alike(ways: &[ServerTarget], variants: usize) -> String {
    let variants: Map<_, _> = (0..variants).map(variant).collect();
    json!({"servers": entries(ways), "variants": variants}).to_string()
}

/// A variant with all items and a view of its own.
fn variant(index: usize) -> (String, Value) {
    let variant = json!({
        "description": format!("The face of client {index}."),
        "hints": {"useCase": format!("case-{index}")},
        "tools": {"exclude": [format!("none-{index}-*")]},
        "descriptions": "first-sentence",
    });
    (variant_id(index), variant)
}

/// The configuration with `rules` for results.
pub(crate) fn with_rules(ways: &[ServerTarget], rules: &Value) -> String {
    json!({"servers": entries(ways), "results": rules}).to_string()
}

/// The variant at `index` of those that are alike.
pub(crate) fn variant_id(index: usize) -> String {
    format!("face-{index}")
}

/// The entries of `servers`.
pub(crate) fn entries(ways: &[ServerTarget]) -> Map<String, Value> {
    let entry = |target: &ServerTarget| match target {
        ServerTarget::Url(url) => json!({"type": "http", "url": url}),
        ServerTarget::Command(arguments) => {
            json!({"command": arguments[0], "args": arguments[1..]})
        }
    };
    let ways = ways.iter().enumerate();
    ways.map(|(at, target)| (server_name(at), entry(target)))
        .collect()
}

pub(crate) fn mcp_proxy_config(address: SocketAddr, ways: &[ServerTarget]) -> String {
    let (host, port) = (address.ip(), address.port());
    let backends = ways.iter().enumerate().map(|(index, target)| {
        let target = match target {
            ServerTarget::Url(url) => format!("transport = \"http\"\nurl = {url:?}\n"),
            ServerTarget::Command(arguments) => format!(
                "transport = \"stdio\"\ncommand = {:?}\nargs = {:?}\n",
                arguments[0],
                &arguments[1..]
            ),
        };
        format!("[[backends]]\nname = {:?}\n{target}", server_name(index))
    });
    let backends: String = backends.collect();
    format!(
        "[proxy]\nname = \"peer\"\nseparator = \"_\"\n[proxy.listen]\nhost = \"{host}\"\nport = {port}\n\
         {backends}[observability]\naudit = false\nlog_level = \"warn\"\n"
    )
}
