//! Multi round-trip requests: a server asks for input before it answers, and the client retries with that input.
//!
//! What a modern server asks of a modern client passes in a result, its state [sealed](request_state); a legacy client
//! gets it as a [relayed](relay) request. What a legacy server asks of a modern client [suspends](suspended) the call
//! until the client retries.
//!
//! Source: MCP 2026-07-28, basic/patterns/mrtr; docs/decisions/0016-held-calls.md.

mod relay;
mod request_state;
mod required;
mod services;
mod suspended;

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary::json::{self, Members};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::{self, ELICIT, ServerRequestSupport};

pub(crate) use self::relay::{InputRelay, PendingInput, RelayEvent, answered, into_result};
use self::request_state::RequestState;
pub(crate) use self::request_state::{RequestBinding, RequestStateCodec};
use self::required::without_elicitation_id;
pub(crate) use self::required::{InputRequired, is_input_required, with_elicitation_id};
pub(crate) use self::services::MrtrServices;
pub(crate) use self::suspended::{InputRequests, Quota, SuspendedCall, SuspendedCalls};

pub(crate) const REQUEST_STATE: &str = "requestState";
pub(crate) const INPUT_REQUESTS: &str = "inputRequests";
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";

/// Which of its round trips a request is.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RoundTrip {
    /// Its method has none. Members with the same names may mean something else.
    Unsupported,
    /// Its client knows none.
    None,
    First,
    /// A retry with the state of a modern server.
    Sealed(String),
    /// A retry of the suspended call with this number.
    Suspended(u64),
    /// A retry after the client was asked to visit a URL.
    UrlVisited,
}

/// The client's responses to input requests, from their JSON text.
///
/// # Errors
///
/// `-32602` when the text is not an object of objects.
pub(crate) fn read_responses(written: Option<&str>) -> Result<Members<'_>, RpcError> {
    let written = written.unwrap_or("{}");
    let responses = Members::parse(written)
        .map_err(|why| RpcError::invalid_params(format!("`{INPUT_RESPONSES}`: {why}")))?;
    let mut values = responses.iter();
    if let Some((key, _)) = values.find(|(_, value)| !value.starts_with('{')) {
        let cut: String = key.chars().take(60).collect();
        let why = format!("`{INPUT_RESPONSES}.{cut}` must be an object");
        return Err(RpcError::invalid_params(why));
    }
    drop(values);
    Ok(responses)
}

fn missing_response() -> RpcError {
    RpcError::invalid_params(
        "the server that asked for input is not available any more; send the request without `requestState`",
    )
}

/// The error for a retry of a call that is no longer suspended.
pub(crate) fn unknown_suspended_call() -> RpcError {
    RpcError::invalid_params(
        "the call no longer waits for input: it went on, or was cancelled because the client did not retry in time; \
         send the request without `requestState`",
    )
}

impl RoundTrip {
    /// Sets in `params` the members that a server of `era` gets for this round trip.
    ///
    /// # Errors
    ///
    /// When the server speaks another era now, or the user declined to visit the server's URL.
    pub(crate) fn resume_request(self, params: &mut Params<'_>, era: Era) -> Result<(), RpcError> {
        match (self, era) {
            (Self::First, Era::Modern) | (Self::Unsupported, _) => Ok(()),
            (Self::Sealed(state), Era::Modern) => {
                params.members.set(REQUEST_STATE, json::string(&state));
                Ok(())
            }
            // A legacy server may mean something else by it.
            (Self::None, Era::Legacy) => Ok(()),
            // A legacy client knows none of this.
            (Self::None, Era::Modern) | (Self::First, Era::Legacy) => {
                params.members.remove(REQUEST_STATE);
                params.members.remove(INPUT_RESPONSES);
                Ok(())
            }
            (Self::UrlVisited, Era::Legacy) => {
                if !all_accepted(&read_responses(params.members.get(INPUT_RESPONSES))?) {
                    return Err(RpcError::internal(
                        "the server asked the user to visit a URL first, and the user declined",
                    ));
                }
                params.members.remove(REQUEST_STATE);
                params.members.remove(INPUT_RESPONSES);
                Ok(())
            }
            _ => Err(missing_response()),
        }
    }
}

