//! Starts a process and completes the handshake.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_base::tasks::spawn;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::{Era, Revision};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::deadline::with_deadline;
use super::handshake_requests::{answer, discover, initialize, ping};
use super::process::Process;
use super::stderr::StderrTail;
use super::streams::Streams;
use super::tasks::{self, ProcessSupervisor};
use super::{Connection, Exchange, Shared, outbox_size};
use crate::config::{Processes, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::error::UpstreamError;
use crate::handshake::{self, Discovered, GRACE, Initialized, Opening};
use crate::handshake_progress::HandshakeProgress;
use crate::liveness::Liveness;
use crate::mailbox::Budget;
use crate::message::{Answer, EVENT_CAPACITY, Event};
use crate::secrets::Secrets;
use crate::server_requests::MAX_UNREAD_REPLIES;
use crate::stdio::in_flight_calls::InFlightCalls;

/// Starts the command of `config` and completes the handshake, unless `stop` is cancelled first.
///
/// If that fails, the process has ended before the error is returned. A process that is started again has `events` of its
/// own: the end of the first one is not its end.
pub(crate) async fn connect(
    config: &UpstreamConfig,
    opening: impl Future<Output = Opening>,
    events: &mut EventChannel,
    stop: &CancellationToken,
) -> Result<(Connection, Handshake), ConnectError> {
    let mut connection = start(config, &events.0)?;
    let chosen = stop.run_until_cancelled(opening).await;
    let opening = chosen.unwrap_or(Opening::Discover);
    let deadline = Instant::now() + config.limits.handshake;
    let mut handshaking = with_deadline(
        deadline,
        &connection,
        stop,
        run_handshake(&connection, opening),
    )
    .await;
    if matches!(handshaking, Ok(HandshakeEnd::Exited)) {
        // Some legacy servers exit if the first message is not `initialize`.
        tracing::debug!(server = %config.name, "server ended at the handshake, started again");
        connection.close().await;
        *events = broadcast::channel(EVENT_CAPACITY);
        connection = start(config, &events.0)?;
        handshaking = match opening {
            Opening::InitializeOrDiscover | Opening::InitializeUnknown => {
                with_deadline(deadline, &connection, stop, discover_instead(&connection)).await
            }
            Opening::Discover | Opening::Initialize => {
                with_deadline(
                    deadline,
                    &connection,
                    stop,
                    initialize_or_discover_instead(&connection),
                )
                .await
            }
        };
    }
    if matches!(handshaking, Ok(HandshakeEnd::TookBoth)) {
        tracing::debug!(server = %config.name, "server may have taken both handshakes, started again");
        connection.close().await;
        *events = broadcast::channel(EVENT_CAPACITY);
        connection = start(config, &events.0)?;
        let deadline = Instant::now() + config.limits.handshake;
        handshaking = with_deadline(deadline, &connection, stop, discover_alone(&connection)).await;
    }
    match handshaking {
        Ok(HandshakeEnd::Ready(handshake)) => Ok((connection, handshake)),
        Ok(HandshakeEnd::Exited | HandshakeEnd::TookBoth) => Err(connection.shared.closed().into()),
        Err(error) => {
            connection.close().await;
            Err(error)
        }
    }
}

/// Finds out the era of the server.
async fn run_handshake(
    connection: &Connection,
    opening: Opening,
) -> Result<HandshakeEnd, ConnectError> {
    let limits = &connection.shared.limits;
    match opening {
        Opening::Discover => discover_or_initialize(connection).await,
        Opening::Initialize => initialize_or_discover_instead(connection).await,
        Opening::InitializeOrDiscover => {
            initialize_or_discover(connection, limits.initialize).await
        }
        // A package runner may still be downloading a legacy server.
        Opening::InitializeUnknown => initialize_or_discover(connection, limits.probe).await,
    }
}

/// Sends `initialize` only: for a process whose predecessor exited after the first request, and for servers that are
/// known to be legacy. A modern server refuses it; its predecessor exited for another reason.
async fn initialize_or_discover_instead(
    connection: &Connection,
) -> Result<HandshakeEnd, ConnectError> {
    match legacy_handshake(connection).await {
        Err(ConnectError::Handshake { .. }) => discover_instead(connection).await,
        handshake => handshake.map(HandshakeEnd::Ready),
    }
}

/// Sends `server/discover` after `initialize` was refused: for a server without sessions.
async fn discover_instead(connection: &Connection) -> Result<HandshakeEnd, ConnectError> {
    let handshaking = discover_or_initialize(connection).await?;
    Ok(match handshaking {
        HandshakeEnd::Ready(handshake) if handshake.era() == Era::Modern => {
            HandshakeEnd::Ready(handshake.refusing_initialize())
        }
        handshaking => handshaking,
    })
}

/// Sends `initialize` first; `server/discover` if that is refused, and in addition if it stays unanswered for `limit`.
async fn initialize_or_discover(
    connection: &Connection,
    limit: Duration,
) -> Result<HandshakeEnd, ConnectError> {
    let revision = Revision::LATEST_LEGACY;
    let exchange = initialize(connection, revision).await?;
    let handshake = match first_answer(connection, exchange, limit).await {
        Ok(FirstAnswer::Initialize(first)) => complete(connection, first, revision).await,
        Ok(FirstAnswer::Discover(handshake)) => Ok(handshake.refusing_initialize()),
        Err(error) => Err(error),
    };
    let end = match handshake {
        Err(ConnectError::Handshake { .. }) => discover_instead(connection).await,
        handshake => handshake.map(HandshakeEnd::Ready),
    };
    match end {
        // Some modern servers exit after they have refused `initialize`.
        Err(ConnectError::Failed(UpstreamError::Closed { .. })) => Ok(HandshakeEnd::Exited),
        end => end,
    }
}

/// The answer that decides the era of a server.
enum FirstAnswer {
    Initialize(Answer),
    /// A modern server that leaves `initialize` unanswered.
    Discover(Handshake),
}

/// The answer to `initialize`, or that to `server/discover`, which is sent in addition after `limit`.
async fn first_answer(
    connection: &Connection,
    mut initializing: Exchange,
    limit: Duration,
) -> Result<FirstAnswer, ConnectError> {
    let mut first = pin!(handshake_answer(&mut initializing));
    if let Ok(first) = tokio::time::timeout(limit, &mut first).await {
        return first.map(FirstAnswer::Initialize);
    }
    tracing::debug!(server = %connection.shared.server, "initialize unanswered, server/discover sent");
    let mut probe = discover(connection).await?;
    let modern = tokio::select! {
        biased;
        first = &mut first => return first.map(FirstAnswer::Initialize),
        modern = modern_answer(connection, &mut probe) => modern?,
    };
    // A process of both eras whose era is that of `initialize` refuses other requests.
    let Some(handshake) = modern else {
        return first.await.map(FirstAnswer::Initialize);
    };
    // A server that starts slowly answers both at once.
    match tokio::time::timeout(GRACE, first).await {
        Ok(first) => first.map(FirstAnswer::Initialize),
        Err(_elapsed) => Ok(FirstAnswer::Discover(handshake)),
    }
}

/// The handshake that answers `probe`; `None` if the answer is that of a legacy server.
async fn modern_answer(
    connection: &Connection,
    probe: &mut Exchange,
) -> Result<Option<Handshake>, ConnectError> {
    let answer = match answer(probe).await {
        Err(UpstreamError::Unreadable { .. }) => return Ok(None),
        answer => answer?,
    };
    match handshake::read_discover(&connection.shared.server, &answer)? {
        Discovered::Modern(handshake) => Ok(Some(handshake)),
        Discovered::Retry(refusal) => discover_again(connection, refusal).await.map(Some),
        Discovered::Legacy(_) => Ok(None),
    }
}

async fn legacy_handshake(connection: &Connection) -> Result<Handshake, ConnectError> {
    let exchange = initialize(connection, Revision::LATEST_LEGACY).await?;
    finish(connection, exchange, Revision::LATEST_LEGACY).await
}

/// Starts the process, or opens the pipe, and the tasks of the connection.
fn start(
    config: &UpstreamConfig,
    events: &broadcast::Sender<Event>,
) -> Result<Connection, ConnectError> {
    let server: Arc<str> = config.name.as_str().into();
    // What an earlier process wrote does not explain why there is none.
    let streams =
        Streams::open(&server, config).inspect_err(|_| config.last_output.lock().stderr.clear())?;
    let (outbox, queue) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        server: Arc::clone(&server),
        limits: config.limits.clone(),
        capabilities: config.capabilities.clone(),
        client_info: config.client_info.clone(),
        is_dedicated: config.is_dedicated,
        is_pooled: config.is_pooled,
        is_shared: config.processes == Processes::One,
        counters: Arc::clone(&config.counters),
        secrets: Secrets::of(&config.target),
        server_requests: Arc::default(),
        next_id: AtomicU64::new(1),
        in_flight: ScopedLock::new(InFlightCalls::default()),
        outbox,
        outbox_permits: Arc::new(Semaphore::new(outbox_size(&config.limits) as usize)),
        budget: Arc::new(Budget::new(config.limits.waiting)),
        events: events.clone(),
        liveness: Liveness::new(),
        skipped_lines: AtomicU64::new(0),
        long_lines: LogBackoff::default(),
        reply_permits: Arc::new(Semaphore::new(MAX_UNREAD_REPLIES)),
        last_skipped_line: ScopedLock::new(String::new()),
        spread_object: ScopedLock::default(),
        progress: HandshakeProgress::default(),
        stderr_tail: StderrTail::default(),
        last_output: Arc::clone(&config.last_output),
        command_line: config.command_line.clone(),
        target: config.target.clone(),
        group: streams.process.as_ref().and_then(Process::group),
    });
    let stop = CancellationToken::new();
    let end_writer = CancellationToken::new();
    let (ended, has_ended) = watch::channel(false);
    spawn(tasks::supervise(ProcessSupervisor {
        process: streams.process,
        shared: Arc::clone(&shared),
        stop: stop.clone(),
        writer: spawn(tasks::write(streams.input, queue, end_writer.clone())),
        reader: spawn(tasks::read(streams.output, Arc::clone(&shared))),
        logger: spawn(tasks::log(streams.stderr, Arc::clone(&shared))),
        end_writer,
        ended,
    }));
    Ok(Connection {
        shared,
        _stop_when_dropped: stop.clone().drop_guard(),
        stop,
        ended: has_ended,
    })
}

