//! How a client becomes known to an authorization server, in the order of the MCP specification: a client that the
//! operator registered, a client id metadata document, dynamic registration (RFC 7591).

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::client::{BASIC, Client, ClientAuthentication, NONE, POST};
use crate::discovery::{ServerMetadata, shown};
use crate::http_client::{HttpClient, HttpError};
use crate::secret::Secret;
use crate::token::OAuthError;

/// Why there is no client. It contains nothing secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// Neither a client nor a way to register one.
    #[error(
        "its authorization server, {issuer}, registers no clients by itself; register one there with the redirect \
         http://127.0.0.1/callback, and log in again with `--client-id ID` (in a file: `auth: {{login: {{client-id: ID}}}}` of the server); if it \
         wants the port of the redirect as well, add `--redirect-port PORT`, and register http://127.0.0.1:PORT/callback"
    )]
    NoWay {
        /// The authorization server.
        issuer: String,
    },
    /// The request failed.
    #[error("the client could not be registered: {0}")]
    Http(#[from] HttpError),
    /// The authorization server refused the client.
    #[error(
        "the authorization server refused to register a client: {0}; register one there, and log in again with \
         `--client-id ID` (in a file: `auth: {{login: {{client-id: ID}}}}` of the server)"
    )]
    Refused(OAuthError),
}

/// The client of the configuration.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConfiguredClient {
    /// Its id, which may be the URL of a metadata document.
    pub id: Option<String>,
    /// Its secret.
    pub secret: Option<Secret>,
    /// The port of its redirect, if its registration has a port.
    pub redirect_port: Option<u16>,
}

impl ConfiguredClient {
    /// Whether the id is the URL of a metadata document: `https` with a path. Such an id means the same at each
    /// authorization server.
    fn document(&self) -> Option<&str> {
        if self.secret.is_some() {
            return None;
        }
        let id = self.id.as_deref()?;
        let (_, path) = id.strip_prefix("https://")?.split_once('/')?;
        (!path.is_empty()).then_some(id)
    }

    /// Whether the client was registered at one authorization server and must not be presented at another.
    pub(crate) fn is_registered(&self) -> bool {
        self.id.is_some() && self.document().is_none()
    }

    /// The client at the authorization server with this metadata; `None` if one must be registered.
    pub(crate) fn client(&self, metadata: &ServerMetadata) -> Option<Client> {
        let id = match self.document() {
            Some(document) if metadata.client_id_metadata_document_supported => document,
            Some(_) => return None,
            None => self.id.as_deref()?,
        };
        Some(Client::with_secret(
            id.to_owned(),
            self.secret.clone(),
            metadata,
        ))
    }
}

/// The members of RFC 7591, section 3.2.1, that are read.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers a client whose redirect is `redirect_uri` (RFC 7591, section 3.1); without one, for the device flow.
pub(crate) async fn register(
    http: &HttpClient,
    metadata: &ServerMetadata,
    redirect_uri: Option<&str>,
) -> Result<Client, RegistrationError> {
    let offered = metadata.registration_endpoint.as_deref();
    let endpoint = offered.ok_or_else(|| RegistrationError::NoWay {
        issuer: shown(&metadata.issuer),
    })?;
    let method = [NONE, BASIC, POST]
        .into_iter()
        .find(|method| metadata.supports_method(method));
    let grant = match redirect_uri {
        Some(_) => "authorization_code",
        None => DEVICE_GRANT,
    };
    let mut request = json!({
        "client_name": "Vary",
        // "MCP clients MUST specify an appropriate `application_type` during Dynamic Client Registration."
        "application_type": "native",
        "grant_types": [grant, "refresh_token"],
        "token_endpoint_auth_method": method.unwrap_or(NONE),
    });
    if let Some(redirect_uri) = redirect_uri {
        request["redirect_uris"] = json!([redirect_uri]);
        request["response_types"] = json!(["code"]);
    }
    let answer = http.post_json(endpoint, request.to_string()).await?;
    let refused = OAuthError::parse(&answer);
    if !matches!(answer.status, StatusCode::OK | StatusCode::CREATED) || refused.is_ok() {
        return Err(RegistrationError::Refused(refused?));
    }
    Ok(answer.json::<Registered>()?.into_client(metadata))
}

impl Registered {
    /// The method of the answer counts, not the one that was asked for.
    fn into_client(self, metadata: &ServerMetadata) -> Client {
        let authentication = match (
            self.token_endpoint_auth_method.as_deref(),
            self.client_secret,
        ) {
            (Some(NONE), _) | (_, None) => ClientAuthentication::Public,
            (Some(BASIC), Some(secret)) => ClientAuthentication::Basic(secret),
            (Some(POST), Some(secret)) => ClientAuthentication::Post(secret),
            (_, secret) => return Client::with_secret(self.client_id, secret, metadata),
        };
        Client {
            id: self.client_id,
            authentication,
        }
    }
}

/// The type of the grant.
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_metadata_document_if_it_is_an_https_url_with_a_path() {
        let client = |id: &str| ConfiguredClient {
            id: Some(id.to_owned()),
            ..ConfiguredClient::default()
        };
        assert!(client("https://a.example/client.json").document().is_some());
        for id in [
            "client",
            "https://a.example",
            "https://a.example/",
            "http://a.example/c",
        ] {
            assert!(client(id).is_registered(), "{id}");
        }
        assert!(!ConfiguredClient::default().is_registered());
    }
}
