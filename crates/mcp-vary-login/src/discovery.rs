//! Which authorization server a server has, and what that supports (RFC 9728, RFC 8414, OpenID Connect Discovery 1.0).

use http::StatusCode;
use serde::Deserialize;

use crate::address::Address;
use crate::challenge::Challenge;
use crate::http_client::{Answer, HttpClient, HttpError};
use crate::scope::Scopes;

/// What a server says of its authorization.
#[derive(Debug)]
pub(crate) struct ProtectedResource {
    /// The value of the parameter `resource`.
    pub(crate) resource: String,
    /// The issuers, in the order of the document.
    pub(crate) issuers: Vec<String>,
    /// What the first request for authorization asks for, if the challenge names no scopes.
    pub(crate) scopes: Option<Scopes>,
}

/// The metadata of an authorization server. Members of other types than expected make the document malformed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerMetadata {
    pub(crate) issuer: String,
    /// Where the user agrees.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    pub token_endpoint: String,
    /// Where clients are registered.
    pub registration_endpoint: Option<String>,
    /// Where a login on another device begins.
    pub device_authorization_endpoint: Option<String>,
    /// Where tokens are revoked.
    pub revocation_endpoint: Option<String>,
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) code_challenge_methods_supported: Vec<String>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) client_id_metadata_document_supported: bool,
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Why the authorization server of a server is not known. It contains addresses, and nothing else of a document.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// A document could not be fetched.
    #[error("the metadata at {url} cannot be used: {error}{}", advice(error))]
    Document {
        /// Its address.
        url: String,
        /// Why not.
        error: HttpError,
    },
    /// The document is about another server.
    #[error(
        "the metadata at {0} is about another server: its `resource` is not this address or one above it"
    )]
    OtherResource(String),
    /// The document names no authorization server.
    #[error("the metadata at {0} names no authorization server")]
    NoIssuer(String),
    /// Neither the server nor its origin has metadata.
    #[error(
        "{0} has no metadata of authorization, so nobody can log in there; if its operator gave you a token, write it into \
         `headers` of the server, as in `Authorization: Bearer ${{TOKEN}}`"
    )]
    NotFound(String),
    /// The configured issuer is not one of the server's.
    #[error("`issuer` is not among the authorization servers that the server names: {0}")]
    OtherIssuer(String),
    /// The metadata has another issuer.
    #[error(
        "the metadata at {url} has another `issuer` than {expected}, character for character{advice}"
    )]
    IssuerMismatch {
        /// The address of the metadata.
        url: String,
        /// The issuer that the server names, or that is configured.
        expected: String,
        /// What to write, if only a slash at the end is different.
        advice: String,
    },
}

/// What to do about metadata that is not where the server says.
fn advice(error: &HttpError) -> &'static str {
    match error {
        HttpError::Status(StatusCode::NOT_FOUND) => {
            "; the server names this address in its 401, so its operator must repair that; if you have a token, write it into \
             `headers` of the server, as in `Authorization: Bearer ${TOKEN}`"
        }
        _ => "",
    }
}

