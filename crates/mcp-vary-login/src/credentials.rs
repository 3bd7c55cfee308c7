//! The current authorization of one server.

use http::{HeaderValue, StatusCode};
pub use mcp_vary_http_client::credential_source::Retry;

use crate::error::CredentialError;
use crate::login::LoginCredentials;
use crate::refusal::Refusal;
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

    /// Whether nobody is logged in, by what was read a moment ago.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Login(login) if login.is_absent())
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
            (_, None) => Ok(Retry::Never),
            (Self::Login(login), Some(refusal)) => login.refused(refusal).await,
            (Self::Service(service), Some(refusal)) => service.refused(refusal).await,
        }
    }
}
