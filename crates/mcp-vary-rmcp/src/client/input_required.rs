//! Input-required results: the handler answers the server's input requests.

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
use super::request::AnsweredBy;

/// The largest number of round trips of one request.
const MAX_ROUNDS: usize = 10;

/// The pause before a retry, when the server asks only for a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Request params that can carry responses to input requests.
pub(super) trait InputParams: Clone {
    /// Whether the request is sent again without the selector if the server rejects it.
    const MAY_FALL_BACK: bool;
    fn request(&self) -> ClientRequest;
    fn set_responses(&mut self, responses: Option<InputResponses>, state: Option<String>);
}

macro_rules! input_params {
    ($params:ident, $request:ident, $may_fall_back:literal) => {
        impl InputParams for $params {
            const MAY_FALL_BACK: bool = $may_fall_back;

            fn request(&self) -> ClientRequest {
                ClientRequest::$request($request::new(self.clone()))
            }

            fn set_responses(&mut self, responses: Option<InputResponses>, state: Option<String>) {
                self.input_responses = responses;
                self.request_state = state;
            }
        }
    };
}

// A call is never repeated: the same name may do something else in another variant.
input_params!(CallToolRequestParams, CallToolRequest, false);
input_params!(GetPromptRequestParams, GetPromptRequest, false);
input_params!(ReadResourceRequestParams, ReadResourceRequest, true);

impl Client {
    /// Sends the request until the server has no more input requests. Every round trip selects the
    /// same variant.
    pub(super) async fn send_with_inputs<P: InputParams>(
        &self,
        mut params: P,
        variant: Option<&VariantId>,
    ) -> Result<(ServerResult, AnsweredBy), Error> {
        let (mut result, answered) = if P::MAY_FALL_BACK {
            self.send_or_fall_back(params.request(), variant).await?
        } else {
            (
                self.send(params.request(), variant).await?,
                AnsweredBy::SelectedVariant,
            )
        };
        // The request state belongs to the variant that answered.
        let is_of_variant = answered == AnsweredBy::SelectedVariant;
        let answering = if is_of_variant { variant } else { None };
        for _ in 0..MAX_ROUNDS {
            let ServerResult::InputRequiredResult(required) = result else {
                return Ok((result, answered));
            };
            let (responses, state) = self.respond(required).await?;
            params.set_responses(responses, state);
            result = self.send(params.request(), answering).await?;
        }
        let max_rounds = MAX_ROUNDS;
        Err(ServiceError::InputRequiredRoundsExceeded { max_rounds }.into())
    }

    async fn respond(
        &self,
        required: InputRequiredResult,
    ) -> Result<(Option<InputResponses>, Option<String>), Error> {
        let requests = required.input_requests.unwrap_or_default();
        if requests.is_empty() {
            if required.request_state.is_none() {
                return Err(ServiceError::UnexpectedResponse.into());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            return Ok((None, required.request_state));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = self.request_input(&key, request).await?;
            responses.insert(key, response);
        }
        Ok((Some(responses), required.request_state))
    }

    /// The handler's response to one input request.
    async fn request_input(&self, key: &str, request: InputRequest) -> Result<Value, Error> {
        let request = match request {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(ServiceError::UnexpectedResponse.into()),
        };
        let id = RequestId::String(Arc::from(key));
        let context = RequestContext::new(id, self.peer().clone());
        let result = self.state.handler.handle_request(request, context).await;
        let value = match result.map_err(ServiceError::McpError)? {
            ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
            ClientResult::ElicitResult(result) => serde_json::to_value(result),
            ClientResult::ListRootsResult(result) => serde_json::to_value(result),
            _ => return Err(ServiceError::UnexpectedResponse.into()),
        };
        Ok(value.map_err(|_| ServiceError::UnexpectedResponse)?)
    }
}
