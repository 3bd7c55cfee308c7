//! What a client gets that may not pass: status, `WWW-Authenticate` and body.
//!
//! RFC 6750, section 3, and RFC 9728, section 5.1.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use mcp_vary_json::{Members, string};

use crate::address::{EndpointPath, PublicUrl};
use crate::credential::CredentialError;
use crate::scope::{self, Scope};
use crate::token::InvalidToken;

/// Why a request is not served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// It presents no credential.
    NoCredential,
    /// The head of the request is malformed.
    BadRequest(CredentialError),
    /// Its token or key is not accepted.
    InvalidToken(InvalidToken),
    /// Its token lacks some of these scopes, which are all that the operation needs.
    InsufficientScope(Vec<Scope>),
    /// Its token cannot be verified now, since the keys of the issuer could not be fetched.
    KeysUnavailable,
    /// Its address has sent too many bad credentials; the next is looked at after this time.
    TooManyFailures(Duration),
}

/// Writes the answers to refused requests.
///
/// # Properties
///
/// An answer depends on the [`Refusal`] and on the text of the address only: that of a variant that does not exist, or
/// is hidden, differs by its name from that of any other. Texts are fixed; nothing of a credential is in them.
#[derive(Clone, Debug)]
pub struct Challenges {
    /// Absent if no issuer is configured: then there is no metadata.
    public: Option<PublicUrl>,
    /// What a client needs for any request.
    scopes: Vec<Scope>,
}

/// An answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Challenge {
    /// The status.
    pub status: StatusCode,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<HeaderValue>,
    /// The header `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The body, in JSON.
    pub body: String,
}

/// The fixed parts of an answer.
struct Texts {
    status: StatusCode,
    /// `error` of the challenge. RFC 6750, section 3.1: none if the request has no credential.
    error: Option<&'static str>,
    /// `error` of the body.
    body_error: &'static str,
    description: &'static str,
}

impl Challenges {
    /// The answers of a server whose clients can get tokens: they lead to the metadata at `public` and ask for
    /// `scopes`.
    pub const fn new(public: PublicUrl, scopes: Vec<Scope>) -> Self {
        Self {
            public: Some(public),
            scopes,
        }
    }

    /// The answers of a server that has API keys only.
    pub const fn without_metadata() -> Self {
        Self {
            public: None,
            scopes: Vec::new(),
        }
    }

    /// The answer to a request for `target`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_auth::address::{EndpointPath, PublicUrl};
    /// use mcp_vary_auth::challenge::{Challenges, Refusal};
    ///
    /// let challenges = Challenges::new(PublicUrl::parse("https://mcp.example")?, Vec::new());
    /// let challenge = challenges.answer(&Refusal::NoCredential, &EndpointPath::Base);
    /// assert_eq!(challenge.status, 401);
    /// let header = challenge.www_authenticate.unwrap();
    /// let metadata = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    /// assert_eq!(header, format!(r#"Bearer resource_metadata="{metadata}""#));
    ///
    /// // While keys are missing it is not 401, at which clients throw their tokens away.
    /// assert_eq!(challenges.answer(&Refusal::KeysUnavailable, &EndpointPath::Base).status, 503);
    /// # Ok::<(), mcp_vary_auth::address::PublicUrlError>(())
    /// ```
    pub fn answer(&self, refusal: &Refusal, target: &EndpointPath) -> Challenge {
        let texts = refusal.texts();
        let scopes = match refusal {
            Refusal::InsufficientScope(scopes) => scopes,
            _ => &self.scopes,
        };
        let is_challenge =
            texts.status.is_client_error() && texts.status != StatusCode::TOO_MANY_REQUESTS;
        let header = is_challenge.then(|| self.header(&texts, scopes, target));
        let body = Members::from_iter([
            ("error", string(texts.body_error)),
            ("error_description", string(texts.description)),
        ]);
        Challenge {
            status: texts.status,
            // Every part is visible ASCII: see `PublicUrl`, `Target` and `Scope`.
            www_authenticate: header.and_then(|header| HeaderValue::try_from(header).ok()),
            retry_after: refusal.retry_after(),
            body: body.to_json(),
        }
    }

