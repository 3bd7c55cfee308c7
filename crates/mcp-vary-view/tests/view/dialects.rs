//! What each dialect makes of one argument, kind by kind, and what of a value on its way to the server.

use mcp_vary_view::Dialect;
use serde_json::{Value, json};

use crate::{in_dialect, value};

fn tool(schema: &Value) -> String {
    json!({
        "name": "t",
        "inputSchema": {
            "type": "object",
            "properties": {"v": schema},
            "required": ["v"],
            "$defs": value(DEFINITIONS),
        },
    })
    .to_string()
}

/// Asserts how a required argument is listed.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is written in place")]
fn lists(dialect: Dialect, schema: Value, expected: Value) {
    let tool = tool(&schema);
    let prepared = in_dialect(&tool, dialect);
    let listed = value(prepared.json().unwrap_or(&tool));
    assert_eq!(listed["inputSchema"]["properties"]["v"], expected);
}

/// Asserts what arrives of a value.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is written in place")]
fn sends(dialect: Dialect, schema: &Value, given: Value, expected: Value) {
    let prepared = in_dialect(&tool(schema), dialect);
    let given = json!({"v": given}).to_string();
    let sent = prepared.arguments(&given).unwrap();
    assert_eq!(value(&sent), json!({"v": expected}));
}

/// Asserts what is told of a value that does not fit.
#[track_caller]
fn refuses(dialect: Dialect, schema: &Value, given: &str, sent: &str) {
    let prepared = in_dialect(&tool(schema), dialect);
    let given = json!({"v": given}).to_string();
    let faults = prepared.arguments(&given);
    let faults: Vec<String> = faults
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(faults, [sent]);
}

/// SV-11: what `null` says where a strict schema asks for every property.
#[test]
fn null_leaves_out_what_cannot_be_null() {
    let strict = Dialect::OpenaiStrict;
    let schema = value(
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": ["string", "null"]}}, "required": ["b"], "additionalProperties": false}"#,
    );
    let given = json!({"a": null, "b": null, "c": null});
    sends(strict, &schema, given, json!({"b": null}));
    let full = json!({"a": "x", "b": "y", "c": "z"});
    sends(strict, &schema, full.clone(), full);
    let list = json!({"type": "array", "items": schema});
    let given = json!([{"a": null, "b": "y", "c": null}]);
    sends(strict, &list, given, json!([{"b": "y"}]));

    // Of several kinds of objects those count that have just these members.
    let schema = value(
        r#"{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k"], "additionalProperties": false}, {"type": "object", "properties": {"k": {"const": "b"}, "y": {"type": "null"}, "x": {"type": "null"}}, "required": ["k", "y", "x"], "additionalProperties": false}]}"#,
    );
    sends(
        strict,
        &schema,
        json!({"k": "a", "x": null}),
        json!({"k": "a"}),
    );
    let kept = json!({"k": "b", "y": null, "x": null});
    sends(strict, &schema, kept.clone(), kept);

    // One that may leave it out, and one that takes null: the value stays.
    let schema = value(
        r#"{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k"], "additionalProperties": false}, {"type": "object", "properties": {"k": {"const": "b"}, "x": {"type": ["null", "string"]}}, "required": ["k", "x"], "additionalProperties": false}]}"#,
    );
    let kept = json!({"k": "b", "x": null});
    sends(strict, &schema, kept.clone(), kept);
    // One that may leave it out, and one that takes no null either: it goes.
    let schema = value(
        r#"{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k"], "additionalProperties": false}, {"type": "object", "properties": {"k": {"const": "b"}, "x": {"type": "string"}}, "required": ["k", "x"], "additionalProperties": false}]}"#,
    );
    sends(
        strict,
        &schema,
        json!({"k": "a", "x": null}),
        json!({"k": "a"}),
    );
}

