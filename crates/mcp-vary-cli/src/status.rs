//! `vary status`: the status of a running gateway.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use http::{Method, StatusCode};
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status as Standing};
use serde_json::Value;

use crate::args::Status;
use crate::failure::{Failure, Verdict};
use crate::operator_client::{GatewayAddress, not_the_operators};
use crate::print::deprecation::deprecation_notice;
use crate::print::servers::plural;
use crate::print::table::table;
use crate::print::{self, sanitize, sanitize_json};
use crate::stop::Stop;

mod gauges;
mod server_table;
mod servers;

use gauges::gauges;
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
    loop {
        tokio::select! {
            () = stop.requested() => return Ok(verdict),
            () = tokio::time::sleep(pause) => {}
        }
        if !has_cursor && !args.json {
            print::data("\n")?;
        }
        let shown = tokio::select! {
            () = stop.requested() => return Ok(verdict),
            shown = show(args) => shown,
        };
        match shown {
            Ok(shown) => verdict = shown,
            Err(failure) => {
                verdict = Verdict::Failed;
                print::notice(&format!("{failure}; Ctrl-C ends the wait for it"));
            }
        }
    }
}

/// Requests the status once and prints it.
async fn show(args: &Status) -> Result<Verdict, Failure> {
    let address = GatewayAddress::find(args.address.as_deref(), "status").await?;
    let status = fetch_from(&address).await?;
    let known = address.known_by();
    let known = known.map_or_else(String::new, |known| sanitize(&format!("{known}\n")));
    let servers = list(&status, "servers");
    let is_usable = |server: &Value| server["state"] == "up" || server["state"] == "per-user";
    let is_up = servers.iter().all(is_usable);
    print::data(&match (args.json, args.watch) {
        (true, None) => sanitize_json(&format!("{status:#}\n")),
        (true, Some(_)) => sanitize_json(&format!("{status}\n")),
        (false, None) => known + &shown(&status, usize::MAX, ""),
        (false, Some(_)) if print::terminal::has_cursor(&io::stdout()) => {
            CLEAR.to_owned() + &shown(&status, print::height(), &gauges(&status))
        }
        (false, Some(_)) => shown(&status, usize::MAX, &gauges(&status)),
    })?;
    let is_audited = status["audit"]["error"].is_null();
    Ok(Verdict::fine_if(is_up && is_audited))
}

/// The status as text, and what follows: as wide as the terminal and as high as `height` at most, and in colour if it shows
/// that.
fn shown(status: &Value, height: usize, end: &str) -> String {
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
pub(crate) async fn fetch(typed: Option<&str>) -> Result<Value, Failure> {
    fetch_from(&GatewayAddress::find(typed, "status").await?).await
}

async fn fetch_from(address: &GatewayAddress) -> Result<Value, Failure> {
    let answer = tokio::time::timeout(TIMEOUT, ask(address)).await;
    answer
        .unwrap_or_else(|_| Err(format!("it did not answer within {TIMEOUT:?}")))
        .map_err(|why| Failure::command(format!("no status from {address}: {why}")))
}

async fn ask(address: &GatewayAddress) -> Result<Value, String> {
    let (status, body) = address.request(Method::GET, "/status?tokens", None).await?;
    let answer = serde_json::from_slice(&body).ok();
    let answer = answer.filter(|answer: &Value| answer["servers"].is_array());
    match answer {
        Some(answer) if status == StatusCode::OK => Ok(answer),
        _ => Err(not_the_operators(status, "status")),
    }
}

fn list<'a>(status: &'a Value, key: &str) -> &'a [Value] {
    status[key].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// A table for the servers, one for the variants, one for who uses deprecated ones.
fn to_text(status: &Value, width: usize) -> String {
    let sessions = usize::try_from(status["sessions"].as_u64().unwrap_or(0)).unwrap_or(0);
    let mut out = format!(
        "vary {}, up for {}, {}\n\n",
        text(&status["version"]),
        duration(status["uptime"].as_u64().unwrap_or(0)),
        plural(sessions, "session"),
    );
    out.push_str(&servers(list(status, "servers"), width));
    let variants = list(status, "variants");
    if !variants.is_empty() {
        out.push('\n');
        out.push_str(&self::variants(variants));
    }
    for missing in list(status, "missingKeys") {
        let _ = write!(out, "\n{}; {NO_KEYS}\n", text(missing));
    }
    out.push_str(&clients(status));
    out.push_str(&deprecated_use(status));
    out.push_str(&directory_use(list(status, "directoryUse")));
    out.push_str(&model_ranking(&status["modelRanking"]));
    out.push_str(&counts(["rate limit", "refused"], &status["rateLimits"]));
    // What was refused or dropped; counters at zero are omitted.
    out.push_str(&counts(["since the start", "count"], &status["counters"]));
    out.push_str(&audit(&status["audit"]));
    out
}

