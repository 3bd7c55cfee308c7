//! `docs/internals/dialects.md` says what the program does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mcp_vary_view::Dialect;
use serde_json::{Value, json};

use crate::value;

/// What the page says of each keyword, for each dialect.
fn rows() -> BTreeMap<String, [String; 2]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/dialects.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let keyword = cells.next().unwrap().trim_matches('`').to_owned();
        let reported = [
            cells.next().unwrap().to_owned(),
            cells.next().unwrap().to_owned(),
        ];
        assert_eq!(cells.next(), None, "{line}");
        (keyword, reported)
    };
    let rows: Vec<_> = table.map(row).collect();
    let count = rows.len();
    let rows: BTreeMap<_, _> = rows.into_iter().collect();
    assert_eq!(rows.len(), count, "a keyword has two rows");
    rows
}

/// Every keyword of JSON Schema, drafts 4 to 2020-12.
const KEYWORDS: &str = "$anchor $comment $defs $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $ref \
    $schema $vocabulary additionalItems additionalProperties allOf anyOf const contains contentEncoding \
    contentMediaType contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated \
    description else enum examples exclusiveMaximum exclusiveMinimum format id if items maxContains maxItems maxLength \
    maxProperties maximum minContains minItems minLength minProperties minimum multipleOf not oneOf pattern \
    patternProperties prefixItems properties propertyNames readOnly required then title type unevaluatedItems \
    unevaluatedProperties uniqueItems writeOnly";

/// SV-11: the page names every keyword, and what it says stays is what a dialect may have.
#[test]
fn the_page_names_every_keyword() {
    let rows = rows();
    for keyword in KEYWORDS.split_whitespace() {
        assert!(
            rows.contains_key(keyword),
            "the page says nothing of {keyword}"
        );
    }
    for (at, dialect) in Dialect::ALL.into_iter().enumerate() {
        for keyword in dialect.keywords() {
            assert!(
                rows.contains_key(*keyword),
                "the page says nothing of {keyword}"
            );
        }
        for (keyword, said) in &rows {
            let stays = dialect.keywords().contains(&keyword.as_str());
            let written = said[at].starts_with("stays");
            assert_eq!(stays, written, "{keyword} in {}", dialect.as_str());
        }
    }
}

/// SV-11: what the page says goes, goes, whatever its value.
#[test]
fn what_the_page_says_goes_is_gone() {
    for (keyword, said) in rows() {
        for (at, dialect) in Dialect::ALL.into_iter().enumerate() {
            for sample in samples() {
                let property = json!({ keyword.as_str(): sample });
                let schema = json!({"type": "object", "properties": {"p": property}});
                let rewritten = dialect.rewrite(&schema.to_string()).unwrap();
                let rewritten = value(&rewritten);
                crate::rules::hold(dialect, &rewritten);
                let gone = !has(&rewritten["properties"]["p"], &keyword);
                assert!(
                    gone || said[at].starts_with("stays"),
                    "{rewritten} for {schema}"
                );
            }
        }
    }
}

fn samples() -> [Value; 8] {
    [
        json!(true),
        json!(false),
        json!(1),
        json!("string"),
        json!(["a"]),
        json!([{"type": "string"}]),
        json!({"a": {"type": "string"}}),
        json!({"type": "string"}),
    ]
}

/// Whether a schema or a branch of it has the keyword.
fn has(schema: &Value, keyword: &str) -> bool {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    schema.get(keyword).is_some()
        || branches
            .into_iter()
            .flatten()
            .any(|branch| has(branch, keyword))
}
