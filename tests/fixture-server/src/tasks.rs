//! The tools that may run as tasks (SEP-2663): the server decides, by what the client declared.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, JsonObject,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::ask;
use crate::state::Shared;

/// Whether a tool of this name belongs here.
pub(crate) fn knows(name: &str) -> bool {
    name == "greet" || WITH_OR_WITHOUT.contains(&name) || TASK_ONLY.contains(&name)
}

/// Calls one of the tools, as a task where the client can and the tool does.
///
/// # Errors
///
/// -32021 where a client without tasks calls a tool that is always one; and what the tool itself fails with.
pub(crate) async fn call(
    shared: &Shared,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.as_ref();
    let arguments = request.arguments.unwrap_or_default();
    if name == "greet" {
        return Ok(says(format!("Hello, {}!", text(&arguments, "name", "friend"))).into());
    }
    let as_task = context
        .client_capabilities()
        .is_some_and(|capabilities| capabilities.supports_tasks());
    if TASK_ONLY.contains(&name) && !as_task {
        return Err(ErrorData::missing_required_client_capability(
            ClientCapabilities::builder().enable_tasks().build(),
        ));
    }
    let mut arguments = arguments;
    if name == "test_tool_with_task" {
        let Some(response) = ask::response(request.input_responses.as_ref(), "user_name") else {
            let question = ask::field("What is your name?", "name", "string");
            return Ok(ask::required([("user_name", question)], None).into());
        };
        arguments.insert("name".to_owned(), ask::filled(response, "name").into());
    }
    let name = name.to_owned();
    if as_task {
        let task = shared.tasks().spawn(TaskOptions::default(), move |task| {
            Box::pin(async move { work(&name, &arguments, Some(&task)).await })
        });
        return Ok(CreateTaskResult::new(task).into());
    }
    match work(&name, &arguments, None).await {
        Ok(result) => Ok(result.into()),
        Err(TaskExit::Error(error)) => Err(error),
        Err(TaskExit::Cancelled) => Err(ErrorData::internal_error("cancelled", None)),
    }
}

async fn work(
    name: &str,
    arguments: &JsonObject,
    task: Option<&TaskContext>,
) -> Result<CallToolResult, TaskExit> {
    match (name, task) {
        ("slow_compute", _) => slow_compute(arguments, task).await,
        ("failing_job", _) => {
            tokio::time::sleep(A_WHILE).await;
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "this job always fails",
            )]))
        }
        ("confirm_delete", Some(task)) => confirm_delete(arguments, task).await,
        ("multi_input", Some(task)) => multi_input(task).await,
        ("test_tool_with_task", _) => {
            tokio::time::sleep(A_WHILE).await;
            Ok(says(format!(
                "Hello, {}!",
                text(arguments, "name", "friend")
            )))
        }
        _ => Err(TaskExit::Error(ErrorData::internal_error(
            "this job always breaks",
            None,
        ))),
    }
}

async fn slow_compute(
    arguments: &JsonObject,
    task: Option<&TaskContext>,
) -> Result<CallToolResult, TaskExit> {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let duration = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(Duration::from_secs(1));
    let cancelled = async {
        match task {
            Some(task) => task.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancelled => Err(TaskExit::Cancelled),
        () = tokio::time::sleep(duration) => {
            Ok(says(format!("computed {}", text(arguments, "label", "something"))))
        }
    }
}

async fn confirm_delete(
    arguments: &JsonObject,
    task: &TaskContext,
) -> Result<CallToolResult, TaskExit> {
    let file = text(arguments, "filename", "file.txt");
    let question = ask::field(&format!("Delete {file}?"), "confirm", "boolean");
    let answer = task.request_input("confirm", question).await?;
    let confirmed = answer.pointer("/content/confirm") == Some(&Value::Bool(true));
    Ok(says(if confirmed {
        format!("deleted {file}")
    } else {
        format!("kept {file}")
    }))
}

/// Asks for two values at once, so that a client can answer one and leave the other open.
async fn multi_input(task: &TaskContext) -> Result<CallToolResult, TaskExit> {
    let (first, second) = tokio::try_join!(
        task.request_input("first", ask::field("The first value?", "value", "string")),
        task.request_input("second", ask::field("The second value?", "value", "string")),
    )?;
    Ok(says(format!("got {first} and {second}")))
}

fn says(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn text<'a>(arguments: &'a JsonObject, name: &str, otherwise: &'a str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or(otherwise)
}

/// Long enough that a client can see the task at work.
const A_WHILE: Duration = Duration::from_millis(300);

/// Tasks for clients that can, ordinary calls for the others.
const WITH_OR_WITHOUT: &[&str] = &["slow_compute", "protocol_error_job"];

/// The server cannot answer these without a task.
const TASK_ONLY: &[&str] = &[
    "failing_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];