/// Where a process sends its events, and what receives them from its start.
type EventChannel = (broadcast::Sender<Event>, broadcast::Receiver<Event>);

/// How long to wait whether a process that has answered `server/discover` answers `initialize`, too.
const BOTH: Duration = Duration::from_secs(1);

enum HandshakeEnd {
    Ready(Handshake),
    Exited,
    /// A slow process answered `server/discover`, and then also `initialize`, which has given it sessions if it has both
    /// eras, or has not refused it yet.
    TookBoth,
}

/// Sends `server/discover` first; `initialize` if the answer shows a legacy server, or if there is none.
async fn discover_or_initialize(connection: &Connection) -> Result<HandshakeEnd, ConnectError> {
    let mut probe = discover(connection).await?;
    let limit = connection.shared.limits.probe;
    let revision = match tokio::time::timeout(limit, answer(&mut probe)).await {
        Ok(Ok(answer)) => match handshake::read_discover(&connection.shared.server, &answer)? {
            Discovered::Modern(handshake) => return Ok(HandshakeEnd::Ready(handshake)),
            Discovered::Retry(refusal) => {
                let handshake = discover_again(connection, refusal).await;
                return handshake.map(HandshakeEnd::Ready);
            }
            Discovered::Legacy(revision) => revision,
        },
        Ok(Err(UpstreamError::Closed { .. })) => return Ok(HandshakeEnd::Exited),
        // > Anything else identifies a legacy server. (MCP 2026-07-28, basic/versioning)
        Ok(Err(UpstreamError::Unreadable { .. })) => Revision::LATEST_LEGACY,
        Ok(Err(error)) => return Err(error.into()),
        Err(_elapsed) => return race(connection, probe).await,
    };
    let exchange = initialize(connection, revision).await?;
    let handshake = match finish(connection, exchange, revision).await {
        // The process was not ready for the first request, which it answered with an error.
        Err(refusal @ ConnectError::Handshake { .. }) => discover_again(connection, refusal).await,
        handshake => handshake,
    };
    handshake.map(HandshakeEnd::Ready)
}

