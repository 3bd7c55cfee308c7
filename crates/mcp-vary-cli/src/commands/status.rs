//! `vary status`: the status of a running gateway.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use http::{Method, StatusCode};
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status as Standing, VariantId};
use mcp_vary_gateway::{AuditStats, DirectoryUse, ModelRankingStatus, VariantStatus};
use serde_json::Value;

use crate::commands::operate::{WRONG_TOKEN, written_token};
use crate::environment::variable;
use crate::failure::{Failure, Verdict};
use crate::operator::client::{GatewayAddress, not_the_operators};
use crate::print::deprecation::deprecation_notice;
use crate::print::servers::plural;
use crate::print::table::table;
use crate::print::{self, sanitize, sanitize_json};
use crate::stop::Stop;

pub(crate) mod args;
mod clients;
mod document;
mod gauges;
mod process;
mod server_table;
mod servers;

pub(crate) use clients::deprecated_use;
pub(crate) use document::ReceivedStatus;

use args::Status;
use clients::{clients, people, savings};
use document::{ServerStatus, StatusDocument};
use gauges::gauges;
use process::process_lines;
use server_table::colored;
use servers::servers;

/// Requests the status and prints it, with `--watch` until a signal is received.
pub(crate) async fn run(args: Status, mut stop: Stop) -> Result<Verdict, Failure> {
    match args.watch {
        None => stop.unless_requested(show(&args)).await,
        Some(seconds) => watch(&args, Duration::from_secs(seconds), &mut stop).await,
    }
}

/// Prints the status again and again. A gateway that has ended is waited for.
async fn watch(args: &Status, pause: Duration, stop: &mut Stop) -> Result<Verdict, Failure> {
    let has_cursor = print::terminal::has_cursor(&io::stdout());
    let mut verdict = stop.unless_requested(show(args)).await?;
    let mut is_away = false;
    loop {
        tokio::select! {
            () = stop.requested() => return Ok(verdict),
            () = tokio::time::sleep(pause) => {}
        }
        if !has_cursor && !args.json && !is_away {
            print::data("\n")?;
        }
        let shown = tokio::select! {
            () = stop.requested() => return Ok(verdict),
            shown = show(args) => shown,
        };
        match shown {
            Ok(shown) => (verdict, is_away) = (shown, false),
            // Once: the last status stays on the screen.
            Err(_) if is_away => {}
            Err(failure) => {
                (verdict, is_away) = (Verdict::Failed, true);
                print::notice(&format!("{failure}; Ctrl-C ends the wait for it"));
            }
        }
    }
}

/// Requests the status once and prints it.
async fn show(args: &Status) -> Result<Verdict, Failure> {
    let address = GatewayAddress::find_running(args.address.as_deref(), "status").await?;
    let ReceivedStatus { json, document } = fetch_from(&address).await?;
    let known = address.known_by().map_or_else(String::new, |known| {
        let process = process_lines(&address.about().unwrap_or_default(), &document);
        sanitize(&format!("{known}\n{process}"))
    });
    print::data(&match (args.json, args.watch) {
        (true, None) => sanitize_json(&format!("{json:#}\n")),
        (true, Some(_)) => sanitize_json(&format!("{json}\n")),
        (false, None) => known + &shown(&document, usize::MAX, ""),
        (false, Some(_)) if print::terminal::has_cursor(&io::stdout()) => {
            CLEAR.to_owned() + &shown(&document, print::height(), &gauges(&document))
        }
        (false, Some(_)) => shown(&document, usize::MAX, &gauges(&document)),
    })?;
    let is_up = document.servers.iter().all(ServerStatus::is_usable);
    let audit = document.audit.as_ref();
    let is_audited = audit.is_none_or(|audit| audit.error.is_none());
    Ok(Verdict::fine_if(is_up && is_audited))
}

