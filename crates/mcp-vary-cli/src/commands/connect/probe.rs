//! Connects as the client will, from what was written.

use std::path::Path;
use std::time::Duration;

use mcp_vary::json::Members;
use mcp_vary_config::{ImportSource, SecretFiles, import};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Plan;
use super::client::Client as KnownClient;
use super::waiting::Waiting;
use crate::client::{Client, ClientIdentity};
use crate::failure::Failure;
use crate::file;
use crate::print::{notice, sanitize};
use crate::serving::start_report::limit_of;
use crate::stop::Stop;

/// Connects to the server of `snippet`, a client's file with Vary alone, and says in one line what it lists.
///
/// # Errors
///
/// If it cannot connect, with what to do.
pub(super) async fn probe(plan: &Plan, snippet: &str, stop: &mut Stop) -> Result<String, Failure> {
    let waiting = Waiting::begin(plan);
    let ending = CancellationToken::new();
    let connected = tokio::select! {
        connected = stop.ending(&ending, connect(plan.client, snippet, &waiting, &ending)) => connected,
        never = waiting.report(&ending) => match never {},
    };
    if ending.is_cancelled() {
        return Err(waiting.interruption());
    }
    connected
}

/// The tools of a gateway. While it has none but may list some later, its servers may be starting.
async fn first_tools(connected: &Client, waiting: &Waiting) -> Result<Vec<String>, Failure> {
    let capabilities: Value =
        serde_json::from_str(&connected.handshake().capabilities).unwrap_or_default();
    let may_change = capabilities["tools"]["listChanged"] == true;
    loop {
        let tools = connected.tools(None).await?;
        // Vary reports its servers once all of them are up or have failed.
        let is_settled = !servers_not_up(connected).is_empty() || connected.has_only_servers_down();
        if !tools.is_empty() || !may_change || is_settled || waiting.is_over() {
            return Ok(tools);
        }
        waiting.are_starting(&connected.starting_servers());
        tokio::time::sleep(PAUSE).await;
    }
}

/// The lines about servers that are down or left out, which the Vary that the client starts writes at its start.
fn servers_not_up(connected: &Client) -> Vec<String> {
    let lines = connected.stderr_lines().into_iter();
    let not_up = lines.filter(|line| NOT_UP.iter().any(|state| line.contains(state)));
    not_up.map(|line| line.trim().to_owned()).collect()
}

/// How the report of the start names the state of such a server.
const NOT_UP: [&str; 4] = [
    "down, and Vary keeps trying: ",
    "  down: ",
    "  left out: ",
    "is down: ",
];

/// The time between two lists.
const PAUSE: Duration = Duration::from_millis(500);

/// Connects, and ends the server again, also when `ending` is cancelled.
async fn connect(
    client: &KnownClient,
    snippet: &str,
    waiting: &Waiting,
    ending: &CancellationToken,
) -> Result<String, Failure> {
    let written = match client.project_directory {
        Some(directory) => {
            let relative = snippet.replace(&format!("{directory}/"), "");
            relative.replace(directory, ".")
        }
        None => snippet.to_owned(),
    };
    let source = ImportSource::new("the entry", &written).with_format(client.format);
    let read =
        import(&[source]).map_err(|diagnostics| Failure::command(diagnostics.to_string()))?;
    let read = file::parse(
        "the entry",
        &read.yaml,
        &[],
        &SecretFiles::new(Path::new(".")),
        None,
    )
    .map_err(|diagnostics| Failure::looked_at(diagnostics.to_string()))?;
    let first = read.servers.into_iter().next();
    let server = first.ok_or_else(|| Failure::command("the entry has no server"))?;
    let tried = Client::connect_until(server, &ClientIdentity::default(), ending).await;
    let connected = tried.map_err(|failure| match waiting.late() {
        Some(late) => Failure::looked_at(sanitize(&format!(
            "{late}; the first answer waits for all, as long as `start-wait` says"
        ))),
        None => failure.into_looked_at(),
    })?;
    let listed = ending
        .run_until_cancelled(first_tools(&connected, waiting))
        .await;
    let outcome = listed.unwrap_or_else(|| Ok(Vec::new()));
    waiting.look().await;
    let mut lines = servers_not_up(&connected);
    // Those that are left out were reported when the file was read.
    lines.retain(|line| !line.contains("  left out: "));
    let not_up = lines.join("\n  ");
    connected.close().await;
    let tools = outcome?;
    if tools.is_empty() && !not_up.is_empty() {
        return Err(Failure::looked_at(format!(
            "Vary starts, but no server behind it works:\n  {not_up}"
        )));
    }
    if !not_up.is_empty() {
        notice(&sanitize(&format!("not all servers work:\n  {not_up}")));
    }
    result_line(client, (&connected, waiting), &tools)
}

/// What the client gets, in a sentence.
///
/// # Errors
///
/// When it gets no tools, since servers are missing.
fn result_line(
    client: &KnownClient,
    (connected, waiting): (&Client, &Waiting),
    tools: &[String],
) -> Result<String, Failure> {
    let so_far = if connected.starting_servers().is_empty() {
        ""
    } else {
        " so far"
    };
    let to = waiting.connected();
    let missing = connected.missing_servers();
    let is_empty = tools.is_empty();
    if is_empty && let Some(missing) = &missing {
        let why = waiting.late().unwrap_or_else(|| missing.clone());
        return Err(Failure::looked_at(sanitize(&format!(
            "the gateway answers, but lists no tools: {why}{}",
            waiting.advice()
        ))));
    }
    let note = missing.map_or_else(String::new, |missing| format!("; {missing}"));
    let missing = match so_far {
        "" => note,
        _ => format!("{note}, and {}", waiting.outlook()),
    };
    let first = tools
        .first()
        .and_then(|tool| Members::parse(tool).ok()?.get_str("name"));
    let line = match (tools.len(), first) {
        (1, Some(name)) => format!("{to}: 1 tool{so_far}, `{name}`{missing}"),
        (count, Some(name)) => {
            format!("{to}: {count} tools{so_far}, `{name}` for one{missing}")
        }
        _ => return Ok(format!("{to}; it lists no tools")),
    };
    Ok(match limit_of(client.title) {
        Some(limit) if tools.len() > limit => format!(
            "{line}\nnote: {} uses at most {limit} of them: repeat the command with `--variant NAME`, of a variant with fewer \
             `tools`",
            client.title
        ),
        _ => line,
    })
}
