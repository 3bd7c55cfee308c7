//! Tools that report while they run: progress, messages for the log, changed lists.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use serde_json::{Value, json};

use crate::changes::List;
use crate::tools::{Call, wrong};

pub(crate) async fn call(call: &Call<'_>) -> Option<Result<CallToolResponse, ErrorData>> {
    let answer = match call.name() {
        "test_tool_with_logging" => Ok(log_three_times(call).await),
        "test_tool_with_progress" => Ok(progress_in_halves(call).await),
        "test_logging_tool" => Ok(log_once(call).await),
        "test_reconnection" => {
            tokio::time::sleep(A_WHILE).await;
            Ok(says("reconnected"))
        }
        "test_trigger_tool_change" => {
            call.fixture.shared.audience().tell(List::Tools).await;
            Ok(says("the tools are said to have changed"))
        }
        "test_trigger_prompt_change" => {
            call.fixture.shared.audience().tell(List::Prompts).await;
            Ok(says("the prompts are said to have changed"))
        }
        "update_resource" => update_resource(call).await,
        "add_tool" => add_tool(call).await,
        "remove_tool" => remove_tool(call).await,
        "progress" => progress(call).await,
        "log" => log(call).await,
        "release" => {
            call.fixture.shared.released().send_replace(());
            Ok(says("released"))
        }
        _ => return None,
    };
    Some(answer.map(Into::into))
}

/// Reports that `done` of `total` is done, if the caller wants to know.
pub(crate) async fn report_progress(call: &Call<'_>, done: f64, total: f64, message: &str) {
    if let Some(token) = call.context.meta.get_progress_token() {
        let report = ProgressNotificationParam::new(token, done)
            .with_total(total)
            .with_message(message);
        // A caller that is gone needs no report.
        let _ = call.context.peer.notify_progress(report).await;
    }
}

/// Sends a message for the log, if the caller wants messages of that level.
///
/// A stateless caller says so in the request, and hears nothing unless it does.
async fn send_log(call: &Call<'_>, level: LoggingLevel, data: Value) {
    let stateless = call
        .context
        .protocol_version()
        .is_some_and(|version| !version.has_initialize());
    let wanted = if stateless {
        call.context.meta.log_level()
    } else {
        Some(call.fixture.level())
    };
    if wanted.is_some_and(|least| level as u8 >= least as u8) {
        let message = LoggingMessageNotificationParam::new(level, data).with_logger("fixture");
        let _ = call.context.peer.notify_logging_message(message).await;
    }
}

async fn log_three_times(call: &Call<'_>) -> CallToolResult {
    send_log(call, LoggingLevel::Info, json!("Tool execution started")).await;
    tokio::time::sleep(A_MOMENT).await;
    send_log(call, LoggingLevel::Info, json!("Tool processing data")).await;
    tokio::time::sleep(A_MOMENT).await;
    send_log(call, LoggingLevel::Info, json!("Tool execution completed")).await;
    says("logged three times")
}

async fn log_once(call: &Call<'_>) -> CallToolResult {
    send_log(call, LoggingLevel::Emergency, json!("logged as asked")).await;
    says("logged if asked to")
}

async fn progress_in_halves(call: &Call<'_>) -> CallToolResult {
    for (done, message) in [(0.0, "begun"), (50.0, "half done"), (100.0, "done")] {
        report_progress(call, done, 100.0, message).await;
        tokio::time::sleep(A_MOMENT).await;
    }
    says("progressed")
}

async fn progress(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let steps = call.number("steps")?;
    let steps = u32::try_from(steps).map_err(|_| wrong("steps", "a number that fits 32 bits"))?;
    for step in 1..=steps {
        let message = format!("step {step}");
        report_progress(call, step.into(), steps.into(), &message).await;
    }
    Ok(says(&format!("took {steps} steps")))
}

/// Goes through the levels from the lowest up, again and again.
async fn log(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let count = call.number("count")?;
    let first = match call.argument("first") {
        None => 0,
        Some(_) => call.number("first")?,
    };
    let mut released = call.fixture.shared.released().subscribe();
    for (number, level) in (0..count).zip(LEVELS.iter().cycle()) {
        let number = first.saturating_add(number);
        send_log(call, *level, json!({ "number": number })).await;
    }
    if call.argument("hold") == Some(&Value::Bool(true)) {
        // Nobody sends it but who is here, so it lasts.
        let _ = released.changed().await;
    }
    Ok(says(&format!("had {count} messages")))
}

async fn update_resource(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let uri = call.text("uri")?;
    call.fixture.shared.audience().tell_updated(uri).await;
    Ok(says("the resource is said to have changed"))
}

async fn add_tool(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let name = call.text("name")?;
    let shared = &call.fixture.shared;
    if super::find(name, shared).is_some() {
        return Ok(CallToolResult::error(vec![ContentBlock::text(format!(
            "there is a tool {name} already"
        ))]));
    }
    shared.added().insert(name.to_owned());
    shared.audience().tell(List::Tools).await;
    Ok(says(&format!("added {name}")))
}

async fn remove_tool(call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let name = call.text("name")?;
    let shared = &call.fixture.shared;
    if !shared.added().remove(name) {
        return Ok(CallToolResult::error(vec![ContentBlock::text(format!(
            "no tool {name} was added"
        ))]));
    }
    shared.audience().tell(List::Tools).await;
    Ok(says(&format!("removed {name}")))
}

fn says(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// What the suite asks for between two reports.
const A_MOMENT: Duration = Duration::from_millis(50);
/// Longer than a gateway waits for an answer before it opens a stream for it.
const A_WHILE: Duration = Duration::from_secs(3);

const LEVELS: [LoggingLevel; 8] = [
    LoggingLevel::Debug,
    LoggingLevel::Info,
    LoggingLevel::Notice,
    LoggingLevel::Warning,
    LoggingLevel::Error,
    LoggingLevel::Critical,
    LoggingLevel::Alert,
    LoggingLevel::Emergency,
];
