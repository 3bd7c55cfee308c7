//! The server's error, rewritten for the client.

use std::borrow::Cow;

use mcp_vary::error_code::{
    HEADER_MISMATCH, INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED,
};
use mcp_vary::json::{edit, to_map};
use mcp_vary_results::uri_rewriter;
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use serde_json::Map;

use super::response::ResponseContext;
use super::services::ExchangeServices;
use crate::mrtr;
use crate::pipeline::request::MethodAction;

impl ResponseContext {
    pub(crate) fn error_response(&self, error: &str, services: &ExchangeServices) -> Reply {
        let failure = RpcError::from_upstream_or_internal(error);
        if let Some(result) = self.url_required(&failure, services) {
            return response::result(&self.id, result.as_bytes());
        }
        let mut failure = self.upstream_error(failure);
        let is_named = !matches!(self.action, MethodAction::CallTool | MethodAction::Task(_));
        let concerns_item = is_named || failure.code() == RESOURCE_NOT_FOUND;
        let not_found = concerns_item && mcp_vary::error::concerns_identifier(failure.code());
        if not_found && let Some(variant) = &self.active_variant {
            let data = mcp_vary::error::with_active_variant(failure.data(), variant);
            failure = failure.with_data(data);
        }
        self.failed(&failure)
    }

    /// The server's error for the client, with the names of its variant.
    pub(super) fn upstream_error(&self, failure: RpcError) -> RpcError {
        let mut failure = self.rewrite_error(failure);
        if let Some(names) = &self.plan.names
            && let Cow::Owned(message) = names.rewrite(failure.message())
        {
            failure.set_message(message);
        }
        if let Some(uris) = &self.uris {
            uri_rewriter::rewrite_error(uris, &mut failure);
        }
        if let Some(task) = &self.plan.task
            && let Some(message) = task.rename_in_message(failure.message())
        {
            failure.set_message(message);
        }
        failure
    }

    /// The result that asks the client to visit URLs, if that is what the server's error requires.
    fn url_required(&self, failure: &RpcError, services: &ExchangeServices) -> Option<String> {
        let codec = self.plan.request_state.as_ref()?;
        let data = failure.data()?;
        let requires_url =
            failure.code() == URL_ELICITATION_REQUIRED && self.upstream == Era::Legacy;
        requires_url.then(|| {
            mrtr::url_required(
                data,
                codec,
                self.client.server_request_support(),
                &services.mrtr,
            )
        })?
    }

    /// Translates codes that have another meaning, or none, in the client's era, and errors about the gateway's own
    /// request.
    ///
    /// > Implementations of this protocol version MUST NOT emit these codes: `-32002`, `-32042`.
    /// > (MCP 2026-07-28, basic/index, "Error Codes")
    fn rewrite_error(&self, mut failure: RpcError) -> RpcError {
        let gateway_failure = |failure: &RpcError| {
            RpcError::internal(format!(
                "the server refused the gateway: {}",
                failure.message()
            ))
        };
        match (failure.code(), self.client.era()) {
            (RESOURCE_NOT_FOUND, Era::Modern) => failure.set_code(INVALID_PARAMS),
            (INVALID_PARAMS, Era::Legacy) if self.is_missing_resource() => {
                failure.set_code(RESOURCE_NOT_FOUND);
            }
            (HEADER_MISMATCH | UNSUPPORTED_VERSION, _)
            | (MISSING_CLIENT_CAPABILITY, Era::Legacy)
            | (URL_ELICITATION_REQUIRED, Era::Modern) => return gateway_failure(&failure),
            (MISSING_CLIENT_CAPABILITY, Era::Modern) if self.is_declared_missing(&failure) => {
                return gateway_failure(&failure);
            }
            _ => {}
        }
        failure
    }

    /// Whether `-32602` of the server means a missing resource: its era has no other code for that, and the gateway has
    /// checked that `uri` is a string.
    ///
    /// Source: MCP 2026-07-28, server/resources, "Error Handling".
    fn is_missing_resource(&self) -> bool {
        matches!(self.action, MethodAction::ReadResource) && self.upstream == Era::Modern
    }

    /// Whether the client declared the capabilities that the server misses, so that the gateway did not forward them.
    fn is_declared_missing(&self, failure: &RpcError) -> bool {
        let required = failure
            .data()
            .and_then(|data| edit::get(data, "requiredCapabilities"));
        let missing = required.and_then(|required| to_map(required).ok());
        let capabilities = self.client.capabilities.as_ref();
        let declares = |name: &str| capabilities.is_some_and(|declared| declared.contains(name));
        missing.is_some_and(|missing| {
            missing.iter().all(|(name, settings)| {
                let keys = settings.as_object().into_iter().flat_map(Map::keys);
                let mut inner = keys.map(|inner| format!("{name}/{inner}"));
                declares(name) && inner.all(|inner| declares(&inner))
            })
        })
    }
}
