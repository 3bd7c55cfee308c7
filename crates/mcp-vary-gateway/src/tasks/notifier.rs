//! How a task stands, in the words of whoever hears of it.

use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary_catalog::link_index::LinkIndex;

use super::{Forms, renamed};
use crate::pipeline::exchange::{ResultRewriter, rewrite_result};

/// What it takes to tell one client of one task: as `tasks/get` would.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    /// What the client calls the task.
    pub(crate) sealed: Arc<str>,
    pub(crate) retelling: ResultRewriter,
    pub(crate) server: Arc<str>,
    pub(crate) links: Arc<LinkIndex>,
    pub(crate) forms: Forms,
}

impl Teller {
    /// What a server says of its task in the parameters of a notification, as the client is told it.
    pub(crate) fn told(&self, params: &str) -> String {
        let said = self.forms.told(params);
        let named = renamed(&said, &|_| Some(self.sealed.to_string()));
        let Some(result) = edit::get(&named, RESULT).filter(|it| it.starts_with('{')) else {
            return named.into_owned();
        };
        if let Some(origin) = &self.retelling.origin {
            self.links.record(&self.server, origin, result);
        }
        let result = rewrite_result(result, &self.retelling.rules());
        edit::set(&named, RESULT, &result).into_owned()
    }
}

/// What a task that is completed has come to, in what is said of it (SEP-2663).
pub(crate) const RESULT: &str = "result";
