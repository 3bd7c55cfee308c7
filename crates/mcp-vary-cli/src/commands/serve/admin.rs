//! The listeners for the operator of a running gateway: the status, and probes with metrics.

use std::io::{self, IsTerminal as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use mcp_vary_base::io_error;
use mcp_vary_base::tasks::spawn;
use mcp_vary_config::ProgramSettings;
use mcp_vary_gateway::Gateway;
use mcp_vary_gateway::settings::metrics::MetricsSettings;
use mcp_vary_operator::{AdminToken, Operator, Requests, channel};
use mcp_vary_page::GatewayPage;
#[cfg(unix)]
use serde_json::{Value, json};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::environment::{now_in_microseconds, random_secret};
use crate::failure::Failure;
use crate::operator::saved_days::SavedDays;
#[cfg(unix)]
use crate::operator::socket::SocketFile;
use crate::operator::token::{self, OperatorRecord, TokenFile};
#[cfg(unix)]
use crate::print::sanitize;
use crate::print::{notice, progress};
use crate::service::Manager;
#[cfg(unix)]
use crate::service::program_file;
use crate::{serving, tokens};

use super::args::Serve;
use super::page_variants::ServedVariants;
use super::passed_sockets::PassedSockets;

/// The addresses of the listeners, if there are any.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperatorAddresses {
    /// The page, the status and commands.
    admin: Option<String>,
    /// Whether those are at a free port if no address is given.
    has_default: bool,
    /// The token for commands; without it one is made.
    admin_token: Option<AdminToken>,
    /// Whether the page may call tools.
    admin_calls: bool,
    /// Whether the page may write variants into the file.
    admin_writes: bool,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// The address for clients in that file.
    listen: Option<String>,
    /// The servers of the file that are served; all if there is none.
    only: Vec<String>,
    /// What started this process as a service.
    service: Option<Manager>,
    /// Probes and metrics.
    pub(crate) probes: Option<String>,
}

impl OperatorAddresses {
    /// The addresses of the command line, or else those of the file.
    pub(crate) fn new(args: &Serve, program: &ProgramSettings) -> Self {
        let admin = args.admin.clone().or_else(|| program.admin.clone());
        Self {
            has_default: admin.is_none() && !args.stdio,
            admin: admin.filter(|address| address != OFF),
            admin_token: program.admin_token.clone(),
            admin_calls: program.admin_calls,
            admin_writes: program.admin_writes,
            file: None,
            listen: program.listen.clone(),
            only: args.target.servers.clone(),
            service: args.service,
            probes: args.probes.clone().or_else(|| program.probes.clone()),
        }
    }

    /// Metrics, if somebody can read them.
    pub(crate) fn metrics(&self, sockets: &PassedSockets) -> Option<MetricsSettings> {
        let is_read = self.probes.is_some() || sockets.has_probes();
        is_read.then(|| MetricsSettings::new(tokens::count))
    }
}

/// The listeners for the operator. They are opened before the servers are started, so that a port in use is reported first.
#[derive(Debug)]
pub(crate) struct OperatorListeners {
    admin: Option<(TcpListener, SocketAddr)>,
    /// Whether `admin` is at the default address.
    is_default: bool,
    probes: Option<(TcpListener, SocketAddr)>,
    /// What gets the page.
    operator: Operator,
    /// Whether the page can be opened.
    has_token: bool,
    addresses: OperatorAddresses,
    /// The address of clients, if it is the same after each start.
    clients: Option<SocketAddr>,
    /// The token that was made, until the listeners are closed.
    token: Option<TokenFile>,
    /// Where commands of the same user find the gateway.
    #[cfg(unix)]
    socket: Option<(UnixListener, SocketFile)>,
}

/// The tasks of the listeners, until this is dropped.
#[derive(Debug)]
pub(crate) struct OperatorTasks {
    /// Whether there is a page at the default address.
    has_default_page: bool,
    _tasks: Vec<ListenerTask>,
    _saved: Option<SavedDays>,
    _token: Option<TokenFile>,
    #[cfg(unix)]
    _socket: Option<SocketFile>,
}

impl OperatorTasks {
    /// Prints how to open the page, unless its address was printed.
    pub(crate) fn report_page(&self) {
        if self.has_default_page {
            progress("What clients get and call: vary open");
        }
    }
}

