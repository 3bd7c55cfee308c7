//! Who sends an HTTP request: the credential in its head, the answer to a bad one, and the metadata that lead to a good
//! one.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    AUTHORIZATION, CACHE_CONTROL, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_vary_access::PrincipalId;
use mcp_vary_auth::address::EndpointPath;
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_auth::challenge::Challenge;
use mcp_vary_rates::{Caller, Counted, LimitExceeded};
use tracing::debug;

use super::peer;
use super::peer::ClientAddress;
use super::responses::{Body, NeededScopes, empty, not_allowed, typed_response};
use super::stopping::Stopping;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::authentication::{AdmissionLifetime, AuthenticationService};
use mcp_vary_settings::rates::{ActiveLimits, RateLimits};

/// An authenticated request.
pub(super) struct Authenticated {
    pub(super) admission: Admission,
    by: Arc<AuthenticationService>,
}

/// Decides who sends the request; `None` where clients are not authenticated.
///
/// # Errors
///
/// The response to a request that may not pass. It is the same for addresses of variants that exist and that do not.
pub(super) async fn authenticate(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    path: &EndpointPath,
) -> Result<Option<Authenticated>, Response<Body>> {
    let Some(service) = &snapshot.authentication else {
        return Ok(None);
    };
    let failures = FailureLimit::of(&snapshot.config.rates, head);
    let blocked = |limit: LimitExceeded<'_>| {
        let limit_name = limit.limit();
        debug!(limit = limit_name, "credential refused by a rate limit");
        count(snapshot, None, "limited");
        refused(service.too_many_failures(limit.retry_after(), path))
    };
    if let Some(failures) = &failures
        && let Some(limit) = failures.blocked(snapshot).await
    {
        return Err(blocked(limit));
    }
    let config = snapshot.config.digest.as_ref();
    let challenge = match service.authenticate(head, path).await {
        Ok(admission) => {
            count(snapshot, admission.principal.issuer(), "ok");
            if let Some(audit) = &snapshot.services.observers.audit {
                let origin = peer::origin(snapshot, head, Some(&admission));
                audit.credential_accepted(&admission, &origin, config);
            }
            return Ok(Some(Authenticated {
                admission,
                by: Arc::clone(service),
            }));
        }
        Err(refusal) => {
            count(snapshot, None, refusal.outcome());
            if let Some(audit) = &snapshot.services.observers.audit {
                let origin = peer::origin(snapshot, head, None);
                let status = refusal.challenge.status;
                audit.credential_refused(status, &refusal.reason(), &origin, config);
            }
            refusal.challenge
        }
    };
    match (failures, challenge.status) {
        (Some(failures), StatusCode::UNAUTHORIZED) => match failures.count(snapshot).await {
            Ok(()) => Err(refused(challenge)),
            // Others from this address failed meanwhile.
            Err(limit) => Err(blocked(limit)),
        },
        _ => Err(refused(challenge)),
    }
}

/// Counts what became of a credential: in metrics, and for the status if it was refused.
fn count(snapshot: &ConfigSnapshot, issuer: Option<&str>, outcome: &str) {
    let services = &snapshot.services;
    if let Some(metrics) = &services.observers.metrics {
        metrics.count_credential(outcome, issuer);
    }
    // Most clients learn from the answer to a request without a credential where to log in.
    if !matches!(outcome, "ok" | "missing") {
        let now = (snapshot.config.environment.now)();
        services.refused_credentials.add(now);
    }
}

/// The limits of wrong credentials, for the sender of one request that presents a credential.
///
/// A request without a credential is how a client finds out where to get one, and is not counted.
struct FailureLimit<'a> {
    limits: &'a ActiveLimits,
    sender: Caller<'static, PrincipalId>,
}

impl<'a> FailureLimit<'a> {
    fn of(rates: &'a RateLimits, head: &Parts) -> Option<Self> {
        let limits = rates.counting(Counted::AuthFailures)?;
        let sender = Caller {
            principal: None,
            key: None,
            address: ClientAddress::of(head),
        };
        let has_credential = head.headers.contains_key(AUTHORIZATION);
        has_credential.then_some(Self { limits, sender })
    }

    async fn blocked(&self, snapshot: &ConfigSnapshot) -> Option<LimitExceeded<'a>> {
        let store = snapshot.services.store.as_deref();
        self.limits.blocked_sender(store, &self.sender).await
    }

    async fn count(&self, snapshot: &ConfigSnapshot) -> Result<(), LimitExceeded<'a>> {
        let store = snapshot.services.store.as_deref();
        Box::pin(self.limits.count_failure(store, &self.sender)).await
    }
}

impl Authenticated {
    /// What a stream that the request opens needs to end with the credential.
    pub(super) fn lifetime(&self, snapshot: &ConfigSnapshot) -> AdmissionLifetime {
        let current = Arc::clone(&snapshot.services.authentication);
        AdmissionLifetime::new(self.admission.clone(), Arc::clone(&self.by), current)
    }
}

/// Adds the challenge to the response to a call that needs more scopes (RFC 6750, section 3.1).
pub(super) fn challenge(
    service: Option<&Arc<AuthenticationService>>,
    path: &EndpointPath,
    mut response: Response<Body>,
) -> Response<Body> {
    let needed = response.extensions_mut().remove::<NeededScopes>();
    let (Some(NeededScopes(scopes)), Some(service)) = (needed, service) else {
        return response;
    };
    if let Some(header) = service.scope_challenge(&scopes, path) {
        response.headers_mut().insert(WWW_AUTHENTICATE, header);
    }
    response
}

/// Ready when a stream must end: the listener stops, or the credential that opened it has ended.
pub(super) async fn stream_end(stopping: Stopping, lifetime: Option<AdmissionLifetime>) {
    match lifetime {
        Some(lifetime) => tokio::select! {
            () = stopping.stream_ends() => {}
            _ = lifetime.ended() => {}
        },
        None => stopping.stream_ends().await,
    }
}

fn refused(challenge: Challenge) -> Response<Body> {
    let body = Body::from(Bytes::from(challenge.body));
    let mut response = typed_response(challenge.status, "application/json", body);
    let headers = response.headers_mut();
    if let Some(header) = challenge.www_authenticate {
        headers.insert(WWW_AUTHENTICATE, header);
    }
    if let Some(seconds) = challenge.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The response to a request for protected resource metadata (RFC 9728, section 3.1); `None` for other paths.
///
/// The documents are for anybody, pages of any origin included: a client reads them before it is known.
pub(super) fn metadata(snapshot: &ConfigSnapshot, head: &Parts) -> Option<Response<Body>> {
    let path = head.uri.path();
    if !path.starts_with("/.well-known/") {
        return None;
    }
    let document = snapshot.authentication.as_ref()?.metadata(path)?;
    let mut response = match head.method {
        Method::GET => {
            let body = Body::from(Bytes::from(document));
            typed_response(StatusCode::OK, "application/json", body)
        }
        Method::HEAD => typed_response(StatusCode::OK, "application/json", Body::empty()),
        Method::OPTIONS => {
            let mut response = empty(StatusCode::NO_CONTENT);
            let headers = response.headers_mut();
            headers.insert(
                ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static(METHODS),
            );
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            response
        }
        _ => not_allowed(METHODS),
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Some(response)
}

const METHODS: &str = "GET, HEAD, OPTIONS";