/// Sends `initialize` while the probe is still unanswered. A package runner may still be downloading a modern server,
/// so the first usable answer counts.
async fn race(connection: &Connection, mut probe: Exchange) -> Result<HandshakeEnd, ConnectError> {
    tracing::debug!(server = %connection.shared.server, "server/discover unanswered, initialize sent");
    let revision = Revision::LATEST_LEGACY;
    let mut exchange = initialize(connection, revision).await?;
    let first = tokio::select! {
        biased;
        modern = modern_answer(connection, &mut probe) => match modern {
            Ok(Some(handshake)) => {
                let other = tokio::time::timeout(BOTH, handshake_answer(&mut exchange)).await;
                let took_both = match other {
                    Ok(answer) => answer.is_ok_and(|answer| answer.outcome().is_ok()),
                    // It may be so slow that it takes `initialize` later, and changes its era under its clients.
                    Err(_elapsed) => true,
                };
                return Ok(if took_both { HandshakeEnd::TookBoth } else { HandshakeEnd::Ready(handshake) });
            }
            Ok(None) => handshake_answer(&mut exchange).await?,
            Err(ConnectError::Failed(UpstreamError::Closed { .. })) => return Ok(HandshakeEnd::Exited),
            Err(error) => return Err(error),
        },
        first = handshake_answer(&mut exchange) => first?,
    };
    let is_modern = first.outcome().is_err_and(handshake::is_modern_error);
    let refusal = match complete(connection, first, revision).await {
        Err(refusal @ ConnectError::Handshake { .. }) => refusal,
        handshake => return handshake.map(HandshakeEnd::Ready),
    };
    if probe.is_finished {
        let handshake = discover_again(connection, refusal).await;
        return handshake.map(HandshakeEnd::Ready);
    }
    let limits = &connection.shared.limits;
    let limit = if is_modern {
        limits.handshake
    } else {
        limits.ready_timeout
    };
    let late = late_discover(connection, probe, refusal.clone());
    let late = tokio::time::timeout(limit, late).await;
    late.unwrap_or(Err(refusal))
}

