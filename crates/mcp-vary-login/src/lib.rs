//! Logging in to MCP servers, as the specification's section on authorization says it for clients.
//!
//! [`Credentials`](credentials::Credentials) gives the current authorization of one server, and takes its refusals. Behind it
//! are a person's login ([`login`]), with its tokens in a [`store`], or the client credentials of a service ([`service`]).
//! [`exchange`] gives each client of a gateway tokens in exchange for its own.
//!
//! | question | here |
//! |---|---|
//! | which authorization server does a server have? | `discovery`, from what a `challenge` says |
//! | which addresses may be asked? | [`address`] |
//! | as which client? | [`registration`], `client`, [`assertion`] |
//! | how does a person authorize? | `authorization` with its `redirect`, or `device`; shown by a [`user_agent`] |
//! | what does the token endpoint return? | `token` |
//! | where are tokens stored, and how are they sealed? | [`store`], [`seal`], with a key of the `keyring` |
//!
//! An [`AuthorizationSource`](source::AuthorizationSource) gives them to the connections of `mcp-vary-upstream`.
//!
//! Clock and randomness are arguments; terminal, browser and environment are the caller's. No `Debug` and no error contains a
//! token, code, key or secret. What authorization servers send is bounded before it is parsed.
//!
//! # Examples
//!
//! A server of a gateway gets the credentials of a service:
//!
//! ```
//! use std::sync::Arc;
//!
//! use http::header::AUTHORIZATION;
//! # use mcp_vary_base::environment::Environment;
//! use mcp_vary_login::address::Address;
//! use mcp_vary_login::credentials::Credentials;
//! use mcp_vary_login::secret::Secret;
//! use mcp_vary_login::service::{ServiceAuthentication, ServiceCredentials, ServiceSettings};
//! use mcp_vary_login::source::AuthorizationSource;
//! use mcp_vary_upstream::{Target, UpstreamConfig};
//!
//! # let environment = Environment::new(|| 0, |bytes| bytes.fill(0));
//! # let secret = || "secret";
//! let url = "https://search.example.com/mcp";
//! let authentication = ServiceAuthentication::Secret(Secret::new(secret()));
//! let settings = ServiceSettings::new(Address::parse(url)?, "vary".to_owned(), authentication);
//! let credentials = Credentials::Service(ServiceCredentials::new(settings, environment));
//! let source = AuthorizationSource::configured(credentials, "search".to_owned());
//! let server = UpstreamConfig::new("search", Target::http(url.parse()?))
//!     .with_credential(AUTHORIZATION, Arc::new(source));
//! assert!(!format!("{server:?}").contains("secret"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod address;
pub mod assertion;
mod authorization;
pub mod challenge;
mod client;
pub mod credentials;
mod device;
pub mod discovery;
pub mod error;
pub mod exchange;
mod form;
pub mod http_client;
mod keyring;
pub mod login;
pub mod redirect;
mod refusal;
pub mod registration;
pub mod scope;
pub mod seal;
pub mod secret;
pub mod service;
pub mod source;
pub mod store;
pub mod token;
pub mod user_agent;
