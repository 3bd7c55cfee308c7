//! Content negotiation as a handler and its clients see it.

use crate::prelude::*;
use crate::support::{
    NEGOTIATION, initialized, modern_headers, post, serve_http_with, try_connect,
};
use mcp_vary::extension::Declaration;
use mcp_vary::ignored::Ignored;
use mcp_vary::shape::{
    PromptAlternative, Rendering, Representation, Representations, Role as Says,
};
use mcp_vary_rmcp::server::{Features, answer, declared_by, features};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CacheScope, RequestMetaObject};
use rmcp::{tool, tool_handler, tool_router};

/// The resource of [`Weather`].
const POINT: &str = r#"{"type":"Point","coordinates":[7.5,45.5]}"#;

#[derive(Clone)]
struct Weather;

#[derive(serde::Deserialize, rmcp::schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct City {
    city: String,
}

#[tool_router]
impl Weather {
    /// The weather of a city.
    #[tool]
    async fn weather(
        &self,
        Parameters(City { city }): Parameters<City>,
        features: Features,
    ) -> McpResult<CallToolResult> {
        let weather = answer(&json!({"city": city, "celsius": 8}))?
            .with_markdown(format!("**{city}**: 8 °C"))
            .with_text(format!("{city}: 8 °C"));
        Ok(features.answer(&weather))
    }

    /// The tags of the client, with `_meta` taken before.
    #[tool]
    async fn tags(&self, meta: RequestMetaObject, features: Features) -> String {
        drop(meta);
        said(&features)
    }

    /// Lists an output schema.
    #[tool(output_schema = object())]
    async fn listed(&self, features: Features) -> McpResult<CallToolResult> {
        Ok(features.answer(&answer(&json!({"a": 1}))?.with_hint("one")))
    }

    /// Returns an ordinary result.
    #[tool]
    async fn rows(&self, features: Features) -> CallToolResult {
        features.shape(CallToolResult::structured(json!({"rows": 2})))
    }

    /// Returns a long result, and the URI of the whole.
    #[tool]
    async fn many(&self, features: Features) -> CallToolResult {
        let many: Vec<_> = (0..1000).collect();
        let result = CallToolResult::structured(json!({"rows": many}));
        features.shape_with_resource(result, "rows://all")
    }

    /// Returns a long answer with the author's texts.
    #[tool]
    async fn long(&self, features: Features) -> McpResult<CallToolResult> {
        let many: Vec<_> = (0..1000).collect();
        Ok(features.answer(&answer(&json!({"rows": many}))?))
    }

    /// Ignores features.
    #[tool]
    async fn plain(&self) -> CallToolResult {
        let mut result = CallToolResult::structured(json!({"a": [1, {"b": null}]}));
        let image = ContentBlock::image("AAAA", "image/png");
        result.content.push(image);
        result
    }
}

fn object() -> Arc<rmcp::model::JsonObject> {
    let schema = json!({"type": "object"});
    Arc::new(schema.as_object().unwrap().clone())
}

fn said(features: &Features) -> String {
    let tags: Vec<_> = features.tags().map(|tag| tag.as_str()).collect();
    tags.join(",")
}

#[tool_handler]
impl ServerHandler for Weather {
    async fn get_prompt(&self, _: PromptParams, context: Context) -> PromptResult {
        let features = features(&context);
        let message = PromptMessage::new_text(Role::User, said(&features));
        let plan = PromptAlternative::new(Says::User, "1. Plan");
        let alternatives = [("agent & sampling".parse().unwrap(), plan)];
        let result = GetPromptResult::new(vec![message]);
        Ok(features.prompt(result, &alternatives).into())
    }

    async fn read_resource(&self, request: ReadParams, context: Context) -> ReadResult {
        let served = ResourceContents::text(POINT, request.uri).with_mime_type("application/json");
        let readable = Representations::default()
            .with(Representation::Rendered(Rendering::GeoMarkdown))
            .unwrap();
        let mut result = ReadResourceResult::new(vec![served]);
        // The handler ignores features, and lets caches store the resource.
        (result.ttl_ms, result.cache_scope) = (Some(60_000), Some(CacheScope::Public));
        let features = features(&context);
        Ok(features.resource(result, |_uri| Some(&readable)).into())
    }
}

