//! Translates tasks from one dialect into the other.
//!
//! Both dialects describe a task by the same values. `ttl` and `pollInterval` of the core dialect are `ttlMs` and
//! `pollIntervalMs` in the extension. A created task is in the member `task` in the core dialect; in the extension the
//! result itself is the task. The extension includes the task's result and its input requests in the task; the core
//! dialect has separate requests for them.
//!
//! Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` (SEP-2663).

use std::borrow::Cow;

use mcp_vary::json::{edit, may_contain};
use mcp_vary_wire::meta::SUBSCRIPTION_ID;
use mcp_vary_wire::task_dialect::TaskDialect;

use super::task_text::{RESULT, is_failed_call};

/// The dialect of the client, and that of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct DialectPair {
    pub(crate) client: TaskDialect,
    pub(crate) server: TaskDialect,
}

/// The dialects of all proxied tasks.
pub(crate) const EXT_OVER_CORE: DialectPair = DialectPair {
    client: TaskDialect::Extension,
    server: TaskDialect::Core,
};

impl DialectPair {
    /// The client uses the core dialect, and the server the extension.
    pub(crate) const CORE_OVER_EXT: Self = Self {
        client: TaskDialect::Core,
        server: TaskDialect::Extension,
    };

    /// Both use the same dialect: nothing is translated.
    pub(crate) const fn both(dialect: TaskDialect) -> Self {
        Self {
            client: dialect,
            server: dialect,
        }
    }

    /// Whether tasks have to be translated.
    pub(crate) fn differ(self) -> bool {
        self.client != self.server
    }

    pub(crate) fn is_core_over_ext(self) -> bool {
        self == Self::CORE_OVER_EXT
    }

    /// A server's `CreateTaskResult` in the client's dialect. Members beside the task stay as they are.
    pub(crate) fn creation_result(self, result: &str) -> Cow<'_, str> {
        match (self.server, self.client) {
            (TaskDialect::Core, TaskDialect::Extension) => Cow::Owned(flat(result)),
            (TaskDialect::Extension, TaskDialect::Core) => Cow::Owned(nested(result)),
            _ => Cow::Borrowed(result),
        }
    }

    /// A task in a server's result or notification, in the client's dialect.
    pub(crate) fn task_to_client(self, task: &str) -> Cow<'_, str> {
        match (self.server, self.client) {
            (TaskDialect::Core, TaskDialect::Extension) => {
                respell(Cow::Borrowed(task), TaskDialect::Extension)
            }
            (TaskDialect::Extension, TaskDialect::Core) => {
                let task =
                    edit::and_then(without_the_extension(task), |text| with_failure(text, task));
                respell(
                    edit::and_then(task, without_subscription),
                    TaskDialect::Core,
                )
            }
            _ => Cow::Borrowed(task),
        }
    }
}

/// Members that both dialects have, by their core name and by their name in the extension.
const SPELLINGS: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];

const RESULT_TYPE: &str = "resultType";
const META: &str = "_meta";
const TASK: &str = "task";

/// Members of a task that only the extension has.
const ONLY_EXTENSION: [&str; 4] = [RESULT_TYPE, RESULT, "error", "inputRequests"];

/// `task` with the member names of `form`.
fn respell(task: Cow<'_, str>, dialect: TaskDialect) -> Cow<'_, str> {
    SPELLINGS.iter().fold(task, |task, (core, extension)| {
        let (from, to) = match dialect {
            TaskDialect::Core => (extension, core),
            TaskDialect::Extension => (core, extension),
        };
        edit::and_then(task, |task| edit::rename(task, from, to))
    })
}

fn without_the_extension(task: &str) -> Cow<'_, str> {
    let cut = |task, key| edit::and_then(task, |task| edit::remove(task, key));
    ONLY_EXTENSION.into_iter().fold(Cow::Borrowed(task), cut)
}

/// `task` without the id of the server's subscription.
fn without_subscription(task: &str) -> Cow<'_, str> {
    let Some(meta) = edit::get(task, META).filter(|meta| may_contain(meta, SUBSCRIPTION_ID)) else {
        return Cow::Borrowed(task);
    };
    match &*edit::remove(meta, SUBSCRIPTION_ID) {
        meta if edit::members(meta).next().is_none() => edit::remove(task, META),
        meta => edit::set(task, META, meta),
    }
}

/// `text` with the core dialect's status for a tool that failed, as `task` reports it. The extension reports such a call as `completed`.
///
/// > For tool calls specifically, this includes cases where the tool call result has `isError` set to true.
/// > (MCP 2025-11-25, basic/utilities/tasks, "Task Status")
fn with_failure<'a>(text: &'a str, task: &str) -> Cow<'a, str> {
    let result = edit::get(task, RESULT);
    match edit::get(task, "status") {
        Some(r#""completed""#) if result.is_some_and(is_failed_call) => {
            edit::set(text, "status", r#""failed""#)
        }
        _ => Cow::Borrowed(text),
    }
}

