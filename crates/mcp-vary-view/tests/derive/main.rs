//! What `compact` and `read-only` list: every recorded tool, and schemas of every kind.
//!
//! `compact` accepts the same arguments: values on both sides of the line are validated against the
//! original and the compact input schema, which have to agree.

mod essential;
mod sections;
mod typed;

use essential::plain;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jsonschema::{Draft, Validator};
use mcp_vary::json::{Json, Members, elements};
use mcp_vary_view::derive::{
    compact_prompt, compact_resource, compact_tool, first_sentence, is_read_only,
};
use proptest::proptest;
use serde_json::{Value, json};

use mcp_vary_testkit::generate::mutants::mutants;
use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::generate::schemas;
use mcp_vary_testkit::generate::values::Values;

/// The text of a recorded list.
fn list(name: &str) -> String {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    fs::read_to_string(lists.join(name)).expect("a recorded list")
}

/// The tools of a recorded list, as written.
fn tools(list: &str) -> Vec<String> {
    let list = Members::parse(list).expect("a list is an object");
    let tools = elements(list.get("tools").unwrap_or_default()).expect("of tools");
    tools.into_iter().map(str::to_owned).collect()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("the text is JSON")
}

/// The validator of a peer whose default dialect is `default`.
fn validator(schema: &Value, default: Draft) -> Option<Validator> {
    let mut options = jsonschema::options().should_validate_formats(true);
    if schema.get("$schema").is_none() {
        options = options.with_draft(default);
    }
    options.build(schema).ok()
}

/// Both schemas, as peers of either default dialect read them.
struct Pair(Vec<(Validator, Validator)>);

impl Pair {
    /// Nothing when the original is no schema.
    #[track_caller]
    fn new(original: &Value, compact: &Value) -> Option<Self> {
        let pair = |draft| {
            let original = validator(original, draft)?;
            let compact = validator(compact, draft);
            Some((
                original,
                compact.expect("the compact schema is one if the original is"),
            ))
        };
        [Draft::Draft7, Draft::Draft202012]
            .into_iter()
            .map(pair)
            .collect::<Option<_>>()
            .map(Self)
    }

    /// Whether `value` is valid by default, after original and compact have agreed on it.
    #[track_caller]
    fn agree(&self, what: &str, value: &Value) -> bool {
        let mut valid = true;
        for (original, compact) in &self.0 {
            valid = original.is_valid(value);
            assert_eq!(
                valid,
                compact.is_valid(value),
                "original and compact of {what} on {value}"
            );
        }
        valid
    }
}

/// How the values of one tool fell out.
#[derive(Default)]
struct Count {
    values: usize,
    valid: usize,
    /// The constraints that some mutant set out to break, and those for which one was invalid.
    tried: BTreeSet<String>,
    broken: BTreeSet<String>,
}

/// Validates values after the tool's schema, and mutants of some, against both schemas.
#[track_caller]
fn accepts_the_same(tool: &str) -> Count {
    let original = value(tool)["inputSchema"].clone();
    let compact = compact_tool(tool).expect("a recorded tool is a tool");
    let compact = value(&compact)["inputSchema"].clone();
    let pair = Pair::new(&original, &compact).expect("a recorded schema is one");
    let mut count = Count::default();
    let mut values = Values::new(&original, 1);
    for round in 0..VALUES {
        values.optional = OPTIONAL[round % OPTIONAL.len()];
        let value = if round % 10 == 9 {
            values.anything(0)
        } else {
            values.value()
        };
        let valid = pair.agree(tool, &value);
        count.values += 1;
        count.valid += usize::from(valid);
        let mutated = valid && round < MUTATED;
        let mutants = mutated.then(|| mutants(&original, &value));
        for mutant in mutants.into_iter().flatten() {
            if !pair.agree(tool, &mutant.value) {
                count.broken.insert(mutant.constraint.clone());
            }
            count.tried.insert(mutant.constraint);
        }
    }
    count
}

/// Values for each tool, their mutants not counted.
const VALUES: usize = 1000;
/// Of that many of them, the valid ones are mutated.
const MUTATED: usize = 24;
/// How likely an optional property is, in turn; over 100 also further down.
const OPTIONAL: [usize; 4] = [100, 50, 10, 400];

