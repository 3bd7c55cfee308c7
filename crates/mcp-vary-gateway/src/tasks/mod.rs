//! Tasks: requests that a server keeps working on after it has responded.
//!
//! A server's task id means nothing to other servers. So clients get a sealed id, which names the server and the variant
//! under which the task was created ([`mcp_vary::task`]). There are two dialects of tasks ([`TaskDialect`]); tasks are
//! translated if client and server use different ones.

mod claims;
pub(crate) mod client;
mod completed;
mod dialect;
mod notifier;
pub(crate) mod proxy;
mod registry;
mod waiter;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::cursor::CursorKeys;
use mcp_vary::json;
use mcp_vary::task::{MAX_ID, Task};
use mcp_vary::variant::VariantId;

pub(crate) use self::claims::InputClaims;
use crate::mrtr::INPUT_REQUESTS;
use crate::pipeline::runtime::Services;
use crate::session::client::Client;
pub(crate) use crate::tasks::completed::CompletedTasks;
pub(crate) use crate::tasks::dialect::DialectPair;
pub(crate) use crate::tasks::notifier::{RESULT, TaskNotifier};
pub(crate) use crate::tasks::proxy::{ProxiedTasks, TaskConnection};
pub(crate) use crate::tasks::registry::{TaskKey, TaskRegistry};
pub(crate) use crate::tasks::waiter::{ResultWaiter, WaitEnd, WaitEvent, related_to};
use mcp_vary::json::edit;
use mcp_vary_catalog::result_rewriter::ResultRewriter;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, TaskDialect, rename_related_task};

/// Translates between a server's task ids and those that one client knows.
#[derive(Clone, Debug)]
pub(crate) struct TaskIdCodec {
    pub(crate) dialects: DialectPair,
    pub(crate) services: Arc<Services>,
    pub(crate) server: Arc<str>,
    pub(crate) variant: VariantId,
    /// The server's name of the tool.
    pub(crate) tool: Arc<str>,
    /// The server's id of the task that the request is about; none where the request may create one.
    pub(crate) upstream_id: Option<String>,
    /// The prefix that marks the ids of proxied tasks.
    pub(crate) prefix: Option<String>,
    /// The time to live that the client asked for, in milliseconds.
    pub(crate) ttl: Option<u64>,
    /// The connection on which to subscribe to the status of a new task; none where the server sends it anyway.
    pub(crate) line: Option<Arc<SupervisedConnection>>,
    /// The longest time that a connection stays open for a task.
    pub(crate) longest: Duration,
}

impl TaskIdCodec {
    /// The client's id of the task with the server's id `own`; none if that is too long.
    pub(crate) fn client_id(&self, own: &str) -> Option<String> {
        let task = Task {
            server: self.server.to_string(),
            variant: self.variant.clone(),
            tool: self.tool.to_string(),
            id: self.inner(own),
        };
        (own.len() <= MAX_ID).then(|| task.seal(&self.services.cursor_keys, ""))
    }

    /// The id that is sealed: the server's, with the prefix of a proxied task.
    pub(crate) fn inner(&self, own: &str) -> String {
        match &self.prefix {
            Some(mark) => format!("{mark}{own}"),
            None => own.to_owned(),
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
        retelling: impl FnOnce() -> ResultRewriter,
    ) -> Option<Result<Cow<'a, str>, RpcError>> {
        let own = self.created_id(result)?;
        let Some(sealed) = self.client_id(&own) else {
            return Some(Err(self.too_long(&own)));
        };
        let teller = TaskNotifier {
            client_id: sealed.into(),
            rewriter: retelling(),
            server: Arc::clone(&self.server),
            links: Arc::clone(&self.services.link_index),
            dialects: self.dialects,
        };
        self.record(&own, teller, client);
        Some(Ok(match self.dialects.differ() {
            true => Cow::Owned(
                self.rename(&self.dialects.creation_result(result))
                    .into_owned(),
            ),
            false => self.rename(result),
        }))
    }

    pub(crate) fn too_long(&self, own: &str) -> RpcError {
        RpcError::internal(format!(
            "server `{}` made a task with an id of {} bytes, and {MAX_ID} is what can be asked for",
            self.server,
            own.len()
        ))
    }

