//! The ids of one server's tasks, between the server and one client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json::{edit, may_contain};
use mcp_vary::task::{MAX_ID, Task};
use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::{TaskDialect, rename_related_task};

use super::dialect::{DialectPair, EXT_OVER_CORE, creation_result_of_extension};
use super::id::{TaskKey, with_replica};
use super::notifier::TaskNotifier;
use super::proxy::{TaskConnection, TaskOwner};
use super::services::TaskServices;
use super::task_text::{core_task_id, lifetime, rename_task, string};
use mcp_vary_results::shaper::ResultRewriter;
use mcp_vary_session::caller::sealed_principal;
use mcp_vary_session::client::Client;

/// Translates between a server's task ids and those that one client knows.
#[derive(Clone, Debug)]
pub(crate) struct TaskIdCodec {
    pub(crate) dialects: DialectPair,
    pub(crate) services: Arc<TaskServices>,
    pub(crate) server: Arc<str>,
    pub(crate) variant: VariantId,
    /// Who sent the request; only they can use its task.
    pub(crate) principal: Option<Arc<Principal>>,
    /// The server's name of the tool.
    pub(crate) tool: Arc<str>,
    /// The server's id of the task that the request is about; none where the request may create one.
    pub(crate) upstream_id: Option<String>,
    /// This replica, if no other one can reach the task.
    pub(crate) replica: Option<u32>,
    /// The prefix that marks the ids of proxied tasks.
    pub(crate) prefix: Option<String>,
    /// The longest time that a connection stays open for a task.
    pub(crate) max_lifetime: Duration,
}

impl TaskIdCodec {
    /// The client's id of the task with the server's id `upstream_id`; none if that is too long.
    pub(crate) fn client_id(&self, upstream_id: &str) -> Option<String> {
        let task = Task {
            server: self.server.to_string(),
            variant: self.variant.clone(),
            tool: self.tool.to_string(),
            id: with_replica(self.replica, self.sealed_id(upstream_id)),
        };
        (upstream_id.len() <= MAX_ID).then(|| {
            let principal = sealed_principal(self.principal.as_ref());
            task.seal(&self.services.cursor_keys, principal)
        })
    }

