//! `vary config check`: the mistakes of a configuration, and what its servers offer.

mod report;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use mcp_vary::json::Members;
use mcp_vary::variant::VariantId;
use mcp_vary_config::{Diagnostic, File, SecretFiles};
use mcp_vary_gateway::{Config, Gateway, Target, UpstreamConfig};
use mcp_vary_view::Candidate;

use self::report::Unmatched;
use super::args::Check;
use crate::commands::status::NO_KEYS;
use crate::credentials::{LoginMode, file_with_logins};
use crate::failure::{Failure, Verdict};
use crate::file::with_full_start_wait;
use crate::print::servers::{
    collision_table, extension_notes, is_up, naming_note, plural, status_table,
    upstream_variant_notes,
};
use crate::print::table::table;
use crate::print::{self, sanitize, sanitize_json, sanitize_line};
use crate::server_target::approval;
use crate::server_target::args::{FOUND, find_file};
use crate::serving::chain;
use crate::serving::{self, LISTEN};
use crate::stop::Stop;
use crate::tokens;

/// Reads the file, connects to the servers unless `--offline` is given, and prints the findings.
pub(crate) async fn run(args: Check, mut stop: Stop) -> Result<Verdict, Failure> {
    let usage = "vary config check";
    let path = args.file.as_deref().or(find_file()).ok_or_else(|| {
        let files = FOUND.join(" nor ");
        Failure::command(format!(
            "this directory has neither {files}; name a file as in `{usage} FILE`"
        ))
    })?;
    let name = path.display().to_string();
    let text = crate::file::text(path)?;
    if args.file.is_none() && !args.offline && !args.yes {
        approval::confirm(path, &text, &[], usage).await?;
    }
    let secrets = SecretFiles::beside(path);
    let file = match crate::file::parse(&name, &text, &[], &secrets, None) {
        Ok(file) => file,
        Err(mistakes) => {
            let shown = if args.json {
                report::invalid_file(&mistakes)
            } else {
                format!("{mistakes}\n\n{}", summary_line(mistakes.all.len()))
            };
            return print(&args, &shown).map(|()| Verdict::Failed);
        }
    };
    let refused = serve_problems(&name, &file);
    let checked = CheckedFile {
        name: &name,
        file: &file,
        refused: &refused,
        is_json: args.json,
    };
    let mut others = file.clone();
    others.servers.retain(|server| !is_own(server, &file));
    if args.offline || others.servers.is_empty() {
        return print(&args, &checked.offline()).map(|()| Verdict::fine_if(refused.is_empty()));
    }
    let config = file_with_logins(others, LoginMode::Stored)?;
    let waiting = with_full_start_wait(config);
    let start_wait = waiting.start_wait;
    let config = waiting.allow_empty_start(start_wait);
    let gateway = connect(config, &mut stop).await?;
    let (shown, problems) = checked.connected(&gateway);
    let printed = print(&args, &shown);
    for missing in stop
        .unless_requested(async { Ok(gateway.missing_keys().await) })
        .await?
    {
        let line = format!("note: {name}: `auth.issuers`: {missing}; {NO_KEYS}");
        print::notice(&sanitize_line(&line));
    }
    if let Some(note) = refused_names(&gateway) {
        print::notice(&sanitize_line(&format!("note: {name}: {note}")));
    }
    tokio::select! {
        () = gateway.close() => {}
        () = stop.requested() => {}
    }
    printed.map(|()| Verdict::fine_if(problems == 0))
}

/// A valid file, and the form of the report about it.
struct CheckedFile<'a> {
    name: &'a str,
    file: &'a File,
    /// What `serve` would leave out, ignore or refuse.
    refused: &'a [String],
    is_json: bool,
}

