//! The results that ask a modern client for input.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::{self, Members, edit};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::{self, ELICIT, ServerRequestSupport};

use super::request_state::{RequestState, RequestStateCodec};
use super::required::{INPUT_REQUESTS, InputRequired, REQUEST_STATE, without_elicitation_id};
use super::services::MrtrServices;
use super::suspended::{SuspendedCall, SuspendedCalls};

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
    let server = codec.server.to_string();
    let state = match codec.replica {
        Some(replica) => RequestState::Program {
            replica,
            server,
            state,
        },
        None => RequestState::Sealed { server, state },
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
        let request = json::object(&[("method", &json::string(ELICIT)), ("params", &params)]);
        requests.set((at + 1).to_string(), request);
    }
    if requests.is_empty() {
        return None;
    }
    let state = RequestState::UrlVisit {
        server: codec.server.to_string(),
    };
    let sealed = codec.seal(services, &state);
    Some(input_required(&requests.to_json(), &sealed))
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
    Ok(input_required(&requests, &state))
}

/// The result that asks the client for input.
fn input_required(requests: &str, state: &str) -> String {
    json::object(&[
        ("resultType", r#""input_required""#),
        (INPUT_REQUESTS, requests),
        (REQUEST_STATE, &json::string(state)),
    ])
}
