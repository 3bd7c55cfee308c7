//! `vary demo`: the results of one server for three clients.

use std::fmt::Write as _;

use clap::Parser;
use mcp_vary_gateway::{Config, Target, UpstreamConfig};

use crate::client::{Client, ClientIdentity, result};
use crate::commands::inspect;
use crate::commands::serve::client_entry;
use crate::environment::{environment, program_path};
use crate::failure::{Failure, Verdict};
use crate::print::side_by_side::side_by_side;
use crate::print::wrap::wrap;
use crate::print::{self, progress};
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{server_target, tokens};

/// Call one server as three clients, print what each receives, then serve it
///
/// Starts a weather server that does not support the extensions, with Vary in front of it. Calls the same tool as
/// three clients and prints each result with its cost in tokens. Then serves until you stop it.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary demo --once")]
pub(crate) struct Demo {
    /// Exit after printing
    #[arg(long)]
    pub(crate) once: bool,
    /// Address to serve on [default: 127.0.0.1:8800, or any free port with --once]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

/// Prints the results of three clients. Without `--once`, then serves until a signal is received.
pub(crate) async fn run(args: Demo, mut stop: Stop) -> Result<Verdict, Failure> {
    let default = if args.once {
        "127.0.0.1:0"
    } else {
        "127.0.0.1:8800"
    };
    let listener = serving::listen(args.listen.as_deref().unwrap_or(default), "--listen").await?;
    let config = Config::new(weather()?, environment()?);
    let serving = Serving::start(config, listener, &mut stop).await?;
    let url = serving.url();
    let text = stop.unless_requested(show(&url)).await;
    let shown = text.and_then(|text| print::data(&text));
    if shown.is_ok() && !args.once {
        progress(&format!("\nserving at {}", url));
        progress(&format!(
            "for a client's configuration: {}",
            client_entry("weather", &url, false)
        ));
        progress(
            "for your own server: vary serve -- npx -y @modelcontextprotocol/server-filesystem .\nCtrl-C ends it",
        );
        stop.requested().await;
    }
    let stopped = tokio::select! {
        stopped = serving.stop() => stopped,
        () = stop.requested() => Ok(()),
    };
    shown.and(stopped).map(|()| Verdict::Fine)
}

/// The weather server: this program with a hidden subcommand.
fn weather() -> Result<UpstreamConfig, Failure> {
    let program = program_path()?;
    let target = Target::command(program.to_string_lossy(), ["weather".to_owned()]);
    Ok(UpstreamConfig::new("weather", target))
}

async fn show(url: &str) -> Result<String, Failure> {
    let mut blocks = Vec::new();
    for (who, features) in CLIENTS {
        let identity = ClientIdentity::from_args(*features, &[])?;
        let client = Client::connect(server_target::url(url, &[], None)?, &identity).await?;
        let answer = client.call(TOOL, ARGUMENTS, None).await?;
        let title = match features {
            Some(features) => format!("{who}\n{}", features.replace(',', ", ")),
            None => format!("{who}\n(nothing declared)"),
        };
        blocks.push(result::block(&title, &answer));
        client.close().await;
    }
    let mut out = format!("The same call, {TOOL} {ARGUMENTS}, by three clients:\n\n");
    out.push_str(&side_by_side(&blocks, print::width()));
    let variants = wrap(&variants(url).await?, print::width());
    let _ = writeln!(out, "\n{}", variants.join("\n"));
    Ok(out)
}

/// The cost of the tools in each variant, in one line.
async fn variants(url: &str) -> Result<String, Failure> {
    let client = Client::connect(
        server_target::url(url, &[], None)?,
        &ClientIdentity::default(),
    )
    .await?;
    let variants = inspect::variant_tools(&client, Vec::new(), None).await?;
    client.close().await;
    let whole = inspect::baseline(&variants).map_or(0, |variant| variant.tokens);
    let costs = variants.iter().map(|variant| {
        let percent = tokens::percent(variant.tokens, whole);
        format!(
            "{} {} tokens ({percent} %)",
            variant.id().unwrap_or("all"),
            variant.tokens
        )
    });
    Ok(format!(
        "Its list of tools, by variant: {}",
        costs.collect::<Vec<_>>().join(" · ")
    ))
}

/// The clients and their features.
const CLIENTS: &[(&str, Option<&str>)] = &[
    ("an agent", Some("agent,format=json")),
    ("a person", Some("human,format=markdown")),
    ("any other client", None),
];
const TOOL: &str = "get_weather";
const ARGUMENTS: &str = r#"{"location":"Bern"}"#;
