//! Requests of the token endpoint, and what they return (RFC 6749, sections 5 and 6).

use std::fmt;

use http::StatusCode;
use mcp_vary_base::environment::Environment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assertion::AssertionContext;
use crate::client::Client;
use crate::form::{encoded, form};
use crate::http_client::{Answer, HttpClient, HttpError};
use crate::scope::Scopes;
use crate::secret::Secret;

/// An access token, and what belongs to it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Tokens {
    pub(crate) access_token: Secret,
    pub(crate) refresh_token: Option<Secret>,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) issued_at: u64,
    /// When the access token ends, if that is known.
    pub(crate) expires_at: Option<u64>,
    /// The scopes that were granted, if the answer named them.
    pub(crate) scope: Option<Scopes>,
}

impl Tokens {
    /// Whether the token has ended.
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether it should be refreshed: four fifths of its life are over.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| {
            let life = end.saturating_sub(self.issued_at);
            now >= self.issued_at.saturating_add(life / 5 * 4)
        })
    }
}

/// An error that an authorization server answered with (RFC 6749, section 5.2).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OAuthError {
    /// Such as `invalid_grant`.
    pub code: String,
    /// What it says to developers.
    pub description: Option<String>,
}

/// Why there is no token. It contains nothing secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The request failed.
    #[error("the token endpoint cannot be used: {0}")]
    Http(#[from] HttpError),
    /// The authorization server refused.
    #[error("the authorization server answered: {0}")]
    Refused(OAuthError),
    /// The type of the token is not `Bearer`, or no header can have the token.
    #[error("the token is not a bearer token")]
    NotBearer,
    /// The private key cannot sign.
    #[error(
        "the client cannot authenticate: its key cannot sign, or its id and secret cannot be in a header"
    )]
    Authentication,
}

impl TokenError {
    /// Whether the grant itself is not valid, so that the same request never succeeds.
    pub(crate) fn is_invalid_grant(&self) -> bool {
        let codes = [
            "invalid_grant",
            "invalid_client",
            "unauthorized_client",
            // GitHub's word for a refresh token that has ended.
            "bad_refresh_token",
        ];
        matches!(self, Self::Refused(error) if codes.contains(&error.code.as_str()))
    }

    /// The error without the words of the authorization server, which may repeat what it got: its code alone, if a
    /// specification has it.
    pub(crate) fn for_clients(&self) -> String {
        match self {
            Self::Refused(error) => {
                let known = CODES.iter().find(|code| **code == error.code);
                let code = known.unwrap_or(&"an error that no specification has");
                format!("the authorization server answered: {code}")
            }
            error => error.to_string(),
        }
    }
}

impl OAuthError {
    /// The error in an answer, whatever its status: GitHub sends it with 200.
    pub(crate) fn parse(answer: &Answer) -> Result<Self, HttpError> {
        #[derive(Deserialize)]
        struct Document {
            error: String,
            error_description: Option<String>,
        }
        let parsed = answer.json::<Document>();
        let document = parsed.map_err(|_| HttpError::Status(answer.status))?;
        Ok(Self::new(
            &document.error,
            document.error_description.as_deref(),
        ))
    }

    /// The same without what was `sent`, also in parts.
    fn without(self, sent: &[String]) -> Self {
        Self {
            code: hide(&self.code, sent),
            description: self.description.map(|text| hide(&text, sent)),
        }
    }

    /// An error with texts of an authorization server, which are bounded and made visible.
    pub(crate) fn new(code: &str, description: Option<&str>) -> Self {
        let visible = |text: &str| {
            let visible = text.chars().filter(|character| !character.is_control());
            visible.take(MAX_DESCRIPTION).collect()
        };
        Self {
            code: visible(code),
            description: description.map(visible),
        }
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(f, "{} ({description})", self.code),
            None => f.write_str(&self.code),
        }
    }
}

/// The members of RFC 6749, section 5.1. Some servers send `expires_in` as text, and `scope` as a list.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    token_type: String,
    expires_in: Option<Seconds>,
    refresh_token: Option<Secret>,
    scope: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

impl Seconds {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest integer, and one that is not a number becomes zero"
    )]
    fn seconds(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number as u64),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// A token endpoint, with the client that uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) http: &'a HttpClient,
    pub(crate) url: &'a str,
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a Client,
    pub(crate) environment: Environment,
}

impl TokenEndpoint<'_> {
    /// Requests tokens with these parameters.
    pub(crate) async fn request(&self, parameters: &[(&str, &str)]) -> Result<Tokens, TokenError> {
        let answer = self.post(parameters).await?;
        let response: TokenResponse = answer.json()?;
        response.into_tokens((self.environment.now)())
    }

    /// Requests new tokens with a refresh token. "The authorization server MAY issue a new refresh token": else the old
    /// one remains (RFC 6749, section 6).
    pub(crate) async fn refresh(
        &self,
        refresh_token: &Secret,
        resource: &str,
    ) -> Result<Tokens, TokenError> {
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
            ("resource", resource),
        ];
        let mut tokens = self.request(&parameters).await?;
        tokens
            .refresh_token
            .get_or_insert_with(|| refresh_token.clone());
        Ok(tokens)
    }

    /// Posts a form with these parameters and the client's authentication, and returns the answer.
    ///
    /// # Errors
    ///
    /// Also if the answer is an OAuth error.
    pub(crate) async fn post(&self, parameters: &[(&str, &str)]) -> Result<Answer, TokenError> {
        let authentication = self.client.authenticate(&AssertionContext {
            issuer: self.issuer,
            now: (self.environment.now)(),
            id: self.environment.random_name(),
        });
        let authenticated = authentication.ok_or(TokenError::Authentication)?;
        let given = authenticated.parameters.iter();
        let added = given.map(|(name, value)| (*name, value.as_str()));
        let sent: Vec<_> = parameters.iter().copied().chain(added).collect();
        let header = authenticated.header;
        let posting = self
            .http
            .post_form(self.url, form(sent.iter().copied()), header.clone());
        let answer = posting.await?;
        let refused = OAuthError::parse(&answer);
        if answer.status != StatusCode::OK || refused.is_ok() {
            let private = sent.iter().filter(|(name, _)| !PUBLIC.contains(name));
            let values = private.flat_map(|(_, value)| [(*value).to_owned(), encoded(value)]);
            let headers = header
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()));
            let credentials = headers.map(|value| value.trim_start_matches("Basic ").to_owned());
            let all = values.chain(credentials).chain(self.client.secret());
            let secrets: Vec<_> = all.collect();
            return Err(TokenError::Refused(refused?.without(&secrets)));
        }
        Ok(answer)
    }
}

