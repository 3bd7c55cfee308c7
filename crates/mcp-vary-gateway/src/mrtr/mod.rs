//! Requests that take several rounds: what a server asks before it answers, and how the client comes back.
//!
//! A modern server's question to a modern client passes in a result, its state [sealed](state); to a legacy client
//! it is [relayed](relay) as a request. A legacy server's question to a modern client [holds](held) its call until
//! the client comes back.
//!
//! Source: MCP 2026-07-28, basic/patterns/mrtr; docs/decisions/0016-held-calls.md.

mod relay;
mod request_state;
mod required;
mod suspended;

use std::borrow::Cow;

use mcp_vary::json::{self, Members};
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};

use crate::pipeline::methods::RequestContext;
use crate::pipeline::router::MethodAction;
use crate::pipeline::runtime::Services;
use mcp_vary::json::edit;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::refusal::ParamsError;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::{self, ELICIT, ServerRequestSupport};

pub(crate) use self::relay::{InputRelay, PendingInput, RelayEvent, answered, into_result};
use self::required::without_elicitation_id;
pub(crate) use self::required::{InputRequired, is_input_required, with_elicitation_id};
use crate::mrtr::request_state::RequestState;
pub(crate) use crate::mrtr::request_state::{RequestBinding, RequestStateCodec};
pub(crate) use crate::mrtr::suspended::{
    InputRequests, Quota, QuotaKey, SuspendedCall, SuspendedCalls,
};

const REQUEST_STATE: &str = "requestState";
pub(crate) const INPUT_REQUESTS: &str = "inputRequests";
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";

/// In which round a request is.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RoundTrip {
    /// It is of a method without rounds, which may mean something else by the same words.
    Foreign,
    /// Its client knows none.
    None,
    First,
    /// A later one, with the state of a modern server.
    Sealed(String),
    /// A later one of a call that waits under this number.
    Suspended(u64),
    /// A later one, after the client was shown what to visit.
    UrlVisited,
}

impl MethodAction {
    /// The method, when its requests may take several rounds.
    ///
    /// > Servers MUST NOT send `InputRequiredResult` responses on any other client requests.
    /// > (MCP 2026-07-28, basic/patterns/mrtr, "Supported Requests")
    pub(crate) const fn can_ask_for_input(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("tools/call"),
            Self::ReadResource => Some("resources/read"),
            Self::GetPrompt => Some("prompts/get"),
            _ => None,
        }
    }
}

