//! From a command to a connection that is ready.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_wire::handshake::Hello;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::Process;
use super::tasks::{self, LastWords, Watch};
use super::{Connection, Exchange, Shared, room};
use crate::config::{Target, UpstreamConfig};
use crate::error::{ConnectError, UpstreamError};
use crate::handshake::{self, Discovered, GRACE, Initialized, Opening};
use crate::liveness::Liveness;
use crate::mailbox::Budget;
use crate::message::{Answer, Event, Message, Request, RequestKind};
use crate::secrets::Secrets;
use crate::server_requests::MAX_UNREAD_REPLIES;
use crate::stdio::in_flight_calls::Flights;

/// Starts the command of `config` and makes the acquaintance of the server, unless `stop` comes first.
///
/// When that fails the process is gone before the error is told.
pub(crate) async fn connect(
    config: &UpstreamConfig,
    opening: Opening,
    events: &broadcast::Sender<Event>,
    stop: &CancellationToken,
) -> Result<(Connection, Hello), ConnectError> {
    let deadline = Instant::now() + config.limits.handshake;
    let mut connection = start(config, events)?;
    let mut greeting = within(deadline, &connection, stop, greet(&connection, opening)).await;
    if matches!(greeting, Ok(Greeting::Died)) {
        // Some legacy servers end when anything but `initialize` comes first.
        tracing::debug!(server = %config.name, "server ended at the handshake, started again");
        connection.close().await;
        connection = start(config, events)?;
        greeting = match opening {
            Opening::InitializeOrDiscover => {
                within(deadline, &connection, stop, discover_instead(&connection)).await
            }
            Opening::Discover | Opening::Initialize => {
                within(deadline, &connection, stop, greet_anew(&connection)).await
            }
        };
    }
    match greeting {
        Ok(Greeting::Hello(hello)) => Ok((connection, hello)),
        Ok(Greeting::Died) => Err(connection.shared.closed().into()),
        Err(error) => {
            connection.close().await;
            Err(error)
        }
    }
}

async fn within<T>(
    deadline: Instant,
    connection: &Connection,
    stop: &CancellationToken,
    greeting: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let greeting = stop.run_until_cancelled(greeting);
    let shared = &connection.shared;
    match tokio::time::timeout_at(deadline, greeting).await {
        Ok(Some(result)) => result,
        Ok(None) => Err(UpstreamError::closed_by_gateway(&shared.server).into()),
        Err(_elapsed) => Err(ConnectError::Timeout {
            server: Arc::clone(&shared.server),
            limit: shared.limits.handshake,
            observed: shared.said(),
        }),
    }
}

/// Finds out the era.
async fn greet(connection: &Connection, opening: Opening) -> Result<Greeting, ConnectError> {
    match opening {
        Opening::Discover => discover_or_initialize(connection).await,
        Opening::Initialize => greet_anew(connection).await,
        Opening::InitializeOrDiscover => match initialize_or_discover(connection).await {
            Err(ConnectError::Failed(UpstreamError::Closed { .. })) => Ok(Greeting::Died),
            greeting => greeting,
        },
    }
}

/// `initialize` first: for a process whose predecessor ended at the first question, and for servers without another
/// era. A modern server refuses that, and had another reason to end.
async fn greet_anew(connection: &Connection) -> Result<Greeting, ConnectError> {
    match legacy(connection).await {
        Err(ConnectError::Handshake { .. }) => discover_instead(connection).await,
        hello => hello.map(Greeting::Hello),
    }
}

/// `server/discover` after `initialize` was refused: for a server without sessions.
async fn discover_instead(connection: &Connection) -> Result<Greeting, ConnectError> {
    let greeting = discover_or_initialize(connection).await?;
    Ok(match greeting {
        Greeting::Hello(hello) if hello.era() == Era::Modern => {
            Greeting::Hello(hello.refusing_initialize())
        }
        greeting => greeting,
    })
}

/// `initialize` first; `server/discover` when it is refused, and beside it when it stays unanswered for a while.
async fn initialize_or_discover(connection: &Connection) -> Result<Greeting, ConnectError> {
    let revision = Revision::LATEST_LEGACY;
    let mut exchange = initialize(connection, revision).await?;
    let limit = connection.shared.limits.initialize;
    let first = match tokio::time::timeout(limit, peek(&mut exchange)).await {
        Ok(first) => first?,
        Err(_elapsed) => {
            tracing::debug!(server = %connection.shared.server, "initialize unanswered, server/discover sent");
            let mut probe = discover(connection).await?;
            tokio::select! {
                biased;
                first = peek(&mut exchange) => first?,
                discovered = answer(&mut probe) => {
                    // A server that was slow to start answers both at once.
                    match tokio::time::timeout(GRACE, peek(&mut exchange)).await {
                        Ok(first) => first?,
                        Err(_elapsed) => return read_discovered(connection, &discovered?).await,
                    }
                }
            }
        }
    };
    match complete(connection, first, revision).await {
        Err(ConnectError::Handshake { .. }) => discover_instead(connection).await,
        hello => hello.map(Greeting::Hello),
    }
}

