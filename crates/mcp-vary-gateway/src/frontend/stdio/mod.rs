//! The stdio frontend: one client, one message on each line.

mod lines;
mod session;
mod work;

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::lines::{Line, read_line, write, written};
use self::session::LegacySession;
use self::work::ExtensionNotification;
use super::{admit, batch, cancel_late_calls, receive_client_message};
use crate::gateway::{Endpoint, Gateway};
use crate::pipeline::methods::is_of_an_extension;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::memory_cost;
use crate::session::{BASE_CLASS, Negotiated, Session};
use mcp_vary::error_code::INVALID_REQUEST;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::envelope::{self, Message};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

/// Lines that wait to be written. When the client reads slowly, requests wait.
const WRITE_QUEUE: usize = 64;

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
        let mut input = BufReader::new(input);
        let limits = || self.current().config.limits;
        let reading = async {
            self.until_serving().await;
            while let Some(line) = read_line(&mut input, || limits().body).await? {
                connection.receive(line).await;
            }
            Ok(())
        };
        let read = tokio::select! {
            read = reading => read,
            () = shutdown => Ok(()),
        };
        connection.finish().await;
        read.and(written(writer, limits().drain).await)
    }
}

/// The connection of one client.
pub(super) struct StdioConnection {
    gateway: Arc<Gateway>,
    entrance: Endpoint,
    /// Opened by `initialize`.
    legacy: Option<LegacySession>,
    /// Has the modern requests in flight, so that they can be cancelled.
    modern: Arc<Session>,
    /// Previous legacy sessions with requests in flight.
    former_session: Vec<Arc<Session>>,
    lines: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    /// The queue of extension notifications, after the first one.
    running_requests: OnceLock<mpsc::Sender<ExtensionNotification>>,
    client_gone: CancellationToken,
    /// Cancelled when streams that only listen must end.
    stopping: CancellationToken,
}

