//! What views make of every recorded tool, and of schemas of every kind: no keyword that the models of a
//! dialect refuse, and arguments that come back as what the server takes.

#![expect(
    clippy::unwrap_used,
    reason = "a recorded list that cannot be read is a test that fails"
)]

mod calls;
mod dialects;
mod documented_calls;
mod overrides;
mod page;
mod rules;
mod trip;
mod wrong_calls;

use std::fs;
use std::path::Path;

use mcp_vary::json::{Members, elements};
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_view::{Dialect, PreparedTool, SchemaStyle, Style, ToolOverride};
use proptest::proptest;
use serde_json::{Value, json};

use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::generate::schemas;
use mcp_vary_testkit::generate::values::Values;

use trip::Trip;

/// The names of the recorded lists, and how many tools are in each.
const LISTS: [(&str, usize); 10] = [
    ("budget.json", 1),
    ("everything.json", 17),
    ("filesystem.json", 14),
    ("git.json", 12),
    ("memory.json", 9),
    ("mongo.json", 27),
    ("notion.json", 24),
    ("playwright.json", 25),
    ("sqlite.json", 6),
    ("time.json", 2),
];

/// The tools of a recorded list, as written.
fn tools(name: &str) -> Vec<String> {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let list = fs::read_to_string(lists.join(name)).unwrap();
    let list = Members::parse(&list).unwrap();
    let tools = elements(list.get("tools").unwrap()).unwrap();
    tools.into_iter().map(str::to_owned).collect()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn prepared(tool: &str, style: Style) -> PreparedTool {
    let (prepared, mistakes) = PreparedTool::new(tool, &ToolOverride::default(), style).unwrap();
    assert!(mistakes.is_empty(), "{mistakes:?} of {tool}");
    prepared
}

fn in_dialect(tool: &str, dialect: Dialect) -> PreparedTool {
    let style = default_with::<Style>(|it| it.dialect = Some(dialect));
    prepared(tool, style)
}

/// SV-11: no schema of a recorded list has a keyword that the dialect's models refuse.
#[test]
fn no_recorded_list_has_a_refused_keyword() {
    for (name, count) in LISTS {
        let tools = tools(name);
        assert_eq!(tools.len(), count, "{name}");
        for (tool, dialect) in tools.iter().flat_map(|t| Dialect::ALL.map(|d| (t, d))) {
            for schema in [SchemaStyle::Full, SchemaStyle::Compact] {
                let style = Style {
                    schema,
                    dialect: Some(dialect),
                    ..Style::default()
                };
                let prepared = prepared(tool, style);
                let listed = value(prepared.json().unwrap_or(tool));
                rules::hold(dialect, &listed["inputSchema"]);
                assert_eq!(dialect.name(prepared.name()), prepared.name());
                assert_eq!(prepared.unchecked_reason(), None, "{tool}");
            }
        }
    }
}

/// SV-11: what the server takes, a client of a dialect can send, and it arrives as it was meant.
#[test]
fn valid_arguments_of_every_recorded_list_pass_and_arrive() {
    let mut made = 0;
    for (name, _) in LISTS {
        for tool in tools(name) {
            for dialect in Dialect::ALL {
                let trip = Trip::new(&tool, dialect).unwrap();
                let original = value(&tool)["inputSchema"].clone();
                let mut values = Values::new(&original, 7);
                let mut valid = 0;
                for turn in 0..VALUES {
                    values.optional = [100, 50, 10, 400][turn % 4];
                    valid += usize::from(trip.makes(values.value()));
                }
                assert!(valid * 100 >= VALUES * 25, "{valid} of {tool}");
                made += valid;
            }
        }
    }
    assert!(made > 10_000, "{made}");
}

/// Values for each tool and dialect.
const VALUES: usize = 100;

/// SV-11: the same for schemas of every kind.
#[test]
fn valid_arguments_pass_and_arrive_whatever_the_schema() {
    let mut made = 0;
    for seed in 0..600 {
        let original = schemas::schema(&mut Random(seed));
        let tool = json!({"name": "t", "inputSchema": original}).to_string();
        for dialect in Dialect::ALL {
            let Some(trip) = Trip::new(&tool, dialect) else {
                continue;
            };
            let mut values = Values::new(&original, seed);
            for _ in 0..16 {
                made += usize::from(trip.makes(values.value()));
            }
        }
    }
    assert!(made > 3_000, "{made}");
}

/// SV-11: what a dialect's schema lets through and the server's does not is told to the model.
#[test]
fn what_the_server_does_not_take_is_refused_with_the_place() {
    let tool = r#"{"name": "t", "inputSchema": {"type": "object", "properties": {
        "ids": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "multipleOf": 5}},
        "kind": {"oneOf": [{"const": 1}, {"const": 2}]}
    }}}"#;
    for dialect in Dialect::ALL {
        let prepared = in_dialect(tool, dialect);
        let faults = prepared
            .arguments(r#"{"ids": [5, 5], "kind": 3}"#)
            .unwrap_err();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`/ids`: expected elements that differ from each other, got an array of 2 elements",
                "`/kind`: expected 1, or 2, got 3",
            ]
        );
        assert!(prepared.arguments(r#"{"ids": [5, 10], "kind": 2}"#).is_ok());
    }
}

