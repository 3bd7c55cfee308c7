//! Tasks as JSON text: their status, their time to live, and the ids in them.

use std::borrow::Cow;
use std::time::Duration;

use mcp_vary::json::{self, edit, may_contain};
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, rename_related_task};

use crate::mrtr::INPUT_REQUESTS;

/// The server's id of the task that a result of the core dialect created.
pub(crate) fn core_task_id(result: &str) -> Option<String> {
    string(edit::get(result, "task")?, "taskId")
}

/// The time for which a server retains a task; `None` if it sets no limit.
pub(super) fn lifetime(written: Option<&str>) -> Option<Duration> {
    let milliseconds: f64 = written?.parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// `text` with each task id in it replaced by `name`: of the task itself, of a created task, and of the related task.
pub(super) fn rename_task<'a>(
    text: &'a str,
    name: &dyn Fn(&str) -> Option<String>,
) -> Cow<'a, str> {
    let renamed = |object: &str| {
        let id = name(&string(object, "taskId")?)?;
        Some(edit::set(object, "taskId", &json::string(&id)).into_owned())
    };
    let mut text = Cow::Borrowed(text);
    if let Some(renamed) = renamed(&text) {
        text = Cow::Owned(renamed);
    }
    if let Some(task) = edit::get(&text, "task").and_then(renamed) {
        text = Cow::Owned(edit::set(&text, "task", &task).into_owned());
    }
    if let Cow::Owned(renamed) = rename_related_task(&text, name) {
        text = Cow::Owned(renamed);
    }
    if let Some(renamed) = rename_input_requests(&text, name) {
        text = Cow::Owned(renamed);
    }
    // The result of a task names the task, too.
    let result = edit::get(&text, RESULT);
    if let Some(Cow::Owned(result)) = result.map(|result| rename_related_task(result, name)) {
        text = Cow::Owned(edit::set(&text, RESULT, &result).into_owned());
    }
    text
}

/// `text` with the related tasks of its input requests replaced by `name`; none if there are none.
fn rename_input_requests(text: &str, name: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let requests = edit::get(text, INPUT_REQUESTS)?;
    if !may_contain(requests, RELATED_TASK_META) {
        return None;
    }
    let mut renamed = Cow::Borrowed(requests);
    for (key, request) in edit::members(requests) {
        if let Some(params) = edit::get(request, "params")
            && let Cow::Owned(params) = rename_related_task(params, name)
        {
            let request = edit::set(request, "params", &params);
            renamed = Cow::Owned(edit::set(&renamed, &key, &request).into_owned());
        }
    }
    Some(edit::set(text, INPUT_REQUESTS, &renamed).into_owned())
}

/// The string member `key` of an object.
pub(crate) fn string(object: &str, key: &str) -> Option<String> {
    serde_json::from_str(edit::get(object, key)?).ok()
}

/// The member of a completed task that holds its result (SEP-2663).
pub(crate) const RESULT: &str = "result";
