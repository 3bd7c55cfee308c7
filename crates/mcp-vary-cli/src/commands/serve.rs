//! `vary serve`: a gateway in front of servers, until it is stopped.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::hints::VariantHints;
use mcp_vary_base::io_error;
use mcp_vary_gateway::settings::audit::AuditTarget;
use mcp_vary_gateway::settings::config::OnlyClient;
use mcp_vary_gateway::{Config, Gateway};
use mcp_vary_operator::Requests;
use mcp_vary_traces::Tracer;
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::environment::now_in_microseconds;
use crate::failure::{Failure, Verdict};
use crate::log::{self, CommandLog};
use crate::print::servers::{extension_notes, plural, upstream_variant_notes};
use crate::print::{notice, progress, sanitize};
#[cfg(unix)]
use crate::service::Manager;
use crate::serving::start_report::{
    not_working_line, root_note, server_lines, unmatched_warnings, variant_lines,
};
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::tokens;

mod admin;
pub(crate) mod args;
mod config;
mod flags;
mod open_files;
mod page_variants;
pub(crate) mod passed_sockets;
mod reload;
mod servers;
mod service_manager;

use self::admin::{OperatorAddresses, OperatorListeners};
use self::args::Serve;
use self::config::{ConfigSource, ServeConfig};
use self::passed_sockets::PassedSockets;
use self::reload::FileReloader;
use self::servers::{report_late_servers, wait_until_ready};
use self::service_manager::ServiceManager;

/// Serves until a signal is received. A second signal ends everything immediately.
pub(crate) async fn run(
    args: Serve,
    log: CommandLog,
    mut sockets: PassedSockets,
    mut stop: Stop,
) -> Result<Verdict, Failure> {
    if let Some(directory) = &args.directory {
        std::env::set_current_dir(directory).map_err(|error| {
            let shown = directory.display();
            let why = io_error::describe(&error);
            Failure::command(format!("--directory: {shown} cannot be entered: {why}"))
        })?;
    }
    #[cfg(unix)]
    if args.service == Some(Manager::Background) {
        // Otherwise the terminal of `vary up` would end it.
        let _ = rustix::process::setsid();
    }
    open_files::raise_limit();
    let ServeConfig {
        config,
        listen,
        operator,
        reloader: reloading,
        source,
    } = ServeConfig::from_args(&args, &log).await?;
    if reloading.is_none() {
        stop = stop.with_hangup()?;
    }
    // Clients are answered when the wait is over, even if some servers are not ready.
    let patience = config.start_wait;
    let mut config = config.allow_empty_start(patience);
    for server in &mut config.servers {
        server.era_wait = ERA_WAIT;
    }
    let mut config = with_audit_log(config, &args, &source)?;
    config.metrics = operator.metrics(&sockets);
    config.count_tokens = Some(tokens::count);
    if let Some(traces) = &config.traces {
        let started = Tracer::start(traces, now_in_microseconds, config.environment);
        config.tracer = Some(started.map_err(|error| Failure::command(error.to_string()))?);
    }
    let mut reloads = ServedFile {
        reloader: reloading,
        args: &args,
        manager: ServiceManager::of_environment(),
    };
    if args.stdio {
        let listeners = (config, &operator, &mut sockets);
        on_stdio(listeners, &source, &mut reloads, &mut stop).await
    } else {
        let listeners = (listen.as_str(), config, &operator, &mut sockets);
        on_http(listeners, &source, &mut reloads, &mut stop).await
    }
}

/// Starts the audit log that the configuration asks for.
///
/// # Errors
///
/// When its file cannot be opened, and when it would write between the messages of a client.
fn with_audit_log(
    mut config: Config,
    args: &Serve,
    source: &ConfigSource,
) -> Result<Config, Failure> {
    let Some(audit) = &config.audit else {
        return Ok(config);
    };
    let at = source.audit_at.map(|at| format!("{at}: "));
    let at = format!("{}:{}", source.name, at.unwrap_or_default());
    if args.stdio && audit.target == AuditTarget::Stdout {
        return Err(Failure::command(format!(
            "{at}`audit.to` is `stdout`, where `--stdio` sends the messages for the client; write `file PATH` or `syslog ADDRESS`",
        )));
    }
    let started = audit.start(now_in_microseconds, config.environment);
    let log = started.map_err(|error| Failure::command(format!("{at}{error}")))?;
    config.audit_log = Some(log);
    Ok(config)
}

/// The file that is reloaded while it is served, if there is one.
struct ServedFile<'a> {
    reloader: Option<FileReloader>,
    args: &'a Serve,
    manager: ServiceManager,
}

impl ServedFile<'_> {
    /// Sets the address that a new configuration must allow.
    const fn serves_at(&mut self, address: SocketAddr) {
        if let Some(reloader) = &mut self.reloader {
            reloader.serves_at(address);
        }
    }

    /// Reloads the file forever, and reports to the service manager that the process is alive.
    async fn run(&mut self, gateway: &Arc<Gateway>, requests: &mut Requests) -> Infallible {
        let args = self.args;
        let manager = &self.manager;
        let reload = async {
            let Some(reloader) = &mut self.reloader else {
                loop {
                    let why = "Vary was started without a configuration file, so there is nothing to reload";
                    requests.reload().await.answer(Err(why.to_owned()));
                }
            };
            reloader.run(gateway, args, manager, requests).await
        };
        tokio::select! {
            never = reload => never,
            never = manager.watch() => never,
        }
    }
}

