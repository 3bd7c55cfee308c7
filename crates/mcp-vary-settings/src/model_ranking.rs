//! Ranking of variants by a language model (SV-6).

use std::time::Duration;

use http::uri::Authority;
use http::{HeaderValue, Uri};
use mcp_vary_rates::{Rate, RateError};

/// A language model that ranks variants for clients that describe themselves, behind an OpenAI-compatible endpoint.
///
/// # Properties
///
/// The key is sent only over TLS or to this machine, and `Debug` does not show it.
///
/// # Examples
///
/// ```
/// use mcp_vary_settings::model_ranking::ModelRankingConfig;
///
/// let config = ModelRankingConfig::new("http://127.0.0.1:11434/v1", "qwen3:4b")?.with_key("secret")?;
/// assert!(!format!("{config:?}").contains("secret"));
///
/// // Descriptions of clients never cross a network without TLS.
/// assert!(ModelRankingConfig::new("http://models.example.com/v1", "small").is_err());
/// # Ok::<(), mcp_vary_settings::model_ranking::ModelRankingError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelRankingConfig {
    /// The address of the chat completions.
    url: String,
    /// The name of the model at the endpoint.
    model: String,
    authorization: Option<HeaderValue>,
    /// The time in which an answer must arrive; 10 seconds by default.
    pub timeout: Duration,
    /// The most requests at a time; 2 by default.
    pub in_flight: usize,
    /// The most answers that are remembered; 10,000 by default.
    pub cache: usize,
    /// How often the model is asked for the clients of one principal; 10 times an hour by default.
    pub per_principal: Rate,
    /// How often it is asked for all clients together; 600 times an hour by default.
    pub in_all: Rate,
    /// Whether it is also asked for anonymous clients; off by default.
    pub anonymous: bool,
}

/// Settings do not make a [`ModelRankingConfig`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelRankingError {
    /// The address is not one of an endpoint.
    #[error("it is not the URL of an endpoint; write it as `https://host/v1`, without a query")]
    Url,
    /// The address contains a user or password.
    #[error("it contains a user or password, which logs may show; write `key`")]
    UserInfo,
    /// The address is of another machine, without TLS.
    #[error("descriptions of clients would cross a network without TLS; write `https://`")]
    Insecure,
    /// The key is not valid in a header.
    #[error("it has characters that a header cannot have")]
    Key,
    /// A default rate cannot be read.
    #[error(transparent)]
    Rate(#[from] RateError),
}

impl ModelRankingConfig {
    /// The model `model` behind the endpoint `base`, such as `https://host/v1`, with the defaults.
    ///
    /// # Errors
    ///
    /// When `base` is not the URL of an endpoint, or of another machine without TLS.
    pub fn new(base: &str, model: impl Into<String>) -> Result<Self, ModelRankingError> {
        Ok(Self {
            url: endpoint(base)?,
            model: model.into(),
            authorization: None,
            timeout: Duration::from_secs(10),
            in_flight: 2,
            cache: 10_000,
            per_principal: "10/h".parse()?,
            in_all: "600/h".parse()?,
            anonymous: false,
        })
    }

    /// Asks a model behind the endpoint `base` instead.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_url(mut self, base: &str) -> Result<Self, ModelRankingError> {
        self.url = endpoint(base)?;
        Ok(self)
    }

    /// Asks the model that the endpoint calls `name`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// Sends `key` as a bearer token.
    ///
    /// # Errors
    ///
    /// When the key is not valid in a header.
    pub fn with_key(mut self, key: &str) -> Result<Self, ModelRankingError> {
        let header = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value = header.map_err(|_| ModelRankingError::Key)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// The address of the chat completions.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The header `Authorization`.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

/// The address of the chat completions of the endpoint `base`.
fn endpoint(base: &str) -> Result<String, ModelRankingError> {
    let url = format!("{}/chat/completions", base.trim_end_matches('/'));
    let parsed: Uri = url.parse().map_err(|_| ModelRankingError::Url)?;
    let named = parsed.host().filter(|host| !host.is_empty());
    let host = named.ok_or(ModelRankingError::Url)?;
    let authority = parsed.authority().map_or("", Authority::as_str);
    if authority.contains('@') {
        return Err(ModelRankingError::UserInfo);
    }
    if base.contains(['?', '#']) {
        return Err(ModelRankingError::Url);
    }
    match parsed.scheme_str() {
        Some("https") => Ok(url),
        Some("http") if is_loopback(host) => Ok(url),
        Some("http") => Err(ModelRankingError::Insecure),
        _ => Err(ModelRankingError::Url),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(base: &str, expected: ModelRankingError) {
        assert_eq!(ModelRankingConfig::new(base, "m"), Err(expected), "{base}");
    }

    /// SV-6: the endpoint is reached over TLS, or is on this machine.
    #[test]
    fn an_endpoint_is_local_or_has_tls() {
        for base in [
            "https://models.example.com/v1",
            "http://localhost:11434/v1/",
            "http://127.9.9.9/v1",
            "http://[::1]:8000/v1",
        ] {
            let config = ModelRankingConfig::new(base, "m").unwrap();
            let expected = format!("{}/chat/completions", base.trim_end_matches('/'));
            assert_eq!(config.url(), expected);
        }
        refuses("http://10.0.0.1/v1", ModelRankingError::Insecure);
        refuses(
            "http://localhost.example.com/v1",
            ModelRankingError::Insecure,
        );
        refuses(
            "https://user:pass@models.example.com",
            ModelRankingError::UserInfo,
        );
        for base in [
            "",
            "models.example.com/v1",
            "ftp://localhost/",
            "https://a/v1?x=1",
            "https:///v1",
        ] {
            refuses(base, ModelRankingError::Url);
        }
    }

    #[test]
    fn a_key_must_fit_into_a_header() {
        let config = ModelRankingConfig::new("https://a/v1", "m").unwrap();
        assert_eq!(config.clone().with_key("a\nb"), Err(ModelRankingError::Key));
        let config = config.with_key("secret").unwrap();
        assert_eq!(config.authorization().unwrap(), "Bearer secret");
        assert!(!format!("{config:?}").contains("secret"));
    }
}
