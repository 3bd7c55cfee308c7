use super::*;

/// Checks pairs of lines: a schema, and what it becomes.
#[track_caller]
fn compacts(cases: &str) {
    let mut lines = cases.lines().map(str::trim).filter(|line| !line.is_empty());
    while let Some(schema) = lines.next() {
        let compacted = compact(schema, Prose::None).unwrap();
        assert_eq!(Some(&*compacted), lines.next(), "of {schema}");
    }
}

#[track_caller]
fn stays(schemas: &[&str]) {
    for schema in schemas {
        assert_eq!(compact(schema, Prose::None).unwrap(), *schema);
    }
}

#[test]
fn prose_goes() {
    compacts(
        r#"
        {"title": "T", "type": "object", "description": "D", "$comment": "C", "examples": [{}]}
            {"type":"object"}
        {"properties": {"a": {"items": [{"title": "T"}, {"anyOf": [{"description": "D"}, true]}]}}}
            {"properties":{"a":{"items":[{},{"anyOf":[{},true]}]}}}
        {"dependencies": {"a": ["title"], "b": {"title": "T"}}, "patternProperties": {"title": {"title": "T"}}}
            {"dependencies":{"a":["title"],"b":{}},"patternProperties":{"title":{}}}
    "#,
    );
}

#[test]
fn properties_with_the_names_of_keywords_stay() {
    stays(&[
        r#"{"properties":{"description":{"type":"string"},"title":{},"default":{},"examples":{},"$comment":{},"properties":{"type":"object"},"$ref":{"type":"string"}}}"#,
        r#"{"dependentSchemas":{"title":{"required":["description"]}}}"#,
        r##"{"$defs":{"title":{"type":"null"}},"properties":{"a":{"$ref":"#/$defs/title"},"b":{"$ref":"#/$defs/title"}}}"##,
        r##"{"properties":{"description":{"type":"string"},"a":{"$ref":"#/properties/description"}}}"##,
    ]);
}

#[test]
fn data_and_unknown_keywords_stay() {
    stays(&[
        r#"{"enum":[{"title":"T","description":"D"}]}"#,
        r#"{"const":{"properties":{"a":{"title":"T"}}}}"#,
        r#"{"default":{"description":"D","examples":[]}}"#,
        r#"{"x-mcp-header":"Region","x-ui":{"title":"T"},"markdownDescription":"M"}"#,
        r#"{"minimum":1.10,"maximum":1e400}"#,
    ]);
}