    /// The `CreateTaskResult` for a client that asked for a task where the server responded with the result at once.
    ///
    /// # Errors
    ///
    /// When the result is too large to be stored.
    pub(crate) fn completed_result(
        &self,
        result: &str,
        client: &Client,
    ) -> Result<String, RpcError> {
        let kept = self
            .services
            .completed_tasks
            .insert(result, client.id, self.ttl);
        kept.map_err(RpcError::internal)
    }

    /// How long the connection is needed on which `result` created a task; none if it did not create one.
    ///
    /// Only the process, or the session, in which a task was created knows it.
    pub(crate) fn lasts(&self, result: &str) -> Option<Duration> {
        self.created_id(result)?;
        let ttl = match edit::get(result, "task") {
            Some(task) => lifetime(edit::get(task, "ttl")),
            None => lifetime(edit::get(result, "ttlMs")),
        };
        Some(ttl.map_or(self.longest, |ttl| ttl.min(self.longest)))
    }

    /// The server's id of the task that `result` created.
    pub(crate) fn created_id(&self, result: &str) -> Option<String> {
        if !result.contains("taskId") && !result.contains("\\u") {
            return None;
        }
        match self.dialects.server {
            TaskDialect::Core if edit::get(result, "task").is_some() => core_task_id(result),
            _ if string(result, "resultType")? != "task" => None,
            _ => string(result, "taskId"),
        }
    }

    /// Records who created the task. Notifications that arrived earlier are sent once the client knows the id.
    fn record(&self, own: &str, teller: TaskNotifier, client: &Client) {
        let key = (Arc::clone(&self.server), Arc::from(own));
        let told = self.line.as_ref().map(|line| line.subscribe_task(own));
        let said = self
            .services
            .task_registry
            .record(&key, teller, client, told);
        if let Some(params) = said {
            let (lasting, stopped) = (Arc::clone(&self.services), self.services.shutdown.clone());
            let told = async move {
                tokio::time::sleep(KEPT_AFTER_RESULT).await;
                lasting.task_registry.changed(&key, &params, None);
            };
            let told = stopped.run_until_cancelled_owned(told);
            self.services.background_tasks.spawn(told);
        }
    }

    /// A server's task in the client's dialect and with the client's ids.
    pub(crate) fn result_to_client<'a>(&self, told: &'a str) -> Cow<'a, str> {
        match self.dialects.task_to_client(told) {
            Cow::Borrowed(told) => self.rename(told),
            Cow::Owned(told) => Cow::Owned(self.rename(&told).into_owned()),
        }
    }

    /// A result or the params of a notification with the client's ids of all tasks in it.
    pub(crate) fn rename<'a>(&self, told: &'a str) -> Cow<'a, str> {
        rename_task(told, &|own| self.client_id(own))
    }

    /// A server's message with the client's id of the task that the request is about.
    pub(crate) fn respell(&self, message: &str) -> Option<String> {
        let own = self.upstream_id.as_deref().filter(|own| own.len() > 3)?;
        let sealed = self.client_id(own).filter(|_| message.contains(own))?;
        Some(message.replace(own, &sealed))
    }

    /// The status notification of a task for `client`; none if the client did not create the task.
    pub(crate) fn status(&self, params: &str, client: &Client) -> Option<Bytes> {
        let key = self.key(params)?;
        self.services.task_registry.status(&key, params, client.id)
    }

    /// `said` with the client's id of the task `own` as related task.
    pub(crate) fn relate(&self, said: &str, own: &str) -> String {
        match self.client_id(own) {
            Some(sealed) => related_to(said, &sealed),
            None => said.to_owned(),
        }
    }

    /// What the server sends for a task, with the client's id as related task.
    pub(crate) fn related<'a>(&self, params: &'a str) -> Cow<'a, str> {
        rename_related_task(params, &|own| self.client_id(own))
    }

    /// Records the status of a task: after a terminal one, no more notifications follow.
    pub(crate) fn record_status(&self, task: &str) {
        if client::is_over(&client::status(task))
            && let Some(key) = self.key(task)
        {
            self.services.task_registry.is_over(&key);
        }
    }

    /// Notifies all who follow the task.
    pub(crate) fn changed(&self, params: &str) {
        if let Some(key) = self.key(params) {
            self.services
                .task_registry
                .changed(&key, &params.into(), None);
        }
    }

    fn key(&self, params: &str) -> Option<TaskKey> {
        let own = string(params, "taskId")?;
        Some((Arc::clone(&self.server), own.into()))
    }
}

