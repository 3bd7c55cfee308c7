//! The states that clients carry from one round trip to the next: sealed, and bound to their request (SV-26).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use mcp_vary::state::{Parameters, StateBinding, StateError, open, seal};
use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_wire::response::RpcError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::round_trip::{RoundTrip, missing_response};
use super::services::MrtrServices;
use super::suspended::Quota;
use mcp_vary_session::caller::sealed_principal;
use mcp_vary_session::client::QuotaKey;

/// The content of a sealed state.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestState {
    /// The state of a modern server.
    Sealed { server: String, state: String },
    /// The state of a modern server that is a program of this replica.
    Program {
        replica: u32,
        server: String,
        state: String,
    },
    /// A suspended call of a legacy server, and the gateway that has it.
    Suspended { gateway: u64, number: u64 },
    /// A legacy server wants a URL visited before the retry.
    UrlVisit { server: String },
}

/// What identifies a request, as the client wrote it.
#[derive(Clone)]
pub(crate) struct RequestBinding {
    /// The name of a tool or prompt, or a URI.
    pub(crate) name: String,
    /// JSON text.
    pub(crate) arguments: Option<Bytes>,
}

// Omits the arguments, which may hold secrets.
mcp_vary_base::debug_by_name!(RequestBinding);

impl RequestBinding {
    fn parameters(&self) -> Parameters {
        let arguments = self.arguments.as_deref().map(String::from_utf8_lossy);
        Parameters::of_json(&self.name, arguments.as_deref()).unwrap_or_else(|_| {
            // Text that cannot be read, or that two readers may read differently, is equal only to the same bytes.
            let text = arguments.unwrap_or_default().into_owned();
            let arguments = Map::from_iter([(String::new(), Value::String(text))]);
            Parameters::of(&self.name, Some(&arguments))
        })
    }

    /// A key of the arguments that two readers may take for different values.
    pub(crate) fn ambiguous_key(&self) -> Option<String> {
        let arguments = self.arguments.as_deref().map(String::from_utf8_lossy);
        let error = Parameters::of_json(&self.name, arguments.as_deref()).err()?;
        error.duplicate_key().map(str::to_owned)
    }
}

/// Seals the states of one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestStateCodec {
    pub(crate) variant: VariantId,
    pub(crate) method: &'static str,
    /// Who sent the request.
    pub(crate) principal: Option<Arc<Principal>>,
    /// Whose suspended calls count together.
    pub(crate) owner: QuotaKey,
    pub(crate) request: RequestBinding,
    /// The server of the request.
    pub(crate) server: Arc<str>,
    /// This replica, if the server is a program of it, and there are others.
    pub(crate) replica: Option<u32>,
    /// How long the client may take if no call is suspended.
    pub(crate) lifetime: Duration,
    /// How many calls may be suspended.
    pub(crate) quota: Quota,
}

impl RequestStateCodec {
    /// Seals a state for the client to send back.
    pub(super) fn seal(&self, services: &MrtrServices, state: &RequestState) -> String {
        let text = serde_json::to_string(state).unwrap_or_default();
        let lifetime = match state {
            RequestState::Suspended { .. } => services.pending_server_requests.timeout(),
            RequestState::Sealed { .. }
            | RequestState::Program { .. }
            | RequestState::UrlVisit { .. } => self.lifetime,
        };
        let expires = services.now().saturating_add(lifetime.as_secs());
        let parameters = self.request.parameters();
        seal(
            &services.cursor_keys,
            &self.binding(&parameters),
            &text,
            expires,
        )
    }

