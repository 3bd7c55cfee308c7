//! The server as a client without extensions sees it, in both eras, over a pipe in memory.

use std::fmt::Write as _;

use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, JsonObject,
    ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError};
use rmcp::{ErrorData, RoleClient};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Client = RunningService<RoleClient, ()>;

#[tokio::test]
async fn a_legacy_client_sees_the_whole_server() {
    let client = connect(Era::Legacy).await;
    insta::assert_snapshot!("legacy", everything(&client).await);
}

#[tokio::test]
async fn a_modern_client_sees_the_whole_server() {
    let client = connect(Era::Modern).await;
    insta::assert_snapshot!("modern", everything(&client).await);
}

#[tokio::test]
async fn the_weather_is_said_twice_as_ordinary_servers_do() {
    for era in [Era::Legacy, Era::Modern] {
        let client = connect(era).await;
        let result = call(&client, "get_weather", json!({ "location": "bern" })).await;
        let weather = json!({
            "location": "Bern",
            "temperature_c": 8,
            "humidity_percent": 72,
            "precipitation_probability": 0.3,
            "wind_speed_kmh": 15,
            "uv_index": 2,
            "forecast_summary": "Warming trend expected Thursday"
        });
        assert_eq!(result["structuredContent"], weather);
        assert_eq!(
            result["content"],
            json!([{ "type": "text", "text": weather.to_string() }])
        );
        assert_eq!(result["isError"], false);
    }
}

#[tokio::test]
async fn only_the_forecast_has_an_output_schema_and_keeps_it() {
    let client = connect(Era::Legacy).await;
    let tools = client.list_all_tools().await.unwrap();
    let [weather, forecast] = tools.as_slice() else {
        panic!("expected two tools, got {tools:?}");
    };
    assert_eq!(weather.output_schema, None);
    let schema = Value::Object(forecast.output_schema.as_deref().unwrap().clone());
    for city in ["Bern", "Zürich", "Genf", "Basilea", "Lugano", "Zermatt"] {
        let result = call(&client, "get_forecast", json!({ "location": city })).await;
        jsonschema::validate(&schema, &result["structuredContent"]).unwrap();
    }
}

#[tokio::test]
async fn fewer_days_can_be_asked_for() {
    let client = connect(Era::Modern).await;
    for wanted in 1..=5 {
        let arguments = json!({ "location": "Basel", "days": wanted });
        let result = call(&client, "get_forecast", arguments).await;
        let days = result["structuredContent"]["days"].as_array().unwrap();
        assert_eq!(days.len(), wanted);
    }
}

#[tokio::test]
async fn an_unknown_city_is_a_result_that_names_the_known_ones() {
    for tool in ["get_weather", "get_forecast"] {
        let client = connect(Era::Legacy).await;
        let result = call(&client, tool, json!({ "location": "Atlantis" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result.get("structuredContent"), None);
        assert_eq!(
            result["content"][0]["text"],
            "unknown city \"Atlantis\"; known cities are Bern, Zurich, Geneva, Basel, Lugano, Zermatt"
        );
    }
}

#[tokio::test]
async fn wrong_requests_are_refused() {
    refuses("get_weather", json!({}), "`location` is missing").await;
    refuses("get_weather", json!({ "location": 3 }), "or no string").await;
    refuses("get_tide", json!({ "location": "Bern" }), "unknown tool").await;
    for days in [json!(0), json!(6), json!(1.5), json!("3"), json!(null)] {
        let arguments = json!({ "location": "Bern", "days": days });
        refuses("get_forecast", arguments, "a whole number from 1 to 5").await;
    }
}

#[tokio::test]
async fn what_is_not_listed_is_not_found() {
    let client = connect(Era::Legacy).await;
    let resource = ReadResourceRequestParams::new("map://features/atlantis");
    let error = protocol_error(client.read_resource(resource).await.map(drop));
    assert_eq!(error.code.0, -32002);
    let expected = Some(json!({ "uri": "map://features/atlantis" }));
    assert_eq!(error.data, expected);

    let prompt = GetPromptRequestParams::new("tide_check");
    let error = protocol_error(client.get_prompt(prompt).await.map(drop));
    assert_eq!(error.code.0, -32602);
}

#[tokio::test]
async fn a_client_that_hangs_up_is_no_error() {
    for sent in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", PING] {
        let (server, mut client) = tokio::io::duplex(1024);
        client.write_all(sent.as_bytes()).await.unwrap();
        drop(client);
        weather::serve(server).await.unwrap();
    }
}

#[tokio::test]
async fn a_response_has_the_id_of_its_request() {
    let long = "x".repeat(1 << 19);
    for id in [
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1.5),
        json!("a"),
        json!(long),
    ] {
        for params in [json!({}), json!([]), json!(null)] {
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": params });
            let pong = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
            assert_eq!(responses(format!("{ping}\n")).await, [pong]);
        }
    }
}