/// SV-11: a text is taken for what the place asks for, and for nothing else.
#[test]
fn a_text_that_is_something_else_stays_a_text() {
    let map = json!({"type": "object"});
    let told = "`/v`: expected an object, got \"[1]\"";
    refuses(Dialect::OpenaiStrict, &map, "[1]", told);
    sends(
        Dialect::OpenaiStrict,
        &map,
        json!("{\"a\":1}"),
        json!({"a": 1}),
    );
    let nested = |levels: usize, inner: Value| {
        (0..levels).fold(inner, |items, _| json!({"type": "array", "items": items}))
    };
    let deep = in_dialect(&tool(&nested(12, json!({}))), Dialect::OpenaiStrict);
    let given = (0..9).fold(json!("{}"), |value, _| json!([value]));
    let given = json!({"v": given}).to_string();
    let faults = deep.arguments(&given).unwrap_err();
    assert!(
        faults[0]
            .to_string()
            .ends_with("expected an array, got \"{}\""),
        "{faults:?}"
    );
}

/// Asserts whether strict schemas still have room for `schema` as it is.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is written in place")]
fn has_room(schema: Value, room: bool) {
    let listed = in_dialect(&tool(&schema), Dialect::OpenaiStrict);
    let listed = value(listed.json().unwrap());
    let listed = listed["inputSchema"]["properties"]["v"].to_string();
    let in_words = listed.contains("One of: ") || listed.contains("written as text");
    assert_eq!(in_words, !room, "{}", &listed[..listed.len().min(200)]);
}

/// SV-11: OpenAI limits the properties of a schema, and the letters of their names.
#[test]
fn objects_are_objects_while_there_is_room() {
    let object = |count: usize, letters: usize, more: &Value| {
        let name = |at: usize| format!("{at:x>4}{}", "x".repeat(letters - 4));
        let mut properties: serde_json::Map<String, Value> = (0..count)
            .map(|at| (name(at), json!({"type": "null"})))
            .collect();
        properties.extend(more.as_object().cloned().unwrap_or_default());
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let none = json!({});
    has_room(object(5000, 4, &none), true);
    has_room(object(5001, 4, &none), false);
    has_room(object(10, 12_000, &none), true);
    has_room(object(10, 12_001, &none), false);
    // The name of a definition counts as well.
    let reference = json!({"d": {"$ref": "#/$defs/D"}});
    has_room(object(1, 119_998, &reference), true);
    has_room(object(1, 119_999, &reference), false);
    let two = json!({"d": object(3000, 4, &none), "e": object(3000, 4, &none)});
    has_room(object(0, 4, &two), false);
}

/// SV-11: OpenAI limits the values in lists, and their letters.
#[test]
fn values_are_listed_while_there_is_room() {
    let list = |count: usize, letters: usize| {
        let values: Vec<String> = (0..count).map(|at| format!("{at:0letters$}")).collect();
        json!({"type": "string", "enum": values})
    };
    has_room(list(1000, 4), true);
    has_room(list(1001, 4), false);
    has_room(list(250, 61), true);
    has_room(list(251, 60), false);
    has_room(list(251, 59), true);
    has_room(list(300, 50), true);
    has_room(list(2, 8000), true);
    let two = |one: Value| json!({"type": "object", "properties": {"a": one, "b": one}, "required": ["a", "b"], "additionalProperties": false});
    has_room(two(list(500, 4)), true);
    has_room(two(list(501, 4)), false);
    has_room(two(list(2, 29_000)), true);
    has_room(two(list(2, 31_000)), false);
}

/// SV-11: what nests deeper than is read says so.
#[test]
fn what_is_deeper_than_is_read_is_cut() {
    let list = |items: Value| json!({"type": "array", "items": items});
    let pair = |items: Value| json!({"type": "array", "prefixItems": [items], "items": false});
    let map = |inner: Value| json!({"type": "object", "properties": {"a": inner}});
    for wrap in [&list as &dyn Fn(Value) -> Value, &pair, &map] {
        let nested =
            |levels: usize| (0..levels).fold(json!({"type": "null"}), |inner, _| wrap(inner));
        let is_cut = |schema: &Value| {
            let listed = in_dialect(&tool(schema), Dialect::Gemini);
            listed
                .json()
                .unwrap()
                .contains("May hold more than can be shown here.")
        };
        // The argument itself is one level below the root.
        assert_eq!(
            [31, 32].map(|levels| is_cut(&nested(levels))),
            [false, true]
        );
    }
    let parts: Vec<Value> = (0..70)
        .map(|at| json!({"properties": {format!("p{at}"): {"type": "null"}}}))
        .collect();
    let tool = tool(&json!({"type": "object", "allOf": parts}));
    let listed = value(in_dialect(&tool, Dialect::Gemini).json().unwrap());
    let properties = listed["inputSchema"]["properties"]["v"]["properties"].as_object();
    assert_eq!(properties.map(serde_json::Map::len), Some(63));
}

/// SV-11: with limits beside them, only so many branches are read, each together with the limits.
#[test]
fn a_choice_of_many_branches_beside_limits_is_left_out() {
    let branches = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|at| json!({"const": at.to_string()}))
            .collect()
    };
    let texts: Vec<String> = (0..64).map(|at| at.to_string()).collect();
    lists(
        Dialect::Gemini,
        json!({"type": "string", "anyOf": branches(64)}),
        json!({"type": "string", "enum": texts}),
    );
    lists(
        Dialect::Gemini,
        json!({"type": "string", "anyOf": branches(65)}),
        json!({"type": "string"}),
    );
}