/// What follows from the keys of an issuer that were not fetched.
pub(crate) const NO_KEYS: &str = "until they are, each token of this issuer is answered with 503";

/// The recent clients after an empty line: the variant of each, and what selected it; empty if there are none.
fn clients(status: &Value) -> String {
    let is_own = |used: &&Value| {
        used["client"]["name"] == "vary" && used["client"]["version"] == status["version"]
    };
    let (by_vary, uses): (Vec<_>, Vec<_>) = list(status, "clients").iter().partition(is_own);
    let requests = by_vary
        .iter()
        .filter_map(|used| used["requests"].as_u64())
        .sum::<u64>();
    let note = match requests {
        0 => String::new(),
        requests => format!("without {requests} requests of `vary` itself\n"),
    };
    if uses.is_empty() {
        return String::new();
    }
    let default = list(status, "variants")
        .iter()
        .find(|it| it["default"] == true);
    let default = default.map_or(&Value::Null, |it| &it["id"]);
    let heading = [
        "client", "version", "variant", "reason", "requests", "calls",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for used in uses.iter().take(SHOWN_CLIENTS) {
        let name = |key: &str| match text(&used["client"][key]) {
            "" => "-".to_owned(),
            name => name.to_owned(),
        };
        let member = |key: &str| text(&used[key]).to_owned();
        let counts = ["requests", "calls"].map(|key| number(&used[key]));
        let rule = match used["rule"].as_str() {
            Some("variant") => "`variant` of the file",
            rule => rule.unwrap_or_default(),
        };
        let reason = match member("reason") {
            ranked if ranked == "ranking" && used["variant"] == *default => "default".to_owned(),
            reason => format!("{reason} {rule}"),
        };
        let row = [
            name("name"),
            name("version"),
            member("variant"),
            reason.trim_end().to_owned(),
        ];
        rows.push(row.into_iter().chain(counts).collect());
    }
    let more = uses.len().saturating_sub(SHOWN_CLIENTS);
    let more = match more {
        0 => String::new(),
        more => format!("and {more} more; --json shows all\n"),
    };
    format!("\n{}{more}{note}", table(&rows, 4))
}

/// How often a model ranked variants, after an empty line, and why it did not; nothing without one.
fn model_ranking(ranking: &Value) -> String {
    if !ranking.is_object() {
        return String::new();
    }
    let keys = ["requests", "used", "postponed"];
    let totals = keys.map(|key| format!("{} {key}", ranking[key]));
    let failures = counts(["no ranking by the model", "count"], &ranking["failures"]);
    format!("\nmodel ranking: {}\n{failures}", totals.join(", "))
}

/// What the audit log has written, after an empty line; nothing without one.
fn audit(audit: &Value) -> String {
    if !audit.is_object() {
        return String::new();
    }
    let keys = ["written", "lost", "refused", "queued"];
    let counts = keys.map(|key| format!("{} {key}", audit[key]));
    let error = audit["error"].as_str();
    let error = error.map_or_else(String::new, |error| {
        format!("the audit log cannot be written: {error}\n")
    });
    format!("\naudit log: {}\n{error}", counts.join(", "))
}

/// Counts by name under a heading, after an empty line; empty if there are none.
fn counts(heading: [&str; 2], counts: &Value) -> String {
    let Some(counts) = counts.as_object().filter(|all| !all.is_empty()) else {
        return String::new();
    };
    let heading = heading.map(str::to_owned).to_vec();
    let rows = counts
        .iter()
        .map(|(name, count)| vec![name.clone(), count.to_string()]);
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    format!("\n{}", table(&rows, 1))
}

/// The clients that use deprecated variants, after an empty line; empty if there are none.
pub(crate) fn deprecated_use(status: &Value) -> String {
    match list(status, "deprecatedUse") {
        [] => String::new(),
        uses => format!("\n{}", self::uses(uses)),
    }
}

/// The gateway's variants, as far as the status contains them.
pub(crate) fn known_variants(status: &Value) -> Vec<ServerVariant> {
    let variant = |entry: &Value| {
        let mut variant = ServerVariant::new(text(&entry["id"]).parse().ok()?, "");
        variant.status = serde_json::from_value(entry["status"].clone()).ok()?;
        if variant.status == Standing::Deprecated {
            let mut info = DeprecationInfo::new("");
            let replacement = entry["replacement"].as_str();
            info.replacement = replacement.and_then(|id| id.parse().ok());
            info.removal_date = entry["removalDate"].as_str().map(str::to_owned);
            variant.deprecation_info = Some(info);
        }
        Some(variant)
    };
    let variants = list(status, "variants").iter();
    variants.filter_map(variant).collect()
}

/// How tools were used in variants whose schemas are on demand, after an empty line; empty if none was.
fn directory_use(uses: &[Value]) -> String {
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
        let name = |key: &str| used[key].as_str().unwrap_or("others").to_owned();
        let counts = heading.iter().skip(2).map(|key| used[*key].to_string());
        rows.push(
            [name("tool"), name("server")]
                .into_iter()
                .chain(counts)
                .collect(),
        );
        if let Some(reason) = used["reason"].as_str() {
            reasons.push(format!(
                "{}: its schema is not checked: {reason}\n",
                name("tool")
            ));
        }
    }
    format!("\n{}{}", table(&rows, 2), reasons.concat())
}