/// The members of RFC 9728, section 2, that are read.
#[derive(Deserialize)]
struct ResourceDocument {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// Reads what `server` says of its authorization: at the address in the challenge, else at the well-known addresses.
///
/// A server of 2025-03-26 has no such document: its own origin is the issuer.
pub(crate) async fn protected_resource(
    http: &HttpClient,
    server: &Address,
    challenge: &Challenge,
) -> Result<ProtectedResource, DiscoveryError> {
    if let Some(url) = &challenge.resource_metadata {
        let answer = fetch(http, url).await?;
        let document = found(url, &answer, "resource")?.ok_or_else(|| {
            let error = match answer.status {
                StatusCode::OK => HttpError::Malformed,
                _ => HttpError::Status(StatusCode::NOT_FOUND),
            };
            unusable(url, error)
        })?;
        return checked(url, document, server);
    }
    let well_known = format!("{}/.well-known/oauth-protected-resource", server.origin());
    let mut urls = vec![format!("{well_known}{}", server.path()), well_known];
    urls.dedup();
    for url in urls {
        if let Some(document) = found(&url, &fetch(http, &url).await?, "resource")? {
            return checked(&url, document, server);
        }
    }
    Ok(ProtectedResource {
        resource: server.resource(),
        issuers: vec![server.origin()],
        scopes: None,
    })
}

/// MCP clients must not request tokens for a resource that is not the server: a document of an attacker could name the
/// resource of somebody else.
fn checked(
    url: &str,
    document: ResourceDocument,
    server: &Address,
) -> Result<ProtectedResource, DiscoveryError> {
    let resource = Address::parse(&document.resource).ok();
    if !resource.is_some_and(|resource| resource.contains(server)) {
        return Err(DiscoveryError::OtherResource(shown(url)));
    }
    if document.authorization_servers.is_empty() {
        return Err(DiscoveryError::NoIssuer(shown(url)));
    }
    let scopes = document.scopes_supported;
    Ok(ProtectedResource {
        resource: document.resource,
        issuers: document.authorization_servers,
        scopes: scopes.map(|names| Scopes::from_names(names.iter().map(String::as_str))),
    })
}

impl ProtectedResource {
    /// The issuer to use: the configured one, else the one of the last login, else the first.
    ///
    /// The configured one may differ from that of the server by a slash at the end. It is the word of the operator for the
    /// `issuer` of the metadata, which some authorization servers write in one document with the slash, and in the other without.
    pub(crate) fn select_issuer<'a>(
        &'a self,
        configured: Option<&'a str>,
        last: Option<&str>,
    ) -> Result<&'a str, DiscoveryError> {
        let listed = |wanted: &str| self.issuers.iter().find(|issuer| *issuer == wanted);
        if let Some(configured) = configured {
            let mut issuers = self.issuers.iter();
            if issuers.any(|issuer| is_equal_but_for_slash(issuer, configured)) {
                return Ok(configured);
            }
            return Err(DiscoveryError::OtherIssuer(shown(&self.issuers.join(" "))));
        }
        let known = last.and_then(listed);
        Ok(known
            .or_else(|| self.issuers.first())
            .map_or("", String::as_str))
    }
}

/// Reads the metadata of `issuer`, at the addresses that the MCP specification lists, in its order.
///
/// "The `issuer` value in the document MUST be identical to the issuer identifier used to construct the well-known URL.
/// If they differ, the client MUST NOT use the metadata."
pub(crate) async fn server_metadata(
    http: &HttpClient,
    issuer: &str,
) -> Result<ServerMetadata, DiscoveryError> {
    let checked = http.check(issuer);
    let address = checked.map_err(|error| unusable(issuer, error.into()))?;
    for url in metadata_urls(&address) {
        let answer = fetch(http, &url).await?;
        let Some(metadata) = found::<ServerMetadata>(&url, &answer, "issuer")? else {
            continue;
        };
        if metadata.issuer != issuer {
            let advice = |found: String| {
                format!(
                    "; if {found} is right, write `issuer: {found}` into `auth.login` of the server (or its \
                     `client-credentials` or `token-exchange`), or `--issuer {found}` for `vary login URL`"
                )
            };
            let is_similar = is_equal_but_for_slash(&metadata.issuer, issuer);
            let similar = is_similar.then(|| shown(&metadata.issuer));
            return Err(DiscoveryError::IssuerMismatch {
                url: shown(&url),
                expected: shown(issuer),
                advice: similar.map_or_else(String::new, advice),
            });
        }
        return Ok(metadata);
    }
    Err(DiscoveryError::NotFound(shown(issuer)))
}

