//! Requests that run while the client's next messages are read.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{StdioConnection, WRITE_QUEUE};
use crate::frontend::batch;
use crate::pipeline::clients::{legacy_client, modern_client};
use crate::pipeline::exchange::ResponseEvent;
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::forward_notification;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router::dispatch;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::client::Client;
use crate::session::{InFlightGuard, Session};
use crate::subscriptions::ListenStream;

/// A notification of an extension: its client, method and params as written.
pub(super) type ExtensionNotification =
    (Arc<ConfigSnapshot>, Client, String, Option<String>, Lease);

impl StdioConnection {
    /// Runs a request concurrently. Its answer is written when it arrives.
    pub(super) fn spawn_request(
        &self,
        gateway: Arc<ConfigSnapshot>,
        client: Client,
        (place, memory): (InFlightGuard, Lease),
        message: &Message<'_>,
        id: &str,
    ) {
        let lines = self.lines.clone();
        let method = message.method.as_deref().unwrap_or_default().to_owned();
        let params = message.params.map(str::to_owned);
        let id = id.to_owned();
        let (gone, stopping) = (self.client_gone.clone(), self.stopping.clone());
        self.tasks.spawn(async move {
            // The params were readable before, so they are now.
            let params = Params::read(params.as_deref()).unwrap_or_default();
            let asked = IncomingRequest {
                id: &id,
                method: &method,
                params,
                headers: None,
                message: None,
            };
            let answer = run(gateway, &client, asked, place, &lines, stopping);
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = answer => {}
            }
            drop(memory);
        });
    }

    pub(super) fn spawn_batch(
        &self,
        setup: &Arc<ConfigSnapshot>,
        session: &Arc<Session>,
        messages: &[&str],
        memory: Lease,
    ) {
        let mut answers = batch::run(setup, session, &self.caller(setup), messages, memory);
        let lines = self.lines.clone();
        let gone = self.client_gone.clone();
        self.tasks.spawn(async move {
            let passing_on = async {
                while let Some(answer) = answers.recv().await {
                    let _ = lines.send(answer).await;
                }
            };
            tokio::select! {
                () = gone.cancelled() => {}
                () = passing_on => {}
            }
        });
    }

    /// Forwards a notification of an extension concurrently, in order. If there are too many, the last are dropped.
    pub(super) fn spawn_notification(
        &self,
        setup: Arc<ConfigSnapshot>,
        method: &str,
        written: Option<&str>,
        params: &Params<'_>,
        memory: Option<Lease>,
    ) {
        let Some(memory) = memory else {
            return debug!("there is no memory for a notification; it was dropped");
        };
        let client = match (params.is_modern(), &self.legacy) {
            (true, _) => modern_client(&setup, method, &self.caller(&setup), params),
            (false, Some(legacy)) => {
                legacy_client(&setup, &legacy.session, &self.caller(&setup), params)
            }
            (false, None) => return,
        };
        let Ok(mut client) = client else { return };
        if params.is_modern() {
            client.id = self.modern.client;
            client.connection = Some(client.id);
        }
        let (method, written) = (method.to_owned(), written.map(str::to_owned));
        let carried = self.running_requests.get_or_init(|| {
            let (sender, carried) = mpsc::channel(WRITE_QUEUE);
            let carrying = self
                .client_gone
                .clone()
                .run_until_cancelled_owned(forward_all(carried));
            self.tasks.spawn(carrying);
            sender
        });
        if carried
            .try_send((setup, client, method, written, memory))
            .is_err()
        {
            debug!("notifications come faster than servers take them; one was dropped");
        }
    }
}

/// Runs one request to its end and writes its messages.
async fn run(
    gateway: Arc<ConfigSnapshot>,
    client: &Client,
    asked: IncomingRequest<'_>,
    place: InFlightGuard,
    lines: &mpsc::Sender<Bytes>,
    stopping: CancellationToken,
) {
    let outcome = dispatch(&gateway, client, asked).await;
    // A request that its server works on no longer needs the configuration, which may be replaced.
    drop(gateway);
    let mut running = match outcome {
        Dispatch::Done(reply) => {
            // A client may use the id again as soon as it reads the answer.
            drop(place);
            return drop(lines.send(reply.body).await);
        }
        Dispatch::InFlight(running) => running,
        Dispatch::Listen(listener) => {
            return receive_client_message(
                listener.until(stopping.cancelled_owned()),
                &place,
                lines,
            )
            .await;
        }
    };
    running.hold_guard(place);
    loop {
        match running.next().await {
            ResponseEvent::Message(message) => drop(lines.send(message).await),
            ResponseEvent::Done(reply) => {
                drop(running);
                return drop(lines.send(reply.body).await);
            }
            ResponseEvent::Cancelled => return,
        }
    }
}

/// Writes a client's notifications until it cancels the request or the stream ends.
async fn receive_client_message(
    mut listener: Box<ListenStream>,
    place: &InFlightGuard,
    lines: &mpsc::Sender<Bytes>,
) {
    loop {
        let message = tokio::select! {
            biased;
            // > Servers receiving cancellation notifications SHOULD not send a response for the cancelled
            // > request. (MCP 2026-07-28, basic/patterns/cancellation)
            () = place.cancelled() => return,
            message = listener.next() => message,
        };
        match message {
            Some(message) => drop(lines.send(message).await),
            None => return,
        }
    }
}

/// Forwards notifications one after the other.
async fn forward_all(mut carried: mpsc::Receiver<ExtensionNotification>) {
    while let Some((setup, client, method, written, _memory)) = carried.recv().await {
        // The params were readable before, so they are now.
        let params = Params::read(written.as_deref()).unwrap_or_default();
        forward_notification(&setup, &client, &method, params).await;
    }
}
