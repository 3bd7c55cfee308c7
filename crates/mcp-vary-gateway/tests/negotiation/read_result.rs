//! The tool that reads what was left out of a result.

use mcp_vary_gateway::Base;

use crate::support::*;

const ROWS: usize = 1_000;

fn rows() -> Value {
    (0..ROWS)
        .map(|at| json!({"id": at, "none": null}))
        .collect()
}

/// A server of two tools, the second of which has the name of ours.
fn server(other: &str) -> Script {
    Script::legacy("rows")
        .tools(&["rows", other])
        .on_call(|params| match params["name"].as_str() {
            Some("rows") => json!({"content": [{"type": "text", "text": rows().to_string()}]}),
            _ => json!({"content": [{"type": "text", "text": "the server's own"}]}),
        })
}

fn on(config: Config) -> Config {
    config.with_read_result(true)
}

fn few() -> Value {
    features(&["verbosity=compact"])
}

async fn names(kind: ClientKind, harness: &Harness) -> Vec<String> {
    let list = kind.ask(harness, &few(), "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn call(harness: &Harness, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let answer = ask_modern_as(harness, &few(), "tools/call", params).await;
    assert!(answer.get("result").is_some(), "{answer}");
    answer["result"].clone()
}

/// CN-13: where the operator has it on there is a tool that reads the rest, and results name it.
#[tokio::test]
async fn a_tool_reads_what_is_left_out() {
    let harness = Harness::with_server(server("other"), on).await;
    for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
        assert_eq!(names(way, &harness).await, ["rows", "other", "read_result"]);
    }
    let told = call(&harness, "rows", json!({})).await;
    let said = texts(&told)[1];
    let expected = "\nthe tool `read_result` reads these URIs";
    assert!(said.ends_with(expected), "{said}");
    let uri = link(&told);
    let id = uri.strip_prefix("vary://result/").unwrap();
    let page = json!([rows()[7], rows()[8]]).to_string();
    for arguments in [
        json!({"uri": uri, "offset": 7, "limit": 2}),
        json!({"uri": id, "pointer": "", "offset": 7, "limit": 2}),
        json!({"uri": format!("{uri}?offset=7"), "limit": 2}),
        json!({"uri": format!("{uri}?offset=7&limit=2")}),
    ] {
        let part = call(&harness, "read_result", arguments).await;
        assert_eq!(texts(&part)[0], page);
        assert!(texts(&part)[1].starts_with("7 to 9 of 1000; the next part: vary://result/"));
    }
    let params = json!({"uri": uri, "pointer": "/999/id"});
    let row = call(&harness, "read_result", params).await;
    assert_eq!(texts(&row), ["999"]);
    let (mut all, mut next) = (Vec::new(), Some(uri.to_owned()));
    while let Some(uri) = next {
        let part = call(&harness, "read_result", json!({"uri": uri})).await;
        let page: Vec<Value> = serde_json::from_str(texts(&part)[0]).unwrap();
        all.extend(page);
        let more = texts(&part)
            .get(1)
            .map(|said| said.rsplit_once(' ').unwrap().1);
        next = more.map(str::to_owned);
    }
    assert_eq!(Value::from(all), rows());
}

/// CN-7: without it lists and results are what they were.
#[tokio::test]
async fn it_is_off_where_nobody_says() {
    let harness = Harness::of_server(server("other")).await;
    let expected = ["rows", "other"];
    assert_eq!(names(ClientKind::HttpModern, &harness).await, expected);
    let told = call(&harness, "rows", json!({})).await;
    assert!(!told.to_string().contains("read_result"), "{told}");
    let params = json!({"name": "read_result", "arguments": {}});
    let refused = ask_modern_as(&harness, &few(), "tools/call", params).await;
    refused.has("/error/code", -32602);
}

