//! Verifies one token without a server, for the operator who sets up an issuer.

use http::Request;
use http::header::AUTHORIZATION;
use mcp_vary_auth::address::EndpointPath;
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::tasks::TaskTracker;

use super::service::AuthenticationService;
use mcp_vary_settings::authentication::Authentication;

/// Decides on a request to the endpoint with this bearer token, as a gateway with these settings does. The keys of the token's
/// issuer are fetched.
///
/// # Errors
///
/// Why the request is refused, in a sentence that has nothing of the token.
pub async fn try_token(
    settings: &Authentication,
    environment: Environment,
    token: &str,
) -> Result<Admission, String> {
    let builder = Request::get("/mcp").header(AUTHORIZATION, format!("Bearer {token}"));
    let request = builder
        .body(())
        .map_err(|_| "it has characters that no header can have".to_owned())?;
    let service =
        AuthenticationService::new(settings.clone(), None, environment, TaskTracker::new());
    let (head, ()) = request.into_parts();
    let decision = service.authenticate(&head, &EndpointPath::Base).await;
    decision.map_err(|refusal| {
        let failures = service.key_failures().into_iter();
        let reasons: Vec<_> = std::iter::once(refusal.reason()).chain(failures).collect();
        reasons.join("; ")
    })
}
