//! Schemas of every kind, full of prose and of names that look like keywords.

use serde_json::{Map, Value, json};

use crate::generate::random::Random;

/// A schema for an object. About half of its references can be resolved.
pub fn schema(random: &mut Random) -> Value {
    let mut schema = Map::new();
    let dialect = *random.pick(&DIALECTS);
    if !dialect.is_empty() {
        schema.insert("$schema".to_owned(), json!(dialect));
    }
    object(random, &mut schema, 0);
    prose(random, &mut schema);
    for keyword in ["$defs", "definitions"] {
        let mut named = Map::new();
        for name in ["a", "title", "description"] {
            if random.chance(60) {
                named.insert(name.to_owned(), part(random, 0));
            }
        }
        if random.chance(50) {
            schema.insert(keyword.to_owned(), Value::Object(named));
        }
    }
    Value::Object(schema)
}

/// A schema `steps` levels below the next one that a reference may name.
///
/// References are at least two levels below, so that none leads back to itself.
fn part(random: &mut Random, steps: usize) -> Value {
    if random.chance(5) {
        return json!(random.chance(80));
    }
    let mut schema = Map::new();
    match random.below(if steps > 3 { 5 } else { 9 }) {
        0 => {
            let kinds = ["string", "integer", "number", "boolean", "null"];
            schema.insert("type".to_owned(), json!(random.pick(&kinds)));
        }
        1 => text(random, &mut schema),
        2 => number(random, &mut schema),
        3 if steps > 1 => {
            schema.insert("$ref".to_owned(), json!(random.pick(&REFERENCES)));
        }
        3 | 4 => data(random, &mut schema),
        5 => array(random, &mut schema, steps),
        6 => choice(random, &mut schema, steps),
        _ => object(random, &mut schema, steps),
    }
    prose(random, &mut schema);
    Value::Object(schema)
}

fn prose(random: &mut Random, schema: &mut Map<String, Value>) {
    let all = [
        ("title", json!("T")),
        ("description", json!("What it is. And more.")),
        ("examples", json!([{"title": "T"}, {"type": "null"}])),
        ("$comment", json!("C")),
        ("default", json!({"title": "T", "examples": [1]})),
        ("x-mcp-header", json!("Region")),
    ];
    for (keyword, value) in all {
        if random.chance(30) {
            schema.insert(keyword.to_owned(), value);
        }
    }
}

fn object(random: &mut Random, schema: &mut Map<String, Value>, steps: usize) {
    schema.insert("type".to_owned(), json!("object"));
    let mut properties = Map::new();
    for _ in 0..random.below(4) {
        properties.insert((*random.pick(&NAMES)).to_owned(), part(random, steps + 1));
    }
    let required: Vec<String> = properties
        .keys()
        .filter(|_| random.chance(30))
        .cloned()
        .collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(required));
    let name = *random.pick(&NAMES);
    let inner = part(random, steps + 1);
    let extra = match random.below(14) {
        0 => ("additionalProperties", json!(true)),
        1 => ("additionalProperties", json!({})),
        2 => ("additionalProperties", json!({"description": "Any."})),
        3 => ("additionalProperties", json!(false)),
        4 => ("additionalProperties", inner),
        5 => ("patternProperties", json!({"^t": inner})),
        6 => ("propertyNames", json!({"type": "string", "title": "N"})),
        7 => ("propertyNames", json!({"maxLength": 5})),
        8 => ("dependentSchemas", json!({name: {"required": ["a"]}})),
        9 => ("dependencies", json!({name: ["a"]})),
        10 => ("unevaluatedProperties", json!(false)),
        11 => ("minProperties", json!(1)),
        12 => (
            "allOf",
            json!([{"additionalProperties": true, "title": "T"}]),
        ),
        _ => return,
    };
    schema.insert(extra.0.to_owned(), extra.1);
    if random.chance(15) {
        schema.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

fn array(random: &mut Random, schema: &mut Map<String, Value>, steps: usize) {
    schema.insert("type".to_owned(), json!("array"));
    let inner = part(random, steps + 1);
    let (keyword, value) = match random.below(6) {
        0 => ("prefixItems", json!([inner, {"title": "T"}])),
        1 => ("items", json!([inner, true])),
        2 => ("contains", inner),
        3 => ("unevaluatedItems", json!(false)),
        _ => ("items", inner),
    };
    schema.insert(keyword.to_owned(), value);
    let (keyword, value) = *random.pick(&[("minItems", 1), ("maxItems", 2), ("maxItems", 9)]);
    schema.insert(keyword.to_owned(), json!(value));
}

fn choice(random: &mut Random, schema: &mut Map<String, Value>, steps: usize) {
    let keyword = *random.pick(&["anyOf", "oneOf", "allOf", "not", "if"]);
    let inner = part(random, steps);
    let value = match keyword {
        "not" => json!({"const": {"title": "T"}, "title": "T"}),
        "if" => {
            schema.insert("then".to_owned(), part(random, steps));
            inner
        }
        _ => json!([inner, part(random, steps)]),
    };
    schema.insert(keyword.to_owned(), value);
}

fn text(random: &mut Random, schema: &mut Map<String, Value>) {
    schema.insert("type".to_owned(), json!("string"));
    let (keyword, value) = match random.below(5) {
        0 => ("minLength", json!(2)),
        1 => ("maxLength", json!(4)),
        2 => ("pattern", json!("^[a-c]+$")),
        3 => ("format", json!("date")),
        _ => ("enum", json!(["a", "title"])),
    };
    schema.insert(keyword.to_owned(), value);
}

fn number(random: &mut Random, schema: &mut Map<String, Value>) {
    schema.insert("type".to_owned(), json!("integer"));
    let keywords = [
        "minimum",
        "maximum",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ];
    schema.insert((*random.pick(&keywords)).to_owned(), json!(2));
}

fn data(random: &mut Random, schema: &mut Map<String, Value>) {
    let value = json!({"title": "T", "description": "D", "properties": {"a": {"title": "T"}}});
    if random.chance(50) {
        schema.insert("const".to_owned(), value);
    } else {
        schema.insert("enum".to_owned(), json!([value, null, "a"]));
    }
}

const NAMES: [&str; 12] = [
    "a",
    "b",
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "properties",
    "$ref",
    "enum",
    "items",
    "x/y~z",
];

const REFERENCES: [&str; 9] = [
    "#",
    "#/$defs/a",
    "#/$defs/title",
    "#/$defs/description",
    "#/definitions/title",
    "#/properties/description",
    "#/properties/title",
    "#/examples/1",
    "#/properties/x~1y~0z",
];

const DIALECTS: [&str; 8] = [
    "",
    "",
    "",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];
