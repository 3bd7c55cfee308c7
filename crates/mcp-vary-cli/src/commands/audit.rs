//! `vary audit`: reads audit logs as a table.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Parser;
use mcp_vary::variant::Date;
use mcp_vary_access::{Claims, Principal};
use serde_json::Value;

use crate::audit_log::LogFile;
use crate::environment::now_in_microseconds;
use crate::failure::{Failure, Verdict};
use crate::log::time_of_day;
use crate::print::servers::plural;
use crate::print::table::table;
use crate::print::{self, notice, sanitize};
use crate::stop::Stop;

/// Show audit logs as a table
///
/// Reads the files of `audit.to`, also rotated and compressed ones, in the order of their times. Lines of another
/// version, and those that are not records, are counted on standard error.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary audit /var/log/vary/audit.jsonl\n  \
    vary audit /var/log/vary/audit.jsonl* --who ann --since 7d\n  \
    vary audit audit.jsonl --tool git_push --outcome denied")]
pub(crate) struct Audit {
    /// Only records of this person: a name, or an id as the log has it
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only records of the last 30m, 1h or 7d, or since a day or time in UTC: 2027-01-31, 2027-01-31T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,
    /// Only records from before such a time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
    /// Only records of the client with this name
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Only records about this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only records about this tool, by its name for clients or at the server
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only records with this outcome
    #[arg(long, value_parser = ["allowed", "denied", "error", "tool_error", "cancelled"])]
    outcome: Option<String>,
    /// The audit logs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Prints the records that are wanted.
pub(crate) async fn run(args: Audit, mut stop: Stop) -> Result<Verdict, Failure> {
    let reading = tokio::task::spawn_blocking(move || read(&args));
    stop.unless_requested(async {
        let read = reading.await;
        read.unwrap_or_else(|error| Err(Failure::command(error.to_string())))
    })
    .await
}

fn read(args: &Audit) -> Result<Verdict, Failure> {
    let opened = args.files.iter().map(|path| LogFile::open(path));
    let mut logs = opened.collect::<Result<Vec<_>, _>>()?;
    logs.sort_by(|one, other| one.start_time().cmp(other.start_time()));
    let conditions = conditions(args);
    let since = args.since.as_deref().unwrap_or_default();
    let until = args.until.as_deref();
    let is_wanted = |record: &Value| {
        let time = record["time"].as_str().unwrap_or_default();
        let is_in_time = time >= since && until.is_none_or(|until| time < until);
        is_in_time && conditions.iter().all(|condition| condition.holds(record))
    };
    let mut rows = Vec::new();
    let mut is_found = false;
    let mut total = 0_usize;
    let mut people = BTreeSet::new();
    for log in logs {
        log.read(|record| {
            total += 1;
            let person = text(record, PERSON);
            if person != "-" && people.len() < MOST_PEOPLE {
                people.insert(cell(person));
            }
            if is_wanted(record) {
                rows.push(row(record));
                is_found = true;
            }
            if rows.len() < MOST_ROWS {
                return Ok(());
            }
            print_table(std::mem::take(&mut rows))
        })?;
    }
    print_table(rows)?;
    if !is_found {
        let known = people.into_iter().collect::<Vec<_>>().join(", ");
        let others = match args.who {
            Some(_) if !known.is_empty() => format!("; people: {known}"),
            _ => String::new(),
        };
        let records = plural(total, "record");
        notice(&format!("nothing matches in {records}{others}"));
    }
    Ok(Verdict::Fine)
}

/// What a record must have: one of the values at one of the places.
struct Condition {
    places: &'static [&'static str],
    values: Vec<String>,
}

impl Condition {
    fn holds(&self, record: &Value) -> bool {
        let found = self.places.iter().filter_map(|place| record.pointer(place));
        let mut texts = found.filter_map(Value::as_str);
        texts.any(|text| self.values.iter().any(|value| value == text))
    }
}

