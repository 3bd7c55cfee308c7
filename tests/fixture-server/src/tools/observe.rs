//! Tools by which a test sees what reached the server, and when a call was given up.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::tools::Call;
use crate::tools::reporting::report_progress;

pub(crate) async fn call(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let answer = match call.name() {
        "slow" => slow(call).await,
        "cancelled_count" => cancelled_count(call).await,
        "seen" => Ok(CallToolResult::structured(seen(call))),
        // An abort, so that nothing is flushed, answered or closed in good order.
        "crash" => std::process::abort(),
        name => Err(ErrorData::internal_error(
            format!("{name} is listed, but nothing answers it"),
            None,
        )),
    };
    answer.map(Into::into)
}

/// Waits, and counts itself as cancelled when it does not come to its end.
///
/// The report at the start tells a test that there is something to cancel.
async fn slow(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let milliseconds = call.number("ms")?;
    let unfinished = Unfinished(call.fixture.shared.cancelled());
    report_progress(call, 0.0, 1.0, "begun").await;
    tokio::select! {
        () = call.context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        () = tokio::time::sleep(Duration::from_millis(milliseconds)) => {
            unfinished.finish();
            Ok(CallToolResult::success(vec![ContentBlock::text(format!(
                "waited {milliseconds} ms"
            ))]))
        }
    }
}

/// Counts a call that ends any other way than by [`Unfinished::finish`], also when it is dropped.
struct Unfinished<'a>(&'a watch::Sender<u64>);

impl Unfinished<'_> {
    fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// How many slow calls were cancelled; waits until there are as many as the caller expects.
async fn cancelled_count(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let expected = match call.argument("at_least") {
        None => 0,
        Some(_) => call.number("at_least")?,
    };
    let mut count = call.fixture.shared.cancelled().subscribe();
    let count = count
        .wait_for(|count| *count >= expected)
        .await
        .map(|count| *count)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(CallToolResult::structured(json!({ "cancelled": count })))
}

/// The request as it reached the server: who asked, in which revision, with which metadata and headers.
fn seen(call: &Call<'_>) -> Value {
    let context = &call.context;
    let headers: Option<JsonObject> = context
        .extensions
        .get::<http::request::Parts>()
        .map(|parts| parts.headers.iter().map(header).collect());
    json!({
        "protocolVersion": context.protocol_version(),
        "clientInfo": context.client_info(),
        "clientCapabilities": context.client_capabilities(),
        "arguments": call.arguments(),
        "meta": context.meta,
        "headers": headers,
    })
}

fn header((name, value): (&http::HeaderName, &http::HeaderValue)) -> (String, Value) {
    let value = String::from_utf8_lossy(value.as_bytes());
    (name.to_string(), value.into())
}
