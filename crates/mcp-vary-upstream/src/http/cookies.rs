//! Cookies of a server, by which balancers find the replica that has a session.

use std::cmp::Reverse;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::header::{COOKIE, DATE, SET_COOKIE};
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
        let date = response.get(DATE).and_then(|value| value.to_str().ok());
        let now = date.and_then(moment);
        let headers = response.get_all(SET_COOKIE).iter().take(MAX_COOKIES);
        let parsed = headers.filter_map(|value| Cookie::parse(value.to_str().ok()?, now));
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
    /// The cookie of a `Set-Cookie` (RFC 6265, section 5.2) at the moment `now`. Without `Path`, it is for the whole origin.
    fn parse(text: &str, now: Option<Moment>) -> Option<Self> {
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
                "expires" => cookie.is_deleted = has_passed(trimmed, now),
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

/// Year, month, day, hour, minute and second: the earlier moment is less.
type Moment = [usize; 6];

/// The moment of a `Date` or an `Expires`.
fn moment(date: &str) -> Option<Moment> {
    let parts = date.split(|character: char| !character.is_ascii_alphanumeric());
    let numbers: Vec<usize> = parts.clone().filter_map(|part| part.parse().ok()).collect();
    // The second form is that of `asctime`, which has the year at the end.
    let &([day, year, hour, minute, second @ 0..=60] | [day, hour, minute, second, year]) =
        &numbers[..]
    else {
        return None;
    };
    let is_named = |month: &&str| parts.clone().any(|part| part.eq_ignore_ascii_case(month));
    let month = MONTHS.iter().position(is_named)?;
    // RFC 6265, section 5.1.1.
    let century = match year {
        0..70 => 2000,
        70..100 => 1900,
        _ => 0,
    };
    Some([century + year, month, day, hour, minute, second])
}

/// Whether a cookie expired before its response was sent. Without the date of the response, only 1970 is certain to have
/// passed.
fn has_passed(expires: &str, now: Option<Moment>) -> bool {
    match (moment(expires), now) {
        (Some(end), Some(now)) => end <= now,
        _ => expires.contains("1970"),
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The most cookies, and the most bytes of all.
const MAX_COOKIES: usize = 32;
const MAX_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_ended_before_its_response_is_deleted() {
        let now = Some("Sun, 29 Nov 2026 08:30:00 GMT");
        for (expires, date, is_deleted) in [
            ("Wed, 21 Oct 2015 07:28:00 GMT", now, true),
            ("Wednesday, 21-Oct-15 07:28:00 GMT", now, true),
            ("Sun, 29-Nov-2026 08:29:59 GMT", now, true),
            ("Sun, 29 Nov 2026 08:30:01 GMT", now, false),
            ("Fri, 01 Jan 2027 00:00:00 GMT", now, false),
            ("Thu, 01 Jan 1970 00:00:00 GMT", None, true),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None, false),
            ("Thu Jan  1 00:00:00 1970", now, true),
            ("Thu Jan  1 00:00:00 2015", now, true),
            ("Fri Jan  1 00:00:00 2027", now, false),
            ("soon", now, false),
        ] {
            let set = format!("a=1; Expires={expires}");
            let cookie = Cookie::parse(&set, date.and_then(moment)).unwrap();
            assert_eq!(cookie.is_deleted, is_deleted, "{expires} at {date:?}");
        }
    }
}
