//! `vary serve`: a gateway in front of one server, until it is stopped.

use std::io::{self, Write as _};
use std::pin::pin;

use mcp_vary_gateway::upstream::State;
use mcp_vary_gateway::{Config, Gateway, ServerReport, UpstreamConfig};
use serde_json::json;
use tokio::sync::oneshot;

use crate::args::Serve;
use crate::failure::{Failure, Verdict};
use crate::outside::outside;
use crate::print::{harmless, talk};
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{mcp_json, target};

/// Serves until a signal comes or the server behind ends; a second signal ends at once what is still
/// running.
pub(crate) async fn run(args: Serve, mut stop: Stop) -> Result<Verdict, Failure> {
    let upstream = server_behind(&args)?;
    let config = Config::new(upstream, outside()?)
        .with_variants(!args.no_variants)
        .with_negotiation(!args.no_negotiation);
    if args.stdio {
        on_stdio(config, &mut stop).await
    } else {
        on_http(&args.listen, config, &mut stop).await
    }
}

fn server_behind(args: &Serve) -> Result<UpstreamConfig, Failure> {
    match (&args.url, &args.mcp_json) {
        (Some(url), _) => target::url(url, &args.headers),
        (None, Some(path)) => {
            let shown = path.display();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::command(format!("{shown} cannot be read: {error}")))?;
            mcp_json::read(&text, args.server.as_deref(), &variable)
                .map_err(|error| Failure::command(format!("{shown} {error}")))
        }
        (None, None) => target::command(&args.command),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the file asks for variables of the environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn on_http(listen: &str, config: Config, stop: &mut Stop) -> Result<Verdict, Failure> {
    // Before the server is started, which may take long, so that a taken port is said first.
    let listener = serving::listen(listen).await?;
    let name = config.servers[0].name.clone();
    let serving = tokio::select! {
        serving = Serving::start(config, listener) => serving?,
        () = stop.asked() => return Err(Failure::command("interrupted before the server was ready")),
    };
    talk(&format!(
        "{}\nserving at {}",
        introduction(serving.gateway()),
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
    stop.asked().await;
    talk("stopping; once more to stop at once");
    let stopped = unless_hurried(serving.stop(), stop).await;
    stopped.unwrap_or(Ok(())).map(|()| Verdict::Fine)
}

async fn on_stdio(config: Config, stop: &mut Stop) -> Result<Verdict, Failure> {
    let gateway = tokio::select! {
        gateway = Gateway::start(config) => gateway?,
        () = stop.asked() => return Err(Failure::command("interrupted before the server was ready")),
    };
    talk(&introduction(&gateway));
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
    }
    talk("stopping; once more to stop at once");
    let _ = ask.send(());
    let finish = async {
        let served = serving.await;
        gateway.close().await;
        served
    };
    let served = unless_hurried(finish, stop).await;
    ended(served.unwrap_or(Ok(())))
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

/// Who is behind, a line for each server.
pub(crate) fn introduction(gateway: &Gateway) -> String {
    let servers = gateway.servers();
    let lines = servers.iter().map(|server| harmless(&introduce(server)));
    lines.collect::<Vec<_>>().join("\n")
}

fn introduce(server: &ServerReport) -> String {
    let Some(hello) = &server.hello else {
        return match &server.state {
            State::Down { error, .. } => format!("not there yet: {error}"),
            _ => format!(
                "not there yet: server `{}` is still being started",
                server.name
            ),
        };
    };
    let info = hello.server_info.as_deref();
    let info = info.and_then(|text| serde_json::from_str(text).ok());
    let line = crate::print::server_line(info.as_ref(), hello.revision.as_str());
    let tools = server.counts.iter().find(|(list, _)| *list == "tools/list");
    let tools = match tools {
        Some((_, 1)) => "1 tool".to_owned(),
        Some((_, count)) => format!("{count} tools"),
        None => "no tools".to_owned(),
    };
    format!("in front of {line}, {tools}")
}

/// What a client's configuration says of a server at `url`.
pub(crate) fn entry(name: &str, url: &str) -> String {
    json!({"mcpServers": {name: {"type": "http", "url": url}}}).to_string()
}

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