impl RequestContext<'_> {
    /// What the request is about, in the client's own words, which is what a state of it is bound to; nothing
    /// for legacy clients, whose requests have no second round.
    pub(crate) fn request_binding(&self, name: &str) -> Option<RequestBinding> {
        let is_modern = self.client.era() == Era::Modern;
        let arguments = self.request.params.members.get("arguments");
        is_modern.then(|| RequestBinding {
            name: name.to_owned(),
            arguments: arguments.map(|arguments| self.request.retain(arguments)),
        })
    }

    /// What seals the states of a request for `subject`.
    pub(crate) fn request_state_codec(
        &self,
        view: ViewIndex,
        server: ServerIndex,
        subject: Option<RequestBinding>,
    ) -> Option<RequestStateCodec> {
        let gateway = self.snapshot;
        let limits = &gateway.config.limits;
        Some(RequestStateCodec {
            variant: gateway.variant_id(view).clone(),
            method: self.action.can_ask_for_input()?,
            principal: self.client.principal(),
            owner: (self.client.principal(), self.client.connection),
            request: subject?,
            server: self.server_name(server),
            lifetime: limits.state_lifetime,
            bounds: Quota::of(limits),
        })
    }

    /// In which round the request is, by the state that came with it.
    ///
    /// # Errors
    ///
    /// `-32602` when the state was not made for this request, or its time is over; `-32603` when it was made by
    /// another gateway whose call waits there.
    pub(crate) fn round_trip(
        &self,
        view: ViewIndex,
        seal: Option<&RequestStateCodec>,
    ) -> Result<RoundTrip, RpcError> {
        if self.action.can_ask_for_input().is_none() {
            return Ok(RoundTrip::Foreign);
        }
        let Some(seal) = seal else {
            return Ok(RoundTrip::None);
        };
        let Some(sealed) = self.request.params.members.get(REQUEST_STATE) else {
            return Ok(RoundTrip::First);
        };
        let lasting = &self.snapshot.services;
        if let Some(key) = seal.request.ambiguous_key() {
            let failure = ParamsError::ambiguous(&key).into_counted_error(&lasting.counters);
            return Err(self.with_active_variant(view, failure));
        }
        let opened = seal.open(lasting, sealed);
        let opened = opened.map_err(|failure| self.with_active_variant(view, failure))?;
        match opened {
            RequestState::Sealed { server, state } if server == *seal.server => {
                Ok(RoundTrip::Sealed(state))
            }
            RequestState::UrlVisit { server } if server == *seal.server => {
                Ok(RoundTrip::UrlVisited)
            }
            RequestState::Sealed { .. } | RequestState::UrlVisit { .. } => Err(missing_response()),
            RequestState::Suspended { gateway, call } if gateway == lasting.instance => {
                Ok(RoundTrip::Suspended(call))
            }
            RequestState::Suspended { .. } => Err(RpcError::internal(
                "the call waits at another gateway, or was lost with one that was started again; \
                 send the request without `requestState`",
            )),
        }
    }

    /// What the client says to what it was asked.
    ///
    /// # Errors
    ///
    /// `-32602` when that is no object of objects.
    pub(crate) fn responses(&self) -> Result<Members<'_>, RpcError> {
        responses(&self.request.params)
    }
}

fn responses<'a>(params: &'a Params<'_>) -> Result<Members<'a>, RpcError> {
    read_responses(params.members.get(INPUT_RESPONSES))
}

/// What a client says to what it was asked, from its JSON text.
///
/// # Errors
///
/// `-32602` when that is no object of objects.
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
        "what asked for input is not there any more; send the request without `requestState`",
    )
}

/// The failure of a client that comes back to a call that does not wait any more.
pub(crate) fn unknown_suspended_call() -> RpcError {
    RpcError::invalid_params(
        "the call does not wait for input any more: it went on, or was cancelled since nobody came back in time; \
         send the request without `requestState`",
    )
}

