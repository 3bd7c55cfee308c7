//! The configured headers of an endpoint, which may contain credentials, and what to do if it refuses them.

use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION, VIA, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_http_client::body::Incoming;
use mcp_vary_http_client::proxy::Proxy;

use crate::config::UpstreamConfig;

/// The headers of all requests: those of the configuration, and those for gateways and the proxy on the way.
pub(super) struct Credentials {
    /// None of the values is shown by `Debug`.
    pub(super) headers: HeaderMap,
    /// The names of the headers that sources of credentials add.
    added: Vec<HeaderName>,
    /// Whether the last 401 referred to an authorization server.
    wants_login: AtomicBool,
    /// The `error_description` of the last 401, as the server wrote it.
    refusal: ScopedLock<Option<String>>,
}

impl Credentials {
    pub(super) fn new(
        config: &UpstreamConfig,
        mut headers: HeaderMap,
        proxy: Option<&Proxy>,
    ) -> Self {
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        if let Some(via) = config.chain.via() {
            headers.append(VIA, via);
        }
        if let Some(authorization) = proxy.and_then(Proxy::authorization) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        Self {
            headers,
            added: config
                .credentials
                .iter()
                .map(|credential| credential.header.clone())
                .collect(),
            wants_login: AtomicBool::new(false),
            refusal: ScopedLock::new(None),
        }
    }

    /// Records whether a 401 refers to an authorization server (RFC 9728), and why it refuses what was sent (RFC 6750,
    /// section 3).
    pub(super) fn record_challenge(&self, response: &Response<Incoming>) {
        if response.status() != StatusCode::UNAUTHORIZED {
            return;
        }
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let challenges: Vec<_> = texts.collect();
        let names_metadata = |value: &str| value.to_ascii_lowercase().contains("resource_metadata");
        let wants_login = challenges.iter().any(|value| names_metadata(value));
        self.wants_login.store(wants_login, Ordering::Relaxed);
        *self.refusal.lock() = challenges.iter().find_map(|value| description(value));
    }

    /// Why the last 401 refused what was sent, as the server wrote it.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    /// What to do about a server that answers 401. `has_added` says whether a source of credentials gave a value.
    pub(super) fn advice(&self, has_added: bool) -> String {
        let names = self.headers.keys().filter(|name| *name != VIA);
        let added = if has_added { &self.added[..] } else { &[] };
        let sent: Vec<String> = names.chain(added).map(|name| format!("`{name}`")).collect();
        let mut headers = self.headers.iter();
        if let Some((name, _)) = headers.find(|(_, value)| has_no_credentials(value)) {
            return format!("; its header `{name}` has no token: is the variable empty?");
        }
        if let Some(advice) = self.scheme_advice() {
            return format!("; {advice}");
        }
        let what = match (&sent[..], self.wants_login.load(Ordering::Relaxed)) {
            ([], false) => {
                "it wants a token: add --header 'Authorization: Bearer TOKEN', or write `Authorization: Bearer ${TOKEN}` into \
                 `headers` of its entry"
                    .to_owned()
            }
            ([], true) => format!("it wants a login; {LOGIN}"),
            (sent, wants_login) => {
                let names = sent.join(", ");
                let login = if wants_login { OR_LOGIN } else { "" };
                format!("it refused the headers that were sent, {names}; {CHECK_TOKEN}{login}")
            }
        };
        format!("; {what}")
    }

    /// What to write instead of an `Authorization` without a scheme.
    pub(super) fn scheme_advice(&self) -> Option<String> {
        let value = self.headers.get(AUTHORIZATION)?;
        let advice =
            "its header `Authorization` has no scheme: write `Authorization: Bearer TOKEN`";
        has_no_scheme(value).then(|| advice.to_owned())
    }
}

/// The `error_description` of a challenge. Its value is quoted, and by RFC 6750, section 3, has neither quotes nor
/// backslashes.
fn description(challenge: &str) -> Option<String> {
    let (_, after) = challenge.split_once("error_description=\"")?;
    let (text, _) = after.split_once('"')?;
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Whether a value of `Authorization` has no scheme, as a key that was written alone.
fn has_no_scheme(value: &HeaderValue) -> bool {
    !value.as_bytes().trim_ascii().contains(&b' ') && !has_no_credentials(value)
}

/// Whether nothing follows the scheme in the value of a header.
fn has_no_credentials(value: &HeaderValue) -> bool {
    let lowercase = value.as_bytes().trim_ascii().to_ascii_lowercase();
    matches!(&*lowercase, b"" | b"bearer" | b"basic" | b"token")
}

/// What to do about a server that wants a login.
const LOGIN: &str = "log in with `vary login` and write no `Authorization` into `headers` of its entry, or write a token of \
     this server there";

/// What to do about a token or key that is refused.
const CHECK_TOKEN: &str =
    "check that the token is complete, has not expired, and is for this server";
const OR_LOGIN: &str = ", or log in with `vary login` and send no `Authorization`";