#[track_caller]
fn the_list_accepts_the_same(name: &str, tools_in_it: usize) {
    let tools = tools(&list(name));
    assert_eq!(tools.len(), tools_in_it);
    for tool in &tools {
        let count = accepts_the_same(tool);
        assert!(count.values >= 1000, "{} values of {tool}", count.values);
        assert!(
            count.valid * 100 >= count.values * 40,
            "{} valid values of {tool}",
            count.valid
        );
        assert!(!count.broken.is_empty(), "no mutant of {tool} is invalid");
        // What breaks one branch of a choice may be valid in another.
        let choice = |at: &&String| at.contains("/anyOf/") || at.contains("/oneOf/");
        let whole: Vec<&String> = count
            .tried
            .difference(&count.broken)
            .filter(|at| !choice(at))
            .collect();
        assert!(whole.is_empty(), "no mutant of {tool} breaks {whole:?}");
    }
}

#[test]
fn compact_accepts_the_same_arguments_in_every_recorded_list() {
    the_list_accepts_the_same("budget.json", 1);
    the_list_accepts_the_same("everything.json", 17);
    the_list_accepts_the_same("filesystem.json", 14);
    the_list_accepts_the_same("git.json", 12);
    the_list_accepts_the_same("memory.json", 9);
    the_list_accepts_the_same("playwright.json", 25);
    the_list_accepts_the_same("sqlite.json", 6);
    the_list_accepts_the_same("time.json", 2);
}

#[test]
fn compact_accepts_the_same_arguments_in_the_longest_recorded_lists() {
    the_list_accepts_the_same("mongo.json", 27);
    the_list_accepts_the_same("notion.json", 24);
}

#[test]
fn compact_accepts_the_same_arguments_in_the_later_recorded_lists() {
    the_list_accepts_the_same("alchemy.json", 4);
    the_list_accepts_the_same("chrome-devtools.json", 32);
    the_list_accepts_the_same("dbhub.json", 2);
    the_list_accepts_the_same("excalidraw.json", 26);
    the_list_accepts_the_same("fetch.json", 1);
    the_list_accepts_the_same("map.json", 2);
}

/// Fewer values are valid by chance, so only the verdicts are compared.
#[test]
fn compact_gives_the_same_verdicts_in_the_recorded_lists_of_documents() {
    for tool in ["excel.json", "word.json"]
        .iter()
        .flat_map(|it| tools(&list(it)))
    {
        assert!(accepts_the_same(&tool).values >= 1000, "{tool}");
    }
}

#[test]
fn compact_accepts_the_same_arguments_whatever_the_schema() {
    let (mut schemas, mut valid, mut invalid, mut shorter) = (0, 0, 0, 0);
    for seed in 0..1000 {
        let original = schemas::schema(&mut Random(seed));
        let tool = json!({"name": "t", "inputSchema": original}).to_string();
        let compact = value(&compact_tool(&tool).unwrap())["inputSchema"].clone();
        let Some(pair) = Pair::new(&original, &compact) else {
            continue;
        };
        schemas += 1;
        shorter += usize::from(compact != original);
        let mut values = Values::new(&original, seed);
        for turn in 0..24 {
            let value = if turn % 3 == 2 {
                values.anything(0)
            } else {
                values.value()
            };
            let mutants = mutants(&original, &value).into_iter().take(50);
            for value in mutants.map(|mutant| mutant.value).chain([value]) {
                let holds = pair.agree(&tool, &value);
                valid += usize::from(holds);
                invalid += usize::from(!holds);
            }
        }
    }
    assert!(
        schemas >= 600 && shorter * 2 >= schemas,
        "{shorter} of {schemas} schemas compacted"
    );
    assert!(
        valid >= 10_000 && invalid >= 10_000,
        "{valid} valid, {invalid} invalid"
    );
}

