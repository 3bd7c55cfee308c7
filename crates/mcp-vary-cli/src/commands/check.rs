//! `vary check`: whether a server or a client does what the documents of the extensions say.

pub(crate) mod args;

use std::path::Path;
use std::time::{Duration, Instant};

use mcp_vary_conformance::{
    Check, ClientCommand, Options, Report, RunError, Target, registry, relay, run as run_checks,
    run_client,
};

use mcp_vary_gateway::{Config, Gateway, UpstreamConfig};
use mcp_vary_upstream::ConnectionState;
use tokio::time::timeout;

use crate::client::{Client, ClientIdentity};
use crate::credentials::{self, LoginMode, file_with_logins, with_logins};
use crate::environment::{environment, program_path};
use crate::failure::{Failure, Verdict};
use crate::file::with_full_start_wait;
use crate::print::table::table;
use crate::print::{self, Progress, notice, sanitize_json};
use crate::server_target::args::{ServerTarget, TargetFile};
use crate::serving::chain;
use crate::serving::start_report::server_status;
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{file, server_target};

use args::{Format, ServerCheck};

/// Checks the server or client, and prints the report. The server or client is ended if this started it.
pub(crate) async fn run(args: ServerCheck, mut stop: Stop) -> Result<Verdict, Failure> {
    if let Some(address) = args.relay {
        return relay_lines(address, stop).await.map(|()| Verdict::Fine);
    }
    if args.list {
        return print::data(&list(&args)?).map(|()| Verdict::Fine);
    }
    let options = args.checks.options(args.client)?;
    if args.client {
        let report = check_client(&args, &options, &mut stop).await?;
        return print_report(&report, args.format);
    }
    let named = args
        .target
        .resolve(args.named.as_deref(), "vary check")
        .await?;
    let report = match &named {
        ServerTarget::File(_) | ServerTarget::Command(_) if !args.other_headers.is_empty() => {
            let error = "--other-header needs a URL; only requests to a URL have headers";
            return Err(Failure::command(error));
        }
        ServerTarget::File(file) => {
            let limit = args.checks.time_limit();
            check_configuration(file, options, limit, &mut stop).await?
        }
        ServerTarget::Url { url, headers, ca } => {
            let target = endpoint(url, headers, &args.other_headers)?;
            let target = trusting(target, ca.as_deref())?;
            let target = logged_in(target, url, (headers, ca.as_deref())).await?;
            match check(&target, &options, &mut stop).await? {
                Ok(report) => report,
                Err(error) => {
                    let server = server_target::url(url, headers, ca.as_deref())?;
                    let failure = no_report(&target, &error);
                    return Err(explained(failure, &error, server, &mut stop).await?);
                }
            }
        }
        ServerTarget::Command(command) => {
            let parsed = Target::command(command);
            let target = parsed.map_err(|error| Failure::command(error.to_string()))?;
            let checked = check(&target, &options, &mut stop).await?;
            checked.map_err(|error| no_report(&target, &error))?
        }
    };
    print_report(&report, args.format)
}

fn print_report(report: &Report, format: Format) -> Result<Verdict, Failure> {
    let text = report.render(format.into());
    print::data(&match format {
        Format::Json => sanitize_json(&text),
        _ => text,
    })?;
    if report.passes() || report.fails() {
        return Ok(Verdict::fine_if(report.passes()));
    }
    let seconds = report.needed_seconds();
    Err(Failure::command(format!(
        "not finished: time ran out before all checks had run; run the command again with `--time-limit {seconds}`"
    )))
}

/// Starts the client after `--` before the mock server.
async fn check_client(
    args: &ServerCheck,
    options: &Options,
    stop: &mut Stop,
) -> Result<Report, Failure> {
    let command = &args.target.command;
    let parsed = if args.stdio {
        let program = program_path()?.display().to_string();
        ClientCommand::stdio(command, [&*program, "check", "--relay"])
    } else {
        ClientCommand::http(command)
    };
    let client = parsed.map_err(|_| Failure::command(CLIENT_ADVICE))?;
    let _progress = Progress::show(&format!("checking {client} ..."));
    let checked = async {
        let report = run_client(&client, options).await;
        report.map_err(|error| {
            let advice = match error {
                RunError::NoClient(_) => CONNECTION_ADVICE,
                _ => "",
            };
            Failure::command(format!("{client}: {error}{advice}"))
        })
    };
    stop.unless_requested(checked).await
}

