//! Who may use the gateway over HTTP, and how clients find out what they need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::authenticator::Authenticator;
use mcp_vary_auth::challenge::Challenges;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_auth::metadata::{Metadata, ResourceForm};
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::refresh::REFRESH_AFTER;
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::{IssuersError, TokenVerifier, TrustedIssuer};

/// Who may use the gateway over HTTP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Authentication {
    /// Decides on credentials.
    pub authenticator: Arc<Authenticator>,
    /// Writes the answers to refused requests.
    pub challenges: Challenges,
    /// The protected resource metadata (RFC 9728), if there are issuers.
    pub metadata: Option<Metadata>,
    /// Where the keys of each issuer are, in the order of the issuers.
    pub key_sources: Vec<IssuerKeySource>,
    /// The pause between two checks whether the credential that opened a stream is still good; 30 seconds. A stream ends
    /// at most this long after its credential.
    pub stream_check: Duration,
}

const STREAM_CHECK: Duration = Duration::from_secs(30);

/// An authorization server whose tokens are accepted.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct IssuerConfig {
    /// What is accepted of its tokens.
    pub trusted: TrustedIssuer,
    /// Where its keys are.
    pub keys: IssuerKeySource,
}

/// Where the keys of an issuer are, and how often they are fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct IssuerKeySource {
    /// Where they are.
    pub source: KeySource,
    /// After how long they are fetched again, in whole seconds.
    pub refresh: Duration,
}

impl From<KeySource> for IssuerKeySource {
    /// Fetches the keys every hour.
    fn from(source: KeySource) -> Self {
        Self {
            source,
            refresh: Duration::from_secs(REFRESH_AFTER),
        }
    }
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the gateway fetches from each")]
pub enum KeySource {
    /// Where its metadata say (RFC 8414, OpenID Connect Discovery 1.0).
    Discovery,
    /// At this URL, which [`check_key_set_url`](mcp_vary_auth::discovery::check_key_set_url) accepts.
    Url(String),
    /// In this file, which is read again as often as a URL would be.
    File(PathBuf),
}

/// The issuers of a configuration, and where clients reach the gateway.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct TokenConfig {
    /// The proof that tokens can be verified in this process.
    pub provider: Provider,
    /// The URL under which clients reach the gateway.
    pub public_url: PublicUrl,
    /// The authorization servers, at least one.
    pub issuers: Vec<IssuerConfig>,
    /// What `resource` of the metadata of a variant is.
    pub resource_form: ResourceForm,
    /// A page for developers, in the metadata.
    pub documentation: Option<String>,
}

impl Authentication {
    /// Accepts API keys, and tokens if there are issuers. `allows_anonymous` lets clients pass that present nothing.
    ///
    /// # Errors
    ///
    /// See [`IssuersError`].
    pub fn new(
        keys: KeyTable,
        tokens: Option<TokenConfig>,
        allows_anonymous: bool,
    ) -> Result<Self, IssuersError> {
        let Some(tokens) = tokens else {
            let authenticator = Authenticator::new(keys, None).with_anonymous(allows_anonymous);
            return Ok(Self {
                authenticator: Arc::new(authenticator),
                challenges: Challenges::without_metadata(),
                metadata: None,
                key_sources: Vec::new(),
                stream_check: STREAM_CHECK,
            });
        };
        let public = tokens.public_url;
        let scopes = common_scopes(&tokens.issuers);
        let names: Vec<Issuer> = tokens
            .issuers
            .iter()
            .map(|issuer| issuer.trusted.issuer.clone())
            .collect();
        let mut metadata = Metadata::new(public.clone(), names, scopes.clone())
            .with_resource_form(tokens.resource_form);
        if let Some(url) = tokens.documentation {
            metadata = metadata.with_documentation(url);
        }
        let (trusted, key_sources) = tokens
            .issuers
            .into_iter()
            .map(|issuer| (issuer.trusted, issuer.keys))
            .unzip();
        let verifier = TokenVerifier::new(tokens.provider, public.clone(), trusted)?;
        let authenticator = Authenticator::new(keys, Some(verifier));
        Ok(Self {
            authenticator: Arc::new(authenticator.with_anonymous(allows_anonymous)),
            challenges: Challenges::new(public, scopes),
            metadata: Some(metadata),
            key_sources,
            stream_check: STREAM_CHECK,
        })
    }
}

/// The scopes that the tokens of every issuer need, in the order of the first.
fn common_scopes(issuers: &[IssuerConfig]) -> Vec<Scope> {
    let Some((first, others)) = issuers.split_first() else {
        return Vec::new();
    };
    let is_common = |scope: &&Scope| {
        others
            .iter()
            .all(|issuer| issuer.trusted.scopes.contains(scope))
    };
    let scopes = first.trusted.scopes.iter();
    scopes.filter(is_common).cloned().collect()
}
