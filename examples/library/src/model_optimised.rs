//! The same tool, described differently for each family of models.
//!
//! A client declares in its hints which models it works for. The best match comes first in the
//! offers and is the client's default, so a client that does not choose gets it too.
//!
//! Try it with the hint `"modelFamily": "openai"`, then with `["local", "openai"]`, then without:
//!
//! ```text
//! cargo run -p library-examples --bin model-optimised -- --http 127.0.0.1:8000
//! ```

use crate::{ExampleError, serve};
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::server::{ToolView, VariantHandler, VaryServer, View};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::JsonSchema;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::json;

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
    let all = VariantHandler::new(Library);
    let described = |tool: ToolView| all.clone().with_view(View::new().with_tool("search", tool));
    let claude = ServerVariant::new(
        "claude-optimized".parse()?,
        "Optimized for Anthropic-family models with detailed tool guidance and structured outputs.",
    )
    .with_hint("modelFamily", "anthropic")
    .with_hint("contextSize", "verbose");
    let gpt = ServerVariant::new(
        "gpt-optimized".parse()?,
        "Optimized for OpenAI-family models with concise function signatures.",
    )
    .with_hint("modelFamily", "openai")
    .with_hint("contextSize", "standard");
    let local = ServerVariant::new(
        "local-friendly".parse()?,
        "Simplified schemas and short descriptions for local models with little context.",
    )
    .with_hint("modelFamily", "local")
    .with_hint("contextSize", "compact");
    let server = VaryServer::builder()
        .with_variant(
            claude,
            described(ToolView::new().with_description(GUIDANCE)),
        )
        .with_variant(
            gpt,
            described(ToolView::new().with_description("Search documents.")),
        )
        // One argument fewer to get wrong: the variant fixes it for every call.
        .with_variant(
            local,
            described(
                ToolView::new()
                    .with_description("Finds documents.")
                    .with_argument("limit", json!(3)),
            ),
        )
        .build()?;
    Ok(server)
}

const GUIDANCE: &str = "Searches the documents of the library by their words.\n\n\
    When to use: whenever a claim needs a source. When not to: for what is in the conversation already.\n\n\
    `query` is words, not a question: \"rain Bern\" rather than \"does it rain in Bern?\". Begin with a \
    `limit` of 3, and raise it only if none of the documents answers.";

struct Library;

#[tool_router]
impl Library {
    /// Searches documents.
    #[tool]
    fn search(&self, Parameters(Search { query, limit }): Parameters<Search>) -> String {
        let found = DOCUMENTS.iter().filter(|title| title.contains(&query));
        let titles: Vec<_> = found.take(limit.into()).copied().collect();
        titles.join("\n")
    }
}

#[tool_handler]
impl ServerHandler for Library {}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Search {
    /// Words of the title
    query: String,
    /// How many documents at most
    limit: u8,
}

const DOCUMENTS: [&str; 5] = [
    "rain in Bern",
    "rain in Geneva",
    "rain in Zurich",
    "rain in Basel",
    "snow in Davos",
];
