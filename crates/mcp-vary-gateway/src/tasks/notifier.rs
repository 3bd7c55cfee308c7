//! How a task stands, in the words of whoever hears of it.

use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary_catalog::link_index::LinkIndex;
use mcp_vary_catalog::result_rewriter::{ResultRewriter, rewrite_result};

use super::{DialectPair, rename_task};

/// What it takes to tell one client of one task: as `tasks/get` would.
#[derive(Clone, Debug)]
pub(crate) struct TaskNotifier {
    /// What the client calls the task.
    pub(crate) client_id: Arc<str>,
    pub(crate) rewriter: ResultRewriter,
    pub(crate) server: Arc<str>,
    pub(crate) links: Arc<LinkIndex>,
    pub(crate) dialects: DialectPair,
}

impl TaskNotifier {
    /// What a server says of its task in the parameters of a notification, as the client is told it.
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

/// What a task that is completed has come to, in what is said of it (SEP-2663).
pub(crate) const RESULT: &str = "result";
