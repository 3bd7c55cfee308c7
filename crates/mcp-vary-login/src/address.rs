//! Addresses of servers and endpoints, and which of them may be asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// The address of a server or endpoint: an absolute `http` or `https` URL without user and fragment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address {
    /// As written: issuers are compared character for character.
    text: Box<str>,
    uri: Uri,
    host: String,
}

/// Why an address cannot be used. It never contains the address.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not an absolute URL, is too long, or has a user or a fragment.
    #[error("it is not a URL such as `https://host.example/path`")]
    NotAUrl,
    /// It is `http`, and the server's own address is not a loopback address.
    #[error("it does not begin with `https://`; `http://` is for servers on loopback addresses")]
    Insecure,
    /// Its host is an address of a private network.
    #[error(
        "its host is in a private network; name it in the configuration as `issuer` if that is right"
    )]
    Private,
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// [`AddressError::NotAUrl`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let is_safe = text.len() <= MAX_URL && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_safe || text.contains(['#', '\\', '"', '<', '>', '^', '`', '{', '|', '}']) {
            return Err(AddressError::NotAUrl);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::NotAUrl)?;
        let authority = uri.authority().ok_or(AddressError::NotAUrl)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let lowercase = authority.host().to_ascii_lowercase();
        let host = lowercase
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if !is_http || host.is_empty() || authority.as_str().contains('@') {
            return Err(AddressError::NotAUrl);
        }
        Ok(Self {
            text: text.into(),
            uri,
            host,
        })
    }

    /// The address for requests.
    pub(crate) const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, in lower case, without the default port.
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let written = self.uri.authority().map(http::uri::Authority::as_str);
        let lowercase = written.unwrap_or_default().to_ascii_lowercase();
        let default = if self.is_https() { ":443" } else { ":80" };
        let authority = lowercase.strip_suffix(default).unwrap_or(&lowercase);
        format!("{scheme}://{authority}")
    }

    /// In lower case, without the brackets of IPv6.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The path without a final slash; empty for the root.
    pub(crate) fn path(&self) -> &str {
        self.uri.path().trim_end_matches('/')
    }

    /// The canonical URI of an MCP server: what tokens for it are requested for (RFC 8707, section 2). The query is not a
    /// part of it, since it can have a key.
    pub fn resource(&self) -> String {
        format!("{}{}", self.origin(), self.path())
    }

    /// Whether a resource with this address contains `server`: the same origin, and the same path or one above it.
    pub(crate) fn contains(&self, server: &Self) -> bool {
        let below = server.path().strip_prefix(self.path());
        let is_below = below.is_some_and(|path| path.is_empty() || path.starts_with('/'));
        self.origin() == server.origin() && is_below
    }

    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let is_loopback = |host: &str| host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        self.host == "localhost" || is_loopback(&self.host)
    }
}

/// Which addresses may be asked on behalf of one server. What the server and its metadata name is chosen by others, so
/// that a request must not reach what only this machine can reach.
///
/// # Properties
///
/// `http` is used for loopback addresses only, and only if the server's own address is one. Addresses of private
/// networks are refused unless their host is in an address that the operator wrote: the server's, or the issuer's.
#[derive(Clone, Debug)]
pub struct AddressPolicy {
    is_loopback: bool,
    written_hosts: Vec<String>,
}

impl AddressPolicy {
    /// The policy for `server` and the `issuer` that is configured for it.
    #[must_use]
    pub fn new(server: &Address, issuer: Option<&Address>) -> Self {
        let written = [Some(server), issuer].into_iter().flatten();
        Self {
            is_loopback: server.is_loopback(),
            written_hosts: written.map(|address| address.host.clone()).collect(),
        }
    }

    /// Parses a URL that may be asked. Names of hosts are checked when they are looked up, by `permits`.
    ///
    /// # Errors
    ///
    /// If it is not an address, or not one that may be asked.
    pub fn check(&self, text: &str) -> Result<Address, AddressError> {
        let address = Address::parse(text)?;
        let is_local = self.is_loopback && address.is_loopback();
        if !address.is_https() && !is_local {
            return Err(AddressError::Insecure);
        }
        let ip: Option<IpAddr> = address.host.parse().ok();
        let is_refused = match ip {
            Some(ip) => !self.permits(&address.host, ip),
            None => !is_local && is_other_spelling(&address.host),
        };
        if is_refused {
            return Err(AddressError::Private);
        }
        Ok(address)
    }

    /// Whether requests for `host` may be sent to `ip`.
    pub(crate) fn permits(&self, host: &str, ip: IpAddr) -> bool {
        let is_written = self.written_hosts.iter().any(|written| written == host);
        is_written || (self.is_loopback && ip.is_loopback()) || !is_private(ip)
    }
}

/// Whether a host can be read as an address of this machine or of a private network, although it is not written as one. Behind a
/// proxy, nobody here looks it up.
fn is_other_spelling(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    is_number || last == "localhost"
}

