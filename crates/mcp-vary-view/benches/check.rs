//! What it costs to check the arguments of a call against the server's schema, compared with the limit:
//! `cargo bench -p mcp-vary-view`.
//!
//! The figures are CPU time of this thread. Other work on the machine makes a round slower and never faster, so the
//! fastest round is compared. `--check` runs everything once and compares nothing.
#![expect(clippy::unwrap_used, reason = "a measurement that fails is none")]
#![expect(
    clippy::print_stdout,
    reason = "the figures are printed for the person who runs it"
)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use mcp_vary_view::{DIRECTORY, PreparedTool, ToolOverride};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The limit, in microseconds for 1,024 bytes of arguments.
const MOST: f64 = 6.0;
const ROUNDS: usize = 20;
/// The calls of a round.
const CALLS: u32 = 100;

/// The allocator of `vary`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A recorded tool in the variant `directory`.
fn tool(list: &str, name: &str) -> PreparedTool {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let list = fs::read_to_string(lists.join(format!("{list}.json"))).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut tools = list["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == name).unwrap();
    let prepared = PreparedTool::new(&tool.to_string(), &ToolOverride::default(), DIRECTORY);
    prepared.unwrap().0
}

/// Arguments of about 16 KB: long texts, many small values, a choice for each element.
fn calls() -> [(&'static str, PreparedTool, Value); 3] {
    let edit = json!({"oldText": "a line of a program\n".repeat(20), "newText": "another line\n".repeat(30)});
    let entity = |at: usize| json!({"name": format!("entity {at}"), "entityType": "person", "observations": ["is tall", "likes tea"]});
    let block = json!({"type": "paragraph", "paragraph": {"rich_text": [{"type": "text", "text": {"content": "a sentence in a paragraph of a page"}}]}});
    [
        (
            "long texts",
            tool("filesystem", "edit_file"),
            json!({"path": "a.rs", "edits": vec![edit; 20]}),
        ),
        (
            "many small values",
            tool("memory", "create_entities"),
            json!({"entities": (0..160).map(entity).collect::<Vec<_>>()}),
        ),
        (
            "choices",
            tool("notion", "API-patch-block-children"),
            json!({"block_id": "b", "children": vec![block; 120]}),
        ),
    ]
}

fn main() -> ExitCode {
    let is_check = std::env::args().any(|argument| argument == "--check");
    let mut holds = true;
    for (name, tool, arguments) in calls() {
        let arguments = arguments.to_string();
        // Compiles the schema.
        tool.arguments(&arguments).unwrap();
        if !is_check {
            holds &= row(name, &tool, &arguments);
        }
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what the check costs, and returns whether that is within the limit.
fn row(name: &str, tool: &PreparedTool, arguments: &str) -> bool {
    let kilobytes = arguments.len() as f64 / 1024.0;
    let round = |_| {
        let before = used();
        for _ in 0..CALLS {
            black_box(tool.arguments(black_box(arguments)).unwrap().len());
        }
        (used() - before) * 1e6 / f64::from(CALLS) / kilobytes
    };
    let mut costs: Vec<f64> = (0..ROUNDS).map(round).collect();
    costs.sort_by(f64::total_cmp);
    let (least, median) = (costs[0], costs[ROUNDS / 2]);
    let verdict = if least <= MOST { "" } else { " MISSED" };
    println!(
        "check of arguments, {name:<18} {least:>6.2} µs per KB, at most {MOST}; median {median:.2}{verdict}"
    );
    least <= MOST
}

/// Seconds of CPU time that this thread has used.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