    fn header(&self, texts: &Texts, scopes: &[Scope], target: &EndpointPath) -> String {
        let mut parameters = Vec::with_capacity(4);
        if let Some(error) = texts.error {
            parameters.push(format!(r#"error="{error}""#));
            parameters.push(format!(r#"error_description="{}""#, texts.description));
        }
        if let Some(public) = &self.public {
            parameters.push(format!(
                r#"resource_metadata="{}""#,
                public.metadata_url(target)
            ));
        }
        if !scopes.is_empty() && texts.status != StatusCode::BAD_REQUEST {
            parameters.push(format!(r#"scope="{}""#, scope::join(scopes)));
        }
        if parameters.is_empty() {
            "Bearer".to_owned()
        } else {
            format!("Bearer {}", parameters.join(", "))
        }
    }
}

impl Refusal {
    /// Why the request may not pass: a fixed text, which has nothing of the credential.
    pub fn description(&self) -> &'static str {
        self.texts().description
    }

    fn texts(&self) -> Texts {
        let (status, error, body_error, description) = match self {
            Self::NoCredential => (
                StatusCode::UNAUTHORIZED,
                None,
                "unauthorized",
                "this server needs a bearer token",
            ),
            Self::BadRequest(error) => (
                StatusCode::BAD_REQUEST,
                Some("invalid_request"),
                "invalid_request",
                error.description(),
            ),
            Self::InvalidToken(reason) => (
                StatusCode::UNAUTHORIZED,
                Some("invalid_token"),
                "invalid_token",
                reason.description(),
            ),
            Self::InsufficientScope(_) => (
                StatusCode::FORBIDDEN,
                Some("insufficient_scope"),
                "insufficient_scope",
                "the token lacks a scope that this operation needs",
            ),
            Self::KeysUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                None,
                "temporarily_unavailable",
                "tokens cannot be verified at the moment; try again later",
            ),
            Self::TooManyFailures(_) => (
                StatusCode::TOO_MANY_REQUESTS,
                None,
                "too_many_requests",
                "too many bad credentials came from this address; try again later",
            ),
        };
        Texts {
            status,
            error,
            body_error,
            description,
        }
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::KeysUnavailable => Some(KEYS_RETRY_AFTER),
            Self::TooManyFailures(pause) => Some(pause.as_secs().max(1)),
            _ => None,
        }
    }
}

/// The pause after which keys are fetched again, in seconds.
const KEYS_RETRY_AFTER: u64 = crate::refresh::RETRY_PAUSE;

#[cfg(test)]
mod tests {
    use super::*;

    fn challenges() -> Challenges {
        let scopes = ["mcp:read", "mcp:call"].map(|scope| Scope::parse(scope).unwrap());
        let url = PublicUrl::parse("https://mcp.example").unwrap();
        Challenges::new(url, scopes.into())
    }

    fn written(challenge: &Challenge) -> String {
        let header = challenge.www_authenticate.as_ref();
        let header = header.map_or("-", |header| header.to_str().unwrap());
        let pause = challenge.retry_after;
        let pause = pause.map_or_else(String::new, |pause| format!(" after {pause}"));
        let (status, body) = (challenge.status.as_u16(), &challenge.body);
        format!("{status}{pause} | {header} | {body}")
    }

    #[track_caller]
    fn answers(refusal: &Refusal, expected: &str) {
        let found = written(&challenges().answer(refusal, &EndpointPath::Base));
        assert_eq!(found, expected);
    }

    const METADATA: &str =
        "resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\"";

    #[test]
    fn a_request_without_a_credential_learns_where_to_get_one() {
        answers(
            &Refusal::NoCredential,
            &format!(
                "401 | Bearer {METADATA}, scope=\"mcp:read mcp:call\" | \
                {{\"error\":\"unauthorized\",\"error_description\":\"this server needs a bearer token\"}}"
            ),
        );
    }

    #[test]
    fn a_missing_scope_is_403_with_the_scopes_of_the_operation() {
        let text = "the token lacks a scope that this operation needs";
        answers(
            &Refusal::InsufficientScope(vec![Scope::parse("repo:write").unwrap()]),
            &format!(
                "403 | Bearer error=\"insufficient_scope\", error_description=\"{text}\", {METADATA}, \
                scope=\"repo:write\" | {{\"error\":\"insufficient_scope\",\"error_description\":\"{text}\"}}"
            ),
        );
    }

    #[test]
    fn what_may_pass_later_says_when_and_is_no_challenge() {
        answers(
            &Refusal::KeysUnavailable,
            "503 after 10 | - | {\"error\":\"temporarily_unavailable\",\"error_description\":\"tokens cannot be verified at the moment; \
             try again later\"}",
        );
        answers(
            &Refusal::TooManyFailures(Duration::from_millis(300)),
            "429 after 1 | - | {\"error\":\"too_many_requests\",\"error_description\":\"too many bad credentials came from this \
             address; try again later\"}",
        );
    }

    #[test]
    fn names_of_variants_differ_by_their_name_only() {
        let of = |name: &str| {
            let target = EndpointPath::parse(&format!("/mcp/v/{name}")).unwrap();
            written(&challenges().answer(&Refusal::NoCredential, &target))
        };
        let expected = of("unknown").replace("unknown", "x");
        assert_eq!(of("hidden").replace("hidden", "x"), expected);
        assert!(of("a'b%22").contains("/mcp/v/a'b%22\", scope"));
    }

    #[test]
    fn a_server_of_api_keys_has_no_metadata() {
        let challenge =
            Challenges::without_metadata().answer(&Refusal::NoCredential, &EndpointPath::Base);
        assert_eq!(challenge.www_authenticate.unwrap(), "Bearer");
    }
}
