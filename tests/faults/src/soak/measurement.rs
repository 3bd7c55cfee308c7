//! A running gateway as seen from outside, and its status.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::deployment::{ADMIN_TOKEN, Observed};
use super::http::Http;
use super::memory::mebibytes;
use crate::process;

/// One measurement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Measurement {
    /// What is counted: in the order of [`COUNTED`].
    counts: [usize; COUNTED.len()],
    /// The memory of the gateway, in KiB.
    pub(super) memory: usize,
    /// The memory of the servers, which grows with the sessions that are opened there.
    of_servers: usize,
}

/// What is counted.
const COUNTED: [&str; 14] = [
    "children",
    "processes of servers",
    "file descriptors",
    "of them sockets",
    "of them connections of clients",
    "tasks",
    "sessions",
    "streams that can be come back to",
    "listeners",
    "subscriptions",
    "questions to clients, calls held for them",
    "connections of one client alone",
    "bytes that are held for clients",
    "file descriptors of the servers over HTTP",
];

impl Measurement {
    pub(super) async fn take(observed: &Observed) -> Result<Self, String> {
        let process = observed.gateway.process();
        let status = Http::connect(&observed.admin).await?.status().await?;
        let number = |name: &str| {
            let number = status[name].as_u64();
            let number = number.and_then(|number| usize::try_from(number).ok());
            number.ok_or(format!("no `{name}` in {status}"))
        };
        let sockets = sockets(process)?;
        let clients = accepted(process, observed.port)?;
        let endpoints = observed.endpoints.iter();
        let endpoints: Vec<_> = endpoints.map(|endpoint| endpoint.process).collect();
        let piped = process::marked(&observed.mark)?;
        let descriptors = endpoints.iter().map(|it| process::descriptors(*it));
        let servers = endpoints.iter().chain(&piped);
        // One that has just ended has none.
        let of_servers = servers.filter_map(|it| process::memory(*it).ok()).sum();
        Ok(Self {
            counts: [
                process::children(process)?,
                piped.len(),
                process::descriptors(process)?,
                sockets.len(),
                sockets.intersection(&clients).count(),
                number("tasks")?,
                number("sessions")?,
                number("streams")?,
                number("listeners")?,
                number("subscriptions")?,
                number("pendingServerRequests")?
                    + number("suspendedCalls")?
                    + number("proxiedTasks")?,
                number("dedicatedConnections")?,
                number("memory")?,
                descriptors.sum::<Result<_, _>>()?,
            ],
            memory: process::memory(process)?,
            of_servers,
        })
    }

    /// Name, before, after.
    pub(super) fn rows(&self, after: &Self) -> Vec<(&'static str, String, String)> {
        let counts = COUNTED.iter().zip(self.counts.iter().zip(&after.counts));
        let counts =
            counts.map(|(name, (before, after))| (*name, before.to_string(), after.to_string()));
        let memory = |name, [before, after]: [usize; 2]| {
            let [before, after] = [before, after].map(mebibytes);
            (name, before, after)
        };
        let memory = [
            memory("memory (RSS)", [self.memory, after.memory]),
            memory(
                "memory of the servers (RSS)",
                [self.of_servers, after.of_servers],
            ),
        ];
        counts.chain(memory).collect()
    }

    /// The counts that are higher than they were `before`.
    pub(super) fn left_since(&self, before: &Self) -> Vec<String> {
        let counts = COUNTED.iter().zip(before.counts.iter().zip(&self.counts));
        let left = counts.filter(|(_, (before, now))| now > before);
        left.map(|(name, (before, now))| format!("{name}: {before} before, {now} after"))
            .collect()
    }

    /// Whether nothing in the gateway belongs to a client.
    fn is_empty(&self) -> bool {
        let of_clients = COUNTED.iter().zip(&self.counts).filter(|(name, _)| {
            matches!(
                **name,
                "of them connections of clients"
                    | "sessions"
                    | "streams that can be come back to"
                    | "listeners"
                    | "subscriptions"
                    | "questions to clients, calls held for them"
                    | "connections of one client alone"
            )
        });
        of_clients.map(|(_, count)| count).sum::<usize>() == 0
    }
}

/// Measures until no count exceeds `before`, or the time is over; returns the last measurement.
pub(super) async fn settled_as<F>(
    before: &Measurement,
    measure: impl Fn() -> F,
) -> Result<Measurement, String>
where
    F: Future<Output = Result<Measurement, String>>,
{
    let started = Instant::now();
    loop {
        let now = measure().await?;
        if now.left_since(before).is_empty() || started.elapsed() > SETTLES {
            return Ok(now);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Measures until nothing belongs to a client for as long as `calm` and nothing changes any more, or the time is over;
/// returns the last measurement.
pub(super) async fn settled_for<F>(
    calm: Duration,
    measure: impl Fn() -> F,
) -> Result<Measurement, String>
where
    F: Future<Output = Result<Measurement, String>>,
{
    let started = Instant::now();
    let mut last = measure().await?;
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(PAUSE).await;
        let now = measure().await?;
        if !now.is_empty() {
            since = Instant::now();
        }
        let is_calm = since.elapsed() >= calm && now.is_empty() && now.counts == last.counts;
        if is_calm || started.elapsed() > SETTLES {
            return Ok(now);
        }
        last = now;
    }
}

/// Between two measurements.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a socket to a server waits for its next request at most: a minute, and another until that is looked for.
pub(super) const POOLED: Duration = Duration::from_secs(125);
/// Longer than the longest call and every lifetime of the configuration, and then [`POOLED`].
const SETTLES: Duration = Duration::from_secs(300);

/// The sockets of a process, by their numbers.
fn sockets(process: u32) -> Result<BTreeSet<u64>, String> {
    let path = format!("/proc/{process}/fd");
    let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets = targets.filter_map(|target| {
        let name = target.to_string_lossy().into_owned();
        let number = name.strip_prefix("socket:[")?.strip_suffix(']')?;
        number.parse().ok()
    });
    Ok(sockets.collect())
}

/// The sockets of connections to `port`, where `process` is, by their numbers.
fn accepted(process: u32, port: u16) -> Result<BTreeSet<u64>, String> {
    let path = format!("/proc/{process}/net/tcp");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(accepted_in(&text, port))
}

/// Accepted sockets in the text of `/proc/net/tcp`.
fn accepted_in(text: &str, port: u16) -> BTreeSet<u64> {
    let local = format!(":{port:04X}");
    let sockets = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_local = fields.next()?.ends_with(&local);
        // The listening socket itself has the state 0A.
        let is_accepted = fields.nth(1)? != "0A";
        let number = fields.nth(5)?.parse().ok()?;
        (is_local && is_accepted).then_some(number)
    });
    sockets.collect()
}

impl Http {
    async fn status(mut self) -> Result<Value, String> {
        let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
        self.send(&format!(
            "GET /status HTTP/1.1\r\nHost: localhost\r\n{token}\r\nConnection: close\r\n\r\n"
        ))
        .await?;
        let text = self.read_to_the_end().await?;
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| format!("{error}: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_known_by_the_port_that_they_came_to() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:2260 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0\n\
            1: 0100007F:2260 0100007F:9C4A 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20 4 30 10 -1\n\
            2: 0100007F:9C4A 0100007F:2260 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 20 4 30 10 -1\n";
        assert_eq!(accepted_in(text, 8800), BTreeSet::from([12]));
    }
}
