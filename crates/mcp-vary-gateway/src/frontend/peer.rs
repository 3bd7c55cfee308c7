//! The other end of a connection, and what its requests are told of it.

#[cfg(unix)]
use std::net::Ipv4Addr;
use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use mcp_vary_audit::{SessionId, trace_id};
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_traces::{Carrier, TRACEPARENT};
use mcp_vary_wire::headers::SESSION_ID;

use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_observation::Origin;
use mcp_vary_session::authentication::PeerCertificate;
use mcp_vary_settings::config::Config;
use mcp_vary_settings::listener::TrustedProxies;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: IpAddr,
    /// Whether the connection comes from this machine over its loopback interface.
    pub(super) is_local: bool,
    /// Whether the connection is encrypted by this process.
    is_encrypted: bool,
    certificate: Option<PeerCertificate>,
}

/// The address of the client of a request: of the connection, or what the trusted proxies say. For logs and limits;
/// an extension of the request where the gateway has authentication, proxies, rate limits or an audit log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl ClientAddress {
    /// The address of the client of a request, if it is described.
    pub(super) fn of(head: &Parts) -> Option<IpAddr> {
        let Self(address) = head.extensions.get()?;
        Some(*address)
    }
}

impl Peer {
    /// The peer at `remote`, connected to the address `local` of this machine.
    pub(super) fn new(remote: SocketAddr, local: SocketAddr) -> Self {
        Self {
            address: remote.ip().to_canonical(),
            is_local: local.ip().to_canonical().is_loopback(),
            is_encrypted: false,
            certificate: None,
        }
    }

    /// A program of the operator, connected over a socket in the file system.
    #[cfg(unix)]
    pub(super) const fn this_user() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_local: true,
            is_encrypted: false,
            certificate: None,
        }
    }

    /// The address of the connection itself, whatever its requests say.
    pub(super) const fn address(&self) -> ClientAddress {
        ClientAddress(self.address)
    }

    /// The peer after a TLS handshake, in which it may have sent a certificate.
    pub(super) fn encrypted(mut self, certificate: Option<PeerCertificate>) -> Self {
        self.is_encrypted = true;
        self.certificate = certificate;
        self
    }

    /// Whether connections of this peer are accepted: from proxies alone, if the gateway is behind proxies.
    pub(super) fn is_accepted(&self, config: &Config) -> bool {
        let proxies = config.listener.trusted_proxies.as_ref();
        proxies.is_none_or(|proxies| proxies.contains(self.address))
    }

    /// Whether the configuration serves this connection. It may have changed since the connection was accepted.
    pub(super) fn is_served(&self, config: &Config) -> bool {
        let is_protected = config.authentication.is_some()
            && (self.is_encrypted || config.listener.trusted_proxies.is_some());
        self.is_accepted(config) && (self.is_local || is_protected)
    }

    /// Adds what is known of the peer to a request.
    pub(super) fn describe(&self, head: &mut Parts, config: &Config, is_recorded: bool) {
        if let Some(certificate) = &self.certificate {
            head.extensions.insert(certificate.clone());
        }
        let proxies = config.listener.trusted_proxies.as_ref();
        let needs_address =
            config.authentication.is_some() || !config.rates.is_empty() || is_recorded;
        if needs_address || proxies.is_some() {
            let address = match proxies {
                Some(proxies) => forwarded_for(&head.headers, proxies).unwrap_or(self.address),
                None => self.address,
            };
            head.extensions.insert(ClientAddress(address));
        }
    }
}

/// From where an HTTP request comes; empty if nothing records requests.
pub(super) fn origin(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    admission: Option<&Admission>,
) -> Origin {
    let observers = &snapshot.services.observers;
    if observers.audit.is_none() && observers.tracer.is_none() {
        return Origin::default();
    }
    let is_traced = observers.tracer.is_some();
    let text = |name: &HeaderName| head.headers.get(name)?.to_str().ok();
    Origin {
        address: ClientAddress::of(head),
        session: text(&SESSION_ID).map(|id| SessionId::new(id.into())),
        trace_id: text(&TRACEPARENT).and_then(trace_id),
        carrier: is_traced.then(|| Carrier::of_headers(&head.headers)),
        oauth_client: admission.and_then(|admission| admission.client_id.clone()),
        ..Origin::default()
    }
}

