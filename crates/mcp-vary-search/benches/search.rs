//! What the index and a search cost with 5,000 tools, compared with their limits: `cargo bench -p mcp-vary-search`.
//!
//! The figures are CPU time of this thread. Other work on the machine makes a round slower and never faster, so the
//! fastest round is compared. `--check` runs everything once and compares only the memory.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "the figures are printed")]

use std::hint::black_box;
use std::process::ExitCode;

use mcp_vary_search::{Query, Tool, ToolIndex};
use rustix::time::{ClockId, clock_gettime};

/// The allocator of `vary`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The limits: microseconds for the whole index, a changed tool and a search; bytes for a tool.
const BUILD: f64 = 150_000.0;
const CHANGE: f64 = 1_000.0;
const SEARCH: f64 = 1_000.0;
const MEMORY: usize = 4_096;

const TOOLS: usize = 5_000;

/// The texts of a tool, as long as those of public servers are: a sentence of twelve words and a description of fifty.
struct Texts {
    name: String,
    server: String,
    summary: String,
    description: String,
    arguments: Vec<String>,
}

impl Texts {
    fn new(number: usize) -> Self {
        let mut state = number as u64 * 2 + 1;
        let mut text = |count: usize, separator: &str| {
            let terms: Vec<String> = (0..count).map(|_| word(&mut state)).collect();
            terms.join(separator)
        };
        Self {
            name: text(3, "_"),
            server: format!("server {}", number / 20),
            summary: text(12, " "),
            description: text(50, " "),
            arguments: (0..5).map(|_| text(2, "_")).collect(),
        }
    }

    fn tool(&self) -> Tool<'_> {
        Tool::new(&self.name, &self.server)
            .summary(&self.summary)
            .description(&self.description)
            .arguments(self.arguments.iter().map(String::as_str).collect())
    }
}

/// A word by the law of Zipf: the first few are in most tools, and most words in few.
fn word(state: &mut u64) -> String {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let uniform = (*state >> 40) as f64 / f64::from(1 << 24);
    let rank = 20_000_f64.powf(uniform) as u32;
    let letters = (0..4).map(|place| char::from(b'b' + (rank / 12_u32.pow(place) % 12) as u8));
    letters.collect()
}

fn main() -> ExitCode {
    let rounds = if std::env::args().any(|argument| argument == "--check") {
        None
    } else {
        Some(20)
    };
    let texts: Vec<Texts> = (0..TOOLS).map(Texts::new).collect();
    let tools: Vec<Tool<'_>> = texts.iter().map(Texts::tool).collect();
    let mut index: ToolIndex = tools.iter().collect();
    let each = index.memory() / TOOLS;
    println!("{:<34} {each:>10} B, at most {MEMORY}", "memory of a tool");
    let mut holds = each <= MEMORY;

    let mut dropped_later = Vec::new();
    let name = "build an index of 5,000 tools";
    holds &= row(name, BUILD, rounds, 1, || {
        dropped_later.push(black_box(&tools).iter().collect::<ToolIndex>());
    });
    drop(dropped_later);
    let changed = Texts::new(TOOLS);
    let changed = [changed.tool(), texts[0].tool()];
    let mut round = 0;
    holds &= row("replace a tool of 5,000", CHANGE, rounds, 200, || {
        round += 1;
        index.replace(0, black_box(&changed[round % 2])).unwrap();
    });
    for (name, count) in [("a query of 3 words", 3), ("a query of 20 words", 20)] {
        let mut state = 4;
        let terms: Vec<String> = (0..count).map(|_| word(&mut state)).collect();
        let query = terms.join(" ");
        holds &= row(name, SEARCH, rounds, 50, || {
            let query = Query::new(black_box(&query)).unwrap();
            black_box(index.search(&query, 10));
        });
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what `step` costs, and returns whether that is within the limit, both in microseconds. Without `rounds` it
/// only runs.
fn row(name: &str, most: f64, rounds: Option<u32>, steps: u32, mut step: impl FnMut()) -> bool {
    let Some(rounds) = rounds else {
        step();
        return true;
    };
    let round = |_| {
        let before = used();
        (0..steps).for_each(|_| step());
        (used() - before) * 1e6 / f64::from(steps)
    };
    let mut costs: Vec<f64> = (0..rounds).map(round).collect();
    costs.sort_by(f64::total_cmp);
    let (least, median) = (costs[0], costs[costs.len() / 2]);
    let verdict = if least <= most { "" } else { " MISSED" };
    println!("{name:<34} {least:>10.1} µs, at most {most:.0}; median {median:.1}{verdict}");
    least <= most
}

/// Seconds of CPU time that this thread has used.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