impl StdioConnection {
    /// A connection that writes to `output`, and its writer.
    pub(super) fn over<W>(gateway: &Arc<Gateway>, output: W) -> (Self, JoinHandle<io::Result<()>>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, to_write) = mpsc::channel(WRITE_QUEUE);
        let writer = tokio::spawn(write(output, to_write));
        (Self::new(gateway, lines), writer)
    }

    fn new(gateway: &Arc<Gateway>, lines: mpsc::Sender<Bytes>) -> Self {
        let config = &gateway.current().config;
        let principal = config.stdio_principal.as_ref();
        let stateless = Negotiated {
            revision: Revision::LATEST_MODERN,
            features: None,
            order: Vec::new(),
            declares_variants: false,
            class: BASE_CLASS.into(),
            client: ClientName::default(),
            principal: principal.map(|principal| principal.id()),
            reason: VariantReason::default(),
        };
        Self {
            gateway: Arc::clone(gateway),
            entrance: gateway.new_endpoint(),
            legacy: None,
            modern: gateway.services.sessions.open_stdio(stateless),
            former_session: Vec::new(),
            lines,
            tasks: TaskTracker::new(),
            running_requests: OnceLock::new(),
            client_gone: CancellationToken::new(),
            stopping: CancellationToken::new(),
        }
    }

    async fn receive(&mut self, line: Line) {
        let line = match line {
            Line::Complete(line) => line,
            Line::TooLong(limit) => {
                let why = format!("the line is longer than {limit} bytes");
                return self
                    .write_response(RpcError::new(INVALID_REQUEST, why).to_bytes(None))
                    .await;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let memory = memory_cost::of_message(line.len());
        if let Some(messages) = envelope::batch(&line) {
            return match self.gateway.services.memory.lease(memory) {
                Ok(memory) => self.receive_batch(messages, memory).await,
                Err(failure) => self.write_response(failure.to_bytes(None)).await,
            };
        }
        match Message::read_with_params(&line) {
            Ok((message, params)) => {
                let sizes = (line.len(), memory);
                self.receive_message(&message, params, sizes).await;
            }
            Err(why) => {
                self.write_response(RpcError::from(&why).to_bytes(why.id.as_deref()))
                    .await
            }
        }
    }

    async fn receive_message(
        &mut self,
        message: &Message<'_>,
        params: Option<Params<'_>>,
        (length, memory): (usize, usize),
    ) {
        let params = match Params::of(message, params) {
            Ok(params) => params,
            // A notification has no reply (JSON-RPC 2.0, section 4.1).
            Err(_) if message.id.is_none() => return,
            Err(refusal) => {
                let failure = refusal.into_counted_error(&self.gateway.current().services.counters);
                return self.write_response(failure.to_bytes(message.id)).await;
            }
        };
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
            let setup = self.gateway.current();
            for session in self.sessions() {
                // No other gateway uses these pipes, so this is a fault of the client, and logged.
                let _ = receive_client_message(&setup, session, message, &params);
            }
            let method = message.method.as_deref();
            if let Some(method) = method.filter(|method| is_of_an_extension(method)) {
                let memory = self.gateway.services.memory.lease(memory);
                self.spawn_notification(setup, method, message.params, &params, memory.ok());
            }
            return;
        };
        let memory = match self.gateway.services.memory.lease(memory) {
            Ok(memory) => memory,
            Err(failure) => return self.write_response(failure.to_bytes(Some(id))).await,
        };
        let setup = self.gateway.current();
        let caller = match self.recorded(&setup, message, &params, length).await {
            Ok(caller) => caller,
            Err(reply) => return self.write_response(reply.body).await,
        };
        if method == "initialize" && !params.is_modern() {
            let params = (&params, message.params.unwrap_or_default());
            return self.initialize(&setup, &caller, id, params).await;
        }
        match self.client(&setup, &caller, method, &params).await {
            Ok((client, session)) => match admit(&setup, &session, id) {
                Ok(place) => self.spawn_request(setup, client, (place, memory), message, id),
                Err(reply) => {
                    if let Some(record) = &caller.record {
                        record.finish(&reply);
                    }
                    self.write_response(reply.body).await;
                }
            },
            Err(failure) => self.refuse(&caller, id, &failure).await,
        }
    }

    /// All sessions that may have requests in flight.
    fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        let legacy = self.legacy.iter().map(|legacy| &legacy.session);
        legacy.chain(&self.former_session).chain([&self.modern])
    }

    async fn receive_batch(
        &mut self,
        messages: Result<Vec<&str>, envelope::WireError>,
        memory: Lease,
    ) {
        let setup = self.gateway.current();
        match self.open_batch(&setup, messages).await {
            Ok((session, messages)) => self.spawn_batch(&setup, &session, &messages, memory),
            Err(failure) => self.write_response(failure.to_bytes(None)).await,
        }
    }

    /// The messages of a batch, and its session.
    async fn open_batch<'a>(
        &mut self,
        setup: &ConfigSnapshot,
        messages: Result<Vec<&'a str>, envelope::WireError>,
    ) -> Result<(Arc<Session>, Vec<&'a str>), RpcError> {
        let messages = batch::readable(setup, messages)?;
        let session = self.session(setup).await?.ok_or_else(|| {
            let why = "send `initialize` first; batches exist in revision 2025-03-26 only";
            RpcError::invalid_request(why)
        })?;
        let messages = batch::open_batch(&session, messages)?;
        Ok((session, messages))
    }

    async fn write_response(&self, message: Bytes) {
        let _ = self.lines.send(message).await;
    }

    /// Lets requests in flight finish for at most `limits.drain`.
    pub(super) async fn finish(mut self) {
        drop(
            self.legacy
                .as_mut()
                .map(|legacy| legacy.is_input_closed.take()),
        );
        self.stopping.cancel();
        drop(self.running_requests.take());
        // The client cannot answer requests any more, so none of them waits.
        for session in self.sessions() {
            session.close_input();
            self.gateway
                .services
                .pending_server_requests
                .forget(session.client);
        }
        self.tasks.close();
        let drain = self.gateway.current().config.limits.drain;
        if timeout(drain, self.tasks.wait()).await.is_err() {
            cancel_late_calls(&self.gateway, Some(&self.entrance), self.tasks.wait()).await;
            self.client_gone.cancel();
            for session in self.sessions() {
                session.end();
            }
            self.tasks.wait().await;
        }
        for session in self.sessions() {
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

    pub(super) fn legacy_session(&self) -> Option<Arc<Session>> {
        let legacy = self.legacy.as_ref()?;
        Some(Arc::clone(&legacy.session))
    }
}
