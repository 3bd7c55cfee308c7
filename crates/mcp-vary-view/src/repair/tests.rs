use super::*;

#[track_caller]
fn becomes(used_as: SchemaUse, written: &str, repaired: &str, problems: &[&str]) {
    let mut schema = Json::parse(written).unwrap();
    let mut found = Vec::new();
    repair_schema(&mut schema, "s", used_as, &mut found).unwrap();
    assert_eq!(schema.to_json(), repaired, "{written}");
    assert_eq!(found, problems, "{written}");
    let mut again = Vec::new();
    repair_schema(&mut schema, "s", used_as, &mut again).unwrap();
    assert_eq!((schema.to_json(), again), (repaired.to_owned(), vec![]));
    let value = serde_json::from_str(repaired).unwrap();
    assert!(jsonschema::meta::is_valid(&value), "{repaired}");
}

/// As an input, in an object that is right; the problem is one keyword of the property `a`.
#[track_caller]
fn property_becomes(written: &str, repaired: &str, problems: &[&str]) {
    let object = |property: &str| format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#);
    becomes(
        SchemaUse::Input,
        &object(written),
        &object(repaired),
        problems,
    );
}

#[test]
fn a_schema_that_is_right_stays() {
    for same in [
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{"required":{"type":"boolean"},"type":{"type":["string","null"]},"$ref":{}}}"#,
        r##"{"type":"object","$defs":{"a/b":{"enum":[null]}},"properties":{"a":{"$ref":"#/$defs/a~1b"},"b":{"$ref":"#"}}}"##,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}]}}}"#,
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"x","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}"#,
        r#"{"type":"object","x-mine":{"type":"int"},"default":{"required":true},"properties":{"a":{"const":{"type":7},"nullable":true}}}"#,
        r#"{"type":"object","properties":{"a":{"pattern":"^[\\w-.(]+(?i)$"}},"additionalProperties":false}"#,
    ] {
        becomes(SchemaUse::Input, same, same, &[]);
    }
}

#[test]
fn the_root_is_an_object() {
    let object = r#"{"type":"object"}"#;
    for (written, problem) in [
        ("null", "`s` cannot be null"),
        ("true", "`s` cannot be true"),
        ("[]", "`s` cannot be []"),
    ] {
        becomes(
            SchemaUse::Input,
            written,
            object,
            &[problem, "`s` has no `type`"],
        );
    }
    becomes(SchemaUse::Input, "{}", object, &["`s` has no `type`"]);
    let nullable = r#"{"type":["object","null"]}"#;
    becomes(
        SchemaUse::Input,
        nullable,
        object,
        &["`s/type` cannot be a list"],
    );
    becomes(
        SchemaUse::Input,
        r#"{"type":"dict"}"#,
        object,
        &["`s/type` cannot be `dict`"],
    );
    let flags = r#"{"type":"object","properties":{"a":true,"b":false}}"#;
    let objects = r#"{"type":"object","properties":{"a":{},"b":{"not":{}}}}"#;
    for used_as in [
        SchemaUse::Input,
        SchemaUse::ObjectOutput,
        SchemaUse::AnyOutput,
    ] {
        becomes(
            used_as,
            flags,
            objects,
            &[
                "`s/properties/a` cannot be true",
                "`s/properties/b` cannot be false",
            ],
        );
    }
}