/// The names of the recorded lists.
const LISTS: [&str; 10] = [
    "budget.json",
    "everything.json",
    "filesystem.json",
    "git.json",
    "memory.json",
    "mongo.json",
    "notion.json",
    "playwright.json",
    "sqlite.json",
    "time.json",
];

#[test]
fn compact_changes_nothing_else_about_a_tool() {
    for tool in LISTS.iter().flat_map(|name| tools(&list(name))) {
        let compact = value(&compact_tool(&tool).unwrap());
        let mut original = value(&tool);
        let kept = original.as_object_mut().unwrap();
        kept.retain(|key, _| !["title", "icons", "outputSchema"].contains(&key.as_str()));
        kept["inputSchema"] = compact["inputSchema"].clone();
        let first = first_sentence(kept["description"].as_str().unwrap());
        let shortened = compact["description"].as_str().unwrap();
        assert!(plain(shortened).starts_with(&plain(&first)), "{shortened}");
        kept["description"] = json!(shortened);
        if let Some(annotations) = kept.get_mut("annotations") {
            annotations.as_object_mut().unwrap().shift_remove("title");
        }
        assert_eq!(compact.to_string(), original.to_string());
    }
}

#[test]
fn compact_leaves_only_descriptions_of_the_prose_in_the_recorded_schemas() {
    for tool in LISTS.iter().flat_map(|name| tools(&list(name))) {
        let compact = value(&compact_tool(&tool).unwrap());
        assert_no_prose(&compact["inputSchema"], &tool);
    }
}

/// A property that is called like a keyword holds a schema, prose is text.
#[track_caller]
fn assert_no_prose(schema: &Value, tool: &str) {
    match schema {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            let prose = ["title", "$comment", "examples"].contains(&key.as_str());
            assert!(!prose || value.is_object(), "{key} in {tool}");
            assert_no_prose(value, tool);
        }),
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| assert_no_prose(element, tool)),
        _ => {}
    }
}

