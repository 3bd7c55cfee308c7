//! `vary config check`: what is wrong with a configuration, and what its servers offer.

mod report;

use std::fmt::Write as _;
use std::sync::Arc;

use http::Uri;
use mcp_vary::variant::VariantId;
use mcp_vary_config::{File, Mistake};
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
use crate::tokens;

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
                format!("{mistakes}\n\n{}", verdict(mistakes.all.len()))
            };
            return print(&args, &shown).map(|()| Verdict::Failed);
        }
    };
    let refused = refused(&name, &file);
    if args.offline {
        let shown = if args.json {
            report::read(&name, &file, &refused)
        } else {
            let (opening, places) = (opening(&name, &file), places(&file.servers));
            let shown = refused_lines(&refused);
            format!("{opening}\n{places}{shown}\n{}", verdict(refused.len()))
        };
        return print(&args, &shown).map(|()| judged(refused.len()));
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
    let down = servers
        .iter()
        .filter(|server| !is_up(&server.state))
        .count();
    let problems = down + slips.len() + refused.len();
    let variants = if file.declares_variants() {
        gateway.tools()
    } else {
        Vec::new()
    };
    let shown = if args.json {
        let found = report::Found {
            servers: &servers,
            slips: &slips,
            collisions: &collisions,
            variants: &variants,
            refused: &refused,
        };
        report::connected(&name, &file, &found)
    } else {
        let (standing, collided) = (standing(&servers), collided(&collisions));
        format!(
            "{}\n{standing}{collided}{}{}{}\n{}",
            opening(&name, &file),
            costs(&variants),
            slipped(&name, &slips),
            refused_lines(&refused),
            verdict(problems),
        )
    };
    let printed = print(&args, &shown);
    tokio::select! {
        () = gateway.close() => {}
        () = stop.asked() => {}
    }
    printed.map(|()| judged(problems))
}

fn judged(problems: usize) -> Verdict {
    match problems {
        0 => Verdict::Fine,
        _ => Verdict::Failed,
    }
}

/// The last line, which agrees with the exit code.
fn verdict(problems: usize) -> String {
    match problems {
        0 => "OK\n".to_owned(),
        count => format!("{}\n", plural(count, "problem")),
    }
}

/// What is wrong although the file can be read: what `serve` would leave out, ignore or refuse.
fn refused(name: &str, file: &File) -> Vec<String> {
    let mut refused = crate::file::left_out(name, file);
    let variants = file.notes.iter().filter(|note| note.key == "variants");
    refused.extend(variants.map(|note| format!("{name}:{note}")));
    for (key, address) in [("listen", &file.listen), ("admin", &file.admin)] {
        let why = address.as_deref().and_then(serving::unusable);
        let at = file.addresses_at.get(key);
        let at = at.map_or_else(String::new, |at| format!(":{at}"));
        refused.extend(why.map(|why| format!("{name}{at}: `{key}`: {why}")));
    }
    refused
}

fn refused_lines(refused: &[String]) -> String {
    let lines: Vec<_> = refused.iter().map(|line| format!("{line}\n")).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}", lines.concat()),
    }
}

/// The variants, with what their tools cost.
fn costs(variants: &[(VariantId, Vec<String>)]) -> String {
    if variants.is_empty() {
        return String::new();
    }
    let mut rows = vec![["variant", "tools", "tokens"].map(str::to_owned).to_vec()];
    for (id, tools) in variants {
        let tokens = tokens::count_array(tools);
        rows.push(vec![
            id.to_string(),
            tools.len().to_string(),
            tokens.to_string(),
        ]);
    }
    format!("\n{}", table(&rows, 1))
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
    let mut out = format!("{name} is valid: {}", plural(file.servers.len(), "server"));
    if !file.disabled.is_empty() {
        let _ = write!(out, ", disabled: {}", file.disabled.join(", "));
    }
    out.push('\n');
    for note in file.notes.iter().filter(|note| note.key != "variants") {
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
