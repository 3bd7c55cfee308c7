//! What was seen, as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use crate::script::Era;

/// One thing that somebody saw.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// When, in words.
    pub moment: &'static str,
    /// How the gateway reaches the server.
    pub transport: &'static str,
    /// What the server speaks.
    pub server: Era,
    /// What the client speaks; none when it is the gateway that was looked at.
    pub client: Option<Era>,
    /// What it saw.
    pub said: String,
    /// How long that took.
    pub after: Duration,
}

/// What was seen in one scenario.
#[derive(Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The scenario's title.
    pub name: &'static str,
    /// What an operator takes from it.
    pub means: &'static str,
    /// What was seen.
    pub rows: Vec<Row>,
}

/// What all scenarios found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// What was seen, scenario by scenario.
    pub seen: Vec<Seen>,
    /// How many cases went as they should.
    pub passed: usize,
    /// What went wrong, a sentence each.
    pub failed: Vec<String>,
}

impl Report {
    /// The table, in Markdown: what was seen alike is one line.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::new();
        for Seen { name, means, rows } in &self.seen {
            let _ = writeln!(table, "### {name}\n\n{}\n", wrapped(means));
            table.push_str("| when | server | client | it sees | after |\n|---|---|---|---|--:|\n");
            for line in lines(rows) {
                table.push_str(&line);
            }
            table.push('\n');
        }
        table
    }
}

/// Who saw the same at the same moment.
#[derive(Debug, Default)]
struct Alike {
    servers: BTreeSet<(&'static str, Era)>,
    clients: BTreeSet<Option<Era>>,
    times: Vec<Duration>,
}

fn lines(rows: &[Row]) -> Vec<String> {
    let mut alike: BTreeMap<(usize, &str, String), Alike> = BTreeMap::new();
    let places = places(rows);
    for row in rows {
        let place = places.get(row.moment).copied().unwrap_or_default();
        let group = alike
            .entry((place, row.moment, timeless(&row.said)))
            .or_default();
        group.servers.insert((row.transport, row.server));
        group.clients.insert(row.client);
        group.times.push(row.after);
    }
    alike
        .iter()
        .map(|((_, moment, reported), alike)| line(moment, reported, alike))
        .collect()
}

/// The place of each moment: the last that it has with any kind of server, since some lack what comes before.
fn places(rows: &[Row]) -> BTreeMap<&'static str, usize> {
    let mut cases: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for row in rows {
        let moments = cases.entry((row.transport, row.server)).or_default();
        if !moments.contains(&row.moment) {
            moments.push(row.moment);
            let place = places.entry(row.moment).or_default();
            *place = moments.len().max(*place);
        }
    }
    places
}

fn line(moment: &str, reported: &str, alike: &Alike) -> String {
    let reported = reported.replace('|', "\\|").replace('\n', " ");
    format!(
        "| {moment} | {} | {} | {} | {} |\n",
        servers(&alike.servers),
        clients(&alike.clients),
        cut(&reported),
        times(&alike.times),
    )
}

/// `any`, or what they have in common.
fn servers(servers: &BTreeSet<(&'static str, Era)>) -> String {
    let transports: BTreeSet<_> = servers.iter().map(|(transport, _)| *transport).collect();
    let eras: BTreeSet<_> = servers.iter().map(|(_, era)| Some(*era)).collect();
    if servers.len() == 4 {
        return "any".to_owned();
    }
    let transports: Vec<&str> = transports.into_iter().collect();
    match eras.len() {
        2 => transports.join(", "),
        _ => format!("{} {}", transports.join(", "), clients(&eras)),
    }
}

fn clients(eras: &BTreeSet<Option<Era>>) -> String {
    if eras.len() == 2 && !eras.contains(&None) {
        return "any".to_owned();
    }
    let eras: Vec<&str> = eras.iter().map(|era| era.map_or("", Era::as_str)).collect();
    eras.join(", ")
}

/// One time, or the shortest and the longest.
fn times(times: &[Duration]) -> String {
    let shown: BTreeSet<Duration> = times.iter().copied().collect();
    match (shown.first(), shown.last()) {
        (Some(least), Some(most)) if time(*least) == time(*most) => time(*most),
        (Some(least), Some(most)) => format!("{} to {}", time(*least), time(*most)),
        _ => String::new(),
    }
}

fn time(time: Duration) -> String {
    match time.as_millis() {
        0 => "< 1 ms".to_owned(),
        millis @ 1..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// `reported` with every span of time in it as `…`: it is another in each run.
fn timeless(reported: &str) -> String {
    let terms = reported.split(' ').map(|word| {
        let number = word.trim_end_matches([',', ';', '.', ')']);
        let unit =
            number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        if unit != number && matches!(unit, "s" | "ms" | "µs" | "ns") {
            format!("… {unit}{}", &word[number.len()..])
        } else {
            word.to_owned()
        }
    });
    terms.collect::<Vec<_>>().join(" ")
}

/// `text` in lines as pages have them.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + length >= WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

const WIDTH: usize = 130;

/// The first of many letters.
fn cut(reported: &str) -> String {
    match reported.char_indices().nth(CUT) {
        Some((end, _)) => format!("{}…", &reported[..end]),
        None => reported.to_owned(),
    }
}

const CUT: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(transport: &'static str, server: Era, client: Era, said: &str, millis: u64) -> Row {
        Row {
            moment: "at once",
            transport,
            server,
            client: Some(client),
            said: said.to_owned(),
            after: Duration::from_millis(millis),
        }
    }

    #[test]
    fn what_was_seen_alike_is_one_line() {
        let mut rows = Vec::new();
        for transport in ["stdio", "HTTP"] {
            for (server, client) in [(Era::Legacy, Era::Legacy), (Era::Modern, Era::Modern)] {
                rows.push(row(transport, server, client, "again in 1.25s, wait", 1));
            }
        }
        rows.push(row("HTTP", Era::Modern, Era::Legacy, "other", 2500));
        assert_eq!(
            lines(&rows),
            [
                "| at once | any | any | again in … s, wait | 1 ms |\n",
                "| at once | HTTP modern | legacy | other | 2.5 s |\n",
            ]
        );
    }

    #[test]
    fn only_spans_of_time_are_left_out() {
        assert_eq!(
            timeless("HTTP 500 and 3 servers of 10s."),
            "HTTP 500 and 3 servers of … s."
        );
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        let text = wrapped(&["word"; 60].join(" "));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.replace('\n', " "), ["word"; 60].join(" "));
    }

    #[test]
    fn a_long_sentence_is_cut() {
        assert_eq!(cut(&"ä".repeat(300)).chars().count(), CUT + 1);
    }
}
