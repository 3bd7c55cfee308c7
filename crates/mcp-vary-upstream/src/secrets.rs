//! The secret values of one server, removed from excerpts of its messages.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::uri::{Authority, Parts};
use http::{HeaderMap, HeaderValue, Uri};
use mcp_vary::json;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::sanitize;

use super::config::Target;
use crate::secret::{is_secret, secret_arguments};

/// The values that are replaced. For an endpoint: those of its headers, of the user in its URL and of the URL's query.
/// For a program: values of its environment and its arguments that look like secrets.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    fixed: Vec<String>,
    sent: Vec<Arc<SentValues>>,
}

/// The values that sources of credentials gave for the latest requests.
#[derive(Default)]
pub(super) struct SentValues(ScopedLock<VecDeque<HeaderValue>>);

impl SentValues {
    /// Adds a value, unless it is among them already.
    pub(super) fn record(&self, value: &HeaderValue) {
        let mut values = self.0.lock();
        if values.contains(value) {
            return;
        }
        values.truncate(MAX_SENT - 1);
        values.push_front(value.clone());
    }

    /// Whether no source has given a value.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn texts(&self) -> Vec<String> {
        let values = self.0.lock();
        values.iter().flat_map(texts).collect()
    }
}

/// Their number, and none of them.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.fixed.len())
    }
}

impl Secrets {
    pub(super) fn of(target: &Target) -> Self {
        let mut found = Vec::new();
        match target {
            Target::Command { args, env, .. } => {
                found.extend(secret_arguments(args.iter().map(String::as_str)));
                let secret = env.iter().filter(|(name, value)| is_secret(name, value));
                found.extend(secret.map(|(_, value)| value.clone()));
            }
            Target::Http { url, headers } => {
                found.extend(headers.values().flat_map(texts));
                if let Some((user, _)) = user_and_host(url) {
                    found.extend(user.split(':').map(str::to_owned));
                    found.push(user.to_owned());
                    found.extend(basic(user).split_whitespace().map(str::to_owned));
                }
                let query = url.query().unwrap_or_default().split('&');
                found.extend(query.map(|pair| {
                    let value = pair.split_once('=').map_or(pair, |(_, value)| value);
                    value.to_owned()
                }));
            }
            Target::InProcess(_) => {}
        }
        Self::of_texts(found, None)
    }

    /// These texts, and the value of a header.
    pub(super) fn of_texts(mut found: Vec<String>, value: Option<&HeaderValue>) -> Self {
        found.extend(value.into_iter().flat_map(texts));
        Self {
            fixed: all_spellings(found),
            sent: Vec::new(),
        }
    }

    /// The same, and the values that are `sent` or received.
    pub(super) fn with_sent(mut self, sent: Arc<SentValues>) -> Self {
        self.sent.push(sent);
        self
    }

    /// All of them, the longest first.
    fn all(&self) -> Cow<'_, [String]> {
        let values: Vec<String> = self.sent.iter().flat_map(|values| values.texts()).collect();
        if values.is_empty() {
            return Cow::Borrowed(&self.fixed);
        }
        let found = values.into_iter().chain(self.fixed.iter().cloned());
        Cow::Owned(all_spellings(found.collect()))
    }

    /// `text` with `***` in place of each secret.
    pub(super) fn hide(&self, text: &str) -> String {
        hide(text, &self.all())
    }

    /// The [`sanitize::excerpt`] of `bytes`, without secrets.
    pub(super) fn excerpt(&self, bytes: &[u8], limit: usize) -> String {
        let secrets = self.all();
        let Some(longest) = secrets.first().map(String::len) else {
            return sanitize::excerpt(bytes, limit);
        };
        // Enough for what is shown, and for a secret that begins there.
        let window = limit.saturating_mul(WIDEST).saturating_add(longest);
        let window = &bytes[..bytes.len().min(window)];
        let mut shown = hide(&String::from_utf8_lossy(window), &secrets);
        if window.len() < bytes.len() {
            // A secret may begin in the window and end behind it.
            let end = shown.len().saturating_sub(longest);
            shown.truncate(shown.floor_char_boundary(end));
            shown.push('…');
        }
        sanitize::excerpt(shown.as_bytes(), limit)
    }
}

fn hide(text: &str, secrets: &[String]) -> String {
    let mut shown = text.to_owned();
    for secret in secrets {
        if shown.contains(secret.as_str()) {
            shown = shown.replace(secret.as_str(), "***");
        }
    }
    shown
}

/// The value of a header, and the words in it.
fn texts(value: &HeaderValue) -> Vec<String> {
    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut texts: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    texts.push(value);
    texts
}

