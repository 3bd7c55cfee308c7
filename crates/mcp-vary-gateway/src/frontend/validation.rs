//! Validation of a request's head, before its body is read.

use std::cmp::Reverse;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::pipeline::snapshot::ConfigSnapshot;

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

/// Accepts only requests that come from this machine and address it.
///
/// > Servers MUST validate the `Origin` header on all incoming connections to prevent DNS rebinding
/// > attacks. (MCP 2025-11-25 and 2026-07-28, transports, "Security Warning")
///
/// `Host` has the name that the client resolved: after DNS rebinding it is the attacker's.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), Rejection> {
    let is_ours = |host: &HeaderValue| {
        if is_plainly_loopback(host.as_bytes()) {
            return true;
        }
        let host = host.to_str().ok();
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        host.is_some_and(|host| is_loopback(host.host()))
    };
    let mut hosts = headers.get_all(HOST).iter().peekable();
    if hosts.peek().is_none() || !hosts.all(is_ours) {
        let reason = "the Host header must name this machine: localhost, 127.0.0.1 or [::1]";
        return Err(rejection(StatusCode::FORBIDDEN, reason));
    }
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().ok();
        let origin = origin.and_then(|origin| origin.parse::<Uri>().ok());
        origin.is_some_and(|origin| origin.host().is_some_and(is_loopback))
    };
    if !headers.get_all(ORIGIN).iter().all(is_ours) {
        let reason = "the Origin header must name this machine: localhost, 127.0.0.1 or [::1]";
        return Err(rejection(StatusCode::FORBIDDEN, reason));
    }
    Ok(())
}

/// > When an origin server receives a request with an absolute-form of request-target, the origin
/// > server MUST ignore the received Host header field (if any) and instead use the host information
/// > of the request-target. (RFC 9112, section 3.2.2)
pub(crate) fn check_target(uri: &Uri) -> Result<(), Rejection> {
    if uri.host().is_none_or(is_loopback) {
        return Ok(());
    }
    let reason = "the request must name this machine: localhost, 127.0.0.1 or [::1]";
    Err(rejection(StatusCode::FORBIDDEN, reason))
}

/// Whether this is a usual spelling, with or without a port. Other spellings are parsed.
fn is_plainly_loopback(authority: &[u8]) -> bool {
    let rest = [b"127.0.0.1".as_slice(), b"localhost"]
        .into_iter()
        .find_map(|host| authority.strip_prefix(host));
    match rest {
        Some([]) => true,
        Some([b':', port @ ..]) => {
            (1..=5).contains(&port.len()) && port.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Refuses a request that has already passed this gateway.
pub(crate) fn check_chain(headers: &HeaderMap, setup: &ConfigSnapshot) -> Result<(), Rejection> {
    let checked = setup.position.check(headers);
    checked.map_err(|reason| rejection(StatusCode::LOOP_DETECTED, reason))
}

/// Checks that the body is JSON.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Rejection> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = content_type
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
    let values = values.filter_map(|value| value.to_str().ok());
    let ranges: Vec<_> = values.flat_map(|value| value.split(',')).collect();
    let rank = |media: &str| {
        let ranges = ranges.iter().enumerate();
        let named = ranges.filter_map(|(at, range)| Some((weight_of(range, media)?, Reverse(at))));
        named.max()
    };
    rank("text/event-stream") > rank("application/json")
}

/// The weight of `media` in `range` in thousandths, if it is named.
fn weight_of(range: &str, media: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    let is_named = parts.next()?.eq_ignore_ascii_case(media);
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    let weight = weight.and_then(|weight| weight.parse::<f32>().ok());
    is_named.then(|| (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0).round() as u32)
}

/// Without the header everything is accepted (RFC 9110, section 12.5.1).
fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let mut is_present = false;
    let kind = media.split('/').next().unwrap_or_default();
    for value in headers.get_all(ACCEPT) {
        is_present = true;
        let ranges = value.to_str().unwrap_or_default().split(',');
        let mut ranges = ranges
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
        assert_eq!(check_origin(&headers(pairs)).is_ok(), expected);
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
            assert_eq!(
                check_accept(&headers(&[("accept", value)]), &both).is_ok(),
                expected,
                "{value}"
            );
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
