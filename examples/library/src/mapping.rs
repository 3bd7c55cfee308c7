//! A map: places as GeoJSON for programs and as pages for people, and a prompt with alternatives
//! for both.
//!
//! The handler serves each resource once, as JSON. For clients that ask for markdown the library
//! renders it, or returns a page that the author wrote. The alternatives of the prompt have
//! conditions over the client's features; a client that meets none gets the original prompt.
//!
//! Try it with the features `["agent"]`, `["human", "format=markdown"]` and
//! `["human", "interactive", "!sampling"]`:
//!
//! ```text
//! cargo run -p library-examples --bin mapping -- --http 127.0.0.1:8000
//! ```

use crate::{ExampleError, serve};
use mcp_vary::predicate::Predicate;
use mcp_vary::shape::{PromptAlternative, Rendering, Representation, Representations, Role};
use mcp_vary_rmcp::server::{VaryServer, features};
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourcesResult, PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, Role as Speaker,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    serve(server()?).await
}

/// The server.
///
/// # Errors
///
/// When a variant is invalid.
pub fn server() -> Result<VaryServer, ExampleError> {
    // Errors in conditions and media types are reported here, before any client is served.
    Ok(VaryServer::new(Map {
        valley: Representations::default()
            .with(Representation::text("text/markdown", PAGE)?)?
            .with(Representation::Rendered(Rendering::GeoText))?,
        hut: Representations::default().with(Representation::Rendered(Rendering::GeoMarkdown))?,
        weather: vec![
            (
                "agent & mcp-capable & sampling".parse()?,
                PromptAlternative::new(Role::User, STEPS),
            ),
            (
                "human & interactive & !sampling".parse()?,
                PromptAlternative::new(Role::User, INVITATION),
            ),
        ],
    }))
}

struct Map {
    valley: Representations,
    hut: Representations,
    weather: Vec<(Predicate, PromptAlternative)>,
}

impl ServerHandler for Map {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        ServerConfig::new(capabilities.enable_resources().enable_prompts().build())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let places = [(VALLEY, "Alpine Valley"), (HUT, "Mountain Hut")];
        let places = places.map(|(uri, name)| Resource::new(uri, name).with_mime_type(JSON));
        Ok(ListResourcesResult::with_all_items(places.into()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (place, representations) = match request.uri.as_str() {
            VALLEY => (VALLEY_JSON, &self.valley),
            HUT => (HUT_JSON, &self.hut),
            _ => return Err(ErrorData::resource_not_found("no such place", None)),
        };
        let served = ResourceContents::text(place, request.uri).with_mime_type(JSON);
        let served = ReadResourceResult::new(vec![served]);
        Ok(features(&context)
            .resource(served, |_uri| Some(representations))
            .into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = Prompt::new("check-weather", Some("Looks up the weather"), None);
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "check-weather" {
            return Err(ErrorData::invalid_params("no such prompt", None));
        }
        let message = PromptMessage::new_text(Speaker::User, "What is the weather like?");
        let prompt = GetPromptResult::new(vec![message]);
        Ok(features(&context).prompt(prompt, &self.weather).into())
    }
}

const JSON: &str = "application/json";
const VALLEY: &str = "map://features/alpine-valley-1";
const HUT: &str = "map://features/mountain-hut-1";
const VALLEY_JSON: &str = r#"{"type": "Feature", "geometry": {"type": "Point", "coordinates": [7.6586, 45.9763]}, "properties": {"name": "Alpine Valley", "elevation_m": 3200, "accessibility": "moderate"}}"#;
const HUT_JSON: &str = r#"{"type": "Feature", "geometry": {"type": "Point", "coordinates": [7.6603, 45.9711]}, "properties": {"name": "Mountain Hut", "elevation_m": 2880}}"#;
const PAGE: &str = "# Alpine Valley - Scenic Hiking Destination\n\n## Location\n\
    **Coordinates**: 45.9763°N, 7.6586°E\n**Elevation**: 3,200 meters (10,500 feet)\n\n\
    ## Access & Conditions\n- **Difficulty**: Moderate\n- **Best Season**: June through September";
const STEPS: &str = "For the following tool call, analyze step-by-step:\n1. Parse input parameters\n\
    2. Plan the search strategy\n3. Reason about edge cases\n4. Execute the query\n\n\
    Then call the weather tool.";
const INVITATION: &str = "## Check the Weather\n\nLet's look up the current weather for a location.\n\n\
    **How to use**:\n1. Tell me a city name (e.g., \"Bern\", \"Zurich\", \"Geneva\")\n\
    2. I'll fetch the latest conditions\n\nWhat location interests you?";
