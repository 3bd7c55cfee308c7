//! The fuzz corpora, replayed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fuzz_checks::gateway::{Check, parsers};
use fuzz_checks::{auth, gateway, protocol};
use mcp_vary_auth::token::UnverifiedToken;
use mcp_vary_config::Source;
use mcp_vary_upstream::Answer;
use mcp_vary_view::derive::compact_tool;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::sse::{self, EventId};

/// Every check, after the name of its target and corpus.
fn checks() -> impl Iterator<Item = &'static Check> {
    protocol::CHECKS
        .iter()
        .chain(auth::CHECKS)
        .chain(gateway::CHECKS)
}

/// EXT-5: no input makes a parser fail its check or panic.
#[test]
#[expect(clippy::print_stdout, reason = "names the file of a failure")]
fn every_check_holds_for_its_corpus() {
    for (name, check) in checks() {
        let corpus = files(&fuzz().join("corpus").join(name));
        assert!(!corpus.is_empty(), "the corpus of {name} is empty");
        for path in corpus {
            let data = fs::read(&path).expect("the file can be read");
            println!("{}", path.display());
            check(&data);
        }
    }
}

/// A check without a fuzz target is a mistake.
#[test]
fn every_check_has_a_target_that_is_built() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    for (name, _) in checks() {
        let target = fuzz().join(format!("fuzz_targets/{name}.rs"));
        let target = fs::read_to_string(target).expect("a target");
        assert!(target.contains(&format!("::{name}(data)")), "{name}");
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is not in the manifest"
        );
    }
}

/// A corpus without a check is a mistake.
#[test]
fn every_corpus_has_a_check() {
    let names: BTreeSet<&str> = checks().map(|(name, _)| *name).collect();
    for corpus in files(&fuzz().join("corpus")) {
        let name = corpus.file_name().and_then(|name| name.to_str());
        let name = name.expect("a name in UTF-8");
        assert!(names.contains(name), "{name}");
    }
}

fn reaches_both_outcomes(name: &str, parses: impl Fn(&[u8]) -> bool) {
    let outcomes: BTreeSet<bool> = files(&fuzz().join("corpus").join(name))
        .iter()
        .map(|path| fs::read(path).expect("the file can be read"))
        .map(|data| parses(&data))
        .collect();
    assert_eq!(outcomes.len(), 2, "{name} has only good or only bad input");
}

/// A corpus of only good or only bad input exercises half of its check.
#[test]
fn the_corpora_of_the_protocol_reach_both_outcomes() {
    let parsed = |name: &str, parses: fn(&str) -> bool| {
        reaches_both_outcomes(name, |data| str::from_utf8(data).is_ok_and(parses));
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

/// A corpus of only good or only bad input exercises half of its check.
#[test]
fn the_corpora_of_the_gateway_reach_both_outcomes() {
    let parsed = |name: &str, parses: fn(&[u8]) -> bool| reaches_both_outcomes(name, parses);
    parsed("answer", |data| {
        Answer::parse(data.to_vec().into()).is_some()
    });
    parsed("configuration", |data| {
        let text = String::from_utf8_lossy(data);
        Source::new("x.yaml", &text).read(&|_| None).is_ok()
    });
    parsed("envelope", |data| Message::read(data).is_ok());
    parsed("members", |data| {
        let text = String::from_utf8_lossy(data);
        let (method, params) = text.split_once('\n').expect("two lines");
        parsers::checked_params(method, params).is_some()
    });
    parsed("event_id", |data| {
        EventId::parse(&String::from_utf8_lossy(data)).is_some()
    });
    parsed("challenge", |data| {
        let value = http::HeaderValue::from_bytes(data).ok();
        value.is_some_and(|value| parsers::written_challenge(&value).is_some())
    });
    parsed("headers", |data| {
        let text = String::from_utf8_lossy(data);
        let schema = text.lines().next().unwrap_or_default();
        parsers::headers_agree(schema, &[], "{}").is_ok()
    });
    parsed("token", |data| {
        std::str::from_utf8(data).is_ok_and(|text| UnverifiedToken::parse(text).is_ok())
    });
    parsed("tool", |data| {
        std::str::from_utf8(data).is_ok_and(|text| compact_tool(text).is_ok())
    });
    parsed("events", |data| {
        !sse::parse(data, 256).is_ok_and(|all| all.is_empty())
    });
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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
