//! Notifies one client of the status of one task.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary_results::link_index::LinkIndex;
use mcp_vary_results::shaper::{ResultRewriter, rewrite_result};
use mcp_vary_wire::task_dialect::TaskDialect;

use super::task_text::{RESULT, rename_task};

/// Writes the notifications of one task for one client, with the task as `tasks/get` would return it.
#[derive(Clone, Debug)]
pub(crate) struct TaskNotifier {
    /// The client's id of the task.
    pub(crate) client_id: Arc<str>,
    pub(crate) rewriter: ResultRewriter,
    pub(crate) server: Arc<str>,
    /// The server's name of the tool whose call created the task.
    pub(crate) tool: Arc<str>,
    pub(crate) link_index: Arc<LinkIndex>,
    /// The client's dialect, in which the server or the proxy writes the task.
    pub(crate) dialect: TaskDialect,
}

impl TaskNotifier {
    /// The notification of a task with the status `params`, in the client's dialect.
    pub(crate) fn status(&self, params: &str) -> Bytes {
        let dialect = self.dialect;
        dialect.status_notification(&self.params_to_client(params))
    }

    /// The params of a server's notification, as the client receives them.
    pub(crate) fn params_to_client(&self, params: &str) -> String {
        let task = rename_task(params, &|_| Some(self.client_id.to_string()));
        let Some(result) = edit::get(&task, RESULT).filter(|result| result.starts_with('{')) else {
            return task.into_owned();
        };
        if let Some(origin) = &self.rewriter.origin {
            self.link_index.record(&self.server, origin, result);
        }
        let result = rewrite_result(result, &self.rewriter.rules());
        edit::set(&task, RESULT, &result).into_owned()
    }
}
