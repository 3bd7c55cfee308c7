//! A gateway that serves on a port.

pub(crate) mod chain;
pub(crate) mod server_summary;
pub(crate) mod start_report;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream as StdTcpStream, ToSocketAddrs as _};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use mcp_vary_auth::address::EndpointPath;
use mcp_vary_base::io_error;
use mcp_vary_base::tasks::spawn;
use mcp_vary_gateway::{Config, Gateway, ServerReport};
use mcp_vary_upstream::ConnectionState;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::print::servers::{first_names, plural};
use crate::print::{Progress, notice, progress, sanitize};
use crate::stop::Stop;

/// A gateway and the task that serves its clients.
#[derive(Debug)]
pub(crate) struct Serving {
    gateway: Arc<Gateway>,
    address: SocketAddr,
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Connects to the servers, then serves on `listener`. A signal ends the wait.
    pub(crate) async fn start(
        config: Config,
        listener: TcpListener,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        let serving = Self::begin(config, listener).await?;
        wait(serving.gateway(), stop, |_| false).await?;
        Ok(serving)
    }

    /// Starts to connect to the servers and to serve on `listener`. Until then clients wait as long as the configuration
    /// allows.
    pub(crate) async fn begin(config: Config, listener: TcpListener) -> Result<Self, Failure> {
        let address = listener
            .local_addr()
            .map_err(|error| Failure::command(error.to_string()))?;
        let url = endpoint_url(&config, address);
        let gateway = Gateway::open(config).await;
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&gateway);
        let task = spawn(async move {
            let until = async move { drop(stopped.await) };
            serving.serve_http(listener, until).await
        });
        Ok(Self {
            gateway,
            address,
            url,
            stop,
            task,
        })
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The URL that clients connect to.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// The address that it listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more clients, lets requests in flight finish, and stops the servers.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let served = self.task.await;
        self.gateway.close().await;
        match served {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::command(error.to_string())),
            Err(error) => Err(Failure::command(format!("serving ended: {error}"))),
        }
    }
}

/// The URL of the endpoint: under the public URL if there is one.
pub(crate) fn endpoint_url(config: &Config, address: SocketAddr) -> String {
    let scheme = match config.listener.tls {
        Some(_) => "https",
        None => "http",
    };
    match &config.listener.public_url {
        Some(public) => public.resource(&EndpointPath::Base),
        None => format!("{scheme}://{address}/mcp"),
    }
}

/// Waits until every server is connected or has failed, or until `is_enough`, which is called whenever another server
/// becomes ready. Shows which servers it waits for, and for how long. A signal ends the wait in order, a second one at
/// once.
pub(crate) async fn wait(
    gateway: &Gateway,
    stop: &mut Stop,
    mut is_enough: impl FnMut(&Gateway) -> bool,
) -> Result<(), Failure> {
    let line = Progress::show(&waiting_line(gateway));
    let mut pause = if line.is_shown() { TICK } else { SILENT_WAIT };
    let connected = gateway.connected_until(|gateway| {
        line.replace(&waiting_line(gateway));
        is_enough(gateway)
    });
    let mut connected = pin!(connected);
    loop {
        tokio::select! {
            connected = &mut connected => {
                return connected.map_err(|(first, others)| {
                    let all: Vec<_> = std::iter::once(first).chain(others).collect();
                    Failure::servers_down(&all)
                });
            }
            () = stop.requested() => break,
            () = tokio::time::sleep(pause) => {}
        }
        let shown = sanitize(&waiting_line(gateway));
        if line.is_shown() {
            line.replace(&shown);
        } else {
            progress(&shown);
            pause = REMINDER;
        }
    }
    let why = interruption(gateway);
    notice("ending the servers that are starting; Ctrl-C again ends at once");
    tokio::select! {
        () = gateway.close() => {}
        () = stop.requested() => {}
    }
    Err(Failure::command(why))
}

/// How long this process has waited for its servers.
pub(crate) fn waited() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}

/// The servers that are starting, for how long, and the last line that one of them wrote.
pub(crate) fn waiting_line(gateway: &Gateway) -> String {
    let elapsed = waited();
    let (ready, starting) = names_by_state(gateway);
    let mut text = waiting_text(ready.len(), &starting);
    if elapsed >= TICK {
        text.push_str(&format!(" {} s", elapsed.as_secs()));
    }
    let servers = gateway.servers();
    let reports = servers.iter();
    let mut lines = reports.filter_map(|server| Some((&server.name, server.last_line.as_ref()?)));
    if let Some((name, line)) = lines.next() {
        let reasons = match starting.len() {
            1 => "its last line".to_owned(),
            _ => format!("last line of `{name}`"),
        };
        text.push_str(&format!("; {reasons}: {line}"));
    }
    let is_silent = |server: &&ServerReport| {
        matches!(server.state, ConnectionState::Connecting) && server.last_line.is_none()
    };
    let silent: Vec<_> = servers.iter().filter(is_silent).collect();
    text.push_str(&silence(&silent, elapsed));
    text
}

