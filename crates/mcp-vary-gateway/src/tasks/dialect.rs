//! Translates tasks of the core dialect into the extension.
//!
//! Both dialects describe a task by the same values. `ttl` and `pollInterval` of the core dialect are `ttlMs` and
//! `pollIntervalMs` in the extension. A created task is in the member `task` in the core dialect; in the extension the
//! result itself is the task. The extension includes the task's result and its input requests in the task; the core
//! dialect has separate requests for them.
//!
//! Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` (SEP-2663).

use std::borrow::Cow;

use mcp_vary::json::edit;
use mcp_vary_wire::task_dialect::TaskDialect;

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
    /// Both use the same dialect: nothing is translated.
    pub(crate) const fn both(dialect: TaskDialect) -> Self {
        Self {
            client: dialect,
            server: dialect,
        }
    }
}

/// Members that both dialects have, by their core name and by their name in the extension.
const SPELLINGS: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];

const TASK: &str = "task";

/// A task of the core dialect with the member names of the extension.
pub(super) fn task_of_extension(task: &str) -> Cow<'_, str> {
    SPELLINGS
        .iter()
        .fold(Cow::Borrowed(task), |task, (core, extension)| {
            edit::and_then(task, |task| edit::rename(task, core, extension))
        })
}

/// Turns a `CreateTaskResult` of the core dialect into one of the extension: the members of the task move into the
/// result.
pub(super) fn creation_result_of_extension(result: &str) -> String {
    let task = edit::get(result, TASK).filter(|task| task.starts_with('{'));
    let mut task = task_of_extension(task.unwrap_or("{}"));
    for (key, value) in edit::members(result) {
        if key != TASK && edit::get(&task, &key).is_none() {
            task = Cow::Owned(edit::set(&task, &key, value).into_owned());
        }
    }
    edit::set(&task, "resultType", r#""task""#).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_translated(task: &str, expected: &str) {
        assert_eq!(task_of_extension(task), expected);
    }

    #[track_caller]
    fn is_created(result: &str, expected: &str) {
        assert_eq!(creation_result_of_extension(result), expected);
    }

    #[test]
    fn a_task_has_the_member_names_of_the_extension() {
        is_translated(
            r#"{ "taskId":"1","status":"working","ttl":60000,"x":1.0,"pollInterval":5000}"#,
            r#"{ "taskId":"1","status":"working","ttlMs":60000,"x":1.0,"pollIntervalMs":5000}"#,
        );
        is_translated(r#"{"ttl":null}"#, r#"{"ttlMs":null}"#);
        // If a server sends both, the member of the extension wins.
        is_translated(r#"{"ttl":1,"ttlMs":2}"#, r#"{"ttlMs":2}"#);
    }

    #[test]
    fn a_created_task_is_the_result_itself() {
        is_created(
            r#"{"task":{"taskId":"1","status":"working","ttl":null,"x":1.0},"_meta":{"m":1},"y":2.0}"#,
            r#"{"taskId":"1","status":"working","ttlMs":null,"x":1.0,"_meta":{"m":1},"y":2.0,"resultType":"task"}"#,
        );
        is_created("7", r#"{"resultType":"task"}"#);
    }
}
