//! The memory of idle sessions.

use std::io;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::load::Connection;
use crate::machine::Usage;
use crate::report::Memory;
use crate::rows::SESSIONS;
use crate::subject::{Programs, Running, Subject};
use crate::upstream_spec::UpstreamSpec;

/// The number of open streams: the gateway's limit, less a few for other clients.
const STREAMS: usize = 1000;

/// Opens sessions over a few connections, which are closed afterwards.
pub(crate) async fn open(place: &Endpoint, count: usize) -> io::Result<()> {
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(Connection::open(place.address).await?);
    }
    for round in 0..count {
        let index = round % connections.len();
        connections[index].initialize(place).await?;
    }
    Ok(())
}

/// Measures Vary, and the peer if it is there.
pub(crate) async fn measure(programs: &Programs) -> io::Result<Vec<Memory>> {
    let mut memories = vec![of(programs, Subject::Vary).await?];
    if programs.mcp_proxy.is_some() {
        memories.push(of(programs, Subject::McpProxy).await?);
    }
    Ok(memories)
}

async fn of(programs: &Programs, subject: Subject) -> io::Result<Memory> {
    let upstream = programs.upstream(UpstreamSpec::ONE)?;
    let running = programs.proxy(subject, &upstream)?;
    // Memory that is allocated once, for the first clients, is not a cost of a session.
    open(&running.endpoint, 100).await?;
    let none = settled(&running).await?;
    open(&running.endpoint, SESSIONS).await?;
    let idle = settled(&running).await?;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = Connection::open(running.endpoint.address).await?;
        stream.initialize(&running.endpoint).await?;
        stream.listen(&running.endpoint).await?;
        streams.push(stream);
    }
    let listening = settled(&running).await?;
    Ok(Memory {
        subject,
        sessions: SESSIONS,
        none,
        idle,
        streams: STREAMS,
        listening,
    })
}

/// The resident bytes after a delay, in which the process also drops closed connections.
async fn settled(running: &Running) -> io::Result<u64> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(Usage::of(running.process())?.resident)
}
