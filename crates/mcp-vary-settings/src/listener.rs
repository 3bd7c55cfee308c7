//! How clients reach the HTTP listener: names, origins, TLS and proxies.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;
use ipnet::IpNet;
use mcp_vary_auth::address::{EndpointPath, PublicUrl};
pub use mcp_vary_http::tls::{ClientCa, TlsConfig};

/// How clients reach the HTTP listener. By default only from this machine, by its loopback names and without TLS.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListenerConfig {
    /// The URL under which clients reach the gateway. Its host is one of `hosts`.
    pub public_url: Option<PublicUrl>,
    /// The names in `Host` that are accepted besides the loopback names, which are for this machine only.
    pub hosts: Vec<HostName>,
    /// The origins of web pages that may send requests.
    pub origins: Vec<Origin>,
    /// Certificate and key; without them the listener speaks plain HTTP.
    pub tls: Option<TlsConfig>,
    /// The proxies from which alone connections are accepted, if the gateway is behind proxies.
    pub trusted_proxies: Option<TrustedProxies>,
}

/// The name of a host, or its IP address, without a port.
///
/// # Examples
///
/// ```
/// use mcp_vary_settings::listener::HostName;
///
/// let host: HostName = "mcp.example".parse()?;
/// assert!(host.matches("MCP.example") && !host.matches("mcp.example.evil.example"));
///
/// // An IPv6 address has several spellings.
/// assert!("[2001:db8::1]".parse::<HostName>()?.matches("2001:DB8:0::1"));
/// # Ok::<(), mcp_vary_settings::listener::ListenerError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostName(Host);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(Box<str>),
}

/// The origin of web pages, as browsers send it in `Origin` (RFC 6454, section 6.1): scheme, host and port.
///
/// # Examples
///
/// ```
/// use mcp_vary_settings::listener::Origin;
///
/// assert!("https://inspector.example".parse::<Origin>().is_ok());
/// // No page has this origin, since browsers send none of its path.
/// assert!("https://inspector.example/".parse::<Origin>().is_err());
/// assert!("null".parse::<Origin>().is_err(), "any page can have it");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin(Box<str>);

/// The networks of the proxies in front of the gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustedProxies(Vec<ProxyNetwork>);

/// An IP address, or a network in the notation of CIDR.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProxyNetwork(IpNet);

/// Why a text cannot be used. It never contains the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// The text is not a host.
    #[error(
        "it is not the name of a host; write one like `mcp.example.com`, without scheme, port and path"
    )]
    Host,
    /// The text is not an origin.
    #[error(
        "it is not an origin; write one like `https://app.example.com`, in lower case and without a path"
    )]
    Origin,
    /// Every page can have the origin.
    #[error("it matches every web page; name each origin")]
    AnyOrigin,
    /// The text is neither an address nor a network.
    #[error("it is not an address or a network; write one like `10.0.0.0/8` or `127.0.0.1`")]
    Network,
    /// The address has more bits than the prefix.
    #[error("its address has bits after the prefix; write the first address of the network")]
    HostBits,
    /// Every address is in the network.
    #[error(
        "it has every address, so that anybody could be a proxy; write the addresses of the proxies"
    )]
    Everybody,
}

/// Why a gateway does not listen on an address that other machines can reach.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OffLoopbackError {
    /// Everybody could use the servers.
    #[error(
        "{0} can be reached from other machines, and there is no authentication: everybody there could use the servers; \
         add `auth` to the configuration, and `tls` or `behind-proxy: on`, or listen on 127.0.0.1:{port}", port = .0.port()
    )]
    NoAuthentication(SocketAddr),
    /// Others could read credentials on their way.
    #[error(
        "{0} can be reached from other machines, and keys and tokens would not be encrypted on their way; add `tls`, or \
         `behind-proxy: on` with `trusted-proxies`, to the configuration, or listen on 127.0.0.1:{port}", port = .0.port()
    )]
    NoEncryption(SocketAddr),
    /// The gateway does not know under which name it is reached.
    #[error(
        "{0} can be reached from other machines, and there is no name for them; add `public-url` or `hosts` to the \
         configuration, or listen on 127.0.0.1:{port}", port = .0.port()
    )]
    NoName(SocketAddr),
}

impl ListenerConfig {
    /// Whether `host`, without a port, is one of the names in the configuration.
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.matches(host))
    }

    /// Whether `origin`, the value of a header, is one of the origins in the configuration.
    pub fn has_origin(&self, origin: &[u8]) -> bool {
        let mut origins = self.origins.iter();
        origins.any(|known| known.0.as_bytes() == origin)
    }
}

impl HostName {
    /// The host of the public URL.
    pub fn of_public_url(url: &PublicUrl) -> Option<Self> {
        let uri: Uri = url.resource(&EndpointPath::Base).parse().ok()?;
        uri.host()?.parse().ok()
    }

