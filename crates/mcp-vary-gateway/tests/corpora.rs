//! The fuzz corpora, replayed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mcp_vary::view::derive::compact_tool;
use mcp_vary_gateway::config::Source;
use mcp_vary_gateway::upstream::{Answer, sse};
use mcp_vary_gateway::wire::Message;

#[path = "../../../fuzz/checks/mcp_vary_gateway.rs"]
mod checks;

/// Whatever a peer sends, reading it neither fails nor panics, and keeps the limits.
#[test]
#[expect(clippy::print_stdout, reason = "says which file a failure was in")]
fn every_check_holds_for_its_corpus() {
    for (name, check) in checks::CHECKS {
        let corpus = files(&fuzz().join("corpus").join(name));
        assert!(!corpus.is_empty(), "the corpus of {name} is empty");
        for path in corpus {
            let data = fs::read(&path).expect("the file can be read");
            println!("{}", path.display());
            check(&data);
        }
    }
}

/// A check that no fuzzer runs, and a corpus that nothing replays, are slips.
#[test]
fn every_check_has_a_target_that_is_built() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    for (name, _) in checks::CHECKS {
        let target = fuzz().join(format!("fuzz_targets/{name}.rs"));
        let target = fs::read_to_string(target).expect("a target");
        assert!(target.contains(&format!("checks::{name}(data)")), "{name}");
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is not in the manifest"
        );
    }
}

/// A corpus of only good or only bad input exercises half of its check.
#[test]
fn the_corpora_reach_both_outcomes() {
    let parsed = |name: &str, parses: fn(&[u8]) -> bool| {
        let outcomes: BTreeSet<bool> = files(&fuzz().join("corpus").join(name))
            .iter()
            .map(|path| fs::read(path).expect("the file can be read"))
            .map(|data| parses(&data))
            .collect();
        assert_eq!(outcomes.len(), 2, "{name} has only good or only bad input");
    };
    parsed("answer", |data| {
        Answer::parse(data.to_vec().into()).is_some()
    });
    parsed("configuration", |data| {
        let text = String::from_utf8_lossy(data);
        Source::new("x.yaml", &text).read(&|_| None).is_ok()
    });
    parsed("envelope", |data| Message::read(data).is_ok());
    parsed("tool", |data| {
        std::str::from_utf8(data).is_ok_and(|text| compact_tool(text).is_ok())
    });
    parsed("events", |data| {
        !sse::parse(data, 256).is_ok_and(|all| all.is_empty())
    });
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", directory.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}