#[test]
fn what_describes_no_object_is_refused() {
    for (used_as, written, why) in [
        (
            SchemaUse::Input,
            r#"{"type":"string"}"#,
            "`s` has the type `string`",
        ),
        (SchemaUse::Input, r#"["a"]"#, "`s` cannot be a list"),
        (SchemaUse::Input, r#""string""#, "`s` cannot be `string`"),
        (SchemaUse::Input, "false", "`s` cannot be false"),
        (SchemaUse::ObjectOutput, "{}", "`s` cannot be {}"),
        (SchemaUse::ObjectOutput, "null", "`s` cannot be null"),
        (
            SchemaUse::ObjectOutput,
            r#"{"type":"array"}"#,
            "`s` has the type `array`",
        ),
        (SchemaUse::AnyOutput, "7", "`s` cannot be 7"),
    ] {
        let mut schema = Json::parse(written).unwrap();
        let refused = repair_schema(&mut schema, "s", used_as, &mut Vec::new());
        assert_eq!(refused, Err(why.to_owned()), "{written}");
    }
    let array = r#"{"type":"array","items":{}}"#;
    becomes(SchemaUse::AnyOutput, array, array, &[]);
}

#[test]
fn a_keyword_with_one_meaning_gets_a_valid_value() {
    for (name, meant) in [
        ("int", "integer"),
        ("String", "string"),
        ("bool", "boolean"),
        ("float", "number"),
        ("list", "array"),
        ("None", "null"),
    ] {
        let written = format!(r#"{{"type":"{name}"}}"#);
        let problem = format!("`s/properties/a/type` cannot be `{name}`");
        property_becomes(&written, &format!(r#"{{"type":"{meant}"}}"#), &[&problem]);
    }
    property_becomes(
        r#"{"type":["str","any","string"]}"#,
        r#"{"type":["string"]}"#,
        &["`s/properties/a/type` cannot be a list"],
    );
    property_becomes(
        r#""string""#,
        r#"{"type":"string"}"#,
        &["`s/properties/a` cannot be `string`"],
    );
    property_becomes(
        r#"{"required":"b"}"#,
        r#"{"required":["b"]}"#,
        &["`s/properties/a/required` cannot be `b`"],
    );
    property_becomes(
        r#"{"required":["b",7,"b"]}"#,
        r#"{"required":["b"]}"#,
        &["`s/properties/a/required` cannot be a list"],
    );
    property_becomes(
        r#"{"items":[{"type":"string"}],"additionalItems":false}"#,
        r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
        &["`s/properties/a/items` cannot be a list"],
    );
    property_becomes(
        r#"{"minimum":1,"exclusiveMinimum":true}"#,
        r#"{"exclusiveMinimum":1}"#,
        &["`s/properties/a/exclusiveMinimum` cannot be true"],
    );
    let flags = r#"{"type":"object","properties":{"a":{"required":true},"b":{"required":false}},"required":["c"]}"#;
    let list = r#"{"type":"object","properties":{"a":{},"b":{}},"required":["c","a"]}"#;
    let problems = [
        "`s/properties/a/required` cannot be true",
        "`s/properties/b/required` cannot be false",
    ];
    becomes(SchemaUse::Input, flags, list, &problems);
}

#[test]
fn a_keyword_without_meaning_goes() {
    for keyword in [
        r#""type":"file""#,
        r#""type":7"#,
        r#""type":[]"#,
        r#""type":null"#,
        r#""description":null"#,
        r#""description":["a"]"#,
        r#""properties":[]"#,
        r#""properties":null"#,
        r#""required":true"#,
        r#""required":{}"#,
        r#""enum":"a""#,
        r#""enum":[]"#,
        r#""items":[]"#,
        r#""items":7"#,
        r#""anyOf":{}"#,
        r#""anyOf":[]"#,
        r#""anyOf":[7]"#,
        r#""additionalProperties":null"#,
        r#""additionalProperties":"no""#,
        r#""minLength":-1"#,
        r#""minLength":"3""#,
        r#""maxItems":1.5"#,
        r#""multipleOf":0"#,
        r#""minimum":"0""#,
        r#""uniqueItems":"true""#,
        r#""pattern":"(""#,
        r#""pattern":null"#,
        r#""format":7"#,
        r#""$ref":7"#,
        r##""$ref":"#/$defs/Missing""##,
        r#""$ref":"other.json""#,
        r##""$ref":"#missing""##,
        r#""examples":"x""#,
        r#""exclusiveMinimum":true"#,
        r#""patternProperties":{"(":{}}"#,
        r#""dependentRequired":{"a":7}"#,
        r#""$defs":7"#,
    ] {
        let mut schema = Json::parse(&format!(
            r#"{{"type":"object","properties":{{"a":{{{keyword}}}}}}}"#
        ))
        .map(Json::into_owned)
        .unwrap();
        let mut problems = Vec::new();
        repair_schema(&mut schema, "s", SchemaUse::Input, &mut problems).unwrap();
        let property = schema.get("properties").and_then(|it| it.get("a")).unwrap();
        let left = property.to_json();
        assert!(
            left == "{}"
                || left == r#"{"patternProperties":{}}"#
                || left == r#"{"dependentRequired":{}}"#,
            "{keyword}: {left}"
        );
        assert!(
            !problems.is_empty() && problems.len() <= 2,
            "{keyword}: {problems:?}"
        );
    }
}

/// The client of TypeScript 1 compiles every output schema of a list, and refuses the list if one fails.
#[test]
fn what_keeps_a_client_from_compiling_goes_from_outputs() {
    for keyword in [
        r#""id":"x""#,
        r#""nullable":true"#,
        r#""pattern":"[\\w-.]""#,
        r#""pattern":"a\\-b""#,
        r#""pattern":"(?P<a>b)""#,
        r#""pattern":"{a}""#,
    ] {
        let schema =
            |keyword: &str| format!(r#"{{"type":"object","properties":{{"a":{{{keyword}}}}}}}"#);
        let mut output = Json::parse(&schema(keyword)).map(Json::into_owned).unwrap();
        repair_schema(&mut output, "s", SchemaUse::ObjectOutput, &mut Vec::new()).unwrap();
        assert_eq!(output.to_json(), schema(""), "{keyword}");
        becomes(SchemaUse::Input, &schema(keyword), &schema(keyword), &[]);
    }
    for pattern in [
        r"^[\\w.-]{1,3}$",
        r"\\p{L}(?:a|b)(?<n>c)\\d+",
        r"[\\^\\]{}]",
    ] {
        let schema =
            format!(r#"{{"type":"object","properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        becomes(SchemaUse::ObjectOutput, &schema, &schema, &[]);
    }
}

/// No schema takes more than linear time, or has more problems than a person reads.
#[test]
fn long_schemas_are_bounded() {
    let names: Vec<_> = (0..100_000)
        .map(|at| format!(r#""{}""#, at % 50_000))
        .collect();
    let long = "k".repeat(1 << 20);
    let broken: Vec<_> = (0..20_000)
        .map(|at| format!(r#""{at}":{{"type":7}}"#))
        .collect();
    let text = format!(
        r#"{{"required":[{}],"properties":{{"{long}":{{"properties":{{{}}}}}}}}}"#,
        names.join(","),
        broken.join(",")
    );
    let mut schema = Json::parse(&text).unwrap();
    let mut problems = Vec::new();
    repair_schema(&mut schema, "s", SchemaUse::Input, &mut problems).unwrap();
    assert!(
        problems.len() <= 5 && problems.iter().all(|it| it.len() < 250),
        "{problems:?}"
    );
}