/// The server's id of the task that a result of the core dialect created.
pub(crate) fn core_task_id(result: &str) -> Option<String> {
    string(edit::get(result, "task")?, "taskId")
}

/// How long a server retains a task, from milliseconds; none if it sets no limit.
fn lifetime(said: Option<&str>) -> Option<Duration> {
    let milliseconds: f64 = said?.parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// By then the response with the id has reached the client.
const KEPT_AFTER_RESULT: Duration = Duration::from_millis(100);

/// `told` with each task id in it replaced by `name`: of the task itself, of a created task, and of the related task.
fn rename_task<'a>(told: &'a str, name: &dyn Fn(&str) -> Option<String>) -> Cow<'a, str> {
    let named = |object: &str| {
        let named = name(&string(object, "taskId")?)?;
        Some(edit::set(object, "taskId", &json::string(&named)).into_owned())
    };
    let mut told = Cow::Borrowed(told);
    if let Some(named) = named(&told) {
        told = Cow::Owned(named);
    }
    if let Some(named) = edit::get(&told, "task").and_then(named) {
        told = Cow::Owned(edit::set(&told, "task", &named).into_owned());
    }
    if let Cow::Owned(named) = rename_related_task(&told, name) {
        told = Cow::Owned(named);
    }
    if let Some(named) = rename_input_requests(&told, name) {
        told = Cow::Owned(named);
    }
    // The result of a task names the task, too.
    if let Some(Cow::Owned(named)) =
        edit::get(&told, RESULT).map(|result| rename_related_task(result, name))
    {
        told = Cow::Owned(edit::set(&told, RESULT, &named).into_owned());
    }
    told
}

/// `told` with the related tasks of its input requests replaced by `name`; none if there are none.
fn rename_input_requests(told: &str, name: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let asked =
        edit::get(told, INPUT_REQUESTS).filter(|asked| asked.contains(RELATED_TASK_META))?;
    let mut named = Cow::Borrowed(asked);
    for (key, request) in edit::members(asked) {
        if let Some(params) = edit::get(request, "params")
            && let Cow::Owned(params) = rename_related_task(params, name)
        {
            let request = edit::set(request, "params", &params);
            named = Cow::Owned(edit::set(&named, &key, &request).into_owned());
        }
    }
    Some(edit::set(told, INPUT_REQUESTS, &named).into_owned())
}

/// Splits a task id into the prefix of a [proxied task](ProxiedTasks::new_prefix) and the server's id.
pub(crate) fn parted(id: &str) -> (Option<&str>, &str) {
    let parts = || {
        let (mark, own) = id.strip_prefix(PREFIX)?.split_once(PREFIX)?;
        let (gateway, number) = mark.split_once('.')?;
        let is_hex = |text: &str| u64::from_str_radix(text, 16).is_ok();
        (is_hex(gateway) && is_hex(number)).then(|| (&id[..id.len() - own.len()], own))
    };
    parts().map_or((None, id), |(mark, own)| (Some(mark), own))
}

/// What the prefix begins and ends with.
pub(crate) const PREFIX: char = '@';

/// The server's id of the task that a client knows as `sealed`.
pub(crate) fn upstream_id(keys: &CursorKeys, sealed: &str) -> Option<String> {
    let id = Task::open(keys, "", sealed)?.id;
    Some(parted(&id).1.to_owned())
}

/// The string member `key` of an object.
pub(crate) fn string(object: &str, key: &str) -> Option<String> {
    serde_json::from_str(edit::get(object, key)?).ok()
}

/// Whether the result of a call reports a failed tool.
fn is_failed_call(result: &str) -> bool {
    edit::get(result, "isError") == Some("true")
}