/// SV-11: who says how large a value is says that it is a number.
#[test]
fn a_limit_tells_the_kind() {
    for keyword in ["minimum", "maximum"] {
        lists(
            Dialect::Gemini,
            json!({keyword: 1}),
            json!({"type": "number", keyword: 1}),
        );
    }
    lists(
        Dialect::OpenaiStrict,
        json!({"multipleOf": 2}),
        json!({"type": "number", "multipleOf": 2}),
    );
}

/// SV-11: a switch that has one position says which.
#[test]
fn a_boolean_may_have_one_value() {
    for only in [true, false] {
        lists(
            Dialect::Gemini,
            json!({"const": only}),
            json!({"type": "boolean", "description": format!("Always {only}.")}),
        );
        lists(
            Dialect::OpenaiStrict,
            json!({"enum": [only]}),
            json!({"type": "boolean", "enum": [only]}),
        );
    }
}

/// SV-11: Gemini knows one format of texts that are free, and none of texts that are listed.
#[test]
fn a_format_beside_a_list_of_texts_is_said() {
    lists(
        Dialect::Gemini,
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "string", "format": "date-time"}),
    );
    lists(
        Dialect::Gemini,
        json!({"type": "string", "format": "date-time", "enum": ["2026-01-01T00:00:00Z"]}),
        json!({"type": "string", "enum": ["2026-01-01T00:00:00Z"], "description": "Format: date-time."}),
    );
}

/// SV-11: what several parts say of one property holds together; what a condition says does not always.
#[test]
fn a_property_is_what_all_parts_say_of_it() {
    lists(
        Dialect::Gemini,
        json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "allOf": [{"properties": {"a": {"minLength": 2}}}],
            "if": {"required": ["a"]},
            "then": {"properties": {"a": {"maxLength": 3}}},
        }),
        json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}),
    );
}

/// SV-11: a list with more values than strict schemas may have is said in words.
#[test]
fn a_list_that_is_too_long_is_said() {
    let numbers: Vec<u32> = (0..1001).collect();
    let listed = json!({"type": "integer", "enum": &numbers[1..]});
    lists(Dialect::OpenaiStrict, listed.clone(), listed);
    let many: Vec<String> = numbers.iter().take(53).map(u32::to_string).collect();
    lists(
        Dialect::OpenaiStrict,
        json!({"type": "integer", "enum": &numbers}),
        json!({"type": "integer", "description": format!("One of: {}, ….", many.join(", "))}),
    );
}

