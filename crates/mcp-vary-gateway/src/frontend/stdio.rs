//! The stdio frontend: one client, one message on each line.

mod admitted_line;
mod lines;
mod tasks;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_vary::error_code::INVALID_REQUEST;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_base::tasks::spawn;
use mcp_vary_wire::envelope;
use mcp_vary_wire::response::RpcError;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use tracing::debug;

use self::admitted_line::{AdmittedLine, LineMessage, ReadLine};
use self::lines::{Line, read_line, write, written};
use self::tasks::ConnectionTasks;
use super::batch::Batch;
use super::cancel_late_calls;
use crate::gateway::{Endpoint, Gateway};
use crate::pipeline::inbound::{ConnectionSessions, Inbound, MessageSource, Outcome, Sender};
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::caller::Caller;
use mcp_vary_session::memory_cost;

impl Gateway {
    /// Serves one client on a pair of streams until the client closes its input or `shutdown`, then lets requests in
    /// flight finish, as [`serve_http`](Self::serve_http) does.
    ///
    /// # Errors
    ///
    /// When the streams fail.
    pub async fn serve_stdio<R, W>(
        self: &Arc<Self>,
        input: R,
        output: W,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (mut connection, writer) = StdioConnection::over(self, output);
        let read = tokio::select! {
            read = connection.receive_all(Box::new(input)) => read,
            () = shutdown => Ok(()),
        };
        connection.finish().await;
        read.and(written(writer, self.current().config.limits.drain).await)
    }
}

/// The connection of one client.
pub(super) struct StdioConnection {
    gateway: Arc<Gateway>,
    endpoint: Endpoint,
    sessions: ConnectionSessions,
    /// Stops the writer of the legacy session's messages.
    session_writer: Option<DropGuard>,
    tasks: ConnectionTasks,
}

impl StdioConnection {
    /// A connection that writes to `output`, and its writer.
    pub(super) fn over<W>(gateway: &Arc<Gateway>, output: W) -> (Self, JoinHandle<io::Result<()>>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (tasks, to_write) = ConnectionTasks::new();
        let writer = spawn(write(output, to_write));
        let connection = Self {
            gateway: Arc::clone(gateway),
            endpoint: gateway.new_endpoint(),
            sessions: ConnectionSessions::new(&gateway.current()),
            session_writer: None,
            tasks,
        };
        (connection, writer)
    }