fn conditions(args: &Audit) -> Vec<Condition> {
    // A log may have no names: the ids of this name as a key, as a certificate, and as the client on stdio.
    let kinds = [Principal::key, Principal::certificate, Principal::stdio];
    let principals = args.who.iter().flat_map(|name| {
        kinds.map(|kind| kind(name, Claims::default()).map(|found| found.id_text().to_owned()))
    });
    let people = principals.filter_map(Result::ok);
    let of = |value: &Option<String>| value.iter().cloned().collect();
    let all: [(&'static [&'static str], Vec<String>); 5] = [
        (PERSON, args.who.iter().cloned().chain(people).collect()),
        (&["/client/name"], of(&args.client)),
        (&["/target/server"], of(&args.server)),
        (&["/target/name", "/target/upstream_name"], of(&args.tool)),
        (&["/outcome"], of(&args.outcome)),
    ];
    let conditions = all.map(|(places, values)| Condition { places, values });
    let is_given = |condition: &Condition| !condition.values.is_empty();
    conditions.into_iter().filter(is_given).collect()
}

fn row(record: &Value) -> Vec<String> {
    let cells = COLUMNS.iter().map(|(_, places)| cell(text(record, places)));
    let mut row: Vec<_> = cells.collect();
    let duration = record["duration_ms"].as_f64();
    row.push(duration.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")));
    row
}

/// The text at the first of the places that has one; `-` if none has.
fn text<'r>(record: &'r Value, places: &[&str]) -> &'r str {
    let mut found = places
        .iter()
        .filter_map(|place| record.pointer(place)?.as_str());
    found.next().unwrap_or("-")
}

/// A text in one line, cut if it is long.
fn cell(text: &str) -> String {
    let line = sanitize(&text.replace('\n', "\\n"));
    let cut = line.char_indices().nth(MOST_CHARACTERS);
    match cut.and_then(|(at, _)| line.get(..at)) {
        Some(start) => format!("{start}…"),
        None => line,
    }
}

fn print_table(mut rows: Vec<Vec<String>>) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let heading = COLUMNS.iter().map(|(name, _)| *name).chain(["ms"]);
    rows.insert(0, heading.map(str::to_owned).collect());
    print::data(&table(&rows, COLUMNS.len()))
}

/// The beginning of the time that `text` means.
fn moment(text: &str) -> Result<String, &'static str> {
    let is_utc = text.len() == "2027-01-31".len() || text.ends_with('Z');
    if is_utc && text.parse::<Date>().is_ok() {
        // Records have a `T` before the time; people may write a space.
        return Ok(text.trim_end_matches('Z').replace(['t', ' '], "T"));
    }
    let age = UNITS.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(number.saturating_mul(*seconds))
    });
    let age = age.ok_or("write it like 30m, 1h, 7d or 2027-01-31")?;
    let second = (now_in_microseconds() / 1_000_000).saturating_sub(age);
    let day = Date::from_unix(second);
    let time = time_of_day(second);
    Ok(format!("{day}T{}", time.trim_end_matches('Z')))
}

/// Where records name a person, the best place first.
const PERSON: &[&str] = &[
    "/principal/name",
    "/principal/key",
    "/principal/sub",
    "/principal/id",
];
/// The columns of the table, and where records have their texts.
const COLUMNS: [(&str, &[&str]); 9] = [
    ("time", &["/time"]),
    ("who", PERSON),
    ("client", &["/client/name"]),
    ("event", &["/event"]),
    ("method", &["/method"]),
    ("target", &["/target/name"]),
    ("server", &["/target/server"]),
    ("outcome", &["/outcome"]),
    ("rule", &["/rule"]),
];
/// The people that a message names.
const MOST_PEOPLE: usize = 10;
/// The rows of one table; the next one has its own widths.
const MOST_ROWS: usize = 1000;
/// The longest text in a cell.
const MOST_CHARACTERS: usize = 60;
/// The units of a time that has passed, in seconds.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
