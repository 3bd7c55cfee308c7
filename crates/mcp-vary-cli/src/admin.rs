//! The operator's listener of a running gateway.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mcp_vary_gateway::Gateway;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::print::progress;
use crate::serving;

/// The listener for the operator. It is opened before the servers are started, so that a port in use is reported first.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// A task that answers the operator, until this is dropped.
#[derive(Debug)]
pub(crate) struct AdminTask {
    _stop: oneshot::Sender<()>,
    _task: JoinHandle<io::Result<()>>,
}

impl AdminListener {
    /// The listener on `address`, if there is one.
    pub(crate) async fn open(address: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(address) = address else {
            return Ok(None);
        };
        let listener = serving::listen(address, "--admin").await?;
        let address = listener.local_addr();
        let address = address.map_err(|error| Failure::command(error.to_string()))?;
        Ok(Some(Self { listener, address }))
    }

    /// Starts to answer, and prints the address.
    pub(crate) fn serve(self, gateway: &Arc<Gateway>) -> AdminTask {
        let (stop, stopped) = oneshot::channel();
        let gateway = Arc::clone(gateway);
        let listener = self.listener;
        let task = tokio::spawn(async move {
            let until = async move { drop(stopped.await) };
            gateway.serve_admin(listener, until).await
        });
        progress(&format!("status: vary status {}", self.address));
        AdminTask {
            _stop: stop,
            _task: task,
        }
    }
}