/// Turns a `CreateTaskResult` of the core dialect into one of the extension: the members of the task move into the
/// result.
fn flat(result: &str) -> String {
    let task = edit::get(result, TASK).filter(|task| task.starts_with('{'));
    let mut task = respell(Cow::Borrowed(task.unwrap_or("{}")), TaskDialect::Extension);
    for (key, value) in edit::members(result) {
        if key != TASK && edit::get(&task, &key).is_none() {
            task = Cow::Owned(edit::set(&task, &key, value).into_owned());
        }
    }
    edit::set(&task, RESULT_TYPE, r#""task""#).into_owned()
}

/// Turns a `CreateTaskResult` of the extension into one of the core dialect: all members but `_meta` and those of the
/// extension move into `task`.
fn nested(result: &str) -> String {
    let meta = edit::get(result, META);
    let task = edit::and_then(without_the_extension(result), |task| {
        edit::remove(task, META)
    });
    let task = respell(task, TaskDialect::Core);
    let meta = meta.map(|meta| format!(r#","{META}":{meta}"#));
    format!(r#"{{"{TASK}":{task}{}}}"#, meta.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO_EXTENSION: DialectPair = DialectPair {
        client: TaskDialect::Extension,
        server: TaskDialect::Core,
    };
    const TO_CORE: DialectPair = DialectPair::CORE_OVER_EXT;

    #[track_caller]
    fn is_told(forms: DialectPair, task: &str, expected: &str) {
        assert_eq!(forms.task_to_client(task), expected);
    }

    #[track_caller]
    fn is_made(forms: DialectPair, result: &str, expected: &str) {
        assert_eq!(forms.creation_result(result), expected);
    }

    #[test]
    fn what_both_forms_have_goes_by_the_words_of_each() {
        let core = r#"{ "taskId":"1","status":"working","ttl":60000,"x":1.0,"pollInterval":5000}"#;
        let extension =
            r#"{ "taskId":"1","status":"working","ttlMs":60000,"x":1.0,"pollIntervalMs":5000}"#;
        is_told(TO_EXTENSION, core, extension);
        is_told(TO_CORE, extension, core);
        is_told(TO_EXTENSION, r#"{"ttl":null}"#, r#"{"ttlMs":null}"#);
        // If a server sends both, the reader's own member wins.
        is_told(TO_EXTENSION, r#"{"ttl":1,"ttlMs":2}"#, r#"{"ttlMs":2}"#);
        is_told(TO_CORE, r#"{"ttl":1,"ttlMs":2}"#, r#"{"ttl":1}"#);
    }

    #[test]
    fn what_only_the_extension_says_is_left_out_of_the_core_form() {
        is_told(
            TO_CORE,
            r#"{"resultType":"complete","taskId":"1","status":"completed","ttlMs":null,"result":{"a":1},"_meta":{"m":1}}"#,
            r#"{"taskId":"1","status":"completed","ttl":null,"_meta":{"m":1}}"#,
        );
        is_told(
            TO_CORE,
            r#"{"status":"input_required","inputRequests":{"a":{}}}"#,
            r#"{"status":"input_required"}"#,
        );
        is_told(
            TO_CORE,
            r#"{"status":"failed","error":{"code":1}}"#,
            r#"{"status":"failed"}"#,
        );
        is_told(
            TO_CORE,
            r#"{"status":"completed","result":{"isError":true}}"#,
            r#"{"status":"failed"}"#,
        );
    }

    #[test]
    fn a_task_that_was_made_stands_where_each_form_has_it() {
        is_made(
            TO_EXTENSION,
            r#"{"task":{"taskId":"1","status":"working","ttl":null,"x":1.0},"_meta":{"m":1},"y":2.0}"#,
            r#"{"taskId":"1","status":"working","ttlMs":null,"x":1.0,"_meta":{"m":1},"y":2.0,"resultType":"task"}"#,
        );
        is_made(
            TO_CORE,
            r#"{"resultType":"task","taskId":"1","status":"working","ttlMs":null,"x":1.0,"_meta":{"m":1}}"#,
            r#"{"task":{"taskId":"1","status":"working","ttl":null,"x":1.0},"_meta":{"m":1}}"#,
        );
        is_made(TO_CORE, r#"{"resultType":"task"}"#, r#"{"task":{}}"#);
        is_made(TO_EXTENSION, "7", r#"{"resultType":"task"}"#);
    }

    #[test]
    fn nothing_is_changed_between_those_who_know_the_same_form() {
        for form in TaskDialect::BOTH {
            let text = r#"{ "task":{"ttl":1},"ttlMs":1,"result":{} }"#;
            assert!(
                matches!(DialectPair::both(form).task_to_client(text), Cow::Borrowed(task) if task == text)
            );
            assert!(
                matches!(DialectPair::both(form).creation_result(text), Cow::Borrowed(task) if task == text)
            );
        }
    }
}
