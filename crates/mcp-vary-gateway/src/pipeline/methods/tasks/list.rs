//! `tasks/list`.

use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary::json::{self, Members, elements};
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_upstream::{CallerId, Request, SupervisedConnection};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;

use crate::pipeline::methods::{Dispatch, RequestContext};
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::task_text::string;

/// The most pages of a server's list that are read.
const PAGES: usize = 16;

impl RequestContext<'_> {
    /// The client's tasks at all servers, as far as the gateway remembers them.
    pub(crate) async fn list_tasks(&self) -> Result<Dispatch, RpcError> {
        self.dialects()?;
        let after = self.task_cursor()?;
        let mut tasks = self.completed_task_list(after);
        let (others, next) = self.list_extension_tasks(after).await?;
        for (at, source) in ServerIndex::enumerate(self.class.sources()) {
            if after == 0 && self.offers(at, TaskDialect::Core) {
                // A server knows a client's tasks on the connection that created them.
                let dedicated = self.dedicated_connection(at).await?;
                let line = dedicated
                    .as_ref()
                    .map_or(&source.connection, DedicatedLease::connection);
                tasks.extend(self.tasks_of(source.name(), line).await?);
            }
        }
        tasks.extend(others);
        let next = next.map(|next| format!(r#","nextCursor":"{next}""#));
        let (tasks, next) = (tasks.join(","), next.unwrap_or_default());
        let result = format!(r#"{{"tasks":[{tasks}]{next}}}"#);
        Ok(self.answer(&result))
    }

    /// The client's tasks at one server, with the client's ids.
    async fn tasks_of(
        &self,
        server: &str,
        line: &SupervisedConnection,
    ) -> Result<Vec<String>, RpcError> {
        let server: Arc<str> = server.into();
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let mut params = Members::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", cursor.clone());
            }
            let mut request = Request::new("tasks/list", Some(params.to_json()));
            request.caller = Some(CallerId(self.client.id));
            let turn = line.acquire().await?;
            let exchange = line.ready().await?.request(request).await?;
            let answer = exchange.answer().await?;
            drop(turn);
            // A server that cannot list its tasks may still have some.
            let Ok(page) = answer.outcome() else { break };
            let listed = edit::get(page, "tasks").unwrap_or("[]");
            for task in elements(listed).unwrap_or_default() {
                let upstream_id = string(task, "taskId").unwrap_or_default();
                let sealed = self.snapshot.services.tasks.registry.client_id(
                    &server,
                    &upstream_id,
                    self.client.id,
                );
                let visible = sealed.filter(|id| self.shows_task(id));
                found.extend(
                    visible.map(|id| edit::set(task, "taskId", &json::string(&id)).into_owned()),
                );
            }
            cursor = edit::get(page, "nextCursor")
                .filter(|next| *next != "null")
                .map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }
}