/// What is said after some time of the servers that have written nothing.
fn silence(silent: &[&ServerReport], elapsed: Duration) -> String {
    let mut text = String::new();
    let runner = silent.iter().find_map(|server| server.runner.as_ref());
    let is_new = (SILENT_WAIT..SILENT_WAIT + REMINDER).contains(&elapsed);
    if is_new && let Some(runner) = runner {
        text.push_str(&format!(
            "; `{runner}` downloads what is not on this machine yet"
        ));
    }
    if elapsed < SILENT_WAIT + REMINDER {
        return text;
    }
    let quoted = |is_meant: fn(&ServerReport) -> bool| -> Vec<String> {
        let servers = silent.iter().filter(|server| is_meant(server));
        servers.map(|server| format!("`{}`", server.name)).collect()
    };
    for (names, advice) in [
        (
            quoted(|server| !server.is_remote && !is_by_npx(server)),
            "start it in a terminal to see why",
        ),
        (
            quoted(is_by_npx),
            "can npm's registry be reached? (npm ping)",
        ),
        (
            quoted(|server| server.is_remote),
            "does an MCP server listen at its URL?",
        ),
    ] {
        if !names.is_empty() {
            let names = first_names(&names);
            text.push_str(&format!("; nothing so far from {names}: {advice}"));
        }
    }
    text
}

fn is_by_npx(server: &ServerReport) -> bool {
    server.runner.as_deref() == Some("npx")
}

/// The servers that are starting; once there are none, the lists of those that are ready.
fn waiting_text(ready: usize, starting: &[String]) -> String {
    let awaited = match starting {
        [] => "the lists of tools".to_owned(),
        starting => starting.join(", "),
    };
    match ready {
        0 => format!("waiting for {awaited} ..."),
        ready => format!(
            "{} ready, waiting for {awaited} ...",
            plural(ready, "server")
        ),
    }
}

fn interruption(gateway: &Gateway) -> String {
    let (ready, starting) = names_by_state(gateway);
    interrupted_before(&starting, &ready)
}

/// What a user interrupted who did not want to wait longer for the servers that are `starting`.
pub(crate) fn interrupted_before(starting: &[String], ready: &[String]) -> String {
    if starting.is_empty() {
        return "interrupted".to_owned();
    }
    format!("interrupted before {}", were(starting, "ready", ready))
}

/// A sentence about the servers that are `starting`, with those that are `ready` at its end.
pub(crate) fn were(starting: &[String], state: &str, ready: &[String]) -> String {
    let was = if starting.len() == 1 { "was" } else { "were" };
    let mut sentence = format!("{} {was} {state}", first_names(starting));
    if !ready.is_empty() {
        sentence.push_str(&format!("; ready: {}", first_names(ready)));
    }
    sentence
}

/// The servers that are up, and those that are still being connected to.
pub(crate) fn names_by_state(gateway: &Gateway) -> (Vec<String>, Vec<String>) {
    let mut ready = Vec::new();
    let mut starting = Vec::new();
    for server in gateway.servers() {
        let name = format!("`{}`", server.name);
        match server.state {
            ConnectionState::Connected(_) => ready.push(name),
            ConnectionState::Connecting => starting.push(name),
            _ => {}
        }
    }
    (ready, starting)
}

/// A listener on the loopback `address`: `HOST:PORT`, or `PORT` on 127.0.0.1, as `flag` says.
///
/// # Errors
///
/// When the port is taken, the address cannot be read or others could reach it.
pub(crate) async fn listen(address: &str, flag: &str) -> Result<TcpListener, Failure> {
    listen_if(address, flag, only_loopback).await
}

/// A listener on any `address`, of other machines too.
///
/// # Errors
///
/// When the address cannot be listened on.
pub(crate) async fn listen_anywhere(address: &str, flag: &str) -> Result<TcpListener, Failure> {
    listen_if(address, flag, |_| Ok(())).await
}

/// A listener on `address`, which others may reach if `config` protects the gateway.
///
/// # Errors
///
/// As those of [`listen`].
pub(crate) async fn listen_as_configured(
    address: &str,
    flag: &str,
    config: &Config,
) -> Result<TcpListener, Failure> {
    let allows = |address| {
        let checked = config.check_listen_address(address);
        checked.map_err(|error| error.to_string())
    };
    listen_if(address, flag, allows).await
}

async fn listen_if(
    address: &str,
    flag: &str,
    allows: impl Fn(SocketAddr) -> Result<(), String>,
) -> Result<TcpListener, Failure> {
    let address = match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address.to_owned(),
    };
    let listener = TcpListener::bind(&address)
        .await
        .map_err(|error| cannot_listen(&address, flag, &error))?;
    let local = listener
        .local_addr()
        .map_err(|error| cannot_listen(&address, flag, &error))?;
    allows(local).map_err(Failure::command)?;
    Ok(listener)
}

