//! What a request in flight leases.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::implicit_task::ImplicitTask;
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::proxy::TaskConnection;

/// What a request leases until its server has answered.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// The task of a client without tasks; ended before the connection is returned.
    pub(crate) implicit_task: Option<Box<ImplicitTask>>,
    /// A permit for one of the server's concurrent calls.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// The dedicated connection, returned after the exchange has ended.
    pub(crate) dedicated: Option<DedicatedLease>,
    /// Keeps the connections of the client's class open.
    pub(crate) class: Option<ConnectionUse>,
    /// The connection to the server of a proxied task.
    pub(crate) task_connection: Option<Box<TaskConnection>>,
}

impl Leases {
    /// Keeps the connections open for `time` after the request.
    pub(super) fn keep_for(&self, time: Duration) {
        match (&self.dedicated, &self.class) {
            (Some(dedicated), _) => dedicated.keep_for(time),
            (None, Some(class)) => class.keep_for(time),
            (None, None) => {}
        }
    }

    /// Notes whether the caller is gone without a word.
    pub(super) fn set_abandoned(&self, is_abandoned: bool) {
        if let Some(dedicated) = &self.dedicated {
            dedicated.set_abandoned(is_abandoned);
        }
    }

    /// Ready when the dedicated connection was closed for another client.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        let evicted = self.dedicated.as_ref().map(DedicatedLease::evicted);
        async move {
            match evicted {
                Some(evicted) => evicted.cancelled_owned().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether the result of the call's task has not been requested yet.
    pub(super) fn awaits_task(&self) -> bool {
        let implicit_task = self.implicit_task.as_ref();
        implicit_task.is_some_and(|task| task.awaits_result())
    }
}