impl CheckedFile<'_> {
    /// The report without connecting to the servers.
    fn offline(&self) -> String {
        let Self {
            name,
            file,
            refused,
            is_json,
        } = *self;
        if is_json {
            return report::offline(name, file, refused);
        }
        let opening = file_summary(name, file);
        let targets = target_table(&file.servers);
        let shown = problem_lines(refused);
        format!(
            "{opening}\n{targets}{shown}\n{}",
            summary_line(refused.len())
        )
    }

    /// The report on what the servers offer, and the number of problems in it.
    fn connected(&self, gateway: &Gateway) -> (String, usize) {
        let servers = gateway.servers();
        let collisions = gateway.collisions();
        let (mut notes, unmatched) = self.unmatched(gateway);
        let down = servers.iter().filter(|server| !is_up(&server.state));
        let unread = servers.iter().map(|server| server.failed_lists.len());
        let missing = down.count() + unread.sum::<usize>();
        // What is down or could not be read may have all that is missing.
        if missing == 0 {
            let unmatched = unmatched_rules(self.file, gateway).into_iter();
            notes.extend(unmatched.map(|note| (None, note)));
        }
        let refused = &self.refused;
        let problems = missing + unmatched.len() + refused.len();
        let variants = if self.file.declares_variants() {
            gateway.tools()
        } else {
            Vec::new()
        };
        if self.is_json {
            let found = report::CheckResult {
                servers: &servers,
                notes: &notes,
                unmatched: &unmatched,
                collisions: &collisions,
                variants: &variants,
                problems: refused,
            };
            return (report::connected(self.name, self.file, &found), problems);
        }
        let mut states = status_table(&servers);
        if let Some(note) = naming_note(&gateway.served(), self.file.naming()) {
            let _ = write!(states, "\n{note}");
        }
        let collided = collision_table(&collisions);
        let upstream_notes =
            upstream_variant_notes(&servers) + &extension_notes(&gateway.undecided_extensions());
        let shown = format!(
            "{}\n{states}{upstream_notes}{collided}{}{}{}{}\n{}",
            file_summary(self.name, self.file),
            cost_table(&variants),
            unmatched_lines(&format!("note: {}", self.name), &notes),
            unmatched_lines(self.name, &unmatched),
            problem_lines(refused),
            summary_line(problems),
        );
        (shown, problems)
    }

    /// What the lists reveal of the variants, at its place: notes about guards that match nothing now, and mistakes, which
    /// are selections and overrides that match nothing, or names that are used twice.
    fn unmatched(&self, gateway: &Gateway) -> (Vec<Unmatched>, Vec<Unmatched>) {
        let all = gateway.unmatched_overrides();
        let mut notes = Vec::new();
        let mut mistakes = Vec::new();
        for (variant, diagnostic) in all {
            let placed = self.file.places.diagnostic(&variant, &diagnostic);
            let found = if diagnostic.is_note() {
                &mut notes
            } else {
                &mut mistakes
            };
            found.push((Some(variant), placed));
        }
        // One entry of the file can match nothing on several servers.
        notes.dedup();
        mistakes.dedup();
        (notes, mistakes)
    }
}

/// Notes about names in `access`, and about conditions in `results`, that fit nothing now.
pub(crate) fn unmatched_rules(file: &File, gateway: &Gateway) -> Vec<Diagnostic> {
    let served = gateway.served();
    let items = served.iter();
    let names = items.map(|item| (item.id.as_str(), item.upstream_name.as_str()));
    let mut notes = file.unmatched_access(&names.collect::<Vec<_>>());
    let listed = served.iter().filter(|item| item.list == "tools/list");
    let tools = listed.map(|item| Candidate {
        name: &item.id,
        upstream_name: &item.upstream_name,
        server: &item.server,
        hints: None,
    });
    notes.extend(file.unmatched_results(&tools.collect::<Vec<_>>()));
    notes
}

/// Whether the APIs of many models refuse a tool of this name.
fn is_refused_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.len() > 64 || !name.chars().all(is_plain)
}

/// What to do about such a name.
const NAME_ADVICE: &str = "they take at most 64 ASCII letters, digits, `_` and `-`; give the tool another `name` in `overrides` of a variant";