/// A task for the operator, until this is dropped.
#[derive(Debug)]
pub(crate) struct ListenerTask {
    _stop: oneshot::Sender<()>,
    _task: JoinHandle<io::Result<()>>,
}

impl OperatorListeners {
    /// The listeners on `addresses`, where they send commands, and where those arrive. The gateway that serves `clients` has the
    /// token and, if no address is given, the port of the one that served them before.
    pub(crate) async fn open(
        addresses: &OperatorAddresses,
        sockets: &mut PassedSockets,
        clients: Option<SocketAddr>,
    ) -> Result<(Self, Operator, Requests), Failure> {
        let passed = sockets.take_admin()?;
        #[cfg(unix)]
        let socket = open_socket(passed.is_some() || addresses.admin.is_some());
        #[cfg(unix)]
        let can_be_found = socket.is_some();
        #[cfg(not(unix))]
        let can_be_found = token::directory().is_some();
        let last = clients.and_then(OperatorRecord::read);
        let is_default = passed.is_none() && addresses.has_default;
        let operator_listener = match (passed, &addresses.admin) {
            (Some(passed), _) => Some(passed),
            (None, Some(address)) => Some(serving::listen(address, "--admin").await?),
            (None, None) if is_default && can_be_found => default_listener(last.as_ref()).await,
            (None, None) => None,
        };
        let probe_listener = match (sockets.take_probes()?, &addresses.probes) {
            (Some(passed), _) => Some(passed),
            (None, Some(address)) => Some(serving::listen_anywhere(address, "--probes").await?),
            (None, None) => None,
        };
        let admin = operator_listener.map(with_address).transpose()?;
        if let Some((_, address)) = &admin {
            serving::only_loopback(*address).map_err(Failure::command)?;
        }
        let admin_address = admin.as_ref().map(|(_, address)| *address);
        let (token, file) = match (&addresses.admin_token, admin_address) {
            (None, Some(address)) => created_token(address, last, clients)?,
            (configured, _) => (configured.clone(), None),
        };
        let (operator, requests) = channel(token.as_ref());
        let listeners = Self {
            admin,
            is_default,
            probes: probe_listener.map(with_address).transpose()?,
            operator: operator.clone(),
            has_token: token.is_some(),
            addresses: addresses.clone(),
            clients,
            token: file,
            #[cfg(unix)]
            socket,
        };
        Ok((listeners, operator, requests))
    }

    /// What other commands of this user show of the gateway.
    #[cfg(unix)]
    fn description(&self, url: Option<&str>) -> Value {
        let absolute = self.addresses.file.as_ref().map(std::path::absolute);
        let file = absolute.and_then(|path| Some(path.ok()?.display().to_string()));
        let admin = self.admin.as_ref().map(|(_, address)| address.to_string());
        let program = std::env::current_exe().ok();
        json!({
            "url": url,
            "file": file,
            "admin": admin,
            "listen": self.addresses.listen,
            "manager": self.addresses.service.map(Manager::name),
            "isTerminal": io::stdin().is_terminal(),
            "program": program.as_deref().and_then(program_file),
        })
    }

    /// Starts to answer, and prints the addresses. `url` is where clients are served over HTTP.
    pub(crate) fn serve(self, gateway: &Arc<Gateway>, url: Option<&str>) -> OperatorTasks {
        let mut tasks = Vec::new();
        let has_default_page = self.is_default && self.has_token && self.admin.is_some();
        #[cfg(unix)]
        if let Some((_, socket)) = &self.socket {
            // Without it, the gateway is known by its servers alone.
            let _ = socket.describe(&self.description(url));
        }
        if let Some((listener, address)) = self.admin {
            let page = GatewayPage::new(gateway, now_in_microseconds);
            let page = page.with_calls(self.addresses.admin_calls);
            let page = page.with_writes(self.addresses.admin_writes);
            let recorded = page.record_experiments();
            tasks.push(ListenerTask::spawn(|until| async move {
                tokio::select! {
                    () = recorded => {}
                    () = until => {}
                }
                Ok(())
            }));
            let OperatorAddresses { file, only, .. } = self.addresses;
            let variants = ServedVariants::new(file, only, now_in_microseconds);
            let page = page.with_variants(Arc::new(variants));
            self.operator.set_page(Arc::new(page));
            let gateway = Arc::clone(gateway);
            tasks.push(ListenerTask::spawn(|until| async move {
                gateway.serve_admin(listener, until).await
            }));
            if !self.is_default {
                progress(&format!("status: vary status {address}"));
                if self.has_token {
                    progress(&format!("page: vary open {address}"));
                }
            }
        }
        if let Some((listener, address)) = self.probes {
            let gateway = Arc::clone(gateway);
            tasks.push(ListenerTask::spawn(|until| async move {
                gateway.serve_probes(listener, until).await;
                Ok(())
            }));
            progress(&format!("metrics: http://{address}/metrics"));
        }
        #[cfg(unix)]
        let socket = self.socket.map(|(listener, file)| {
            let gateway = Arc::clone(gateway);
            tasks.push(ListenerTask::spawn(|until| async move {
                gateway.serve_admin_socket(listener, until).await;
                Ok(())
            }));
            file
        });
        OperatorTasks {
            has_default_page,
            _tasks: tasks,
            _saved: self
                .clients
                .map(|clients| SavedDays::restore(gateway, clients)),
            _token: self.token,
            #[cfg(unix)]
            _socket: socket,
        }
    }
}

