//! The client that an authorization server knows, and how it authenticates at the token endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::assertion::{AssertionContext, SigningKey};
use crate::discovery::ServerMetadata;
use crate::form::encoded;
use crate::secret::Secret;

/// A client as one authorization server knows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) authentication: ClientAuthentication,
}

/// How a client authenticates at the token endpoint (RFC 7591, section 2, `token_endpoint_auth_method`).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum ClientAuthentication {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic(Secret),
    #[serde(rename = "client_secret_post")]
    Post(Secret),
    /// It is configured and never stored.
    #[serde(skip)]
    PrivateKey(SigningKey),
}

/// What a client adds to a request of the token endpoint.
pub(crate) struct Authenticated {
    pub(crate) header: Option<HeaderValue>,
    pub(crate) parameters: Vec<(&'static str, String)>,
}

impl Client {
    /// The client `id` with `secret`, by a method that the authorization server supports.
    pub(crate) fn with_secret(
        id: String,
        secret: Option<Secret>,
        metadata: &ServerMetadata,
    ) -> Self {
        let authentication = match secret {
            None => ClientAuthentication::Public,
            // RFC 8414, section 2: "If omitted, the default is "client_secret_basic"."
            Some(secret) if !metadata.supports_method(BASIC) && metadata.supports_method(POST) => {
                ClientAuthentication::Post(secret)
            }
            Some(secret) => ClientAuthentication::Basic(secret),
        };
        Self { id, authentication }
    }

    /// Its secret, if it has one.
    pub(crate) fn secret(&self) -> Option<String> {
        match &self.authentication {
            ClientAuthentication::Basic(secret) | ClientAuthentication::Post(secret) => {
                Some(secret.expose().to_owned())
            }
            ClientAuthentication::Public | ClientAuthentication::PrivateKey(_) => None,
        }
    }

    /// The parameters and the header with which the client authenticates; `None` if the key cannot sign.
    pub(crate) fn authenticate(&self, context: &AssertionContext<'_>) -> Option<Authenticated> {
        let id = || ("client_id", self.id.clone());
        let mut header = None;
        let parameters = match &self.authentication {
            ClientAuthentication::Public => vec![id()],
            ClientAuthentication::Post(secret) => {
                vec![id(), ("client_secret", secret.expose().to_owned())]
            }
            ClientAuthentication::Basic(secret) => {
                header = Some(basic(&self.id, secret)?);
                Vec::new()
            }
            ClientAuthentication::PrivateKey(key) => vec![
                id(),
                ("client_assertion_type", JWT_BEARER.to_owned()),
                ("client_assertion", key.assertion(&self.id, context)?),
            ],
        };
        Some(Authenticated { header, parameters })
    }
}

impl ServerMetadata {
    /// Whether the token endpoint supports the method; the methods are optional and have a default (RFC 8414, section 2).
    pub(crate) fn supports_method(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|supported| supported == method),
            None => method == BASIC,
        }
    }
}

/// RFC 6749, section 2.3.1: both are encoded as in a form before they are joined.
fn basic(id: &str, secret: &Secret) -> Option<HeaderValue> {
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

pub(crate) const NONE: &str = "none";
pub(crate) const BASIC: &str = "client_secret_basic";
pub(crate) const POST: &str = "client_secret_post";
/// RFC 7523, section 2.2.
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn sends(methods: Option<&[&str]>, secret: Option<&str>, expected: (Option<&str>, &str)) {
        let methods = methods.map(|methods| methods.iter().map(ToString::to_string).collect());
        let metadata = ServerMetadata {
            token_endpoint_auth_methods_supported: methods,
            ..ServerMetadata::default()
        };
        let client = Client::with_secret("a b".to_owned(), secret.map(Secret::new), &metadata);
        let context = AssertionContext {
            issuer: "https://idp.example",
            now: 0,
            id: String::new(),
        };
        let sent = client.authenticate(&context).unwrap();
        let parameters = sent.parameters.iter();
        let form = crate::form::form(parameters.map(|(name, value)| (*name, value.as_str())));
        let header = sent.header.as_ref().map(|value| value.to_str().unwrap());
        assert_eq!((header, form.as_str()), expected);
    }

    #[test]
    fn a_client_authenticates_by_a_method_that_the_server_supports() {
        // `a%20b:c%2Bd`
        let basic = (Some("Basic YSUyMGI6YyUyQmQ="), "");
        let post = (None, "client_id=a%20b&client_secret=c%2Bd");
        sends(None, None, (None, "client_id=a%20b"));
        sends(None, Some("c+d"), basic);
        sends(Some(&[BASIC, POST]), Some("c+d"), basic);
        sends(Some(&[POST, NONE]), Some("c+d"), post);
        sends(Some(&[]), Some("c+d"), basic);
    }
}
