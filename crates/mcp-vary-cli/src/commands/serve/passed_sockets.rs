//! Sockets that the service manager opened for this process: `sd_listen_fds(3)`.

use std::net::TcpListener as StdTcpListener;

use mcp_vary_base::io_error;
use tokio::net::TcpListener;

use crate::failure::Failure;

/// The sockets that this process was started with. The manager keeps them open, so that clients wait while the process is
/// replaced.
#[derive(Debug, Default)]
pub(crate) struct PassedSockets {
    mcp: Option<StdTcpListener>,
    admin: Option<StdTcpListener>,
    probes: Option<StdTcpListener>,
}

impl PassedSockets {
    /// Takes the sockets from the environment, which may have no other threads yet. Their names are those of
    /// `FileDescriptorName=`: `admin`, `probes`, and any other for clients.
    ///
    /// # Errors
    ///
    /// When one of them does not accept TCP connections, and when two have one purpose.
    #[cfg(unix)]
    pub(crate) fn of_environment() -> Result<Self, Failure> {
        let listed = crate::environment::variable("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = listed.split(':');
        let mut passed = listenfd::ListenFd::from_env();
        let mut sockets = Self::default();
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            let socket = passed.take_tcp_listener(index).map_err(|error| {
                let why = format!("the socket `{name}` of LISTEN_FDS cannot be used: {error}");
                Failure::command(why)
            })?;
            let place = match name {
                "admin" => &mut sockets.admin,
                "probes" => &mut sockets.probes,
                _ => &mut sockets.mcp,
            };
            if place.is_some() {
                let why = "LISTEN_FDS has two sockets for one purpose; name them `mcp`, `admin` and `probes` with FileDescriptorName=";
                return Err(Failure::command(why));
            }
            *place = socket;
        }
        Ok(sockets)
    }

    /// There are none on this system.
    #[cfg(not(unix))]
    pub(crate) fn of_environment() -> Result<Self, Failure> {
        Ok(Self::default())
    }

    /// The socket for clients.
    pub(crate) fn take_mcp(&mut self) -> Result<Option<TcpListener>, Failure> {
        self.mcp.take().map(usable).transpose()
    }

    /// The socket for the operator.
    pub(crate) fn take_admin(&mut self) -> Result<Option<TcpListener>, Failure> {
        self.admin.take().map(usable).transpose()
    }

    /// Whether there is a socket for probes.
    pub(crate) const fn has_probes(&self) -> bool {
        self.probes.is_some()
    }

    /// The socket for probes.
    pub(crate) fn take_probes(&mut self) -> Result<Option<TcpListener>, Failure> {
        self.probes.take().map(usable).transpose()
    }
}

fn usable(socket: StdTcpListener) -> Result<TcpListener, Failure> {
    let listener = socket
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(socket));
    listener.map_err(|error| {
        let why = io_error::describe(&error);
        Failure::command(format!("a socket of LISTEN_FDS cannot be used: {why}"))
    })
}