/// The status as text, and what follows: as wide as the terminal and as high as `height` at most, and in colour if it shows
/// that.
fn shown(status: &StatusDocument, height: usize, end: &str) -> String {
    let width = if io::stdout().is_terminal() {
        print::width()
    } else {
        usize::MAX
    };
    let text = sanitize(&fitted(&to_text(status, width), height, end));
    if print::terminal::has_color(&io::stdout()) {
        colored(&text)
    } else {
        text
    }
}

/// The `text` and its `end` in less than `height` lines: the last ones of the text are left out.
fn fitted(text: &str, height: usize, end: &str) -> String {
    let room = height.saturating_sub(end.lines().count() + 2).max(1);
    let count = text.lines().count();
    if count <= room {
        return text.to_owned() + end;
    }
    let shown: String = text.split_inclusive('\n').take(room).collect();
    format!(
        "{shown}... {} more lines: `vary status` shows all\n{end}",
        count - room
    )
}

/// Clears a terminal and moves to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The status of the gateway at the address that was typed; without one, of the running gateway of this user.
pub(crate) async fn fetch(typed: Option<&str>) -> Result<ReceivedStatus, Failure> {
    fetch_from(&GatewayAddress::find_running(typed, "status").await?).await
}

/// The document that [`fetch`] reads, as it was received.
pub(crate) async fn fetch_json(typed: Option<&str>) -> Result<Value, Failure> {
    fetch_json_from(&GatewayAddress::find_running(typed, "status").await?).await
}

async fn fetch_from(address: &GatewayAddress) -> Result<ReceivedStatus, Failure> {
    let received = ReceivedStatus::read(fetch_json_from(address).await?);
    received.map_err(|error| {
        Failure::command(format!(
            "the status of {address} cannot be read: {error}; is it another version of Vary?"
        ))
    })
}

async fn fetch_json_from(address: &GatewayAddress) -> Result<Value, Failure> {
    let answer = request_status(address).await;
    answer.map_err(|why| Failure::command(format!("no status from {address}: {why}")))
}

async fn request_status(address: &GatewayAddress) -> Result<Value, String> {
    let token = variable("VARY_ADMIN_TOKEN").or_else(|| written_token(address));
    let request = address.request(Method::GET, "/status?tokens", token.as_deref(), TIMEOUT);
    let (status, body) = request.await?;
    let parsed = serde_json::from_slice(&body).ok();
    let answer = parsed.filter(|answer: &Value| answer["servers"].is_array());
    match answer {
        Some(answer) if status == StatusCode::OK => Ok(answer),
        _ if status == StatusCode::UNAUTHORIZED => Err(format!("it {WRONG_TOKEN}")),
        _ => Err(not_the_operators(status, "status")),
    }
}

/// A table for the servers, one for the variants, one for who uses deprecated ones.
fn to_text(status: &StatusDocument, width: usize) -> String {
    let mut out = format!(
        "vary {}, up for {}, {}\n\n",
        status.version.as_deref().unwrap_or("-"),
        duration(status.uptime),
        plural(status.sessions.unwrap_or(0), "session"),
    );
    out.push_str(&servers(&status.servers, width));
    if !status.variants.is_empty() {
        out.push('\n');
        out.push_str(&variants(&status.variants));
    }
    for missing in &status.missing_keys {
        let _ = write!(out, "\n{missing}; {NO_KEYS}\n");
    }
    out.push_str(&clients(status));
    out.push_str(&people(&status.people));
    if status.people_need_token {
        out.push_str(NO_PEOPLE);
    }
    out.push_str(&savings(&status.savings));
    out.push_str(&deprecated_use(status));
    out.push_str(&directory_use(&status.directory_use));
    if let Some(ranking) = &status.model_ranking {
        out.push_str(&model_ranking(ranking));
    }
    out.push_str(&counts(["rate limit", "refused"], &status.rate_limits));
    // What was refused or dropped; counters at zero are omitted, and what asks nothing of anybody is for `--json`.
    let mut counters = status.counters.clone();
    counters.remove("dropped-logs");
    out.push_str(&counts(["since the start", "count"], &counters));
    if let Some(log) = &status.audit {
        out.push_str(&audit(log));
    }
    out
}

