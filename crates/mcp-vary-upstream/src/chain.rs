//! Chains of gateways: prevents that a gateway is its own server.
//!
//! A gateway reports which gateways its requests pass: to the processes that it starts in the variable [`ENV_VAR`], to
//! HTTP servers in `Via`. A gateway that finds itself among them refuses. In its response to a gateway, the same header
//! names the gateways behind it.
//!
//! > An intermediary used as a portal through a network firewall SHOULD NOT forward the names and ports of hosts within
//! > the firewall region unless it is explicitly enabled to do so. If not enabled, the received-by host of any host
//! > behind the firewall SHOULD be replaced by an appropriate pseudonym for that host. (RFC 9110, section 7.6.3)

use std::sync::Arc;

use http::header::{AUTHORIZATION, VIA};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};

use crate::config::{Target, UpstreamConfig};
use crate::outgoing_chain::{GatewayLink, MAX_LINKS, links};

pub use crate::outgoing_chain::{ConnectionGateways, OutgoingChain, UpstreamGateways};

/// The variable that names the gateways in front of a process.
pub const ENV_VAR: &str = "VARY_CHAIN";

/// The start of the last line that a process writes when it refuses to serve itself.
pub const LOOP_REFUSAL: &str = "error: this gateway would serve itself";

/// The maximum length of a chain.
const MAX_DEPTH: usize = 4;
/// The gateways in front of this process, as [`ENV_VAR`] names them.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::chain::Ancestors;
///
/// assert!(Ancestors::read("").is_empty());
/// assert!(!Ancestors::read("vary-0123456789abcdef-0123456789abcdef").is_empty());
/// // Unreadable entries are omitted.
/// assert!(Ancestors::read("something else").is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ancestors(Vec<GatewayLink>);

