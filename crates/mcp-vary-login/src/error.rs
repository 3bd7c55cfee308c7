//! Why there is no authorization.

use crate::address::AddressError;
use crate::discovery::DiscoveryError;
use crate::http_client::HttpError;
use crate::redirect::RedirectError;
use crate::registration::RegistrationError;
use crate::store::StoreError;
use crate::token::TokenError;

/// Why there is no authorization for a server: one sentence for the operator, without anything secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// Nobody is logged in, or the login has ended.
    #[error("log in with `vary login {server}`{}", reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default())]
    LoginNeeded {
        /// The arguments of `vary login` for the server.
        server: String,
        /// Why the last login cannot be used, if there was one.
        reason: Option<String>,
    },
    /// The server refuses a token that was issued for it a moment ago.
    #[error("the server refuses a token that its authorization server has just issued")]
    Rejected,
    /// The authorization server returned the token that it was to exchange, or one that no header can have.
    #[error("the authorization server did not exchange the token")]
    NotExchanged,
    /// The authorization server is not known.
    #[error("{0}")]
    Discovery(#[from] DiscoveryError),
    /// There is no client.
    #[error("{0}")]
    Registration(#[from] RegistrationError),
    /// There is no token.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The answer of the browser cannot be used.
    #[error("{0}")]
    Redirect(#[from] RedirectError),
    /// The tokens cannot be read or stored.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A request failed.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// An endpoint of the authorization server cannot be used.
    #[error("`{name}` of the authorization server cannot be used: {error}")]
    Endpoint {
        /// Its name in the metadata.
        name: &'static str,
        /// Why not.
        error: AddressError,
    },
    /// The authorization server does not support what is needed.
    #[error("its authorization server does not support {0}")]
    Unsupported(&'static str),
    /// The configured client was registered at another authorization server.
    #[error(
        "the server names another authorization server than at the last login, and `client-id` was registered at that one; \
         run `vary logout` and log in again if that is right"
    )]
    ServerChanged,
    /// There is a client secret, and the operator did not name the authorization server that may get it.
    #[error(
        "`client-secret` goes only to an authorization server that you name; the server names `{issuer}` now: if that is right, \
         add `issuer: {issuer}` (`--issuer` of `vary login`)"
    )]
    IssuerNeeded {
        /// What the server names.
        issuer: String,
    },
    /// The host that exchanges the code is not the one at which the person would authorize.
    #[error(
        "you would authorize at `{authorization}`, and `{token}` would get the token for that; if both belong to one service, confirm \
         it at a terminal, or add `issuer: {issuer}` (`--issuer` of `vary login`)"
    )]
    OtherHost {
        /// Where the person would authorize.
        authorization: String,
        /// Where the token is.
        token: String,
        /// Who names both.
        issuer: String,
    },
    /// The person did not answer in time.
    #[error("nobody authorized the login in time")]
    Timeout,
    /// The person could not be asked.
    #[error("{0}")]
    UserAgent(String),
}

impl CredentialError {
    /// The text for clients: of what the authorization server said, no more than a code.
    pub(crate) fn for_clients(&self) -> String {
        match self {
            Self::Token(error) => error.for_clients(),
            error => error.to_string(),
        }
    }
}