/// How long processes wait for the era of the first client. Most need longer than that to start.
const ERA_WAIT: Duration = Duration::from_millis(500);

/// How long the start waits for the first message of a client on standard input, and how many bytes of it are read.
const FIRST_MESSAGE_WAIT: Duration = Duration::from_secs(2);
const FIRST_MESSAGE: usize = 64 << 10;

async fn on_http(
    (listen, mut config, operator, sockets): (&str, Config, &OperatorAddresses, &mut PassedSockets),
    source: &ConfigSource,
    reloads: &mut ServedFile<'_>,
    stop: &mut Stop,
) -> Result<Verdict, Failure> {
    let listener = open_listener(listen, &config, sockets).await?;
    let note = root_note(&config.servers);
    let clients = fixed_address(listen, &listener);
    let opened = OperatorListeners::open(operator, sockets, clients).await?;
    let (operator, commands, mut requests) = opened;
    config.operator = Some(commands);
    let name = entry_name(&config);
    let has_keys = has_keys(&config);
    let configured_default = config.selection.default.clone();
    let is_public = config.listener.public_url.is_some();
    let serving = Serving::begin(config, listener).await?;
    reloads.serves_at(serving.address());
    let gateway = Arc::clone(serving.gateway());
    let url = serving.url();
    progress(&format!("{} at {url}", starting_line(&gateway)));
    let operator_tasks = operator.serve(&gateway, Some(&url));
    wait_until_ready(&gateway, reloads.args, stop).await?;
    progress(&format!(
        "{}\nserving at {url}",
        introduction(&gateway, source)
    ));
    if is_public {
        progress(&format!("listening on {}", serving.address()));
    }
    log::servers_reported();
    progress(&format!(
        "for a client's configuration: {}",
        client_entry(&name, &url, has_keys)
    ));
    let ranked = gateway.explain(&VariantHints::default()).advertised;
    let default = configured_default.or_else(|| ranked.first().cloned());
    let report_variants = || {
        let variants = variant_lines(&gateway, &url, default.as_ref());
        if !variants.is_empty() {
            progress(&variants);
        }
    };
    report_variants();
    operator_tasks.report_page();
    report_next_steps(&gateway, source, note, &url);
    reloads.manager.ready(&url);
    let drain = requests.drain().clone();
    tokio::select! {
        () = stop.requested() => {}
        () = drain.cancelled() => {}
        never = reloads.run(&gateway, &mut requests) => match never {},
        never = report_late_servers(&gateway, report_variants) => match never {},
    }
    reloads.manager.stopping();
    progress(SHUTTING_DOWN);
    drain.cancel();
    let stopped = unless_interrupted(serving.stop(), stop).await;
    stopped.unwrap_or(Ok(())).map(|()| Verdict::Fine)
}

/// The listener of clients: opened before the servers are started, which can take long, so that its faults are reported
/// first.
async fn open_listener(
    listen: &str,
    config: &Config,
    sockets: &mut PassedSockets,
) -> Result<TcpListener, Failure> {
    if let Some(tls) = &config.listener.tls {
        tls.check()
            .map_err(|error| Failure::command(error.to_string()))?;
    }
    match sockets.take_mcp()? {
        Some(passed) => serving::passed(passed, config),
        None => serving::listen_as_configured(listen, "--listen", config).await,
    }
}

/// The address of clients, unless it is another one after each start.
fn fixed_address(listen: &str, listener: &TcpListener) -> Option<SocketAddr> {
    let (_, port) = listen.rsplit_once(':').unwrap_or(("", listen));
    if port.parse::<u16>() == Ok(0) {
        return None;
    }
    listener.local_addr().ok()
}

/// What a person may want to know or do once the gateway serves.
fn report_next_steps(gateway: &Gateway, source: &ConfigSource, root_note: Option<&str>, url: &str) {
    if let Some(note) = root_note {
        progress(note);
    }
    progress(&format!(
        "What the tools cost: vary inspect {url}\nCtrl-C ends it"
    ));
    if let Some(line) = not_working_line(gateway, &source.left_out) {
        progress(&line);
    }
}

/// The name of the gateway in a client's configuration.
fn entry_name(config: &Config) -> String {
    match &config.servers[..] {
        [server] => server.name.clone(),
        _ => "vary".to_owned(),
    }
}

/// Whether clients have API keys.
fn has_keys(config: &Config) -> bool {
    let authentication = config.authentication.as_ref();
    authentication.is_some_and(|known| !known.authenticator.keys().is_empty())
}

