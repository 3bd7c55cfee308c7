//! Validation of a request's head, before its body is read.

use std::cmp::Reverse;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use mcp_vary_wire::headers::VERSION;
use mcp_vary_wire::revision::{Era, Revision};

use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_settings::listener::ListenerConfig;

/// Why a request is rejected before it is read.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

fn rejection(status: StatusCode, reason: impl Into<String>) -> Rejection {
    Rejection {
        status,
        reason: reason.into(),
    }
}

/// The era of the client whose request has these headers, which is not read yet.
///
/// > Clients MUST include the `MCP-Protocol-Version` header in all HTTP requests
/// > (MCP 2026-07-28, basic/transports; `initialize` of earlier revisions has none)
pub(super) fn announced_era(headers: &HeaderMap) -> Era {
    let version = headers
        .get(VERSION)
        .and_then(|version| version.to_str().ok());
    let revision = version.and_then(Revision::parse);
    revision.map_or(Era::Legacy, Revision::era)
}

/// The names by which a request may address the gateway, and the origins of pages that may send it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressing<'a> {
    listener: &'a ListenerConfig,
    /// Whether the connection comes from this machine, for which the loopback names are.
    is_local: bool,
}

impl<'a> Addressing<'a> {
    /// The names of `listener` and, for connections from this machine, the loopback names.
    pub(crate) const fn new(listener: &'a ListenerConfig, is_local: bool) -> Self {
        Self { listener, is_local }
    }

    /// Accepts only requests that address this gateway, that no page of another origin sends, and whose body can be read.
    ///
    /// > Servers MUST validate the `Origin` header on all incoming connections to prevent DNS rebinding
    /// > attacks. (MCP 2025-11-25 and 2026-07-28, transports, "Security Warning")
    ///
    /// `Host` has the name that the client resolved: after DNS rebinding it is the attacker's.
    pub(crate) fn check(self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        self.check_target(uri)?;
        self.check_host(headers)?;
        self.check_origin(headers)?;
        check_codings(headers)
    }

    /// > When an origin server receives a request with an absolute-form of request-target, the origin
    /// > server MUST ignore the received Host header field (if any) and instead use the host information
    /// > of the request-target. (RFC 9112, section 3.2.2)
    fn check_target(self, uri: &Uri) -> Result<(), Rejection> {
        let is_ours = |authority| host_of(authority).is_some_and(|host| self.has_host(host));
        if uri.authority().is_none_or(is_ours) {
            Ok(())
        } else {
            Err(self.misaddressed("the request"))
        }
    }

    fn check_host(self, headers: &HeaderMap) -> Result<(), Rejection> {
        let is_ours = |host: &HeaderValue| {
            if self.is_local && is_plainly_loopback(host.as_bytes()) {
                return true;
            }
            let text = host.to_str().ok();
            let authority = text.and_then(|host| host.parse::<Authority>().ok());
            let host = authority.as_ref().and_then(host_of);
            host.is_some_and(|host| self.has_host(host))
        };
        let mut hosts = headers.get_all(HOST).iter().peekable();
        if hosts.peek().is_some() && hosts.all(is_ours) {
            Ok(())
        } else {
            Err(self.misaddressed("the Host header"))
        }
    }

    fn check_origin(self, headers: &HeaderMap) -> Result<(), Rejection> {
        let is_ours = |value: &HeaderValue| {
            let text = value.to_str().ok();
            let origin = text.and_then(|origin| origin.parse::<Uri>().ok());
            let host = origin.as_ref().and_then(Uri::authority).and_then(host_of);
            self.listener.has_origin(value.as_bytes())
                || self.is_local && host.is_some_and(is_loopback)
        };
        if headers.get_all(ORIGIN).iter().all(is_ours) {
            return Ok(());
        }
        let reason = if self.is_local && self.listener.origins.is_empty() {
            "the Origin header must name this machine: localhost, 127.0.0.1 or [::1]"
        } else {
            "the Origin header must be one of `origins` in the configuration of the gateway"
        };
        Err(rejection(StatusCode::FORBIDDEN, reason))
    }

    fn has_host(self, host: &str) -> bool {
        self.is_local && is_loopback(host) || self.listener.has_host(host)
    }

    /// The names themselves are not in the answer: they are for those who know them.
    fn misaddressed(self, what: &str) -> Rejection {
        let names = if self.is_local && self.listener.hosts.is_empty() {
            "this machine: localhost, 127.0.0.1 or [::1]"
        } else {
            "this gateway, by `public-url` or one of `hosts` in its configuration"
        };
        rejection(StatusCode::FORBIDDEN, format!("{what} must name {names}"))
    }
}