/// SV-11: lists that nest deeper than strict schemas may are written as texts, and arrive as lists.
#[test]
fn what_nests_too_deep_is_written_as_text() {
    let nested = |levels: usize, inner: Value| {
        (0..levels).fold(inner, |items, _| json!({"type": "array", "items": items}))
    };
    let as_text = json!({"type": "string", "description": "A JSON array, written as text."});
    let schema = nested(12, json!({"type": "integer"}));
    lists(Dialect::OpenaiStrict, schema.clone(), nested(9, as_text));
    let wrapped = |levels: usize, inner: Value| (0..levels).fold(inner, |value, _| json!([value]));
    sends(
        Dialect::OpenaiStrict,
        &schema,
        wrapped(9, json!("[[[1, 2]]]")),
        wrapped(9, json!([[[1, 2]]])),
    );
}

/// SV-11: so are objects.
#[test]
fn objects_that_nest_too_deep_are_written_as_text() {
    let nested = |levels: usize, inner: Value| {
        (0..levels).fold(inner, |inner, _| {
            json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false})
        })
    };
    let as_text = json!({"type": "string", "description": "A JSON object, written as text."});
    let schema = nested(12, json!({"type": "integer"}));
    lists(Dialect::OpenaiStrict, schema.clone(), nested(9, as_text));
    let wrapped =
        |levels: usize, inner: Value| (0..levels).fold(inner, |value, _| json!({"a": value}));
    let text = json!(r#"{"a":{"a":{"a":1}}}"#);
    sends(
        Dialect::OpenaiStrict,
        &schema,
        wrapped(9, text),
        wrapped(12, json!(1)),
    );
}

/// SV-11: a pattern that not every engine reads is told, unless it is endless.
#[test]
fn a_pattern_that_models_do_not_take_is_said() {
    for dialect in Dialect::ALL {
        lists(
            dialect,
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": "string", "pattern": "^a"}),
        );
        lists(
            dialect,
            json!({"type": "string", "pattern": "^(?!a)"}),
            json!({"type": "string", "description": "Matches the regular expression ^(?!a)"}),
        );
        lists(
            dialect,
            json!({"type": "string", "pattern": format!("(?!{})", "a".repeat(197))}),
            json!({"type": "string"}),
        );
    }
}

/// SV-11: a name is cut only where it is too long, and two that would be one differ by a hash.
#[test]
fn a_name_is_at_most_64_letters_long() {
    let strict = Dialect::OpenaiStrict;
    assert_eq!(
        (strict.name("a-b_1"), strict.name("a.b:1")),
        ("a-b_1".into(), "a_b_1".into())
    );
    assert_eq!(strict.name(&"a".repeat(64)), "a".repeat(64));
    let fits = format!("{}.", "a".repeat(63));
    assert_eq!(strict.name(&fits), format!("{}_", "a".repeat(63)));
    let long = strict.name(&"a".repeat(65)).into_owned();
    assert_eq!(long.len(), 64);
    assert!(long.starts_with(&format!("{}_", "a".repeat(55))), "{long}");
    // The hash is the beginning of SHA-256 in hexadecimal digits: names stay when the program is updated.
    assert!(long.ends_with("_635361c4"), "{long}");
}

/// SV-11: every kind of schema, as each dialect lists it.
#[test]
fn every_kind_of_schema_is_told_in_each_dialect() {
    let mut told = String::new();
    for schema in SCHEMAS {
        told.push_str(&format!("{schema}\n"));
        for dialect in Dialect::ALL {
            let tool = tool(&value(schema));
            let prepared = in_dialect(&tool, dialect);
            let listed = value(prepared.json().unwrap_or(&tool));
            let listed = &listed["inputSchema"];
            let argument = listed["properties"]["v"].to_string();
            let name = dialect.as_str();
            told.push_str(&format!("  {name}: {}\n", shortened(&argument)));
            let definitions = listed.get("$defs").map(Value::to_string);
            told.extend(definitions.map(|all| format!("    with {}\n", shortened(&all))));
        }
    }
    insta::assert_snapshot!(told);
}

