//! What the server tells before it answers, as the client gets it.

use bytes::Bytes;

use super::Finish;
use crate::bridge;
use crate::log_level::{is_logged_from, level_of};
use crate::revision::Era;
use crate::splice;
use crate::upstream::TASK_STATUS;
use crate::wire;

impl Finish {
    /// The notification as the client gets it; `None` when it is not for this client.
    pub(super) fn notification(&self, bytes: Bytes) -> Option<Bytes> {
        let message = wire::Message::read(&bytes).ok()?;
        let params = message.params.unwrap_or("{}");
        match message.method.as_deref()? {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.wants_logged(params).then_some(bytes),
            method if TASK_STATUS.contains(&method) => self.task_status(params),
            // Changes reach the catalogue by another way.
            method if method.ends_with("list_changed") => None,
            "notifications/resources/updated" | "notifications/cancelled" => None,
            _ => Some(bytes),
        }
    }

    /// What is said of another task than the client's goes to whoever it concerns; a client without a session
    /// hears of tasks where it listens to them.
    fn task_status(&self, params: &str) -> Option<Bytes> {
        let task = self.downward.task.as_ref()?;
        let has_session = self.client.session.is_some();
        let status = has_session.then(|| task.status(params, &self.client));
        let status = status.flatten();
        if status.is_none() {
            task.changed(params);
        }
        status
    }

    fn progress(&self, params: &str) -> Option<Bytes> {
        let progress = self.progress.as_ref()?;
        let is_ours = splice::get(params, bridge::PROGRESS_TOKEN)? == progress.ours;
        is_ours.then(|| Bytes::from(bridge::progress_downward(params, &progress.theirs)))
    }

    /// A legacy client that never set a level gets what the server sends; a modern one only what it
    /// asked for with this request.
    fn wants_logged(&self, params: &str) -> bool {
        match (
            &self.client.session,
            self.client.log_level,
            self.client.era(),
        ) {
            (Some(session), _, _) => is_logged_from(params, session.log_level()),
            (None, wanted, Era::Legacy) => is_logged_from(params, wanted),
            (None, Some(wanted), Era::Modern) => {
                level_of(params).is_some_and(|level| level >= wanted)
            }
            (None, None, Era::Modern) => false,
        }
    }
}
