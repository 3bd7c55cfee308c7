//! What runs while the client's next messages are read.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcp_vary_base::tasks::TaskTracker;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::admitted_line::AdmittedLine;
use mcp_vary_session::Session;

/// Lines that wait to be written. When the client reads slowly, requests wait.
const WRITE_QUEUE: usize = 64;

/// What runs beside the reader of a connection, and writes to its client.
pub(super) struct ConnectionTasks {
    lines: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    /// The queue of extension notifications, after the first one.
    extension_notifications: OnceLock<mpsc::Sender<AdmittedLine>>,
    client_gone: CancellationToken,
    /// Cancelled when streams that only listen must end.
    stopping: CancellationToken,
}

impl ConnectionTasks {
    /// The tasks of a connection, and the lines that they write.
    pub(super) fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (lines, to_write) = mpsc::channel(WRITE_QUEUE);
        let tasks = Self {
            lines,
            tasks: TaskTracker::new(),
            extension_notifications: OnceLock::new(),
            client_gone: CancellationToken::new(),
            stopping: CancellationToken::new(),
        };
        (tasks, to_write)
    }

    pub(super) async fn write_response(&self, message: Bytes) {
        let _ = self.lines.send(message).await;
    }

    /// Runs a request concurrently. Its answer is written when it arrives.
    pub(super) fn spawn_request(&self, admitted: AdmittedLine) {
        let lines = self.lines.clone();
        let stopping = self.stopping.clone();
        let gone = self.client_gone.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                // A client that is gone gets no answer, although the end of its session answers the request.
                biased;
                () = gone.cancelled() => {}
                () = admitted.run(&lines, stopping) => {}
            }
        });
    }

    /// Writes the messages of a batch when they arrive.
    pub(super) fn spawn_batch_writer(&self, mut answers: mpsc::Receiver<Bytes>) {
        let lines = self.lines.clone();
        let gone = self.client_gone.clone();
        let writing = async move {
            while let Some(answer) = answers.recv().await {
                let _ = lines.send(answer).await;
            }
        };
        self.tasks.spawn(gone.run_until_cancelled_owned(writing));
    }

    /// Forwards a notification of an extension concurrently, in order. If there are too many, the last are dropped.
    pub(super) fn queue_notification(&self, notification: AdmittedLine) {
        let queue = self.extension_notifications.get_or_init(|| {
            let (sender, mut notifications) = mpsc::channel::<AdmittedLine>(WRITE_QUEUE);
            let lines = self.lines.clone();
            let stopping = self.stopping.clone();
            let forwarding = async move {
                while let Some(notification) = notifications.recv().await {
                    notification.run(&lines, stopping.clone()).await;
                }
            };
            let gone = self.client_gone.clone();
            self.tasks.spawn(gone.run_until_cancelled_owned(forwarding));
            sender
        });
        if queue.try_send(notification).is_err() {
            debug!("notifications come faster than servers take them; one was dropped");
        }
    }

    /// Writes the messages of `session` that belong to no request, until the guard is dropped.
    pub(super) fn spawn_session_writer(&self, session: &Arc<Session>) -> Option<DropGuard> {
        let messages = session.open_stream(1)?;
        let (stopped, gone) = (CancellationToken::new(), self.client_gone.clone());
        let (lines, guard) = (self.lines.clone(), stopped.clone().drop_guard());
        let next = async move || {
            tokio::select! {
                biased;
                message = messages.next() => message,
                () = stopped.cancelled() => None,
            }
        };
        self.tasks.spawn(async move {
            while let Some(message) = next().await {
                tokio::select! {
                    _ = lines.send(message) => {}
                    () = gone.cancelled() => return,
                }
            }
        });
        Some(guard)
    }

    /// Accepts no more tasks, and ends the streams that only listen.
    pub(super) fn close(&mut self) {
        self.stopping.cancel();
        drop(self.extension_notifications.take());
        self.tasks.close();
    }

    /// Waits until all tasks have ended.
    pub(super) async fn wait(&self) {
        self.tasks.wait().await;
    }

    /// Ends what still waits for the client.
    pub(super) fn abandon_client(&self) {
        self.client_gone.cancel();
    }
}