/// Secrets as written, decoded, and escaped as in JSON; the longest first.
fn all_spellings(found: Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    for secret in found {
        let without_escapes = decoded(&secret);
        for text in [secret, without_escapes] {
            let quoted = json::string(&text);
            all.push(quoted[1..quoted.len() - 1].to_owned());
            all.push(text);
        }
    }
    all.retain(|secret| secret.len() >= SHORTEST);
    // The longest first, since one may be a part of another.
    all.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
    all.dedup();
    all
}

/// `url` without its user, and `headers` with that user as `Authorization`, unless they have one: libraries log URLs.
pub(super) fn without_user(url: &Uri, headers: &HeaderMap) -> (Uri, HeaderMap) {
    let mut sent = headers.clone();
    let Some((user, host)) = user_and_host(url) else {
        return (url.clone(), sent);
    };
    if !sent.contains_key(AUTHORIZATION)
        && let Ok(value) = HeaderValue::from_str(&basic(user))
    {
        sent.insert(AUTHORIZATION, value);
    }
    let mut parts = Parts::from(url.clone());
    parts.authority = host.parse::<Authority>().ok();
    // It was a URL before, and its host has not changed.
    let plain = Uri::from_parts(parts).unwrap_or_else(|_| url.clone());
    (plain, sent)
}

fn user_and_host(url: &Uri) -> Option<(&str, &str)> {
    url.authority()?.as_str().rsplit_once('@')
}

/// The value of `Authorization` for `user:password` as written in a URL.
fn basic(user: &str) -> String {
    use base64::Engine as _;
    let user = decoded(user);
    let user = if user.contains(':') {
        user
    } else {
        format!("{user}:")
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode(user);
    format!("Basic {encoded}")
}

/// `text` without percent-encoding; unchanged if the result is not text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut remaining = text.as_bytes();
    while let [first, after @ ..] = remaining {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                remaining = &after[2..];
            }
            _ => {
                bytes.push(*first);
                remaining = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The minimum length in bytes; shorter values appear in many texts by chance.
const SHORTEST: usize = 6;
/// The values of credentials that are hidden; those of earlier requests can be valid still.
const MAX_SENT: usize = 64;
/// The bytes that are read for each character shown: a replaced secret leaves three.
const WIDEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer TOPSECRETTOKEN".parse().unwrap());
        let url = "http://user:pass%40word@host/mcp?key=QUERY%2FSECRET";
        let url = url.parse().unwrap();
        Secrets::of(&Target::Http { url, headers })
    }

    #[test]
    fn a_secret_is_shown_in_no_spelling() {
        for (excerpt, shown) in [
            ("Bearer TOPSECRETTOKEN", "***"),
            (r#"{"echo":"TOPSECRETTOKEN"}"#, r#"{"echo":"***"}"#),
            ("?key=QUERY%2FSECRET, QUERY/SECRET", "?key=***, ***"),
            ("pass%40word pass@word", "*** ***"),
            ("dXNlcjpwYXNzQHdvcmQ=", "***"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(secrets().excerpt(excerpt.as_bytes(), 200), shown);
        }
        assert_eq!(format!("{:?}", Secrets::default()), "Secrets(0)");
    }

    #[test]
    fn secret_arguments_of_a_program_are_not_shown() {
        let args = ["8", "--password=plain-pw", "-p", "short-pw", "--verbose"];
        let target = Target::command("x", args.map(str::to_owned));
        let shown = Secrets::of(&target).hide("8 --password=plain-pw plain-pw short-pw --verbose");
        assert_eq!(shown, "8 --password=*** *** *** --verbose");
    }

    #[test]
    fn nor_is_a_part_of_one() {
        for before in 0..400 {
            let excerpt = format!("{}TOPSECRETTOKEN", "-".repeat(before)).repeat(90);
            let shown = secrets().excerpt(excerpt.as_bytes(), 200);
            assert!(!shown.contains("TOP"), "{before}: {shown}");
        }
    }

    #[test]
    fn the_user_of_a_url_becomes_a_header() {
        let url: Uri = "http://user:pass%40word@[::1]:80/mcp?a=b".parse().unwrap();
        let (plain, headers) = without_user(&url, &HeaderMap::new());
        assert_eq!(plain, "http://[::1]:80/mcp?a=b");
        assert_eq!(headers[AUTHORIZATION], "Basic dXNlcjpwYXNzQHdvcmQ=");
        let (_, headers) = without_user(
            &url,
            &HeaderMap::from_iter([(AUTHORIZATION, "x".parse().unwrap())]),
        );
        assert_eq!(headers[AUTHORIZATION], "x");
    }
}
