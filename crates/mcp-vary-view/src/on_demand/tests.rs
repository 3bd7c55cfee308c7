use super::*;

#[track_caller]
fn lists(schema: &str, expected: &str) {
    let open = open_schema(schema, ListedArguments::All).unwrap();
    let expected = expected.replace("ANY", &format!(r#"{{"anyOf":{ANY_TYPE}}}"#));
    let around = format!(r#"{{"type":"object","properties":{expected}}}"#);
    assert_eq!(typed(&open.json).unwrap(), around, "of {schema}");
}

#[test]
fn every_argument_has_its_type() {
    lists(
        r#"{"type": "object", "properties": {
            "path": {"type": "string", "description": "Where"},
            "at": {"type": ["null", "integer"]}
        }, "required": ["path"], "additionalProperties": false}"#,
        r#"{"path":{"type":"string"},"at":{"anyOf":[{"type":"integer"},{"type":"null"}]}}"#,
    );
    lists("{}", "{}");
    lists(
        r#"{"properties": {"any": {}, "odd": {"type": "text"}, "bool": true}}"#,
        r#"{"any":ANY,"odd":ANY,"bool":ANY}"#,
    );
}

#[test]
fn the_type_may_be_in_a_reference_a_choice_or_the_values() {
    lists(
        r##"{"properties": {
            "a": {"$ref": "#/$defs/a"},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "c": {"enum": ["x", 1]},
            "d": {"const": true},
            "e": {"anyOf": [{"type": "integer"}, {}]},
            "f": {"$ref": "#/$defs/f"},
            "g": {"allOf": [{"$ref": "#/$defs/a"}], "default": []},
            "h": {"allOf": [{"description": "H"}]}
        }, "$defs": {"a": {"type": "array", "items": {"type": "string"}}, "f": {"$ref": "#/$defs/f"}}}"##,
        r#"{"a":LIST,"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"c":{"anyOf":[{"type":"string"},{"type":"number"}]},"d":{"type":"boolean"},"e":ANY,"f":ANY,"g":LIST,"h":ANY}"#
            .replace("LIST", r#"{"type":"array","items":{"type":"string"}}"#)
            .as_str(),
    );
}

/// Interfaces of models refuse a list without `items`.
#[test]
fn a_list_has_the_types_of_its_elements() {
    lists(
        r##"{"properties": {
            "texts": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"x": {}}}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "mixed": {"type": "array", "items": {"type": ["string", "null"]}},
            "unknown": {"type": "array"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}},
            "maybe": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}, {"type": "null"}]},
            "either": {"oneOf": [{"type": "array", "items": {"type": "string"}},
                {"type": "array", "items": {"type": "integer"}}]},
            "deep": {"$ref": "#/$defs/deep"}
        }, "$defs": {"n": {"type": "integer"}, "deep": {"type": "array", "items": {"$ref": "#/$defs/deep"}}}}"##,
        r#"{"texts":{"type":"array","items":{"type":"string"}},"rows":{"type":"array","items":{"type":"object"}},"grid":{"type":"array","items":{"type":"array","items":{"type":"number"}}},"mixed":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}},"unknown":{"type":"array","items":ANY},"pair":{"type":"array","items":ANY},"maybe":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]},"either":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"deep":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array","items":ANY}}}}}"#,
    );
}

/// A tool that is listed in its compact form has types, too.
#[test]
fn a_compact_schema_gets_the_types_that_it_lacks() {
    let compact = r##"{"type":"object","properties":{"a":{"description":"A"},"b":{"type":["string","null"],"default":null},"c":{"const":3},"d":{"$ref":"#/$defs/d"},"e":{"type":"array"},"f":{"type":["array","null"],"items":{"type":"string"}},"g":{"enum":["x"]}},"$defs":{"d":{"type":"object","properties":{"x":true}}}}"##;
    let expected = r##"{"type":"object","properties":{"a":{"description":"A","anyOf":TYPES},"b":{"default":null,"anyOf":[{"type":"string"},{"type":"null"}]},"c":{"const":3,"type":"number"},"d":{"$ref":"#/$defs/d"},"e":{"type":"array","items":{"anyOf":TYPES}},"f":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},"g":{"enum":["x"]}},"$defs":{"d":{"type":"object","properties":{"x":{"anyOf":TYPES}}}}}"##;
    let written = typed(compact).unwrap();
    assert_eq!(written, expected.replace("TYPES", ANY_TYPE));
    assert_eq!(typed(&written).unwrap(), written);
}

#[test]
fn arguments_of_all_parts_of_a_schema_are_listed_once() {
    lists(
        r##"{"properties": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/more"}],
            "anyOf": [{"properties": {"c": {"type": "boolean"}, "a": {"type": "null"}}}],
            "$defs": {"more": {"properties": {"b": {"type": "number"}}}}}"##,
        r#"{"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"boolean"}}"#,
    );
}

