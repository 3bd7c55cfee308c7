//! What parsers of single values must hold: of the gateway, and of the crates below it.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary::json::{Json, Members, edit};
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_gateway::{Config, Environment, Target, UpstreamConfig, accepts_params, call_headers};
use mcp_vary_login::address::{Address, AddressPolicy};
use mcp_vary_login::challenge::Challenge;
use mcp_vary_login::discovery::ServerMetadata;
use mcp_vary_session::{BASE_CLASS, Negotiated, ServerVisibility, Sessions};
use mcp_vary_store::written_frame;
use mcp_vary_upstream::read_lines;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::headers::{check_params, param_headers};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::sse::EventId;

/// Lets every client know everything.
#[derive(Debug)]
struct AllServers;

impl ServerVisibility for AllServers {
    fn may_know(&self, _: ClientId, _: &str) -> bool {
        true
    }

    fn may_know_tool(&self, _: ClientId, _: &str, _: &str) -> bool {
        true
    }
}

/// The sessions of a gateway whose keys are always the same.
fn sessions() -> Sessions {
    let environment = Environment::new(|| 1_000, |bytes| bytes.fill(7));
    let server = UpstreamConfig::new("server", Target::command("server", []));
    Sessions::new(
        &Config::new(server, environment),
        vec![[1; 32], [2; 32]],
        Arc::new(AllServers),
        0x0707_0707,
    )
}

/// The id of a new session.
fn sealed_id(sessions: &Sessions) -> String {
    let negotiated = Negotiated {
        revision: Revision::LATEST_LEGACY,
        features: None,
        order: vec!["standard".to_owned()],
        declares_variants: false,
        class: BASE_CLASS.into(),
        client: ClientName {
            name: "fuzz".to_owned(),
            version: String::new(),
        },
        principal: None,
        reason: VariantReason::default(),
    };
    sessions.open(negotiated, Duration::from_secs(3_600)).0
}

/// Only what was sealed opens, letter for letter, here and at a gateway with the same keys.
pub fn session_id(data: &[u8]) {
    static SEALED: OnceLock<(Sessions, Sessions, String)> = OnceLock::new();
    let (ids, replica, sealed) = SEALED.get_or_init(|| {
        let ids = sessions();
        let sealed = sealed_id(&ids);
        (ids, sessions(), sealed)
    });
    let text = String::from_utf8_lossy(data);
    let opens = |sessions: &Sessions, id: &str| sessions.find(id).is_some();
    assert!(opens(ids, sealed) && opens(replica, sealed));
    // Any text, and any text in the place of a part of a sealed one.
    let (at, remaining) = data.split_first().unwrap_or((&0, &[]));
    let at = usize::from(*at).min(sealed.len());
    let remaining = String::from_utf8_lossy(remaining);
    let end = (at + remaining.len()).min(sealed.len());
    let spliced = format!("{}{remaining}{}", &sealed[..at], &sealed[end..]);
    for id in [&*text, spliced.as_str()] {
        assert!(
            id == sealed || !opens(ids, id) && !opens(replica, id),
            "{id} opens"
        );
    }
}

/// An id of an event is written as it was read, but for leading zeros and signs.
pub fn event_id(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(id) = EventId::parse(text) {
        let written = id.to_text();
        let again = EventId::parse(&written).map(|id| id.to_text());
        assert_eq!(again, Some(written.clone()), "{text}");
        assert!(written.len() <= 512 + 64 && !written.contains(['\r', '\n', '\0']));
    }
}

/// The parameters of the challenge that are read, as a challenge; `None` if there are none.
#[must_use]
pub fn written_challenge(value: &HeaderValue) -> Option<String> {
    let parsed = Challenge::parse(std::slice::from_ref(value));
    let scope = parsed.scope.map(|scope| scope.to_string());
    let parameters = [
        ("error", parsed.error),
        ("scope", scope),
        ("resource_metadata", parsed.resource_metadata),
    ];
    let quoted = |text: String| text.replace('\\', "\\\\").replace('"', "\\\"");
    let written = parameters.into_iter().filter_map(|(name, value)| {
        let value = quoted(value?);
        Some(format!("{name}=\"{value}\""))
    });
    let written: Vec<_> = written.collect();
    (!written.is_empty()).then(|| format!("Bearer {}", written.join(", ")))
}

/// What is read of a challenge is read again from a challenge that says the same, and nothing else.
pub fn challenge(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else {
        return;
    };
    if let Some(written) = written_challenge(&value) {
        assert!(written.len() <= 2 * data.len() + 64);
        let again = HeaderValue::from_str(&written).ok();
        // Longer ones are not read, and a value may have letters beyond ASCII.
        let again = again.filter(|_| written.len() <= 8 << 10);
        if let Some(again) = again {
            assert_eq!(written_challenge(&again), Some(written));
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
    let set = edit::set(object, key, "[1.0]");
    let cut = edit::remove(object, key);
    let renamed = edit::rename(object, key, "\u{1}new\"");
    let Ok(before) = Members::parse(object) else {
        // Only objects have members.
        return;
    };
    let others = |members: &Members<'_>, without: &[&str]| -> Vec<(String, String)> {
        let others = members.iter().filter(|(name, _)| !without.contains(name));
        others
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    assert_eq!(edit::get(object, key), before.get(key));
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
        panic!("{renamed} is not an object");
    }
}

/// Whether the headers of a call say what its arguments say, by the tool's input schema; an error where the schema
/// breaks the rules for headers.
///
/// # Errors
///
/// What is wrong with the schema.
pub fn headers_agree(
    input_schema: &str,
    headers: &[(HeaderName, HeaderValue)],
    arguments: &str,
) -> Result<bool, String> {
    let expected = param_headers(input_schema)?;
    let headers: HeaderMap = headers.iter().cloned().collect();
    Ok(check_params(&expected, &headers, arguments).is_ok())
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
    let policy = AddressPolicy::new(&server, None);
    let Ok(metadata) = serde_json::from_slice::<ServerMetadata>(data) else {
        return;
    };
    let named = [
        Some(metadata.token_endpoint),
        metadata.authorization_endpoint,
        metadata.registration_endpoint,
        metadata.device_authorization_endpoint,
        metadata.revocation_endpoint,
    ];
    let named = named.into_iter().flatten();
    for url in named.filter(|url| policy.check(url).is_ok()) {
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

/// What the gateway read of a request that it does not refuse, and what it sends on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The members of `params` that it decides by, as it read them.
    pub read: Vec<(String, String)>,
    /// The params that a server gets, of either era.
    pub sent: [String; 2],
}

/// The params of `method` as a server gets them; `None` when the request is refused.
#[must_use]
pub fn checked_params(method: &str, params: &str) -> Option<Checked> {
    let params = Params::read(Some(params)).ok()?;
    if !accepts_params(method, &params) {
        return None;
    }
    let members = params.members.iter();
    let read = members.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let sent = [Revision::V2025_11_25, Revision::V2026_07_28].map(|revision| {
        let upward = UpstreamContext {
            revision,
            capabilities: "{}",
            progress_token: None,
            log_level: None,
        };
        era::to_upstream_params(&mut params.clone(), &upward)
    });
    Some(Checked {
        read: read.collect(),
        sent,
    })
}
