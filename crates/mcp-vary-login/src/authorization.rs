//! The authorization code flow with PKCE (OAuth 2.1, section 4.1).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

use crate::address::Address;
use crate::discovery::ServerMetadata;
use crate::error::CredentialError;
use crate::form::form;
use crate::redirect::{ExpectedRedirect, RedirectListener};
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::token::{TokenEndpoint, Tokens};
use crate::user_agent::UserAgent;

/// A request for authorization by a person.
pub(crate) struct AuthorizationRequest<'a> {
    pub(crate) endpoint: TokenEndpoint<'a>,
    pub(crate) metadata: &'a ServerMetadata,
    pub(crate) resource: &'a str,
    pub(crate) scope: &'a Scopes,
    pub(crate) user_agent: &'a dyn UserAgent,
    /// The server that chose the authorization server, unless the operator named that.
    pub(crate) chosen_by: Option<&'a str>,
}

impl AuthorizationRequest<'_> {
    /// Asks the person, waits for the redirect at `listener`, and exchanges the code.
    pub(crate) async fn by_code(
        &self,
        listener: &RedirectListener,
    ) -> Result<Tokens, CredentialError> {
        let verifier = self.random();
        let expected = ExpectedRedirect {
            state: self.random(),
            issuer: self.metadata.issuer.clone(),
            has_iss: self.metadata.authorization_response_iss_parameter_supported,
        };
        // With `iss`, a code of another authorization server is refused.
        let endpoint = self.metadata.authorization_endpoint.as_deref();
        let is_unproven = !expected.has_iss;
        if is_unproven && let Some(endpoint) = endpoint {
            self.confirm_hosts(endpoint).await?;
        }
        let redirect_uri = listener.uri();
        let url = self.url(&redirect_uri, &verifier, &expected.state)?;
        let pasted = async {
            let shown = self.user_agent.authorize(&url).await;
            let pasted = shown.map_err(CredentialError::UserAgent)?;
            Ok(expected.pasted_code(&pasted)?)
        };
        let code = async {
            tokio::select! {
                code = listener.code(&expected) => Ok(code?),
                code = pasted => code,
            }
        };
        let code: Secret = tokio::time::timeout(PATIENCE, code)
            .await
            .unwrap_or(Err(CredentialError::Timeout))?;
        let parameters = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", verifier.expose()),
            ("resource", self.resource),
        ];
        Ok(self.endpoint.request(&parameters).await?)
    }

    /// Has the person confirm that the token endpoint may exchange what they permit at `address`, unless that host is it or
    /// above it: else a server sends them to an authorization server that they trust, and gets the code (RFC 9700, section 4.4).
    pub(crate) async fn confirm_hosts(&self, address: &str) -> Result<(), CredentialError> {
        let host = |url: &str| {
            Address::parse(url)
                .ok()
                .map(|address| address.host().to_owned())
        };
        let hosts = host(address).zip(host(self.endpoint.url));
        let (Some(server), Some((authorization, token))) = (self.chosen_by, hosts) else {
            return Ok(());
        };
        let is_below = token.ends_with(&format!(".{authorization}"));
        if token == authorization || is_below {
            return Ok(());
        }
        let confirmed = self
            .user_agent
            .confirm_hosts(server, &authorization, &token);
        if confirmed.await {
            return Ok(());
        }
        Err(CredentialError::OtherHost {
            authorization,
            token,
            issuer: self.metadata.issuer.clone(),
        })
    }

    /// The address of the authorization request.
    fn url(
        &self,
        redirect_uri: &str,
        verifier: &Secret,
        state: &Secret,
    ) -> Result<String, CredentialError> {
        let endpoint = self.metadata.authorization_endpoint.as_deref();
        let endpoint =
            endpoint.ok_or(CredentialError::Unsupported("the authorization code flow"))?;
        // "If `code_challenge_methods_supported` is absent, the authorization server does not support PKCE and MCP
        // clients MUST refuse to proceed."
        let methods = &self.metadata.code_challenge_methods_supported;
        if !methods.iter().any(|method| method == "S256") {
            return Err(CredentialError::Unsupported(
                "PKCE with S256, which MCP requires",
            ));
        }
        let checked = self.endpoint.http.check(endpoint);
        checked.map_err(|error| CredentialError::Endpoint {
            name: "authorization_endpoint",
            error,
        })?;
        let challenge = digest(&SHA256, verifier.expose().as_bytes());
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        let scope = self.scope.to_string();
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", &self.endpoint.client.id),
            ("redirect_uri", redirect_uri),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", state.expose()),
            ("resource", self.resource),
        ];
        if !self.scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if self.scope.contains(OFFLINE_ACCESS) {
            // OpenID Connect Core, section 11: without it, the scope is ignored.
            parameters.push(("prompt", "consent"));
        }
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{separator}{}", form(parameters)))
    }

    fn random(&self) -> Secret {
        let mut bytes = [0; 32];
        (self.endpoint.environment.random)(&mut bytes);
        Secret::new(URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The scope of refresh tokens (OpenID Connect Core, section 11).
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// The time that a person has.
const PATIENCE: Duration = Duration::from_secs(600);
