//! An agent that plans in one variant of a server, executes in another and debugs in a third.
//!
//! The agent declares its phases once. Then it chooses by phase: the library chooses the variant
//! whose hint `useCase` names the phase, and every request carries that selector. Each phase has
//! its own tools, so the plan cannot deploy by accident.
//!
//! The server is in this file too, and both communicate over a pipe in memory. Try it, then give
//! the second phase fewer than 10,000 tokens with `with_remaining_tokens`; or serve the server
//! alone:
//!
//! ```text
//! cargo run -p library-examples --bin phases
//! cargo run -p library-examples --bin phases -- --http 127.0.0.1:8080
//! ```

use crate::{ExampleError, connect, print_line, serve};
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::client::{Client, DeclaringClient, Experience, TaskContext, forward};
use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
use rmcp::model::{CallToolRequestParams, ClientConfig};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    if std::env::args().len() > 1 {
        return serve(server()?).await;
    }
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = server()?;
    tokio::spawn(async move {
        server
            .serve(theirs)
            .await?
            .waiting()
            .await
            .map_err(ExampleError::from)
    });
    let reached = connect(agent(), ours, false).await?;
    for line in work(&reached.client).await? {
        print_line(&line)?;
    }
    Ok(())
}

/// The agent with its phases.
pub fn agent() -> DeclaringClient<ClientConfig> {
    let phases = ["planning", "execution", "debugging"];
    let (hints, _) = VariantHints::from_pairs(phases.map(|phase| ("useCase", phase)));
    DeclaringClient::new(ClientConfig::default()).with_hints(hints)
}

/// What the agent did, and the reason for each variant.
pub async fn work(client: &Client) -> Result<Vec<String>, ExampleError> {
    let mut diary = Vec::new();
    for (phase, tool) in [
        ("planning", "estimate"),
        ("execution", "deploy"),
        ("debugging", "read_logs"),
    ] {
        let context = TaskContext::new()
            .with_phase(phase)
            .with_remaining_tokens(50_000);
        let view = client.choose(&context);
        let tools = view.tools().await?.len();
        let result = view.call_tool(CallToolRequestParams::new(tool)).await?;
        let reported = forward(&result, Experience::Conversation).text();
        diary.push(format!(
            "{}; called {tool}, one of {tools}: {reported}",
            view.choice()
        ));
    }
    Ok(diary)
}

/// A server with a variant for each phase, and a compact one.
pub fn server() -> Result<VaryServer, ExampleError> {
    let all = VariantHandler::new(Platform);
    let made_for = |id: &str, phase: &str, description: &str| {
        let variant = ServerVariant::new(id.parse()?, description);
        Ok::<_, ExampleError>(variant.with_hint("useCase", phase))
    };
    let shows = |tools: &[&str]| {
        let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
        all.clone().with_view(View::new().with_tools(tools))
    };
    let plan = made_for("agent-plan", "planning", "Looks ahead. Changes nothing.")?;
    let execute = made_for(
        "agent-execute",
        "execution",
        "Only what it takes to deploy.",
    )?;
    let debug = made_for("agent-debug", "debugging", "Execution, with the logs.")?;
    let compact = ServerVariant::new("compact".parse()?, "One tool, for when tokens are short.");
    let server = VaryServer::builder()
        .with_variant(plan, shows(&["estimate", "list_services"]))
        .with_variant(execute, shows(&["deploy"]))
        .with_variant(debug, shows(&["deploy", "read_logs", "list_services"]))
        .with_variant(
            compact.with_hint("contextSize", "compact"),
            shows(&["deploy"]),
        )
        .build()?;
    Ok(server)
}

struct Platform;

#[tool_router]
impl Platform {
    /// The services that run.
    #[tool]
    fn list_services(&self) -> String {
        "weather".to_owned()
    }

    /// How long a deployment takes.
    #[tool]
    fn estimate(&self) -> String {
        "two minutes".to_owned()
    }

    /// Deploys.
    #[tool]
    fn deploy(&self) -> String {
        "failed".to_owned()
    }

    /// What happened.
    #[tool]
    fn read_logs(&self) -> String {
        "out of umbrellas".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Platform {}