#[test]
fn a_schema_that_misuses_prose_stays_invalid() {
    stays(&[r#"{"description":{"type":"string"},"title":1,"examples":"none"}"#]);
    stays(&["true", "[]", "null", r#"{"properties":[{"title":"T"}]}"#]);
}

#[test]
fn what_allows_everything_goes_unless_it_is_evaluated() {
    compacts(
        r#"
        {"additionalProperties": true}
            {}
        {"additionalProperties": {"description": "Any."}}
            {}
        {"propertyNames": {"type": "string", "title": "N"}}
            {}
    "#,
    );
    stays(&[
        r#"{"additionalProperties":false}"#,
        r#"{"allOf":[{"additionalProperties":true}],"unevaluatedProperties":false}"#,
        r#"{"propertyNames":{"type":"number"}}"#,
        r#"{"propertyNames":{"maxLength":3}}"#,
    ]);
}

#[test]
fn definitions_that_nothing_uses_go() {
    compacts(
        r##"
        {"items": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b~1%62", "not": {}}, "b/b": {"title": "T"}, "c": {"$ref": "#/$defs/c"}}}
            {"items":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b~1%62","not":{}},"b/b":{}}}
        {"type": "object", "definitions": {"a": {}}}
            {"type":"object"}
        {"$ref": "#/$defs/a/properties/title", "$defs": {"a": {"properties": {"title": {"title": "T"}}}}}
            {"$ref":"#/$defs/a/properties/title","$defs":{"a":{"properties":{"title":{}}}}}
    "##,
    );
    stays(&[r##"{"$defs":{"a":{"$anchor":"x"}},"items":{"$ref":"#x"}}"##]);
}

#[test]
fn references_that_cannot_be_followed_leave_the_schema_as_it_is() {
    for reference in [
        "#/examples/0",
        "#/properties",
        "#/properties/missing",
        "#/components/schemas/a",
        "#/additionalProperties",
        "#/%",
        "#/%FF",
        "https://example.com/schema",
        "other.json#/title",
        "",
    ] {
        stays(&[&format!(
            r#"{{"title":"T","examples":[{{}}],"additionalProperties":true,"properties":{{"a":{{"$ref":"{reference}"}}}}}}"#
        )]);
    }
    stays(&[
        r##"{"title":"T","properties":{"a":{"$id":"https://example.com/a","$ref":"#/title"}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-04/schema#","title":"T","items":{"id":"a","$ref":"#"}}"##,
    ]);
}

#[test]
fn more_references_than_anyone_writes_leave_the_schema_as_it_is() {
    let schema = |references: usize| {
        let part = |at| format!(r##""{at}":{{}},"to {at}":{{"$ref":"#/properties/{at}"}}"##);
        let parts: Vec<String> = (0..references).map(part).collect();
        format!(r#"{{"title":"T","properties":{{{}}}}}"#, parts.join(","))
    };
    let many = schema(MAX_REFERENCES);
    let compacted = many.replace(r#""title":"T","#, "");
    compacts(&format!("{many}\n{compacted}"));
    stays(&[&schema(MAX_REFERENCES + 1)]);
}

#[test]
fn a_dialect_goes_only_where_all_read_the_same() {
    for dialect in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let members = r#""type":"object","properties":{"a":{"enum":[1]}}"#;
        compacts(&format!(
            "{{\"$schema\": \"{dialect}\", {members}}}\n{{{members}}}"
        ));
        for rest in [
            r#""items":[{}]"#,
            r#""prefixItems":[{}]"#,
            r#""properties":{"a":{"format":"uri"}}"#,
            r##""properties":{"a":{"$ref":"#"}}"##,
            r#""anyOf":[{"dependencies":{}}]"#,
            r#""unevaluatedProperties":false"#,
            r#""unknown":{}"#,
        ] {
            stays(&[&format!(r#"{{"$schema":"{dialect}",{rest}}}"#)]);
        }
    }
    stays(&[
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"}"#,
        r#"{"$schema":"https://example.com/dialect","title":"T"}"#,
        r#"{"$schema":7,"title":"T"}"#,
    ]);
}

#[test]
fn a_definition_with_one_reference_is_where_the_reference_was() {
    compacts(
        r##"
        {"$defs": {"a": {"type": "string"}}, "properties": {"p": {"$ref": "#/$defs/a"}}}
            {"properties":{"p":{"type":"string"}}}
        {"properties": {"p": {"items": {"$ref": "#/definitions/a"}}}, "definitions": {"a": {"not": {"$ref": "#/definitions/b"}}, "b": {"type": "null"}}}
            {"properties":{"p":{"items":{"not":{"type":"null"}}}}}
        {"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"minimum": 1}}, "anyOf": [{"$ref": "#/$defs/a"}, {"items": {"$ref": "#/$defs/a"}}]}
            {"$defs":{"a":{"items":{"minimum":1}}},"anyOf":[{"$ref":"#/$defs/a"},{"items":{"$ref":"#/$defs/a"}}]}
    "##,
    );
}

#[test]
fn a_definition_stays_with_other_references_and_beside_other_keywords() {
    stays(&[
        r##"{"$defs":{"a":{"type":"null"}},"properties":{"p":{"$ref":"#/$defs/a"},"q":{"$ref":"#/$defs/a"}}}"##,
        r##"{"$defs":{"a":{"type":"null"}},"properties":{"p":{"$ref":"#/$defs/a","default":0}}}"##,
        r##"{"$defs":{"a":{"items":{"type":"null"}}},"properties":{"p":{"$ref":"#/$defs/a/items"}}}"##,
        r##"{"$defs":{"a":{"type":"null"}},"properties":{"p":{"$ref":"#/$defs/a"}},"enum":[{"$ref":"#/$defs/a"}]}"##,
        r##"{"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}},"items":{"$ref":"#/$defs/a"}}"##,
        r##"{"$defs":{"a":{"$anchor":"x"}},"items":[{"$ref":"#x"},{"$ref":"#/$defs/a"}]}"##,
    ]);
}

#[test]
fn definitions_that_would_nest_too_deep_stay() {
    let definition = |at: u32| format!(r##""d{at}":{{"items":{{"$ref":"#/$defs/d{}"}}}}"##, at + 1);
    let chain = |length: u32| {
        let all: Vec<String> = (0..length).map(definition).collect();
        format!(
            r##"{{"$defs":{{{},"d{length}":{{"type":"null"}}}},"items":{{"$ref":"#/$defs/d0"}}}}"##,
            all.join(",")
        )
    };
    assert!(!compact(&chain(10), Prose::None).unwrap().contains("$defs"));
    stays(&[&chain(200)]);
}

#[test]
fn what_is_there_twice_or_empty_goes_and_choices_of_types_are_lists() {
    compacts(
        r#"
        {"anyOf": [{"type": "string"}, {"type": "string", "title": "T"}, {"type": "object"}]}
            {"type":["string","object"]}
        {"anyOf": [{"type": "string"}, {"minimum": 1}, {"type": ["null", "string"]}, {"minimum": 1}]}
            {"anyOf":[{"type":["string","null"]},{"minimum":1}]}
        {"type": "string", "anyOf": [{"type": "string"}, {"type": "null"}]}
            {"type":"string","anyOf":[{"type":["string","null"]}]}
        {"anyOf": [{"type": "object", "properties": {}}, {"type": "string"}]}
            {"type":["object","string"]}
        {"properties": {}, "required": [], "items": {"properties": {}, "required": []}}
            {"properties":{},"items":{}}
    "#,
    );
    stays(&[
        r##"{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"null"},true]},"b":{"$ref":"#/properties/a/anyOf/2"}}}"##,
        r#"{"oneOf":[{"type":"string"},{"type":"string"}]}"#,
        r#"{"anyOf":[{"type":"string","description":1},{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":[]},{"type":"null"}]}"#,
        r#"{"properties":{"anyOf":{"type":"array"}},"enum":[{"anyOf":[{"type":"null"},{"type":"string"}]}]}"#,
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","required":[]}"#,
        r#"{"properties":{"required":{"properties":{"a":{}}}},"default":{"properties":{}}}"#,
    ]);
}

#[test]
fn a_choice_in_a_choice_is_one_choice() {
    compacts(
        r##"
        {"anyOf": [{"anyOf": [{"minimum": 1}, {"type": "null"}]}, {"type": "string"}, {"minimum": 1}]}
            {"anyOf":[{"minimum":1},{"type":["null","string"]}]}
        {"anyOf": [{"$ref": "#/$defs/a"}, {"maximum": 9}], "$defs": {"a": {"anyOf": [{"minimum": 1}, {"minLength": 1}]}}}
            {"anyOf":[{"minimum":1},{"minLength":1},{"maximum":9}]}
    "##,
    );
    stays(&[
        r#"{"anyOf":[{"anyOf":[{"minimum":1},{"minLength":1}],"maximum":9},{"maxLength":1}]}"#,
        r#"{"anyOf":[{"oneOf":[{"minimum":1},{"minLength":1}]},{"anyOf":[]},{"maxLength":1}]}"#,
    ]);
}

#[test]
fn a_choice_between_values_is_a_list_of_values() {
    compacts(
        r#"
        {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}], "default": null}
            {"type":["string","null"],"enum":["a","b",null]}
        {"anyOf": [{"type": "null"}, {"enum": [1, null], "type": "integer"}]}
            {"type":["null","integer"],"enum":[null,1]}
        {"anyOf": [{"type": "number", "const": 1}, {"minimum": 9}, {"type": "string", "const": "a"}, {"type": "number", "enum": [2, 1]}]}
            {"anyOf":[{"type":["number","string"],"enum":[1,"a",2]},{"minimum":9}]}
    "#,
    );
    stays(&[
        r#"{"anyOf":[{"enum":["a"]},{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":"string","enum":["a"],"minLength":1},{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":"string","enum":["a"]},{"type":"integer"}]}"#,
        r#"{"type":"string","anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":"string","enum":["a"]},{"type":"integer","enum":[1.5]}]}"#,
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","anyOf":[{"type":"string","const":"a"},{"type":"number","const":1}]}"#,
        r#"{"oneOf":[{"type":"string","enum":["a"]},{"type":"null"}]}"#,
    ]);
}

#[test]
fn a_choice_between_types_is_a_list_of_types() {
    compacts(
        r#"
        {"anyOf": [{"type": "array", "items": {"minimum": 1}, "minItems": 1}, {"type": "null"}], "default": null}
            {"type":["array","null"],"items":{"minimum":1},"minItems":1}
        {"anyOf": [{"type": ["string", "null"], "maxLength": 9}, {"type": "integer", "minimum": 0}], "default": 0}
            {"type":["string","null","integer"],"maxLength":9,"minimum":0,"default":0}
    "#,
    );
    stays(&[
        r#"{"anyOf":[{"type":"integer","minimum":1},{"type":"number","maximum":0}]}"#,
        r#"{"anyOf":[{"type":"string","minLength":1},{"type":"string","maxLength":0}]}"#,
        r#"{"anyOf":[{"type":"string","minimum":1},{"type":"null"}]}"#,
        r#"{"properties":{"a":{"anyOf":[{"type":"object","properties":{"a":{"minimum":1}}},{"type":"null"}],"properties":{"b":{"minimum":1}}}}}"#,
        r#"{"anyOf":[{"type":"object","minProperties":1},{"type":"null"}],"unevaluatedProperties":false}"#,
    ]);
}
