//! Small messages that make the gateway use much memory: each way that was found, its bound, and the figure measured.
//!
//! The real `vary serve` stands in front of a server that answers as the case needs it. Its memory is read before the
//! case, at its highest during it, and some seconds after it. More than three times the bound is a failure: an allocator
//! keeps pages, and a message is copied on its way. Where clients have shares of something, other answers than expected
//! are a failure, too.

mod cases;
mod client;
mod deployment;
mod server;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use self::cases::{Case, Cases};
use self::deployment::Deployment;
use self::server::Server;
use self::watch::{Allowance, Exceeded, watched};
use crate::process;

/// Where things are, and how much is done.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever runs the amplifications names all of them"
)]
pub struct AmplifyPrograms {
    /// The binary `vary`.
    pub vary: PathBuf,
    /// A directory for configurations.
    pub scratch: PathBuf,
    /// Whether each case is as small as shows it.
    pub is_reduced: bool,
    /// Only the cases whose names hold this; empty: all.
    pub only: String,
    /// How long a case may take.
    pub time: Duration,
    /// What the cases took in an earlier build, by their names: the column of the table.
    pub before: BTreeMap<String, String>,
}

/// What the amplifications came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Amplified {
    /// The table of the page.
    pub table: String,
    /// How many MiB each case took at most more than before it, by its name; or what it exceeded.
    pub grown: BTreeMap<String, String>,
    /// How many cases stayed within their bounds.
    pub passed: usize,
    /// What went beyond its bound, and why.
    pub failed: Vec<String>,
}

/// The memory of a gateway in a case, in KiB.
struct Measured {
    idle: usize,
    peak: usize,
    after: usize,
    /// What clients were answered.
    answer: String,
    /// What it exceeded, and of which allowance.
    exceeded: Option<(Exceeded, Allowance)>,
}

impl Measured {
    /// MiB more at the peak than before the case.
    fn grown(&self) -> String {
        let grown = mebibytes(self.peak.saturating_sub(self.idle));
        match self.exceeded {
            None => grown.to_string(),
            Some((Exceeded::Memory, allowance)) => {
                format!("more than {}", mebibytes(allowance.memory))
            }
            Some((Exceeded::Time, allowance)) => {
                let seconds = allowance.time.as_secs();
                format!("{grown} and more: not done within {seconds} s")
            }
        }
    }
}

/// Runs the cases one after the other.
///
/// # Errors
///
/// When the gateway cannot be started or looked at.
pub fn amplify(programs: &AmplifyPrograms) -> Result<Amplified, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut amplified = Amplified {
        table: HEAD.to_owned(),
        grown: BTreeMap::new(),
        passed: 0,
        failed: Vec::new(),
    };
    let cases = Cases::new(programs.is_reduced);
    for case in cases.all() {
        if !case.name.contains(&programs.only) {
            continue;
        }
        let measured = runtime.block_on(measured(programs, &case));
        let measured = measured.map_err(|error| format!("{}: {error}", case.name))?;
        let before = programs.before.get(case.name).map_or("", String::as_str);
        amplified.table.push_str(&row(&case, before, &measured));
        let name = case.name.to_owned();
        amplified.grown.insert(name, measured.grown());
        match failure(&case, &measured) {
            None => amplified.passed += 1,
            Some(failure) => amplified.failed.push(failure),
        }
    }
    Ok(amplified)
}

/// Why the case failed: too much memory or time, or other answers than it expects.
fn failure(case: &Case, measured: &Measured) -> Option<String> {
    let name = case.name;
    let most = MOST * case.bound / 1024;
    let is_within = measured.peak.saturating_sub(measured.idle) <= most;
    if !is_within || measured.exceeded.is_some() {
        let grown = measured.grown();
        let allowed = mebibytes(most);
        return Some(format!(
            "{name}: {grown} MiB more than before it, of {allowed} MiB that are allowed"
        ));
    }
    let expected = case.expected?;
    let answer = &measured.answer;
    (answer != expected).then(|| format!("{name}: the answers are {answer}, not {expected}"))
}

async fn measured(programs: &AmplifyPrograms, case: &Case) -> Result<Measured, String> {
    let server = Server::start(case.server).await;
    let Deployment { client, .. } = &Deployment::start(programs, case, &server).await?;
    let offers_variants = case.server.variants > 0;
    let process = client.process;
    tokio::task::block_in_place(|| {
        // What is made once has been made.
        client.list()?;
        let mut idle = settled(process)?;
        if offers_variants {
            // The handshake is a part of the start: of this case all counts.
            idle = 0;
        } else {
            process::forget_peak(process)?;
        }
        let allowance = Allowance {
            memory: MEMORY,
            time: programs.time,
        };
        let (answer, exceeded) = watched(process, allowance, || (case.run)(client, &server));
        if let Some((exceeded, peak)) = exceeded {
            return Ok(Measured {
                idle,
                peak,
                after: 0,
                answer: "nothing".to_owned(),
                exceeded: Some((exceeded, allowance)),
            });
        }
        let (answer, peak) = (answer?, process::peak(process)?);
        if !programs.is_reduced {
            std::thread::sleep(CALM);
        }
        Ok(Measured {
            idle,
            peak,
            after: process::memory(process)?,
            answer,
            exceeded: None,
        })
    })
}

/// What a process has when it does not grow any more.
fn settled(process: u32) -> Result<usize, String> {
    let mut last = process::memory(process)?;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        let now = process::memory(process)?;
        if now <= last {
            return Ok(now);
        }
        last = now;
    }
    Ok(last)
}

fn row(case: &Case, before: &str, measured: &Measured) -> String {
    format!(
        "| {} | {} | {} MiB: {} | {} | {} | {} | {} | {} |\n",
        case.name,
        measured.answer,
        case.bound >> 20,
        case.what,
        before,
        measured.grown(),
        mebibytes(measured.idle),
        mebibytes(measured.peak),
        mebibytes(measured.after),
    )
}

fn mebibytes(kibibytes: usize) -> usize {
    kibibytes.div_ceil(1024)
}

/// So many times its bound a case may take, as resident memory.
const MOST: usize = 3;
/// A process that takes more KiB in a case is ended.
const MEMORY: usize = 8 << 20;
/// How long after a case it is looked again.
const CALM: Duration = Duration::from_secs(1);

const HEAD: &str = "| what is sent | what is answered | bound | more at the peak, before there was one (MiB) \
| more at the peak (MiB) | idle | peak | after |\n|---|---|---|--:|--:|--:|--:|--:|\n";
