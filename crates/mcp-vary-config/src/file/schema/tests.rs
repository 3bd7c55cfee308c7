//! The schema accepts what the reader accepts, and the reference has the tables of both.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;

use serde_json::{Map, Value, json};

use super::{reference, schema};
use crate::Source;
use crate::document::{self, Node};
use crate::schema_builder::SchemaBuilder;

const COMMITTED: &str = include_str!("../../../../../docs/vary.schema.json");

const WRITE: &str = "run `cargo run -p mcp-vary-config --example pages`";

/// The pages on the configuration.
fn pages() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration");
    let paths = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = paths.map(|page| page.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// The pages, one after the other.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let texts = pages().into_iter().map(|(_, text)| text);
    texts.collect::<Vec<_>>().join("\n")
});

const README: &str = include_str!("../../../../../README.md");

#[test]
fn the_committed_schema_is_the_programs() {
    assert!(COMMITTED == schema(), "docs/vary.schema.json: {WRITE}");
    let schema = parsed();
    assert!(jsonschema::meta::is_valid(&schema));
}

fn parsed() -> Value {
    serde_json::from_str(&schema()).unwrap()
}

/// What the reader takes a file for, as JSON.
fn json_of(name: &str, text: &str) -> Value {
    fn value(node: &Node) -> Value {
        match &node.value {
            document::Value::Null => Value::Null,
            document::Value::Text(text) => json!(text),
            document::Value::Scalar(word) => {
                serde_json::from_str(word).unwrap_or_else(|_| json!(word))
            }
            document::Value::List(items) => items.iter().map(value).collect(),
            document::Value::Table(entries) => {
                let entries = entries.iter();
                entries
                    .map(|entry| (entry.key.clone(), value(&entry.node)))
                    .collect()
            }
        }
    }
    let root = document::read(name, text);
    value(&root.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}")))
}

/// The blocks of one language on a page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let starts = page
        .split(&format!("```{language}\n"))
        .skip(1)
        .collect::<Vec<_>>();
    starts
        .iter()
        .filter_map(|start| start.split("\n```").next())
        .collect()
}