impl RoundTrip {
    /// Puts into `params` what a server of `era` is to get of the round.
    ///
    /// # Errors
    ///
    /// When the server is of another era now, or the client would not visit what the server wants visited.
    pub(crate) fn resume_request(self, params: &mut Params<'_>, era: Era) -> Result<(), RpcError> {
        match (self, era) {
            (Self::First, Era::Modern) | (Self::Foreign, _) => Ok(()),
            (Self::Sealed(state), Era::Modern) => {
                params.members.set(REQUEST_STATE, json::string(&state));
                Ok(())
            }
            // A legacy server may mean something else by it.
            (Self::None, Era::Legacy) => Ok(()),
            // Nothing of it is known to a legacy client.
            (Self::None, Era::Modern) | (Self::First, Era::Legacy) => {
                params.members.remove(REQUEST_STATE);
                params.members.remove(INPUT_RESPONSES);
                Ok(())
            }
            (Self::UrlVisited, Era::Legacy) => {
                if !all_accepted(&responses(params)?) {
                    return Err(RpcError::internal(
                        "the server wants an address visited first, and the user would not",
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

/// Refuses what a server asks in what it says of a task, where it must not.
///
/// # Errors
///
/// What the server does wrong, to be said after its name.
pub(crate) fn validate_input_requests(
    task: &str,
    askable: ServerRequestSupport,
) -> Result<(), String> {
    match edit::get(task, INPUT_REQUESTS) {
        None | Some("{}") => Ok(()),
        Some(_) => InputRequired::read(task)?.ensure_supported(askable),
    }
}

/// What a result that asks for input becomes for a modern client: its state is sealed, everything else is as the
/// server wrote it.
///
/// # Errors
///
/// When the server asks what it must not ask.
pub(crate) fn seal_input_required(
    result: &str,
    seal: &RequestStateCodec,
    askable: ServerRequestSupport,
    lasting: &Services,
) -> Result<String, RpcError> {
    let faulty = |why: String| RpcError::internal(format!("server `{}` {why}", seal.server));
    let required = InputRequired::read(result).map_err(faulty)?;
    required.ensure_supported(askable).map_err(faulty)?;
    let named = named(
        result,
        &required,
        lasting.pending_server_requests.server_name(&seal.server),
    );
    let Some(state) = required.state else {
        return Ok(named.into_owned());
    };
    let state = RequestState::Sealed {
        server: seal.server.to_string(),
        state,
    };
    let sealed = json::string(&seal.seal(lasting, &state));
    Ok(edit::set(&named, REQUEST_STATE, &sealed).into_owned())
}

/// A result that asks for input, with the name of its server in each request.
fn named<'a>(result: &'a str, required: &InputRequired, asker: Option<&str>) -> Cow<'a, str> {
    if asker.is_none() {
        return Cow::Borrowed(result);
    }
    let mut result = Cow::Borrowed(result);
    for (key, asked) in &required.requests {
        let Cow::Owned(params) =
            server_request_support::with_server_name(asker, &asked.method, &asked.params)
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

/// The result that asks a modern client to visit what a legacy server wants visited, by the data of its error;
/// `None` where that cannot be asked.
///
/// > When a request cannot be processed until an elicitation is completed, the server MAY return a
/// > `URLElicitationRequiredError` (code `-32042`). (MCP 2025-11-25, client/elicitation)
pub(crate) fn url_required(
    data: &str,
    seal: &RequestStateCodec,
    askable: ServerRequestSupport,
    lasting: &Services,
) -> Option<String> {
    let elicitations = json::elements(edit::get(data, "elicitations")?).ok()?;
    let mut requests = Members::default();
    for (at, params) in elicitations.iter().enumerate() {
        let params = edit::set(params, "mode", r#""url""#);
        let params = without_elicitation_id(ELICIT, Some(&params))?;
        let params = server_request_support::with_server_name(
            lasting.pending_server_requests.server_name(&seal.server),
            ELICIT,
            &params,
        );
        askable.ensure_supported(ELICIT, &params).ok()?;
        let request = format!(r#"{{"method":"{ELICIT}","params":{params}}}"#);
        requests.set((at + 1).to_string(), request);
    }
    if requests.is_empty() {
        return None;
    }
    let state = RequestState::UrlVisit {
        server: seal.server.to_string(),
    };
    let (requests, state) = (
        requests.to_json(),
        json::string(&seal.seal(lasting, &state)),
    );
    Some(format!(
        r#"{{"resultType":"input_required","{INPUT_REQUESTS}":{requests},"{REQUEST_STATE}":{state}}}"#
    ))
}

/// Lets `call` wait for a client, and returns the result that asks the client.
///
/// # Errors
///
/// When too many calls wait.
pub(crate) fn suspend(
    call: SuspendedCall,
    seal: &RequestStateCodec,
    lasting: &std::sync::Arc<Services>,
) -> Result<String, RpcError> {
    let (gateway, asked) = (lasting.instance, {
        let asker = lasting.pending_server_requests.server_name(&seal.server);
        call.input.to_json(asker)
    });
    let call = lasting
        .suspended_calls
        .insert(call, seal.owner, seal.bounds, lasting)?;
    let state = seal.seal(lasting, &RequestState::Suspended { gateway, call });
    let state = json::string(&state);
    Ok(format!(
        r#"{{"resultType":"input_required","{INPUT_REQUESTS}":{asked},"{REQUEST_STATE}":{state}}}"#
    ))
}
