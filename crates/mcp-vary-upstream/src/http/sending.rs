//! One HTTP request to a server until the head of its response, with the credentials that sources give.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use hyper_util::client::legacy::Error as TransportError;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::tasks::spawn;
use mcp_vary_http_client::body::Incoming;
use mcp_vary_http_client::credential_source::{Credential, CredentialError, Refusal, Retry};

use super::collect::drain;
use super::delivery::Delivery;
use super::outgoing_request::OutgoingRequest;
use super::pool::Pool;
use crate::secrets::SentValues;

/// A request on its way.
pub(super) enum Sending {
    /// Without credentials of sources, because there are none. If the server wants some, the authorizer of an endpoint with
    /// sources goes on.
    Direct(Delivery, Option<Arc<Authorizer>>),
    /// The lock makes it `Sync`; it is never locked.
    Authorized(Mutex<BoxFuture<'static, Result<Response<Incoming>, SendError>>>),
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// It was not sent.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The server refused its credentials with this status.
    #[error("{1}")]
    Refused(StatusCode, CredentialError),
}

impl Future for Sending {
    type Output = Result<Response<Incoming>, SendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this {
                Self::Direct(delivery, authorizer) => {
                    let response = ready!(Pin::new(&mut *delivery).poll(context))?;
                    let is_refused = !response.status().is_success();
                    let Some(authorizer) = authorizer.take().filter(|_| is_refused) else {
                        return Poll::Ready(Ok(response));
                    };
                    let going_on = authorizer.answered(response, delivery.request(), None);
                    *this = Self::authorized(going_on);
                }
                Self::Authorized(response) => {
                    let sending = response.get_mut().unwrap_or_else(PoisonError::into_inner);
                    return sending.as_mut().poll(context);
                }
            }
        }
    }
}

impl Sending {
    fn authorized(
        sending: impl Future<Output = Result<Response<Incoming>, SendError>> + Send + 'static,
    ) -> Self {
        Self::Authorized(Mutex::new(Box::pin(sending)))
    }
}

/// Sends requests of one endpoint with credentials.
pub(super) struct Authorizer {
    pub(super) credentials: Vec<Credential>,
    /// The values that were sent, since the server may repeat them.
    pub(super) sent: Arc<SentValues>,
    pub(super) pool: Arc<Pool>,
}

impl Authorizer {
    pub(super) fn send(
        self: &Arc<Self>,
        request: OutgoingRequest,
        caller: Option<CallerToken>,
    ) -> Sending {
        let mut sources = self.credentials.iter();
        if caller.is_some() || !sources.all(|credential| credential.source.is_absent()) {
            return Sending::authorized(Arc::clone(self).run(request, caller));
        }
        let headers = self.credentials.iter();
        let request = OutgoingRequest {
            credentials: headers
                .map(|credential| (credential.header.clone(), None))
                .collect(),
            ..request
        };
        Sending::Direct(Delivery::send(&self.pool, request), Some(Arc::clone(self)))
    }

    /// Sends the request with credentials.
    async fn run(
        self: Arc<Self>,
        mut outgoing: OutgoingRequest,
        caller: Option<CallerToken>,
    ) -> Result<Response<Incoming>, SendError> {
        outgoing.credentials = self.authorize(caller.as_ref()).await?;
        let mut delivery = Delivery::send(&self.pool, outgoing);
        let response = (&mut delivery).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        self.answered(response, delivery.request(), caller).await
    }

    /// Sends a request once more if the server refuses its credentials in this `response`, and a source has others.
    async fn answered(
        self: Arc<Self>,
        response: Response<Incoming>,
        mut outgoing: OutgoingRequest,
        caller: Option<CallerToken>,
    ) -> Result<Response<Incoming>, SendError> {
        let status = response.status();
        let headers = response.headers().get_all(WWW_AUTHENTICATE);
        let challenges: Vec<HeaderValue> = headers.iter().cloned().collect();
        if !refuses_credentials(status, &challenges) {
            return Ok(response);
        }
        let mut is_repeated = false;
        for (credential, (_, sent)) in self.credentials.iter().zip(&outgoing.credentials) {
            let refusal = Refusal {
                sent: sent.as_ref(),
                status,
                challenges: &challenges,
                caller: caller.as_ref(),
            };
            let refused = credential.source.refused(refusal).await;
            let retry = refused.map_err(|error| SendError::Refused(status, error))?;
            is_repeated |= retry == Retry::Once;
        }
        if !is_repeated {
            return Ok(response);
        }
        spawn(drain(response.into_body()));
        outgoing.credentials = self.authorize(caller.as_ref()).await?;
        Ok(Delivery::send(&self.pool, outgoing).await?)
    }

    /// The headers of the sources.
    async fn authorize(
        &self,
        caller: Option<&CallerToken>,
    ) -> Result<Vec<(HeaderName, Option<HeaderValue>)>, CredentialError> {
        let mut values = Vec::with_capacity(self.credentials.len());
        for Credential { header, source } in &self.credentials {
            let mut value = match caller {
                Some(caller) => source.authorization_for(caller).await?,
                None if source.is_absent() => None,
                None => source.authorization().await?,
            };
            if let Some(value) = &mut value {
                value.set_sensitive(true);
                self.sent.record(value);
            }
            values.push((header.clone(), value));
        }
        Ok(values)
    }
}

/// Whether a server refuses the credentials of a request, so that others may help.
///
/// Source: RFC 6750, section 3.1; MCP 2025-11-25, basic/authorization, "Scope Challenge Handling".
fn refuses_credentials(status: StatusCode, challenges: &[HeaderValue]) -> bool {
    let names_scope = |challenge: &HeaderValue| {
        let challenge = String::from_utf8_lossy(challenge.as_bytes());
        challenge
            .to_ascii_lowercase()
            .contains("insufficient_scope")
    };
    match status {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => challenges.iter().any(names_scope),
        _ => false,
    }
}