    /// Opens a state that a client sent back, JSON text.
    ///
    /// # Errors
    ///
    /// `-32602` when the state was not made for this request, or has expired.
    pub(crate) fn open(
        &self,
        services: &MrtrServices,
        written: &str,
    ) -> Result<RequestState, RpcError> {
        let sealed: String = serde_json::from_str(written)
            .map_err(|_| RpcError::invalid_params("`requestState` must be a string"))?;
        let parameters = self.request.parameters();
        let binding = self.binding(&parameters);
        let unsealed = open(&services.cursor_keys, &binding, &sealed, services.now());
        let opened = unsealed.map_err(|error| {
            RpcError::invalid_params(match error {
                StateError::Expired => "Request state has expired; send the request without it",
                _ => "Invalid request state",
            })
        })?;
        serde_json::from_str(&opened).map_err(|_| RpcError::invalid_params("Invalid request state"))
    }

    /// Which round trip a request with `state` is.
    ///
    /// # Errors
    ///
    /// `-32602` when the state is of another server; `-32603` when the call is suspended at another gateway.
    pub(crate) fn round_trip(
        &self,
        services: &MrtrServices,
        state: RequestState,
    ) -> Result<RoundTrip, RpcError> {
        match state {
            RequestState::Sealed { server, state }
            | RequestState::Program { server, state, .. }
                if server == *self.server =>
            {
                Ok(RoundTrip::Sealed(state))
            }
            RequestState::UrlVisit { server } if server == *self.server => {
                Ok(RoundTrip::UrlVisited)
            }
            RequestState::Sealed { .. }
            | RequestState::Program { .. }
            | RequestState::UrlVisit { .. } => Err(missing_response()),
            RequestState::Suspended { gateway, number } if gateway == services.instance => {
                Ok(RoundTrip::Suspended(number))
            }
            RequestState::Suspended { .. } => Err(RpcError::internal(
                "the call waits at another gateway, or was lost when that gateway restarted; \
                 send the request without `requestState`",
            )),
        }
    }

    fn binding<'a>(&'a self, parameters: &'a Parameters) -> StateBinding<'a> {
        StateBinding {
            variant: &self.variant,
            method: self.method,
            principal: sealed_principal(self.principal.as_ref()),
            parameters,
        }
    }
}

/// The tag of the replica that has what this state needs, as the client wrote the state: the suspended call, or the program.
///
/// It was not checked: the replica that it names opens it.
pub(crate) fn replica_of(written: &str) -> Option<u32> {
    let sealed = written.strip_prefix('"')?.strip_suffix('"')?;
    let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let begin = NAMING.iter().find_map(|begin| rfind(&bytes, begin))?;
    match serde_json::from_slice(&bytes[begin..]).ok()? {
        RequestState::Suspended { gateway, .. } => Some(mcp_vary_store::tag(gateway)),
        RequestState::Program { replica, .. } => Some(replica),
        RequestState::Sealed { .. } | RequestState::UrlVisit { .. } => None,
    }
}

fn rfind(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).rposition(|window| window == part)
}

/// How the texts of states begin that name a replica. Quotation marks in strings are escaped, so that each occurs only where
/// a text begins.
const NAMING: [&[u8]; 2] = [br#"{"suspended":"#, br#"{"program":"#];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(state: &str, replica: Option<u32>) {
        let sealed =
            URL_SAFE_NO_PAD.encode([b"\x01seal and variant 1000 ", state.as_bytes()].concat());
        assert_eq!(replica_of(&format!("\"{sealed}\"")), replica, "{state}");
    }

    #[test]
    fn the_state_of_a_suspended_call_or_of_a_program_names_its_replica_and_no_other_state_does() {
        let suspended = r#"{"suspended":{"gateway":4294967303,"number":1}}"#;
        names(suspended, Some(7));
        let quoted = serde_json::to_string(suspended).unwrap();
        names(
            &format!(r#"{{"sealed":{{"server":"a","state":{quoted}}}}}"#),
            None,
        );
        names(&suspended[..20], None);
        let program = format!(r#"{{"program":{{"replica":9,"server":"a","state":{quoted}}}}}"#);
        names(&program, Some(9));
        assert_eq!(replica_of("7"), None);
        assert_eq!(replica_of(r#""%""#), None);
    }
}