    /// Receives the lines of the client until it closes its input.
    fn receive_all<'a>(
        &'a mut self,
        input: Box<dyn AsyncRead + Send + Unpin + 'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let mut input = BufReader::new(input);
            self.gateway.until_serving().await;
            let gateway = Arc::clone(&self.gateway);
            let limit = || gateway.current().config.limits.body;
            while let Some(line) = read_line(&mut input, limit).await? {
                self.receive(line).await;
            }
            Ok(())
        })
    }

    async fn receive(&mut self, line: Line) {
        let line = match line {
            Line::Complete(line) => line,
            Line::TooLong(limit) => {
                let why = format!("the line is longer than {limit} bytes");
                return self
                    .tasks
                    .write_response(RpcError::new(INVALID_REQUEST, why).to_bytes(None))
                    .await;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let line = Bytes::from(line);
        let memory = (self.gateway.services.memory).lease(memory_cost::of_message(line.len()));
        match (envelope::batch(&line), memory) {
            (None, memory) => self.receive_message(line, memory).await,
            (Some(messages), Ok(memory)) => {
                let body = &line;
                let batch = Batch {
                    body,
                    messages,
                    memory,
                };
                self.receive_batch(batch).await;
            }
            (Some(_), Err(failure)) => self.tasks.write_response(failure.to_bytes(None)).await,
        }
    }

    async fn receive_message(&mut self, line: Bytes, memory: Result<Lease, RpcError>) {
        let line = match ReadLine::read(line) {
            Ok(line) => line,
            Err(why) => {
                let failure = RpcError::from(&why).to_bytes(why.id.as_deref());
                return self.tasks.write_response(failure).await;
            }
        };
        let LineMessage { message, params } = line.borrow_dependent();
        let is_request = message.is_request();
        if let (Err(failure), true) = (&memory, is_request) {
            return self
                .tasks
                .write_response(failure.to_bytes(message.id))
                .await;
        }
        let snapshot = self.gateway.current();
        let inbound = Inbound {
            message,
            params: params.clone(),
            body: line.borrow_owner(),
            sender: Sender {
                snapshot: &snapshot,
                caller: &mut Caller::of_stdio(snapshot.config.stdio_principal.as_ref()),
                source: MessageSource::Connection(&mut self.sessions),
            },
        };
        let (client, declared, guard) = match inbound.admit().await {
            Ok(admitted) => (admitted.client, admitted.request.client, admitted.guard),
            // A notification has no answer. No other gateway uses these pipes, so that a response that answers nothing
            // is a fault of the client.
            Err(_) if !is_request => return,
            Err(outcome) => return self.write_outcome(&snapshot, outcome).await,
        };
        let Ok(memory) = memory else {
            return debug!("a notification was dropped, since the memory budget is used up");
        };
        let admitted = AdmittedLine {
            snapshot,
            client,
            declared,
            guard,
            line,
            _memory: memory,
        };
        if is_request {
            self.tasks.spawn_request(admitted);
        } else {
            self.tasks.queue_notification(admitted);
        }
    }

    /// Writes the outcome of a message that is not dispatched.
    async fn write_outcome(&mut self, snapshot: &ConfigSnapshot, outcome: Outcome) {
        if let Outcome::Refused(reply) | Outcome::SessionOpened(reply, _) = outcome {
            self.tasks.write_response(reply.body).await;
        }
        self.follow_opened_session(snapshot).await;
    }

    /// Writes the messages of a session that was opened just now.
    async fn follow_opened_session(&mut self, snapshot: &ConfigSnapshot) {
        if let Some(session) = self.sessions.take_opened() {
            snapshot.notify_session(&session).await;
            self.session_writer = self.tasks.spawn_session_writer(&session);
        }
    }

    async fn receive_batch(&mut self, batch: Batch<'_>) {
        let snapshot = self.gateway.current();
        let sender = Sender {
            snapshot: &snapshot,
            caller: &mut Caller::of_stdio(snapshot.config.stdio_principal.as_ref()),
            source: MessageSource::Connection(&mut self.sessions),
        };
        match batch.start(sender).await {
            Ok(answers) => self.tasks.spawn_batch_writer(answers),
            Err(reply) => self.tasks.write_response(reply.body).await,
        }
        self.follow_opened_session(&snapshot).await;
    }

    /// Lets requests in flight finish for at most `limits.drain`.
    pub(super) async fn finish(mut self) {
        drop(self.session_writer.take());
        self.tasks.close();
        // The client cannot answer requests any more, so none of them waits.
        for session in self.sessions.all() {
            session.close_input();
            self.gateway
                .services
                .pending_server_requests
                .forget(session.client);
        }
        let drain = self.gateway.current().config.limits.drain;
        if timeout(drain, self.tasks.wait()).await.is_err() {
            cancel_late_calls(&self.gateway, Some(&self.endpoint), self.tasks.wait()).await;
            self.tasks.abandon_client();
            for session in self.sessions.all() {
                session.end();
            }
            self.tasks.wait().await;
        }
        for session in self.sessions.all() {
            self.gateway.services.hub.remove_session(session.client);
            self.gateway.current().pool.close_session(session.client);
        }
    }
}

#[cfg(test)]
impl StdioConnection {
    pub(super) async fn receive_line(&mut self, line: &str) {
        self.receive(Line::Complete(line.into())).await;
    }

    pub(super) fn legacy_session(&self) -> Option<Arc<mcp_vary_session::Session>> {
        self.sessions.legacy().cloned()
    }
}