/// A client reads the mark of a header from the list.
#[test]
fn an_argument_that_is_a_header_stays_whole_but_for_prose() {
    let schema = r#"{"properties": {
        "region": {"type": "string", "x-mcp-header": "Region", "maxLength": 9, "description": "Where"},
        "q": {"type": "string", "maxLength": 9}
    }}"#;
    let region = r#""region":{"type":"string","x-mcp-header":"Region","maxLength":9}"#;
    lists(schema, &format!(r#"{{{region},"q":{{"type":"string"}}}}"#));
    let bare = open_schema(schema, ListedArguments::None).unwrap();
    assert_eq!(
        bare.json,
        format!(r#"{{"type":"object","properties":{{{region}}},"additionalProperties":true}}"#)
    );
    assert_eq!(bare.names, ["region", "q"]);
}

#[track_caller]
fn keeps(tool: &str, expected: bool) {
    assert_eq!(
        keeps_schema(&Members::parse(tool).unwrap()),
        expected,
        "{tool}"
    );
}

#[test]
fn a_tool_with_a_user_interface_keeps_its_schema() {
    keeps(r#"{"_meta": {"ui": {"resourceUri": "ui://map"}}}"#, true);
    keeps(r#"{"annotations": {"destructiveHint": true}}"#, false);
    keeps("{}", false);
}

/// What is not listed can be given all the same, and the schema says so.
#[test]
fn required_arguments_alone_are_listed_on_request() {
    let schema = r#"{"properties": {"a": {"type": "number"}, "b": {}}, "required": ["a"]}"#;
    let open = open_schema(schema, ListedArguments::Required).unwrap();
    let expected =
        r#"{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":true}"#;
    assert_eq!(open.json, expected);
    assert_eq!(open.names, ["a", "b"]);
    let all = r#"{"properties": {"a": {"type": "number"}}, "required": ["a"]}"#;
    let open = open_schema(all, ListedArguments::Required).unwrap();
    assert!(!open.json.contains("additionalProperties"));
}

/// A schema that names some arguments and accepts others still accepts others.
#[test]
fn arguments_that_a_schema_does_not_name_are_mentioned() {
    let schema =
        r#"{"properties": {"a": {"type": "number"}}, "additionalProperties": {"type": "string"}}"#;
    let open = open_schema(schema, ListedArguments::All).unwrap();
    assert!(open.json.ends_with(r#""additionalProperties":true}"#));
}

#[track_caller]
fn names(schema: &str, expected: Option<&[&str]>) {
    let found = argument_names(schema);
    let found = found
        .as_ref()
        .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found.as_deref(), expected, "of {schema}");
}

#[test]
fn a_schema_that_names_arguments_takes_no_others() {
    names(
        r#"{"properties": {"a": {}}, "required": ["b"]}"#,
        Some(&["a", "b"]),
    );
    names(r#"{"properties": {}}"#, Some(&[]));
    names(
        r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
        Some(&["a"]),
    );
    names(
        r##"{"properties": {"a": {}}, "allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"properties": {"b": {}}}}}"##,
        Some(&["a", "b"]),
    );
    names(
        r#"{"properties": {"a": {}}, "if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"c": {}}}}"#,
        Some(&["a", "c"]),
    );
}

#[test]
fn a_schema_that_says_which_others_it_takes_decides_itself() {
    names(r#"{"type": "object"}"#, None);
    names(
        r#"{"properties": {"a": {}}, "additionalProperties": true}"#,
        None,
    );
    names(
        r#"{"properties": {"a": {}}, "additionalProperties": {"type": "string"}}"#,
        None,
    );
    names(
        r#"{"properties": {"a": {}}, "patternProperties": {"^x-": {}}}"#,
        None,
    );
    names(
        r#"{"properties": {"a": {}}, "anyOf": [{"additionalProperties": true}]}"#,
        None,
    );
    names(
        r#"{"properties": {"a": {}}, "$ref": "https://example.com/schema"}"#,
        None,
    );
    names(r##"{"properties": {"a": {}}, "$ref": "#anchor"}"##, None);
}

#[test]
fn references_in_a_circle_and_many_choices_end() {
    names(
        r##"{"properties": {"a": {}}, "allOf": [{"$ref": "#"}, {"$ref": "#"}]}"##,
        None,
    );
    let branch = r##"{"allOf": [{"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}]}"##;
    let chain =
        (0..30).map(|at| format!(r#""{at}": {}"#, branch.replace('N', &(at + 1).to_string())));
    let chain: Vec<_> = chain.collect();
    let schema = format!(
        r##"{{"properties": {{"a": {{}}}}, "$ref": "#/$defs/0", "$defs": {{{}, "30": {{}}}}}}"##,
        chain.join(",")
    );
    names(&schema, None);
    assert!(open_schema(&schema, ListedArguments::All).is_ok());
}
