//! The address of an endpoint, and how an operator recognises it in errors.

use std::error::Error;
use std::path::PathBuf;

use http::{StatusCode, Uri};
use mcp_vary_http_client::failure::{is_connection_refused, root_cause};
use mcp_vary_http_client::origin::origin;
use mcp_vary_http_client::tls;

/// The address of an endpoint, and the way to it.
pub(super) struct Address {
    pub(super) uri: Uri,
    /// The proxy on the way to it, with its variable.
    pub(super) proxy: Option<String>,
    /// Why the proxy that variables name is not on that way.
    pub(super) unused_proxy: Option<&'static str>,
    /// The file of further authorities for it.
    pub(super) ca: Option<PathBuf>,
}

impl Address {
    /// The part of the address that an operator recognises it by.
    pub(super) fn shown(&self) -> String {
        shown(&self.uri)
    }

    /// Whether it is reached without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.uri.scheme_str() == Some("http")
    }

    /// Why no connection could be made, and what helps if that is known.
    pub(super) fn describe_failure(&self, error: &(dyn Error + 'static)) -> String {
        let to = self.shown();
        let cause = root_cause(error);
        match (&self.proxy, tls::advice(error, self.ca.as_deref())) {
            (None, None) if let Some(why) = self.unused_proxy => format!("{to}: {cause}; {why}"),
            (None, None) if is_connection_refused(error) => {
                format!("{to}: {cause}; start the server, or correct host and port")
            }
            (None, None) if cause == HANDSHAKE_EOF => format!("{to}: {NO_TLS}"),
            (None, None) => format!("{to}: {cause}"),
            (None, Some(advice)) => format!("{to}: {cause}; {advice}"),
            (Some(proxy), Some(advice)) => {
                format!("through the proxy {proxy}: {to}: {cause}; {advice}")
            }
            // The library's words for a status other than 200 and 407.
            (Some(proxy), None) if cause.ends_with("unsuccessful") => {
                format!("through the proxy {proxy}: the proxy does not connect to {to}; {NO_PROXY}")
            }
            (Some(proxy), None) if cause.ends_with(WANTS_LOGIN) => {
                format!("the proxy {proxy} on the way to {to} {LOGIN_ADVICE}")
            }
            // Only the proxy is connected to; behind it, what fails is TLS.
            (Some(proxy), None) => format!(
                "the proxy {proxy} on the way to {to}: {cause}; correct that variable, or {NO_PROXY}"
            ),
        }
    }

    /// Why a connection ended without a response, and what helps if that is known.
    pub(super) fn describe_loss(&self, error: &(dyn Error + 'static)) -> String {
        let cause = root_cause(error);
        match tls::advice(error, self.ca.as_deref()) {
            Some(advice) => format!("{cause}; {advice}"),
            None => cause,
        }
    }

    /// Names the proxy if `status` may be its answer in place of the server's.
    pub(super) fn proxy_advice(&self, status: StatusCode) -> String {
        match &self.proxy {
            Some(proxy) if status.as_u16() == 407 => format!("; the proxy {proxy} {LOGIN_ADVICE}"),
            Some(proxy) if matches!(status.as_u16(), 502..=504) => {
                format!("; it may be the answer of the proxy {proxy}")
            }
            _ => String::new(),
        }
    }

    /// The target of a redirect, relative to this address.
    pub(super) fn describe_redirect(&self, location: &str) -> String {
        let Ok(target) = location.parse::<Uri>() else {
            let target = if location.is_empty() {
                "nowhere"
            } else {
                "another address"
            };
            return target.to_owned();
        };
        if target.host().is_some() && origin(&target) != origin(&self.uri) {
            return format!("`{}`", shown(&target));
        }
        let old = self.uri.path();
        let new = target.path();
        if new.strip_suffix('/') == Some(old) {
            "its own path with a `/` at the end".to_owned()
        } else if old.strip_suffix('/') == Some(new) {
            "its own path without the `/` at the end".to_owned()
        } else {
            format!("`{}`, another path of its own", shown_path(new))
        }
    }
}

fn shown(uri: &Uri) -> String {
    origin(uri) + &shown_path(uri.path())
}

/// The path with `...` for the segments that may be keys, which are all but the usual ones.
fn shown_path(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "" | "api" | "http" | "mcp" | "messages" | "public" | "rpc" | "server" | "servers"
        | "sse" | "stream" | "v1" | "v2" | "v3" => segment,
        _ => "...",
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The address `text`, relative to `base`; `None` if it has another origin or is not an address.
///
/// The rule is that of the SDKs: what names another origin would get the credentials of this one.
pub(super) fn resolve_within_origin(base: &Uri, text: &str) -> Option<Uri> {
    let scheme = base.scheme_str()?;
    let authority = base.authority()?;
    let has_scheme = text.split(['/', '?']).next()?.contains(':');
    let target: Uri = match text.as_bytes().first()? {
        _ if has_scheme => text.parse().ok()?,
        b'/' if text.starts_with("//") => format!("{scheme}:{text}").parse().ok()?,
        b'/' => format!("{scheme}://{authority}{text}").parse().ok()?,
        b'?' => format!("{scheme}://{authority}{}{text}", base.path())
            .parse()
            .ok()?,
        _ => {
            let (directory, _) = base.path().rsplit_once('/')?;
            format!("{scheme}://{authority}{directory}/{text}")
                .parse()
                .ok()?
        }
    };
    (exact_origin(&target)? == exact_origin(base)?).then_some(target)
}

/// Scheme, host and port; `None` for an address with a user.
fn exact_origin(uri: &Uri) -> Option<(&str, String, u16)> {
    let authority = uri.authority().filter(|it| !it.as_str().contains('@'))?;
    let default = match uri.scheme_str()? {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let host = authority.host().to_ascii_lowercase();
    Some((uri.scheme_str()?, host, uri.port_u16().unwrap_or(default)))
}

/// The library's words for a connection that ends during the TLS handshake.
const HANDSHAKE_EOF: &str = "tls handshake eof";
const NO_TLS: &str = "it closed the connection during the TLS handshake; if it does not speak TLS, write http:// in its address";
/// The library's words for a proxy that answers 407.
const WANTS_LOGIN: &str = "proxy authorization required";
const LOGIN_ADVICE: &str = "wants a user and a password: write that variable as `http://USER:PASSWORD@HOST:PORT`, or correct them there";
const NO_PROXY: &str = "name the host in `NO_PROXY` if no proxy is needed for it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_messages_and_redirects_are_within_the_origin() {
        let base = Uri::from_static("https://a.example/api/sse?key=1");
        for (text, expected) in [
            (
                "/messages/?session_id=7",
                Some("https://a.example/messages/?session_id=7"),
            ),
            ("messages?id=7", Some("https://a.example/api/messages?id=7")),
            ("?id=7", Some("https://a.example/api/sse?id=7")),
            ("https://a.example/m", Some("https://a.example/m")),
            ("https://A.example:443/m", Some("https://A.example:443/m")),
            ("//a.example/m", Some("https://a.example/m")),
            (
                "/m?next=https://b.example/",
                Some("https://a.example/m?next=https://b.example/"),
            ),
            ("https://b.example/m", None),
            ("//b.example/m", None),
            ("http://a.example/m", None),
            ("https://a.example:8443/m", None),
            ("https://u:p@a.example/m", None),
            ("https://a.example@b.example/m", None),
            ("https://a.example.b.example/m", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("/a b", None),
            ("", None),
        ] {
            let found = resolve_within_origin(&base, text).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
