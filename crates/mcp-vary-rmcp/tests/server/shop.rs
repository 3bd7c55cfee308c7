//! A server with items of every kind; its answers name the handler.

use crate::prelude::*;
use mcp_vary_rmcp::server::ActiveVariant;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, DiscoverResult,
    InputRequiredResult, ProtocolVersion, ResourceUpdatedNotificationParam, ServerRequest,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::SubscriptionContext;

/// The names of its items contain its label.
#[derive(Clone)]
pub(crate) struct Shop {
    label: &'static str,
    page: usize,
    is_taken: Arc<AtomicBool>,
    /// Whether `shop:///all` was removed from the list.
    is_withdrawn: Arc<AtomicBool>,
}

impl Shop {
    pub(crate) fn new(label: &'static str) -> Self {
        Self {
            label,
            page: 100,
            is_taken: Arc::default(),
            is_withdrawn: Arc::default(),
        }
    }

    /// Sets the page size of its lists.
    pub(crate) fn paged(mut self, page: usize) -> Self {
        self.page = page;
        self
    }

    fn cut<T>(&self, items: Vec<T>, params: PageParams) -> McpResult<(Vec<T>, Option<String>)> {
        let first = match params.and_then(|params| params.cursor) {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| ErrorData::invalid_params(format!("bad cursor {cursor}"), None))?,
        };
        let next = (first + self.page < items.len()).then(|| (first + self.page).to_string());
        Ok((
            items.into_iter().skip(first).take(self.page).collect(),
            next,
        ))
    }

    fn uri(&self) -> String {
        format!("shop:///{}", self.label)
    }

    fn knows_uri(&self, uri: &str) -> McpResult<()> {
        if uri == self.uri() || uri == "shop:///all" {
            Ok(())
        } else {
            Err(ErrorData::resource_not_found(
                "nothing there",
                Some(json!({"shop": self.label})),
            ))
        }
    }
}

/// Caching members of a server without variants.
const FOREVER: (Option<u64>, Option<CacheScope>) = (Some(60_000), Some(CacheScope::Public));

const TOOLS: &[&str] = &[
    "get_who",
    "get_arguments",
    "put_tools",
    "put_resource",
    "put_question",
    "put_progress",
];

fn tool(name: &'static str) -> Tool {
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]});
    let mut tool = Tool::default();
    tool.name = name.into();
    tool.description = Some("As the handler has it".into());
    tool.input_schema = Arc::new(schema.as_object().unwrap().clone());
    tool
}