    /// Whether `host`, without a port, is this host.
    pub fn matches(&self, host: &str) -> bool {
        match &self.0 {
            Host::Address(address) => parse_address(host).is_some_and(|known| known == *address),
            Host::Name(name) => name.eq_ignore_ascii_case(host),
        }
    }
}

/// An address, with or without brackets.
fn parse_address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

impl FromStr for HostName {
    type Err = ListenerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(address) = parse_address(text) {
            return Ok(Self(Host::Address(address)));
        }
        let is_label = |label: &str| {
            let is_allowed =
                |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
        };
        if text.len() > MAX_HOST || !text.split('.').all(is_label) {
            return Err(ListenerError::Host);
        }
        Ok(Self(Host::Name(text.to_ascii_lowercase().into())))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Host::Address(address) => address.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for Origin {
    type Err = ListenerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" || text == "null" {
            return Err(ListenerError::AnyOrigin);
        }
        let (scheme, authority) = text.split_once("://").ok_or(ListenerError::Origin)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'));
        let is_authority = authority.parse::<Authority>().is_ok()
            && !authority.contains(['@', '*'])
            && !authority.bytes().any(|byte| byte.is_ascii_uppercase());
        // Browsers leave the default port out.
        let has_default_port = matches!(
            (scheme, authority.rsplit_once(':')),
            ("https", Some((_, "443"))) | ("http", Some((_, "80")))
        );
        if text.len() > MAX_ORIGIN || !is_scheme || !is_authority || has_default_port {
            return Err(ListenerError::Origin);
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for ProxyNetwork {
    type Err = ListenerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(IpNet::from(address)));
        }
        let network: IpNet = text.parse().map_err(|_| ListenerError::Network)?;
        if network.prefix_len() == 0 {
            return Err(ListenerError::Everybody);
        }
        if network.trunc() != network {
            return Err(ListenerError::HostBits);
        }
        Ok(Self(network))
    }
}

impl TrustedProxies {
    /// The proxies in these networks.
    #[must_use]
    pub const fn new(networks: Vec<ProxyNetwork>) -> Self {
        Self(networks)
    }

    /// Whether `address` is a proxy. An IPv4 address in IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let canonical = address.to_canonical();
        self.0.iter().any(|network| network.0.contains(&canonical))
    }
}

/// RFC 1035, section 2.3.4.
const MAX_LABEL: usize = 63;
const MAX_HOST: usize = 253;
const MAX_ORIGIN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fails<T: FromStr<Err = ListenerError> + fmt::Debug>(text: &str, error: ListenerError) {
        assert_eq!(text.parse::<T>().unwrap_err(), error, "{text}");
    }

    #[test]
    fn a_host_is_a_name_or_an_address_without_a_port() {
        for text in [
            "mcp.example",
            "localhost",
            "10.1.2.3",
            "::1",
            "[::1]",
            "my_host",
        ] {
            assert!(text.parse::<HostName>().is_ok(), "{text}");
        }
        for text in [
            "",
            "a:80",
            "a/b",
            "https://a",
            "*",
            "*.example",
            "a..b",
            "a b",
            ".",
            "ü",
            "a.",
        ] {
            fails::<HostName>(text, ListenerError::Host);
        }
        fails::<HostName>(&"a".repeat(64), ListenerError::Host);
        fails::<HostName>(&["a"; 128].join("."), ListenerError::Host);
    }

    #[test]
    fn an_origin_has_the_form_that_browsers_send() {
        for text in [
            "https://a.example",
            "http://localhost:6274",
            "http://[::1]:80801".trim_end_matches('1'),
            "chrome-extension://abc",
        ] {
            assert!(text.parse::<Origin>().is_ok(), "{text}");
        }
        for text in [
            "",
            "a",
            "a.example",
            "https://",
            "https://a/",
            "https://a?b",
            "https://A",
            "HTTPS://a",
            "https://a:443",
            "http://a:80",
            "https://*.a",
            "https://u@a",
            "1://a",
        ] {
            fails::<Origin>(text, ListenerError::Origin);
        }
        fails::<Origin>("*", ListenerError::AnyOrigin);
        fails::<Origin>("null", ListenerError::AnyOrigin);
    }

    #[test]
    fn a_network_is_written_by_its_first_address() {
        fails::<ProxyNetwork>("10.0.0.1/8", ListenerError::HostBits);
        fails::<ProxyNetwork>("0.0.0.0/0", ListenerError::Everybody);
        fails::<ProxyNetwork>("::/0", ListenerError::Everybody);
        for text in ["", "proxy.example", "10.0.0.0/33", "10.0.0", "10.0.0.0/8 "] {
            fails::<ProxyNetwork>(text, ListenerError::Network);
        }
    }

    #[test]
    fn a_proxy_is_known_by_its_address_in_either_form() {
        let networks = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"];
        let networks = networks.map(|network| network.parse().unwrap());
        let proxies = TrustedProxies::new(networks.to_vec());
        for (address, expected) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("::ffff:10.0.0.1", true),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(
                proxies.contains(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }
}