/// A model that asks for what is not there is told so, as of any tool.
#[tokio::test]
async fn what_cannot_be_read_is_said_to_the_model() {
    let harness = Harness::with_server(server("other"), on).await;
    let told = call(&harness, "rows", json!({})).await;
    let uri = link(&told);
    for (arguments, why) in [
        (json!({}), "`uri` is missing"),
        (json!({"uri": 7}), "`uri` is missing"),
        (
            json!({"uri": "vary://result/0"}),
            "the result is unknown or has expired",
        ),
        (json!({"uri": uri, "pointer": "/x"}), "omit the pointer"),
        (
            json!({"uri": uri, "pointer": 1}),
            "`pointer` is not a string",
        ),
        (json!({"uri": uri, "offset": 1000}), "begin before that"),
        (
            json!({"uri": uri, "offset": -1}),
            "`offset` is negative or not a whole number",
        ),
        (json!({"uri": uri, "limit": 0}), "ask for one at the least"),
        (json!({"uri": uri, "page": 2}), "is none of"),
    ] {
        let refused = call(&harness, "read_result", arguments.clone()).await;
        assert_eq!(refused["isError"], true, "{arguments}");
        assert!(texts(&refused)[0].contains(why), "{arguments}: {refused}");
    }
}

/// What a session got is that session's, by the tool as by the resource.
#[tokio::test]
async fn one_session_reads_nothing_of_another() {
    let harness = Harness::with_server(server("other"), on).await;
    let mut mine = LegacyClient::open(&harness, "2025-11-25", &few()).await;
    let mut other = LegacyClient::open(&harness, "2025-11-25", &few()).await;
    let told = mine.answer("tools/call", tool("rows")).await;
    let params = json!({"name": "read_result", "arguments": {"uri": link(&told["result"])}});
    let read = mine.answer("tools/call", params.clone()).await;
    assert_eq!(read["result"].get("isError"), None, "{read}");
    let refused = other.answer("tools/call", params).await;
    refused.has("/result/isError", true);
}

/// A tool of a server that has the name keeps it.
#[tokio::test]
async fn a_server_keeps_the_name() {
    let harness = Harness::with_server(server("read_result"), on).await;
    let listed = ["rows", "read_result", "vary_read_result"];
    assert_eq!(names(ClientKind::HttpModern, &harness).await, listed);
    let own = call(&harness, "read_result", json!({})).await;
    assert_eq!(texts(&own), ["the server's own"]);
    let told = call(&harness, "rows", json!({})).await;
    assert!(texts(&told)[1].ends_with("the tool `vary_read_result` reads these URIs"));
    let arguments = json!({"uri": link(&told), "limit": 1});
    let read = call(&harness, "vary_read_result", arguments).await;
    assert_eq!(texts(&read)[0], json!([rows()[0]]).to_string());
}

/// What a tool said is read in variants that show the tool, whichever way.
#[tokio::test]
async fn a_variant_without_the_tool_reads_nothing_of_it() {
    let harness = Harness::with_server(server("other"), |config| {
        let all = ServerVariant::new("all".parse().unwrap(), "All of it");
        let some = ServerVariant::new("some".parse().unwrap(), "Some of it");
        let mut some = VariantConfig::new(some).with_base(Base::Standard);
        some.tools = serde_json::from_str(r#"{"exclude": ["rows"]}"#).unwrap();
        on(config
            .with_variants_of(vec![VariantConfig::new(all), some])
            .unwrap())
    })
    .await;
    let select = |variant: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/server-variant": variant});
        params
    };
    let told = ask_modern_as(&harness, &few(), "tools/call", select("all", tool("rows"))).await;
    let uri = link(&told["result"]).to_owned();
    for (variant, is_read) in [("all", true), ("some", false)] {
        let params = select(variant, json!({"uri": uri}));
        let read = ask_modern_as(&harness, &few(), "resources/read", params).await;
        assert_eq!(read.get("result").is_some(), is_read, "{variant}: {read}");
        let params = json!({"name": "read_result", "arguments": {"uri": uri}});
        let read = ask_modern_as(&harness, &few(), "tools/call", select(variant, params)).await;
        assert_eq!(
            read["result"]["isError"] != true,
            is_read,
            "{variant}: {read}"
        );
    }
}
