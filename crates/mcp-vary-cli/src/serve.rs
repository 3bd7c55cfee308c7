//! `vary serve`: a gateway in front of one server, until it is stopped.

use std::io::Write as _;

use mcp_vary_gateway::{Config, Gateway, UpstreamConfig};
use serde_json::json;

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
    let verdict = tokio::select! {
        () = stop.asked() => Verdict::Fine,
        reason = serving.gateway().server_ended() => {
            talk(&format!("error: {}", harmless(&reason)));
            Verdict::Failed
        }
    };
    talk("stopping; once more to stop at once");
    tokio::select! {
        stopped = serving.stop() => stopped.map(|()| verdict),
        () = stop.asked() => Ok(verdict),
    }
}

async fn on_stdio(config: Config, stop: &mut Stop) -> Result<Verdict, Failure> {
    let gateway = tokio::select! {
        gateway = Gateway::start(config) => gateway?,
        () = stop.asked() => return Err(Failure::command("interrupted before the server was ready")),
    };
    talk(&introduction(&gateway));
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let mut verdict = Verdict::Fine;
    let until = async {
        tokio::select! {
            () = stop.asked() => {}
            reason = gateway.server_ended() => {
                talk(&format!("error: {}", harmless(&reason)));
                verdict = Verdict::Failed;
            }
        }
    };
    let served = gateway.serve_stdio(input, output, until).await;
    tokio::select! {
        () = gateway.close() => {}
        () = stop.asked() => {}
    }
    let _ = std::io::stdout().flush();
    match served {
        Ok(()) => Ok(verdict),
        // The client left while something was on its way to it.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Verdict::Fine),
        Err(error) => Err(Failure::command(format!(
            "the client's streams failed: {error}"
        ))),
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