#[test]
fn every_example_is_valid() {
    let validator = jsonschema::validator_for(&parsed()).unwrap();
    let named = |name, blocks: Vec<&str>| {
        let blocks = blocks.into_iter().map(move |text| (name, text.to_owned()));
        blocks.collect::<Vec<(&str, String)>>()
    };
    let mut files = named("x.yaml", blocks(&PAGE, "yaml"));
    files.extend(named("x.yaml", blocks(README, "yaml")));
    files.extend(named("x.toml", blocks(&PAGE, "toml")));
    assert!(files.len() >= 8, "{}", files.len());
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/configurations");
    let before = files.len();
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            files.push(("x.yaml", std::fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(files.len() > before, "no example in {examples}");
    for (name, text) in files {
        if let Err(error) = validator.validate(&json_of(name, &text)) {
            panic!("{error} at {}\n{text}", error.instance_path());
        }
    }
}

/// Where the tables of the reference stand in [`base`].
const PLACES: &[&str] = &[
    "",
    "/servers/a",
    "/servers/a/restart",
    "/variants/standard",
    "/variants/standard/tools/include/0",
    "/variants/old/deprecation",
    "/variants/standard/overrides/tools/t/arguments/a",
    "/clients/0",
    "/ranking",
    "/ranking/weights/useCase",
    "/limits",
    "/access/0",
    "/access/0/allow/0",
    "/rates/0",
    "/auth",
    "/auth/keys/0",
    "/auth/issuers/0",
    "/stdio-principal",
    "/tls",
    "/log",
    "/audit",
    // Those that it describes in sentences.
    "/variants/standard/tools",
    "/variants/standard/overrides",
    "/variants/standard/overrides/tools/t",
    "/variants/standard/overrides/prompts/p",
    "/variants/standard/overrides/prompts/p/arguments/a",
    "/variants/standard/overrides/resources/r",
];

/// A file that has every table.
fn base() -> Value {
    json!({
        "servers": {"a": {"command": "x", "restart": {}}},
        "limits": {},
        "rates": [{"rate": "600/min"}],
        "public-url": "https://mcp.example",
        "auth": {
            "issuers": [{"issuer": "https://idp.example"}],
            "keys": [{"name": "a", "sha256": "0".repeat(64)}],
        },
        "stdio-principal": {"name": "a"},
        "tls": {"certificate": "a", "key": "b"},
        "log": {"level": "info"},
        "audit": {"to": "stdout"},
        "traces": {},
        "access": [{
            "when": {"groups": "a"},
            "allow": [{"server": "a"}],
            "variant": "standard",
        }],
        "clients": [{"variant": "standard"}],
        "ranking": {"weights": {"useCase": {}}},
        "variants": {
            "standard": {
                "tools": {"include": [{}]},
                "overrides": {
                    "tools": {"t": {"arguments": {"a": {}}}},
                    "prompts": {"p": {"arguments": {"a": {}}}},
                    "resources": {"r": {}},
                },
            },
            "old": {"deprecation": {"message": "m"}},
        },
    })
}

/// The settings that the schema has at a place of a file.
fn settings_at(schema: &Value, place: &str) -> Map<String, Value> {
    let mut at = vec![schema.clone()];
    for key in place.split('/').skip(1) {
        at = at
            .iter()
            .flat_map(|shape| below(schema, shape, key))
            .collect();
    }
    let tables = at.iter().flat_map(|shape| choices(schema, shape));
    let tables = tables.filter(|shape| shape.get("patternProperties").is_some());
    let settings = tables.filter_map(|shape| shape["properties"].as_object().cloned());
    let mut settings: Map<_, _> = settings.flatten().collect();
    settings.remove("$schema");
    settings
}

/// What a shape stands for: its choices, with references followed.
fn choices(schema: &Value, shape: &Value) -> Vec<Value> {
    if let Some(reference) = shape["$ref"].as_str() {
        let target = schema.pointer(reference.trim_start_matches('#')).unwrap();
        return choices(schema, target);
    }
    match shape["anyOf"].as_array() {
        Some(any) => any.iter().flat_map(|one| choices(schema, one)).collect(),
        None => vec![shape.clone()],
    }
}

fn below(schema: &Value, shape: &Value, key: &str) -> Vec<Value> {
    let shapes = choices(schema, shape).into_iter();
    let below = shapes.filter_map(|shape| {
        let of_list = shape.get("items").filter(|_| key.parse::<usize>().is_ok());
        let named = || {
            shape
                .get("additionalProperties")
                .filter(|it| it.is_object())
        };
        let found = shape["properties"].get(key).or(of_list).or_else(named);
        found.cloned()
    });
    below.collect()
}

/// The file with something else at `place`.
fn file_with(place: &str, key: &str, value: &Value) -> Value {
    let mut file = base();
    file.pointer_mut(place).unwrap()[key] = value.clone();
    file
}

/// Every key that the reader knows is in the schema, and no other.
#[test]
fn the_schema_has_the_keys_of_the_reader() {
    let schema = parsed();
    for place in PLACES {
        let file = file_with(place, "zzzzzzzz", &json!(1)).to_string();
        let diagnostics = Source::new("x.json", &file).read(&|_| None).unwrap_err();
        let fix = diagnostics.all[0].fix.clone().unwrap();
        let count = fix.strip_prefix("`vary config schema` describes the ");
        if let Some(count) = count.and_then(|rest| rest.strip_suffix(" keys")) {
            let settings = settings_at(&schema, place);
            assert_eq!(count, settings.len().to_string(), "{place}");
            for key in settings.keys() {
                let file = file_with(place, key, &json!([])).to_string();
                let read = Source::new("x.json", &file).read(&|_| None);
                let said = read.err().map_or_else(String::new, |all| all.to_string());
                assert!(!said.contains("is not a known key"), "{place} {key}");
            }
            continue;
        }
        let known = fix.trim_start_matches("there are ").split(", ");
        let mut known: Vec<_> = known.map(|key| key.trim_matches('`').to_owned()).collect();
        let mut said: Vec<_> = settings_at(&schema, place).keys().cloned().collect();
        known.sort_unstable();
        said.sort_unstable();
        assert_eq!(said, known, "{place}");
    }
}

/// Every page has the tables of the program, and every table is on one page, but for those that pages describe in
/// sentences.
#[test]
fn the_reference_has_the_keys_of_the_program() {
    for (path, page) in pages() {
        let is_current = reference(&page) == page;
        assert!(is_current, "{}: {WRITE}", path.display());
    }
    let mut schema = SchemaBuilder::default();
    crate::file::shape(&mut schema);
    let on_no_page = schema.reference.keys().filter(|table| {
        let head = format!("\n| key of {table} | default | |\n");
        PAGE.matches(&head).count() != 1
    });
    let in_sentences = [
        "`overrides`",
        "a selection",
        "an override of a prompt",
        "an override of a resource",
        "an override of a tool",
    ];
    assert!(on_no_page.eq(&in_sentences));
}

/// Values as people may write them, right and wrong.
fn values() -> Vec<Value> {
    let values = json!([
        "", " ", "on", "OFF", "yes", "x", "a b", "30s", "1h 30m", "5000", "0.25", "1.5.2s", "soon", "8",
        "+8", "-1", "8800", "host:80", "host:", "16 MiB", "64kB", "1 TB", "http://x/", "ftp://x/",
        "http:///x", "2027-01-31", "tomorrow", "stable", "experimental", "stdio", "http", "sse", "compact",
        "standard", "full", "first-sentence", "on-demand", "types-off", "gemini", "none", "content",
        "session", "never", "idempotent", "always", "absent", "human", "format=json", "=", "*", "{a,b}",
        "{a", "${V}", "x${V}", "${env:V}", "${V:-30s}", "$${V}", "$$${V}", "${input:a}", "${", "a ${V",
        "${}", "${V:-${V}}",
        null, true, false, 0, 1, 0.5, 7, 30, 999, 1000, 5000, 70000, 1048576, 2000000, -1, [], ["a"],
        ["a", 1], [null], [[]], [{}], ["${input:a}"], {}, {"a": "b"}, {"a": 1}, {"a": null}, {"a": {}},
        {"a": []}, {"a b": "c"}, {"x-a": 1}, {"$schema": "x"},
    ]);
    values.as_array().unwrap().clone()
}

/// All values for a shape that was not seen before, else those that tell it from others.
fn values_for(shape: &Value, seen: &mut BTreeSet<String>) -> Vec<Value> {
    let mut shape = shape.clone();
    for told in ["description", "default"] {
        shape.as_object_mut().unwrap().remove(told);
    }
    if seen.insert(shape.to_string()) {
        return values();
    }
    let telling = json!([
        "x", "on", "30s", "16 MiB", "8", "http://x/", "stable", "${V}", "${", true, 1, 5000, null, ["a"], {"a": "b"},
        {"a": {}}
    ]);
    telling.as_array().unwrap().clone()
}

/// What the reader says of a file when the variable `V` has the best of `values`, which begin at `start`.
///
/// A value with which the reader says nothing is the best, and where the reader does not ask for `V` all are the same.
/// The others are not read then. `start` becomes the place of the last value that was read: for the next file with the
/// same key it is often the best one.
fn refused(file: &Value, values: &[&str], start: &mut usize) -> Vec<String> {
    let text = file.to_string();
    let mut best: Option<Vec<String>> = None;
    let rank = |said: &[String]| {
        (
            said.len(),
            !said.iter().all(|what| is_left_to_the_reader(what)),
        )
    };
    let first = *start;
    for place in (0..values.len()).map(|at| (first + at) % values.len()) {
        let is_asked = Cell::new(false);
        let variable = |_: &str| {
            is_asked.set(true);
            Some(values[place].to_owned())
        };
        *start = place;
        let said = match Source::new("x.json", &text).read(&variable) {
            Ok(_) => return Vec::new(),
            Err(diagnostics) => diagnostics.all.into_iter(),
        };
        let said: Vec<_> = said.map(|diagnostic| diagnostic.what).collect();
        if best.as_ref().is_none_or(|best| rank(&said) < rank(best)) {
            best = Some(said);
        }
        if !is_asked.get() {
            break;
        }
    }
    best.unwrap()
}

/// The values of the variable `V`.
static BEST: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let values = "8 30s on off http://x/ standard stable full gemini content session never as-needed any stdio strict \
                  absent human 2027-01-31 https://idp.example endpoint principal calls 600/min a required stdout plain \
                  drop 0000000000000000000000000000000000000000000000000000000000000000 redis://localhost open \
                  several";
    values.split(' ').collect()
});

