//! Protected resource metadata (RFC 9728): how a client finds the authorization servers.

use serde::Serialize;

use crate::address::{EndpointPath, PublicUrl};
use crate::discovery::Issuer;
use crate::scope::Scope;

/// The documents of this server.
///
/// They are public: serve them with `Access-Control-Allow-Origin: *` and before any credential is looked at.
///
/// # Properties
///
/// - There is a document for `/mcp`, for every `/mcp/v/NAME` whether a variant has the name or not, and one at the
///   root, which is that of `/mcp`. So nobody learns from them which variants exist.
/// - `resource` is the address itself, character for character, which clients compare with what their users typed
///   (RFC 9728, section 3.3).
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::address::PublicUrl;
/// use mcp_vary_auth::discovery::Issuer;
/// use mcp_vary_auth::metadata::Metadata;
///
/// let issuers = vec![Issuer::parse("https://idp.example")?];
/// let metadata = Metadata::new(PublicUrl::parse("https://mcp.example")?, issuers, Vec::new());
/// let document = metadata.document("/.well-known/oauth-protected-resource/mcp/v/no-such-variant");
/// assert!(document.is_some_and(|json| json.contains(r#""resource":"https://mcp.example/mcp/v/no-such-variant""#)));
///
/// assert_eq!(metadata.document("/.well-known/oauth-protected-resource/admin"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metadata {
    public: PublicUrl,
    issuers: Vec<Issuer>,
    scopes: Vec<Scope>,
    form: ResourceForm,
    documentation: Option<String>,
}

/// What `resource` of a variant's document is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ResourceForm {
    /// Its own address.
    #[default]
    Endpoint,
    /// The address `/mcp`: for authorization servers that know a fixed list of resources. Strict clients refuse it.
    Base,
}

/// The members of RFC 9728, section 2, that are known of this server.
#[derive(Serialize)]
struct Document<'a> {
    resource: String,
    authorization_servers: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<&'a str>,
}

impl Metadata {
    /// The documents of the server at `public`, whose tokens come from `issuers` and need `scopes`.
    ///
    /// Without an issuer there are no documents: the MCP specification demands one authorization server at least.
    pub const fn new(public: PublicUrl, issuers: Vec<Issuer>, scopes: Vec<Scope>) -> Self {
        Self {
            public,
            issuers,
            scopes,
            form: ResourceForm::Endpoint,
            documentation: None,
        }
    }

    /// Sets what `resource` of a variant's document is.
    #[must_use]
    pub const fn with_resource_form(mut self, form: ResourceForm) -> Self {
        self.form = form;
        self
    }

    /// Adds the URL of a page for developers.
    #[must_use]
    pub fn with_documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// The document at `path`, in JSON; `None` if there is none.
    pub fn document(&self, path: &str) -> Option<String> {
        let target = self.public.metadata_path(path)?;
        if self.issuers.is_empty() {
            return None;
        }
        let target = match self.form {
            ResourceForm::Endpoint => target,
            ResourceForm::Base => EndpointPath::Base,
        };
        let document = Document {
            resource: self.public.resource(&target),
            authorization_servers: self.issuers.iter().map(Issuer::as_str).collect(),
            scopes_supported: self.scopes.iter().map(Scope::as_str).collect(),
            bearer_methods_supported: ["header"],
            resource_name: "Vary",
            resource_documentation: self.documentation.as_deref(),
        };
        serde_json::to_string(&document).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let issuers = ["https://idp.example/realms/a", "https://other.example/"]
            .map(|text| Issuer::parse(text).unwrap());
        let scopes = vec![Scope::parse("mcp:read").unwrap()];
        Metadata::new(
            PublicUrl::parse("https://mcp.example").unwrap(),
            issuers.into(),
            scopes,
        )
    }

    fn at(metadata: &Metadata, path: &str) -> Option<String> {
        metadata.document(&format!("/.well-known/oauth-protected-resource{path}"))
    }

    #[test]
    fn a_document_has_all_that_a_client_needs() {
        let metadata = metadata().with_documentation("https://mcp.example/help");
        assert_eq!(
            at(&metadata, "/mcp/v/reviewer").unwrap(),
            r#"{"resource":"https://mcp.example/mcp/v/reviewer","authorization_servers":["https://idp.example/realms/a","https://other.example/"],"scopes_supported":["mcp:read"],"bearer_methods_supported":["header"],"resource_name":"Vary","resource_documentation":"https://mcp.example/help"}"#
        );
    }

    #[test]
    fn the_root_document_is_that_of_mcp() {
        assert_eq!(at(&metadata(), ""), at(&metadata(), "/mcp"));
        assert!(
            at(&metadata(), "")
                .unwrap()
                .contains(r#""resource":"https://mcp.example/mcp","#)
        );
    }

    #[test]
    fn documents_of_variants_differ_by_their_name_only() {
        let of = |name: &str| {
            at(&metadata(), &format!("/mcp/v/{name}"))
                .unwrap()
                .replace(name, "x")
        };
        assert_eq!(of("known"), of("f%C3%BCr%20mich"));
    }

    #[test]
    fn other_paths_have_no_document() {
        for path in [
            "/",
            "/mcp/",
            "/mcp/v/",
            "/mcp/v/a/b/c",
            "/mcp/v/%zz",
            "mcp",
            "/mcpx",
        ] {
            assert_eq!(at(&metadata(), path), None, "{path}");
        }
        let public = PublicUrl::parse("https://mcp.example").unwrap();
        let found = at(&Metadata::new(public, Vec::new(), Vec::new()), "/mcp");
        assert_eq!(found, None);
    }

    #[test]
    fn all_documents_can_name_the_base() {
        let metadata = metadata().with_resource_form(ResourceForm::Base);
        assert_eq!(at(&metadata, "/mcp/v/a"), at(&metadata, "/mcp"));
    }
}
