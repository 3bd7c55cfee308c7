//! Reports to the service manager that started the process, such as systemd: ready, alive, reloading, stopping.
//!
//! The protocol is that of `sd_notify(3)`: datagrams to the socket that the variable `NOTIFY_SOCKET` names.

use std::convert::Infallible;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use mcp_vary_base::io_error;

use crate::environment::variable;
use crate::print::notice;

/// The service manager that waits for reports, if there is one.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<Socket>,
    /// How often the process must report that it is alive.
    watchdog: Option<Duration>,
    /// Where clients are served, once they are.
    url: OnceLock<String>,
}

#[cfg(unix)]
type Socket = std::os::unix::net::UnixDatagram;
#[cfg(not(unix))]
type Socket = Infallible;

impl ServiceManager {
    /// The service manager that the environment names.
    pub(crate) fn of_environment() -> Self {
        let socket = variable("NOTIFY_SOCKET").map(|address| connect(&address));
        if let Some(Err(error)) = &socket {
            let why = io_error::describe(error);
            notice(&format!(
                "warning: the socket in NOTIFY_SOCKET cannot be used: {why}"
            ));
        }
        Self {
            socket: socket.and_then(Result::ok),
            watchdog: watchdog(&variable, std::process::id()),
            url: OnceLock::new(),
        }
    }

    /// Clients are served at `url` from now on.
    pub(crate) fn ready(&self, url: &str) {
        let url = self.url.get_or_init(|| url.to_owned());
        self.report(&format!("READY=1\nSTATUS=serving at {url}"));
    }

    /// The configuration is being reloaded.
    pub(crate) fn reloading(&self) {
        if self.url.get().is_some() {
            let state = "RELOADING=1\nSTATUS=reloading the configuration";
            self.report(&format!("{state}{}", monotonic_time()));
        }
    }

    /// The configuration was reloaded, or not because it cannot be used.
    pub(crate) fn reloaded(&self, is_changed: bool) {
        let why = if is_changed {
            ""
        } else {
            "; the configuration was not reloaded, the log says why"
        };
        if let Some(url) = self.url.get() {
            self.report(&format!("READY=1\nSTATUS=serving at {url}{why}"));
        }
    }

    /// Clients are not served much longer.
    pub(crate) fn stopping(&self) {
        self.report("STOPPING=1\nSTATUS=shutting down");
    }

    /// Reports twice in the watchdog's interval that the process is alive. Never returns.
    pub(crate) async fn watch(&self) -> Infallible {
        let Some((interval, _)) = self.watchdog.zip(self.socket.as_ref()) else {
            return std::future::pending().await;
        };
        loop {
            self.report("WATCHDOG=1");
            tokio::time::sleep(interval / 2).await;
        }
    }

    fn report(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = send(socket, state)
        {
            tracing::warn!(%error, state, "the service manager does not receive reports");
        }
    }
}

/// The line about the time at which a reload began, by which systemd knows which one it is.
fn monotonic_time() -> String {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        );
        format!("\nMONOTONIC_USEC={}", now.as_micros())
    }
    #[cfg(not(target_os = "linux"))]
    String::new()
}

/// How often process `id` must report that it is alive, by these variables.
fn watchdog(variable: &dyn Fn(&str) -> Option<String>, id: u32) -> Option<Duration> {
    let is_other = variable("WATCHDOG_PID").is_some_and(|of| of != id.to_string());
    let microseconds = variable("WATCHDOG_USEC")?.parse().ok()?;
    let interval = Duration::from_micros(microseconds);
    (!is_other && !interval.is_zero()).then_some(interval)
}

/// A socket that is connected to `address`: a path, or on Linux `@` and an abstract name.
#[cfg(unix)]
fn connect(address: &str) -> io::Result<Socket> {
    let socket = Socket::unbound()?;
    // The manager reads at once; if it does not, requests must not wait for it.
    socket.set_write_timeout(Some(Duration::from_millis(100)))?;
    match address.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt as _;
            use std::os::unix::net::SocketAddr;
            socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        }
        _ => socket.connect(address)?,
    }
    Ok(socket)
}

#[cfg(not(unix))]
fn connect(_address: &str) -> io::Result<Socket> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
fn send(socket: &Socket, state: &str) -> io::Result<()> {
    socket.send(state.as_bytes()).map(drop)
}

#[cfg(not(unix))]
fn send(socket: &Socket, _state: &str) -> io::Result<()> {
    match *socket {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_watchdog(usec: Option<&str>, pid: Option<&str>, expected: Option<Duration>) {
        let variable = |name: &str| {
            let value = if name == "WATCHDOG_USEC" { usec } else { pid };
            value.map(str::to_owned)
        };
        assert_eq!(watchdog(&variable, 7), expected, "{usec:?} {pid:?}");
    }

    #[test]
    fn a_watchdog_is_for_the_process_that_it_names() {
        let second = Some(Duration::from_secs(1));
        has_watchdog(Some("1000000"), None, second);
        has_watchdog(Some("1000000"), Some("7"), second);
        has_watchdog(Some("1000000"), Some("8"), None);
        has_watchdog(None, None, None);
        has_watchdog(Some("0"), None, None);
        has_watchdog(Some("soon"), None, None);
    }
}
