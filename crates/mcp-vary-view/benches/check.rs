//! What it costs to check the arguments of a call against the server's schema: `cargo bench -p mcp-vary-view`. The limit
//! is 6 µs per KB of arguments.
#![expect(clippy::unwrap_used, reason = "a measurement that fails is none")]

use std::fs;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_vary_view::{DIRECTORY, PreparedTool, ToolOverride};
use serde_json::{Value, json};

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

fn check(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check arguments");
    for (name, tool, arguments) in calls() {
        let arguments = arguments.to_string();
        // Compiles the schema.
        tool.arguments(&arguments).unwrap();
        group.throughput(Throughput::Bytes(arguments.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| tool.arguments(black_box(&arguments)).unwrap().len());
        });
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
