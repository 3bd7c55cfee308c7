//! What the index and a search cost with 5,000 tools: `cargo bench -p mcp-vary-search`.
#![expect(clippy::unwrap_used, reason = "a measurement that fails is none")]
#![expect(clippy::print_stdout, reason = "the memory is not a time")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_vary_search::{Query, Tool, ToolIndex};

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
            let words: Vec<String> = (0..count).map(|_| word(&mut state)).collect();
            words.join(separator)
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

fn search(criterion: &mut Criterion) {
    let texts: Vec<Texts> = (0..TOOLS).map(Texts::new).collect();
    let tools: Vec<Tool<'_>> = texts.iter().map(Texts::tool).collect();
    let mut index: ToolIndex = tools.iter().collect();
    println!("{} bytes per tool", index.memory() / TOOLS);

    criterion.bench_function("build an index of 5,000 tools", |bencher| {
        bencher.iter_with_large_drop(|| black_box(&tools).iter().collect::<ToolIndex>());
    });
    let changed = Texts::new(TOOLS);
    let changed = [changed.tool(), texts[0].tool()];
    let mut turn = 0;
    criterion.bench_function("replace a tool of 5,000", |bencher| {
        bencher.iter(|| {
            turn += 1;
            index.replace(0, black_box(&changed[turn % 2])).unwrap();
        });
    });
    for (name, count) in [("a query of 3 words", 3), ("a query of 20 words", 20)] {
        let mut state = 4;
        let words: Vec<String> = (0..count).map(|_| word(&mut state)).collect();
        let query = words.join(" ");
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| index.search(&Query::new(black_box(&query)).unwrap(), 10));
        });
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
