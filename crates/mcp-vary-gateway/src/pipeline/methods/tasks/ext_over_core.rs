//! Clients of the extension with servers of the core form.
//!
//! In the extension, the server decides which calls become tasks. The gateway decides it for servers of the core form:
//! a call of a tool that requires a task becomes one, and all other calls are sent without.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary_upstream::{CallerId, Request, SupervisedConnection};
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

use crate::mrtr::{Quota, read_responses};
use crate::pipeline::exchange::ResponseContext;
use crate::pipeline::method_action::{MethodAction, TaskAction};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::tasks::{FoundTask, TaskNotFound};
use crate::pipeline::methods::{ForwardRequest, RequestContext};
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::proxy::{EXT_OVER_CORE, ProxiedTask, TaskBounds, TaskConnection, TaskOwner};
use crate::tasks::{DialectPair, TaskIdCodec, split_prefix};

impl RequestContext<'_> {
    /// The connection of the task that a tool call may create, if the gateway has to proxy the task.
    pub(crate) fn task_connection(
        &self,
        line: &Arc<SupervisedConnection>,
        finish: &ResponseContext,
    ) -> Option<Box<TaskConnection>> {
        let names = finish.plan.task.as_ref()?;
        let is_watched = names.is_proxied() && matches!(self.action, MethodAction::CallTool);
        is_watched.then(|| {
            let road = TaskConnection::new(line, self.allowed());
            Box::new(road.with_progress(finish.progress.clone()))
        })
    }

    fn allowed(&self) -> TaskBounds {
        let limits = &self.snapshot.config.limits;
        TaskBounds {
            quota: Quota::of(limits),
            lifetime: limits.task_lifetime,
            result_bytes: limits.result_store,
        }
    }

    /// Answers a client of the extension about a task of the core form.
    pub(super) async fn answer_proxied_task(
        mut self,
        found: FoundTask,
    ) -> Result<Dispatch, RpcError> {
        let (_, upstream_id) = split_prefix(&found.task.id);
        self.request
            .params
            .members
            .set("taskId", json::string(upstream_id));
        let responses = self.request.params.members.remove("inputResponses");
        let params = self.upstream_task_params(&found);
        let watched = self.proxied(&found, &params).await?;
        match self.action {
            MethodAction::Task(TaskAction::Update) => {
                let responses = read_responses(responses.as_deref())?;
                watched.answer(&responses);
                Ok(self.answer("{}"))
            }
            MethodAction::Task(TaskAction::Cancel) => {
                watched.cancel(Some(params)).await?;
                Ok(self.answer("{}"))
            }
            _ => {
                let stands = watched.status(params).await;
                let stands = stands.map_err(|failure| self.respell_task(&found, failure))?;
                self.task_status(&found, &stands)
            }
        }
    }

    /// The answer with the status of a task, which already has the extension's form.
    fn task_status(&self, found: &FoundTask, stands: &str) -> Result<Dispatch, RpcError> {
        let mut downward = self.plan_of(found);
        downward.task = Some(Box::new(self.task_codec(found)));
        let mut forwarding = ForwardRequest {
            server: found.place.server,
            plan: downward,
            ..ForwardRequest::default()
        };
        let finish = self.response_context(found.view, &mut forwarding)?;
        Ok(Dispatch::Done(
            finish.task(stands, &self.snapshot.services.exchange),
        ))
    }

    /// The codec for the ids in messages that already have the extension's form.
    fn task_codec(&self, found: &FoundTask) -> TaskIdCodec {
        let (mark, upstream_id) = split_prefix(&found.task.id);
        let forms = DialectPair::both(EXT_OVER_CORE.client);
        let names = self.new_task_codec(
            forms,
            found.view,
            &found.place,
            Some(upstream_id.to_owned()),
        );
        TaskIdCodec {
            prefix: mark.map(str::to_owned),
            ..names
        }
    }

    fn respell_task(&self, found: &FoundTask, mut failure: RpcError) -> RpcError {
        if let Some(message) = self.task_codec(found).rename_in_message(failure.message()) {
            failure.set_message(message);
        }
        failure
    }

    /// The params of the client's request, as the server of the task expects them.
    fn upstream_task_params(&mut self, found: &FoundTask) -> String {
        let hello = self.catalog.handshake(found.place.server);
        let revision = hello.map(|hello| hello.revision);
        let upward = UpstreamContext {
            revision: revision.unwrap_or(Revision::V2025_11_25),
            capabilities: "{}",
            progress_token: None,
            log_level: None,
        };
        era::to_upstream_params(&mut self.request.params, &upward)
    }

    /// Whether the gateway proxies the task. Starts to proxy it if its server still knows it.
    pub(crate) async fn is_proxied(&self, id: &str) -> bool {
        let Some(found) = self.find_by(id) else {
            return false;
        };
        let (_, upstream_id) = split_prefix(&found.task.id);
        let params = format!(r#"{{"taskId":{}}}"#, json::string(upstream_id));
        self.proxied(&found, &params).await.is_ok()
    }

    /// The proxied task. Starts to proxy it if its server still knows it.
    async fn proxied(&self, found: &FoundTask, params: &str) -> Result<Arc<ProxiedTask>, RpcError> {
        let proxied_tasks = &self.snapshot.services.tasks.proxied;
        let server = self.source_name(found.place.server);
        let key = (server, Arc::from(found.task.id.as_str()));
        if let Some(watched) = proxied_tasks.get(&key) {
            return Ok(watched);
        }
        let source = self.class.source(found.place.server);
        let dedicated = self.dedicated_connection(found.place.server).await?;
        let line = Arc::clone(
            dedicated
                .as_ref()
                .map_or(&source.connection, DedicatedLease::connection),
        );
        let road = TaskConnection::new(&line, self.allowed()).for_existing_task();
        let turn = line.acquire().await?;
        let mut request = Request::new("tasks/get", Some(params.to_owned()));
        request.caller = Some(CallerId(self.client.id));
        let exchange = line.ready().await?.request(request).await?;
        let answer = exchange.answer().await?;
        drop(turn);
        if let Some(dedicated) = &dedicated {
            dedicated.mark_clean();
        }
        let task = answer.outcome().map_err(|error| {
            let said = self.respell_task(found, RpcError::from_upstream_or_internal(error));
            TaskNotFound::connection_lost(&found.task, said.message()).failure()
        })?;
        let road = road.with_leases(dedicated, Some(ConnectionUse::new(&self.class)));
        let (_, upstream_id) = split_prefix(&found.task.id);
        let owner = TaskOwner::of(self.client, None);
        road.proxy(proxied_tasks, key, upstream_id, task, owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_parts(id: &str, mark: Option<&str>, own: &str) {
        assert_eq!(split_prefix(id), (mark, own));
    }

    #[test]
    fn an_id_is_parted_where_the_gateway_joined_it() {
        has_parts("@7b1.0@job-1", Some("@7b1.0@"), "job-1");
        has_parts("@7b1.0@", Some("@7b1.0@"), "");
        has_parts("@7b1.0@@1.2@x", Some("@7b1.0@"), "@1.2@x");
        for own in [
            "job-1",
            "",
            "@",
            "@@x",
            "@a@b",
            "@a.@b",
            "@g.1@b",
            "ada@example.org@x",
        ] {
            has_parts(own, None, own);
        }
    }
}