#[test]
fn a_rewritten_tool_reads_like_this() {
    let tool = r##"{"name": "find", "description": "Finds.", "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
        "properties": {
            "q": {"type": "string", "minLength": 1, "description": "What to find"},
            "after": {"type": "string", "format": "date-time"},
            "site": {"type": "string", "format": "uri"},
            "sort": {"enum": ["new", "old", null], "default": "new"},
            "size": {"enum": [10, 20]},
            "page": {"type": "integer", "exclusiveMinimum": 0},
            "by": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}], "description": "Who"},
            "at": {"$ref": "#/$defs/Place"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}
        },
        "required": ["q", "by"],
        "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}, "in": {"$ref": "#/$defs/Place"}}, "required": ["lat"]}}
    }}"##;
    let shown = |dialect| {
        let listed = value(in_dialect(tool, dialect).json().unwrap());
        serde_json::to_string_pretty(&listed["inputSchema"]).unwrap()
    };
    insta::assert_snapshot!("gemini", shown(Dialect::Gemini));
    insta::assert_snapshot!("openai_strict", shown(Dialect::OpenaiStrict));
}

#[test]
fn a_schema_that_is_in_the_dialect_stays_as_it_is_written() {
    let gemini = r#"{"name":"t","inputSchema":{ "type":"object", "properties":{"a":{"type":"string"}}, "required":["a"] }}"#;
    assert_eq!(in_dialect(gemini, Dialect::Gemini).json(), None);
    let strict = r#"{"name":"t","inputSchema":{ "additionalProperties":false, "type":"object", "properties":{"a":{"type":"string"}}, "required":["a"] }}"#;
    assert_eq!(in_dialect(strict, Dialect::OpenaiStrict).json(), None);
    for (name, _) in LISTS {
        for tool in tools(name) {
            let prepared = prepared(&tool, Style::default());
            assert_eq!(prepared.json(), None);
            assert!(prepared.forwards_arguments_unchanged());
        }
    }
}

