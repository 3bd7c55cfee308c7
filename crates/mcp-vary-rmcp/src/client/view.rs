//! A view: a server as it is in one variant.

use std::time::Duration;

use mcp_vary::variant::VariantId;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest,
    CompleteRequest, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
    GetPromptResult, Prompt, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceTemplate, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::ServiceError;

use super::choose::Choice;
use super::error::Error;
use super::list::Listed;
use super::listen::Listening;
use super::request::Answered;
use super::{Client, Offers};

/// A server in one variant: every request made here selects it.
///
/// Cheap to clone; many views of one client can be used side by side.
///
/// # What happens when the server refuses the variant
///
/// Lists, reads and completions are asked once more without a selector, so they answer in the
/// server's default; a list [says so](Listed::fell_back). Calls, prompts and subscriptions fail with
/// [`Error::Refused`]: the same name may mean something else in another variant.
#[derive(Clone, Debug)]
pub struct View {
    client: Client,
    choice: Choice,
}

impl View {
    pub(super) fn new(client: Client, choice: Choice) -> Self {
        Self { client, choice }
    }

    /// The variant, and why it was chosen.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The variant that every request selects; none when no selector is sent.
    #[must_use]
    pub fn variant(&self) -> Option<&VariantId> {
        self.choice.variant.as_ref()
    }

    /// The client that this is a view of.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// All tools.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn tools(&self) -> Result<Listed<Tool>, Error> {
        self.client.list(self.variant()).await
    }

    /// All prompts.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn prompts(&self) -> Result<Listed<Prompt>, Error> {
        self.client.list(self.variant()).await
    }

    /// All resources.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn resources(&self) -> Result<Listed<Resource>, Error> {
        self.client.list(self.variant()).await
    }

    /// All resource templates.
    ///
    /// # Errors
    ///
    /// When the request fails, or the list does not end.
    pub async fn resource_templates(&self) -> Result<Listed<ResourceTemplate>, Error> {
        self.client.list(self.variant()).await
    }

    /// Calls a tool; what the server asks meanwhile goes to the handler that [`Declaring`](super::Declaring) wraps.
    ///
    /// Asked once, in this variant or not at all.
    ///
    /// # Errors
    ///
    /// When the request fails, the variant is refused, or the server makes a task of it: see
    /// [`call_tool_once`](Self::call_tool_once).
    pub async fn call_tool(&self, params: CallToolRequestParams) -> Result<CallToolResult, Error> {
        match self.client.converse(params, self.variant()).await?.0 {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// Calls a tool, and leaves to the caller what the server asks or makes a task of.
    ///
    /// # Errors
    ///
    /// When the request fails, or the variant is refused.
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

    /// A prompt with its arguments filled in.
    ///
    /// # Errors
    ///
    /// When the request fails, or the variant is refused.
    pub async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResult, Error> {
        match self.client.converse(params, self.variant()).await?.0 {
            ServerResult::GetPromptResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    /// The contents of a resource.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn read_resource(&self, uri: impl Into<String>) -> Result<ReadResourceResult, Error> {
        let uri = uri.into();
        let reads = &self.client.shared.memory.reads;
        let key = (self.variant().cloned(), uri.clone());
        let generation = match reads.find(&key) {
            Ok(result) => return Ok(result),
            Err(generation) => generation,
        };
        let params = ReadResourceRequestParams::new(uri);
        let (result, answered) = self.client.converse(params, self.variant()).await?;
        let ServerResult::ReadResourceResult(result) = result else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        // An answer of the default is not this variant's.
        if answered == Answered::AsAsked {
            let time = Duration::from_millis(result.ttl_ms.unwrap_or_default());
            reads.keep(key, result.clone(), time, generation);
        }
        Ok(result)
    }

    /// Suggestions for an argument.
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

    /// Listens for changes in this variant on a modern connection, until the result is dropped.
    ///
    /// They come to the handler that [`Declaring`](super::Declaring) wraps, and end what is
    /// remembered. The SDK's own `Peer::listen` can send no selector (rmcp 3.8, `service/client.rs`),
    /// so it listens to the server's default.
    ///
    /// ```
    /// use mcp_vary_rmcp::client::{Error, Listening, View};
    /// use rmcp::model::SubscriptionFilter;
    ///
    /// async fn watch(view: &View) -> Result<Listening, Error> {
    ///     let changes = SubscriptionFilter::builder().tools_list_changed().build();
    ///     view.listen(changes).await // as long as the answer is held
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// When the request fails before the server acknowledges it, or the variant is refused.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listening, Error> {
        Listening::start(&self.client, filter, self.variant()).await
    }

    /// The variants that the server offers.
    #[must_use]
    pub fn offers(&self) -> std::sync::Arc<Offers> {
        self.client.offers()
    }
}