/// What cannot be told from the shape of a file.
const LEFT_TO_THE_READER: &[&str] = &[
    "is out of range",
    "is not a number that can be used here",
    "has no effect without `schemas: on-demand`",
    "is not a variant",
    "is not a pattern",
    "is not a tag",
    "is not a day of the calendar",
    "leads back to the variant itself",
    "is not an address to listen on",
    "is not a media type",
    "has no points",
    "has a first pause that is longer than the longest",
    "cannot be used",
    "accepts nobody",
    "needs `trusted-proxies`",
    "needs `keys`",
    "does nothing without",
    "names nobody",
    "is not among `variants` of the rule",
    "is empty, longer than 128 bytes",
    "is not a name that clients can be shown",
    "is not a server",
];

fn is_left_to_the_reader(what: &str) -> bool {
    let mut left = LEFT_TO_THE_READER.iter();
    left.any(|left| what.starts_with(left))
}

/// Each value in the place of each setting: what the reader takes the schema takes, and what the reader
/// refuses the schema refuses, but for what only the whole file tells.
#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = parsed();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = BTreeSet::new();
    let mut tried = Vec::new();
    for place in PLACES {
        for (key, shape) in settings_at(&schema, place) {
            let values = values_for(&shape, &mut seen);
            tried.extend(values.into_iter().map(|value| (*place, key.clone(), value)));
        }
    }
    // The reader takes its time: each core has a part.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let compared: Vec<Compared> = thread::scope(|scope| {
        let parts = tried.chunks(tried.len().div_ceil(cores));
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(|| compared(part, &validator)))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let wrong: Vec<_> = compared.iter().flat_map(|it| &it.wrong).cloned().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let taken: usize = compared.iter().map(|it| it.taken).sum();
    let refusals: usize = compared.iter().map(|it| it.refusals).sum();
    assert!(taken > 500 && refusals > 500, "{taken} {refusals}");
}

