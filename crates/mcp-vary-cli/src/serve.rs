//! `vary serve`: a gateway in front of servers, until it is stopped.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_vary_config::{File, Places};
use mcp_vary_gateway::{Config, Gateway, ServerReport};
use mcp_vary_upstream::State;
use serde_json::json;
use tokio::sync::oneshot;

use crate::admin::Door;
use crate::args::Serve;
use crate::failure::{Failure, Verdict};
use crate::outside::outside;
use crate::print::servers::{plural, reason};
use crate::print::table::table;
use crate::print::{harmless, talk};
use crate::reloading::{Fixed, Reloading};
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{chain, file, target};

/// Serves until a signal comes; a second signal ends at once what is still running.
pub(crate) async fn run(args: Serve, mut stop: Stop) -> Result<Verdict, Failure> {
    let Behind {
        config,
        listen,
        admin,
        reloading,
        said,
    } = Behind::typed(&args)?;
    // Clients are answered when the wait is over, whatever is there by then.
    let patience = config.start_patience;
    let config = config.starting_without_servers(patience);
    let admin = match admin {
        Some(address) => Some(Door::open(&address).await?),
        None => None,
    };
    let mut reloads = Reloads {
        reloading,
        args: &args,
    };
    if args.stdio {
        on_stdio(config, admin, &said, &mut reloads, &mut stop).await
    } else {
        on_http((&listen, config, admin), &said, &mut reloads, &mut stop).await
    }
}

/// What is served, and where.
#[derive(Debug)]
struct Behind {
    config: Config,
    listen: String,
    /// Where the operator may ask how it stands.
    admin: Option<String>,
    reloading: Option<Reloading>,
    said: Said,
}

/// What the file says, for what is said of it.
#[derive(Debug, Default)]
struct Said {
    name: String,
    places: Places,
    /// The servers whose entries cannot be used.
    left_out: Vec<String>,
}

impl Behind {
    fn typed(args: &Serve) -> Result<Self, Failure> {
        if let Some(path) = args.config.as_ref().or(args.mcp_json.as_ref()) {
            return Self::of_file(path, args);
        }
        let server = match &args.url {
            Some(url) => target::url(url, &args.headers)?,
            None => target::command(&args.command)?,
        };
        Ok(Self {
            config: adapted(args, Config::new(server, outside()?), None)?,
            listen: args.listen.clone().unwrap_or_else(|| LISTEN.to_owned()),
            admin: args.admin.clone(),
            reloading: None,
            said: Said::default(),
        })
    }

    fn of_file(path: &Path, args: &Serve) -> Result<Self, Failure> {
        let text = file::text(path)?;
        let file = file::checked(&path.display().to_string(), &text, args.server.as_deref())?;
        let (typed, written) = (args.listen.clone(), file.listen.clone());
        let is_written = typed.is_none() && !args.stdio;
        let fixed = Fixed {
            listen: is_written.then(|| written.clone()),
            admin: args.admin.is_none().then(|| file.admin.clone()),
        };
        let (places, left_out) = (file.places.clone(), file.left_out.clone());
        let reloading = Reloading::new(path, text, fixed)?;
        let listen = typed.or(written);
        let admin = args.admin.clone().or(file.admin.clone());
        Ok(Self {
            config: read(args, file)?,
            listen: listen.unwrap_or_else(|| LISTEN.to_owned()),
            admin,
            reloading: Some(reloading),
            said: Said {
                name: path.display().to_string(),
                places,
                left_out: left_out.into_iter().map(|it| it.name).collect(),
            },
        })
    }
}

/// What a file comes to with what was typed beside it.
pub(crate) fn read(args: &Serve, file: File) -> Result<Config, Failure> {
    let start_wait = file.start_wait;
    if args.require_all && !file.left_out.is_empty() {
        let names = file.left_out.iter().map(|it| format!("`{}`", it.name));
        let names: Vec<_> = names.collect();
        let why = format!(
            "{} cannot be used, and --require-all is given",
            names.join(", ")
        );
        return Err(Failure::command(why));
    }
    adapted(args, file.into_config(outside()?), start_wait)
}

