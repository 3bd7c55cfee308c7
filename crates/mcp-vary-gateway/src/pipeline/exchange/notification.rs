//! The server's notifications before its answer, rewritten for the client.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::log_level::{is_level_enabled, level_of};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message::own_token;
use mcp_vary_wire::task_dialect::TASK_STATUS_METHODS;
use mcp_vary_wire::{envelope, era};

use super::response::ResponseContext;

impl ResponseContext {
    /// The notification as the client gets it; `None` when it is not for this client.
    pub(super) fn notification(&self, bytes: Bytes) -> Option<Bytes> {
        let message = envelope::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        match message.method.as_deref()? {
            "notifications/progress" => self.progress(params),
            "notifications/message" if !self.wants_logged(params) => None,
            method if TASK_STATUS_METHODS.contains(&method) => self.task_status(params),
            // Changes of lists reach the catalog by another path.
            method if Kind::changed_by(method).is_some() => None,
            "notifications/resources/updated" | "notifications/cancelled" => None,
            method => Some(self.with_related_task(method, params).unwrap_or(bytes)),
        }
    }

    /// A notification related to a task, if the client has another id for the task.
    fn with_related_task(&self, method: &str, params: &str) -> Option<Bytes> {
        let rewritten = self.rewrite_notification(params);
        let method = json::string(method);
        matches!(rewritten, Cow::Owned(_)).then(|| {
            Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","method":{method},"params":{rewritten}}}"#
            ))
        })
    }

    /// The params of a notification, with the client's id of the related task.
    fn rewrite_notification<'a>(&self, params: &'a str) -> Cow<'a, str> {
        match &self.plan.task {
            Some(task) => task.related(params),
            None => Cow::Borrowed(params),
        }
    }

    /// The status of a task. That of other clients' tasks is published. A client without a session gets the status of
    /// tasks only on its listen streams.
    fn task_status(&self, params: &str) -> Option<Bytes> {
        let task = self.plan.task.as_ref()?;
        let has_session = self.client.session.is_some();
        let written = has_session.then(|| task.status(params, &self.client));
        let status = written.flatten();
        if status.is_none() {
            task.changed(params);
        }
        status
    }

    fn progress(&self, params: &str) -> Option<Bytes> {
        let token = own_token(edit::get(params, era::PROGRESS_TOKEN)?);
        let progress = self
            .plan
            .progress
            .as_ref()
            .filter(|tokens| tokens.upstream == token);
        let Some(progress) = progress else {
            let task = self.plan.task.as_ref()?;
            let params = task.services.registry.progress(self.client.id, params)?;
            return Some(era::progress_notification(&params));
        };
        let rewritten = self.rewrite_notification(params);
        Some(era::to_client_progress(&rewritten, &progress.client))
    }

    /// A legacy client that never set a level gets all logs; a modern one only those that this request asks for.
    fn wants_logged(&self, params: &str) -> bool {
        match (&self.client.session, self.plan.log_level, self.client.era()) {
            (Some(session), _, _) => is_level_enabled(params, session.log_level()),
            (None, wanted, Era::Legacy) => is_level_enabled(params, wanted),
            (None, Some(wanted), Era::Modern) => {
                level_of(params).is_some_and(|level| level >= wanted)
            }
            (None, None, Era::Modern) => false,
        }
    }
}