fn all_accepted(responses: &Members<'_>) -> bool {
    let accepted = |response: &str| edit::get(response, "action") == Some(r#""accept""#);
    !responses.is_empty() && responses.iter().all(|(_, response)| accepted(response))
}

/// Checks the input requests in a server's description of a task.
///
/// # Errors
///
/// The server's fault, in words that follow its name.
pub(crate) fn validate_input_requests(
    task: &str,
    support: ServerRequestSupport,
) -> Result<(), String> {
    match edit::get(task, INPUT_REQUESTS) {
        None | Some("{}") => Ok(()),
        Some(_) => InputRequired::read(task)?.ensure_supported(support),
    }
}

/// A result that asks for input, for a modern client: its state is sealed, everything else is as the server wrote it.
///
/// # Errors
///
/// When the server sends requests that the client does not support.
pub(crate) fn seal_input_required(
    result: &str,
    codec: &RequestStateCodec,
    support: ServerRequestSupport,
    services: &MrtrServices,
) -> Result<String, RpcError> {
    let faulty = |why: String| RpcError::internal(format!("server `{}` {why}", codec.server));
    let required = InputRequired::read(result).map_err(faulty)?;
    required.ensure_supported(support).map_err(faulty)?;
    let named = with_server_name(result, &required, services.shown_name(&codec.server));
    let Some(state) = required.state else {
        return Ok(named.into_owned());
    };
    let state = RequestState::Sealed {
        server: codec.server.to_string(),
        state,
    };
    let sealed = json::string(&codec.seal(services, &state));
    Ok(edit::set(&named, REQUEST_STATE, &sealed).into_owned())
}

/// A result that asks for input, with the name of its server in each request.
fn with_server_name<'a>(
    result: &'a str,
    required: &InputRequired,
    server: Option<&str>,
) -> Cow<'a, str> {
    if server.is_none() {
        return Cow::Borrowed(result);
    }
    let mut result = Cow::Borrowed(result);
    for (key, request) in &required.requests {
        let Cow::Owned(params) =
            server_request_support::with_server_name(server, &request.method, &request.params)
        else {
            continue;
        };
        let requests = edit::get(&result, INPUT_REQUESTS).unwrap_or("{}");
        let request = edit::get(requests, key).unwrap_or("{}");
        let request = edit::set(request, "params", &params);
        let requests = edit::set(requests, key, &request).into_owned();
        result = Cow::Owned(edit::set(&result, INPUT_REQUESTS, &requests).into_owned());
    }
    result
}

/// The result that asks a modern client to visit the URLs of a legacy server's error, from the data of that error;
/// `None` if the client cannot be asked.
///
/// > When a request cannot be processed until an elicitation is completed, the server MAY return a
/// > `URLElicitationRequiredError` (code `-32042`). (MCP 2025-11-25, client/elicitation)
pub(crate) fn url_required(
    data: &str,
    codec: &RequestStateCodec,
    support: ServerRequestSupport,
    services: &MrtrServices,
) -> Option<String> {
    let elicitations = json::elements(edit::get(data, "elicitations")?).ok()?;
    let mut requests = Members::default();
    for (at, params) in elicitations.iter().enumerate() {
        let params = edit::set(params, "mode", r#""url""#);
        let params = without_elicitation_id(ELICIT, Some(&params))?;
        let params = server_request_support::with_server_name(
            services.shown_name(&codec.server),
            ELICIT,
            &params,
        );
        support.ensure_supported(ELICIT, &params).ok()?;
        let request = format!(r#"{{"method":"{ELICIT}","params":{params}}}"#);
        requests.set((at + 1).to_string(), request);
    }
    if requests.is_empty() {
        return None;
    }
    let state = RequestState::UrlVisit {
        server: codec.server.to_string(),
    };
    let (requests, state) = (
        requests.to_json(),
        json::string(&codec.seal(services, &state)),
    );
    Some(format!(
        r#"{{"resultType":"input_required","{INPUT_REQUESTS}":{requests},"{REQUEST_STATE}":{state}}}"#
    ))
}

/// Suspends `call` until its client retries. Returns the result that asks the client for input.
///
/// # Errors
///
/// When too many calls are suspended.
pub(crate) fn suspend<L: Send + 'static>(
    call: SuspendedCall<L>,
    codec: &RequestStateCodec,
    services: &MrtrServices,
    suspended_calls: &Arc<SuspendedCalls<L>>,
) -> Result<String, RpcError> {
    let requests = call.input.to_json(services.shown_name(&codec.server));
    let timeout = services.pending_server_requests.timeout();
    let number = suspended_calls.insert(call, codec.owner, codec.quota, timeout)?;
    let gateway = services.instance;
    let state = codec.seal(services, &RequestState::Suspended { gateway, number });
    let state = json::string(&state);
    Ok(format!(
        r#"{{"resultType":"input_required","{INPUT_REQUESTS}":{requests},"{REQUEST_STATE}":{state}}}"#
    ))
}
