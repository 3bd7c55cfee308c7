//! Calls in the file of the audit log, which the gateway does not keep any more.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use http::StatusCode;
use jiff::Timestamp;
use mcp_vary_audit::{MAX_LINE_WITH_ARGUMENTS, SCHEMA_VERSION, read_line};
use mcp_vary_gateway::Gateway;
use serde_json::{Value, json};

use crate::events::{MOST_CALLS, seconds};
use crate::query::parameter;
use crate::response::{PageAnswer, failure, json as json_answer};

/// The response to `GET /api/recorded`: the last calls in the audit log that ended between `from` and `to`, seconds since
/// 1970-01-01 UTC, as `/api/last-calls` has them but without texts of errors, which the filters of the page want. `isCut`: whether there are more, or the file was too long to be read whole.
pub(crate) fn respond(gateway: &Gateway, query: &str) -> PageAnswer {
    let Some(path) = gateway.audit_file() else {
        return failure(StatusCode::NOT_FOUND, NO_FILE);
    };
    let wanted = Wanted::read(query);
    let mut calls = VecDeque::new();
    let mut is_cut = false;
    let read = read_records(&path, wanted.from, wanted.to, |place, record| {
        if let Some(call) = shown(place, record).filter(|call| wanted.matches(call)) {
            calls.push_front(call);
            is_cut |= calls.len() > MOST_CALLS;
            calls.truncate(MOST_CALLS);
        }
    });
    match read {
        Ok(is_whole) => json_answer(&json!({"calls": calls, "isCut": is_cut || !is_whole})),
        Err(error) => {
            let why = unreadable(&path, &error);
            failure(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

/// Which calls are wanted: the seconds between which they ended, the values that some of their members have, and what the words of
/// a search have in common with their texts.
struct Wanted {
    from: f64,
    to: f64,
    values: Vec<(&'static str, String)>,
    outcome: String,
    /// In lower case, without the `*` of patterns, which the page compares itself.
    words: Vec<String>,
}

impl Wanted {
    fn read(query: &str) -> Self {
        let second = |name| parameter(query, name).parse::<f64>().ok();
        let values = MEMBERS.map(|(name, place)| (place, parameter(query, name)));
        let search = parameter(query, "q").to_lowercase();
        Self {
            from: second("from").unwrap_or_default(),
            to: second("to").unwrap_or(f64::MAX),
            values: values
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            outcome: parameter(query, "outcome"),
            words: search
                .split(|letter: char| letter.is_whitespace() || letter == '*')
                .map(str::to_owned)
                .collect(),
        }
    }

    fn matches(&self, call: &Value) -> bool {
        let at = call["at"].as_f64().unwrap_or_default();
        let text = |place: &str| {
            call.pointer(place)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let outcome = text("/outcome");
        let has_word = |word: &String| {
            let is_in = |place: &&str| text(place).to_lowercase().contains(word.as_str());
            // The page calls that `ok`.
            SEARCHED.iter().any(is_in) || (outcome == "allowed" && "ok".contains(word.as_str()))
        };
        let is_outcome = match self.outcome.as_str() {
            "" => true,
            "allowed" | "denied" | "cancelled" | "tool_error" => outcome == self.outcome,
            _ => matches!(outcome, "error" | "tool_error"),
        };
        at >= self.from
            && at < self.to
            && is_outcome
            && self
                .values
                .iter()
                .all(|(place, value)| text(place) == value)
            && self.words.iter().all(has_word)
    }
}

/// Passes the records of requests on, each with the place at which its line begins, from those of `from` on until `to`; of too
/// many bytes those at the end, or if `from` is given, at the beginning. Returns whether that are all of them.
pub(crate) fn read_records(
    path: &Path,
    from: f64,
    to: f64,
    mut each: impl FnMut(u64, &Value),
) -> io::Result<bool> {
    let mut log = Log::open(path)?;
    let latest = log.length.saturating_sub(MOST_BYTES);
    let start = if from > 0.0 {
        log.place_of(from - MARGIN)?
    } else {
        latest
    };
    log.go_to(start)?;
    while log.place < start + MOST_BYTES {
        let Some((place, line)) = log.next_line()? else {
            return Ok(from > 0.0 || latest == 0);
        };
        if let Some(record) = record(&line) {
            if time(&record).is_some_and(|at| at > to + MARGIN) {
                return Ok(true);
            }
            each(place, &record);
        }
    }
    Ok(false)
}

/// The lines of a log.
struct Log {
    lines: BufReader<File>,
    place: u64,
    length: u64,
}

impl Log {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            lines: BufReader::new(file),
            place: 0,
            length,
        })
    }

    /// Goes to the first line that begins after a place.
    fn go_to(&mut self, place: u64) -> io::Result<()> {
        let before = place.saturating_sub(1);
        self.place = self.lines.seek(SeekFrom::Start(before))?;
        if place > 0 {
            self.next_line()?;
        }
        Ok(())
    }

    /// The next line and where it begins; `None` at the end. Of a line that is too long, the rest is another one.
    fn next_line(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut line = Vec::new();
        let place = self.place;
        let mut limited = self.lines.by_ref().take(MAX_LINE_WITH_ARGUMENTS);
        let length = limited.read_until(b'\n', &mut line)?;
        self.place += u64::try_from(length).unwrap_or_default();
        Ok((!line.is_empty()).then_some((place, line)))
    }

    /// A place that few records of the time are before. Records are in the order of their times, but for those that are made in
    /// the same moment.
    fn place_of(&mut self, from: f64) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.length);
        while high - low > BLOCK {
            let middle = low.midpoint(high);
            self.go_to(middle)?;
            let mut found = None;
            while found.is_none()
                && self.place < high
                && let Some((_, line)) = self.next_line()?
            {
                found = record(&line).as_ref().and_then(time);
            }
            if found.is_some_and(|at| at < from) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// The record of a request in a line.
fn record(line: &[u8]) -> Option<Value> {
    let of_request = |record: &Value| record["event"] == "request" && record["v"] == SCHEMA_VERSION;
    read_line(line).filter(of_request)
}

/// When a record was made, in seconds since 1970-01-01 UTC.
pub(crate) fn time(record: &Value) -> Option<f64> {
    let time: Timestamp = record["time"].as_str()?.parse().ok()?;
    Some(seconds(u64::try_from(time.as_microsecond()).ok()?))
}

/// A record as a call of the page; `None` for other requests.
fn shown(place: u64, record: &Value) -> Option<Value> {
    if !CALLS.contains(&record["method"].as_str()?) {
        return None;
    }
    let client = &record["client"];
    let has_name = client["name"].is_string();
    let principal = &record["principal"];
    let mut names = ["name", "key", "sub", "id"]
        .map(|name| &principal[name])
        .into_iter();
    let target = &record["target"];
    let variant = &record["variant"];
    Some(json!({
        "id": FIRST_ID + place,
        "at": time(record)?,
        "method": record["method"],
        "target": target["name"],
        "server": target["server"],
        "upstreamName": target["upstream_name"],
        "client": has_name.then(|| json!({"name": client["name"], "version": client["version"]})),
        "era": if record["era"] == "modern" { "2026-07-28" } else { "before-2026-07-28" },
        "transport": record["transport"],
        "principal": names.find(|name| name.is_string()),
        "variant": variant["id"],
        "reason": variant["reason"],
        "variantRule": variant["rule"],
        "rule": record["rule"],
        "arguments": record["arguments"]["text"],
        "outcome": record["outcome"],
        "code": record["code"],
        "durationMs": record["duration_ms"],
        "waitedMs": record["waited_ms"],
        "serverMs": record["upstream_ms"],
        "bytesIn": record["bytes_in"],
        "bytesOut": record["bytes_out"],
    }))
}

const NO_FILE: &str = "the audit log of this gateway is not a file; write `audit: {to: file PATH}` into the configuration";
/// The members that filters of the page have a value for.
const MEMBERS: [(&str, &str); 8] = [
    ("client", "/client/name"),
    ("version", "/client/version"),
    ("person", "/principal"),
    ("server", "/server"),
    ("tool", "/target"),
    ("variant", "/variant"),
    ("reason", "/reason"),
    ("rule", "/rule"),
];
/// The members that a search finds.
const SEARCHED: &[&str] = &[
    "/target",
    "/upstreamName",
    "/server",
    "/client/name",
    "/principal",
    "/variant",
    "/method",
    "/outcome",
];
/// The methods whose requests are calls.
const CALLS: &[&str] = &["tools/call", "prompts/get", "resources/read"];
/// The most bytes of the file that are read for a response.
const MOST_BYTES: u64 = 64 << 20;
/// The bytes within which a place needs not be found.
const BLOCK: u64 = 64 << 10;
/// The seconds by which records may be out of order.
const MARGIN: f64 = 5.0;
/// Numbers of calls in the log are greater than those of any call that the gateway keeps.
const FIRST_ID: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A log of a call each second from the beginning of 1970 on, with an event of the log itself and a line that is cut between.
    fn log(name: &str, calls: u64) -> PathBuf {
        let line = |second: u64| {
            let time = Timestamp::from_second(second as i64).unwrap();
            let record = json!({
                "v": 1, "time": time.to_string(), "event": "request", "method": "tools/call", "outcome": "allowed", "era": "modern",
                "principal": {"id": "x", "name": "ann"}, "client": {"name": "robot", "version": "7"},
                "target": {"name": "git_log", "server": "git", "upstream_name": "log"}, "variant": {"id": "few", "reason": "rule"},
            });
            format!("<110>1 vary - - {record}\n{{\"v\":1,\"event\":\"audit.lost\"}}\n{{\"v\":1,\n")
        };
        let path = std::env::temp_dir().join(format!("vary-{}-{name}", std::process::id()));
        std::fs::write(&path, (0..calls).map(line).collect::<String>()).unwrap();
        path
    }

    fn found(path: &Path, query: &str) -> Vec<u64> {
        let wanted = Wanted::read(query);
        let mut all = Vec::new();
        let is_whole = read_records(path, wanted.from, wanted.to, |place, record| {
            let call = shown(place, record).filter(|call| wanted.matches(call));
            all.extend(
                call.and_then(|call| call["at"].as_f64())
                    .map(|at| at as u64),
            );
        });
        assert!(is_whole.unwrap());
        all
    }

    #[test]
    fn the_calls_of_a_time_are_found_wherever_they_are_in_the_log() {
        let path = log("times", 5000);
        let all: Vec<u64> = (0..5000).collect();
        assert_eq!(found(&path, ""), all);
        for (from, to) in [(1, 3), (2500, 2510), (4998, 9000), (4999, 5000)] {
            let some = found(&path, &format!("from={from}&to={to}"));
            let expected: Vec<_> = (from..to.min(5000)).collect();
            assert_eq!(some, expected);
        }
        assert_eq!(found(&path, "from=6000"), [] as [u64; 0]);
        assert_eq!(
            found(
                &path,
                "from=10&to=12&tool=git_log&person=ann&client=robot&server=git"
            ),
            [10, 11]
        );
        for (others, is_found) in [
            ("person=bob", false),
            ("q=GIT_*+ann", true),
            ("q=git+bob", false),
            ("outcome=allowed", true),
            ("outcome=error", false),
            ("variant=few&version=7&reason=rule", true),
        ] {
            let some = found(&path, &format!("from=10&to=12&{others}"));
            assert_eq!(some.len(), if is_found { 2 } else { 0 }, "{others}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_call_has_the_members_of_those_that_are_kept() {
        let path = log("members", 1);
        let mut calls = Vec::new();
        read_records(&path, 0.0, f64::MAX, |place, record| {
            calls.extend(shown(place, record))
        })
        .unwrap();
        let expected = json!({
            "id": FIRST_ID, "at": 0.0, "method": "tools/call", "target": "git_log", "server": "git", "upstreamName": "log",
            "client": {"name": "robot", "version": "7"}, "era": "2026-07-28", "principal": "ann", "variant": "few", "reason": "rule",
            "outcome": "allowed", "transport": null, "variantRule": null, "rule": null, "arguments": null, "code": null,
            "durationMs": null, "waitedMs": null, "serverMs": null, "bytesIn": null, "bytesOut": null,
        });
        assert_eq!(calls, [expected]);
        std::fs::remove_file(path).unwrap();
    }
}