/// Waits for the answer to `probe` after `initialize` was refused: a process of both eras has the era of its first
/// request, and may need longer to answer that than to refuse another.
async fn late_discover(
    connection: &Connection,
    mut probe: Exchange,
    refusal: ConnectError,
) -> Result<HandshakeEnd, ConnectError> {
    let handshake = match modern_answer(connection, &mut probe).await {
        Ok(Some(handshake)) => Ok(handshake),
        Ok(None) => discover_again(connection, refusal).await,
        Err(ConnectError::Failed(UpstreamError::Closed { .. })) => return Ok(HandshakeEnd::Exited),
        Err(error) => Err(error),
    };
    handshake.map(HandshakeEnd::Ready)
}

/// Sends nothing but `server/discover`, to a process whose predecessor answered it.
async fn discover_alone(connection: &Connection) -> Result<HandshakeEnd, ConnectError> {
    let mut probe = discover(connection).await?;
    match modern_answer(connection, &mut probe).await {
        Ok(Some(handshake)) => Ok(HandshakeEnd::Ready(handshake)),
        Ok(None) => Err(ConnectError::unusable(
            &connection.shared.server,
            "it answered `server/discover`, and refused it when started again",
        )),
        Err(ConnectError::Failed(UpstreamError::Closed { .. })) => Ok(HandshakeEnd::Exited),
        Err(error) => Err(error),
    }
}

async fn discover_again(
    connection: &Connection,
    refusal: ConnectError,
) -> Result<Handshake, ConnectError> {
    let mut probe = discover(connection).await?;
    match handshake::read_discover(&connection.shared.server, &answer(&mut probe).await?)? {
        Discovered::Modern(handshake) => Ok(handshake),
        Discovered::Retry(_) | Discovered::Legacy(_) => Err(refusal),
    }
}

async fn handshake_answer(exchange: &mut Exchange) -> Result<Answer, ConnectError> {
    Ok(answer(exchange).await?)
}

async fn finish(
    connection: &Connection,
    mut exchange: Exchange,
    requested: Revision,
) -> Result<Handshake, ConnectError> {
    complete(connection, answer(&mut exchange).await?, requested).await
}

/// Reads the answer to `initialize`, repeats the request if the server wants another revision, and completes the
/// handshake.
async fn complete(
    connection: &Connection,
    first: Answer,
    requested: Revision,
) -> Result<Handshake, ConnectError> {
    let server = &connection.shared.server;
    let handshake = match handshake::read_initialize(server, requested, &first)? {
        Initialized::Ready(handshake) => handshake,
        Initialized::Retry(revision) => {
            let mut exchange = initialize(connection, revision).await?;
            let second = answer(&mut exchange).await?;
            match handshake::read_initialize(server, revision, &second)? {
                Initialized::Ready(handshake) => handshake,
                Initialized::Retry(other) => {
                    return Err(ConnectError::Revision {
                        server: Arc::clone(server),
                        theirs: format!("{other} only when asked for another"),
                    });
                }
            }
        }
    };
    connection.notify("notifications/initialized", None).await?;
    ping(connection).await?;
    Ok(handshake)
}