/// Whether `ip` is not an address of the public internet.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_private_v4(ip),
        IpAddr::V6(ip) => is_private_v6(ip),
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [first, second, third, _] = ip.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_protocol = (first, second, third) == (192, 0, 0);
    let is_benchmark = first == 198 && (18..20).contains(&second);
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || first == 0
        || first >= 240
        || is_shared
        || is_protocol
        || is_benchmark
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    let [first, second, .., seventh, eighth] = ip.segments();
    let [high, low] = [seventh.to_be_bytes(), eighth.to_be_bytes()];
    let embedded = Ipv4Addr::new(high[0], high[1], low[0], low[1]);
    let is_translated = (first, second) == (0x64, 0xff9b);
    // Only 2000::/3 is assigned; 6to4 and Teredo reach an address of IPv4 inside.
    let is_tunnel = first == 0x2002 || (first, second) == (0x2001, 0);
    if is_translated {
        return is_private_v4(embedded);
    }
    ip.to_ipv4_mapped()
        .map_or(first & 0xe000 != 0x2000 || is_tunnel, is_private_v4)
}

/// The longest URL, in bytes.
const MAX_URL: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn a_resource_is_the_canonical_uri_of_its_server() {
        for (text, resource) in [
            ("https://MCP.Example:443/Mcp/", "https://mcp.example/Mcp"),
            ("https://mcp.example", "https://mcp.example"),
            ("https://mcp.example/?key=secret", "https://mcp.example"),
            ("http://[::1]:80/mcp?a", "http://[::1]/mcp"),
        ] {
            assert_eq!(address(text).resource(), resource, "{text}");
            assert_eq!(address(text).as_str(), text);
        }
    }

    #[test]
    fn what_is_not_the_url_of_a_server_is_refused() {
        for text in [
            "",
            "mcp.example",
            "/mcp",
            "ftp://a/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://",
            "https://user:pw@a/",
            "https://a/#x",
            "https://a/ b",
            "https://a/\u{e9}",
        ] {
            assert_eq!(
                Address::parse(text).err(),
                Some(AddressError::NotAUrl),
                "{text}"
            );
        }
        let long = format!("https://a/{}", "x".repeat(MAX_URL));
        assert_eq!(Address::parse(&long).err(), Some(AddressError::NotAUrl));
    }

    #[test]
    fn a_resource_contains_servers_of_its_origin_and_path() {
        for (resource, server, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example/mcp", true),
            ("https://A.example:443/x", "https://a.example/x/mcp", true),
            ("https://a.example/mc", "https://a.example/mcp", false),
            ("https://a.example/mcp/x", "https://a.example/mcp", false),
            ("https://evil.example/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
        ] {
            assert_eq!(
                address(resource).contains(&address(server)),
                expected,
                "{resource}"
            );
        }
    }

    #[track_caller]
    fn checks(server: &str, url: &str, expected: Option<AddressError>) {
        let policy = AddressPolicy::new(&address(server), Some(&address("https://10.9.9.9/idp")));
        assert_eq!(policy.check(url).err(), expected, "{server} {url}");
    }

    #[test]
    fn other_spellings_of_addresses_are_refused_before_a_proxy_reads_them() {
        for host in [
            "0xa9fea9fe",
            "2852039166",
            "0250.0xfe.0xa9.0xfe",
            "127.1",
            "127.0.0.1.",
            "localhost.",
            "a.localhost",
        ] {
            checks(
                "https://mcp.example/mcp",
                &format!("https://{host}/"),
                Some(AddressError::Private),
            );
        }
        checks("https://mcp.example/mcp", "https://0x.example/", None);
        checks("http://localhost:1/mcp", "http://localhost:2/", None);
    }

    #[test]
    fn http_is_for_loopback_servers_only() {
        let remote = "https://mcp.example/mcp";
        checks(remote, "https://idp.example/", None);
        checks(remote, "http://idp.example/", Some(AddressError::Insecure));
        checks(remote, "http://127.0.0.1/", Some(AddressError::Insecure));
        checks("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/", None);
        checks("http://localhost:1/mcp", "http://[::1]:2/", None);
        checks(
            "http://127.0.0.1:1/mcp",
            "http://a.example/",
            Some(AddressError::Insecure),
        );
    }

    #[test]
    fn private_addresses_are_refused_unless_the_operator_wrote_them() {
        let remote = "https://mcp.example/mcp";
        for host in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "198.18.0.1",
            "224.0.0.1",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::a00:1]",
            "[2002:a00:1::]",
        ] {
            checks(
                remote,
                &format!("https://{host}/x"),
                Some(AddressError::Private),
            );
        }
        for host in ["8.8.8.8", "[2606:4700::1]", "[::ffff:8.8.8.8]", "10.9.9.9"] {
            checks(remote, &format!("https://{host}/x"), None);
        }
        checks("https://10.0.0.1/mcp", "https://10.0.0.1/idp", None);
        checks(
            "https://10.0.0.1/mcp",
            "https://10.0.0.2/idp",
            Some(AddressError::Private),
        );
        checks(
            "http://127.0.0.1/mcp",
            "https://10.0.0.1/",
            Some(AddressError::Private),
        );
    }

    #[test]
    fn a_name_that_is_looked_up_is_checked_by_its_address() {
        let policy = AddressPolicy::new(&address("https://intern.example/mcp"), None);
        let private = IpAddr::from([10, 0, 0, 1]);
        assert!(policy.permits("intern.example", private));
        assert!(!policy.permits("idp.example", private));
        assert!(!policy.permits("idp.example", IpAddr::from([127, 0, 0, 1])));
        assert!(policy.permits("idp.example", IpAddr::from([8, 8, 8, 8])));
    }
}
