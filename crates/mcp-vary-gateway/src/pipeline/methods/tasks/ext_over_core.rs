//! Clients of the extension before servers of the core form.
//!
//! In the extension the server decides what becomes a task. For a server of the core form the gateway speaks: what it
//! can only do as a task becomes one, and everything else is called as ever.

use std::sync::{Arc, Weak};

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_upstream::{CallerId, Request, SupervisedConnection};
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

use crate::mrtr::{Quota, read_responses};
use crate::pipeline::exchange::ResponseContext;
use crate::pipeline::method::{MethodAction, TaskAction};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::tasks::{FoundTask, TaskNotFound};
use crate::pipeline::methods::{ForwardRequest, RequestContext};
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::session::Session;
use crate::session::client::Client;
use crate::tasks::parted;
use crate::tasks::proxy::{EXT_OVER_CORE, ProxiedTask, TaskBounds, TaskConnection, TaskOwner};
use crate::tasks::{DialectPair, TaskIdCodec, TaskNotifier};
use mcp_vary_catalog::result_rewriter::ResultRewriter;

impl TaskIdCodec {
    /// Whether a task that its server makes has to be watched for its client.
    fn is_watched(&self) -> bool {
        self.dialects == EXT_OVER_CORE
    }

    /// Watches the task `own`, which `result` says was made; what its client is told.
    ///
    /// # Errors
    ///
    /// When it cannot be watched, or nobody could ask for it.
    pub(crate) fn watch(
        &self,
        result: &str,
        own: &str,
        client: &Client,
        retelling: impl FnOnce() -> ResultRewriter,
        road: TaskConnection,
    ) -> Result<String, RpcError> {
        let sealed = self.client_id(own).ok_or_else(|| self.too_long(own))?;
        let teller = |sealed: &str| TaskNotifier {
            client_id: sealed.into(),
            rewriter: retelling(),
            server: Arc::clone(&self.server),
            links: Arc::clone(&self.services.link_index),
            dialects: DialectPair::both(EXT_OVER_CORE.client),
        };
        let session = client.session.as_ref();
        let session = session.map(|session| (Arc::downgrade(session), teller(&sealed)));
        let maker = TaskOwner::of(client, session);
        let key = (Arc::clone(&self.server), self.inner(own).into());
        let task = edit::get(result, "task").unwrap_or("{}");
        let watched = ProxiedTask::begin((key, own), task, maker, road, &self.services)?;
        let made = watched
            .with_ttl(&self.dialects.creation_result(result))
            .into_owned();
        Ok(self.rename(&made).into_owned())
    }
}

impl TaskOwner {
    fn of(client: &Client, session: Option<(Weak<Session>, TaskNotifier)>) -> Self {
        Self {
            quota_key: (client.principal(), client.connection),
            client: client.id,
            server_requests: client.server_request_support(),
            session,
        }
    }
}

