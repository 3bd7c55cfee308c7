//! The fuzz corpora, replayed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mcp_vary_config::Source;
use mcp_vary_gateway::fuzzing;
use mcp_vary_upstream::Answer;
use mcp_vary_view::derive::compact_tool;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::sse;
use proptest::prelude::*;

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
    parsed("members", |data| {
        let text = String::from_utf8_lossy(data);
        let (method, params) = text.split_once('\n').expect("two lines");
        fuzzing::check_params(method, params).is_some()
    });
    parsed("event_id", |data| {
        fuzzing::event_id(&String::from_utf8_lossy(data)).is_some()
    });
    parsed("headers", |data| {
        let text = String::from_utf8_lossy(data);
        let schema = text.lines().next().unwrap_or_default();
        fuzzing::headers_agree(schema, &[], "{}").is_ok()
    });
    parsed("tool", |data| {
        std::str::from_utf8(data).is_ok_and(|text| compact_tool(text).is_ok())
    });
    parsed("events", |data| {
        !sse::parse(data, 256).is_ok_and(|all| all.is_empty())
    });
}

/// A key that the gateway knows, as it is or in another spelling, or one of no meaning.
fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "name",
        "arguments",
        "uri",
        "ref",
        "argument",
        "context",
        "cursor",
        "task",
        "taskId",
        "requestState",
        "_meta",
        "inputResponses",
        "type",
        "value",
        "ttl",
        "limit",
        "query",
        "progressToken",
        "io.modelcontextprotocol/server-variant",
    ]);
    let spelled = (known, 0..9_u8).prop_map(|(known, how)| match how {
        0..=2 => known.to_owned(),
        3 => known.to_uppercase(),
        4 => format!("{}{}", known[..1].to_uppercase(), &known[1..]),
        5 => format!("{known}\\u0000"),
        6 => known
            .replacen('s', "\u{17f}", 1)
            .replacen('k', "\u{212a}", 1),
        7 => format!("\\u{:04x}{}", known.as_bytes()[0], &known[1..]),
        _ => known
            .replacen('i', "\u{131}", 1)
            .replacen("st", "\u{fb06}", 1),
    });
    prop_oneof![9 => spelled, 1 => "[a-z]{1,3}"]
}

/// The text of an object whose keys may repeat, on up to two levels.
fn object() -> impl Strategy<Value = String> {
    let written = |members: Vec<(String, String)>| {
        let members = members
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let plain = prop_oneof![
        Just("1.0".to_owned()),
        Just("\"ref/prompt\"".to_owned()),
        Just("[]".to_owned())
    ];
    let inner = prop::collection::vec((key(), plain.clone()), 0..4).prop_map(written);
    prop::collection::vec((key(), prop_oneof![plain, inner]), 0..6).prop_map(written)
}

/// A URI of one of the servers of `checks::locations`, with odd parts and odd spellings of what variants hide.
fn uri() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "file:///srv/docs/",
        "file:///srv/docs/app/",
        "file:///srv/docs/notes/",
        "FILE:///srv/docs/app/",
        "file://localhost/srv/docs/app/",
        "file:/srv/docs/app/",
        "file://",
        "app:///",
        "https://example.org/",
        "HTTPS://Example.ORG/app/",
        "https:",
    ]);
    let part = prop::sample::select(vec![
        "/",
        "//",
        "\\",
        "%2f",
        "%2F",
        "%5c",
        ".",
        "..",
        "%2e",
        ".%2E",
        "%252e",
        "secret",
        "%73ecret",
        "SECRET",
        "app",
        "notes",
        "readme",
        "a",
        "my file",
        "my%20file",
        ".md",
        "?",
        "#",
        ";",
        "%3f",
        "%00",
        "%",
        "\t",
        " ",
        "\u{e9}",
        "%c3%a9",
        "%ff",
        "srv/docs/",
    ]);
    let parts = prop::collection::vec(part, 0..7);
    (start, parts).prop_map(|(start, parts)| format!("{start}{}", parts.concat()))
}

/// The property about URIs is about some that are sent, and some that are refused.
#[test]
fn some_spellings_of_resources_are_sent() {
    for (uri, variants) in [
        ("file:///srv/docs/app/readme", 3),
        ("FILE:///srv/docs/app/%72eadme", 3),
        ("file:///srv/docs/app/my file", 3),
        ("file:///srv/docs/app/a%2fb", 3),
        ("https://EXAMPLE.org/app/index", 4),
        ("file:///srv/docs/app/x", 3),
        ("app:///x", 1),
        ("file:///srv/docs/notes/x.md", 3),
        ("file:///srv/docs/secret", 0),
        ("file:///srv/docs/app/../secret", 0),
        ("app:///../secret", 0),
    ] {
        assert_eq!(checks::locations::located(uri), variants, "{uri}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// SV-11, SV-12: what the gateway checked of a URI is what readers see that decode it, resolve its path, or compare
    /// its scheme and host in any case.
    #[test]
    fn what_was_checked_of_a_uri_is_where_every_reader_finds_it(uri in prop_oneof![9 => uri(), 1 => "\\PC{0,30}"]) {
        checks::locations::located(&uri);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// SV-12: what the gateway checked is what readers see that take the first key, the last key, or any case.
    #[test]
    fn what_was_checked_is_what_every_reader_sees(
        method in prop::sample::select(vec![
            "tools/call", "tools/list", "prompts/get", "resources/read", "completion/complete", "tasks/get", "ledger/x",
        ]),
        params in object(),
    ) {
        checks::members(format!("{method}\n{params}").as_bytes());
    }
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
