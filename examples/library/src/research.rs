//! A research assistant whose depth depends on the client's context size.
//!
//! The handler has one tool with a token budget. Each variant fixes the budget, so a model cannot
//! exceed it, and the answer reports what it left out. A client of the library that runs out of
//! tokens finds `quick-lookup` by its hint `contextSize`.
//!
//! Try it, call `search` in each variant, and compare the length of the answers:
//!
//! ```text
//! cargo run -p library-examples --bin research -- --http 127.0.0.1:8000
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
    let all = VariantHandler::new(Assistant);
    let within = |tokens: usize, description: &str| {
        let search = ToolView::new()
            .with_description(description)
            .with_argument("budget", json!(tokens));
        all.clone()
            .with_view(View::new().with_tool("search", search))
    };
    let synthesis = ServerVariant::new(
        "synthesis".parse()?,
        "Balanced mode for synthesizing information from multiple sources into coherent summaries. Good for reports and briefings.",
    )
    .with_hint("useCase", "synthesis")
    .with_hint("contextSize", "standard");
    let deep = ServerVariant::new(
        "deep-research".parse()?,
        "Comprehensive research mode with multi-source verification, citation tracking, and detailed analysis. Prioritizes accuracy and thoroughness over speed.",
    )
    .with_hint("useCase", "research")
    .with_hint("com.acme/depth", "comprehensive")
    .with_hint("contextSize", "verbose");
    let quick = ServerVariant::new(
        "quick-lookup".parse()?,
        "Fast fact retrieval optimized for simple questions. Single-source answers with confidence signals. Minimal context usage.",
    )
    .with_hint("useCase", "qa")
    .with_hint("com.acme/depth", "shallow")
    .with_hint("contextSize", "compact");
    let server = VaryServer::builder()
        .with_variant(
            synthesis,
            within(40, "Searches, and sums up what the sources say."),
        )
        .with_variant(
            deep,
            within(
                400,
                "Searches all sources, and cites each that speaks of the topic.",
            ),
        )
        .with_variant(quick, within(15, "Looks a fact up."))
        .build()?;
    Ok(server)
}

struct Assistant;

#[tool_router]
impl Assistant {
    /// Searches the sources.
    #[tool]
    fn search(&self, Parameters(Search { topic, budget }): Parameters<Search>) -> String {
        let found: Vec<_> = SOURCES
            .iter()
            .filter(|source| source.contains(&topic))
            .collect();
        let mut left = budget;
        let fits = found.iter().take_while(|source| {
            let remaining = left.checked_sub(tokens(source));
            left = remaining.unwrap_or(0);
            remaining.is_some()
        });
        let mut reported: Vec<String> = fits.map(|source| format!("- {source}")).collect();
        let unsaid = found.len() - reported.len();
        if unsaid > 0 {
            reported.push(format!(
                "(left out: {unsaid}; `deep-research` has room for more)"
            ));
        }
        reported.join("\n")
    }
}

#[tool_handler]
impl ServerHandler for Assistant {}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Search {
    /// What to search for
    topic: String,
    /// How many tokens the answer may have
    budget: usize,
}

/// About four letters are one token.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

const SOURCES: [&str; 4] = [
    "The Aare flows through Bern. [1]",
    "In summer people swim in the Aare, down to the Marzili. [2]",
    "The Aare is 288 km long, the longest river that is wholly Swiss. [3]",
    "Its water comes from the glaciers of the Bernese Alps, and the Aare brings it to the Rhine at Koblenz. [4]",
];
