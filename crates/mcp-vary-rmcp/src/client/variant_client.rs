//! Requests in one variant.

use std::time::Duration;

use mcp_vary::variant::VariantId;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest,
    CompleteRequest, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
    GetPromptResult, Prompt, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceTemplate, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::ServiceError;

use super::choice::Choice;
use super::error::Error;
use super::list::VariantList;
use super::request::AnsweredBy;
use super::variant_subscription::VariantSubscription;
use super::{Client, Offers};

/// A client that is bound to one variant: every request selects it.
///
/// Cheap to clone. Several of them can share a [`Client`] and be used at the same time.
///
/// # What happens when the server refuses the variant
///
/// Lists, reads and completions are sent once more without a selector, so the server's default
/// answers; a list [reports this](VariantList::is_fallback). Calls, prompts and subscriptions fail
/// with [`Error::VariantRejected`]: the same name may mean something else in another variant.
#[derive(Clone, Debug)]
pub struct VariantClient {
    client: Client,
    choice: Choice,
}

impl VariantClient {
    pub(super) fn new(client: Client, choice: Choice) -> Self {
        Self { client, choice }
    }

    /// The variant, and the reason for the choice.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The variant that every request selects; `None` if no selector is sent.
    pub fn variant(&self) -> Option<&VariantId> {
        self.choice.variant.as_ref()
    }

    /// The client that this belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// All tools.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn tools(&self) -> Result<VariantList<Tool>, Error> {
        self.client.list(self.variant()).await
    }

    /// All prompts.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn prompts(&self) -> Result<VariantList<Prompt>, Error> {
        self.client.list(self.variant()).await
    }

    /// All resources.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn resources(&self) -> Result<VariantList<Resource>, Error> {
        self.client.list(self.variant()).await
    }

    /// All resource templates.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn resource_templates(&self) -> Result<VariantList<ResourceTemplate>, Error> {
        self.client.list(self.variant()).await
    }

    /// Calls a tool. The handler that [`DeclaringClient`](super::DeclaringClient) wraps answers the
    /// server's input requests.
    ///
    /// The call is sent once, and never in another variant.
    ///
    /// # Errors
    ///
    /// When the request fails, the variant is rejected, or the server creates a task: see
    /// [`call_tool_once`](Self::call_tool_once).
    pub async fn call_tool(&self, params: CallToolRequestParams) -> Result<CallToolResult, Error> {
        match self
            .client
            .send_with_inputs(params, self.variant())
            .await?
            .0
        {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// Calls a tool, and returns input requests and tasks to the caller.
    ///
    /// # Errors
    ///
    /// When the request fails, or the variant is rejected.
    pub async fn call_tool_once(
        &self,
        params: CallToolRequestParams,
    ) -> Result<CallToolResponse, Error> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.client.send(request, self.variant()).await? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => {
                Ok(CallToolResponse::InputRequired(result))
            }
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// Gets a prompt with its arguments filled in.
    ///
    /// # Errors
    ///
    /// When the request fails, or the variant is rejected.
    pub async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResult, Error> {
        match self
            .client
            .send_with_inputs(params, self.variant())
            .await?
            .0
        {
            ServerResult::GetPromptResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn read_resource(&self, uri: impl Into<String>) -> Result<ReadResourceResult, Error> {
        let uri = uri.into();
        let reads = &self.client.state.cache.contents;
        let key = (self.variant().cloned(), uri.clone());
        let generation = match reads.get(&key) {
            Ok(result) => return Ok(result),
            Err(generation) => generation,
        };
        let params = ReadResourceRequestParams::new(uri);
        let (result, answered) = self.client.send_with_inputs(params, self.variant()).await?;
        let ServerResult::ReadResourceResult(result) = result else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        // Do not cache an answer of the default for this variant.
        if answered == AnsweredBy::SelectedVariant {
            let time = Duration::from_millis(result.ttl_ms.unwrap_or_default());
            reads.insert(key, result.clone(), time, generation);
        }
        Ok(result)
    }

    /// Completes an argument.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn complete(&self, params: CompleteRequestParams) -> Result<CompleteResult, Error> {
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        let (result, _) = self
            .client
            .send_or_fall_back(request, self.variant())
            .await?;
        match result {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// Listens for changes in this variant on a modern connection, until the returned subscription
    /// is dropped.
    ///
    /// The handler that [`DeclaringClient`](super::DeclaringClient) wraps receives them, and they
    /// invalidate the cache. The SDK's own `Peer::listen` cannot send a selector (rmcp 3.8,
    /// `service/client.rs`), so it listens to the server's default.
    ///
    /// ```
    /// use mcp_vary_rmcp::client::{Error, VariantClient, VariantSubscription};
    /// use rmcp::model::SubscriptionFilter;
    ///
    /// async fn watch(client: &VariantClient) -> Result<VariantSubscription, Error> {
    ///     let changes = SubscriptionFilter::builder().tools_list_changed().build();
    ///     client.listen(changes).await // until the subscription is dropped
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// When the request fails before the server acknowledges it, or the variant is rejected.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<VariantSubscription, Error> {
        VariantSubscription::start(&self.client, filter, self.variant()).await
    }

    /// The variants that the server advertises.
    pub fn offers(&self) -> std::sync::Arc<Offers> {
        self.client.offers()
    }
}