/// Why no people are shown, after an empty line.
const NO_PEOPLE: &str =
    "\npeople are shown only with the token: set VARY_ADMIN_TOKEN to `admin-token`\n";

/// What follows from the keys of an issuer that were not fetched.
pub(crate) const NO_KEYS: &str = "until they are, each token of this issuer is answered with 503";

/// How often a model ranked variants, after an empty line, and why it did not.
fn model_ranking(ranking: &ModelRankingStatus) -> String {
    let failures = counts(["no ranking by the model", "count"], &ranking.failures);
    format!(
        "\nmodel ranking: {} requests, {} used, {} postponed\n{failures}",
        ranking.requests, ranking.used, ranking.postponed
    )
}

/// What the audit log has written, after an empty line.
fn audit(audit: &AuditStats) -> String {
    let failure = audit.error.as_ref();
    let error = failure.map_or_else(String::new, |error| {
        format!("the audit log cannot be written: {error}\n")
    });
    format!(
        "\naudit log: {} written, {} lost, {} refused, {} queued\n{error}",
        audit.written, audit.lost, audit.refused, audit.queued
    )
}

/// Counts by name under a heading, after an empty line; empty if there are none.
fn counts(heading: [&str; 2], counts: &BTreeMap<impl ToString, u64>) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let head = heading.map(str::to_owned).to_vec();
    let rows = counts
        .iter()
        .map(|(name, count)| vec![name.to_string(), count.to_string()]);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    format!("\n{}", table(&rows, 1))
}

/// The gateway's variants, as far as the status contains them.
pub(crate) fn known_variants(status: &StatusDocument) -> Vec<ServerVariant> {
    let variant = |entry: &VariantStatus| {
        let mut variant = ServerVariant::new(entry.id.clone(), "");
        variant.status = entry.status;
        if variant.status == Standing::Deprecated {
            let mut info = DeprecationInfo::new("");
            info.replacement = entry.replacement.clone();
            info.removal_date = entry.removal_date.clone();
            variant.deprecation_info = Some(info);
        }
        variant
    };
    status.variants.iter().map(variant).collect()
}

