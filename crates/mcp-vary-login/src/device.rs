//! The device flow: a person authorizes on another device (RFC 8628).

use std::time::Duration;

use serde::Deserialize;

use crate::authorization::AuthorizationRequest;
use crate::error::CredentialError;
use crate::http_client::HttpError;
use crate::registration::DEVICE_GRANT;
use crate::secret::Secret;
use crate::token::{TokenEndpoint, TokenError, Tokens};
use crate::user_agent::DeviceCode;

/// The members of RFC 8628, section 3.2.
#[derive(Deserialize)]
struct DeviceAuthorization {
    device_code: Secret,
    user_code: String,
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

impl AuthorizationRequest<'_> {
    /// Shows the person a code, and asks for tokens until they have entered it.
    pub(crate) async fn by_device(&self) -> Result<Tokens, CredentialError> {
        let endpoint = self.metadata.device_authorization_endpoint.as_deref();
        let url = endpoint.ok_or(CredentialError::Unsupported(
            "the device flow; leave out `--device`",
        ))?;
        let device = TokenEndpoint {
            url,
            ..self.endpoint
        };
        let scope = self.scope.to_string();
        let mut parameters = vec![("resource", self.resource)];
        if !self.scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        let answer = device.post(&parameters).await?;
        let authorization: DeviceAuthorization = answer.json()?;
        // A person opens it.
        let checked = self.endpoint.http.check(&authorization.verification_uri);
        checked.map_err(|error| CredentialError::Endpoint {
            name: "verification_uri",
            error,
        })?;
        let code = &authorization.user_code;
        // A sentence would be an instruction.
        if code.len() > MAX_CODE || !code.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HttpError::Malformed.into());
        }
        self.confirm_hosts(&authorization.verification_uri).await?;
        self.user_agent.show_device_code(&DeviceCode {
            verification_uri: authorization.verification_uri.clone(),
            user_code: code.clone(),
        });
        let life = Duration::from_secs(authorization.expires_in.min(MAX_LIFE));
        let polling = self.poll(&authorization);
        let tokens = tokio::time::timeout(life, polling).await;
        tokens.unwrap_or(Err(CredentialError::Timeout))
    }

    async fn poll(&self, authorization: &DeviceAuthorization) -> Result<Tokens, CredentialError> {
        let parameters = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", authorization.device_code.expose()),
            ("resource", self.resource),
        ];
        let mut interval = authorization
            .interval
            .unwrap_or(DEFAULT_INTERVAL)
            .clamp(1, MAX_INTERVAL);
        loop {
            tokio::time::sleep(Duration::from_secs(interval)).await;
            match self.endpoint.request(&parameters).await {
                Err(TokenError::Refused(error)) if error.code == "authorization_pending" => {}
                // "The interval MUST be increased by 5 seconds for this and all subsequent requests."
                Err(TokenError::Refused(error)) if error.code == "slow_down" => {
                    interval = (interval + 5).min(MAX_INTERVAL);
                }
                // Section 3.5: after a timeout of the connection the client asks again, later.
                Err(TokenError::Http(HttpError::Timeout(_))) => {
                    interval = (interval * 2).min(MAX_INTERVAL)
                }
                answered => return Ok(answered?),
            }
        }
    }
}

/// Seconds between two requests, if the server does not say it; and the most.
const DEFAULT_INTERVAL: u64 = 5;
const MAX_INTERVAL: u64 = 60;
/// The longest life of a code, in seconds.
const MAX_LIFE: u64 = 1800;
/// The longest code, in bytes.
const MAX_CODE: usize = 32;
