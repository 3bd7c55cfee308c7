//! Notifies one client of the status of one task.

use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary_catalog::link_index::LinkIndex;
use mcp_vary_catalog::result_rewriter::{ResultRewriter, rewrite_result};

use super::{DialectPair, rename_task};

/// What is needed to write the notifications of one task for one client, as `tasks/get` would return it.
#[derive(Clone, Debug)]
pub(crate) struct TaskNotifier {
    /// The client's id of the task.
    pub(crate) client_id: Arc<str>,
    pub(crate) rewriter: ResultRewriter,
    pub(crate) server: Arc<str>,
    pub(crate) links: Arc<LinkIndex>,
    pub(crate) dialects: DialectPair,
}

impl TaskNotifier {
    /// The params of a server's notification, as the client receives them.
    pub(crate) fn notification(&self, params: &str) -> String {
        let said = self.dialects.task_to_client(params);
        let named = rename_task(&said, &|_| Some(self.client_id.to_string()));
        let Some(result) = edit::get(&named, RESULT).filter(|it| it.starts_with('{')) else {
            return named.into_owned();
        };
        if let Some(origin) = &self.rewriter.origin {
            self.links.record(&self.server, origin, result);
        }
        let result = rewrite_result(result, &self.rewriter.rules());
        edit::set(&named, RESULT, &result).into_owned()
    }
}

/// The member of a completed task that holds its result (SEP-2663).
pub(crate) const RESULT: &str = "result";
