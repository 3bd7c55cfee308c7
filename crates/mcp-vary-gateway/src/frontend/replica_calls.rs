//! The answers to requests that other replicas forward.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use http::{Request, response};
use http_body::Body as _;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_http::ConnectionTimer;
use mcp_vary_store::{ForwardError, ReplicaCall, RequestHead, Responder};
use tracing::debug;

use super::endpoint::{self, ConnectionScope};
use super::forwarding::Forwarded;
use super::peer::ClientAddress;
use super::request_body::RequestBody;
use super::responses::{Body, rejected};
use super::stopping::Stopping;
use crate::gateway::Gateway;
use mcp_vary_session::authentication::PeerCertificate;

/// Bytes that are sent although more are ready.
const LARGE: usize = 16 << 10;

impl Gateway {
    /// Answers requests that other replicas forward, each as one of `tasks`. It ends only when it is dropped; a request that
    /// was begun goes on until nobody waits for the answer or the gateway stops.
    pub(super) async fn answer_replicas(
        self: &Arc<Self>,
        stopping: &Stopping,
        tasks: &TaskTracker,
    ) {
        let mut calls = self.replica_calls.lock().await;
        while let Some(call) = calls.recv().await {
            let gateway = Arc::clone(self);
            let call_stopping = stopping.clone();
            let shutdown = self.services.shutdown.clone();
            let answered = tasks.track_future(async move {
                let answered = answer_call(&gateway, call_stopping, call);
                if let Some(Err(error)) = shutdown.run_until_cancelled(answered).await {
                    debug!(%error, "forwarded request not answered");
                }
            });
            self.services.background_tasks.spawn(answered);
        }
        pending().await
    }
}

async fn answer_call(
    gateway: &Gateway,
    stopping: Stopping,
    call: ReplicaCall,
) -> Result<(), ForwardError> {
    let (request, body, responder) = call.open().await?;
    let abandoned = responder.abandoned();
    let body = RequestBody::Replica(body);
    tokio::select! {
        answered = answer(gateway, stopping, request, body, responder) => answered,
        () = abandoned => Ok(()),
    }
}

async fn answer(
    gateway: &Gateway,
    stopping: Stopping,
    request: RequestHead,
    body: RequestBody,
    mut responder: Responder,
) -> Result<(), ForwardError> {
    gateway.until_serving().await;
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (request.method, request.uri, request.headers);
    head.extensions.insert(Forwarded);
    if let Some(address) = request.address {
        head.extensions.insert(ClientAddress(address));
    }
    if let Some(subject) = request.certificate {
        let parsed = PeerCertificate::of(&subject);
        let certificate = parsed.map_err(|_| ForwardError::Unanswered)?;
        head.extensions.insert(certificate);
    }
    let scope = ConnectionScope {
        stopping,
        stream_timer: ConnectionTimer::default(),
    };
    let response = Box::pin(endpoint::respond(gateway.current(), &head, body, &scope)).await;
    let (head, mut body) = response.unwrap_or_else(rejected).into_parts();
    if let Body::Full(bytes) = &mut body {
        let whole = bytes.take().unwrap_or_default();
        let begun = responder.begin(head.status, &head.headers, &whole, true);
        return begun.await;
    }
    send_stream(&head, body, responder).await
}

/// Sends a body as it comes, and each time what is ready in one message.
async fn send_stream(
    head: &response::Parts,
    body: Body,
    mut responder: Responder,
) -> Result<(), ForwardError> {
    let mut body = pin!(body);
    let (mut ready, mut has_begun, mut is_last) = (BytesMut::new(), false, false);
    while !is_last {
        let may_wait = has_begun && ready.is_empty();
        let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Pending if may_wait => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
        });
        match frame.await {
            Some(Some(frame)) => {
                ready.extend_from_slice(&frame?.into_data().unwrap_or_default());
                if ready.len() < LARGE {
                    continue;
                }
            }
            Some(None) => is_last = true,
            None => {}
        }
        let data = ready.split().freeze();
        if has_begun {
            responder.send(data, is_last).await?;
        } else {
            let begun = responder.begin(head.status, &head.headers, &data, is_last);
            begun.await?;
            has_begun = true;
        }
    }
    Ok(())
}
