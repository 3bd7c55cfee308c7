//! The stdio transport: a process for each legacy client, one for all modern clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use crate::limits::Limits;

use super::message::{Outgoing, Reply};
use super::process::Process;

/// The most processes that wait for another client.
const IDLE: usize = 8;

/// A server that is started from a command.
#[derive(Debug)]
pub(crate) struct Stdio {
    command: Vec<String>,
    limits: Limits,
    idle: Mutex<Vec<Arc<Process>>>,
    ending: Mutex<JoinSet<()>>,
}

impl Stdio {
    pub(crate) fn new(command: Vec<String>, limits: Limits) -> Self {
        Self {
            command,
            limits,
            idle: Mutex::default(),
            ending: Mutex::default(),
        }
    }

    /// A process for clients that declare `capabilities`: one that such a client has left, or a new one.
    ///
    /// Starting a process takes some servers a second, and a run has over a hundred clients.
    pub(crate) fn open(&self, capabilities: &str) -> Result<Arc<Process>, String> {
        let mut idle = lock(&self.idle);
        let is_suitable = |process: &Arc<Process>| process.capabilities() == capabilities;
        match idle.iter().position(is_suitable) {
            Some(at) => Ok(idle.remove(at)),
            None => Process::start(&self.command, capabilities).map(Arc::new),
        }
    }

    /// Sends a message to `process`, and receives the response if it is a request.
    pub(crate) async fn send(
        &self,
        process: &Process,
        message: &Outgoing<'_>,
    ) -> Result<Reply, String> {
        match process.cached_reply(message) {
            Some(reply) => Ok(reply),
            None => process.send(message, self.limits).await,
        }
    }

    /// Retains `process` for another client, or ends it if none can use it.
    pub(crate) fn release(&self, process: Arc<Process>) {
        if !process.is_usable() {
            return self.end(process);
        }
        let mut idle = lock(&self.idle);
        idle.push(process);
        if idle.len() > IDLE {
            let oldest = idle.remove(0);
            drop(idle);
            self.end(oldest);
        }
    }

    /// Ends `process`.
    pub(crate) fn end(&self, process: Arc<Process>) {
        lock(&self.ending).spawn(async move { process.end().await });
    }

    /// Ends all processes, and waits until they have ended.
    pub(crate) async fn shut_down(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        for process in idle {
            self.end(process);
        }
        let ending = std::mem::take(&mut *lock(&self.ending));
        ending.join_all().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