/// A listener that the service manager has opened. The gateway refuses one that others may reach and `config` does not protect.
pub(crate) fn passed(listener: TcpListener, config: &Config) -> Result<TcpListener, Failure> {
    let address = listener.local_addr();
    let local = address.map_err(|error| Failure::command(error.to_string()))?;
    let allowed = config.check_listen_address(local);
    allowed.map_err(|error| Failure::command(error.to_string()))?;
    Ok(listener)
}

/// Accepts addresses of this machine alone.
pub(crate) fn only_loopback(address: SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "{address} can be reached from other machines, and this is for the programs of this one; listen on a loopback \
         address such as 127.0.0.1:{}",
        address.port()
    ))
}

/// Why Vary cannot listen on `address`, as far as can be known without trying; `allows` has the configuration's reasons.
pub(crate) fn listen_problem(
    address: &str,
    allows: impl Fn(SocketAddr) -> Result<(), String>,
) -> Option<String> {
    if address.parse::<u16>().is_ok() {
        return None;
    }
    match address.to_socket_addrs() {
        Ok(mut addresses) => addresses.find_map(|address| allows(address).err()),
        Err(error) => Some(format!(
            "{address} cannot be listened on: {}",
            io_error::describe(&error)
        )),
    }
}

fn cannot_listen(address: &str, flag: &str, error: &io::Error) -> Failure {
    Failure::command(match error.kind() {
        io::ErrorKind::AddrInUse if answers(address, "/", "<title>Vary</title>") => {
            format!("{address} is in use by the status of another Vary; choose another with {flag}")
        }
        io::ErrorKind::AddrInUse if answers(address, "/", "the MCP endpoint is /mcp") => format!(
            "{address} is in use by another Vary, at http://{address}/mcp: `vary status {address}` shows what it serves, and `vary \
             drain {address}` ends it, if it is yours; or choose another with {flag}"
        ),
        io::ErrorKind::AddrInUse => {
            format!(
                "{address} is in use by another program, or twice in this command; choose another: {flag} 127.0.0.1:8810"
            )
        }
        io::ErrorKind::InvalidInput
            if port(address).is_some_and(|port| port > u64::from(u16::MAX)) =>
        {
            format!("`{address}`: ports end at 65535; choose a smaller one with {flag}")
        }
        io::ErrorKind::InvalidInput => {
            format!(
                "`{address}` is not an address to listen on; write HOST:PORT, such as 127.0.0.1:8800"
            )
        }
        io::ErrorKind::PermissionDenied if port(address).is_some_and(|port| port < 1024) => {
            format!(
                "{address} cannot be listened on: ports below 1024 need root; choose another: {flag} 127.0.0.1:8810"
            )
        }
        _ => format!(
            "{address} cannot be listened on: {}; choose another with {flag}",
            io_error::describe(error)
        ),
    })
}

/// The number that `address` is, or ends with.
fn port(address: &str) -> Option<u64> {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    port.parse().ok()
}

/// Whether what listens on `address` answers at `path` with these `words`.
fn answers(address: &str, path: &str, text: &str) -> bool {
    let ask = || {
        let socket_address = address.to_socket_addrs().ok()?.next()?;
        let mut stream = StdTcpStream::connect_timeout(&socket_address, PROBE).ok()?;
        stream.set_read_timeout(Some(PROBE)).ok()?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {socket_address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let (mut answer, mut chunk) = (Vec::new(), [0; 1024]);
        // In all, so that a program that answers byte by byte does not hold up the message.
        let until = Instant::now() + PROBE;
        while answer.len() < MAX_ANSWER && Instant::now() < until {
            match stream.read(&mut chunk) {
                Ok(length @ 1..) => answer.extend(chunk.get(..length)?),
                // What was read before an error is enough.
                Ok(0) | Err(_) => break,
            }
        }
        Some(String::from_utf8_lossy(&answer).contains(text))
    };
    ask().unwrap_or(false)
}

/// The default address.
pub(crate) const LISTEN: &str = "127.0.0.1:8800";
/// The bytes of an answer that are looked at.
const MAX_ANSWER: usize = 4096;
/// How long a program that has the address may take to answer.
const PROBE: Duration = Duration::from_millis(500);
/// How often a terminal shows for how long the start has waited.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// How long the start waits before it prints which servers it waits for, if no terminal shows that already.
pub(crate) const SILENT_WAIT: Duration = Duration::from_secs(5);
/// The time between two lines about servers that are still starting.
pub(crate) const REMINDER: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn waits(ready: usize, starting: &[&str], expected: &str) {
        let starting: Vec<_> = starting.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(waiting_text(ready, &starting), expected);
    }

    #[test]
    fn a_start_names_what_it_waits_for() {
        waits(0, &["`a`", "`b`"], "waiting for `a`, `b` ...");
        waits(1, &["`b`"], "1 server ready, waiting for `b` ...");
        waits(
            2,
            &[],
            "2 servers ready, waiting for the lists of tools ...",
        );
        waits(0, &[], "waiting for the lists of tools ...");
    }
}