/// What stands for any value, in one word.
fn shortened(listed: &str) -> String {
    let scalars = r#"{"type":"string","nullable":true},{"type":"number"},{"type":"boolean"},{"type":"object"}"#;
    let gemini =
        format!(r#"{{"anyOf":[{scalars},{{"type":"array","items":{{"anyOf":[{scalars}]}}}}]}}"#);
    let strict =
        r#"{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}"#;
    listed.replace(&gemini, "ANY").replace(strict, "ANY")
}

/// What [`SCHEMAS`] refer to.
const DEFINITIONS: &str = r##"{
    "D": {"type": "object", "properties": {"d": {"type": "string"}}, "additionalProperties": false},
    "E x": {"type": "array", "items": {"type": "boolean"}},
    "L": {"type": "object", "properties": {"next": {"$ref": "#/$defs/L"}}, "additionalProperties": false},
    "M": {"anyOf": [{"type": "object", "properties": {"next": {"$ref": "#/$defs/M"}}}, {"type": "string"}]},
    "P": {"allOf": [{"type": "array"}], "items": {"type": "boolean"}}
}"##;

const SCHEMAS: &[&str] = &[
    r##"{"minProperties": 1}"##,
    r##"{"required": ["a"]}"##,
    r##"{"items": {"type": "string"}}"##,
    r##"{"minItems": 2}"##,
    r##"{"minLength": 1}"##,
    r##"{"minLength": 1, "minimum": 2}"##,
    r##"{"enum": ["a", 1, true, null]}"##,
    r##"{"enum": [1, 2.5]}"##,
    r##"{"enum": [1, 2]}"##,
    r##"{"const": [1]}"##,
    r##"{"type": ["boolean", "array", "integer"]}"##,
    r##"{"type": "number", "allOf": [{"type": "integer"}]}"##,
    r##"{"type": ["string", "boolean", "null", "array", "object", "number"], "allOf": [{"type": ["boolean", "integer", "object"]}]}"##,
    r##"{"type": ["string", "array", "null"], "allOf": [{"type": ["string", "null", "boolean"]}]}"##,
    r##"{"type": ["array", "string"], "allOf": [{"type": ["array", "boolean"]}]}"##,
    r##"{"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false}"##,
    r##"{"type": "number", "minimum": 1, "maximum": 5, "exclusiveMaximum": true}"##,
    r##"{"type": "integer", "multipleOf": 5, "exclusiveMaximum": 9}"##,
    r##"{"type": "integer", "enum": [3]}"##,
    r##"{"type": ["string", "integer"], "enum": ["a"]}"##,
    r##"{"type": "string", "minLength": 2, "maxLength": 9}"##,
    r##"{"type": "string", "minLength": 2.0, "maxLength": 1234567890123456789}"##,
    r##"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 2}"##,
    r##"{"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 2}"##,
    r##"{"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "boolean"}}"##,
    r##"{"type": "array", "items": [{"type": "string"}], "additionalItems": false}"##,
    r##"{"type": "array", "items": false}"##,
    r##"{}"##,
    r##"{"title": "T", "description": "Any", "default": 1}"##,
    r##"false"##,
    r##"{"type": "null", "title": "T", "description": "D"}"##,
    r##"{"$ref": "#/$defs/D", "title": "T", "description": "D", "default": {}}"##,
    r##"{"$ref": "#/$defs/D", "minProperties": 1}"##,
    r##"{"anyOf": [{"$ref": "#/$defs/D"}, {"$ref": "#/$defs/E x"}, {"$ref": "#/$defs/D"}]}"##,
    r##"{"anyOf": [{"type": "string", "title": "A", "description": "One"}, {"type": "integer", "description": "Other"}], "title": "T", "description": "D", "default": "a"}"##,
    r##"{"anyOf": [{"type": "string", "title": "A", "description": "One", "default": "x"}, false]}"##,
    r##"{"anyOf": [{"type": "string", "title": "A", "description": "One", "default": "x"}, {"type": "null"}]}"##,
    r##"{"oneOf": [{"const": "a"}, {"const": "b"}, {"const": "c", "title": "C"}, {"const": "d", "description": "D"}]}"##,
    r##"{"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "boolean"}]}"##,
    r##"{"anyOf": [{}, {"type": "string"}]}"##,
    r##"{"type": "object", "properties": {"k": {"type": "string"}}, "anyOf": [{"required": ["k"]}, {"properties": {"l": {"type": "string"}}, "required": ["l"]}]}"##,
    r##"{"anyOf": [{"type": "string"}, {"type": "integer"}], "oneOf": [{"minimum": 3}, {"maxLength": 4}]}"##,
    r##"{"anyOf": [], "type": "string"}"##,
    r##"{"type": "object", "properties": {"a": false, "b": {"type": "string"}}, "required": ["b"], "additionalProperties": false}"##,
    r##"{"type": "object", "properties": {"a": false}, "required": ["a", "z"], "unevaluatedProperties": false}"##,
    r##"{"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"^x": {}}, "additionalProperties": false}"##,
    r##"{"type": "object", "properties": {"a": {"type": "string"}}, "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}, "else": {"properties": {"c": {"type": "boolean"}}}, "additionalProperties": false}"##,
    r##"{"anyOf": [{"type": "string"}, {"type": "object", "description": "A map"}]}"##,
    r##"{"description": "D", "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {"type": "integer"}}]}"##,
    r##"{"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer", "default": null}, "c": {"type": ["string", "null"], "default": "y"}}, "additionalProperties": false}"##,
    r##"{"enum": ["", "a"]}"##,
    r##"{"type": "string", "format": "uri"}"##,
    r##"{"type": "string", "format": "email"}"##,
    r##"{"type": "string", "pattern": "\\p{L}"}"##,
    r##"{"type": "string", "pattern": "\\\\p"}"##,
    r##"{"type": "string", "pattern": "(?:a)"}"##,
    r##"{"x-order": 1, "anyOf": [{"type": "string"}, {"type": "null"}]}"##,
    r##"{"allOf": [{"type": "string"}, false]}"##,
    r##"{"const": null}"##,
    r##"{"type": ["string", "null"], "enum": ["a", null]}"##,
    r##"{"type": ["string", "null"], "enum": ["a"]}"##,
    r##"{"$ref": "#/$defs/L"}"##,
    r##"{"$ref": "#/$defs/E x"}"##,
    r##"{"$ref": "#/$defs/P/items"}"##,
    r##"{"$ref": "#/$defs/P/allOf/0"}"##,
    r##"{"$ref": "#/$defs/M"}"##,
    r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/D", "default": {"d": "x"}}}, "additionalProperties": false}"##,
    r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/L"}, "b": {"$ref": "#/$defs/L"}, "c": {"$ref": "#/$defs/L"}}}"##,
    r##"{"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "string"}]}, "b": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "string"}]}, "c": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "string"}]}}}"##,
    r##"{"type": "object", "unevaluatedProperties": false}"##,
    r##"{"type": "object", "additionalProperties": false}"##,
    r##"{"type": ["integer", "string"], "allOf": [{"type": ["string"]}]}"##,
    r##"{"type": ["string"], "allOf": [{"type": ["integer", "string"]}]}"##,
    r##"{"type": ["object", "string"], "allOf": [{"type": ["string"]}]}"##,
    r##"{"type": ["string"], "allOf": [{"type": ["object", "string"]}]}"##,
    r##"{"type": ["string", "integer", "boolean", "array", "object", "null"]}"##,
    r##"{"type": ["string", "integer", "number", "boolean", "array", "object", "null"]}"##,
    r##"{"allOf": [{"anyOf": [{"type": "string"}, {"type": "boolean"}]}, {"anyOf": [{"minLength": 1}, {"minLength": 2}]}, {"anyOf": [{"maxLength": 3}, {"maxLength": 4}]}, {"anyOf": [{"pattern": "a"}, {"pattern": "b"}]}]}"##,
];
