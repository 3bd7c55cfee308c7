//! `vary serve`: a gateway in front of one server, until it is stopped.

use std::io::{self, Write as _};
use std::pin::pin;

use mcp_vary_gateway::{Config, Gateway, UpstreamConfig};
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
    let name = config.upstream.name.clone();
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
    let verdict = until_ending(serving.gateway(), stop).await;
    talk("stopping; once more to stop at once");
    let stopped = unless_hurried(serving.stop(), stop).await;
    stopped.unwrap_or(Ok(())).map(|()| verdict)
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
    let verdict = tokio::select! {
        served = &mut serving => {
            unless_hurried(gateway.close(), stop).await;
            return ended(served, Verdict::Fine);
        }
        verdict = until_ending(&gateway, stop) => verdict,
    };
    talk("stopping; once more to stop at once");
    let _ = ask.send(());
    let finish = async {
        let served = serving.await;
        gateway.close().await;
        served
    };
    let served = unless_hurried(finish, stop).await;
    ended(served.unwrap_or(Ok(())), verdict)
}

/// Waits for a signal or the end of the server behind, which it says.
async fn until_ending(gateway: &Gateway, stop: &mut Stop) -> Verdict {
    tokio::select! {
        () = stop.asked() => Verdict::Fine,
        reason = gateway.server_ended() => {
            talk(&format!("error: {}", harmless(&reason)));
            Verdict::Failed
        }
    }
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
fn ended(served: io::Result<()>, verdict: Verdict) -> Result<Verdict, Failure> {
    let _ = io::stdout().flush();
    match served {
        // A client that left while something was on its way to it changes nothing.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::command(format!(
            "the client's streams failed: {error}"
        ))),
        _ => Ok(verdict),
    }
}

/// Who is behind, in one line.
pub(crate) fn introduction(gateway: &Gateway) -> String {
    let hello = gateway.hello();
    let info = hello
        .server_info
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let server = crate::print::server_line(info.as_ref(), hello.revision.as_str());
    let tools = match gateway.tool_count() {
        Some(1) => "1 tool".to_owned(),
        Some(count) => format!("{count} tools"),
        None => "no tools".to_owned(),
    };
    harmless(&format!("in front of {server}, {tools}"))
}

/// What a client's configuration says of a server at `url`.
pub(crate) fn entry(name: &str, url: &str) -> String {
    json!({"mcpServers": {name: {"type": "http", "url": url}}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_left_does_not_hide_that_the_server_failed() {
        for verdict in [Verdict::Fine, Verdict::Failed] {
            let left = io::Error::from(io::ErrorKind::BrokenPipe);
            assert_eq!(ended(Err(left), verdict).unwrap(), verdict);
            assert_eq!(ended(Ok(()), verdict).unwrap(), verdict);
        }
    }
}
