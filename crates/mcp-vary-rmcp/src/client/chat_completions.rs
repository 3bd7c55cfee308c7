//! A model behind an endpoint for OpenAI's chat completions, which most model servers have.

use std::fmt;

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mcp_vary_base::user_agent;
use rustls::crypto::ring;
use serde_json::{Value, json};

use super::model::Model;

/// The largest response that is read, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;

/// The largest part of an error response that is shown, in characters.
const MAX_SHOWN: usize = 200;

/// A [`Model`] behind `{base}/chat/completions`.
///
/// It receives the descriptions of the task and of the variants: choose one that may read them.
///
/// # Properties
///
/// The key is sent only over TLS or to this machine, and `Debug` does not show it. Redirects are
/// not followed, requests are not repeated, and at most 1 MiB is read. Set the timeout with
/// [`Client::with_model_timeout`](super::Client::with_model_timeout).
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::ChatCompletions;
///
/// let model = ChatCompletions::new("http://127.0.0.1:11434/v1", "llama3.2")?;
/// let with_key = ChatCompletions::new("https://models.example.com/v1", "small")?.with_key("secret")?;
/// assert!(!format!("{with_key:?}").contains("secret"));
///
/// // A key is never sent over a network without TLS.
/// let plain = ChatCompletions::new("http://models.example.com/v1", "small")?;
/// assert!(plain.with_key("secret").is_err());
/// # Ok::<(), mcp_vary_rmcp::client::ChatError>(())
/// ```
#[derive(Clone)]
pub struct ChatCompletions {
    url: Uri,
    model: String,
    key: Option<HeaderValue>,
    json_mode: bool,
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why [`ChatCompletions`] has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A mistake of the caller: the address is not a URL of HTTP.
    #[error("`{}` is not an HTTP URL; write it as `https://host/v1`", .0.escape_debug())]
    InvalidUrl(String),
    /// A mistake of the caller: the key is not valid in a header.
    #[error("the key contains characters that are not allowed in a header")]
    InvalidKey,
    /// A mistake of the caller: the key would cross a network without TLS.
    #[error("a key is sent only over `https` or to this machine; `{0}` is neither")]
    InsecureKey(Uri),
    /// This machine's root certificates cannot be read.
    #[error("the system's root certificates cannot be read: {0}")]
    RootCertificates(std::io::Error),
    /// The endpoint cannot be reached, or the connection failed.
    #[error("the model cannot be reached: {0}")]
    Unreachable(String),
    /// The endpoint returned an error.
    #[error("the model's server answered {status}: {}", .body.escape_debug())]
    Rejected {
        /// The HTTP status.
        status: StatusCode,
        /// The beginning of the response body.
        body: String,
    },
    /// The response is too large, or is not a chat completion.
    #[error("the model's server did not answer with a chat completion")]
    InvalidResponse,
}

impl ChatCompletions {
    /// Creates a client of `model` behind the endpoint `base`, such as `https://host/v1`.
    ///
    /// # Errors
    ///
    /// When `base` is not an HTTP URL, or the system's root certificates cannot be read.
    pub fn new(base: &str, model: impl Into<String>) -> Result<Self, ChatError> {
        let address = || ChatError::InvalidUrl(base.to_owned());
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        let url: Uri = url.parse().map_err(|_| address())?;
        let is_https = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(address()),
        };
        if url.host().is_none_or(str::is_empty) || url.query().is_some() {
            return Err(address());
        }
        Ok(Self {
            url,
            model: model.into(),
            key: None,
            json_mode: true,
            http: HttpClient::builder(TokioExecutor::new()).build(connector(is_https)?),
        })
    }

    /// Sends `key` as a bearer token.
    ///
    /// # Errors
    ///
    /// When the key is not valid in a header, or would leave this machine without TLS.
    pub fn with_key(mut self, key: &str) -> Result<Self, ChatError> {
        let is_local = matches!(self.url.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if self.url.scheme_str() != Some("https") && !is_local {
            return Err(ChatError::InsecureKey(self.url));
        }
        let mut key: HeaderValue = format!("Bearer {key}")
            .parse()
            .map_err(|_| ChatError::InvalidKey)?;
        key.set_sensitive(true);
        self.key = Some(key);
        Ok(self)
    }

    /// Does not request JSON mode, for servers that reject `response_format`.
    #[must_use]
    pub fn without_json_mode(mut self) -> Self {
        self.json_mode = false;
        self
    }

    fn request(&self, prompt: &str) -> Result<Request<Full<Bytes>>, ChatError> {
        let mut body = json!({
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
        });
        if self.json_mode {
            body["response_format"] = json!({"type": "json_object"});
        }
        let mut request = Request::post(&self.url)
            .header(USER_AGENT, user_agent::USER_AGENT)
            .header(ACCEPT_ENCODING, "identity")
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key);
        }
        let body = Full::from(body.to_string());
        request
            .body(body)
            .map_err(|_| ChatError::InvalidUrl(self.url.to_string()))
    }
}

impl Model for ChatCompletions {
    type Error = ChatError;

    async fn complete(&self, prompt: &str) -> Result<String, Self::Error> {
        let response = self.http.request(self.request(prompt)?).await;
        let response = response.map_err(|error| ChatError::Unreachable(error_chain(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE)
            .collect()
            .await;
        let body = body.map_err(|_| ChatError::InvalidResponse)?.to_bytes();
        if !status.is_success() {
            let body = String::from_utf8_lossy(&body);
            let body = body.chars().take(MAX_SHOWN).collect();
            return Err(ChatError::Rejected { status, body });
        }
        let answer: Value =
            serde_json::from_slice(&body).map_err(|_| ChatError::InvalidResponse)?;
        let content = answer["choices"][0]["message"]["content"].as_str();
        content.map(str::to_owned).ok_or(ChatError::InvalidResponse)
    }
}

impl fmt::Debug for ChatCompletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatCompletions")
            .field("url", &self.url)
            .field("model", &self.model)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Connections that trust the system's root certificates, which are read only for `https`.
fn connector(is_https: bool) -> Result<HttpsConnector<HttpConnector>, ChatError> {
    if !is_https {
        let provider = ring::default_provider();
        let config = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .map_err(|error| ChatError::RootCertificates(std::io::Error::other(error)))?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let builder = HttpsConnectorBuilder::new().with_tls_config(config);
        return Ok(builder.https_or_http().enable_http1().build());
    }
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(ring::default_provider())
        .map_err(ChatError::RootCertificates)?;
    Ok(builder.https_only().enable_http1().build())
}

/// The error and its causes as one text.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        sentence = format!("{sentence}: {cause}");
        source = cause.source();
    }
    sentence
}