impl RequestContext<'_> {
    /// The way to the server of a task that may come of the request, where that has to be watched.
    pub(crate) fn task_connection(
        &self,
        line: &Arc<SupervisedConnection>,
        finish: &ResponseContext,
    ) -> Option<Box<TaskConnection>> {
        let names = finish.plan.task.as_ref()?;
        let is_watched = names.is_watched() && matches!(self.action, MethodAction::CallTool);
        is_watched.then(|| {
            let road = TaskConnection::pooled(line, self.allowed());
            Box::new(road.with_progress(finish.progress.clone()))
        })
    }

    fn allowed(&self) -> TaskBounds {
        let limits = &self.snapshot.config.limits;
        TaskBounds {
            bounds: Quota::of(limits),
            lifetime: limits.task_lifetime,
            keep_alive: limits.result_store,
        }
    }

    /// Answers a client of the extension about a task of the core form.
    pub(super) async fn answer_proxied_task(
        mut self,
        found: FoundTask,
    ) -> Result<Dispatch, RpcError> {
        let lasting = Arc::clone(&self.snapshot.services);
        let (_, own) = parted(&found.task.id);
        self.request.params.members.set("taskId", json::string(own));
        let responses = self.request.params.members.remove("inputResponses");
        let params = self.upstream_task_params(&found);
        let watched = self.proxied(&found, &params).await?;
        match self.action {
            MethodAction::Task(TaskAction::Update) => {
                let responses = read_responses(responses.as_deref())?;
                watched.answer(&responses, &lasting);
                Ok(self.answer("{}"))
            }
            MethodAction::Task(TaskAction::Cancel) => {
                watched.cancel(Some(params), &lasting).await?;
                Ok(self.answer("{}"))
            }
            _ => {
                let stands = watched.status(params, &lasting).await;
                let stands = stands.map_err(|failure| self.respell_task(&found, failure))?;
                self.task_status(&found, &stands)
            }
        }
    }

    /// How a task stands, as the client is told it.
    fn task_status(&self, found: &FoundTask, stands: &str) -> Result<Dispatch, RpcError> {
        let mut downward = self.plan_of(found);
        downward.task = Some(Box::new(self.task_codec(found)));
        let mut forwarding = ForwardRequest {
            server: found.place.server,
            plan: downward,
            ..ForwardRequest::default()
        };
        let finish = self.response_context(found.view, &mut forwarding)?;
        Ok(Dispatch::Done(finish.task(stands, &self.snapshot.services)))
    }

    /// What the client calls a task that is said in its own form already.
    fn task_codec(&self, found: &FoundTask) -> TaskIdCodec {
        let (mark, own) = parted(&found.task.id);
        let forms = DialectPair::both(EXT_OVER_CORE.client);
        let names = self.new_task_codec(forms, found.view, &found.place, Some(own.to_owned()));
        TaskIdCodec {
            prefix: mark.map(str::to_owned),
            ..names
        }
    }

    fn respell_task(&self, found: &FoundTask, mut failure: RpcError) -> RpcError {
        if let Some(message) = self.task_codec(found).respell(failure.message()) {
            failure.set_message(message);
        }
        failure
    }

    /// The parameters of the client's request, as the server of the task gets them.
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

    /// Whether a task is watched, from now on if its server still knows it.
    pub(crate) async fn is_proxied(&self, id: &str) -> bool {
        let Some(found) = self.find_by(id) else {
            return false;
        };
        let (_, own) = parted(&found.task.id);
        let params = format!(r#"{{"taskId":{}}}"#, json::string(own));
        self.proxied(&found, &params).await.is_ok()
    }

    /// The task, watched: since it was made, or from now on if its server still knows it.
    async fn proxied(&self, found: &FoundTask, params: &str) -> Result<Arc<ProxiedTask>, RpcError> {
        let lasting = &self.snapshot.services;
        let server = self.server_name(found.place.server);
        let key = (server, Arc::from(found.task.id.as_str()));
        if let Some(watched) = lasting.proxied_tasks.get(&key) {
            return Ok(watched);
        }
        let source = self.class.source(found.place.server);
        let alone = self.dedicated_connection(found.place.server).await?;
        let line = Arc::clone(
            alone
                .as_ref()
                .map_or(&source.connection, DedicatedLease::line),
        );
        let road = TaskConnection::pooled(&line, self.allowed()).reconnected();
        let turn = line.acquire().await?;
        let mut request = Request::new("tasks/get", Some(params.to_owned()));
        request.caller = Some(CallerId(self.client.id));
        let exchange = line.ready().await?.request(request).await?;
        let answer = exchange.answer().await?;
        drop(turn);
        if let Some(alone) = &alone {
            alone.mark_clean();
        }
        let task = answer.outcome().map_err(|error| {
            let said = self.respell_task(found, RpcError::from_upstream_or_internal(error));
            TaskNotFound::connection_lost(&found.task, said.message()).failure()
        })?;
        let road = road.leased(alone, Some(ConnectionUse::new(&self.class)));
        let (_, own) = parted(&found.task.id);
        let session = None;
        ProxiedTask::begin(
            (key, own),
            task,
            TaskOwner::of(self.client, session),
            road,
            lasting,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_parts(id: &str, mark: Option<&str>, own: &str) {
        assert_eq!(parted(id), (mark, own));
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
