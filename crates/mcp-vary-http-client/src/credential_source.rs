//! Credentials that are not in the configuration: tokens that are fetched, refreshed or exchanged while the gateway runs.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http::{HeaderName, HeaderValue, StatusCode};
use mcp_vary_base::caller_token::CallerToken;
use serde::{Deserialize, Serialize};

/// Gives the value of a header with credentials for each HTTP request to a server.
///
/// # Properties
///
/// - It is asked for every request, so it caches what it fetches, and fetches once for all who wait (single flight).
/// - A future of it can be dropped at any time; the next one must not depend on its end.
/// - The time that it takes counts as time of the request. It has a limit of its own.
/// - Errors contain no secret. `Debug` writes only the name of the trait.
///
/// # Examples
///
/// ```
/// use futures_util::future::BoxFuture;
/// use http::HeaderValue;
/// use mcp_vary_http_client::credential_source::{CredentialError, CredentialSource, Refusal, Retry};
///
/// #[derive(Debug)]
/// struct Anonymous;
///
/// impl CredentialSource for Anonymous {
///     fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
///         Box::pin(async { Ok(None) })
///     }
///
///     fn refused<'a>(&'a self, _: Refusal<'a>) -> BoxFuture<'a, Result<Retry, CredentialError>> {
///         Box::pin(async { Err(CredentialError::new("log in with `vary login notes`")) })
///     }
///
///     fn identity(&self) -> &str {
///         "anonymous"
///     }
/// }
/// ```
pub trait CredentialSource: Send + Sync {
    /// The value for the next request; `None` to send it without.
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>>;

    /// Whether it certainly has no value at the moment. Then [`authorization`](Self::authorization) is not asked.
    fn is_absent(&self) -> bool {
        false
    }

    /// The value for a request of the client with this token. By default the token is not used.
    fn authorization_for<'a>(
        &'a self,
        caller: &'a CallerToken,
    ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>> {
        let _ = caller;
        self.authorization()
    }

    /// Takes the latest token of the only client of the connection, for requests that belong to no request of a client.
    /// Returns whether it is another one than before. By default it is not used.
    fn present(&self, caller: &CallerToken) -> bool {
        let _ = caller;
        false
    }

    /// Handles a refusal, once for each request. After [`Retry::Once`] the request is repeated with the value that
    /// [`authorization`](Self::authorization) gives then. An error replaces the server's answer.
    fn refused<'a>(&'a self, refusal: Refusal<'a>)
    -> BoxFuture<'a, Result<Retry, CredentialError>>;

    /// What the operator may know of the credentials, as they are now; `None` if there is nothing to know.
    fn status(&self) -> Option<CredentialStatus> {
        None
    }

    /// Ends when other credentials are available than those that the last value was made from. A server that is down is
    /// tried again then. By default it never ends.
    fn renewed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// What the source is made from. A reload of the configuration retains the connections of a server whose sources
    /// have the same identities as before.
    fn identity(&self) -> &str;
}

mcp_vary_base::debug_by_name!(dyn CredentialSource);

/// Gives each client of a server credentials of its own.
///
/// # Properties
///
/// The clients of a connection with such credentials are one principal. `Debug` writes only the name of the trait.
pub trait ClientCredentials: Send + Sync {
    /// The source of the values of `Authorization` for the connections of the client with this token.
    fn for_client(&self, caller: &CallerToken) -> Arc<dyn CredentialSource>;

    /// The source for the connection that reads the lists of all clients. By default there is none, and each client has
    /// the lists of its own connections.
    fn for_lists(&self) -> Option<Arc<dyn CredentialSource>> {
        None
    }

    /// As [`CredentialSource::identity`].
    fn identity(&self) -> &str;
}

mcp_vary_base::debug_by_name!(dyn ClientCredentials);

/// The credentials of a server, as the operator sees them. It says neither who logged in nor where.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct CredentialStatus {
    /// When the value ends, in seconds since 1970-01-01 UTC, if that is known.
    #[serde(rename = "expires", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Whether it is renewed without a person.
    #[serde(rename = "refreshed")]
    pub is_refreshed: bool,
    /// Whether it has ended, and somebody has to log in.
    #[serde(rename = "ended")]
    pub has_ended: bool,
}

/// The answer of a server that refuses the credentials of a request: 401, or 403 with `insufficient_scope`.
#[derive(Clone, Copy)]
pub struct Refusal<'a> {
    /// The value that was refused. Another request may have replaced it in the meantime.
    pub sent: Option<&'a HeaderValue>,
    /// The status.
    pub status: StatusCode,
    /// The values of `WWW-Authenticate`.
    pub challenges: &'a [HeaderValue],
    /// The token of the client whose request was refused, if it has one.
    pub caller: Option<&'a CallerToken>,
}

// Without the value.
mcp_vary_base::debug_by_name!(Refusal<'_>);

/// Whether a refused request is sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// Once more, with another value.
    Once,
    /// No: the refusal is the result.
    Never,
}

/// Why there is no value for a header. It contains no secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CredentialError {
    message: Arc<str>,
    details: Arc<str>,
}

impl CredentialError {
    /// An error with this text for clients and the operator: what is missing, and what to do.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self {
            message: message.into(),
            details: Arc::default(),
        }
    }

    /// The same error with more text, for the operator alone.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Arc<str>>) -> Self {
        self.details = details.into();
        self
    }

    /// The text for the operator.
    pub fn details(&self) -> String {
        match &*self.details {
            "" => self.message.to_string(),
            details => format!("{}: {details}", self.message),
        }
    }
}

/// A header of a server with the source of its values.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The header, `Authorization` for example.
    pub header: HeaderName,
    /// Where its values come from.
    pub source: Arc<dyn CredentialSource>,
}

/// The status of the first credentials that have one.
pub fn status(credentials: &[Credential]) -> Option<CredentialStatus> {
    let mut sources = credentials.iter();
    sources.find_map(|credential| credential.source.status())
}

/// Ends when a source has other credentials.
pub async fn renewed(credentials: &[Credential]) {
    let sources = credentials.iter();
    let renewed = sources.map(|credential| credential.source.renewed());
    let mut pending: FuturesUnordered<_> = renewed.collect();
    if pending.next().await.is_none() {
        std::future::pending().await
    }
}

impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header && self.source.identity() == other.source.identity()
    }
}

impl Eq for Credential {}
