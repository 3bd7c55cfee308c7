//! Tools that return one kind of content each, as the suite prescribes it.

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};

use crate::resources::{PIXEL_PNG, SILENCE_WAV};
use crate::tools::Call;

pub(crate) fn call(call: &Call<'_>) -> Option<Result<CallToolResponse, ErrorData>> {
    let content = match call.name() {
        "test_simple_text" => vec![ContentBlock::text(
            "This is a simple text response for testing.",
        )],
        "test_image_content" => vec![ContentBlock::image(PIXEL_PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(SILENCE_WAV, "audio/wav")],
        "test_embedded_resource" => vec![embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PIXEL_PNG, "image/png"),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Some(Ok(
                CallToolResult::error(vec![ContentBlock::text(text)]).into()
            ));
        }
        "test_custom_header" => match call.text("value") {
            Ok(value) => vec![ContentBlock::text(value)],
            Err(error) => return Some(Err(error)),
        },
        "json_schema_2020_12_tool" => vec![ContentBlock::text(format!(
            "called with {:?}",
            call.arguments().keys().collect::<Vec<_>>()
        ))],
        _ => return None,
    };
    Some(Ok(CallToolResult::success(content).into()))
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}