/// How tools were used in variants whose schemas are on demand, after an empty line; empty if none was.
fn directory_use(uses: &[DirectoryUse]) -> String {
    if uses.is_empty() {
        return String::new();
    }
    let heading = [
        "tool",
        "server",
        "described",
        "refused",
        "repaired",
        "unchecked",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut reasons = Vec::new();
    for used in uses {
        let tool = used.tool.as_deref().unwrap_or("others");
        let server = used.server.as_deref().unwrap_or("others");
        rows.push(vec![
            tool.to_owned(),
            server.to_owned(),
            used.described.to_string(),
            used.refused.to_string(),
            used.repaired.to_string(),
            used.unchecked.to_string(),
        ]);
        if let Some(reason) = &used.reason {
            reasons.push(format!("{tool}: its schema is not checked: {reason}\n"));
        }
    }
    format!("\n{}{}", table(&rows, 2), reasons.concat())
}

/// A number as text; `-` if it is not known.
fn number<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// The variants with what they list, below each by what it is replaced and when.
fn variants(variants: &[VariantStatus]) -> String {
    let mut rows = vec![
        ["variant", "status", "tools", "tokens"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(variants.iter().map(|variant| {
        vec![
            variant.id.as_str().to_owned(),
            variant.status.as_str().to_owned(),
            variant.tools.to_string(),
            number(variant.tokens),
        ]
    }));
    let mut out = String::new();
    for (at, line) in table(&rows, 2).lines().enumerate() {
        let variant = at.checked_sub(1).and_then(|at| variants.get(at));
        let farewell = variant.map(|variant| {
            deprecation_notice(
                variant.replacement.as_ref().map(VariantId::as_str),
                variant.removal_date.as_deref(),
                variant.days_left,
            )
        });
        let ending = farewell.filter(|text| !text.is_empty());
        let farewell = ending.map_or_else(String::new, |text| format!("  {text}\n"));
        let _ = write!(out, "{line}\n{farewell}");
    }
    out
}

/// A number of seconds as text, in the two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let mut remaining = seconds;
    let mut parts = Vec::new();
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
        if remaining >= length || (unit == "s" && parts.is_empty()) {
            parts.push(format!("{}{unit}", remaining / length));
            remaining %= length;
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

/// The time limit for the gateway's answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a gateway reports that has something to say in each table.
    fn full_status() -> StatusDocument {
        let status = json!({
            "version": "1.2.3", "uptime": 90_061, "sessions": 1,
            "servers": [
                {"name": "git", "state": "up", "since": 59, "tools": 7, "revisions": ["2025-11-25", "2026-07-28"],
                    "connections": {"open": 31, "limit": 256, "evicted": 4}, "dedicated": {"open": 5, "limit": 256, "evicted": 2},
                    "calls": {"count": 1204, "errors": 7, "cancelled": 2, "p50": 3.25, "p95": 48.123},
                    "undeclared": {"prompts/list": false, "tools/list": true}, "login": {"expires": 86400, "refreshed": false, "ended": false}},
                {"name": "far", "state": "down", "since": 3600, "reason": "server `far` ended (exit status: 1)", "stderr": ["no database"], "nextAttempt": 12},
                {"name": "half", "state": "up", "since": 5, "tools": 0,
                    "calls": {"count": 3, "errors": 0, "cancelled": 3, "p50": 120.4, "p95": 12_345.0}, "failedLists": {"prompts/list": "too long"},
                    "upstreamVariants": ["agent", "human"]},
            ],
            "variants": [
                {"id": "new", "status": "stable", "default": true, "tools": 12, "tokens": 1927},
                {"id": "old", "status": "deprecated", "default": false, "tools": 7, "replacement": "new", "removalDate": "2027-01-31", "daysLeft": 3},
            ],
            "clients": [
                {"client": {"name": "claude-code", "version": "2.1"}, "variant": "new", "reason": "rule", "requests": 14, "calls": 12, "last": 7},
                {"client": {"name": "cursor", "version": "1"}, "variant": "new", "reason": "ranking", "requests": 3, "calls": 1, "last": 7},
                {"client": {"name": "goose", "version": "1"}, "variant": "old", "reason": "ranking", "requests": 3, "calls": 1, "last": 7},
                {"client": {"name": "vary", "version": "1.2.3"}, "variant": "new", "reason": "selector", "requests": 5, "calls": 0, "last": 7},
                {"client": {"name": "vary", "version": "1.2.2"}, "variant": "old", "reason": "selector", "requests": 5, "calls": 0, "last": 7},
                {"client": {"name": "", "version": ""}, "requests": 2, "calls": 0, "last": 6},
            ],
            "people": [
                {"person": "ann", "requests": 14, "calls": 12, "refused": 1, "tokens": 3200, "last": 7},
                {"person": "CN=ci", "requests": 3, "calls": 1, "refused": 0, "tokens": 90, "last": 6},
            ],
            "savings": {
                "total": {"without": 9274, "with": 1310},
                "clients": [
                    {"client": "claude-code", "person": "ann", "without": 9174, "with": 1210},
                    {"client": "", "without": 100, "with": 100},
                ],
                "days": {"2026-11-26": {"without": 1000, "with": 20}, "2026-11-28": {"without": 9274, "with": 1310}},
            },
            "deprecatedUse": [
                {"variant": "old", "client": {"name": "bot", "version": ""}, "requests": 12, "last": 7},
                {"variant": "old", "client": null, "requests": 1, "last": 7},
            ],
            "directoryUse": [
                {"server": null, "tool": null, "described": 9, "refused": 0, "repaired": 0, "unchecked": 0},
                {"server": "git", "tool": "log", "described": 2, "refused": 12, "repaired": 11, "unchecked": 1, "reason": "no"},
            ],
            "modelRanking": {"requests": 9, "used": 5, "postponed": 2, "cached": 7, "failures": {"not-json": 3, "timeout": 1}},
            "rateLimits": {"calls": 0, "searches": 17},
            "counters": {"dropped-logs": 4, "refused-duplicate-members": 3, "refused-lookalike-members": 12},
            "audit": {"written": 812, "lost": 3, "refused": 0, "queued": 2, "error": "No space left on device"},
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_shorter_names() {
        let mut status = full_status();
        status.servers[1].name = "the-company-wide-knowledge-base-server".to_owned();
        let shown = |width| {
            let shown = servers(&status.servers, width);
            shown.lines().take(6).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(80), @r"
        server                                  state  tools  calls  errors      p95
        git                                     up         7   1204       7  48.1 ms
        the-company-wide-knowledge-base-server  down       -      -       -        -
          server `far` ended (exit status: 1); next attempt in 12 s
          stderr: no database
        half                                    up         0      3       0   12.3 s
        ");
        insta::assert_snapshot!(shown(50), @r"
        server        state  tools  calls  errors      p95
        git           up         7   1204       7  48.1 ms
        the-company…  down       -      -       -        -
          server `far` ended (exit status: 1); next attempt in 12 s
          stderr: no database
        half          up         0      3       0   12.3 s
        ");
    }

    #[test]
    fn a_status_without_its_people_says_what_shows_them() {
        let mut status = full_status();
        status.people.clear();
        status.people_need_token = true;
        let shown = to_text(&status, usize::MAX);
        assert!(
            shown.contains(NO_PEOPLE) && !shown.contains("refused  tokens"),
            "{shown}"
        );
    }

    /// SV-25
    #[test]
    fn a_status_is_shown_as_tables() {
        insta::assert_snapshot!(to_text(&full_status(), usize::MAX), @r#"
        vary 1.2.3, up for 1d 1h, 1 session

        server  state  for  revisions               tools  connections  dedicated  evicted  calls  errors      p50      p95
        git     up     59s  2025-11-25, 2026-07-28      7       31/256      5/256        6   1204       7  3.25 ms  48.1 ms
        far     down   1h                               -            -          -        -      -       -        -        -
          server `far` ended (exit status: 1); next attempt in 12 s
          stderr: no database
        half    up     5s                               0            -          -        -      3       0   120 ms   12.3 s
          server `half`: its prompts could not be read: too long; it is read again with the next request of a client

        server `git` also answers `tools/list`, which it does not declare
        login at `git`: until 1970-01-02 00:00 UTC
        server `half` offers variants of its own: `agent`, `human`. Vary uses `agent`; add `variant` to its entry to select one, and another entry for each further one

        variant  status      tools  tokens
        new      stable         12    1927
        old      deprecated      7       -
          use `new` instead · 3 days left (2027-01-31)

        client       version  variant  reason    requests  calls
        claude-code  2.1      new      rule            14     12
        cursor       1        new      default          3      1
        goose        1        old      ranking          3      1
        vary         1.2.2    old      selector         5      0
        -            -        -        -                2      0
        without 5 requests of `vary` itself

        person  requests  calls  refused  tokens
        ann           14     12        1    3200
        CN=ci          3      1        0      90

        client       person  tokens  without Vary  saved
        claude-code  ann       1210          9174   7964
        -            -          100           100      0

        tokens saved: 7964 since the start, 8944 in the last 30 days

        deprecated use of  by      version  requests
        old                bot     -              12
        old                others  -               1

        tool    server  described  refused  repaired  unchecked
        others  others          9        0         0          0
        log     git             2       12        11          1
        log: its schema is not checked: no

        model ranking: 9 requests, 5 used, 2 postponed

        no ranking by the model  count
        not-json                     3
        timeout                      1

        rate limit  refused
        calls             0
        searches         17

        since the start            count
        refused-duplicate-members      3
        refused-lookalike-members     12

        audit log: 812 written, 3 lost, 0 refused, 2 queued
        the audit log cannot be written: No space left on device
        "#);
    }
}
