//! What parsers behind private modules of `mcp_vary_gateway` must hold.

use std::net::IpAddr;
use std::sync::OnceLock;

use http::{HeaderName, HeaderValue};
use mcp_vary::json::{Json, Members};
use mcp_vary_gateway::fuzzing::{
    SessionIds, headers_agree, splice_cut, splice_get, splice_rename, splice_set,
};
use mcp_vary_gateway::{call_headers, fuzzing};
use mcp_vary_login::address::Address;
use mcp_vary_login::fuzzing::endpoints;
use mcp_vary_store::written_frame;
use mcp_vary_upstream::read_lines;

/// Only what was sealed opens, letter for letter, here and at a gateway with the same keys.
pub fn session_id(data: &[u8]) {
    static SEALED: OnceLock<(SessionIds, SessionIds, String)> = OnceLock::new();
    let (ids, replica, sealed) = SEALED.get_or_init(|| {
        let ids = SessionIds::default();
        let sealed = ids.seal("fuzz");
        (ids, SessionIds::default(), sealed)
    });
    let text = String::from_utf8_lossy(data);
    assert!(ids.opens(sealed) && replica.opens(sealed));
    // Any text, and any text in the place of a part of a sealed one.
    let (at, remaining) = data.split_first().unwrap_or((&0, &[]));
    let at = usize::from(*at).min(sealed.len());
    let remaining = String::from_utf8_lossy(remaining);
    let end = (at + remaining.len()).min(sealed.len());
    let spliced = format!("{}{remaining}{}", &sealed[..at], &sealed[end..]);
    for id in [&*text, spliced.as_str()] {
        assert!(
            id == sealed || !ids.opens(id) && !replica.opens(id),
            "{id} opens"
        );
    }
}

/// An id of an event is written as it was read, but for leading zeros and signs.
pub fn event_id(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(written) = fuzzing::event_id(text) {
        assert_eq!(fuzzing::event_id(&written), Some(written.clone()), "{text}");
        assert!(written.len() <= 512 + 64 && !written.contains(['\r', '\n', '\0']));
    }
}

/// What is read of a challenge is read again from a challenge that says the same, and nothing else.
pub fn challenge(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else {
        return;
    };
    if let Some(written) = mcp_vary_login::fuzzing::challenge(&value) {
        assert!(written.len() <= 2 * data.len() + 64);
        let again = HeaderValue::from_str(&written).ok();
        // Longer ones are not read, and a value may have letters beyond ASCII.
        let again = again.filter(|_| written.len() <= 8 << 10);
        if let Some(again) = again {
            assert_eq!(mcp_vary_login::fuzzing::challenge(&again), Some(written));
        }
    }
}

/// Lines are what line feeds part, however the bytes arrive; none is longer than the limit.
pub fn lines(data: &[u8]) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
    }
    let mut expected: Vec<_> = data.split(|byte| *byte == b'\n').collect();
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    for piece in [1, 7, 4096] {
        let read = read_lines(data, LINE, piece);
        let read = RUNTIME.with(|runtime| runtime.block_on(read));
        assert_eq!(read.len(), expected.len());
        for (line, expected) in read.iter().zip(&expected) {
            let is_short = expected.len() <= LINE;
            assert_eq!(line.as_deref(), is_short.then_some(*expected));
        }
    }
}

/// Splicing changes the member it is about and leaves every other as it was written.
pub fn splice(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (key, object) = text.split_once('\n').unwrap_or(("a", text));
    let set = splice_set(object, key, "[1.0]");
    let cut = splice_cut(object, key);
    let renamed = splice_rename(object, key, "\u{1}new\"");
    let Ok(before) = Members::parse(object) else {
        // What is no object, or cannot be written down, stays or is still no less JSON than before.
        return;
    };
    let others = |members: &Members<'_>, without: &[&str]| -> Vec<(String, String)> {
        let others = members.iter().filter(|(name, _)| !without.contains(name));
        others
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    assert_eq!(splice_get(object, key), before.get(key));
    let after = Members::parse(&set).expect("an object");
    assert_eq!(after.get(key), Some("[1.0]"));
    assert_eq!(others(&after, &[key]), others(&before, &[key]));
    let after = Members::parse(&cut).expect("an object");
    assert_eq!(others(&after, &[]), others(&before, &[key]));
    let both = [key, "\u{1}new\""];
    if let Ok(after) = Members::parse(&renamed) {
        assert_eq!(others(&after, &both), others(&before, &both));
        if key != both[1] && !before.contains(both[1]) {
            assert_eq!(after.get(both[1]), before.get(key));
        }
    } else {
        panic!("{renamed} is no object");
    }
}

/// The headers that are made of a call agree with it, and those of another call only where it says the same.
pub fn headers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.splitn(3, '\n');
    let mut next = || parts.next().unwrap_or("{}");
    let (schema, arguments, others) = (next(), next(), next());
    let sent = call_headers(schema, arguments);
    let Ok(agree) = headers_agree(schema, &sent, arguments) else {
        assert!(sent.is_empty());
        return;
    };
    assert!(agree, "{sent:?} do not agree with {arguments}");
    let native: Vec<(HeaderName, HeaderValue)> = call_headers(schema, others);
    if headers_agree(schema, &sent, others) == Ok(true) && Json::parse(others).is_ok() {
        assert_eq!(
            native.len(),
            sent.len(),
            "{others} has other headers than {arguments}"
        );
    }
}

/// Bytes of a line.
const LINE: usize = 16;

/// A message between replicas is a frame that is written as it was read, but for unknown flags.
pub fn frame(data: &[u8]) {
    if let Some(written) = written_frame(data) {
        assert_eq!(written.len(), data.len());
        assert_eq!((written[0], &written[2..]), (data[0], &data[2..]));
        assert_eq!(written_frame(&written), Some(written));
    }
}

/// Whatever an authorization server names, it is asked over `https`, and not in a private network.
pub fn metadata(data: &[u8]) {
    let server = Address::parse("https://mcp.example/mcp").expect("an address");
    for url in endpoints(data, &server) {
        let uri: http::Uri = url.parse().expect("a URL");
        assert_eq!(uri.scheme_str(), Some("https"), "{url}");
        let host = uri.host().expect("a host").trim_matches(['[', ']']);
        let is_private = match host.parse() {
            Ok(IpAddr::V4(ip)) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        assert!(!is_private, "{url}");
    }
}