#[tokio::test]
async fn what_is_not_a_request_gets_no_result_and_ends_nothing() {
    let pong = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for silent in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
    ] {
        let found = responses(format!("{silent}\n{PING}")).await;
        assert_eq!(found, std::slice::from_ref(&pong), "{silent}");
    }
    for garbage in [
        &b"{"[..],
        b"\xff\xfe",
        b"\"ping\"",
        b"[1]",
        b"{\"id\":1,\"method\":2}",
    ] {
        let found = responses([garbage, b"\n", PING.as_bytes()].concat()).await;
        let [error, last] = &found[..] else {
            panic!("expected two responses to {garbage:?}, got {found:?}");
        };
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&json!(null), &json!(-32700))
        );
        assert_eq!(*last, pong);
    }
}

/// A request, as a line.
const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

/// The lines that a client receives that writes `text` and closes its end.
async fn responses(text: impl AsRef<[u8]>) -> Vec<Value> {
    let (server, mut client) = tokio::io::duplex(1 << 20);
    let write = client.write_all(text.as_ref()).await;
    write.expect("the pipe has room for the text");
    client.shutdown().await.expect("the pipe can be closed");
    let served = weather::serve(server).await;
    served.expect("the server reads to the end");
    let mut received = String::new();
    let read = client.read_to_string(&mut received).await;
    read.expect("the server writes text");
    let lines = received.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("the server writes JSON"))
        .collect()
}

/// The two kinds of handshake.
#[derive(Clone, Copy)]
enum Era {
    Legacy,
    Modern,
}

async fn connect(era: Era) -> Client {
    let (server, client) = tokio::io::duplex(64 * 1024);
    tokio::spawn(weather::serve(server));
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    ().serve_with_lifecycle(client, lifecycle)
        .await
        .expect("the server answers")
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = client
        .call_tool(params(tool, &arguments))
        .await
        .expect("the server answers");
    serde_json::to_value(result).expect("JSON")
}

async fn refuses(tool: &'static str, arguments: Value, because: &str) {
    let client = connect(Era::Legacy).await;
    let result = client.call_tool(params(tool, &arguments)).await;
    let error = protocol_error(result.map(drop));
    assert_eq!(error.code.0, -32602, "{tool} {arguments}");
    assert!(error.message.contains(because), "{}", error.message);
}

fn params(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    let arguments: JsonObject = arguments.as_object().expect("an object").clone();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

#[track_caller]
fn protocol_error(result: Result<(), ServiceError>) -> ErrorData {
    match result {
        Err(ServiceError::McpError(error)) => error,
        other => panic!("expected an error of the protocol, got {other:?}"),
    }
}

/// All lists, and one answer of each kind.
async fn everything(client: &Client) -> String {
    let mut seen = String::new();
    let mut show = |heading: &str, value: Value| {
        let value = serde_json::to_string_pretty(&value).expect("JSON");
        writeln!(seen, "{heading}\n{value}\n").expect("a string takes everything");
    };
    show("server", json(client.peer_info().as_deref()));
    show("tools/list", answered(client.list_tools(None).await));
    show(
        "resources/list",
        answered(client.list_resources(None).await),
    );
    show("prompts/list", answered(client.list_prompts(None).await));
    for tool in ["get_weather", "get_forecast"] {
        let arguments = json!({ "location": "Bern" });
        show(tool, call(client, tool, arguments).await);
    }
    let valley = ReadResourceRequestParams::new("map://features/alpine-valley-1");
    show(
        "resources/read",
        answered(client.read_resource(valley).await),
    );
    let prompt = GetPromptRequestParams::new("weather_check").with_arguments(
        json!({ "location": "Bern" })
            .as_object()
            .expect("an object")
            .clone(),
    );
    show("prompts/get", answered(client.get_prompt(prompt).await));
    let beginning = CompleteRequestParams::new(
        rmcp::model::Reference::for_prompt("weather_check"),
        rmcp::model::ArgumentInfo::new("location", "b"),
    );
    show(
        "completion/complete",
        answered(client.complete(beginning).await),
    );
    seen
}

fn answered<T: Serialize>(result: Result<T, ServiceError>) -> Value {
    json(result.expect("the server answers"))
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}