/// The greeting of a server that answered `server/discover` and not `initialize`.
async fn read_discovered(
    connection: &Connection,
    discovered: &Answer,
) -> Result<Greeting, ConnectError> {
    let server = &connection.shared.server;
    let hello = match handshake::read_discover(server, discovered)? {
        Discovered::Modern(hello) => hello,
        Discovered::Again(refusal) => match discover_again(connection, refusal).await? {
            Greeting::Hello(hello) => hello,
            Greeting::Died => return Ok(Greeting::Died),
        },
        Discovered::Legacy(_) => {
            return Err(ConnectError::Handshake {
                server: Arc::clone(server),
                what: "it left `initialize` unanswered".to_owned(),
            });
        }
    };
    Ok(Greeting::Hello(hello.refusing_initialize()))
}

async fn legacy(connection: &Connection) -> Result<Hello, ConnectError> {
    let exchange = initialize(connection, Revision::LATEST_LEGACY).await?;
    finish(connection, exchange, Revision::LATEST_LEGACY).await
}

/// Starts the process and its tasks.
fn start(
    config: &UpstreamConfig,
    events: &broadcast::Sender<Event>,
) -> Result<Connection, ConnectError> {
    let server: Arc<str> = config.name.as_str().into();
    let mut process = spawn(&server, &config.target, config.chain.variable())?;
    let (outbox, queue) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        server: Arc::clone(&server),
        limits: config.limits.clone(),
        capabilities: config.capabilities.clone(),
        is_held: config.is_dedicated,
        by_turns: config.is_pooled,
        counters: Arc::clone(&config.counters),
        secrets: Secrets::of(&config.target),
        asking: Arc::default(),
        next_id: AtomicU64::new(1),
        flights: Mutex::new(Flights::default()),
        outbox,
        room: Arc::new(Semaphore::new(room(&config.limits) as usize)),
        budget: Arc::new(Budget::new(config.limits.waiting)),
        events: events.clone(),
        life: Liveness::new(),
        strays: AtomicU64::new(0),
        long_lines: LogBackoff::default(),
        unread: Arc::new(Semaphore::new(MAX_UNREAD_REPLIES)),
        last_stray: Mutex::new(String::new()),
        stderr_tail: LastWords::default(),
    });
    let streams = (
        process.child.stdin().take(),
        process.child.stdout().take(),
        process.child.stderr().take(),
    );
    let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
        let reason = "its standard streams are not there".into();
        let stderr_tail = Arc::default();
        let closed = UpstreamError::Closed {
            server,
            reason,
            stderr_tail,
        };
        return Err(closed.into());
    };
    let (stop, end_writer) = (CancellationToken::new(), CancellationToken::new());
    let (ended, has_ended) = watch::channel(false);
    tokio::spawn(tasks::supervise(Watch {
        process,
        shared: Arc::clone(&shared),
        stop: stop.clone(),
        writer: tokio::spawn(tasks::write(stdin, queue, end_writer.clone())),
        reader: tokio::spawn(tasks::read(stdout, Arc::clone(&shared))),
        logger: tokio::spawn(tasks::log(stderr, Arc::clone(&shared))),
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

fn spawn(
    server: &Arc<str>,
    target: &Target,
    gateways: Option<&str>,
) -> Result<Process, ConnectError> {
    match target {
        Target::Command {
            program,
            args,
            env,
            cwd,
        } => Process::start(server, program, args, env, cwd.as_deref(), gateways),
        Target::Http { .. } => Err(ConnectError::Handshake {
            server: Arc::clone(server),
            what: "it has an address, not a command".to_owned(),
        }),
    }
}

enum Greeting {
    Hello(Hello),
    Died,
}

/// `server/discover` first, `initialize` when that says so or stays unanswered.
async fn discover_or_initialize(connection: &Connection) -> Result<Greeting, ConnectError> {
    let mut probe = discover(connection).await?;
    let limit = connection.shared.limits.probe;
    let revision = match tokio::time::timeout(limit, answer(&mut probe)).await {
        Ok(Ok(answer)) => match handshake::read_discover(&connection.shared.server, &answer)? {
            Discovered::Modern(hello) => return Ok(Greeting::Hello(hello)),
            Discovered::Again(refusal) => return discover_again(connection, refusal).await,
            Discovered::Legacy(revision) => revision,
        },
        Ok(Err(UpstreamError::Closed { .. })) => return Ok(Greeting::Died),
        Ok(Err(error)) => return Err(error.into()),
        Err(_elapsed) => return race(connection, probe).await,
    };
    let exchange = initialize(connection, revision).await?;
    finish(connection, exchange, revision)
        .await
        .map(Greeting::Hello)
}

/// `initialize` beside a probe that is still unanswered: a package runner may still be downloading
/// a modern server, so that the first answer that fits counts.
async fn race(connection: &Connection, mut probe: Exchange) -> Result<Greeting, ConnectError> {
    let server = &connection.shared.server;
    tracing::debug!(server = %server, "server/discover unanswered, initialize sent");
    let revision = Revision::LATEST_LEGACY;
    let mut exchange = initialize(connection, revision).await?;
    loop {
        tokio::select! {
            biased;
            discovered = answer(&mut probe), if !probe.is_over => match discovered {
                Ok(answer) => match handshake::read_discover(server, &answer)? {
                    Discovered::Modern(hello) => return Ok(Greeting::Hello(hello)),
                    Discovered::Again(refusal) => return discover_again(connection, refusal).await,
                    Discovered::Legacy(_) => {}
                },
                Err(UpstreamError::Closed { .. }) => return Ok(Greeting::Died),
                Err(error) => return Err(error.into()),
            },
            ready = peek(&mut exchange) => {
                return complete(connection, ready?, revision).await.map(Greeting::Hello);
            }
        }
    }
}

async fn discover(connection: &Connection) -> Result<Exchange, ConnectError> {
    let params = handshake::modern_params(&connection.shared.capabilities, &[]);
    let request = Request::new("server/discover", Some(params));
    Ok(connection.request(request, RequestKind::Handshake).await?)
}

async fn discover_again(
    connection: &Connection,
    refusal: ConnectError,
) -> Result<Greeting, ConnectError> {
    let mut probe = discover(connection).await?;
    match handshake::read_discover(&connection.shared.server, &answer(&mut probe).await?)? {
        Discovered::Modern(hello) => Ok(Greeting::Hello(hello)),
        Discovered::Again(_) | Discovered::Legacy(_) => Err(refusal),
    }
}

async fn peek(exchange: &mut Exchange) -> Result<Answer, ConnectError> {
    Ok(answer(exchange).await?)
}

async fn initialize(connection: &Connection, revision: Revision) -> Result<Exchange, ConnectError> {
    let params = handshake::initialize_params(revision, &connection.shared.capabilities);
    let request = Request::new("initialize", Some(params));
    Ok(connection.request(request, RequestKind::Handshake).await?)
}

async fn finish(
    connection: &Connection,
    mut exchange: Exchange,
    asked: Revision,
) -> Result<Hello, ConnectError> {
    let answer = answer(&mut exchange).await?;
    complete(connection, answer, asked).await
}

/// Reads the answer to `initialize`, asks once more if it wants another revision, and completes the handshake.
async fn complete(
    connection: &Connection,
    first: Answer,
    asked: Revision,
) -> Result<Hello, ConnectError> {
    let server = &connection.shared.server;
    let hello = match handshake::read_initialize(server, asked, &first)? {
        Initialized::Ready(hello) => hello,
        Initialized::Again(revision) => {
            let mut exchange = initialize(connection, revision).await?;
            let second = answer(&mut exchange).await?;
            match handshake::read_initialize(server, revision, &second)? {
                Initialized::Ready(hello) => hello,
                Initialized::Again(other) => {
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
    Ok(hello)
}

/// Servers register tools right after `notifications/initialized`; once they answer again, they have.
async fn ping(connection: &Connection) -> Result<(), ConnectError> {
    let request = Request::new("ping", None);
    let mut exchange = connection.request(request, RequestKind::Handshake).await?;
    let limit = connection.shared.limits.probe;
    match tokio::time::timeout(limit, answer(&mut exchange)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_elapsed) => {
            tracing::warn!(server = %connection.shared.server, "ping after initialize unanswered");
            connection.life().set_ignores_ping();
        }
    }
    Ok(())
}

async fn answer(exchange: &mut Exchange) -> Result<Answer, UpstreamError> {
    loop {
        if let Message::Answer(answer) = exchange.next().await? {
            return Ok(answer);
        }
    }
}