/// The configuration with what was typed beside it.
fn adapted(
    args: &Serve,
    mut config: Config,
    start_wait: Option<Duration>,
) -> Result<Config, Failure> {
    config.variants &= !args.no_variants;
    config.negotiation &= !args.no_negotiation;
    if let Some(id) = &args.variant {
        let chosen = config.with_default_variant(id);
        config = chosen.map_err(|error| Failure::command(format!("--variant: {error}")))?;
    }
    let are_several = config.servers.len() > 1;
    let usual = if are_several {
        START_WAIT
    } else {
        START_WAIT_FOR_ONE
    };
    config.start_patience = start_wait.unwrap_or(usual);
    config.start_without_servers = are_several;
    chain::behind_others(config)
}

/// What is read again while it is served: the file, if there is one.
struct Reloads<'a> {
    reloading: Option<Reloading>,
    args: &'a Serve,
}

impl Reloads<'_> {
    /// Keeps the gateway as the file says, for ever.
    async fn run(&mut self, gateway: &Arc<Gateway>) -> Infallible {
        match &mut self.reloading {
            Some(reloading) => reloading.run(gateway, self.args).await,
            None => std::future::pending().await,
        }
    }
}

async fn on_http(
    (listen, config, admin): (&str, Config, Option<Door>),
    said: &Said,
    reloads: &mut Reloads<'_>,
    stop: &mut Stop,
) -> Result<Verdict, Failure> {
    // Before the servers are started, which may take long, so that a taken port is said first.
    let listener = serving::listen(listen, "--listen").await?;
    let name = match &config.servers[..] {
        [server] => server.name.clone(),
        _ => "vary".to_owned(),
    };
    let serving = Serving::begin(config, listener).await?;
    let gateway = Arc::clone(serving.gateway());
    talk(&format!("{} at {}", starting(&gateway), serving.url()));
    let _admin = admin.map(|admin| admin.serve(&gateway));
    ready(&gateway, stop).await?;
    talk(&format!(
        "{}\nserving at {}",
        introduction(&gateway, said),
        serving.url()
    ));
    talk(&format!(
        "for a client's configuration: {}",
        entry(&name, &serving.url())
    ));
    talk(&format!(
        "to see its variants: vary inspect {}\nCtrl-C ends it",
        serving.url()
    ));
    tokio::select! {
        () = stop.asked() => {}
        never = reloads.run(&gateway) => match never {},
        never = late(&gateway) => match never {},
    }
    talk(SHUTTING_DOWN);
    let stopped = unless_hurried(serving.stop(), stop).await;
    stopped.unwrap_or(Ok(())).map(|()| Verdict::Fine)
}

async fn on_stdio(
    config: Config,
    admin: Option<Door>,
    said: &Said,
    reloads: &mut Reloads<'_>,
    stop: &mut Stop,
) -> Result<Verdict, Failure> {
    let gateway = Gateway::open(config).await;
    talk(&starting(&gateway));
    let _admin = admin.map(|admin| admin.serve(&gateway));
    ready(&gateway, stop).await?;
    talk(&introduction(&gateway, said));
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let (ask, asked) = oneshot::channel();
    let until = async { drop(asked.await) };
    let mut serving = pin!(gateway.serve_stdio(input, output, until));
    tokio::select! {
        served = &mut serving => {
            unless_hurried(gateway.close(), stop).await;
            return ended(served);
        }
        () = stop.asked() => {}
        never = reloads.run(&gateway) => match never {},
        never = late(&gateway) => match never {},
    }
    talk(SHUTTING_DOWN);
    let _ = ask.send(());
    let finish = async {
        let served = serving.await;
        gateway.close().await;
        served
    };
    let served = unless_hurried(finish, stop).await;
    ended(served.unwrap_or(Ok(())))
}

fn starting(gateway: &Gateway) -> String {
    let servers = gateway.servers();
    harmless(&match &servers[..] {
        [server] => format!("starting `{}`", server.name),
        several => format!("starting {}", plural(several.len(), "server")),
    })
}

/// Waits until clients are answered. The only server that fails until then ends the command.
async fn ready(gateway: &Gateway, stop: &mut Stop) -> Result<(), Failure> {
    serving::wait(gateway, stop, |_| false).await?;
    let failed = match &gateway.servers()[..] {
        [server] => match &server.state {
            State::Down { error, .. } => Failure::from(error.clone()),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    gateway.close().await;
    Err(failed)
}

/// Says which servers are ready that were not at the start, for ever.
async fn late(gateway: &Gateway) -> Infallible {
    let opened = Instant::now();
    let ready = |server: ServerReport| {
        let after = opened.elapsed().as_secs();
        let line = format!(
            "`{}` is ready after {after}s more: {}",
            server.name,
            said(&server)
        );
        talk(&harmless(&line));
    };
    gateway.late_servers(ready).await;
    std::future::pending().await
}

/// Does `work`, unless a signal comes first; then says that it was not done.
async fn unless_hurried<T>(work: impl Future<Output = T>, stop: &mut Stop) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stop.asked() => {
            talk("stopped at once; what was in flight is lost");
            None
        }
    }
}