/// `text` with `***` in place of what is part of a secret: of eight characters and more, or of the whole of a shorter one.
fn hide(text: &str, secrets: &[String]) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut is_hidden = vec![false; characters.len()];
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let length = secret.chars().count().min(SHORTEST_PART);
        for (start, part) in characters.windows(length).enumerate() {
            if secret.contains(&part.iter().collect::<String>()) {
                is_hidden[start..start + length].fill(true);
            }
        }
    }
    let mut shown = String::new();
    for (at, character) in characters.into_iter().enumerate() {
        if !is_hidden[at] {
            shown.push(character);
        } else if at == 0 || !is_hidden[at - 1] {
            shown.push_str("***");
        }
    }
    shown
}

impl TokenResponse {
    fn into_tokens(self, now: u64) -> Result<Tokens, TokenError> {
        let is_bearer = self.token_type.eq_ignore_ascii_case("bearer");
        if !is_bearer
            || self.access_token.expose().is_empty()
            || self.access_token.bearer().is_none()
        {
            return Err(TokenError::NotBearer);
        }
        let life = self.expires_in.and_then(|life| life.seconds());
        Ok(Tokens {
            access_token: self.access_token,
            refresh_token: self.refresh_token,
            issued_at: now,
            expires_at: life.map(|life| now.saturating_add(life)),
            scope: self.scope.map(|scope| match scope {
                Value::Array(names) => Scopes::from_names(names.iter().filter_map(Value::as_str)),
                scope => Scopes::parse(scope.as_str().unwrap_or_default()),
            }),
        })
    }
}

/// The codes of RFC 6749, 7591, 8628, 8693 and 8707 that a token endpoint may answer with.
const CODES: &[&str] = &[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "access_denied",
    "server_error",
    "temporarily_unavailable",
    "authorization_pending",
    "slow_down",
    "expired_token",
    "invalid_target",
];

/// The parameters of which nothing is secret.
const PUBLIC: &[&str] = &[
    "grant_type",
    "resource",
    "scope",
    "audience",
    "client_id",
    "redirect_uri",
    "subject_token_type",
    "requested_token_type",
    "requested_token_use",
    "client_assertion_type",
];

/// The fewest characters by which a part of a secret is recognized.
const SHORTEST_PART: usize = 8;

/// The most characters of a text of an authorization server.
const MAX_DESCRIPTION: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Tokens, TokenError> {
        let response: TokenResponse =
            serde_json::from_str(text).map_err(|_| HttpError::Malformed)?;
        response.into_tokens(1000)
    }

    #[test]
    fn a_token_is_due_at_four_fifths_of_its_life() {
        let text = r#"{"access_token":"a","token_type":"bearer","expires_in":100}"#;
        let tokens = tokens(text).unwrap();
        assert_eq!(tokens.expires_at, Some(1100));
        assert!(!tokens.is_due(1079) && tokens.is_due(1080));
        assert!(!tokens.is_expired(1099) && tokens.is_expired(1100));
    }

    #[test]
    fn the_life_of_a_token_may_be_text_and_may_be_missing() {
        let expires = |member: &str| {
            let text = format!(r#"{{"access_token":"a","token_type":"Bearer"{member}}}"#);
            tokens(&text).unwrap().expires_at
        };
        assert_eq!(expires(r#","expires_in":"60""#), Some(1060));
        assert_eq!(expires(r#","expires_in":60.5"#), Some(1060));
        assert_eq!(expires(r#","expires_in":-5"#), Some(1000));
        assert_eq!(expires(r#","expires_in":1e300"#), Some(u64::MAX));
        assert_eq!(expires(r#","expires_in":"soon""#), None);
        assert_eq!(expires(""), None);
    }

    #[test]
    fn what_is_not_a_bearer_token_is_refused() {
        for (text, error) in [
            (
                r#"{"access_token":"a","token_type":"mac"}"#,
                TokenError::NotBearer,
            ),
            (
                r#"{"access_token":"","token_type":"Bearer"}"#,
                TokenError::NotBearer,
            ),
            (
                r#"{"access_token":"a\nb","token_type":"Bearer"}"#,
                TokenError::NotBearer,
            ),
            (r#"{"access_token":"a"}"#, HttpError::Malformed.into()),
            ("[]", HttpError::Malformed.into()),
        ] {
            assert_eq!(tokens(text).err(), Some(error), "{text}");
        }
    }

    #[test]
    fn texts_of_a_server_are_bounded_and_visible() {
        let error = OAuthError::new("bad\u{1b}[31m", Some(&"x".repeat(1000)));
        assert_eq!(error.code, "bad[31m");
        assert_eq!(error.description.unwrap().len(), MAX_DESCRIPTION);
    }
}