impl Ancestors {
    /// Reads the value of [`ENV_VAR`].
    pub fn read(text: &str) -> Self {
        let links = text.split(',').filter_map(GatewayLink::read);
        Self(links.take(MAX_LINKS).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that a gateway in front of `servers` may start here.
    ///
    /// # Errors
    ///
    /// One line with the problem and its fix, if the gateway would be its own server or the chain is too long.
    pub fn check(&self, servers: &[UpstreamConfig]) -> Result<(), String> {
        let configured = digest(servers);
        let is_circle = self.0.iter().any(|link| link.serves(&configured));
        if is_circle || self.0.len() >= MAX_DEPTH {
            return Err(loop_error(self.0.len() + 1, is_circle));
        }
        Ok(())
    }
}

/// Why a gateway refuses, without `error: `.
fn loop_error(depth: usize, is_circle: bool) -> String {
    let start = LOOP_REFUSAL.trim_start_matches("error: ");
    let why = if is_circle {
        "the configuration that it serves starts or connects to a Vary with the same servers"
            .to_owned()
    } else {
        format!("{depth} are behind each other, and at most {MAX_DEPTH} may be")
    };
    format!(
        "{start}: {why}; take Vary's own entry out of the file that is served, or serve another file"
    )
}

/// The position of a gateway in its chain, under one configuration.
#[derive(Debug)]
pub struct ChainPosition {
    digest: [u8; 32],
    link: GatewayLink,
    /// The value that servers receive: the gateways in front, then this one.
    path: Arc<str>,
    upstream_gateways: Arc<UpstreamGateways>,
}

impl ChainPosition {
    /// The gateways in front of this process, as the environment names them, and its own instance.
    pub fn new(
        id: [u8; 8],
        ancestors: &Ancestors,
        servers: &[UpstreamConfig],
        upstream_gateways: Arc<UpstreamGateways>,
    ) -> Self {
        let configured = digest(servers);
        let link = GatewayLink::new(id, &configured);
        let all = ancestors.0.iter().chain([&link]);
        let path: Vec<_> = all.map(ToString::to_string).collect();
        Self {
            digest: configured,
            path: path.join(",").into(),
            link,
            upstream_gateways,
        }
    }

    /// The part that connections to servers need.
    pub fn outgoing(&self) -> OutgoingChain {
        OutgoingChain {
            path: Arc::clone(&self.path),
            upstream_gateways: Arc::clone(&self.upstream_gateways),
        }
    }

    /// Whether a request may be served that passed the gateways that its headers name.
    ///
    /// # Errors
    ///
    /// As those of [`Ancestors::check`].
    pub fn check(&self, headers: &HeaderMap) -> Result<(), String> {
        let passed = links(headers);
        if passed.is_empty() {
            return Ok(());
        }
        let is_self = |link: &GatewayLink| link.id == self.link.id || link.serves(&self.digest);
        let is_circle = passed
            .iter()
            .any(|link| is_self(link) || self.upstream_gateways.contains(link));
        if is_circle || passed.len() >= MAX_DEPTH {
            return Err(loop_error(passed.len() + 1, is_circle));
        }
        Ok(())
    }

    /// Adds the gateways behind this one to a response, if a gateway sent the request.
    pub fn add_via(&self, headers: &mut HeaderMap) {
        let mut all = vec![self.link.clone()];
        all.extend(self.upstream_gateways.links());
        let values: Vec<_> = all.iter().map(|link| format!("1.1 {link}")).collect();
        if let Ok(value) = HeaderValue::try_from(values.join(", ")) {
            headers.insert(VIA, value);
        }
    }
}

/// Whether a gateway sent this head.
pub fn is_from_gateway(headers: &HeaderMap) -> bool {
    headers.contains_key(VIA) && !links(headers).is_empty()
}

/// A digest that identifies a set of servers. Values of the environment and of headers are left out, since they may differ
/// where a gateway starts itself.
fn digest(servers: &[UpstreamConfig]) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |text: &[u8]| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    for server in servers {
        add(server.name.as_bytes());
        match &server.target {
            Target::Command {
                program,
                args,
                env,
                cwd,
            } => {
                add(b"command");
                add(program.as_bytes());
                args.iter().for_each(|arg| add(arg.as_bytes()));
                env.keys().for_each(|key| add(key.as_bytes()));
                add(cwd
                    .as_ref()
                    .map_or(b"", |cwd| cwd.as_os_str().as_encoded_bytes()));
            }
            Target::Http { url, headers } => {
                add(b"http");
                add(url.to_string().as_bytes());
                headers.keys().for_each(|key| add(key.as_str().as_bytes()));
            }
            Target::InProcess(_) => add(b"in process"),
        }
        let claim_headers = server.claim_headers.iter().map(|(name, _)| name);
        let credentials = server.credentials.iter().map(|sent| &sent.header);
        let of_clients = server.client_credentials.as_ref().map(|_| &AUTHORIZATION);
        let others = claim_headers.chain(credentials).chain(of_clients);
        others.for_each(|name| add(name.as_str().as_bytes()));
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(program: &str) -> Vec<UpstreamConfig> {
        vec![UpstreamConfig::new("a", Target::command(program, []))]
    }

    fn position(id: u8, ancestors: &Ancestors, program: &str) -> ChainPosition {
        ChainPosition::new([id; 8], ancestors, &servers(program), Arc::default())
    }

    fn ancestors_of(position: &ChainPosition) -> Ancestors {
        Ancestors::read(position.outgoing().variable().unwrap())
    }

    #[test]
    fn a_gateway_sees_itself_and_no_other_in_front() {
        let none = Ancestors::default();
        let first = ancestors_of(&position(1, &none, "x"));
        assert!(first.check(&servers("y")).is_ok());
        let second = ancestors_of(&position(2, &first, "y"));
        assert!(second.check(&servers("z")).is_ok());
        for program in ["x", "y"] {
            let why = second.check(&servers(program)).unwrap_err();
            assert!(
                why.starts_with("this gateway would serve itself: "),
                "{why}"
            );
            assert!(!why.contains('\n'), "{why}");
        }
        let third = ancestors_of(&position(3, &second, "z"));
        let fourth = ancestors_of(&position(4, &third, "u"));
        let why = fourth.check(&servers("v")).unwrap_err();
        assert!(why.contains("5 are behind each other"), "{why}");
    }

    #[test]
    fn a_request_that_passed_this_gateway_is_refused() {
        let none = Ancestors::default();
        let (one, other) = (position(1, &none, "x"), position(2, &none, "y"));
        let headers = |position: &ChainPosition| {
            let via = position.outgoing().via().unwrap();
            HeaderMap::from_iter([(VIA, HeaderValue::from_static("1.1 proxy")), (VIA, via)])
        };
        assert!(other.check(&HeaderMap::new()).is_ok());
        assert!(other.check(&headers(&one)).is_ok());
        assert!(one.check(&headers(&one)).is_err());
        assert!(position(3, &none, "x").check(&headers(&one)).is_err());
        // A gateway that is behind this one must not be in front of it.
        let connection = other.outgoing().track_connection();
        let mut answered = HeaderMap::new();
        one.add_via(&mut answered);
        connection.record(&answered);
        assert!(other.check(&headers(&one)).is_err());
        drop(connection);
        assert!(other.check(&headers(&one)).is_ok());
    }

    #[test]
    fn what_is_no_chain_is_left_out() {
        let long = "vary-0123456789abcdef-0123456789abcdef,".repeat(1000);
        assert_eq!(Ancestors::read(&long).0.len(), MAX_LINKS);
        for text in [
            "",
            ",",
            "vary-",
            "vary-1-2",
            "vary-0123456789abcdeg-0123456789abcdef",
        ] {
            assert!(Ancestors::read(text).is_empty(), "{text}");
        }
    }
}