/// What the reader and the schema say of some values.
#[derive(Default)]
struct Compared {
    /// The values that the reader takes.
    taken: usize,
    /// The values that the schema refuses.
    refusals: usize,
    /// Where the two differ.
    wrong: Vec<String>,
}

fn compared(tried: &[(&str, String, Value)], validator: &jsonschema::Validator) -> Compared {
    // What stands for a part of a value cannot be known.
    let is_open = |value: &Value| ["x${V}", "$$${V}"].iter().any(|open| value == open);
    let mut found = Compared::default();
    let mut start = 0;
    for (place, key, value) in tried {
        let file = file_with(place, key, value);
        let valid = validator.is_valid(&file);
        let said = if valid && is_open(value) {
            refused(&file, &BEST[..1], &mut 0)
        } else {
            refused(&file, &BEST, &mut start)
        };
        if !valid && said.is_empty() {
            let wrong = format!("{place}/{key}: {value} is refused by the schema alone");
            found.wrong.push(wrong);
        }
        if valid && !is_open(value) && !said.iter().all(|what| is_left_to_the_reader(what)) {
            let wrong = format!("{place}/{key}: {value} is taken: {said:?}");
            found.wrong.push(wrong);
        }
        found.taken += usize::from(said.is_empty());
        found.refusals += usize::from(!valid);
    }
    found
}

#[track_caller]
fn schema_refuses(file: &str) {
    let validator = jsonschema::validator_for(&parsed()).unwrap();
    let value = json_of("x.yaml", file);
    assert!(!validator.is_valid(&value), "{file}");
    assert!(
        Source::new("x.yaml", file).read(&|_| None).is_err(),
        "{file}"
    );
}

#[test]
fn what_two_keys_tell_together_is_refused() {
    for server in [
        "{}",
        "{comand: x}",
        "{command: x, url: 'http://x/'}",
        "{command: x, type: http}",
        "{command: x, type: sse}",
        "{url: 'http://x/', type: stdio}",
        "{url: 'http://x/', args: [x]}",
        "{url: 'http://x/', cwd: x}",
        "{command: x, headers: {A: b}}",
        "{command: x, disabled: true}",
        "[x]",
    ] {
        schema_refuses(&format!("servers: {{a: {server}}}"));
    }
    for file in [
        "{}",
        "naming: always",
        "servers: {}",
        "servers: {a b: {command: x}}",
    ] {
        schema_refuses(file);
    }
    for variants in [
        "{}",
        "{a: {status: experimental}}",
        "{a: {deprecation: {message: m}}}",
        "{'': {}}",
    ] {
        schema_refuses(&format!(
            "servers: {{a: {{command: x}}}}\nvariants: {variants}"
        ));
    }
    for clients in ["[{}]", "[{name: a}]", "[{name: a, headers: {A: b}}]"] {
        schema_refuses(&format!(
            "servers: {{a: {{command: x}}}}\nclients: {clients}"
        ));
    }
    for empty in ["[]", "{include: []}"] {
        schema_refuses(&format!(
            "servers: {{a: {{command: x}}}}\nvariants: {{standard: {{tools: {empty}}}}}"
        ));
    }
}

/// An editor may see a file before its tables are merged.
#[test]
fn what_is_not_merged_yet_is_allowed() {
    let validator = jsonschema::validator_for(&parsed()).unwrap();
    let file =
        json!({"x-slow": {"timeout": "5m"}, "servers": {"<<": {}, "a": {"<<": {"command": "x"}}}});
    assert!(validator.is_valid(&file));
    let disabled = json!({"servers": {"a": {"command": "x"}, "b": {"disabled": true}}});
    assert!(validator.is_valid(&disabled));
}
