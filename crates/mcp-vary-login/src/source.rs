//! Credentials as the source of a header for the requests to a server.

use futures_util::future::BoxFuture;
use http::HeaderValue;
use mcp_vary_http_client::credential_source::{
    CredentialError, CredentialSource, CredentialStatus, Refusal, Retry,
};

use crate::challenge::Challenge;
use crate::credentials::Credentials;
use crate::error;

/// The values of `Authorization` for one server.
#[derive(Debug)]
pub struct AuthorizationSource {
    credentials: Credentials,
    identity: String,
    /// Whether the server may need none of these credentials.
    is_implied: bool,
}

impl AuthorizationSource {
    /// The credentials that are configured for a server. Sources with the same `identity` are the same.
    #[must_use]
    pub const fn configured(credentials: Credentials, identity: String) -> Self {
        Self {
            credentials,
            identity,
            is_implied: false,
        }
    }

    /// The credentials of a server without a configuration of them. If it refuses a request without saying what it wants,
    /// its answer is the result.
    #[must_use]
    pub const fn implied(credentials: Credentials, identity: String) -> Self {
        Self {
            credentials,
            identity,
            is_implied: true,
        }
    }
}

impl CredentialSource for AuthorizationSource {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
        Box::pin(async {
            let value = self.credentials.authorization().await;
            value.map_err(|error| shown(&error))
        })
    }

    fn is_absent(&self) -> bool {
        self.credentials.is_absent()
    }

    fn refused<'a>(
        &'a self,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Retry, CredentialError>> {
        Box::pin(async move {
            let Refusal {
                sent,
                status,
                challenges,
                ..
            } = refusal;
            if self.is_implied && sent.is_none() && challenges.is_empty() {
                return Ok(Retry::Never);
            }
            match self.credentials.refused(sent, status, challenges).await {
                Ok(retry) => Ok(retry),
                // A server that nothing is configured for may have tokens of another kind.
                Err(error @ error::CredentialError::LoginNeeded { reason: None, .. })
                    if self.is_implied =>
                {
                    let advice = match Challenge::parse(challenges).resource_metadata {
                        Some(_) => format!("{error}, {TOKEN_ADVICE}"),
                        None => format!("{KEY_ADVICE}, or {error}"),
                    };
                    Err(CredentialError::new(advice))
                }
                Err(error) => Err(shown(&error)),
            }
        })
    }

    fn status(&self) -> Option<CredentialStatus> {
        match &self.credentials {
            Credentials::Login(login) => login.latest().map(|login| login.status),
            Credentials::Service(service) => service.status(),
        }
    }

    fn renewed(&self) -> BoxFuture<'_, ()> {
        match &self.credentials {
            Credentials::Login(login) => Box::pin(login.renewed()),
            Credentials::Service(_) => Box::pin(std::future::pending()),
        }
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}

/// The words of the authorization server are for the operator alone.
fn shown(error: &error::CredentialError) -> CredentialError {
    let message = error.for_clients();
    let details = error.to_string();
    let is_whole = message == details;
    let shown = CredentialError::new(message);
    if is_whole {
        shown
    } else {
        shown.with_details(details)
    }
}

/// What to do about a server that names no metadata for a login.
const KEY_ADVICE: &str = "it wants a token: add --header 'Authorization: Bearer KEY'";
/// What to do about a server that has its own tokens.
const TOKEN_ADVICE: &str =
    "or write a token of the server into `headers` (for a URL on the command line, `--header`)";
