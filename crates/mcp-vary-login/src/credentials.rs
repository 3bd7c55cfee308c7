//! The current authorization of one server.

use http::{HeaderValue, StatusCode};

use crate::address::Address;
use crate::challenge::Challenge;
use crate::discovery::{
    DiscoveryError, ProtectedResource, ServerMetadata, protected_resource, server_metadata,
};
use crate::error::CredentialError;
use crate::http_client::HttpClient;
use crate::login::LoginCredentials;
use crate::service::ServiceCredentials;

/// Gives the authorization of one server to those who send requests to it, and takes the server's refusals.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credentials {
    /// Those of a person who logged in.
    Login(LoginCredentials),
    /// Those of a service.
    Service(ServiceCredentials),
}

/// Whether a refused request should be sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Retry {
    /// There is another authorization now.
    Worthwhile,
    /// Another authorization would be refused, too.
    Pointless,
}

impl Credentials {
    /// The value of `Authorization` for the next request; `None` if nobody is logged in.
    ///
    /// A token that ends soon is refreshed first: once for all callers and for all processes.
    ///
    /// # Errors
    ///
    /// If a token is needed and there is none.
    pub async fn authorization(&self) -> Result<Option<HeaderValue>, CredentialError> {
        match self {
            Self::Login(login) => login.authorization().await,
            Self::Service(service) => service.authorization().await.map(Some),
        }
    }

    /// Takes a refusal: the server answered a request with the authorization `sent` with 401, or with 403 and a challenge
    /// `insufficient_scope`.
    ///
    /// # Errors
    ///
    /// If an operator has to do something; the error says what.
    pub async fn refused(
        &self,
        sent: Option<&HeaderValue>,
        status: StatusCode,
        challenges: &[HeaderValue],
    ) -> Result<Retry, CredentialError> {
        let refusal = Refusal::new(sent, status, challenges);
        match (self, refusal) {
            (_, None) => Ok(Retry::Pointless),
            (Self::Login(login), Some(refusal)) => login.refused(refusal).await,
            (Self::Service(service), Some(refusal)) => service.refused(refusal).await,
        }
    }
}

/// A refusal that another authorization may avoid.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) sent: Option<HeaderValue>,
    pub(crate) challenge: Challenge,
    pub(crate) kind: RefusalKind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RefusalKind {
    /// 401.
    Unauthorized,
    /// 403 with `insufficient_scope`.
    InsufficientScope,
}

impl Refusal {
    fn new(
        sent: Option<&HeaderValue>,
        status: StatusCode,
        challenges: &[HeaderValue],
    ) -> Option<Self> {
        let challenge = Challenge::parse(challenges);
        let kind = match status {
            StatusCode::UNAUTHORIZED => RefusalKind::Unauthorized,
            StatusCode::FORBIDDEN if challenge.is_insufficient_scope() => {
                RefusalKind::InsufficientScope
            }
            _ => return None,
        };
        Some(Self {
            sent: sent.cloned(),
            challenge,
            kind,
        })
    }
}

/// The authorization server of a server.
#[derive(Debug)]
pub(crate) struct Discovered {
    pub(crate) resource: ProtectedResource,
    pub(crate) metadata: ServerMetadata,
}

/// Finds the authorization server of `server`: the `configured` issuer, else the `last` one, else the first that the
/// server names.
pub(crate) async fn discover(
    http: &HttpClient,
    server: &Address,
    challenge: &Challenge,
    configured: Option<&str>,
    last: Option<&str>,
) -> Result<Discovered, DiscoveryError> {
    let resource = protected_resource(http, server, challenge).await?;
    let issuer = resource.select_issuer(configured, last)?;
    let metadata = server_metadata(http, issuer).await?;
    Ok(Discovered { resource, metadata })
}
