//! Cookies of a server, by which balancers find the replica that has a session.

use std::cmp::Reverse;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Request};

use crate::secrets::SentValues;

/// The cookies that the server has set on one connection.
///
/// In memory, for that connection and the origin of its endpoint alone, until the connection ends or the server deletes them.
/// So `Domain`, `Secure`, `HttpOnly` and `SameSite` change nothing, and neither does an end that is to come.
#[derive(Default)]
pub(super) struct Cookies {
    stored: ArcSwap<Vec<Cookie>>,
    /// Their values, which a server may repeat in what is logged.
    pub(super) values: Arc<SentValues>,
}

#[derive(Clone)]
struct Cookie {
    name: String,
    value: String,
    /// Requests with this path or one below it have the cookie.
    path: String,
    /// Whether the server deletes it.
    is_deleted: bool,
}

impl Cookies {
    /// Stores what a response sets, as far as [`MAX_COOKIES`] and [`MAX_BYTES`] allow.
    pub(super) fn record(&self, response: &HeaderMap) {
        if !response.contains_key(SET_COOKIE) {
            return;
        }
        let headers = response.get_all(SET_COOKIE).iter().take(MAX_COOKIES);
        let parsed = headers.filter_map(|value| Cookie::parse(value.to_str().ok()?));
        let received: Vec<Cookie> = parsed.collect();
        for cookie in &received {
            if let Ok(value) = HeaderValue::from_str(&cookie.value) {
                self.values.record(&value);
            }
        }
        self.stored.rcu(|stored| {
            let mut cookies = Vec::clone(stored);
            for cookie in &received {
                cookie.clone().store(&mut cookies);
            }
            cookies
        });
    }

    /// Adds the cookies for the path of a request. Those of the configuration stay, and win where the names are equal.
    pub(super) fn add_to<B>(&self, request: &mut Request<B>) {
        let stored = self.stored.load();
        if stored.is_empty() {
            return;
        }
        let configured = match request.headers().get(COOKIE).map(HeaderValue::to_str) {
            Some(Ok(configured)) => configured,
            Some(Err(_)) => return,
            None => "",
        };
        let mut pairs: Vec<String> = configured
            .split(';')
            .map(|pair| pair.trim().to_owned())
            .collect();
        pairs.retain(|pair| !pair.is_empty());
        for cookie in stored.iter() {
            let start = format!("{}=", cookie.name);
            let is_configured = pairs.iter().any(|pair| pair.starts_with(&start));
            if cookie.matches(request.uri().path()) && !is_configured {
                pairs.push(start + &cookie.value);
            }
        }
        if let Ok(mut value) = HeaderValue::from_str(&pairs.join("; "))
            && !pairs.is_empty()
        {
            value.set_sensitive(true);
            request.headers_mut().insert(COOKIE, value);
        }
    }
}

impl Cookie {
    /// The cookie of a `Set-Cookie` (RFC 6265, section 5.2). Without `Path`, it is for the whole origin.
    fn parse(text: &str) -> Option<Self> {
        let (pair, attributes) = text.split_once(';').unwrap_or((text, ""));
        let (name, value) = pair.split_once('=')?;
        let mut cookie = Self {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            path: "/".to_owned(),
            is_deleted: false,
        };
        let mut max_age = None;
        for attribute in attributes.split(';') {
            let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let trimmed = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if trimmed.starts_with('/') => trimmed.clone_into(&mut cookie.path),
                "max-age" => max_age = trimmed.parse::<i64>().ok(),
                // Servers delete a cookie with the beginning of time.
                "expires" => cookie.is_deleted = trimmed.contains("1970"),
                _ => {}
            }
        }
        if let Some(seconds) = max_age {
            cookie.is_deleted = seconds <= 0;
        }
        (!cookie.name.is_empty()).then_some(cookie)
    }

    /// Replaces the cookie with its name and path in `cookies`, or deletes it.
    fn store(self, cookies: &mut Vec<Self>) {
        cookies.retain(|old| (&old.name, &old.path) != (&self.name, &self.path));
        let bytes: usize = cookies.iter().map(Self::size).sum();
        if self.is_deleted || cookies.len() == MAX_COOKIES || bytes + self.size() > MAX_BYTES {
            return;
        }
        cookies.push(self);
        // "Cookies with longer paths are listed before cookies with shorter paths."
        cookies.sort_by_key(|cookie| Reverse(cookie.path.len()));
    }

    fn size(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len()
    }

    /// Whether a request for `path` has the cookie (RFC 6265, section 5.1.4).
    fn matches(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.path.as_str());
        below.is_some_and(|below| {
            below.is_empty() || below.starts_with('/') || self.path.ends_with('/')
        })
    }
}

/// The most cookies, and the most bytes of all.
const MAX_COOKIES: usize = 32;
const MAX_BYTES: usize = 8 << 10;