/// > A server that receives a request message with a transfer coding it does not understand SHOULD respond with 501 (Not
/// > Implemented). (RFC 9112, section 6.1)
fn check_codings(headers: &HeaderMap) -> Result<(), Rejection> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Ok(());
    }
    let reason = "the Transfer-Encoding header must be `chunked` or absent";
    Err(rejection(StatusCode::NOT_IMPLEMENTED, reason))
}

/// The host of `host` or `host:port`; `None` for anything else: a user, or a port that is not one.
fn host_of(authority: &Authority) -> Option<&str> {
    let (host, port) = authority
        .as_str()
        .split_at_checked(authority.host().len())?;
    (host == authority.host() && is_port(port.as_bytes())).then_some(host)
}

/// Whether this is nothing, or a colon and a port.
fn is_port(text: &[u8]) -> bool {
    let Some((colon, digits)) = text.split_first() else {
        return true;
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let port = digits
        .iter()
        .try_fold(0, |port, byte| Some(port * 10 + digit(byte)?));
    let is_port = port.is_some_and(|port| port <= u32::from(u16::MAX));
    *colon == b':' && matches!(digits.len(), 1..=5) && is_port
}

/// Whether this is a usual spelling, with or without a port. Other spellings are parsed.
fn is_plainly_loopback(authority: &[u8]) -> bool {
    let mut usual = [b"127.0.0.1".as_slice(), b"localhost"].into_iter();
    let port = usual.find_map(|host| authority.strip_prefix(host));
    port.is_some_and(is_port)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Refuses a request that has already passed this gateway.
pub(crate) fn check_chain(headers: &HeaderMap, snapshot: &ConfigSnapshot) -> Result<(), Rejection> {
    let checked = snapshot.position.check(headers);
    checked.map_err(|reason| rejection(StatusCode::LOOP_DETECTED, reason))
}

/// Checks that the body is JSON.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Rejection> {
    let content_type = headers.get(CONTENT_TYPE);
    // The spelling of nearly all clients.
    if content_type.is_some_and(|value| value == "application/json") {
        return Ok(());
    }
    let media = content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    if media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(rejection(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "send the message as `Content-Type: application/json`",
    ))
}

/// Checks that the client accepts what the method may answer: `POST` JSON and an event stream, `GET` an event stream.
pub(crate) fn check_accept(headers: &HeaderMap, wanted: &[&str]) -> Result<(), Rejection> {
    if is_usual(headers) || wanted.iter().all(|media| accepts(headers, media)) {
        return Ok(());
    }
    let reason = format!("send `Accept: {}`", wanted.join(", "));
    Err(rejection(StatusCode::NOT_ACCEPTABLE, reason))
}

/// The spelling of nearly all clients.
fn is_usual(headers: &HeaderMap) -> bool {
    let usual = |value: &HeaderValue| value == "application/json, text/event-stream";
    headers.get(ACCEPT).is_some_and(usual)
}

/// Whether the client of a `POST` prefers an event stream to JSON: by the weights of the two (RFC 9110, section 12.4.2),
/// and by their order if the weights are equal.
pub(crate) fn prefers_stream(headers: &HeaderMap) -> bool {
    if is_usual(headers) {
        return false;
    }
    let values = headers.get_all(ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let ranges: Vec<_> = texts.flat_map(|value| value.split(',')).collect();
    let rank = |media: &str| {
        let all = ranges.iter().enumerate();
        let named = all.filter_map(|(at, range)| Some((weight_of(range, media)?, Reverse(at))));
        named.max()
    };
    rank("text/event-stream") > rank("application/json")
}

/// The weight of `media` in `range` in thousandths, if it is named.
fn weight_of(range: &str, media: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    let is_named = parts.next()?.eq_ignore_ascii_case(media);
    let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    let weight = quality.and_then(|quality| quality.parse::<f32>().ok());
    is_named.then(|| (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0).round() as u32)
}

/// Without the header everything is accepted (RFC 9110, section 12.5.1).
fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let mut is_present = false;
    let kind = media.split('/').next().unwrap_or_default();
    for value in headers.get_all(ACCEPT) {
        is_present = true;
        let written = value.to_str().unwrap_or_default().split(',');
        let mut ranges = written
            .filter_map(|range| range.split(';').next())
            .map(str::trim);
        let fits = |range: &str| {
            range.eq_ignore_ascii_case(media)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|range| range.eq_ignore_ascii_case(kind))
        };
        if ranges.any(fits) {
            return true;
        }
    }
    !is_present
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[track_caller]
    fn passes(pairs: &[(&'static str, &str)], expected: bool) {
        let listener = ListenerConfig::default();
        let checked = Addressing::new(&listener, true).check(&Uri::default(), &headers(pairs));
        assert_eq!(checked.is_ok(), expected);
    }

    #[test]
    fn only_this_machine_may_be_asked_and_may_ask() {
        passes(&[("host", "localhost:8800")], true);
        passes(&[("host", "127.0.0.1")], true);
        passes(&[("host", "[::1]:1")], true);
        passes(&[], false);
        passes(&[("host", "evil.example")], false);
        passes(&[("host", "localhost.evil.example")], false);
        passes(
            &[("host", "localhost"), ("origin", "http://localhost:3000")],
            true,
        );
        passes(&[("host", "localhost"), ("origin", "http://[::1]")], true);
        passes(
            &[("host", "localhost"), ("origin", "http://evil.example")],
            false,
        );
        passes(&[("host", "localhost"), ("origin", "null")], false);
        passes(
            &[
                ("host", "localhost"),
                ("origin", "http://localhost@evil.example"),
            ],
            false,
        );
    }

    #[track_caller]
    fn is_addressed(is_local: bool, uri: &str, pairs: &[(&'static str, &str)], reason: &str) {
        let mut listener = ListenerConfig::default();
        listener.hosts = vec!["mcp.example".parse().unwrap()];
        listener.origins = vec!["https://app.example".parse().unwrap()];
        let checked =
            Addressing::new(&listener, is_local).check(&uri.parse().unwrap(), &headers(pairs));
        let found = checked.err().map_or_else(String::new, |rejection| {
            assert_eq!(rejection.status, StatusCode::FORBIDDEN);
            rejection.reason
        });
        assert_eq!(found, reason, "{uri} {pairs:?}");
    }

    const OTHER_HOST: &str = "the Host header must name this gateway, by `public-url` or one of `hosts` in its configuration";
    const OTHER_TARGET: &str = "the request must name this gateway, by `public-url` or one of `hosts` in its configuration";
    const OTHER_ORIGIN: &str =
        "the Origin header must be one of `origins` in the configuration of the gateway";

    #[test]
    fn the_names_of_the_configuration_are_for_everybody_and_loopback_names_for_this_machine() {
        for is_local in [true, false] {
            is_addressed(is_local, "/mcp", &[("host", "MCP.example:8443")], "");
            is_addressed(
                is_local,
                "https://mcp.example/mcp",
                &[("host", "mcp.example")],
                "",
            );
            is_addressed(
                is_local,
                "/mcp",
                &[("host", "mcp.example.evil.example")],
                OTHER_HOST,
            );
            is_addressed(is_local, "/mcp", &[], OTHER_HOST);
            let two = [("host", "mcp.example"), ("host", "evil.example")];
            is_addressed(is_local, "/mcp", &two[..1], "");
            is_addressed(is_local, "http://evil.example/mcp", &two[..1], OTHER_TARGET);
        }
        is_addressed(true, "/mcp", &[("host", "localhost")], "");
        is_addressed(false, "/mcp", &[("host", "localhost")], OTHER_HOST);
        is_addressed(false, "/mcp", &[("host", "127.0.0.1:8800")], OTHER_HOST);
    }

    #[test]
    fn an_origin_of_the_configuration_is_compared_as_it_is_written() {
        let from = |origin| [("host", "mcp.example"), ("origin", origin)];
        for is_local in [true, false] {
            is_addressed(is_local, "/mcp", &from("https://app.example"), "");
            for other in [
                "http://app.example",
                "https://app.example:8443",
                "https://app.example.evil.example",
                "https://mcp.example",
                "null",
            ] {
                is_addressed(is_local, "/mcp", &from(other), OTHER_ORIGIN);
            }
        }
        is_addressed(true, "/mcp", &from("http://localhost:6274"), "");
        is_addressed(false, "/mcp", &from("http://localhost:6274"), OTHER_ORIGIN);
    }

    #[test]
    fn accept_is_read_as_http_says() {
        let both = ["application/json", "text/event-stream"];
        for (value, expected) in [
            ("application/json, text/event-stream", true),
            ("text/event-stream;q=0.5 , application/JSON", true),
            ("*/*", true),
            ("application/*, text/*", true),
            ("application/json", false),
            ("", false),
        ] {
            let found = check_accept(&headers(&[("accept", value)]), &both).is_ok();
            assert_eq!(found, expected, "{value}");
        }
        assert!(check_accept(&HeaderMap::new(), &both).is_ok());
    }

    #[test]
    fn what_is_weighted_more_or_named_first_is_preferred() {
        for (value, expected) in [
            ("application/json, text/event-stream", false),
            ("text/event-stream, application/json", true),
            ("application/json;q=0.5, text/event-stream;q=0.9", true),
            ("Text/Event-Stream; q=0.5, application/json", false),
            ("application/json;q=much, text/event-stream", false),
            ("*/*", false),
            ("text/*, application/json", false),
            ("text/event-stream, */*", true),
        ] {
            let headers = headers(&[("accept", value)]);
            assert_eq!(prefers_stream(&headers), expected, "{value}");
        }
        assert!(!prefers_stream(&HeaderMap::new()));
    }
}
