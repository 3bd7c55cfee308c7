//! The latency of a call that another replica has to answer, through the store that both share.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::load::{Connection, call_body, post};
use crate::machine::Usage;
use crate::report::Forwarding;
use crate::sections::Section;
use crate::subject::{Programs, Running, Subject};
use crate::upstream::tools;
use crate::upstream_spec::UpstreamSpec;

/// Calls after which it is the other replica's turn.
const TURN: usize = 5;

/// The bytes of a large result.
const LARGE: usize = 1 << 20;

/// Sends `calls` calls of one session to the replica that has it, and as many to another one, in turn; then one with a
/// large result to each.
pub(crate) async fn measure(programs: &Programs, calls: usize) -> io::Result<Forwarding> {
    let spec = UpstreamSpec {
        section: Some(Section::Store),
        ..UpstreamSpec::ONE
    };
    let upstream = programs.upstream(spec)?;
    let store = upstream.beside_at()?;
    let start = || programs.proxy(Subject::Vary, &upstream);
    let [owner, other] = [start()?, start()?];
    let mut direct = Connection::open(owner.endpoint.address).await?;
    // A server can ask this client, so the session has a connection of its own, at this replica.
    direct.initialize_with(&owner.endpoint, &[], true).await?;
    let session = direct.session().to_owned();
    let mut through = Connection::open(other.endpoint.address).await?;
    let mut forwarding = Forwarding::default();
    let before = stored(store)?;
    let cpu =
        || Ok::<_, io::Error>(Usage::of(owner.process())?.cpu + Usage::of(other.process())?.cpu);
    let mut spent = [0; 2];
    for _ in 0..calls.div_ceil(TURN) {
        let begin = cpu()?;
        for _ in 0..TURN {
            let (took, _) = call(&mut direct, &owner, &session, 0).await?;
            forwarding.direct.push(took);
        }
        let middle = cpu()?;
        for _ in 0..TURN {
            let (took, _) = call(&mut through, &other, &session, 0).await?;
            forwarding.through.push(took);
        }
        spent[0] += middle - begin;
        spent[1] += cpu()? - middle;
    }
    forwarding.cpu = spent.map(Duration::from_nanos);
    let (took, whole) = call(&mut direct, &owner, &session, LARGE).await?;
    forwarding.large[0] = took;
    let (took, forwarded) = call(&mut through, &other, &session, LARGE).await?;
    forwarding.large[1] = took;
    if forwarded != whole || whole.len() < LARGE {
        return Err(io::Error::other("the forwarded result is another one"));
    }
    forwarding.stored = stored(store)?.saturating_sub(before);
    Ok(forwarding)
}

/// Calls the tool for a result of `size` bytes beside its text, and returns the time and the message.
async fn call(
    connection: &mut Connection,
    replica: &Running,
    session: &str,
    size: usize,
) -> io::Result<(Duration, Vec<u8>)> {
    let body = call_body(tools::ECHO, &format!(r#"{{"text":"x","size":{size}}}"#));
    let request = post(&replica.endpoint, session, &body);
    let began = Instant::now();
    let response = connection.exchange(&request).await?;
    let took = began.elapsed();
    let message = message(response.body);
    let begin = String::from_utf8_lossy(&message[..message.len().min(200)]);
    if response.status != 200 || !begin.contains(r#""result""#) {
        let status = response.status;
        return Err(io::Error::other(format!(
            "the call is answered with {status}: {begin}"
        )));
    }
    Ok((took, message.to_vec()))
}

/// The message of an answer, which is JSON or an event.
fn message(body: &[u8]) -> &[u8] {
    let mut lines = body.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data: "));
    data.unwrap_or(body)
}

/// The bytes that the store has in use.
fn stored(store: SocketAddr) -> io::Result<u64> {
    let mut socket = TcpStream::connect(store)?;
    socket.write_all(b"INFO memory\r\nQUIT\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let used = answer
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    let used = used.and_then(|used| used.trim().parse().ok());
    used.ok_or_else(|| io::Error::other("the store does not say how much it has"))
}