/// The socket of this process, if it can be opened. It cannot in a container whose files are read-only. Without an `--admin`
/// address, no other command then finds the gateway, and it has no page.
#[cfg(unix)]
fn open_socket(has_admin: bool) -> Option<(UnixListener, SocketFile)> {
    match SocketFile::open() {
        Ok(opened) => Some(opened),
        Err(error) if has_admin => {
            tracing::info!(%error, "`vary status` does not find this gateway by itself");
            None
        }
        Err(error) => {
            notice(&sanitize(&not_found_warning(&error)));
            None
        }
    }
}

/// Why other commands do not find this gateway, whose socket cannot be opened.
#[cfg(unix)]
fn not_found_warning(error: &io::Error) -> String {
    let begin = "warning: `vary status` and `vary open` will not find this gateway";
    let Some(directory) = token::directory() else {
        return format!("{begin}: HOME is not set; set it, or add `--admin 8801`");
    };
    let shown = directory.display();
    let why = io_error::describe_writing_at(&directory, error);
    format!(
        "{begin}: its socket cannot be created in {shown}: {why}; set HOME to a directory of yours, or add `--admin 8801`"
    )
}

/// A listener and its address.
fn with_address(listener: TcpListener) -> Result<(TcpListener, SocketAddr), Failure> {
    let local = listener.local_addr();
    let address = local.map_err(|error| Failure::command(error.to_string()))?;
    Ok((listener, address))
}

/// A listener on the port of the last gateway, or on a free one.
async fn default_listener(last: Option<&OperatorRecord>) -> Option<TcpListener> {
    let ports = last.map(|record| record.port).into_iter().chain([0]);
    for port in ports {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return Some(listener),
            Err(error) => tracing::debug!(port, %error, "the page cannot use this port"),
        }
    }
    tracing::warn!("this gateway has no page, since no port of 127.0.0.1 can be opened");
    None
}

/// A token for commands at `address`, in a file for `vary reload` and `vary drain`: that of the `last` gateway that served
/// `clients`, or another. Without the file nobody could know it, so there is none.
fn created_token(
    address: SocketAddr,
    last: Option<OperatorRecord>,
    clients: Option<SocketAddr>,
) -> Result<(Option<AdminToken>, Option<TokenFile>), Failure> {
    let token = match last {
        Some(record) => record.token,
        None => AdminToken::from_random(random_secret()?),
    };
    let file = match TokenFile::write(address, &token) {
        Ok(file) => file,
        Err(error) => {
            notice(&format!(
                "warning: `vary reload {address}` and `vary drain {address}` do not work: the token for them cannot be stored: \
                 {}; add `admin-token` to the configuration",
                io_error::describe(&error)
            ));
            return Ok((None, None));
        }
    };
    if let Some(clients) = clients {
        let record = OperatorRecord {
            token: token.clone(),
            port: address.port(),
        };
        // Without it, a page that is open must be opened again after a restart.
        let _ = record.write(clients);
    }
    Ok((Some(token), Some(file)))
}

/// In place of an address: nothing listens for the operator.
const OFF: &str = "off";

/// Ready when a listener must stop.
type Stopped = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl ListenerTask {
    fn spawn<F>(serve: impl FnOnce(Stopped) -> F) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let until = Box::pin(async move { drop(stopped.await) });
        Self {
            _stop: stop,
            _task: spawn(serve(until)),
        }
    }
}