fn metadata_urls(issuer: &Address) -> Vec<String> {
    let origin = issuer.origin();
    let path = issuer.path();
    let inserted = |name: &str| format!("{origin}/.well-known/{name}{path}");
    let mut urls = vec![
        inserted("oauth-authorization-server"),
        inserted("openid-configuration"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

async fn fetch(http: &HttpClient, url: &str) -> Result<Answer, DiscoveryError> {
    let answer = http.get(url).await;
    answer.map_err(|error| unusable(url, error))
}

/// The error for a document that could not be read.
fn unusable(url: &str, error: HttpError) -> DiscoveryError {
    let url = shown(url);
    DiscoveryError::Document { url, error }
}

/// Whether two issuers are equal, or only one of them has a slash at its end.
fn is_equal_but_for_slash(one: &str, other: &str) -> bool {
    let without = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    without(one) == without(other)
}

/// The document in an answer, which has the member `key`; `None` if there is none at this address.
fn found<T: serde::de::DeserializeOwned>(
    url: &str,
    answer: &Answer,
    key: &str,
) -> Result<Option<T>, DiscoveryError> {
    let failed = |error| unusable(url, error);
    match answer.status {
        // Web applications answer unknown paths with their page and 200.
        StatusCode::OK => match answer.object() {
            Some(object) if object.contains_key(key) => answer.json().map(Some).map_err(failed),
            _ => Ok(None),
        },
        status if status.is_redirection() => Err(failed(HttpError::Status(status))),
        // Servers answer unknown paths with every status of an error.
        _ => Ok(None),
    }
}

/// The address as messages show it: bounded, visible, and without a query, which may have a key.
pub(crate) fn shown(url: &str) -> String {
    let plain = url.split('?').next().unwrap_or_default();
    let visible = plain.chars().filter(|character| !character.is_control());
    visible.take(MAX_SHOWN).collect()
}

/// The most characters of an address in a message.
const MAX_SHOWN: usize = 300;

/// The authorization server of a server.
#[derive(Debug)]
pub(crate) struct Discovered {
    pub(crate) resource: ProtectedResource,
    pub(crate) metadata: ServerMetadata,
}

/// Finds the authorization server of `server`: the `configured` issuer, else the `last` one, else the first that the
/// server names.
pub(crate) async fn discover(
    http: &HttpClient,
    server: &Address,
    challenge: &Challenge,
    configured: Option<&str>,
    last: Option<&str>,
) -> Result<Discovered, DiscoveryError> {
    let resource = protected_resource(http, server, challenge).await?;
    let issuer = resource.select_issuer(configured, last)?;
    let metadata = server_metadata(http, issuer).await?;
    Ok(Discovered { resource, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        let urls = |issuer: &str| metadata_urls(&Address::parse(issuer).unwrap());
        assert_eq!(
            urls("https://auth.example/tenant1"),
            [
                "https://auth.example/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example/.well-known/openid-configuration/tenant1",
                "https://auth.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            urls("https://auth.example/"),
            [
                "https://auth.example/.well-known/oauth-authorization-server",
                "https://auth.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn the_issuer_is_the_configured_one_else_the_last_else_the_first() {
        let resource = ProtectedResource {
            resource: String::new(),
            issuers: vec!["https://a".to_owned(), "https://b".to_owned()],
            scopes: None,
        };
        let select = |configured, last| resource.select_issuer(configured, last);
        assert_eq!(select(None, None), Ok("https://a"));
        assert_eq!(select(None, Some("https://b")), Ok("https://b"));
        assert_eq!(select(None, Some("https://gone")), Ok("https://a"));
        assert_eq!(
            select(Some("https://b"), Some("https://a")),
            Ok("https://b")
        );
        let other = DiscoveryError::OtherIssuer("https://a https://b".to_owned());
        assert_eq!(select(Some("https://b//"), None), Err(other.clone()));
        assert_eq!(select(Some("https://c/"), None), Err(other));
        assert_eq!(select(Some("https://b/"), None), Ok("https://b/"));
    }
}
