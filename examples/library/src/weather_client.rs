//! An agent that requests the weather in Bern, and declares how it wants its answers.
//!
//! It declares feature tags for content negotiation, and hints for servers with variants. A server
//! without the extensions answers it like any other client.
//!
//! Try it with the server of this package, in either era, or with your own server:
//!
//! ```text
//! cargo build -p library-examples
//! target/debug/weather-client target/debug/weather-negotiated
//! target/debug/weather-client --legacy target/debug/weather-negotiated
//! ```

use crate::{ExampleError, connect_from_args, print_line};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_rmcp::client::{Client, DeclaringClient, Experience, TaskContext, forward};
use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation};
use serde_json::json;

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    let reached = connect_from_args(agent()).await?;
    print_line(&weather(&reached.client, "Bern").await?)?;
    Ok(())
}

/// The agent: its name, how it wants its content, and its hints.
pub fn agent() -> DeclaringClient<ClientConfig> {
    let me = Implementation::new("my-agent", "1.0.0");
    // Tags for capabilities, such as `elicitation`, follow from the capabilities and need not be
    // declared.
    let config = ClientConfig::new(ClientCapabilities::default(), me);
    let (features, _) = Features::from_tags(["agent", "format=json", "verbosity=compact"]);
    let (hints, _) = VariantHints::from_pairs([
        ("modelFamily", "anthropic"),
        ("useCase", "autonomous-agent"),
        ("contextSize", "compact"),
    ]);
    DeclaringClient::new(config)
        .with_features(features)
        .with_hints(hints)
}

/// The weather as the model reads it.
pub async fn weather(client: &Client, location: &str) -> Result<String, ExampleError> {
    // If the server has variants, this chooses the one that matches the hints best.
    let view = client.choose(&TaskContext::new());
    let arguments = json!({"location": location}).as_object().cloned();
    let call =
        CallToolRequestParams::new("get_weather").with_arguments(arguments.unwrap_or_default());
    let result = view.call_tool(call).await?;
    Ok(forward(&result, Experience::Conversation).text())
}