/// A client with `tags` before [`Weather`].
async fn connect_weather(client_kind: (Era, Wire), tags: &[&str]) -> Client {
    connect_tagged(&VaryServer::new(Weather), client_kind, tags).await
}

/// SV-17: results that depend on features are not cached, also without variants and for clients
/// without features.
#[tokio::test]
async fn a_resource_that_depends_on_features_is_kept_by_nobody() {
    let server = VaryServer::new(Weather);
    for way in each(WAYS) {
        for tags in [&[][..], &["human", "format=markdown"]] {
            let client = connect_tagged(&server, way, tags).await;
            let uri = json!({"uri": "map://valley"});
            let result = client.result("", "resources/read", uri).await;
            let found = json!([result["ttlMs"], result["cacheScope"]]);
            match way.0 {
                Era::Modern => assert_eq!(found, json!([0, "private"])),
                // Caches of that era do not know these members; they stay as the handler wrote
                // them.
                Era::Legacy => assert_eq!(found, json!([60_000, "public"])),
            }
        }
    }
}

/// Asserts the answer of `weather` to a client with `tags`, in each era and over each transport.
async fn answers(tags: &[&str], content: &Value, structured: Option<Value>) {
    let server = VaryServer::new(Weather);
    for client_kind in each(WAYS) {
        let client = connect_tagged(&server, client_kind, tags).await;
        let result = client.call("", "weather", json!({"city": "Paris"})).await;
        if client_kind.0 == Era::Modern {
            assert_eq!(result["resultType"], "complete");
        }
        assert_eq!(result["isError"], false);
        assert_eq!(result["content"], *content, "{tags:?}");
        let found = result.get("structuredContent").cloned();
        assert_eq!(found, structured, "{tags:?}");
    }
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// The author's markdown.
fn markdown() -> Value {
    text("**Paris**: 8 °C")
}

fn paris() -> Option<Value> {
    Some(json!({"city": "Paris", "celsius": 8}))
}

const PARIS: &str = r#"{"city":"Paris","celsius":8}"#;

/// CN-9: the extension's first test case.
#[tokio::test]
async fn an_agent_that_wants_json_gets_the_value_alone() {
    answers(&["agent", "format=json"], &json!([]), paris()).await;
}

/// CN-6, CN-9: an agent that names no format gets both, and so does a client that only wants JSON.
#[tokio::test]
async fn json_stands_in_both_places_otherwise() {
    answers(&["agent"], &text(PARIS), paris()).await;
    answers(&["format=json"], &text(PARIS), paris()).await;
}

/// CN-10: the extension's second test case, with the author's markdown.
#[tokio::test]
async fn a_person_gets_the_authors_words() {
    answers(&["human", "format=markdown"], &markdown(), None).await;
    answers(&["human"], &markdown(), None).await;
    answers(&["format=text"], &text("Paris: 8 °C"), None).await;
}

/// CN-10, TR-4: if the tool lists an `outputSchema`, the value stays.
#[tokio::test]
async fn the_value_stays_where_a_schema_is_listed() {
    for way in each(WAYS) {
        let client = connect_weather(way, &["human"]).await;
        let result = client.call("", "listed", json!({})).await;
        assert_eq!(result["content"], text("- **a**: 1"));
        assert_eq!(result["structuredContent"], json!({"a": 1}));
    }
}

/// CN-7, CN-11: the third and fourth test cases.
#[tokio::test]
async fn what_cannot_be_used_changes_nothing() {
    answers(&[], &markdown(), paris()).await;
    answers(&["@#$%", "format==json"], &markdown(), paris()).await;
    answers(&["interactive", "x-acme"], &markdown(), paris()).await;
}

/// CN-7: the handler's own answer, byte for byte, for clients of either kind in both eras.
#[tokio::test]
async fn a_handler_that_does_not_care_answers_as_before() {
    let call = json!({"name": "plain", "arguments": {}});
    for capabilities in [json!({}), declaring(&["agent", "format=json"], json!({}))] {
        let plain = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let legacy = [initialize(capabilities.clone()), initialized(), plain, list];
        let bare = lines(Weather, &legacy).await;
        let behind = lines(VaryServer::new(Weather), &legacy).await;
        assert_eq!(behind[1..], bare[1..]);

        let requests = [
            modern(1, "tools/call", call.clone(), capabilities.clone()),
            modern(2, "tools/list", json!({}), capabilities),
        ];
        let bare = lines(Weather, &requests).await;
        assert_eq!(lines(VaryServer::new(Weather), &requests).await, bare);
    }
}

/// EXT-2, EXT-3, CN-17: negotiation is advertised if it is enabled, and only then.
#[tokio::test]
async fn negotiation_is_advertised_when_it_is_switched_on() {
    let silent = VaryServer::builder().with_handler(Weather).build().unwrap();
    for way in each(WAYS) {
        let capabilities = connect(&VaryServer::new(Weather), way).await.capabilities();
        assert_eq!(capabilities["extensions"], json!({NEGOTIATION: {}}));
        let capabilities = connect(&silent, way).await.capabilities();
        assert_eq!(capabilities.get("extensions"), None);
    }
}

/// CN-8, CN-9, CN-10: an ordinary result is shaped too.
#[tokio::test]
async fn an_ordinary_result_is_shaped() {
    let rows = json!({"rows": 2});
    let cases = [
        (&["human"][..], text("- **rows**: 2"), None),
        (&["agent", "format=json"], json!([]), Some(&rows)),
        (&[], text(r#"{"rows":2}"#), Some(&rows)),
    ];
    for way in each(WAYS) {
        for (tags, content, structured) in &cases {
            let client = connect_weather(way, tags).await;
            let result = client.call("", "rows", json!({})).await;
            assert_eq!(result["content"], *content, "{tags:?}");
            assert_eq!(result.get("structuredContent"), *structured, "{tags:?}");
        }
    }
}

/// CN-13: a client that asks for compact answers gets one that reports what is missing and, if the
/// author names it, where to read it.
#[tokio::test]
async fn few_words_are_kept_to() {
    for way in each(WAYS) {
        let client = connect_weather(way, &["verbosity=compact"]).await;
        for (tool, resource) in [
            ("many", "; rows://all?pointer=/rows&offset=500"),
            ("long", ""),
        ] {
            let result = client.call("", tool, json!({})).await;
            let blocks = result["content"].as_array().unwrap();
            let few: Value = serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(few["rows"].as_array().unwrap().len(), 500, "{tool}");
            let expected = format!("/rows: 500 of 1000 elements{resource}");
            assert_eq!(blocks[1]["text"], expected);
            let applied = &result["_meta"]["vary/applied"]["verbosity"];
            assert_eq!(applied, "compact", "{tool}");
        }
        let client = connect_weather(way, &["agent"]).await;
        let result = client.call("", "many", json!({})).await;
        let rows = result["structuredContent"]["rows"].as_array();
        assert_eq!(rows.unwrap().len(), 1000);
    }
}

/// CN-8, CN-15: resources and prompts have alternatives too.
#[tokio::test]
async fn resources_and_prompts_have_alternatives() {
    for way in each(WAYS) {
        let read = async |tags: &[&str]| {
            let client = connect_weather(way, tags).await;
            let uri = json!({"uri": "map://valley"});
            let read = client.result("", "resources/read", uri).await;
            let any = json!({"name": "any"});
            let prompt = client.result("", "prompts/get", any).await;
            let content = &read["contents"][0];
            let message = &prompt["messages"][0]["content"];
            json!([content["mimeType"], content["text"], message["text"]])
        };
        let markdown = json!(["text/markdown", "- **coordinates**: 45.5°N, 7.5°E", "human"]);
        assert_eq!(read(&["human"]).await, markdown);
        let json = json!(["application/json", POINT, "1. Plan"]);
        assert_eq!(read(&["agent", "sampling"]).await, json);
        let json = json!(["application/json", POINT, ""]);
        assert_eq!(read(&[]).await, json);
    }
}

/// CN-14: a hint is placed where the tool's schema allows it, for clients that sample.
#[tokio::test]
async fn a_hint_is_held_against_the_listed_schema() {
    for way in each(WAYS) {
        let client = connect_weather(way, &["agent", "format=json", "sampling"]).await;
        let result = client.call("", "listed", json!({})).await;
        assert_eq!(result["structuredContent"], json!({"a": 1}));
    }
}

/// EXT-6: a declaration is read wherever SDKs put it, and the server's declaration is repeated
/// there.
#[tokio::test]
async fn an_experimental_declaration_is_mirrored() {
    let declared = json!({NEGOTIATION: {"features": ["human"]}});
    let places = [
        json!({"experimental": declared}),
        json!({"experimental": {"extensions": declared}}),
    ];
    for capabilities in places {
        for way in each(WAYS) {
            let client = connect_with(&VaryServer::new(Weather), way, capabilities.clone()).await;
            let result = client.call("", "tags", json!({})).await;
            assert_eq!(result["content"], text("human"));
            let advertised = client.capabilities();
            assert_eq!(advertised["extensions"], json!({NEGOTIATION: {}}));
            let mirrored = match capabilities["experimental"].get("extensions") {
                Some(_) => &advertised["experimental"]["extensions"],
                None => &advertised["experimental"],
            };
            assert_eq!(*mirrored, json!({NEGOTIATION: {}}));
        }
    }
}

/// CN-22: from a context as from an extractor, even after another extractor has emptied `_meta`.
#[tokio::test]
async fn features_are_found_wherever_they_are_asked_for() {
    for way in each(WAYS) {
        let client = connect_weather(way, &["agent", "x-a=1"]).await;
        let result = client.call("", "tags", json!({})).await;
        assert_eq!(result["content"], text("agent,x-a=1"));
        let prompt = client
            .result("", "prompts/get", json!({"name": "any"}))
            .await;
        assert_eq!(prompt["messages"][0]["content"]["text"], "agent,x-a=1");
    }
}

/// CN-19: a client that negotiates receives what was applied; other clients see no trace of it.
#[tokio::test]
async fn what_was_applied_is_said_to_those_who_negotiate() {
    for way in each(WAYS) {
        let client = connect_weather(way, &["human"]).await;
        let result = client.call("", "weather", json!({"city": "Paris"})).await;
        let expected = json!({"format": "markdown"});
        assert_eq!(result["_meta"]["vary/applied"], expected);
        let client = connect(&VaryServer::new(Weather), way).await;
        let result = client.call("", "weather", json!({"city": "Paris"})).await;
        assert_eq!(result.get("_meta"), None);
    }
}

/// CN-18: modern features belong to the request; nothing is inferred from an earlier one.
#[tokio::test]
async fn modern_features_last_one_request() {
    let client = connect(&VaryServer::new(Weather), (Era::Modern, Wire::Pipe)).await;
    let call = json!({"name": "tags", "arguments": {}});
    let key = "io.modelcontextprotocol/clientCapabilities";
    for (tags, expected) in [(&["agent"][..], "agent"), (&[], ""), (&["human"], "human")] {
        let meta = json!({key: declaring(tags, json!({}))});
        let result = client.ask("tools/call", call.clone(), meta).await.unwrap();
        assert_eq!(result["content"], text(expected));
    }
    let result = client.ask("tools/call", call, json!({})).await.unwrap();
    assert_eq!(result["content"], text(""));
}

/// Answers in the format that the caller names.
struct Reporting;

impl ServerHandler for Reporting {
    async fn call_tool(&self, request: CallParams, context: Context) -> CallResult {
        let named = request.arguments.and_then(|given| {
            let format = given.get("format")?.as_str()?;
            Some(format!("format={format}"))
        });
        let features = features(&context).overridden_by(named.as_deref());
        let report = answer(&json!({"celsius": 8}))?.with_markdown("**8 °C**");
        Ok(features.answer(&report.with_text("8 degrees")).into())
    }
}

/// CN-18: an argument of the tool takes precedence over the client's declaration.
#[tokio::test]
async fn an_argument_overrides_a_feature() {
    for way in each(WAYS) {
        let capabilities = declaring(&["agent", "format=json"], json!({}));
        let client = connect_with(&VaryServer::new(Reporting), way, capabilities).await;
        for (arguments, expected) in [
            (json!({}), json!([])),
            (json!({"format": "text"}), text("8 degrees")),
            (json!({"format": "markdown"}), text("**8 °C**")),
            (json!({"format": "no tag"}), json!([])),
        ] {
            let result = client.call("", "report", arguments.clone()).await;
            assert_eq!(result["content"], expected, "{arguments}");
        }
        // It applies to this call only.
        let result = client.call("", "report", json!({})).await;
        assert_eq!(result["content"], json!([]));
    }
}

/// CN-18: fifty clients of both eras on one server at once, each with its own features.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaks_between_clients() {
    let server = serve_http(VaryServer::new(Weather)).await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..50 {
        let url = server.url.clone();
        clients.spawn(async move {
            let era = [Era::Legacy, Era::Modern][number % 2];
            let own = format!("x-client={number}");
            let capabilities = declaring(&[&own, "human"], json!({}));
            let client = join(&url, era, capabilities, &[]).await;
            for _ in 0..4 {
                let result = client.call("", "tags", json!({})).await;
                assert_eq!(result["content"], text(&format!("{own},human")), "{era:?}");
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(ended) = soon(clients.join_next()).await {
        ended.unwrap();
    }
}

/// EXT-4: a client that lacks a required extension is rejected, in the way of its era.
#[tokio::test]
async fn a_required_extension_is_asked_for() {
    let server = VaryServer::builder()
        .with_handler(Weather)
        .with_negotiation()
        .with_required_extension(NEGOTIATION.parse().unwrap())
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect_tagged(&server, way, &["agent"]).await;
        client.call("", "tags", json!({})).await;
    }
    for wire in each([Wire::Pipe, Wire::Http]) {
        let refused = try_connect(&server, (Era::Legacy, wire), json!({})).await;
        let error = format!("{:?}", refused.err().expect("refused"));
        for expected in ["-32602", "requires the extension"] {
            assert!(error.contains(expected), "{error}");
        }
        // `server/discover` reports what is required, so it is open to all clients.
        let client = connect(&server, (Era::Modern, wire)).await;
        let error = client.error("", "tools/list", json!({})).await;
        let message = format!("Server requires the extension {NEGOTIATION}");
        assert_eq!((error.code.0, &*error.message), (-32021, &*message));
        let custom = client.error("", "com.example/any", json!({})).await;
        let required = json!({"requiredCapabilities": {"extensions": {NEGOTIATION: {}}}});
        assert_eq!(error.data, Some(required));
        assert_eq!(custom, error);
    }
}

/// EXT-4: over HTTP, a modern client that lacks a required extension gets status 400.
#[tokio::test]
async fn what_is_required_and_not_declared_is_a_bad_request() {
    for id in [NEGOTIATION, VARIANTS, Units::ID] {
        let server = VaryServer::builder()
            .with_handler(Weather)
            .with_required_extension(id.parse().unwrap());
        let server = serve_http(server.build().unwrap()).await;
        let headers = modern_headers("tools/list", "");
        for (extensions, status, code) in [
            (json!({}), 400, json!(-32021)),
            (json!({"com.example/any": {}}), 400, json!(-32021)),
            (json!({id: {}}), 200, Value::Null),
        ] {
            let capabilities = json!({"extensions": extensions});
            let request = modern(1, "tools/list", json!({}), capabilities);
            let answer = post(&server.url, &request, &headers).await;
            let found = (answer.0, &answer.1["error"]["code"]);
            assert_eq!(found, (status, &code), "{id} {request}");
        }
    }
}

#[derive(Default)]
struct Units {
    metric: bool,
}

impl Declaration for Units {
    const ID: &'static str = "com.example/units";

    fn read(settings: &Value) -> (Option<Self>, Ignored) {
        let metric = settings["metric"] == true;
        (Some(Self { metric }), Ignored::default())
    }
}

struct Metric;

impl ServerHandler for Metric {
    async fn list_tools(&self, _: PageParams, context: Context) -> McpResult<ListToolsResult> {
        let metric = declared_by::<Units>(&context).value.metric;
        Err(ErrorData::internal_error(format!("metric: {metric}"), None))
    }
}

/// EXT-2, EXT-8: any other extension is declared by either side, beside or without the two.
#[tokio::test]
async fn another_extension_has_settings_of_its_own() {
    let server = VaryServer::builder()
        .with_handler(Metric)
        .with_extension(Units::ID.parse().unwrap(), json!({"any": true}))
        .with_required_extension(Units::ID.parse().unwrap())
        .build()
        .unwrap();
    for way in each(WAYS) {
        let capabilities = json!({"extensions": {Units::ID: {"metric": true}}});
        let client = connect_with(&server, way, capabilities).await;
        let advertised = client.capabilities();
        assert_eq!(advertised["extensions"], json!({Units::ID: {"any": true}}));
        let error = client.error("", "tools/list", json!({})).await;
        let expected = (-32603, "metric: true");
        assert_eq!((error.code.0, &*error.message), expected);
    }
    let refused = try_connect(&server, (Era::Legacy, Wire::Pipe), json!({})).await;
    assert!(refused.is_err());
}

/// SV-10: a selector where there are no variants.
#[tokio::test]
async fn without_variants_a_selector_is_refused() {
    for way in each(WAYS) {
        let client = connect(&VaryServer::new(Weather), way).await;
        let error = client.error("compact", "tools/list", json!({})).await;
        assert_eq!(error.code.0, -32602);
        assert_eq!(error.message, "Server variants not supported");
        // Methods without variants ignore it.
        let meta = json!({VARIANT: "compact"});
        if way.0 == Era::Legacy {
            client.ask("ping", json!({}), meta).await.unwrap();
        }
    }
}

/// EXT-5: settings that are not an object should be ignored alone. rmcp 3.8 rejects the whole
/// message before a handler sees it, since `ExtensionCapabilities` (model/capabilities.rs) contains
/// objects only. When this test fails, rmcp reads them: update the table in `server.rs`.
#[tokio::test]
async fn rmcp_still_refuses_settings_that_are_no_object() {
    let capabilities = json!({"extensions": {NEGOTIATION: true}});
    let request = modern(1, "tools/list", json!({}), capabilities);
    let answers = lines(VaryServer::new(Weather), &[request]).await;
    assert!(answers[0].contains("-32602"), "{answers:?}");
}

/// CN-18: rmcp 3.8 forgets what a legacy client declared if there are no sessions
/// (`peer_info_for_stateless_request`, transport/streamable_http_server/tower.rs). When this test
/// fails, it remembers: update the table in `server.rs`.
#[tokio::test]
async fn rmcp_still_forgets_features_without_sessions() {
    let server = serve_http_with(VaryServer::new(Weather), |config| {
        config.with_legacy_session_mode(false)
    });
    let server = server.await;
    let capabilities = declaring(&["agent"], json!({}));
    let client = join(&server.url, Era::Legacy, capabilities.clone(), &[]).await;
    let result = client.call("", "tags", json!({})).await;
    assert_eq!(result["content"], text(""));
    let client = join(&server.url, Era::Modern, capabilities, &[]).await;
    let result = client.call("", "tags", json!({})).await;
    assert_eq!(result["content"], text("agent"));
}
