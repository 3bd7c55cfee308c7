//! Tools whose result is the point: big ones, failed ones, and shapes that are legal but rare.

use rmcp::ErrorData;
use rmcp::model::{
    Annotations, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, MetaObject, Resource,
    ResourceContents, Role,
};
use serde_json::{Value, json};

use crate::resources::{PIXEL_PNG, SILENCE_WAV};
use crate::tools::{Call, wrong};

pub(crate) fn call(call: &Call<'_>) -> Option<Result<CallToolResponse, ErrorData>> {
    let answer = match call.name() {
        "echo" => Ok(CallToolResult::structured(Value::Object(call.arguments()))),
        "add" => add(call),
        "big" => big(call),
        "fail" => fail(call),
        "rpc_error" => Err(rpc_error(call)),
        "raw" => raw(call),
        name if call.fixture.shared.added().contains(name) => {
            Ok(CallToolResult::success(vec![ContentBlock::text(name)]))
        }
        _ => return None,
    };
    Some(answer.map(Into::into))
}

fn add(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let number = |name: &str| {
        let value = call.argument(name).and_then(Value::as_f64);
        value.ok_or_else(|| wrong(name, "a number"))
    };
    let sum = number("a")? + number("b")?;
    Ok(CallToolResult::structured(json!({ "sum": sum })))
}

fn big(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let bytes = usize::try_from(call.number("bytes")?)
        .ok()
        .filter(|bytes| *bytes <= MOST_BYTES)
        .ok_or_else(|| wrong("bytes", "at most 64 MiB"))?;
    Ok(CallToolResult::success(vec![ContentBlock::text(
        "x".repeat(bytes),
    )]))
}

fn fail(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let text = call.text("message").unwrap_or("failed as asked");
    Ok(CallToolResult::error(vec![ContentBlock::text(text)]))
}

fn rpc_error(call: &Call<'_>) -> ErrorData {
    let code = call.argument("code").and_then(Value::as_i64);
    let code = code.and_then(|code| i32::try_from(code).ok());
    let message = call.text("message").unwrap_or("an error as asked");
    ErrorData::new(
        ErrorCode(code.unwrap_or(-32000)),
        message.to_owned(),
        call.argument("data").cloned(),
    )
}

fn raw(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let structured = json!({ "items": [{ "id": 1 }, { "id": 2 }] });
    Ok(match call.text("kind")? {
        "mixed" => with_structure(everything(), structured),
        "structured_only" => with_structure(Vec::new(), structured),
        "prose" => with_structure(vec![ContentBlock::text("There are two items.")], structured),
        "array" => with_structure(vec![ContentBlock::text("[1,2]")], json!([1, 2])),
        "string" => with_structure(vec![ContentBlock::text("hello")], json!("hello")),
        "json_text" => CallToolResult::success(vec![ContentBlock::text(structured.to_string())]),
        "empty" => CallToolResult::success(Vec::new()),
        "meta" => {
            let mut meta = MetaObject::new();
            meta.insert("example.com/kept".to_owned(), json!({ "z": 1, "a": null }));
            CallToolResult::success(vec![for_users("for the user only")]).with_meta(Some(meta))
        }
        _ => return Err(wrong("kind", "one of those listed")),
    })
}

fn with_structure(content: Vec<ContentBlock>, structured: Value) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured);
    result
}

/// One block of each kind there is.
fn everything() -> Vec<ContentBlock> {
    let link = Resource::new("test://static-text", "static-text")
        .with_title("Static text")
        .with_mime_type("text/plain");
    let embedded = ResourceContents::text("embedded", "test://embedded-resource");
    vec![
        ContentBlock::text("first"),
        ContentBlock::image(PIXEL_PNG, "image/png"),
        ContentBlock::audio(SILENCE_WAV, "audio/wav"),
        ContentBlock::resource_link(link),
        ContentBlock::resource(embedded.with_mime_type("text/plain")),
        ContentBlock::text("last"),
    ]
}

fn for_users(text: &str) -> ContentBlock {
    let mut block = ContentBlock::text(text);
    if let ContentBlock::Text(text) = &mut block {
        let annotations = Annotations::default().with_audience(vec![Role::User]);
        text.annotations = Some(annotations);
    }
    block
}

const MOST_BYTES: usize = 64 << 20;
