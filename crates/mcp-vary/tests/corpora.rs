//! The fuzz corpora, replayed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/checks/mcp_vary.rs"]
mod checks;

/// EXT-5: whatever a peer sends, reading it neither fails nor panics, and keeps the limits.
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

/// A corpus that no check replays is a slip.
#[test]
fn every_corpus_has_a_check() {
    let checks: String = files(&fuzz().join("checks"))
        .iter()
        .map(|path| fs::read_to_string(path).expect("a file of checks"))
        .collect();
    for corpus in files(&fuzz().join("corpus")) {
        let name = corpus.file_name().and_then(|name| name.to_str());
        let name = name.expect("a name in UTF-8");
        assert!(checks.contains(&format!("(\"{name}\", {name})")), "{name}");
    }
}

/// A corpus of only good or only bad input exercises half of its check.
#[test]
fn the_corpora_reach_both_outcomes() {
    let parsed = |name: &str, parses: fn(&str) -> bool| {
        let outcomes: BTreeSet<bool> = files(&fuzz().join("corpus").join(name))
            .iter()
            .map(|path| fs::read(path).expect("the file can be read"))
            .map(|data| str::from_utf8(&data).is_ok_and(parses))
            .collect();
        assert_eq!(outcomes.len(), 2, "{name} has only good or only bad input");
    };
    parsed("tags", |text| {
        text.parse::<mcp_vary::feature::FeatureTag>().is_ok()
    });
    parsed("predicate", |text| {
        text.parse::<mcp_vary::predicate::Predicate>().is_ok()
    });
    parsed("json", |text| mcp_vary::json::Json::parse(text).is_ok());
    parsed("settings", |text| {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    });
    parsed("hints", |text| {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    });
    parsed("result", |text| {
        mcp_vary::visibility::forward(text, mcp_vary::visibility::Experience::Program).is_ok()
    });
    parsed("view", |text| {
        let definition = text.lines().next().unwrap_or_default();
        mcp_vary_view::Dialect::Gemini.rewrite(definition).is_ok()
    });
    parsed("part", |text| {
        let query = text.lines().next().unwrap_or_default();
        mcp_vary::render::Part::parse(query).is_ok()
    });
    parsed("check", |text| {
        let schema = text.lines().next().unwrap_or_default();
        mcp_vary::json::Json::parse(schema).is_ok()
    });
    parsed("cursor", |text| {
        let variant = "compact".parse().expect("a valid identifier");
        let binding = mcp_vary::cursor::CursorBinding {
            variant: &variant,
            method: "tools/list",
            principal: "alice",
        };
        let keys = mcp_vary::cursor::CursorKeys::new([1; 32]);
        mcp_vary::cursor::open(&keys, &binding, text).is_ok()
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