/// The names of tools, in any variant, that the APIs of many models refuse.
fn refused_names(gateway: &Gateway) -> Option<String> {
    let tools = gateway.tools().into_iter().flat_map(|(_, tools)| tools);
    let names = tools.filter_map(|tool| Members::parse(&tool).ok()?.get_str("name"));
    let refused: BTreeSet<String> = names.filter(|name| is_refused_name(name)).collect();
    let shown: Vec<_> = refused
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = refused.len().saturating_sub(shown.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let names = shown.join(", ");
    (!refused.is_empty())
        .then(|| format!("many models refuse the names {names}{more}: {NAME_ADVICE}"))
}

/// The last line, which agrees with the exit code.
fn summary_line(problems: usize) -> String {
    match problems {
        0 => "OK\n".to_owned(),
        count => format!("{}\n", plural(count, "problem")),
    }
}

/// Problems of a valid file: what `serve` would leave out, ignore or refuse.
fn serve_problems(name: &str, file: &File) -> Vec<String> {
    let mut refused = crate::file::left_out(name, file);
    let variants = file.notes.iter().filter(|note| note.key == "variants");
    refused.extend(variants.map(|note| format!("{name}:{note}")));
    let unreadable = file.check_tls().err();
    refused.extend(unreadable.map(|error| format!("{name}: {error}")));
    let configured = |address| {
        let checked = file.check_listen_address(address);
        checked.map_err(|error| error.to_string())
    };
    let anywhere = |_| Ok(());
    let allows: [&dyn Fn(SocketAddr) -> Result<(), String>; 3] =
        [&configured, &serving::only_loopback, &anywhere];
    let program = &file.program;
    let addresses = [
        ("listen", program.listen.as_deref()),
        ("admin", file.admin_address()),
        ("probes", program.probes.as_deref()),
    ];
    for ((key, address), allows) in addresses.into_iter().zip(allows) {
        let why = address.and_then(|address| serving::listen_problem(address, allows));
        let position = file.addresses_at.get(key);
        let at = position.map_or_else(String::new, |at| format!(":{at}"));
        refused.extend(why.map(|why| format!("{name}{at}: `{key}`: {why}")));
    }
    let position = file.addresses_at.get("audit.to");
    let at = position.map_or_else(String::new, |at| format!(":{at}"));
    let no_audit = file.check_audit().err();
    refused.extend(no_audit.map(|error| format!("{name}{at}: {error}")));
    let circular = file.servers.iter().filter(|server| is_own(server, file));
    refused.extend(circular.map(|server| {
        format!(
            "{name}: `servers.{}` has the address on which this file is served; take its entry out",
            server.name
        )
    }));
    refused
}

/// Whether the address of a server is the one on which the file is served.
fn is_own(server: &UpstreamConfig, file: &File) -> bool {
    let Target::Http { url, .. } = &server.target else {
        return false;
    };
    let listen = file.program.listen.as_deref().unwrap_or(LISTEN);
    let port = listen.rsplit(':').next();
    let is_loopback = matches!(url.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    is_loopback
        && url
            .port()
            .is_some_and(|of_url| port == Some(of_url.as_str()))
}

fn problem_lines(refused: &[String]) -> String {
    let lines: Vec<_> = refused.iter().map(|line| format!("{line}\n")).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n{}", lines.concat())
    }
}

/// The variants, with the cost of their tools.
fn cost_table(variants: &[(VariantId, Vec<String>)]) -> String {
    if variants.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["variant", "tools", "a model reads", "sent"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (id, tools) in variants {
        rows.push(vec![
            id.to_string(),
            tools.len().to_string(),
            tokens::count_tools(tools).to_string(),
            tokens::count_whole(tools).to_string(),
        ]);
    }
    format!("\n{}", table(&rows, 1))
}

fn print(args: &Check, shown: &str) -> Result<(), Failure> {
    print::data(&if args.json {
        sanitize_json(shown)
    } else {
        sanitize(shown)
    })
}

async fn connect(config: Config, stop: &mut Stop) -> Result<Arc<Gateway>, Failure> {
    let gateway = Gateway::open(chain::with_ancestors(config)?).await;
    serving::wait(&gateway, stop, |_| false).await?;
    Ok(gateway)
}

fn unmatched_lines(name: &str, unmatched: &[Unmatched]) -> String {
    let mut out = String::new();
    for (_, diagnostic) in unmatched {
        let start = if out.is_empty() { "\n" } else { "" };
        let _ = writeln!(out, "{start}{name}:{diagnostic}");
    }
    out
}

/// What the file has, with notes. Whether it is valid is in the last line.
fn file_summary(name: &str, file: &File) -> String {
    let mut out = format!("{name}: {}", plural(file.servers.len(), "server"));
    if !file.disabled.is_empty() {
        let _ = write!(out, ", disabled: {}", file.disabled.join(", "));
    }
    out.push('\n');
    for note in file.notes.iter().filter(|note| note.key != "variants") {
        let _ = writeln!(out, "note: {name}:{note}");
    }
    out
}

/// The targets of the servers, without parts that can be secret.
fn target_table(servers: &[UpstreamConfig]) -> String {
    let rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| {
            let place = match &server.target {
                Target::Command { program, .. } => format!("starts {program}"),
                Target::Http { url, .. } => format!("connects to {}", origin(url)),
                Target::InProcess(_) => "runs in this process".to_owned(),
            };
            vec![server.name.clone(), place]
        })
        .collect();
    table(&rows, 2)
}

/// Scheme, host and port. User, path and query can contain keys.
fn origin(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}"));
    format!(
        "{}://{}{}",
        url.scheme_str().unwrap_or("http"),
        url.host().unwrap_or_default(),
        port.unwrap_or_default()
    )
}