/// Schemas that are deep, lead into themselves or are large.
fn hostile() -> Vec<String> {
    let chain: Vec<String> = (0..3000)
        .map(|at| format!(r##""d{at}":{{"$ref":"#/$defs/d{}"}}"##, at + 1))
        .collect();
    let doubled: Vec<String> = (0..60)
        .map(|at| {
            let next = at + 1;
            format!(
                r##""d{at}":{{"properties":{{"a":{{"$ref":"#/$defs/d{next}"}},"b":{{"$ref":"#/$defs/d{next}"}}}}}}"##
            )
        })
        .collect();
    let choices: Vec<String> = (0..60)
        .map(|at| {
            let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, at + 1);
            format!(r#""d{at}":{{"anyOf":[{next},{next},{{"oneOf":[{next},{next}]}}]}}"#)
        })
        .collect();
    let start = r##""properties":{"x":{"$ref":"#/$defs/d0"}},"type":"object""##;
    vec![
        format!(r#"{{{start},"$defs":{{{}}}}}"#, chain.join(",")),
        format!(r#"{{{start},"$defs":{{{}}}}}"#, doubled.join(",")),
        format!(r#"{{{start},"$defs":{{{}}}}}"#, choices.join(",")),
        format!("{}{}", r#"{"items":"#.repeat(120), "{}".to_owned() + &"}".repeat(120)),
        format!("{}{}", r#"{"anyOf":[{},"#.repeat(60), "{}".to_owned() + &"]}".repeat(60)),
        r##"{"$ref":"#"}"##.to_owned(),
        r##"{"allOf":[{"$ref":"#"},{"$ref":"#"}],"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##.to_owned(),
        r##"{"properties":{"a":{"$ref":"#"},"b":{"items":{"$ref":"#/properties/a"}}}}"##.to_owned(),
        r##"{"properties":{"a":{"$ref":"#/properties/a"}}}"##.to_owned(),
        r#"{"properties":{"a":{"$ref":"https://example.com/a.json"},"b":{"$ref":"file:///etc/passwd"}}}"#.to_owned(),
        format!(r#"{{"properties":{{{}}}}}"#, (0..6_000).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect::<Vec<_>>().join(",")),
        format!(r#"{{"enum":[{}]}}"#, (0..10_000).map(|at| at.to_string()).collect::<Vec<_>>().join(",")),
        format!(r#"{{"required":[{}]}}"#, (0..6_000).map(|at| format!(r#""r{at}""#)).collect::<Vec<_>>().join(",")),
        format!(r#"{{"anyOf":[{}]}}"#, (0..6_000).map(|at| format!(r#"{{"const":"c{at}"}}"#)).collect::<Vec<_>>().join(",")),
        format!(r#"{{"properties":{{"p":{{"pattern":"{}"}}}}}}"#, "(a{1,1000}){1,1000}".repeat(20)),
        r#"{"type":7,"properties":[],"required":{},"anyOf":{},"allOf":7,"items":null,"enum":{},"$defs":[]}"#.to_owned(),
        r#"{"properties":{"a":{"type":["x",7,null],"items":[[]],"prefixItems":{},"minItems":-1,"maxLength":1e400}}}"#.to_owned(),
    ]
}

/// SV-11: whatever a server lists as a schema, nothing fails, and what comes of it is bounded.
#[test]
fn hostile_schemas_are_rewritten_too_and_bounded() {
    for schema in hostile() {
        let tool = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        for dialect in Dialect::ALL {
            let prepared = in_dialect(&tool, dialect);
            let json = prepared.json().unwrap_or(&tool);
            rules::hold(dialect, &value(json)["inputSchema"]);
            assert!(
                json.len() < 8_000_000,
                "{} bytes of {}",
                json.len(),
                schema.len()
            );
            let _ = prepared.unchecked_reason();
            let _ = prepared.arguments(r#"{"x":{"a":{"a":{"b":1}}},"a":{"a":{}},"p":"aaaa"}"#);
        }
    }
}

proptest! {
    /// SV-11: any text as a schema, any text as arguments.
    #[test]
    fn nothing_panics_whatever_is_listed_and_sent(
        text in r#"[{}\[\]":,a-z0-9$# .]{0,60}"#,
        seed in 0..u64::MAX,
    ) {
        let mut random = Random(seed);
        let schema = schemas::schema(&mut random).to_string();
        let cut: String = schema.chars().take(random.below(2 * schema.len())).collect();
        for schema in [&text, &cut] {
            let tool = format!(r#"{{"name": "t", "inputSchema": {schema}}}"#);
            for dialect in Dialect::ALL {
                let style = Style { dialect: Some(dialect), ..Style::default() };
                if let Ok((prepared, _)) = PreparedTool::new(&tool, &ToolOverride::default(), style) {
                    let listed = value(prepared.json().unwrap_or(&tool));
                    rules::hold(dialect, &listed["inputSchema"]);
                    let _ = prepared.arguments(&text);
                    let _ = prepared.arguments(&cut);
                }
            }
        }
    }

    /// SV-11: a name in a dialect is one that its models take, and stays.
    #[test]
    fn names_are_those_that_the_models_take(name in "\\PC{0,100}") {
        for dialect in Dialect::ALL {
            let named = dialect.name(&name);
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
            assert!((1..=64).contains(&named.len()) && named.chars().all(allowed), "{named}");
            assert_eq!(dialect.name(&named), &*named);
        }
    }
}