    /// The id that is sealed: the server's, with the prefix of a proxied task.
    pub(crate) fn sealed_id(&self, upstream_id: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}{upstream_id}"),
            None => upstream_id.to_owned(),
        }
    }

    /// The `CreateTaskResult` for the client; none if `result` does not create a task.
    ///
    /// # Errors
    ///
    /// When the id is too long to be sealed.
    pub(crate) fn creation_result<'a>(
        &self,
        result: &'a str,
        client: &Client,
        rewriter: impl FnOnce() -> ResultRewriter,
    ) -> Option<Result<Cow<'a, str>, RpcError>> {
        let upstream_id = self.created_id(result)?;
        let Some(client_id) = self.client_id(&upstream_id) else {
            return Some(Err(self.too_long(&upstream_id)));
        };
        let notifier = self.notifier(&client_id, rewriter());
        self.record(&upstream_id, notifier, client);
        Some(Ok(self.rename(result)))
    }

    fn notifier(&self, client_id: &str, rewriter: ResultRewriter) -> TaskNotifier {
        TaskNotifier {
            client_id: client_id.into(),
            rewriter,
            server: Arc::clone(&self.server),
            tool: Arc::clone(&self.tool),
            link_index: Arc::clone(&self.services.link_index),
            dialect: self.dialects.client,
        }
    }

    pub(crate) fn too_long(&self, upstream_id: &str) -> RpcError {
        RpcError::internal(format!(
            "server `{}` created a task with an id of {} bytes; at most {MAX_ID} are supported",
            self.server,
            upstream_id.len()
        ))
    }

    /// Whether a task that the server creates is proxied for the client.
    pub(crate) fn is_proxied(&self) -> bool {
        self.dialects == EXT_OVER_CORE
    }

    /// Starts to proxy the task that `result` created. Returns the `CreateTaskResult` for the client.
    ///
    /// # Errors
    ///
    /// When too many tasks are running, or the id is too long to be sealed.
    pub(crate) fn proxy(
        &self,
        result: &str,
        upstream_id: &str,
        client: &Client,
        rewriter: impl FnOnce() -> ResultRewriter,
        connection: TaskConnection,
    ) -> Result<String, RpcError> {
        let renamed = self.client_id(upstream_id);
        let client_id = renamed.ok_or_else(|| self.too_long(upstream_id))?;
        let notifier = || self.notifier(&client_id, rewriter());
        let known = client.session.as_ref();
        let session = known.map(|session| (Arc::downgrade(session), notifier()));
        let owner = TaskOwner::of(client, session);
        let key = (Arc::clone(&self.server), self.sealed_id(upstream_id).into());
        let task = edit::get(result, "task").unwrap_or("{}");
        let proxied = &self.services.proxied;
        let proxied = connection.proxy(proxied, key, upstream_id, task, owner)?;
        let created = creation_result_of_extension(result);
        Ok(self.rename(&proxied.with_ttl(&created)).into_owned())
    }

    /// The time for which the connection is needed on which `result` created a task; `None` if it created none.
    ///
    /// Only the process, or the session, in which a task was created knows it.
    pub(crate) fn lifetime(&self, result: &str) -> Option<Duration> {
        self.created_id(result)?;
        let ttl = match edit::get(result, "task") {
            Some(task) => lifetime(edit::get(task, "ttl")),
            None => lifetime(edit::get(result, "ttlMs")),
        };
        Some(ttl.map_or(self.max_lifetime, |ttl| ttl.min(self.max_lifetime)))
    }

    /// The server's id of the task that `result` created.
    pub(crate) fn created_id(&self, result: &str) -> Option<String> {
        if !may_contain(result, "taskId") {
            return None;
        }
        match self.dialects.server {
            TaskDialect::Core if edit::get(result, "task").is_some() => core_task_id(result),
            _ if string(result, "resultType")? != "task" => None,
            _ => string(result, "taskId"),
        }
    }

    /// Records who created the task. Notifications that arrived earlier are sent once the client knows the id.
    fn record(&self, upstream_id: &str, notifier: TaskNotifier, client: &Client) {
        let key = (Arc::clone(&self.server), Arc::from(upstream_id));
        let services = &self.services;
        let earlier = services.registry.record(&key, notifier, client);
        if let Some(params) = earlier {
            let registry = Arc::clone(&services.registry);
            let notify = async move {
                tokio::time::sleep(RESPONSE_TIME).await;
                registry.changed(&key, &params, None);
            };
            let shutdown = services.context.shutdown.clone();
            let notify = shutdown.run_until_cancelled_owned(notify);
            services.context.background_tasks.spawn(notify);
        }
    }

    /// A result or the params of a notification with the client's ids of all tasks in it.
    pub(crate) fn rename<'a>(&self, text: &'a str) -> Cow<'a, str> {
        rename_task(text, &|id| self.client_id(id))
    }

    /// A server's message with the client's id of the task that the request is about.
    pub(crate) fn rename_in_message(&self, message: &str) -> Option<String> {
        let upstream_id = self.upstream_id.as_deref().filter(|id| id.len() > 3)?;
        let client_id = self.client_id(upstream_id)?;
        let is_named = message.contains(upstream_id);
        is_named.then(|| message.replace(upstream_id, &client_id))
    }

    /// The status notification of a task for `client`; none if the client did not create the task.
    pub(crate) fn status(&self, params: &str, client: &Client) -> Option<Bytes> {
        let key = self.key(params)?;
        self.services.registry.status(&key, params, client.id)
    }

    /// A server's message about a task, with the client's id as related task.
    pub(crate) fn related<'a>(&self, params: &'a str) -> Cow<'a, str> {
        rename_related_task(params, &|id| self.client_id(id))
    }

    /// Notifies all subscribers of the task.
    pub(crate) fn changed(&self, params: &str) {
        if let Some(key) = self.key(params) {
            self.services.registry.changed(&key, &params.into(), None);
        }
    }

    fn key(&self, params: &str) -> Option<TaskKey> {
        let id = string(params, "taskId")?;
        Some((Arc::clone(&self.server), id.into()))
    }
}

/// By then the response with the id has reached the client.
const RESPONSE_TIME: Duration = Duration::from_millis(100);
