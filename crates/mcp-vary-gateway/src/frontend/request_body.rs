//! The body of a `POST`: read within the bounds, or refused and discarded.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::EXPECT;
use http::request::Parts;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use mcp_vary_base::memory_budget::{Exhausted, Lease};
use mcp_vary_wire::counters::Counter;

use crate::frontend::validation::Rejection;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::memory_cost;

/// The body, and the lease of its memory.
pub(super) async fn read_body(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    mut body: Incoming,
) -> Result<(Bytes, Lease), Rejection> {
    let limits = &snapshot.config.limits;
    let rejection = |status, reason: String| Rejection { status, reason };
    let mut memory = snapshot.services.memory.empty_lease();
    let read = {
        let mut reading = pin!(collect(&mut body, limits.body, &mut memory));
        // Most bodies arrive with their head, and need no timer.
        match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(limits.read_timeout, reading).await,
        }
    };
    if let Ok(Err(BodyError::TooLarge | BodyError::NoMemory)) = read {
        discard(snapshot, head, body);
    }
    match read {
        Ok(Ok(bytes)) => Ok((bytes, memory)),
        Ok(Err(BodyError::NoMemory)) => {
            let counters = &snapshot.services.counters;
            counters.increment(Counter::RefusedForMemory);
            let reason = Exhausted::REASON.to_owned();
            Err(rejection(StatusCode::SERVICE_UNAVAILABLE, reason))
        }
        Ok(Err(BodyError::TooLarge)) => Err(rejection(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message is larger than {} bytes", limits.body),
        )),
        Ok(Err(BodyError::Broken)) => Err(rejection(
            StatusCode::BAD_REQUEST,
            "the message ended early".to_owned(),
        )),
        Err(_) => Err(rejection(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the message did not arrive within {:?}",
                limits.read_timeout
            ),
        )),
    }
}

/// Reads the remainder of a refused body while the response is sent: many clients read only after they have written
/// everything, and would lose the response if the connection was closed before. Time and bytes are bounded.
pub(super) fn discard(snapshot: &ConfigSnapshot, head: &Parts, mut body: Incoming) {
    // A client that waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1) does not get it.
    if head.headers.contains_key(EXPECT) {
        return;
    }
    let remainder = async move {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > MAX_DISCARDED {
                break;
            }
        }
    };
    let shutdown = snapshot.services.shutdown.clone();
    let discarding =
        shutdown.run_until_cancelled_owned(tokio::time::timeout(DISCARD_TIMEOUT, remainder));
    snapshot.services.background_tasks.spawn(discarding);
}

/// The most bytes of a refused body that are read.
const MAX_DISCARDED: usize = 64 << 20;
/// The longest time for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes that are reserved for an announced body. The buffer grows as the body arrives.
const PREALLOCATED: usize = 1 << 20;

enum BodyError {
    TooLarge,
    NoMemory,
    Broken,
}

/// The whole body; one frame, the common case, is not copied.
async fn collect(
    body: &mut Incoming,
    limit: usize,
    memory: &mut Lease,
) -> Result<Bytes, BodyError> {
    // The declared length is enough to refuse a body before it is sent.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut first: Option<Bytes> = None;
    let mut whole: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        let so_far = whole.as_ref().map_or(0, BytesMut::len) + first.as_ref().map_or(0, Bytes::len);
        if so_far + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        memory
            .grow_to(memory_cost::of_message(so_far + data.len()))
            .map_err(|_| BodyError::NoMemory)?;
        match (&mut whole, first.take()) {
            (Some(whole), _) => whole.extend_from_slice(&data),
            (None, None) => first = Some(data),
            (None, Some(before)) => {
                let remaining = usize::try_from(body.size_hint().lower()).unwrap_or(0);
                let length = before.len() + data.len() + remaining;
                let mut joined = BytesMut::with_capacity(length.min(limit).min(PREALLOCATED));
                joined.extend_from_slice(&before);
                joined.extend_from_slice(&data);
                whole = Some(joined);
            }
        }
    }
    Ok(whole.map(BytesMut::freeze).or(first).unwrap_or_default())
}