async fn on_stdio(
    (mut config, operator, sockets): (Config, &OperatorAddresses, &mut PassedSockets),
    source: &ConfigSource,
    reloads: &mut ServedFile<'_>,
    stop: &mut Stop,
) -> Result<Verdict, Failure> {
    let privileges = root_note(&config.servers);
    let opened = OperatorListeners::open(operator, sockets, None).await?;
    let (operator, commands, mut requests) = opened;
    config.operator = Some(commands);
    let mut input = BufReader::with_capacity(FIRST_MESSAGE, tokio::io::stdin());
    let output = tokio::io::stdout();
    config.only_client = only_client(&mut input).await;
    let gateway = Gateway::open(config).await;
    progress(&starting_line(&gateway));
    let _operator = operator.serve(&gateway, None);
    let mut is_ended = false;
    let first_message = async {
        if let Ok(message) = input.fill_buf().await {
            gateway.expect_client(message);
            is_ended = message.is_empty();
        }
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ready = wait_until_ready(&gateway, reloads.args, stop) => ready?,
        never = first_message => match never {},
    }
    progress(&introduction(&gateway, source));
    if let Some(note) = privileges {
        progress(note);
    }
    log::servers_reported();
    if io::stdin().is_terminal() {
        progress(STDIO_HINT);
    }
    // A terminal says only once that its input has ended.
    let bounded_input = input.take(if is_ended { 0 } else { u64::MAX });
    let (ask, requested) = oneshot::channel();
    let until = async { drop(requested.await) };
    let mut serving = pin!(gateway.serve_stdio(bounded_input, output, until));
    let drain = requests.drain().clone();
    tokio::select! {
        served = &mut serving => {
            unless_interrupted(gateway.close(), stop).await;
            return stream_verdict(served);
        }
        () = stop.requested() => {}
        () = drain.cancelled() => {}
        never = reloads.run(&gateway, &mut requests) => match never {},
        never = report_late_servers(&gateway, || {}) => match never {},
    }
    progress(SHUTTING_DOWN);
    drain.cancel();
    let _ = ask.send(());
    let finish = async {
        let served = serving.await;
        gateway.close().await;
        served
    };
    let served = unless_interrupted(finish, stop).await;
    stream_verdict(served.unwrap_or(Ok(())))
}

/// The client that the first message is of. Programs are started with the capabilities of the only client, which says them
/// at once, unless it is a person at a terminal.
async fn only_client(input: &mut (impl AsyncBufRead + Unpin)) -> Option<OnlyClient> {
    if io::stdin().is_terminal() {
        return None;
    }
    let first = tokio::time::timeout(FIRST_MESSAGE_WAIT, input.fill_buf()).await;
    Gateway::only_client(first.ok()?.ok()?)
}

fn starting_line(gateway: &Gateway) -> String {
    let servers = gateway.servers();
    sanitize(&match &servers[..] {
        [server] => format!("starting `{}`", server.name),
        several => format!("starting {}", plural(several.len(), "server")),
    })
}

/// Runs `work`. If a signal is received first, reports that it was stopped.
async fn unless_interrupted<T>(work: impl Future<Output = T>, stop: &mut Stop) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stop.requested() => {
            notice("stopped at once; what was in flight is lost");
            None
        }
    }
}

/// The verdict after serving on standard input and output.
fn stream_verdict(served: io::Result<()>) -> Result<Verdict, Failure> {
    let _ = io::stdout().flush();
    match served {
        // A client that disconnects while a message is being sent to it is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::command(format!(
            "the client's streams failed: {}",
            io_error::describe(&error)
        ))),
        _ => Ok(Verdict::Fine),
    }
}

/// A line for each server, and the warnings about variants.
fn introduction(gateway: &Gateway, file: &ConfigSource) -> String {
    let notes = upstream_variant_notes(&gateway.servers())
        + &extension_notes(&gateway.undecided_extensions());
    let notes = sanitize(notes.trim_end());
    let notes = if notes.is_empty() {
        notes
    } else {
        format!("\n{notes}")
    };
    server_lines(gateway, file.naming, &file.left_out)
        + &notes
        + &unmatched_warnings(gateway, &file.name, &file.places)
}

/// The entry for a server at `url` in the configuration of a client. One that `has_keys` needs the key of the client.
pub(crate) fn client_entry(name: &str, url: &str, has_keys: bool) -> String {
    let mut entry = json!({"type": "http", "url": url});
    if has_keys {
        entry["headers"] = json!({"Authorization": "Bearer ${VARY_API_KEY}"});
    }
    json!({"mcpServers": {name: entry}}).to_string()
}

/// For a person who expects an address or a prompt.
const STDIO_HINT: &str = "waiting for an MCP client on standard input, which is a terminal here: --stdio is for programs that \
     start Vary; leave it out to serve over HTTP, or press Ctrl-C";
const SHUTTING_DOWN: &str = "shutting down (Ctrl-C again to quit immediately)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_left_is_no_failure() {
        let left = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(stream_verdict(Err(left)).unwrap(), Verdict::Fine);
        let broken = io::Error::from(io::ErrorKind::InvalidData);
        assert!(stream_verdict(Err(broken)).is_err());
    }
}
