//! Whether a server is still there.

use std::pin::pin;
use std::time::Duration;

use mcp_vary::json::Members;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;

use crate::error::{ConnectError, UpstreamError, means_other_era};
use crate::handshake::{self, Discovered};
use crate::message::{Answer, Purpose, Request};
use crate::{Exchange, Link, Upstream};

/// What became of a server.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It does not answer any more.
    Hung(UpstreamError),
    /// Nothing can be delivered to it.
    Unreachable(UpstreamError),
    /// It says something else about itself than before.
    Replaced,
}

/// Watches over `upstream` until something became of it.
///
/// The server is asked when it was silent for `limits.ping`, and at once when a call failed as if it were
/// gone. Whatever it says is a sign of life, an error too. The question is `ping` in the legacy era; MCP
/// 2026-07-28 has no `ping`, so that `server/discover` takes its place, which every modern server answers:
///
/// > Servers **MUST** implement `server/discover`. (MCP 2026-07-28, server/discover)
pub(super) async fn watch(upstream: &Upstream) -> Verdict {
    let (life, ping) = (&upstream.life, upstream.config.limits.ping);
    loop {
        tokio::select! {
            () = life.silent_for(ping), if !ping.is_zero() && !life.is_mute() => {}
            () = life.doubted() => {}
            () = life.replaced() => return Verdict::Replaced,
        }
        let mut pong = ask(upstream).await;
        if matches!(pong, Pong::Unreachable(_)) {
            // One socket that broke says nothing: endpoints close what was idle.
            pong = ask(upstream).await;
        }
        match pong {
            Pong::Alive => life.hear(),
            Pong::Other => return Verdict::Replaced,
            Pong::Unreachable(error) => return Verdict::Unreachable(error),
            Pong::Hung(error) => return Verdict::Hung(error),
        }
    }
}

/// What came of a question.
#[derive(Debug)]
enum Pong {
    Alive,
    /// The answer of another server.
    Other,
    Unreachable(UpstreamError),
    Hung(UpstreamError),
}

async fn ask(upstream: &Upstream) -> Pong {
    let asked = Instant::now();
    let answer = pin!(question(upstream));
    tokio::select! {
        biased;
        answer = answer => match answer {
            Ok(answer) => recognize(upstream, &answer),
            Err(error) => reached(upstream, error),
        },
        limit = silence(upstream, asked) => {
            let means_nothing = upstream.life.is_mute() || upstream.config.limits.hung.is_zero();
            if means_nothing { Pong::Alive } else { Pong::Hung(hung(upstream, limit)) }
        }
    }
}

async fn question(upstream: &Upstream) -> Result<Answer, UpstreamError> {
    let request = match upstream.hello.era() {
        Era::Legacy => Request::new("ping", None),
        Era::Modern => {
            let params = handshake::modern_params(&upstream.config.capabilities, &[]);
            Request::new("server/discover", Some(params))
        }
    };
    match upstream.open(request, Purpose::Pulse).await {
        Ok(exchange) => Exchange::answer(exchange).await,
        // It does not read its input; whether it does anything else shows in time.
        Err(UpstreamError::Busy { .. }) => std::future::pending().await,
        Err(error) => Err(error),
    }
}

/// Whether an answer is that of the server that was connected to.
fn recognize(upstream: &Upstream, answer: &Answer) -> Pong {
    // A process stays the one that it is.
    if matches!(upstream.link, Link::Stdio(_)) {
        return Pong::Alive;
    }
    let is_other = match (upstream.hello.era(), answer.outcome()) {
        (Era::Legacy, Ok(_)) => false,
        // "Recognized modern JSON-RPC errors" come from modern servers only.
        (Era::Legacy, Err(error)) => handshake::is_modern_error(error),
        (Era::Modern, _) => match handshake::read_discover(&upstream.name().into(), answer) {
            Ok(Discovered::Modern(hello)) => !upstream.hello.agrees_with(&hello),
            Ok(Discovered::Legacy(_)) => says_unknown(answer),
            Err(ConnectError::Revision { .. }) => true,
            Ok(Discovered::Again(_)) | Err(_) => false,
        },
    };
    if is_other { Pong::Other } else { Pong::Alive }
}

/// Whether `server/discover` is unknown: an error of another kind may pass.
fn says_unknown(answer: &Answer) -> bool {
    answer.outcome().err().is_some_and(|error| {
        let members = Members::parse(error).unwrap_or_default();
        members.get("code") == Some("-32601")
    })
}

/// What a question that failed tells: a refusal is a sign of life, too.
fn reached(upstream: &Upstream, error: UpstreamError) -> Pong {
    match error {
        UpstreamError::Unreachable { .. }
        | UpstreamError::Unanswered { .. }
        | UpstreamError::BrokeOff { .. }
        | UpstreamError::Timeout { .. } => Pong::Unreachable(error),
        // It knew the question when it was connected to.
        UpstreamError::Status { status, .. }
            if means_other_era(status) && !upstream.life.is_mute() =>
        {
            Pong::Other
        }
        _ => Pong::Alive,
    }
}

/// Waits until the server has been silent for too long after it was `asked`; says how long that is.
///
/// A server that works at one thing at a time answers nothing before it is done, so that it has as long
/// as a call while one is running.
async fn silence(upstream: &Upstream, asked: Instant) -> Duration {
    let (life, limits) = (&upstream.life, &upstream.config.limits);
    let hung = Some(limits.hung).filter(|hung| !hung.is_zero());
    let hung = hung.unwrap_or(limits.handshake);
    loop {
        let (since, limit) = if life.running() > 0 {
            (life.heard(), limits.idle.max(hung))
        } else {
            (life.stirred(), hung)
        };
        let now = Instant::now();
        // One that waits for its client may answer nothing else.
        let calm = upstream.asking.calm().unwrap_or(now);
        let due = since.max(asked).max(calm) + limit;
        if now >= due {
            return limit;
        }
        // Calls may begin and end in between.
        tokio::time::sleep_until(due.min(now + hung)).await;
    }
}

fn hung(upstream: &Upstream, limit: Duration) -> UpstreamError {
    UpstreamError::Closed {
        server: upstream.name().into(),
        reason: format!("hung: it said nothing for {limit:?} after it was asked").into(),
        last_words: std::sync::Arc::default(),
    }
}
