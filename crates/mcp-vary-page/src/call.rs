//! The same call of a tool by several clients.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::StatusCode;
use mcp_vary::json::Members;
use mcp_vary_gateway::{ClientCall, ClientDescription, ClientResponse, Gateway};
use mcp_vary_tokens::count;
use mcp_vary_view::derive::is_read_only;
use mcp_vary_view::model_result;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::explain::Question;
use crate::response::{PageAnswer, json as json_answer};

/// Calls of the operator.
#[derive(Debug)]
pub(crate) struct Calls {
    are_allowed: bool,
    /// The requests that may be answered at once.
    places: Semaphore,
}

/// What a client got of a call.
#[derive(Debug)]
pub(crate) struct Called {
    name: String,
    response: ClientResponse,
    duration: Duration,
}

/// What the page sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    server: String,
    tool: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    clients: Vec<Question<'a>>,
    #[serde(default)]
    confirmed: bool,
}

impl Calls {
    pub(crate) const fn new(are_allowed: bool) -> Self {
        Self {
            are_allowed,
            places: Semaphore::const_new(MAX_REQUESTS),
        }
    }

    pub(crate) const fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    /// Calls a tool as each client of `POST /api/call`.
    ///
    /// # Errors
    ///
    /// The response to a request that calls nothing.
    pub(crate) async fn call(
        &self,
        gateway: &Gateway,
        body: &Bytes,
    ) -> Result<Vec<Called>, (StatusCode, String)> {
        if !self.are_allowed {
            return Err((StatusCode::FORBIDDEN, CALLS_ARE_OFF.to_owned()));
        }
        let _place = self.places.try_acquire().map_err(|_| {
            let why = "other calls of this page are not answered yet; try again when they are";
            (StatusCode::TOO_MANY_REQUESTS, why.to_owned())
        })?;
        let invalid = |why: String| (StatusCode::BAD_REQUEST, why);
        let request: Request<'_> = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("the request: {error}")))?;
        let clients = request.clients().map_err(invalid)?;
        check_tool(gateway, &request)?;
        // A call that has begun cannot be taken back, so all clients are read before the first one calls.
        for (name, client) in &clients {
            let read = gateway.explain_client(client);
            read.map_err(|why| invalid(format!("`{name}`: {why}")))?;
        }
        let call = ClientCall {
            server: &request.server,
            tool: &request.tool,
            arguments: request.arguments.map_or("{}", RawValue::get),
        };
        let calls = clients
            .into_iter()
            .map(|(name, client)| call_as(gateway, name, client, call));
        try_join_all(calls).await.map_err(invalid)
    }
}

impl Request<'_> {
    /// The clients with their names.
    fn clients(&self) -> Result<Vec<(String, ClientDescription)>, String> {
        if !(1..=MAX_CLIENTS).contains(&self.clients.len()) {
            return Err(format!("`clients` must have 1 to {MAX_CLIENTS} clients"));
        }
        let clients = self.clients.iter().enumerate().map(|(at, client)| {
            let described = client.description();
            let description = described.map_err(|why| format!("`clients[{at}]`: {why}"))?;
            let number = || format!("client {}", at + 1);
            Ok((client.name.clone().unwrap_or_else(number), description))
        });
        clients.collect()
    }
}

/// The response to `POST /api/call`. It counts tokens: call it where nothing else waits.
pub(crate) fn respond(called: &[Called]) -> PageAnswer {
    let clients = called.iter().map(to_json);
    json_answer(&json!({"clients": clients.collect::<Value>()}))
}

/// Whether the tool exists, and may be called without a confirmation.
fn check_tool(gateway: &Gateway, request: &Request<'_>) -> Result<(), (StatusCode, String)> {
    let server = &request.server;
    let tool = &request.tool;
    let mut listed = gateway.server_tools(server).into_iter();
    let Some((_, definition)) = listed.find(|(name, _)| name == tool) else {
        let why = format!("`tool`: no server `{server}` lists a tool `{tool}` now");
        return Err((StatusCode::NOT_FOUND, why));
    };
    if request.confirmed || is_read_only(&definition) {
        return Ok(());
    }
    let why = format!(
        "`{tool}` is not declared as `readOnlyHint: true`, so it may change something; send `confirmed: true` to call it anyway"
    );
    Err((StatusCode::CONFLICT, why))
}

async fn call_as(
    gateway: &Gateway,
    name: String,
    client: ClientDescription,
    call: ClientCall<'_>,
) -> Result<Called, String> {
    let begun = Instant::now();
    let response = gateway.call_as_client(&client, call).await;
    Ok(Called {
        response: response.map_err(|why| format!("`{name}`: {why}"))?,
        name,
        duration: begun.elapsed(),
    })
}

fn to_json(called: &Called) -> Value {
    let mut shown = json!({
        "name": called.name,
        "variant": called.response.variant,
        "tool": called.response.name,
        "bytes": 0,
        "tokens": 0,
        "ms": (called.duration.as_secs_f64() * 1_000_000.0).round() / 1000.0,
    });
    let text = match &called.response.response {
        Ok(response) => String::from_utf8_lossy(response),
        Err(why) => {
            shown["error"] = json!(why);
            return shown;
        }
    };
    let members = Members::parse(&text).unwrap_or_default();
    if let Some(result) = members.get("result") {
        let texts = model_result(result).unwrap_or_else(|| vec![result.to_owned()]);
        shown["bytes"] = json!(result.len());
        shown["tokens"] = json!(texts.iter().map(|text| count(text)).sum::<usize>());
        shown["result"] = serde_json::from_str(result).unwrap_or(Value::Null);
    } else {
        let error = members.get("error").unwrap_or_default();
        let given = Members::parse(error).unwrap_or_default().get_str("message");
        let message = given.unwrap_or_else(|| "the response cannot be read".to_owned());
        shown["bytes"] = json!(error.len());
        shown["tokens"] = json!(count(&message));
        shown["error"] = json!(message);
    }
    shown
}

/// The most clients of one request.
const MAX_CLIENTS: usize = 8;
/// The most requests that are answered at once.
const MAX_REQUESTS: usize = 2;
const CALLS_ARE_OFF: &str = "calls from this page are off; write `admin-calls: on` into the configuration, and start Vary again";