const CLIENT_ADVICE: &str = "--client needs the command of a client after `--`, such as \
     `vary check --client -- python3 client.py`";

/// What to do about a client that does not connect.
const CONNECTION_ADVICE: &str = "; the command has to connect to the URL that is its last argument (with --stdio: to the \
     command that its last arguments are), list the tools, call some, and end";

/// Is the mock server of a client that starts it as a command.
async fn relay_lines(address: String, mut stop: Stop) -> Result<(), Failure> {
    let relayed = async {
        let joined = tokio::task::spawn_blocking(move || relay(&address)).await;
        let relayed = joined.map_err(std::io::Error::other).flatten();
        relayed.map_err(|error| Failure::command(format!("--relay: {error}")))
    };
    stop.unless_requested(relayed).await
}

/// The server at `url`, with the headers of the run's principal and those of another.
fn endpoint(url: &str, headers: &[String], others: &[String]) -> Result<Target, Failure> {
    server_target::http_url(url, url).map_err(Failure::command)?;
    let mut target = Target::http(url).map_err(|error| Failure::command(error.to_string()))?;
    for header in headers {
        let (name, value) = read_header("a --header", header)?;
        target = target
            .with_header(name, value)
            .map_err(|error| Failure::command(format!("a --header cannot be used: {error}")))?;
    }
    for header in others {
        let (name, value) = read_header("an --other-header", header)?;
        let named = target.with_other_header(name, value);
        target = named.map_err(|error| {
            Failure::command(format!("an --other-header cannot be used: {error}"))
        })?;
    }
    Ok(target)
}

/// The `target`, which may show certificates of the authorities in the file `ca`.
fn trusting(target: Target, ca: Option<&Path>) -> Result<Target, Failure> {
    let Some(ca) = ca else {
        return Ok(target);
    };
    let trusting = target.with_authorities(file::text(ca)?.as_bytes());
    trusting.map_err(|error| Failure::command(format!("--ca {}: {error}", ca.display())))
}

/// The `target` with the stored login at `url`, unless the `headers` have another one.
async fn logged_in(
    target: Target,
    url: &str,
    (headers, ca): (&[String], Option<&Path>),
) -> Result<Target, Failure> {
    let mut names = headers.iter().filter_map(|header| header.split_once(':'));
    if names.any(|(name, _)| name.trim().eq_ignore_ascii_case("authorization")) {
        return Ok(target);
    }
    let login = credentials::authorization(url, ca).await?;
    let Some(value) = login.as_ref().and_then(|value| value.to_str().ok()) else {
        return Ok(target);
    };
    let added = target.with_header("Authorization", value);
    added.map_err(|error| Failure::command(error.to_string()))
}

/// The name and the value of a header.
fn read_header<'a>(option: &str, header: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let (name, value) = header.split_once(':').ok_or_else(|| {
        Failure::command(format!(
            "{option} cannot be read; write it as 'Name: value'"
        ))
    })?;
    Ok((name.trim(), value.trim()))
}

async fn check(
    target: &Target,
    options: &Options,
    stop: &mut Stop,
) -> Result<Result<Report, RunError>, Failure> {
    let _progress = Progress::show(&format!("checking {target} ..."));
    let checked = async { Ok(run_checks(target, options).await) };
    stop.unless_requested(checked).await
}

/// The failure of a run without a report.
fn no_report(target: &Target, error: &RunError) -> Failure {
    let advice = match error {
        RunError::NoEra { http_statuses, .. } if http_statuses.contains(&401) => CREDENTIALS_ADVICE,
        _ => "",
    };
    Failure::command(format!("{target}: {error}{advice}"))
}

