//! The client with the server of this crate: each understands what the other sends.

use crate::common::{CallParams, CallResult, Context, McpResult, PageParams};
use crate::prelude::*;
use crate::scripted::{Way, connect};
use mcp_vary::extension::{CONTENT_NEGOTIATION, Declaration};
use mcp_vary::feature::Features as Tags;
use mcp_vary::hints::VariantHints;
use mcp_vary::ignored::Ignored;
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::client::{Experience, forward};
use mcp_vary_rmcp::server::{VaryServer, answer, declared_by, features};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ListToolsResult, ServerCapabilities, ServerConfig,
    Tool,
};

/// A server of weather, in one variant.
#[derive(Clone)]
struct Weather {
    label: &'static str,
}

impl ServerHandler for Weather {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        let tool = |name| Tool::new(name, self.label, JsonObject::new());
        let tools = ["weather", "change"].map(tool);
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(&self, params: CallParams, context: Context) -> CallResult {
        if params.name == "change" {
            let sent = context.peer.notify_tool_list_changed().await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        let weather = answer(&json!({"celsius": 8, "from": self.label}))?
            .with_markdown(format!("**8 °C** from {}", self.label));
        Ok(features(&context).answer(&weather).into())
    }
}

/// A client with `tags` and the hint for planning, of a server with a variant for planning.
async fn connected(client_kind: Way, tags: &'static str) -> Connected<()> {
    let make = move || {
        let handler = |label| Weather { label };
        let standard = ServerVariant::new(id("standard"), "all");
        let planning = ServerVariant::new(id("planner"), "plans").with_hint("useCase", "planning");
        let compact =
            ServerVariant::new(id("compact"), "short").with_hint("contextSize", "compact");
        VaryServer::builder()
            .with_negotiation()
            .with_variant(standard, handler("standard"))
            .with_variant(planning, handler("planner"))
            .with_variant(compact, handler("compact"))
            .build()
            .unwrap()
    };
    connect(client_kind, make, |declaring| {
        let (hints, _) = VariantHints::from_pairs([("useCase", "planning")]);
        let (tags, _) = Tags::from_tags(tags.split(','));
        declaring.with_hints(hints).with_features(tags)
    })
    .await
}

async fn says(view: &VariantClient) -> String {
    let result = view.call_tool(call("weather")).await.unwrap();
    forward(&result, Experience::Conversation).text()
}

/// SV-4, SV-8, SV-19: hints put a variant first, the client chooses it or another, and each
/// answers.
#[tokio::test]
async fn the_server_ranks_and_the_client_chooses() {
    for way in each(WAYS) {
        let connected = connected(way, "human").await;
        let client = &connected.client;
        let ids: Vec<_> = client
            .offers()
            .iter()
            .map(|offer| offer.id.to_string())
            .collect();
        assert_eq!(ids[0], "planner");
        let expected = "**8 °C** from planner";
        assert_eq!(says(&client.default_variant()).await, expected);
        let tight = client.choose(&TaskContext::new().with_remaining_tokens(100));
        assert_eq!(says(&tight).await, "**8 °C** from compact");
        let named = client.variant(&id("standard")).unwrap();
        let tools = named.tools().await.unwrap();
        assert_eq!(tools[0].description.as_deref(), Some("standard"));
    }
}

/// CN-17, TR-1: the client's declarations shape the answer, and one field of it goes to the reader.
#[tokio::test]
async fn tags_shape_what_is_forwarded() {
    for way in each(WAYS) {
        let agent = connected(way, "agent,format=json").await;
        let info = agent.peer().peer_info().unwrap();
        let extensions = info.capabilities.extensions.clone().unwrap();
        assert!(extensions[CONTENT_NEGOTIATION].is_empty());
        let said = says(&agent.client.default_variant()).await;
        assert_eq!(said, r#"{"celsius":8,"from":"planner"}"#);
        let human = connected(way, "human,format=markdown").await;
        let said = says(&human.client.default_variant()).await;
        assert_eq!(said, "**8 °C** from planner");
    }
}

/// SV-16: a change in a variant of the server invalidates the client's list of that variant.
#[tokio::test]
async fn a_change_is_told_with_its_variant() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let mut connected = connected(way, "agent").await;
        let compact = connected.view("compact");
        let standard = connected.view("standard");
        let before = [
            compact.tools().await.unwrap(),
            standard.tools().await.unwrap(),
        ];
        compact.call_tool(call("change")).await.unwrap();
        assert_eq!(soon(connected.received.recv()).await, Some("tools"));
        let after = [
            compact.tools().await.unwrap(),
            standard.tools().await.unwrap(),
        ];
        let kept = std::array::from_fn(|at| std::ptr::eq(&*before[at], &*after[at]));
        // A cached list is the same allocation.
        assert_eq!(kept, [false, true]);
    }
}

#[derive(Debug, Default, PartialEq)]
struct Units(Vec<String>);

impl Declaration for Units {
    const ID: &'static str = "com.example/units";

    fn read(settings: &Value) -> (Option<Self>, Ignored) {
        let systems = settings["systems"].as_array().into_iter().flatten();
        let systems = systems.filter_map(Value::as_str).map(str::to_owned);
        (Some(Self(systems.collect())), Ignored::default())
    }
}

/// Returns what the client declared.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    async fn call_tool(&self, _: CallParams, context: Context) -> CallResult {
        let Units(systems) = declared_by(&context).value;
        Ok(CallToolResult::success(vec![ContentBlock::text(systems.join(","))]).into())
    }
}

/// EXT-2, EXT-8: either side declares any other extension, and reads the other's settings.
#[tokio::test]
async fn another_extension_has_settings_on_both_sides() {
    let units = || Units::ID.parse().unwrap();
    for way in each(WAYS) {
        let make = move || {
            let settings = json!({"systems": ["metric", "imperial"]});
            let server = VaryServer::builder().with_handler(Echo);
            server.with_extension(units(), settings).build().unwrap()
        };
        let connected = connect(way, make, |declaring| {
            let settings = json!({"systems": ["imperial", 7]});
            declaring.with_extension(units(), settings).unwrap()
        })
        .await;
        let Units(offered) = connected.client.declared().value;
        assert_eq!(offered, ["metric", "imperial"]);
        let view = connected.client.default_variant();
        let echoed = view.call_tool(call("any")).await;
        let echoed = forward(&echoed.unwrap(), Experience::Conversation).text();
        assert_eq!(echoed, "imperial");
        assert_eq!(connected.client.declared::<Tags>().carrier, None);
        assert!(connected.client.require::<Units>().is_ok());
        let missing = connected.client.require::<Tags>().err().unwrap();
        assert_eq!(
            missing.to_string(),
            format!(
                "the server does not support the extension `{}`, which this client requires",
                Tags::ID
            )
        );
    }
}

/// EXT-2: settings that are not an object are rejected.
#[test]
fn settings_are_an_object() {
    let refused =
        DeclaringClient::new(()).with_extension("com.example/units".parse().unwrap(), [1]);
    let expected = "the settings of the extension `com.example/units` are not a JSON object";
    assert_eq!(refused.unwrap_err().to_string(), expected);
}
