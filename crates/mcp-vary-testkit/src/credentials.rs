//! Credentials, good and bad, for a server that knows two issuers and two API keys; and what each is answered.
//!
//! The server is the resource [`PUBLIC`] at the time [`NOW`]. It trusts [`ISSUER`], whose tokens need the scope
//! `mcp:read` and may be for the audiences `api://vary` and `client-of-vary`, and [`OTHER_ISSUER`], whose tokens need
//! nothing. Both publish [`keys::PUBLISHED`]. Rules may use the claim `groups`.

mod draft;
mod generated;
pub mod keys;
mod table;

pub use self::draft::{Draft, good};
pub use self::generated::tokens;
pub use self::table::{Row, TABLES};

/// The time of all rows, in seconds since 1970-01-01 UTC.
pub const NOW: u64 = 1_800_000_000;

/// The first issuer.
pub const ISSUER: &str = "https://idp.example/realms/a";

/// The second issuer.
pub const OTHER_ISSUER: &str = "https://other.example";

/// The URL under which clients reach the server.
pub const PUBLIC: &str = "https://mcp.example";

/// The API key of `ci`, made of 32 bytes 1.
pub const KEY_OF_CI: &str = "vary_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

/// The digest of [`KEY_OF_CI`].
pub const DIGEST_OF_CI: &str = "cc5ef2baf01a5ed39ba97ea303038b1e0307e17217dedc31afe78cb7bf0a1bf2";

/// The API key of `old`, made of 32 bytes 2. It expired at [`NOW`].
pub const KEY_OF_OLD: &str = "vary_AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";

/// An API key that the server does not have, made of 32 bytes 9.
pub const KEY_OF_NOBODY: &str = "vary_CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk";

/// What the head of a request says about who sends it.
#[derive(Clone, Debug)]
pub struct Head {
    /// The values of all headers `Authorization`.
    pub authorization: Vec<Vec<u8>>,
    /// The query, without `?`.
    pub query: Option<String>,
    /// The path.
    pub path: String,
}

/// A request to `/mcp` with this bearer token.
pub fn bearer(token: impl AsRef<str>) -> Head {
    header(&format!("Bearer {}", token.as_ref()))
}

/// A request to `/mcp` with this `Authorization`.
pub fn header(value: &str) -> Head {
    Head {
        authorization: vec![value.as_bytes().to_vec()],
        query: None,
        path: "/mcp".to_owned(),
    }
}

impl Head {
    /// The same to another path.
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The path and the query.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}
