//! A gateway that serves on a port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mcp_vary_gateway::{Config, Gateway};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::stop::Stop;

/// A gateway and the task that serves its clients.
#[derive(Debug)]
pub(crate) struct Serving {
    gateway: Arc<Gateway>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Connects to the servers behind, unless a signal comes first, then serves on `listener`.
    pub(crate) async fn start(
        config: Config,
        listener: TcpListener,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        let address = listener
            .local_addr()
            .map_err(|error| Failure::command(error.to_string()))?;
        let gateway = connected(config, stop).await?;
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&gateway);
        let task = tokio::spawn(async move {
            let until = async move { drop(stopped.await) };
            serving.serve_http(listener, until).await
        });
        Ok(Self {
            gateway,
            address,
            stop,
            task,
        })
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Where clients connect to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Takes no more clients, lets requests in flight finish, and ends the server behind.
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

/// A gateway whose servers were connected to, unless a signal comes first: then what was begun ends in
/// order, or at once when another signal comes.
pub(crate) async fn connected(config: Config, stop: &mut Stop) -> Result<Arc<Gateway>, Failure> {
    let gateway = Gateway::open(config).await;
    let interrupted = tokio::select! {
        connected = gateway.connected() => {
            connected?;
            false
        }
        () = stop.asked() => true,
    };
    if !interrupted {
        return Ok(gateway);
    }
    tokio::select! {
        () = gateway.close() => {}
        () = stop.asked() => {}
    }
    Err(Failure::command("interrupted before a server was ready"))
}

/// A listener on `address`: `HOST:PORT`, or `PORT` on 127.0.0.1, as `flag` says.
///
/// # Errors
///
/// When the port is taken, the address cannot be read or others could reach it.
pub(crate) async fn listen(address: &str, flag: &str) -> Result<TcpListener, Failure> {
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
    if local.ip().is_loopback() {
        return Ok(listener);
    }
    Err(Failure::command(format!(
        "{address} can be reached from other machines, and there is no authentication yet: everybody there \
         could use the server behind; listen on a loopback address such as 127.0.0.1:{}",
        local.port()
    )))
}

fn cannot_listen(address: &str, flag: &str, error: &io::Error) -> Failure {
    Failure::command(match error.kind() {
        io::ErrorKind::AddrInUse => format!("{address} is in use; choose another with {flag}"),
        io::ErrorKind::InvalidInput => {
            format!(
                "`{address}` is no address to listen on; write HOST:PORT, such as 127.0.0.1:8800"
            )
        }
        _ => format!("{address} cannot be listened on: {error}; choose another with {flag}"),
    })
}
