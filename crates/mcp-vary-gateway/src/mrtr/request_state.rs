//! The states that clients carry from one round to the next: sealed, and bound to where they were made (SV-26).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::state::{Parameters, StateBinding, StateError, open, seal};
use mcp_vary::variant::VariantId;
use mcp_vary_wire::response::RpcError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mrtr::suspended::{Quota, QuotaKey};
use crate::pipeline::runtime::Services;

/// What a sealed state says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestState {
    /// The state of a modern server.
    Sealed { server: String, state: String },
    /// A call of a legacy server that waits at a gateway.
    Suspended { gateway: u64, call: u64 },
    /// What a legacy server wants visited before it is asked again.
    UrlVisit { server: String },
}

/// What a request is about, as the client wrote it.
#[derive(Clone)]
pub(crate) struct RequestBinding {
    /// The name of a tool or prompt, or a URI.
    pub(crate) name: String,
    /// JSON text.
    pub(crate) arguments: Option<Bytes>,
}

/// Without the arguments, which may hold secrets.
impl fmt::Debug for RequestBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl RequestBinding {
    fn parameters(&self) -> Parameters {
        let arguments = self.arguments.as_deref().map(String::from_utf8_lossy);
        Parameters::of_json(&self.name, arguments.as_deref()).unwrap_or_else(|_| {
            // What cannot be read, or by two readers differently, is the same only if it is written the same.
            let text = arguments.unwrap_or_default().into_owned();
            let arguments = Map::from_iter([(String::new(), Value::String(text))]);
            Parameters::of(&self.name, Some(&arguments))
        })
    }

    /// A key of the arguments that two readers may take for different values.
    pub(super) fn ambiguous_key(&self) -> Option<String> {
        let arguments = self.arguments.as_deref().map(String::from_utf8_lossy);
        let error = Parameters::of_json(&self.name, arguments.as_deref()).err()?;
        error.duplicate_key().map(str::to_owned)
    }
}

/// Seals the states of one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestStateCodec {
    pub(super) variant: VariantId,
    pub(super) method: &'static str,
    pub(super) principal: &'static str,
    /// Whose calls wait together.
    pub(super) owner: QuotaKey,
    pub(super) request: RequestBinding,
    /// The server that is asked.
    pub(super) server: Arc<str>,
    /// How long the client may take, where nothing waits for it.
    pub(super) lifetime: Duration,
    /// How many calls may wait for clients.
    pub(super) bounds: Quota,
}

impl RequestStateCodec {
    /// What the client is to send back.
    pub(super) fn seal(&self, lasting: &Services, state: &RequestState) -> String {
        let text = serde_json::to_string(state).unwrap_or_default();
        let lifetime = match state {
            RequestState::Suspended { .. } => lasting.pending_server_requests.timeout(),
            RequestState::Sealed { .. } | RequestState::UrlVisit { .. } => self.lifetime,
        };
        let expires = lasting.now().saturating_add(lifetime.as_secs());
        let parameters = self.request.parameters();
        seal(
            &lasting.cursor_keys,
            &self.binding(&parameters),
            &text,
            expires,
        )
    }

    /// Opens what a client sent back, JSON text.
    pub(super) fn open(&self, lasting: &Services, written: &str) -> Result<RequestState, RpcError> {
        let sealed: String = serde_json::from_str(written)
            .map_err(|_| RpcError::invalid_params("`requestState` must be a string"))?;
        let parameters = self.request.parameters();
        let binding = self.binding(&parameters);
        let opened = open(&lasting.cursor_keys, &binding, &sealed, lasting.now());
        let opened = opened.map_err(|error| {
            RpcError::invalid_params(match error {
                StateError::Expired => "Request state has expired; send the request without it",
                _ => "Invalid request state",
            })
        })?;
        serde_json::from_str(&opened).map_err(|_| RpcError::invalid_params("Invalid request state"))
    }

    fn binding<'a>(&'a self, parameters: &'a Parameters) -> StateBinding<'a> {
        StateBinding {
            variant: &self.variant,
            method: self.method,
            principal: self.principal,
            parameters,
        }
    }
}
