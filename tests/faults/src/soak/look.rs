//! What can be seen of a running gateway from outside, and what it says of itself.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::http::Http;
use crate::process;

/// One look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Look {
    /// Its children, and what those started, by the name of the server.
    children: usize,
    servers: usize,
    descriptors: usize,
    sockets: usize,
    /// Of the runtime.
    tasks: u64,
    /// That clients may come back to.
    streams: u64,
    /// KiB.
    memory: usize,
}

impl Look {
    pub(super) async fn at(process: u32, admin: &str, mark: &str) -> Result<Self, String> {
        let status = Http::connect(admin).await?.status().await?;
        let number = |name: &str| {
            status[name]
                .as_u64()
                .ok_or(format!("no `{name}` in {status}"))
        };
        Ok(Self {
            children: process::children(process)?,
            servers: process::marked(mark)?,
            descriptors: process::descriptors(process)?,
            sockets: sockets(process)?,
            tasks: number("tasks")?,
            streams: number("streams")?,
            memory: memory(process)?,
        })
    }

    /// Name, before, after.
    pub(super) fn rows(&self, after: &Self) -> [(&'static str, String, String); 7] {
        let row = |name, of: &dyn Fn(&Self) -> String| (name, of(self), of(after));
        [
            row("children", &|look| look.children.to_string()),
            row("processes of servers", &|look| look.servers.to_string()),
            row("file descriptors", &|look| look.descriptors.to_string()),
            row("of them sockets", &|look| look.sockets.to_string()),
            row("tasks", &|look| look.tasks.to_string()),
            row("streams that can be come back to", &|look| {
                look.streams.to_string()
            }),
            row("memory (RSS)", &|look| {
                format!("{:.1} MiB", mebibytes(look.memory))
            }),
        ]
    }

    /// What is more now than it was `before`; of memory, by more than `more` KiB.
    pub(super) fn left_since(&self, before: &Self, more: usize) -> Vec<String> {
        let rows = before.rows(self);
        let grown = [
            self.children > before.children,
            self.servers > before.servers,
            self.descriptors > before.descriptors,
            self.sockets > before.sockets,
            self.tasks > before.tasks,
            self.streams > before.streams,
            self.memory > before.memory + more,
        ];
        let left = rows.into_iter().zip(grown).filter(|(_, grown)| *grown);
        left.map(|((name, before, after), _)| format!("{name}: {before} before, {after} after"))
            .collect()
    }
}

fn mebibytes(kibibytes: usize) -> f64 {
    u32::try_from(kibibytes).map_or(f64::MAX, |kibibytes| f64::from(kibibytes) / 1024.0)
}

/// Looks until nothing is more than `before`, or nothing changes any more where there is none; what is seen when
/// that does not come about in time.
pub(super) async fn settled<F>(look: impl Fn() -> F, before: Option<&Look>) -> Result<Look, String>
where
    F: Future<Output = Result<Look, String>>,
{
    let begun = tokio::time::Instant::now();
    let mut last = look().await?;
    loop {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = look().await?;
        let done = match before {
            Some(before) => now.left_since(before, usize::MAX / 2).is_empty(),
            None => now.streams == 0 && same_but_for_memory(&now, &last),
        };
        if done || begun.elapsed() > SETTLES {
            return Ok(now);
        }
        last = now;
    }
}

/// More than the longest call and all that is kept for a while take.
const SETTLES: Duration = Duration::from_secs(120);

fn same_but_for_memory(one: &Look, other: &Look) -> bool {
    let memory = other.memory;
    *other
        == Look {
            memory,
            ..one.clone()
        }
}

fn sockets(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets = targets.filter(|target| target.to_string_lossy().starts_with("socket:"));
    Ok(sockets.count())
}

/// KiB that are resident.
fn memory(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} says no VmRSS"))
}

impl Http {
    async fn status(mut self) -> Result<Value, String> {
        self.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let text = self.read_to_the_end().await?;
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| format!("{error}: {text}"))
    }
}
