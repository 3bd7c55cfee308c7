//! A call that its server can only run as a task, for a client that knows none: it ends when the task does.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_upstream::Request;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_wire::task_dialect::RELATED_TASK_META;
use tokio::time::timeout;
use tracing::debug;

use super::{Running, Step, unless_withdrawn};
use crate::pipeline::runtime::Lasting;
use crate::tasks::made_by_the_core;

/// A task that a call becomes, and nobody but its server is told of.
///
/// # Properties
///
/// When this is dropped before the task is over, the server is told that it is not wanted any more.
#[derive(Debug)]
pub(crate) struct ByTask {
    sent: Arc<SentRequest>,
    /// What the server calls it, once it was made and until it is over.
    own: Option<String>,
    lasting: Arc<Lasting>,
}

impl ByTask {
    pub(crate) const fn new(sent: Arc<SentRequest>, lasting: Arc<Lasting>) -> Self {
        Self {
            sent,
            own: None,
            lasting,
        }
    }

    fn about(&self, method: &'static str, own: &str) -> Request {
        let params = format!(r#"{{"taskId":{}}}"#, json::string(own));
        Request {
            params: Some(params),
            method: method.into(),
            ..self.sent.request.clone()
        }
    }
}

impl Drop for ByTask {
    fn drop(&mut self) {
        let Some(own) = self.own.take() else {
            return;
        };
        let mut request = self.about("tasks/cancel", &own);
        request.progress_token = None;
        let upstream = Arc::clone(&self.sent.connection);
        let cancelled = async move {
            let cancelled = async { upstream.request(request).await?.answer().await };
            if !matches!(timeout(PATIENCE, cancelled).await, Ok(Ok(_))) {
                debug!(server = upstream.name(), "task not cancelled");
            }
        };
        self.lasting.tasks.spawn(cancelled);
    }
}

impl Running {
    /// Takes note of the task that the server made of the call; whether it did.
    pub(super) fn becomes_a_task(&mut self, outcome: Result<&str, &str>) -> bool {
        let Some(by_task) = self.taken.by_task.as_mut() else {
            return false;
        };
        // What comes after it was made is what it came to.
        if by_task.own.take().is_some() {
            return false;
        }
        by_task.own = outcome.ok().and_then(made_by_the_core);
        let is_made = by_task.own.is_some();
        if is_made {
            self.exchange = None;
        }
        is_made
    }

    /// Whether the result of a task is yet to be asked for.
    pub(super) fn has_a_task_to_wait_for(&self) -> bool {
        let by_task = self.taken.by_task.as_ref();
        by_task.is_some_and(|it| it.own.is_some())
    }

    /// Asks for what the task comes to; the server answers when it is over.
    pub(super) async fn wait_for_the_task(&mut self) -> Option<Step> {
        let by_task = self.taken.by_task.as_ref()?;
        let request = by_task.about("tasks/result", by_task.own.as_deref()?);
        let upstream = Arc::clone(&by_task.sent.connection);
        match unless_withdrawn(self.place.as_ref(), upstream.request(request)).await {
            None => Some(self.withdraw()),
            Some(Err(error)) => Some(self.fail(&error.into())),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// The result of a task that its client knows nothing of.
    pub(super) fn without_its_task<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let is_by_task = self.taken.by_task.is_some() && result.contains(RELATED_TASK_META);
        let meta = edit::get(result, "_meta").filter(|_| is_by_task);
        let Some(meta) = meta.map(|meta| edit::remove(meta, RELATED_TASK_META)) else {
            return Cow::Borrowed(result);
        };
        match &*meta {
            "{}" => edit::remove(result, "_meta"),
            meta => edit::set(result, "_meta", meta),
        }
    }
}

/// For a server that is told that a task is not wanted any more.
const PATIENCE: Duration = Duration::from_secs(5);
