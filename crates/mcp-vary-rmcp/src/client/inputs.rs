//! Input-required results: what a server asks in the course of a request goes to the handler.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ClientResult, GetPromptRequest,
    GetPromptRequestParams, InputRequest, InputRequiredResult, InputResponses, ReadResourceRequest,
    ReadResourceRequestParams, RequestId, ServerRequest, ServerResult,
};
use rmcp::service::{RequestContext, ServiceError};
use serde_json::Value;

use super::Client;
use super::error::Error;
use super::request::Answered;

/// How many rounds a request may take.
const ROUNDS: usize = 10;

/// How long to wait before asking again, when the server only wants to be asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Params that can carry answers to what a server asked.
pub(super) trait Rounds: Clone {
    /// Whether the server is asked once more without a selector that it refuses.
    const FALLS_BACK: bool;
    fn request(&self) -> ClientRequest;
    fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>);
}

macro_rules! rounds {
    ($params:ident, $request:ident, $falls_back:literal) => {
        impl Rounds for $params {
            const FALLS_BACK: bool = $falls_back;

            fn request(&self) -> ClientRequest {
                ClientRequest::$request($request::new(self.clone()))
            }

            fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>) {
                self.input_responses = responses;
                self.request_state = state;
            }
        }
    };
}

// A call is never repeated: the same name may do another thing in another variant.
rounds!(CallToolRequestParams, CallToolRequest, false);
rounds!(GetPromptRequestParams, GetPromptRequest, false);
rounds!(ReadResourceRequestParams, ReadResourceRequest, true);

impl Client {
    /// Sends until the result is no request for input; every round selects the same variant.
    pub(super) async fn converse<P: Rounds>(
        &self,
        mut params: P,
        variant: Option<&VariantId>,
    ) -> Result<(ServerResult, Answered), Error> {
        let (mut result, answered) = match P::FALLS_BACK {
            true => self.send_or_fall_back(params.request(), variant).await?,
            false => (
                self.send(params.request(), variant).await?,
                Answered::AsAsked,
            ),
        };
        // What the server remembers between rounds belongs to the variant that answered.
        let variant = variant.filter(|_| answered == Answered::AsAsked);
        for _ in 0..ROUNDS {
            let ServerResult::InputRequiredResult(asked) = result else {
                return Ok((result, answered));
            };
            let (responses, state) = self.answer(asked).await?;
            params.answer(responses, state);
            result = self.send(params.request(), variant).await?;
        }
        let max_rounds = ROUNDS;
        Err(ServiceError::InputRequiredRoundsExceeded { max_rounds }.into())
    }

    async fn answer(
        &self,
        asked: InputRequiredResult,
    ) -> Result<(Option<InputResponses>, Option<String>), Error> {
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() {
            if asked.request_state.is_none() {
                return Err(ServiceError::UnexpectedResponse.into());
            }
            tokio::time::sleep(PAUSE).await;
            return Ok((None, asked.request_state));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = self.input(&key, request).await?;
            responses.insert(key, response);
        }
        Ok((Some(responses), asked.request_state))
    }

    /// The handler's answer to one request.
    async fn input(&self, key: &str, request: InputRequest) -> Result<Value, Error> {
        let request = match request {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(ServiceError::UnexpectedResponse.into()),
        };
        let id = RequestId::String(Arc::from(key));
        let context = RequestContext::new(id, self.peer().clone());
        let result = self.shared.handler.handle_request(request, context).await;
        let value = match result.map_err(ServiceError::McpError)? {
            ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
            ClientResult::ElicitResult(result) => serde_json::to_value(result),
            ClientResult::ListRootsResult(result) => serde_json::to_value(result),
            _ => return Err(ServiceError::UnexpectedResponse.into()),
        };
        Ok(value.map_err(|_| ServiceError::UnexpectedResponse)?)
    }
}
