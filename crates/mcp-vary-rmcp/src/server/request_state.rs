//! The state of requests with several round trips: sealed, bound to its request, and valid for a
//! limited time.

use mcp_vary::error::{Era, Identifier};
use mcp_vary::state::{Parameters, StateBinding, StateError, open, seal};
use mcp_vary::variant::VariantId;
use rmcp::ErrorData;
use rmcp::model::{InputRequiredResult, JsonObject};
use serde_json::json;

use super::features::era;
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::variant_set::VariantSet;

/// Seals and opens the state of one request.
pub(super) struct RequestStateCodec<'a> {
    variants: &'a VariantSet,
    variant: &'a VariantId,
    principal: String,
    method: &'static str,
    name: String,
    /// They are copied, because a digest takes longer, and few requests need it.
    arguments: Option<JsonObject>,
}

impl<'a> RequestStateCodec<'a> {
    /// The codec for a request that names `what`. `None` for servers without variants, and for
    /// legacy clients, whose requests have one round trip.
    pub(super) fn new(
        variants: Option<&'a VariantSet>,
        active: &SelectedHandler<'a>,
        what: &Identifier,
        arguments: Option<&JsonObject>,
        context: &Context,
    ) -> Option<Self> {
        let (variants, variant) = variants.zip(active.variant)?;
        if era(context) == Era::Legacy {
            return None;
        }
        let (method, name) = match what {
            Identifier::Tool(name) => ("tools/call", name),
            Identifier::Prompt(name) => ("prompts/get", name),
            Identifier::Resource(uri) => ("resources/read", uri),
            _ => return None,
        };
        Some(Self {
            variants,
            variant,
            principal: variants.principal(context),
            method,
            name: name.clone(),
            arguments: arguments.cloned(),
        })
    }

    /// Replaces the sealed state from the client by the handler's state.
    pub(super) fn open(&self, state: &mut Option<String>) -> McpResult<()> {
        let Some(sealed) = state.take() else {
            return Ok(());
        };
        let now = (self.variants.clock)();
        let parameters = self.parameters();
        let opened = open(
            &self.variants.keys,
            &self.binding(&parameters),
            &sealed,
            now,
        )
        .map_err(|error| {
            let message = match error {
                StateError::Expired => "Request state has expired",
                _ => "Invalid request state",
            };
            ErrorData::invalid_params(message, Some(json!({"activeVariant": self.variant})))
        })?;
        *state = Some(opened);
        Ok(())
    }

    /// Seals the handler's state for the client.
    pub(super) fn seal(&self, result: &mut InputRequiredResult) {
        if let Some(state) = &mut result.request_state {
            let lifetime = self.variants.state_lifetime.as_secs();
            let expires = (self.variants.clock)().saturating_add(lifetime);
            let parameters = self.parameters();
            *state = seal(
                &self.variants.keys,
                &self.binding(&parameters),
                state,
                expires,
            );
        }
    }

    fn parameters(&self) -> Parameters {
        Parameters::of(&self.name, self.arguments.as_ref())
    }

    fn binding<'b>(&'b self, parameters: &'b Parameters) -> StateBinding<'b> {
        StateBinding {
            variant: self.variant,
            method: self.method,
            principal: &self.principal,
            parameters,
        }
    }
}

/// Replaces the sealed state by the handler's. If no state can have been sealed, the handler gets
/// none.
pub(super) fn open_state(
    active: &SelectedHandler<'_>,
    codec: Option<&RequestStateCodec<'_>>,
    state: &mut Option<String>,
) -> McpResult<()> {
    match codec {
        Some(codec) => codec.open(state),
        None => {
            state.take_if(|_| active.variant.is_some());
            Ok(())
        }
    }
}

/// Seals the state of `result`, unless there is no codec.
pub(super) fn seal_state(
    codec: Option<&RequestStateCodec<'_>>,
    mut result: InputRequiredResult,
) -> InputRequiredResult {
    if let Some(codec) = codec {
        codec.seal(&mut result);
    }
    result
}
