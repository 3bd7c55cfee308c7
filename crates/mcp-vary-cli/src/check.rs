//! `vary config check`: what is wrong with a configuration, and what its servers offer.

mod report;

use std::fmt::Write as _;
use std::sync::Arc;

use http::Uri;
use mcp_vary::variant::VariantId;
use mcp_vary_gateway::config::{File, Mistake};
use mcp_vary_gateway::{Config, Gateway, Target, UpstreamConfig};

use crate::args::Check;
use crate::chain;
use crate::failure::{Failure, Verdict};
use crate::file::patient;
use crate::outside::outside;
use crate::print::servers::{collided, is_up, plural, standing};
use crate::print::table::table;
use crate::print::{self, harmless, harmless_json};
use crate::serving;
use crate::stop::Stop;

/// Reads, then connects unless told not to; prints what is found as data.
pub(crate) async fn run(args: Check, mut stop: Stop) -> Result<Verdict, Failure> {
    let name = args.file.display().to_string();
    let text = crate::file::text(&args.file)?;
    let file = match crate::file::parse(&name, &text, None) {
        Ok(file) => file,
        Err(mistakes) => {
            let shown = if args.json {
                report::refused(&mistakes)
            } else {
                let count = plural(mistakes.all.len(), "mistake");
                format!("{mistakes}\n\n{count}\n")
            };
            return print(&args, &shown).map(|()| Verdict::Failed);
        }
    };
    if args.offline {
        let shown = if args.json {
            report::read(&name, &file)
        } else {
            format!("{}\n{}", opening(&name, &file), places(&file.servers))
        };
        return print(&args, &shown).map(|()| Verdict::Fine);
    }
    let config = patient(file.clone().into_config(outside()?));
    let patience = config.start_patience;
    let config = config.starting_without_servers(patience);
    let gateway = connect(config, &mut stop).await?;
    let (servers, collisions) = (gateway.servers(), gateway.collisions());
    let slips = gateway.slips().into_iter().map(|(variant, slip)| {
        let slip = file.places.slip(&variant, &slip);
        (variant, slip)
    });
    let mut slips: Vec<_> = slips.collect();
    // What is said of every server's item of one name is one mistake of the file.
    slips.dedup();
    let shown = if args.json {
        report::connected(&name, &file, &servers, &slips, &collisions)
    } else {
        let (standing, collided) = (standing(&servers), collided(&collisions));
        format!(
            "{}\n{standing}{collided}{}",
            opening(&name, &file),
            slipped(&name, &slips)
        )
    };
    let printed = print(&args, &shown);
    tokio::select! {
        () = gateway.close() => {}
        () = stop.asked() => {}
    }
    let all_up = servers.iter().all(|server| is_up(&server.state));
    printed.map(|()| match all_up && slips.is_empty() {
        true => Verdict::Fine,
        false => Verdict::Failed,
    })
}

fn print(args: &Check, shown: &str) -> Result<(), Failure> {
    print::data(&match args.json {
        true => harmless_json(shown),
        false => harmless(shown),
    })
}

async fn connect(config: Config, stop: &mut Stop) -> Result<Arc<Gateway>, Failure> {
    let gateway = Gateway::open(chain::behind_others(config)?).await;
    serving::wait(&gateway, stop, |_| false).await?;
    Ok(gateway)
}

/// What the variants say of items that are not there, or call by one name.
fn slipped(name: &str, slips: &[(VariantId, Mistake)]) -> String {
    let mut out = String::new();
    for (_, slip) in slips {
        let start = if out.is_empty() { "\n" } else { "" };
        let _ = writeln!(out, "{start}{name}:{slip}");
    }
    out
}

/// What reading the file told.
fn opening(name: &str, file: &File) -> String {
    let mut out = format!(
        "{name} reads well: {}",
        plural(file.servers.len(), "server")
    );
    if !file.disabled.is_empty() {
        let _ = write!(out, ", disabled: {}", file.disabled.join(", "));
    }
    out.push('\n');
    for note in &file.notes {
        let _ = writeln!(out, "note: {name}:{note}");
    }
    out
}

/// Where the servers are, without what may be secret.
fn places(servers: &[UpstreamConfig]) -> String {
    let rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| {
            let place = match &server.target {
                Target::Command { program, .. } => format!("starts {program}"),
                Target::Http { url, .. } => format!("connects to {}", origin(url)),
                _ => String::new(),
            };
            vec![server.name.clone(), place]
        })
        .collect();
    table(&rows, 2)
}

/// Without user, path and query, which may hold keys.
fn origin(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}"));
    format!(
        "{}://{}{}",
        url.scheme_str().unwrap_or("http"),
        url.host().unwrap_or_default(),
        port.unwrap_or_default()
    )
}