#[test]
fn a_compact_tool_reads_like_this() {
    let tools = tools(&list("filesystem.json"));
    let tool = tools
        .iter()
        .find(|tool| tool.contains("\"edit_file\""))
        .unwrap();
    insta::assert_snapshot!(compact_tool(tool).unwrap(), @r#"{"name":"edit_file","description":"Make line-based edits to text file. Each edit replaces exact line sequences with new content. Only works within allowed directories.","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string","description":"Text to search for - must match exactly"},"newText":{"type":"string"}},"required":["oldText","newText"]}},"dryRun":{"default":false,"description":"Preview changes using git-style diff format","type":"boolean"}},"required":["path","edits"]},"annotations":{"readOnlyHint":false,"idempotentHint":false,"destructiveHint":true,"openWorldHint":false},"execution":{"taskSupport":"forbidden"}}"#);
}

#[track_caller]
fn derives(derive: fn(&str) -> Result<String, mcp_vary::json::JsonError>, cases: &[(&str, &str)]) {
    for (object, derived) in cases {
        assert_eq!(derive(object).as_deref(), Ok(*derived), "of {object}");
    }
}

#[test]
fn members_of_a_tool_that_are_not_known_or_not_as_they_should_be_stay() {
    derives(
        compact_tool,
        &[
            (
                r#"{"name": "t", "future": {"title": "T"}, "n": 1.10}"#,
                r#"{"name":"t","future":{"title":"T"},"n":1.10}"#,
            ),
            (
                r#"{"description": 7, "annotations": "no", "inputSchema": []}"#,
                r#"{"description":7,"annotations":"no","inputSchema":[]}"#,
            ),
            (
                r#"{"annotations": {"title": "T", "readOnlyHint": true}}"#,
                r#"{"annotations":{"readOnlyHint":true}}"#,
            ),
            (
                r#"{"_meta": {"title": "T"}, "icons": [], "execution": {"taskSupport": "forbidden"}}"#,
                r#"{"_meta":{"title":"T"},"execution":{"taskSupport":"forbidden"}}"#,
            ),
            ("{}", "{}"),
        ],
    );
}

#[test]
fn prompts_and_resources_are_shortened_too() {
    derives(
        compact_prompt,
        &[
            (
                r#"{"name": "p", "title": "P", "description": "One. This is two.", "arguments": [{"name": "title", "title": "A", "description": "One. This is two.", "required": true}, 7]}"#,
                r#"{"name":"p","description":"One.","arguments":[{"name":"title","description":"One.","required":true},7]}"#,
            ),
            (
                r#"{"name": "p", "arguments": {}}"#,
                r#"{"name":"p","arguments":{}}"#,
            ),
        ],
    );
    derives(
        compact_resource,
        &[(
            r#"{"uri": "a:b", "name": "r", "title": "R", "icons": [], "description": "One. This is two.", "annotations": {"priority": 1.0}}"#,
            r#"{"uri":"a:b","name":"r","description":"One.","annotations":{"priority":1.0}}"#,
        )],
    );
}

#[test]
fn what_is_no_object_is_an_error() {
    for tool in [
        "",
        "null",
        "[]",
        "7",
        "\"tool\"",
        "{",
        "{} {}",
        r#"{"a": 1, "a": 2}"#,
    ] {
        assert!(compact_tool(tool).is_err(), "{tool}");
    }
    let deep = format!(
        r#"{{"inputSchema": {}{}}}"#,
        r#"{"not":"#.repeat(50_000),
        "}".repeat(50_000)
    );
    assert!(compact_tool(&deep).is_err());
}

#[track_caller]
fn read_only(tools: &[&str], expected: bool) {
    for tool in tools {
        assert_eq!(is_read_only(tool), expected, "{tool}");
    }
}

#[test]
fn only_a_literal_true_declares_read_only() {
    read_only(
        &[r#"{"annotations": {"readOnlyHint": true, "title": "T"}}"#],
        true,
    );
    read_only(
        &[
            r#"{"annotations": {"readOnlyHint": false}}"#,
            r#"{"annotations": {"readOnlyHint": "true"}}"#,
            r#"{"annotations": {"readOnlyHint": 1}}"#,
            r#"{"annotations": {"readOnlyHint": null}}"#,
            r#"{"annotations": {"readOnlyHint": true, "readOnlyHint": false}}"#,
            r#"{"annotations": [{"readOnlyHint": true}]}"#,
            r#"{"annotations": {}}"#,
            r#"{"annotations": null}"#,
            r#"{"readOnlyHint": true}"#,
            r#"{"inputSchema": {"annotations": {"readOnlyHint": true}}}"#,
            "{}",
            "",
            "[]",
            r#"{"annotations": {"readOnlyHint": true}"#,
        ],
        false,
    );
}

#[test]
fn a_recorded_list_comes_out_of_members_as_it_went_in() {
    for name in LISTS {
        let text = Json::parse(&list(name)).unwrap().to_json();
        let mut list = Members::parse(&text).unwrap();
        let tools = elements(list.get("tools").unwrap()).unwrap();
        let again = tools
            .iter()
            .map(|tool| Members::parse(tool).unwrap().to_json());
        let again = format!("[{}]", again.collect::<Vec<_>>().join(","));
        list.set("tools", again);
        assert_eq!(list.to_json(), text, "{name}");
    }
}

proptest! {
    #[test]
    fn whatever_is_derived_is_json(
        text in r#"[{}\[\]":,a-z0-9$# .]{0,60}"#,
        key in "inputSchema|description|annotations|arguments|title|[$]ref",
        seed in 0..u64::MAX,
    ) {
        let mut values = Random(seed);
        let schema = schemas::schema(&mut values).to_string();
        // Cut anywhere, most of them are no JSON.
        let cut: String = schema.chars().take(values.below(2 * schema.len())).collect();
        for value in [&text, &cut, &quoted(&text)] {
            let tool = format!(r#"{{"name": "t", "{key}": {value}}}"#);
            for derive in [compact_tool, compact_prompt, compact_resource] {
                if let Ok(derived) = derive(&tool) {
                    assert!(serde_json::from_str::<Value>(&derived).is_ok(), "{tool} → {derived}");
                }
                assert!(derive(value).is_err() || Json::parse(value).is_ok());
            }
            let _ = is_read_only(&tool);
        }
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