/// How serving on streams ended.
fn ended(served: io::Result<()>) -> Result<Verdict, Failure> {
    let _ = io::stdout().flush();
    match served {
        // A client that left while something was on its way to it changes nothing.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::command(format!(
            "the client's streams failed: {error}"
        ))),
        _ => Ok(Verdict::Fine),
    }
}

/// Who is behind, a line for each server, and what is odd about the variants.
fn introduction(gateway: &Gateway, file: &Said) -> String {
    behind(gateway, file) + &slips(gateway, &file.name, &file.places)
}

fn behind(gateway: &Gateway, file: &Said) -> String {
    let servers = gateway.servers();
    if let ([server], []) = (&servers[..], &file.left_out[..]) {
        return harmless(&format!("in front of {}", said(server)));
    }
    let rows = servers
        .iter()
        .map(|server| vec![format!("  {}", server.name), said(server)]);
    let left_out = file.left_out.iter();
    let left_out = left_out.map(|name| {
        vec![
            format!("  {name}"),
            "left out: its entry cannot be used".to_owned(),
        ]
    });
    let rows = rows.chain(left_out);
    let mut out = format!("in front of {}\n", plural(servers.len(), "server"));
    out.push_str(&table(&rows.collect::<Vec<_>>(), 2));
    let collisions = gateway.collisions().len();
    if collisions > 0 {
        let count = plural(collisions, "collision");
        out.push_str(&format!(
            "{count} of names or URIs; `vary config check` shows them\n"
        ));
    }
    harmless(out.trim_end())
}

/// What the variants of the file say of things that are not there, a line for each.
pub(crate) fn slips(gateway: &Gateway, name: &str, places: &Places) -> String {
    let lines = gateway.slips().into_iter().map(|(variant, slip)| {
        let slip = places.slip(&variant, &slip);
        format!("\nwarning: {name}:{slip}")
    });
    let mut lines: Vec<_> = lines.collect();
    // What is said of every server's item of one name is one mistake of the file.
    lines.dedup();
    harmless(&lines.concat())
}

/// What a server says of itself, or why it says nothing.
fn said(server: &ServerReport) -> String {
    let (Some(hello), State::Up(_)) = (&server.hello, &server.state) else {
        return match &server.state {
            State::Connecting => {
                "still starting; what it offers is announced when it is ready".to_owned()
            }
            _ => format!("down: {}", reason(server).unwrap_or_default()),
        };
    };
    let info = hello.server_info.as_deref();
    let info = info.and_then(|text| serde_json::from_str(text).ok());
    let line = crate::print::server_line(info.as_ref(), hello.revision.as_str());
    let tools = server.counts.iter().find(|(list, _)| *list == "tools/list");
    let tools = match tools {
        Some((_, count)) => plural(*count, "tool"),
        None => "no tools".to_owned(),
    };
    format!("{line}, {tools}")
}

/// What a client's configuration says of a server at `url`.
pub(crate) fn entry(name: &str, url: &str) -> String {
    json!({"mcpServers": {name: {"type": "http", "url": url}}}).to_string()
}

/// Where to serve unless somebody says otherwise.
const LISTEN: &str = "127.0.0.1:8800";
/// How long clients wait for the slowest of several servers: some give up after 10 s, and what the others offer is
/// ready before.
const START_WAIT: Duration = Duration::from_secs(3);
/// The same before one server, without which there is nothing to list.
const START_WAIT_FOR_ONE: Duration = Duration::from_secs(8);
const SHUTTING_DOWN: &str = "shutting down (Ctrl-C again to quit immediately)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_left_is_no_failure() {
        let left = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(ended(Err(left)).unwrap(), Verdict::Fine);
        let broken = io::Error::from(io::ErrorKind::InvalidData);
        assert!(ended(Err(broken)).is_err());
    }
}