/// The `failure` of a check, or why `vary inspect` cannot connect to the server either, which names what to do.
async fn explained(
    failure: Failure,
    error: &RunError,
    server: UpstreamConfig,
    stop: &mut Stop,
) -> Result<Failure, Failure> {
    let config = Config::new(server, environment()?);
    let server = with_logins(config, LoginMode::Stored).servers.pop();
    let Some(mut server) = server else {
        return Ok(failure);
    };
    server.limits.handshake = CONNECT_LIMIT;
    let connecting = async {
        match Client::connect(server, &ClientIdentity::default()).await {
            Err(reason) => Ok(reason),
            Ok(client) => {
                client.close().await;
                // It answers Vary, and not the check.
                let is_older = matches!(error, RunError::NoEra { http_statuses, .. }
                    if http_statuses.iter().any(|status| matches!(status, 404 | 405)));
                let why = "the server has only the transport of 2024-11-05 (SSE), which `vary check` does not speak; \
                           `vary inspect` and `vary serve` do";
                Ok(if is_older {
                    Failure::command(why)
                } else {
                    failure
                })
            }
        }
    };
    stop.unless_requested(connecting).await
}

/// How long to look for the reason why a server cannot be checked.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What to do about a server that wants credentials.
const CREDENTIALS_ADVICE: &str = "; it wants a token: add --header 'Authorization: Bearer TOKEN', log in with `vary login URL`, or write it into \
     `headers` of the server in a configuration";

/// Serves the configuration in this process, and checks the gateway, both within `limit`.
async fn check_configuration(
    file: &TargetFile,
    options: Options,
    limit: Duration,
    stop: &mut Stop,
) -> Result<Report, Failure> {
    let began = Instant::now();
    let config = file_with_logins(file.read()?, LoginMode::Stored)?;
    let config = with_full_start_wait(config);
    let config = chain::with_ancestors(config)?;
    let listener = serving::listen("127.0.0.1:0", "--listen").await?;
    let serving = Serving::begin(config, listener).await?;
    let started = serving::wait(serving.gateway(), stop, |_| false);
    let started = match timeout(limit, started).await {
        Ok(started) => started,
        Err(_) => Err(too_slow(serving.gateway(), limit)),
    };
    let limited = options.run_limit(limit.saturating_sub(began.elapsed()));
    let report = match (started, Target::http(&serving.url())) {
        (Ok(()), Ok(target)) => {
            note_missing(serving.gateway());
            let name = file.path.display().to_string();
            let named = target.with_name(name);
            let checked = check(&named, &limited, stop).await;
            checked.and_then(|report| report.map_err(|error| no_report(&named, &error)))
        }
        (Err(failure), _) => Err(failure),
        (_, Err(error)) => Err(Failure::command(error.to_string())),
    };
    stop.unless_requested(serving.stop()).await?;
    report
}

/// Which servers used up the `limit` of the run.
fn too_slow(gateway: &Gateway, limit: Duration) -> Failure {
    let (ready, starting) = serving::names_by_state(gateway);
    let late = match &starting[..] {
        [] => "the lists of tools were not read".to_owned(),
        starting => serving::were(starting, "not ready", &ready),
    };
    let too_slow = RunError::TooSlow(limit.as_secs());
    Failure::command(format!("{late}: {too_slow}"))
}

/// Says which servers are not up, so that nothing of theirs is checked.
fn note_missing(gateway: &Gateway) {
    for server in gateway.servers() {
        if !matches!(server.state, ConnectionState::Connected(_)) {
            let status = server_status(&server);
            let name = &server.name;
            notice(&format!("`{name}` is {status}; nothing of it is checked"));
        }
    }
}

/// The checks that would run, with their levels and sentences.
fn list(args: &ServerCheck) -> Result<String, Failure> {
    let options = args.checks.options(args.client)?;
    let checks: Vec<&Check> = if args.client {
        registry::client_checks().collect()
    } else {
        registry::checks().collect()
    };
    let selected = checks.into_iter().filter(|check| options.selects(check));
    let rows: Vec<Vec<String>> = selected
        .map(|check| {
            let level = check.level.to_string();
            vec![check.id.to_owned(), level, check.does.to_owned()]
        })
        .collect();
    Ok(table(&rows, 3))
}