/// The rightmost address in `X-Forwarded-For` that is not a trusted proxy. What is to the left of it was sent by the
/// client, and may be anything.
///
/// `None` if there is no such address, or if one on the way to it cannot be read.
fn forwarded_for(headers: &HeaderMap, proxies: &TrustedProxies) -> Option<IpAddr> {
    let values = headers.get_all("x-forwarded-for").iter().rev();
    for value in values {
        for hop in value.to_str().ok()?.rsplit(',') {
            let address = parse_hop(hop.trim())?.to_canonical();
            if !proxies.contains(address) {
                return Some(address);
            }
        }
    }
    None
}

/// An address; some proxies add the port.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    let address = hop.parse().ok();
    address.or_else(|| hop.parse::<SocketAddr>().ok().map(|hop| hop.ip()))
}

#[cfg(test)]
mod tests {
    use mcp_vary_auth::key::KeyTable;
    use mcp_vary_base::environment::Environment;

    use super::*;
    use mcp_vary_settings::authentication::Authentication;

    /// A connection to `local`, and whether the configuration serves it.
    #[track_caller]
    fn is_served(
        local: &str,
        is_encrypted: bool,
        has_auth: bool,
        proxies: &[&str],
        expected: bool,
    ) {
        let mut config = Config::with_servers(Vec::new(), Environment::new(|| 0, |_| {}));
        if has_auth {
            let authentication = Authentication::new(KeyTable::default(), None, true);
            config.authentication = Some(authentication.unwrap());
        }
        if !proxies.is_empty() {
            let networks = proxies.iter().map(|network| network.parse().unwrap());
            config.listener.trusted_proxies = Some(TrustedProxies::new(networks.collect()));
        }
        let remote = "192.0.2.7:4711".parse().unwrap();
        let peer = Peer::new(remote, local.parse().unwrap());
        let peer = if is_encrypted {
            peer.encrypted(None)
        } else {
            peer
        };
        let case = format!("{local} {is_encrypted} {has_auth} {proxies:?}");
        assert_eq!(peer.is_served(&config), expected, "{case}");
    }

    #[test]
    fn a_connection_from_elsewhere_needs_authentication_and_encryption() {
        for local in ["10.0.0.5:80", "[2001:db8::5]:80", "[::ffff:10.0.0.5]:80"] {
            is_served(local, true, true, &[], true);
            is_served(local, false, true, &["192.0.2.7"], true);
            is_served(local, false, true, &[], false);
            is_served(local, true, false, &[], false);
            is_served(local, false, false, &["192.0.2.7"], false);
            is_served(local, true, true, &["192.0.2.8"], false);
        }
        for local in ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            is_served(local, false, false, &[], true);
            is_served(local, false, false, &["192.0.2.8"], false);
        }
    }

    #[track_caller]
    fn comes_from(values: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap());
        let found = forwarded_for(&headers, &TrustedProxies::new(networks.to_vec()));
        let expected = expected.map(|address| address.parse::<IpAddr>().unwrap());
        assert_eq!(found, expected, "{values:?}");
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_proxy() {
        comes_from(&["192.0.2.1"], Some("192.0.2.1"));
        comes_from(&["192.0.2.1, 10.0.0.1"], Some("192.0.2.1"));
        // What a client writes itself is further left.
        comes_from(&["10.0.0.9, 198.51.100.1, 192.0.2.1"], Some("192.0.2.1"));
        comes_from(&["198.51.100.1", "192.0.2.1,10.0.0.1"], Some("192.0.2.1"));
        comes_from(&["192.0.2.1:4711, [2001:db8::1]:80"], Some("192.0.2.1"));
        comes_from(&["::ffff:192.0.2.1"], Some("192.0.2.1"));
    }

    #[test]
    fn without_a_readable_address_the_client_is_the_proxy() {
        comes_from(&[], None);
        comes_from(&["10.0.0.1, 10.0.0.2"], None);
        comes_from(&["192.0.2.1, unknown"], None);
        comes_from(&[""], None);
    }
}