/// A page as a list. The results of lists have no trait in common.
macro_rules! paged {
    ($result:ident, $page:expr) => {{
        let (items, next) = $page;
        let mut list = $result::with_all_items(items);
        list.next_cursor = next;
        (list.ttl_ms, list.cache_scope) = FOREVER;
        Ok(list)
    }};
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn discover(&self, _: Context) -> McpResult<DiscoverResult> {
        let versions = vec![ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result
            .with_ttl_ms(60_000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(&self, params: PageParams, _: Context) -> McpResult<ListToolsResult> {
        let native = format!("get_{}", self.label);
        let mut tools: Vec<_> = TOOLS.iter().map(|name| tool(name)).collect();
        tools.push({
            let mut tool = tool("");
            tool.name = native.into();
            tool
        });
        paged!(ListToolsResult, self.cut(tools, params)?)
    }

    async fn call_tool(&self, request: CallParams, context: Context) -> CallResult {
        let reported = match &*request.name {
            "get_who" => {
                let variant = context.extensions.get::<ActiveVariant>();
                json!([self.label, variant.map(ActiveVariant::id)])
            }
            "get_arguments" => json!(request.arguments),
            "put_tools" => {
                context.peer.notify_tool_list_changed().await.unwrap();
                Value::Null
            }
            "put_resource" => {
                let given = request.arguments.as_ref();
                let uri = given.and_then(|given| given.get("uri")?.as_str());
                let uri = uri.unwrap_or("shop:///all");
                let updated = ResourceUpdatedNotificationParam::new(uri);
                context.peer.notify_resource_updated(updated).await.unwrap();
                Value::Null
            }
            // Sends a list change; `gone` removes `shop:///all` from the list.
            "put_list" => {
                let gone = request.arguments.is_some_and(|given| given["gone"] == true);
                self.is_withdrawn.store(gone, Ordering::Relaxed);
                context.peer.notify_resource_list_changed().await.unwrap();
                Value::Null
            }
            "put_question" => elicit(&context).await?,
            "put_state" | "put_other" => match request.request_state {
                Some(state) => json!(state),
                None if context.protocol_version() < Some(ProtocolVersion::V_2026_07_28) => {
                    json!("no state")
                }
                None => return Ok(InputRequiredResult::from_request_state("our own").into()),
            },
            "put_progress" => {
                report_progress(&context).await;
                Value::Null
            }
            "put_wait" => {
                context.ct.cancelled().await;
                WAS_CANCELLED.notify_one();
                Value::Null
            }
            name => {
                let data = json!({"shop": self.label});
                return Err(ErrorData::invalid_params(
                    format!("no {name} here"),
                    Some(data),
                ));
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(reported.to_string())]).into())
    }

    async fn list_prompts(&self, params: PageParams, _: Context) -> McpResult<ListPromptsResult> {
        let names = ["greet", self.label];
        let prompts = names.map(|name| Prompt::new(name, Some("As it is"), None));
        paged!(ListPromptsResult, self.cut(prompts.into(), params)?)
    }

    async fn get_prompt(&self, request: PromptParams, _: Context) -> PromptResult {
        if request.name == "long" && request.request_state.is_none() {
            return Ok(InputRequiredResult::from_request_state("our own").into());
        }
        if request.name != "greet" && request.name != "long" && request.name != self.label {
            return Err(ErrorData::invalid_params("no such prompt", None));
        }
        let text = format!("{} of {}", request.name, self.label);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn list_resources(
        &self,
        params: PageParams,
        _: Context,
    ) -> McpResult<ListResourcesResult> {
        let mut resources = vec![
            Resource::new("shop:///all", "all"),
            Resource::new(self.uri(), self.label),
        ];
        if self.is_withdrawn.load(Ordering::Relaxed) {
            resources.remove(0);
        }
        paged!(ListResourcesResult, self.cut(resources, params)?)
    }

    async fn list_resource_templates(
        &self,
        params: PageParams,
        _: Context,
    ) -> McpResult<ListResourceTemplatesResult> {
        let template = ResourceTemplate::new(format!("{}/{{id}}", self.uri()), self.label);
        paged!(
            ListResourceTemplatesResult,
            self.cut(vec![template], params)?
        )
    }

    async fn read_resource(&self, request: ReadParams, _: Context) -> ReadResult {
        if request.uri == "shop:///long" {
            return match request.request_state.as_deref() {
                None => Ok(InputRequiredResult::from_request_state("our own").into()),
                Some("our own") => Ok(ReadResourceResult::new(Vec::new()).into()),
                Some(other) => Err(ErrorData::internal_error(other.to_owned(), None)),
            };
        }
        self.knows_uri(&request.uri)?;
        let contents = ResourceContents::text(self.label, request.uri);
        let mut result = ReadResourceResult::new(vec![contents]);
        (result.ttl_ms, result.cache_scope) = FOREVER;
        Ok(result.into())
    }

    async fn complete(&self, _: CompleteRequestParams, _: Context) -> McpResult<CompleteResult> {
        let values = vec![self.label.to_owned()];
        Ok(CompleteResult::new(
            CompletionInfo::with_all_values(values).unwrap(),
        ))
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> McpResult<()> {
        if request.uri == "shop:///once" && !self.is_taken.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.knows_uri(&request.uri)
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> McpResult<()> {
        Err(ErrorData::internal_error("does not work", None))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// Sends changes of the tools and the resource at once.
    async fn listen(&self, context: SubscriptionContext) -> McpResult<()> {
        let request = context.request_context();
        // The active variant is available here too.
        if request.extensions.get::<ActiveVariant>().is_none() {
            return Ok(());
        }
        let sink = context.sink();
        // The sink drops what the client did not subscribe to.
        let _ = sink.notify_tool_list_changed().await;
        let _ = sink.notify_resource_updated("shop:///all").await;
        let _ = sink.notify_resource_updated(self.uri()).await;
        context.cancelled().await;
        Ok(())
    }
}

/// Notified when a call was cancelled.
pub(crate) static WAS_CANCELLED: tokio::sync::Notify = tokio::sync::Notify::const_new();

async fn elicit(context: &Context) -> McpResult<Value> {
    let question = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    });
    let question: ServerRequest = serde_json::from_value(question).unwrap();
    let answer = context.peer.send_request(question).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(serde_json::to_value(answer).unwrap())
}

/// Three steps of progress of the request.
async fn report_progress(context: &Context) {
    let token = context.meta.get_progress_token().unwrap();
    for step in [1.0, 2.0, 3.0] {
        let progress = ProgressNotificationParam::new(token.clone(), step);
        context.peer.notify_progress(progress).await.unwrap();
    }
}
