//! The server handler; it forwards each method to its module.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::{prompts, resources, tools};

type Context = RequestContext<RoleServer>;
type McpResult<T> = Result<T, ErrorData>;
type PageParams = Option<PaginatedRequestParams>;

/// The weather server as an rmcp handler; it has no state.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Weather;

impl ServerHandler for Weather {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("weather", "2.0.0").with_title("Weather Service"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: Context,
    ) -> McpResult<CallToolResponse> {
        tools::call(&request.name, &request.arguments.unwrap_or_default()).map(Into::into)
    }

    async fn list_resources(&self, _: PageParams, _: Context) -> McpResult<ListResourcesResult> {
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> McpResult<ReadResourceResponse> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(&self, _: PageParams, _: Context) -> McpResult<ListPromptsResult> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> McpResult<GetPromptResponse> {
        prompts::expand(&request.name, &request.arguments.unwrap_or_default()).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> McpResult<CompleteResult> {
        prompts::complete(&request.r#ref, &request.argument)
    }
}

const INSTRUCTIONS: &str = "\
Current conditions and five-day forecasts for cities in Switzerland. Use get_weather for what it is like \
now and get_forecast for planning ahead. Both take the name of a city; an unknown city is answered with \
the list of known ones. The map resources describe the surrounding landscape as GeoJSON.";
