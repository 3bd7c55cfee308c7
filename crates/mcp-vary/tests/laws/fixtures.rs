//! The same of every fixture: what real servers answered, and sets of rows.

use mcp_vary::feature::REGISTRY;
use mcp_vary::json::{Members, elements};
use mcp_vary::render::Limits;
use mcp_vary::shape::{Policy, ToolFacts};
use mcp_vary_testkit::defaults::default_with;
use serde_json::{Value, json};

use crate::case::Case;
use crate::{
    is_other, is_told_once, keeps_what_is_no_text, leads_to_what_was_written, meets_its_schema,
    says_something, scalars,
};
use mcp_vary_testkit::generate::written::Served;
use mcp_vary_testkit::recordings::{self, ROWS, Rows};

macro_rules! servers {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../examples/configurations/servers/", $name, ".json"))),*]
    };
}

/// What the servers of the example configurations answer.
const SERVERS: &[&str] = servers!(
    "billing" "claims" "clinic" "documents" "github" "maps" "office" "orchestrator" "orders"
    "research" "timetable" "trading" "weather"
);
const VECTORS: &str = include_str!("../../../../spec/vectors/shaping.json");

const TAGS: &[&[&str]] = &[
    &[],
    &["agent", "format=json"],
    &["format=json", "verbosity=compact"],
    &["agent", "format=json", "verbosity=compact"],
    &["human"],
    &["human", "verbosity=compact"],
    &["format=text"],
    &["verbosity=compact"],
    &["agent", "sampling", "verbosity=verbose"],
];

/// The results of every fixture; of the rows so many that not all stay.
fn results() -> Vec<String> {
    let mut all = recordings::results();
    for (_, set) in ROWS {
        let value = Rows::of(set).first(30);
        let text = json!({"type": "text", "text": value.to_string()});
        all.push(json!({"content": [text], "structuredContent": value}).to_string());
        all.push(json!({"content": [text]}).to_string());
        all.push(json!({"content": [], "structuredContent": value}).to_string());
    }
    all
}

/// Those of the example configurations and of the vectors.
fn written_results() -> Vec<String> {
    let mut all = Vec::new();
    for server in SERVERS {
        let server = Members::parse(server).unwrap();
        let results = Members::parse(server.get("results").unwrap_or("{}")).unwrap();
        let tools = Members::parse(results.get("tools").unwrap_or("{}")).unwrap();
        all.extend(tools.iter().map(|(_, result)| result.to_owned()));
    }
    let vectors = Members::parse(VECTORS).unwrap();
    for case in elements(vectors.get("cases").unwrap()).unwrap() {
        let result = Members::parse(case).unwrap();
        let result = result.get("result").unwrap();
        let members = Members::parse(result).unwrap();
        let is_list = members.get("content").is_none_or(|it| it.starts_with('['));
        let is_object = members.get("_meta").is_none_or(|it| it.starts_with('{'));
        let is_readable = is_list && is_object;
        all.extend(is_readable.then(|| result.to_owned()));
    }
    all
}

/// Every audience, and what samples, with at most one value of every registered key.
fn all_tags() -> Vec<Vec<&'static str>> {
    let audiences = [&[][..], &["agent"], &["human"], &["agent", "sampling"]];
    let mut all: Vec<_> = audiences.iter().map(|tags| tags.to_vec()).collect();
    for row in REGISTRY.iter().filter(|row| row.has_values()) {
        let with_value = |tag: &&'static str| {
            let sets = all.iter();
            sets.map(|tags| [&tags[..], &[tag]].concat())
                .collect::<Vec<_>>()
        };
        let with_values: Vec<_> = row.tags.iter().flat_map(with_value).collect();
        all.extend(with_values);
    }
    all
}

/// CN-10: every scalar of a recorded structure is in the result of every client, or behind a link in it.
#[test]
fn no_declaration_makes_a_value_unreachable() {
    let all: Vec<_> = results().into_iter().chain(written_results()).collect();
    assert!(all.len() > 120, "{} results", all.len());
    for result in all {
        let served = read(&result);
        if served.value.is_none() {
            continue;
        }
        for tags in all_tags() {
            for tool in [(false, false), (true, false), (false, true)] {
                let case = Case {
                    served: served.clone(),
                    tags: tags.clone(),
                    tool: ToolFacts {
                        output_schema: tool.0,
                        ui: tool.1,
                    },
                    policy: Policy::default(),
                    limits: Limits::default().with_detailed(20),
                    kept: Some(true),
                    told: None,
                };
                scalars::are_reachable(&case, &case.tell(&result));
            }
        }
    }
}

/// What is known of a recorded result.
fn read(result: &str) -> Served {
    let members = Members::parse(result).unwrap();
    let mut served = Served {
        result: result.to_owned(),
        is_error: members.get("isError") == Some("true"),
        value: members.get("structuredContent").map(str::to_owned),
        ..Served::default()
    };
    for block in elements(members.get("content").unwrap_or("[]")).unwrap() {
        if is_other(block) {
            served.others.push(block.to_owned())
        } else {
            let block = Members::parse(block).unwrap();
            served.texts.push(block.get_str("text").unwrap());
        }
    }
    let value = served.value.as_deref().unwrap_or("{}");
    served.schema = schema_of(&serde_json::from_str(value).unwrap());
    served
}

/// A schema that `value` meets, with what real ones say: types, and which members there must be.
fn schema_of(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties = members.iter().map(|(key, of)| (key.clone(), schema_of(of)));
            let properties: serde_json::Map<_, _> = properties.collect();
            // Half of them, which is all of a single one.
            let required: Vec<_> = members.keys().step_by(2).collect();
            json!({"type": "object", "properties": properties, "required": required})
        }
        Value::Array(elements) => match elements.first() {
            Some(Value::Object(_)) => json!({"type": "array", "items": {"type": "object"}}),
            _ => json!({"type": "array"}),
        },
        Value::String(_) => json!({"type": "string"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::Null => json!({}),
    }
}

/// CN-7, CN-8, CN-13, CN-19, TR-3, TR-4: what holds of generated results holds of every fixture.
#[test]
fn the_laws_hold_for_every_fixture() {
    let mut kept = 0;
    for result in results() {
        let served = read(&result);
        for (at, tags) in TAGS.iter().enumerate() {
            for schema in [false, true] {
                let case = Case {
                    served: served.clone(),
                    tags: tags.to_vec(),
                    tool: ToolFacts {
                        output_schema: schema,
                        ui: at % 4 == 3,
                    },
                    policy: default_with::<Policy<'_>>(|it| it.report = at % 2 == 0),
                    limits: Limits::default().with_detailed(20),
                    kept: Some(true),
                    told: None,
                };
                kept += usize::from(holds(&case));
            }
        }
    }
    assert!(kept > 50, "{kept} results in few words");
}

/// Whether something of the result is kept; fails when a law is broken.
#[track_caller]
fn holds(case: &Case) -> bool {
    let sent = case.tell(&case.served.result);
    keeps_what_is_no_text(case, &sent.result);
    meets_its_schema(case, &sent.result);
    says_something(case, &sent.result);
    is_told_once(case);
    if case.tags.is_empty() {
        assert_eq!(sent.result, case.served.result);
    }
    let Some(whole) = sent.whole else {
        return false;
    };
    leads_to_what_was_written(case, &whole, &sent.left_out);
    true
}
