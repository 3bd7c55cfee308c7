//! Health checks of a connection.

use std::pin::pin;
use std::time::Duration;

use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary::json::Members;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;

use crate::connect_error::ConnectError;
use crate::connection::UpstreamConnection;
use crate::error::{UpstreamError, error_code, means_other_era};
use crate::handshake::{self, Discovered};
use crate::liveness::Liveness;
use crate::message::{Answer, Request, RequestKind};
use crate::transport::{Exchange, Transport};

/// Why a connection must be given up.
#[derive(Debug)]
pub(super) enum Health {
    /// The server does not answer any more.
    Hung(UpstreamError),
    /// Requests cannot be delivered.
    Unreachable(UpstreamError),
    /// The server reports another identity than before.
    Replaced,
}

/// Checks `upstream` until it is unhealthy.
///
/// A check is sent when the server was silent for `limits.ping`, and at once when a call failed in a way that suggests
/// that the server is gone. Every answer counts, also an error. The check is `ping` in the legacy era. MCP 2026-07-28
/// has no `ping`, so a modern server gets `server/discover`, which every modern server answers:
///
/// > Servers **MUST** implement `server/discover`. (MCP 2026-07-28, server/discover)
pub(super) async fn watch(upstream: &UpstreamConnection) -> Health {
    let life = &upstream.liveness;
    let ping = upstream.config.limits.ping;
    let mut checked_at = None;
    loop {
        tokio::select! {
            () = life.silent_for(ping), if !ping.is_zero() && !life.ignores_ping() => {}
            () = suspected_after(checked_at, life) => {}
            () = life.replaced() => return Health::Replaced,
        }
        let mut pong = check(upstream).await;
        if matches!(pong, Pong::Unreachable(_)) {
            // One broken socket proves nothing: endpoints close idle connections.
            pong = check(upstream).await;
        }
        match pong {
            Pong::Alive => life.touch(),
            Pong::Other => return Health::Replaced,
            Pong::Unreachable(error) => return Health::Unreachable(error),
            Pong::Hung(error) => return Health::Hung(error),
        }
        checked_at = Some(Instant::now());
    }
}

/// Waits until a check is due because of an answer, some time after the last one: every error that a tool answers is a reason.
async fn suspected_after(checked_at: Option<Instant>, life: &Liveness) {
    life.suspected().await;
    if let Some(checked_at) = checked_at {
        tokio::time::sleep_until(checked_at + CHECK_PAUSE).await;
    }
}

/// The pause between checks for the sake of answers.
const CHECK_PAUSE: Duration = Duration::from_millis(200);

/// The result of a health check.
#[derive(Debug)]
enum Pong {
    Alive,
    /// Another server answered.
    Other,
    Unreachable(UpstreamError),
    Hung(UpstreamError),
}

async fn check(upstream: &UpstreamConnection) -> Pong {
    let sent_at = Instant::now();
    let answer = pin!(ping(upstream));
    tokio::select! {
        biased;
        answer = answer => match answer {
            Ok(answer) => check_identity(upstream, &answer),
            Err(error) => classify_failure(upstream, error),
        },
        limit = wait_until_hung(upstream, sent_at) => {
            let means_nothing = upstream.liveness.ignores_ping() || upstream.config.limits.hang_timeout.is_zero();
            if means_nothing { Pong::Alive } else { Pong::Hung(hung_error(upstream, limit)) }
        }
    }
}

async fn ping(upstream: &UpstreamConnection) -> Result<Answer, UpstreamError> {
    let request = match upstream.handshake.era() {
        Era::Legacy => Request::new("ping", None),
        Era::Modern => {
            let params = handshake::modern_params(&upstream.config.capabilities, &[]);
            Request::new("server/discover", Some(params))
        }
    };
    match upstream.send(request, RequestKind::HealthCheck).await {
        Ok(exchange) => Exchange::answer(exchange).await,
        // The process does not read its input; the time limit decides whether it hangs.
        Err(UpstreamError::Busy { .. }) => std::future::pending().await,
        Err(error) => Err(error),
    }
}

/// Checks that the answer is from the server of the handshake.
fn check_identity(upstream: &UpstreamConnection, answer: &Answer) -> Pong {
    // A process cannot be replaced on the same pipes.
    if matches!(*upstream.transport, Transport::Stdio(_)) {
        return Pong::Alive;
    }
    let is_other = match (upstream.handshake.era(), answer.outcome()) {
        (Era::Legacy, Ok(_)) => false,
        // "Recognized modern JSON-RPC errors" come from modern servers only.
        (Era::Legacy, Err(error)) => handshake::is_modern_error(error),
        (Era::Modern, _) => match handshake::read_discover(&upstream.name().into(), answer) {
            Ok(Discovered::Modern(discovered)) => !upstream.handshake.is_equivalent_to(&discovered),
            Ok(Discovered::Legacy(_)) => is_method_not_found(answer),
            Err(ConnectError::Revision { .. }) => true,
            Ok(Discovered::Retry(_)) | Err(_) => false,
        },
    };
    if is_other { Pong::Other } else { Pong::Alive }
}

/// Whether the server does not know `server/discover`; other errors may be transient.
fn is_method_not_found(answer: &Answer) -> bool {
    answer.outcome().err().is_some_and(|error| {
        let members = Members::parse(error).unwrap_or_default();
        error_code(&members) == Some(METHOD_NOT_FOUND)
    })
}

/// Classifies a failed check; a refusal shows that the server is alive.
fn classify_failure(upstream: &UpstreamConnection, error: UpstreamError) -> Pong {
    match error {
        UpstreamError::Unreachable { .. }
        | UpstreamError::Unanswered { .. }
        | UpstreamError::BrokeOff { .. }
        | UpstreamError::Timeout { .. } => Pong::Unreachable(error),
        // It answered this request when the connection was established.
        UpstreamError::Status { status, .. }
            if means_other_era(status) && !upstream.liveness.ignores_ping() =>
        {
            Pong::Other
        }
        _ => Pong::Alive,
    }
}

/// Waits until the server has been silent for too long since the check was sent at `sent_at`; returns that limit.
///
/// A server that handles one request at a time does not answer before it is done. So while a call is in flight, the
/// limit is that of calls.
async fn wait_until_hung(upstream: &UpstreamConnection, sent_at: Instant) -> Duration {
    let life = &upstream.liveness;
    let limits = &upstream.config.limits;
    let configured = Some(limits.hang_timeout).filter(|hung| !hung.is_zero());
    let hung = configured.unwrap_or(limits.handshake);
    loop {
        let (since, limit) = if life.calls_in_flight() > 0 {
            (life.last_received(), limits.idle.max(hung))
        } else {
            (life.last_active(), hung)
        };
        let now = Instant::now();
        // A server that waits for an answer of its client may answer nothing else.
        let calm = upstream.server_requests.idle_since().unwrap_or(now);
        let due = since.max(sent_at).max(calm) + limit;
        if now >= due {
            return limit;
        }
        // Calls may begin and end meanwhile.
        tokio::time::sleep_until(due.min(now + hung)).await;
    }
}

fn hung_error(upstream: &UpstreamConnection, limit: Duration) -> UpstreamError {
    UpstreamError::Closed {
        server: upstream.name().into(),
        reason: format!("hung: it sent nothing for {limit:?} after a health check").into(),
        output: std::sync::Arc::default(),
    }
}
