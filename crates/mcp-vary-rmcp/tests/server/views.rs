//! Views: what a variant shows of a handler, and under which names.

use crate::prelude::*;
use crate::shop::Shop;
use crate::variants::{one_variant, said, server, variant};
use mcp_vary_rmcp::server::ResourceView;
use rmcp::model::{PromptArgument, ToolAnnotations};

/// SV-11: a view selects, renames, describes and fixes arguments.
#[tokio::test]
async fn a_view_shows_a_handler_in_another_way() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let expected = ["who", "get_arguments", "put_tools"];
        assert_eq!(client.names("small", "tools").await, expected);
        assert_eq!(client.names("small", "prompts").await, ["hello"]);
        assert_eq!(client.names("small", "resources").await, ["all"]);
        let list = client.result("small", "tools/list", json!({})).await;
        assert_eq!(list["tools"][0]["description"], "Short");
        let schema = json!({"type": "object", "properties": {"b": {}}, "required": []});
        assert_eq!(list["tools"][1]["inputSchema"], schema);

        let found = said(&client.call("small", "who", json!({})).await);
        assert_eq!(found, json!(["plain", "small"]));
        let arguments = json!({"a": 1, "b": 2});
        let received = client.call("small", "get_arguments", arguments).await;
        assert_eq!(said(&received), json!({"a": 7, "b": 2}));
        assert_eq!(client.prompt("small", "hello").await, "greet of plain");
    }
}

/// Has one item of each kind, and returns the arguments that it received.
struct One;

impl ServerHandler for One {
    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        let tool = Tool::new("tool", "its own", rmcp::model::JsonObject::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn list_prompts(&self, _: PageParams, _: Context) -> McpResult<ListPromptsResult> {
        let arguments = ["tone", "topic"].map(PromptArgument::new);
        let prompt = Prompt::new("prompt", Some("its own"), Some(arguments.into()));
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(&self, request: PromptParams, _: Context) -> PromptResult {
        let reported = json!(request.arguments).to_string();
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, reported)]).into())
    }

    async fn list_resources(&self, _: PageParams, _: Context) -> McpResult<ListResourcesResult> {
        let resources = ["a:1", "a:2"].map(|uri| Resource::new(uri, "its own"));
        Ok(ListResourcesResult::with_all_items(resources.into()))
    }

    async fn list_resource_templates(
        &self,
        _: PageParams,
        _: Context,
    ) -> McpResult<ListResourceTemplatesResult> {
        let template = ResourceTemplate::new("a:{n}", "its own");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }
}

/// SV-11: a view also sets annotations, arguments of prompts and descriptions of resources.
#[tokio::test]
async fn a_view_describes_everything() {
    let short = || {
        ResourceView::new()
            .with_name("one")
            .with_description("Short")
    };
    let reads = ToolAnnotations::new().read_only(true);
    let view = View::new()
        .with_tool("tool", ToolView::new().with_annotations(reads))
        .with_prompt("prompt", PromptView::new().with_argument("tone", "dry"))
        .with_resource("a:1", short())
        .with_resource("a:{n}", short());
    let one = VariantHandler::new(One).with_view(view);
    let server = one_variant(one);
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let list = async |method| client.result("a", method, json!({})).await;
        let tools = list("tools/list").await;
        let expected = json!({"readOnlyHint": true});
        assert_eq!(tools["tools"][0]["annotations"], expected);
        let prompts = list("prompts/list").await;
        let expected = json!([{"name": "topic"}]);
        assert_eq!(prompts["prompts"][0]["arguments"], expected);
        let resources = list("resources/list").await;
        let described = json!([
            {"uri": "a:1", "name": "one", "description": "Short"},
            {"uri": "a:2", "name": "its own"},
        ]);
        assert_eq!(resources["resources"], described);
        let templates = list("resources/templates/list").await;
        let described = json!([{"uriTemplate": "a:{n}", "name": "one", "description": "Short"}]);
        assert_eq!(templates["resourceTemplates"], described);

        let asked = json!({"name": "prompt", "arguments": {"topic": "rain", "tone": "wet"}});
        let prompt = client.result("a", "prompts/get", asked).await;
        let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        let said: Value = serde_json::from_str(said).unwrap();
        assert_eq!(said, json!({"topic": "rain", "tone": "dry"}));
    }
}

/// SV-11: a name that a view gives to another item no longer refers to the first.
#[tokio::test]
async fn a_name_is_given_once() {
    let view = View::new()
        .with_tool("get_who", ToolView::new().with_name("get_arguments"))
        .with_prompt("a", PromptView::new().with_name("greet"));
    let server = one_variant(VariantHandler::new(Shop::new("a")).with_view(view));
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let tools = client.names("a", "tools").await;
        assert_eq!(tools[..2], ["get_arguments", "put_tools"]);
        let found = said(&client.call("a", "get_arguments", json!({})).await);
        assert_eq!(found, json!(["a", "a"]));
        assert_eq!(client.names("a", "prompts").await, ["greet"]);
        assert_eq!(client.prompt("a", "greet").await, "a of a");
    }
}

/// SV-12: hidden, renamed and unknown items give the same error, which names the active variant.
#[tokio::test]
async fn what_a_view_hides_does_not_exist() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let tools = ["none", "put_progress", "get_plain", "get_who"];
        hides(&client, "tools/call", "name", &tools).await;
        hides(&client, "prompts/get", "name", &["none", "plain", "greet"]).await;
        let resources = ["shop:///none", "shop:///plain"];
        hides(&client, "resources/read", "uri", &resources).await;
    }
}

async fn hides(client: &Client, method: &str, member: &str, names: &[&str]) {
    let mut answers = Vec::new();
    for name in names {
        let error = client.error("small", method, json!({member: name})).await;
        assert_eq!(error.data.as_ref().unwrap()["activeVariant"], "small");
        answers.push(serde_json::to_string(&error).unwrap().replace(name, "…"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[derive(Clone)]
struct Described(&'static str);

impl ServerHandler for Described {
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mut tool = Tool::default();
        tool.name = name.to_owned().into();
        tool.description = (name != "same").then(|| self.0.into());
        Some(tool)
    }
}

/// SV-11: rmcp 3.8 checks `Mcp-Param-*` headers by `get_tool` (handler/server.rs), which has no
/// context, so only a tool that is the same in every variant can be returned.
#[test]
fn headers_are_checked_where_all_variants_agree() {
    let one = VariantHandler::new(Described("one"));
    let hidden = View::new().with_tools(["same"]);
    for other in [
        VariantHandler::new(Described("two")),
        one.clone().with_view(hidden),
    ] {
        let server = VaryServer::builder().with_variant(variant("a"), one.clone());
        let server = server.with_variant(variant("b"), other).build().unwrap();
        assert!(server.get_tool("same").is_some() && server.get_tool("other").is_none());
    }
}