fn number(value: &Value) -> String {
    let number = value.as_u64();
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// The variants with what they list, below each by what it is replaced and when.
fn variants(variants: &[Value]) -> String {
    let mut rows = vec![
        ["variant", "status", "tools", "tokens"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(variants.iter().map(|variant| {
        let names = ["id", "status"].map(|key| text(&variant[key]).to_owned());
        let counts = ["tools", "tokens"].map(|key| number(&variant[key]));
        names.into_iter().chain(counts).collect()
    }));
    let mut out = String::new();
    for (at, line) in table(&rows, 2).lines().enumerate() {
        let variant = at.checked_sub(1).and_then(|at| variants.get(at));
        let farewell = variant.map(|variant| {
            deprecation_notice(
                variant["replacement"].as_str(),
                variant["removalDate"].as_str(),
                variant["daysLeft"].as_i64(),
            )
        });
        let farewell = farewell.filter(|it| !it.is_empty());
        let farewell = farewell.map_or_else(String::new, |it| format!("  {it}\n"));
        let _ = write!(out, "{line}\n{farewell}");
    }
    out
}

fn uses(uses: &[Value]) -> String {
    let mut rows = vec![
        ["deprecated use of", "by", "version", "requests"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for used in uses {
        let client = |key: &str| match &used["client"] {
            Value::Null if key == "name" => "others".to_owned(),
            client => match client[key].as_str() {
                None | Some("") => "-".to_owned(),
                Some(text) => text.to_owned(),
            },
        };
        rows.push(vec![
            text(&used["variant"]).to_owned(),
            client("name"),
            client("version"),
            used["requests"].to_string(),
        ]);
    }
    table(&rows, 3)
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

/// The clients that are shown, the most recent ones.
const SHOWN_CLIENTS: usize = 20;

/// The time limit for the gateway's answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a gateway reports that has something to say in each table.
    fn full_status() -> Value {
        json!({
            "version": "1.2.3", "uptime": 90_061, "sessions": 1,
            "servers": [
                {"name": "git", "state": "up", "since": 59, "tools": 7, "revisions": ["2025-11-25", "2026-07-28"],
                    "connections": {"open": 31, "limit": 256, "evicted": 4}, "dedicated": {"open": 5, "limit": 256, "evicted": 2},
                    "calls": {"count": 1204, "errors": 7, "cancelled": 2, "p50": 3.25, "p95": 48.123},
                    "undeclared": {"prompts/list": false, "tools/list": true}, "login": {"expires": 86400, "refreshed": false, "ended": false}},
                {"name": "far", "state": "down", "since": 3600, "reason": "server `far` cannot be reached", "nextAttempt": 12},
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
            "counters": {"refused-duplicate-members": 3, "refused-lookalike-members": 12},
            "audit": {"written": 812, "lost": 3, "refused": 0, "queued": 2, "error": "No space left on device"},
        })
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_shorter_names() {
        let mut status = full_status();
        status["servers"][1]["name"] = json!("the-company-wide-knowledge-base-server");
        let shown = |width| {
            let shown = servers(list(&status, "servers"), width);
            shown.lines().take(5).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(80), @r"
        server                                  state  tools  calls  errors      p95
        git                                     up         7   1204       7  48.1 ms
        the-company-wide-knowledge-base-server  down       -      -       -        -
          server `far` cannot be reached; next attempt in 12 s
        half                                    up         0      3       0   12.3 s
        ");
        insta::assert_snapshot!(shown(50), @r"
        server        state  tools  calls  errors      p95
        git           up         7   1204       7  48.1 ms
        the-company…  down       -      -       -        -
          server `far` cannot be reached; next attempt in 12 s
        half          up         0      3       0   12.3 s
        ");
    }

    /// SV-25
    #[test]
    fn a_status_is_shown_as_tables() {
        insta::assert_snapshot!(to_text(&full_status(), usize::MAX), @r#"
        vary 1.2.3, up for 1d 1h, 1 session

        server  state  for  revisions               tools  connections  dedicated  evicted  calls  errors      p50      p95
        git     up     59s  2025-11-25, 2026-07-28      7       31/256      5/256        6   1204       7  3.25 ms  48.1 ms
        far     down   1h                               -            -          -        -      -       -        -        -
          server `far` cannot be reached; next attempt in 12 s
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
