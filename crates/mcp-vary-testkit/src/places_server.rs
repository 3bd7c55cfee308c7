//! A scripted server with tools, resources and prompts about places, over HTTP, in either era.

use crate::era::Era;
use serde_json::{Value, json};

use crate::message::{discovered, introduced, notification};
use crate::script::Script;
use crate::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};

/// A result with an unusual spelling, unlike that of any SDK, with an object and a text that repeats it.
pub const ODD: &str = concat!(
    r#"{ "x-unknown" : {"b":1e2,"a":-0.0},"content" :[{"type":"text","text":"{\"city\":\"Bern\",\"degrees\":8.0}"}],"#,
    r#" "structuredContent":{"city":"Bern","degrees":8.0},"z":"\u0041\/"}"#
);

/// The bytes of its list of tools.
pub const TOOLS: &str = concat!(
    r#"{"tools":[ {"name":"odd","description":"Says odd things. And more.","inputSchema":{"type":"object","properties":{"n":{"type":"number","description":"A number."}}},"annotations":{"readOnlyHint":true},"x-vendor":1.0},"#,
    r#"{"name":"bound","description":"Is bound to a schema.","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"city":{"type":"string"}}},"annotations":{"readOnlyHint":true}},"#,
    r#"{"name":"fail","description":"Fails.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"refuse","description":"Refuses.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"say","description":"Says back what it got.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"steps","description":"Goes on in steps.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"pretty","description":"Writes on several lines.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"begin","description":"Begins and never ends.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"wait","description":"Never answers.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"Zürich","description":"Has a name outside ASCII.","inputSchema":{"type":"object"}} ]}"#
);

/// Starts the server.
pub async fn start(era: Era) -> ScriptedServer {
    script(era).start().await
}

/// The server of `era`.
pub fn script(era: Era) -> Script {
    let mut discovered = discovered(capabilities());
    discovered["_meta"]["io.modelcontextprotocol/serverInfo"] = info();
    let mut introduced = introduced("places", capabilities());
    introduced["serverInfo"] = info();
    let script = match era {
        Era::Legacy => Script::new(era, "places")
            .result("initialize", introduced)
            .result("logging/setLevel", json!({})),
        Era::Modern => Script::new(era, "places").result("server/discover", discovered),
    };
    script
        .reply("tools/list", |seen| seen.answer_text(TOOLS))
        .may_reply("tools/call", call)
        .results(json!({"resources/list": {"resources": [{"uri": "place:bern", "name": "Bern"}]}}))
        .lists(json!({"resourceTemplates": [{"uriTemplate": "place:{name}", "name": "Place"}]}))
        .reply("resources/read", read)
        .result("prompts/list", json!({"prompts": [{"name": "greet"}]}))
        .reply("prompts/get", |seen| {
            seen.answer_text(r#"{"messages":[ ],"x":1.0}"#)
        })
        .results(json!({"completion/complete": {"completion": {"values": ["Bern"]}}}))
}

/// What it declares.
pub fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}})
}

fn info() -> Value {
    json!({"name": "places", "version": "1.10"})
}

fn read(seen: &ReceivedRequest) -> Reply {
    let uri = &seen.body["params"]["uri"];
    if uri == "place:bern" {
        return seen
            .answer_text(r#"{"contents":[{"uri":"place:bern","text":"Bern"}], "ttlMs":60000}"#);
    }
    let error = json!({"code": -32002, "message": "Resource not found", "data": {"uri": uri}});
    let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
    Reply::json(200, &message)
}

fn call(seen: &ReceivedRequest) -> Option<Reply> {
    let params = &seen.body["params"];
    Some(match params["name"].as_str()? {
        "odd" => seen.answer_text(ODD),
        "bound" => seen.answer_text(ODD),
        "fail" => {
            seen.answer_text(r#"{"content":[{"type":"text","text":"{\"no\":1}"}],"isError":true}"#)
        }
        "pretty" => seen.answer_text("{\n  \"content\": [],\r\n\t\"text\": \"a\\nb\"\r}"),
        "refuse" => seen.refuse(200, -32602, "no such city"),
        "say" => seen.answer(&json!({"content": [], "said": params})),
        "steps" if params["arguments"]["heavy"] == true => heavy_steps(),
        "steps" => steps(seen),
        "wait" => Reply::silence(),
        "begin" => begin(seen),
        _ => seen.answer_text(r#"{"content":[]}"#),
    })
}

/// Sends one message and then nothing.
fn begin(seen: &ReceivedRequest) -> Reply {
    let (sender, reply) = Reply::stream();
    let token = &seen.body["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 1});
    let begun = notification("notifications/progress", params);
    sender.send(event(&begun).into()).unwrap();
    // The stream stays open for as long as the test runs.
    std::mem::forget(sender);
    reply
}

/// Sends far more bytes than the buffers of a connection can store.
fn heavy_steps() -> Reply {
    let params = json!({"level": "info", "data": "x".repeat(1 << 20)});
    let message = notification("notifications/message", params);
    Reply::events(event(&message).repeat(32))
}

/// Two steps with log messages between them, then the response.
fn steps(seen: &ReceivedRequest) -> Reply {
    let token = &seen.body["params"]["_meta"]["progressToken"];
    let progress = |step: u32| {
        let params = json!({"progressToken": token, "progress": step, "total": 2.0});
        notification("notifications/progress", params)
    };
    let log = |level: &str| {
        let params = json!({"level": level, "data": level});
        notification("notifications/message", params)
    };
    let answer = seen.message(&json!({"content": [], "done": true}));
    let messages = [
        progress(1),
        log("debug"),
        log("info"),
        log("error"),
        progress(2),
        answer,
    ];
    Reply::events(messages.iter().map(event).collect::<String>())
}
