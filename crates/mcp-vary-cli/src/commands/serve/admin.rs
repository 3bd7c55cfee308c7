//! The listeners for the operator of a running gateway: the status, and probes with metrics.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_vary_base::io_error;
use mcp_vary_base::tasks::spawn;
use mcp_vary_config::File;
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

use crate::environment::now_in_microseconds;
use crate::failure::Failure;
#[cfg(unix)]
use crate::operator::socket::SocketFile;
#[cfg(unix)]
use crate::operator::token;
use crate::operator::token::TokenFile;
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
    /// The status and commands.
    pub(crate) admin: Option<String>,
    /// The token for commands; without it one is made.
    admin_token: Option<AdminToken>,
    /// Whether the page may call tools.
    admin_calls: bool,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// What started this process as a service.
    service: Option<Manager>,
    /// Probes and metrics.
    pub(crate) probes: Option<String>,
}

impl OperatorAddresses {
    /// The addresses of the command line, or else those of the file.
    pub(crate) fn new(args: &Serve, file: Option<&File>) -> Self {
        let admin = || file.and_then(|file| file.admin.clone());
        let probes = || file.and_then(|file| file.probes.clone());
        Self {
            admin: args.admin.clone().or_else(admin),
            admin_token: file.and_then(|file| file.admin_token.clone()),
            admin_calls: file.is_some_and(|file| file.admin_calls),
            file: None,
            service: args.service,
            probes: args.probes.clone().or_else(probes),
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
    probes: Option<(TcpListener, SocketAddr)>,
    /// What gets the page.
    operator: Operator,
    /// Whether the page can be opened.
    has_token: bool,
    page_calls: bool,
    file: Option<PathBuf>,
    #[cfg(unix)]
    service: Option<Manager>,
    /// The token that was made, until the listeners are closed.
    token: Option<TokenFile>,
    /// Where commands of the same user find the gateway.
    #[cfg(unix)]
    socket: Option<(UnixListener, SocketFile)>,
}

/// The tasks of the listeners, until this is dropped.
#[derive(Debug)]
pub(crate) struct OperatorTasks {
    _tasks: Vec<ListenerTask>,
    _token: Option<TokenFile>,
    #[cfg(unix)]
    _socket: Option<SocketFile>,
}

/// A task for the operator, until this is dropped.
#[derive(Debug)]
pub(crate) struct ListenerTask {
    _stop: oneshot::Sender<()>,
    _task: JoinHandle<io::Result<()>>,
}

impl OperatorListeners {
    /// The listeners on `addresses`, where they send commands, and where those arrive.
    pub(crate) async fn open(
        addresses: &OperatorAddresses,
        sockets: &mut PassedSockets,
    ) -> Result<(Self, Operator, Requests), Failure> {
        let operator_listener = match (sockets.take_admin()?, &addresses.admin) {
            (Some(passed), _) => Some(passed),
            (None, Some(address)) => Some(serving::listen(address, "--admin").await?),
            (None, None) => None,
        };
        let probe_listener = match (sockets.take_probes()?, &addresses.probes) {
            (Some(passed), _) => Some(passed),
            (None, Some(address)) => Some(serving::listen_anywhere(address, "--probes").await?),
            (None, None) => None,
        };
        let with_address = |listener: TcpListener| {
            let local = listener.local_addr();
            let address = local.map_err(|error| Failure::command(error.to_string()))?;
            Ok::<_, Failure>((listener, address))
        };
        let admin = operator_listener.map(with_address).transpose()?;
        if let Some((_, address)) = &admin {
            serving::only_loopback(*address).map_err(Failure::command)?;
        }
        let (token, file) = match (&addresses.admin_token, &admin) {
            (None, Some((_, address))) => created_token(*address)?,
            (configured, _) => (configured.clone(), None),
        };
        let (operator, requests) = channel(token.as_ref());
        #[cfg(unix)]
        let socket = open_socket(admin.is_some());
        let listeners = Self {
            admin,
            probes: probe_listener.map(with_address).transpose()?,
            operator: operator.clone(),
            has_token: token.is_some(),
            page_calls: addresses.admin_calls,
            file: addresses.file.clone(),
            #[cfg(unix)]
            service: addresses.service,
            token: file,
            #[cfg(unix)]
            socket,
        };
        Ok((listeners, operator, requests))
    }

    /// By what the user knows the gateway.
    #[cfg(unix)]
    fn description(&self, url: Option<&str>) -> Value {
        let absolute = self.file.as_ref().map(std::path::absolute);
        let file = absolute.and_then(|path| Some(path.ok()?.display().to_string()));
        let admin = self.admin.as_ref().map(|(_, address)| address.to_string());
        let program = std::env::current_exe().ok();
        json!({
            "url": url,
            "file": file,
            "admin": admin,
            "manager": self.service.map(Manager::name),
            "isTerminal": io::stdin().is_terminal(),
            "program": program.as_deref().and_then(program_file),
        })
    }

    /// Starts to answer, and prints the addresses. `url` is where clients are served over HTTP.
    pub(crate) fn serve(self, gateway: &Arc<Gateway>, url: Option<&str>) -> OperatorTasks {
        let mut tasks = Vec::new();
        #[cfg(unix)]
        if let Some((_, socket)) = &self.socket {
            // Without it, the gateway is known by its servers alone.
            let _ = socket.describe(&self.description(url));
        }
        if let Some((listener, address)) = self.admin {
            let page = GatewayPage::new(gateway, now_in_microseconds);
            let page = page.with_calls(self.page_calls);
            let recorded = page.record_experiments();
            tasks.push(ListenerTask::spawn(|until| async move {
                tokio::select! {
                    () = recorded => {}
                    () = until => {}
                }
                Ok(())
            }));
            let variants = Arc::new(ServedVariants(self.file));
            self.operator
                .set_page(Arc::new(page.with_variants(variants)));
            let gateway = Arc::clone(gateway);
            tasks.push(ListenerTask::spawn(|until| async move {
                gateway.serve_admin(listener, until).await
            }));
            progress(&format!("status: vary status {address}"));
            if self.has_token {
                progress(&format!("page: vary open {address}"));
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
            _tasks: tasks,
            _token: self.token,
            #[cfg(unix)]
            _socket: socket,
        }
    }
}

/// The socket of this process, if it can be opened. It cannot in a container whose files are read-only. Without an `--admin`
/// address, no other command then finds the gateway.
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
    let begin = "warning: `vary status` will not find this gateway";
    let Some(directory) = token::directory() else {
        return format!("{begin}: HOME is not set; set it, or add `--admin 8801`");
    };
    let shown = directory.display();
    let why = io_error::describe_writing_at(&directory, error);
    format!(
        "{begin}: its socket cannot be created in {shown}: {why}; set HOME to a directory of yours, or add `--admin 8801`"
    )
}

/// A token for commands at `address`, in a file for `vary reload` and `vary drain`. Without the file nobody could know it, so
/// there is none.
fn created_token(address: SocketAddr) -> Result<(Option<AdminToken>, Option<TokenFile>), Failure> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::command(format!("the system gives no randomness: {error}")))?;
    let token = AdminToken::from_random(random);
    Ok(match TokenFile::write(address, &token) {
        Ok(file) => (Some(token), Some(file)),
        Err(error) => {
            notice(&format!(
                "warning: `vary reload {address}` and `vary drain {address}` do not work: the token for them cannot be stored: \
                 {}; add `admin-token` to the configuration",
                io_error::describe(&error)
            ));
            (None, None)
        }
    })
}

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
