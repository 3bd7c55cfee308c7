//! What most of these tests need, for one glob import.

pub(crate) use crate::clients::{all_keys, decide, gateway, published, verifier};
pub(crate) use mcp_vary_auth::address::EndpointPath;
pub(crate) use mcp_vary_auth::challenge::Refusal;
pub(crate) use mcp_vary_auth::key::ApiKey;
pub(crate) use mcp_vary_auth::refresh::KeysUnavailable;
pub(crate) use mcp_vary_auth::token::{InvalidToken, UnverifiedToken};
pub(crate) use mcp_vary_testkit::credentials::{
    ISSUER, KEY_OF_CI, NOW, OTHER_ISSUER, PUBLIC, bearer, good, keys,
};
pub(crate) use serde_json::Value;
