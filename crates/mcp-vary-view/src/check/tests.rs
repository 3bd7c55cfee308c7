use super::*;

#[track_caller]
fn says(schema: &str, arguments: &str, expected: &[&str]) {
    let check = SchemaCheck::new(schema).unwrap();
    let faults: Vec<_> = check
        .errors(arguments)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(faults, expected, "of {arguments}");
}

/// SV-11: what a variant's schema lets through is checked against the server's.
#[test]
fn a_fault_says_where_what_and_what_instead() {
    let schema = r##"{"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
            "q": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
            "sort": {"enum": ["new", "old"]},
            "limits": {"type": "array", "items": {"type": ["integer", "null"], "maximum": 9}, "maxItems": 2},
            "by": {"anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"type": "string"}]}
        }}"##;
    says(
        schema,
        r#"{"q": "ok", "by": "x", "limits": [1, null]}"#,
        &[],
    );
    says(schema, "{}", &["expected the property \"q\", got nothing"]);
    says(
        schema,
        r#"{"q": "a"}"#,
        &["`/q`: expected at least 2 characters, got \"a\""],
    );
    says(
        schema,
        r#"{"q": "A1"}"#,
        &["`/q`: expected a text that matches ^[a-z]+$, got \"A1\""],
    );
    says(
        schema,
        r#"{"q": "ok", "sort": "best", "z": 1}"#,
        &[
            "`/sort`: expected one of \"new\", \"old\", got \"best\"",
            "expected no property `z`, got an object of 3 properties",
        ],
    );
    says(
        schema,
        r#"{"q": "ok", "limits": [10, "1", 2]}"#,
        &[
            "`/limits`: expected at most 2 elements, got an array of 3 elements",
            "`/limits/0`: expected at most 9, got 10",
            "`/limits/1`: expected null or an integer, got \"1\"",
        ],
    );
    says(
        schema,
        r#"{"q": "ok", "by": {"id": "7"}}"#,
        &["`/by/id`: expected an integer, got \"7\""],
    );
    says(
        schema,
        r#"{"q": "ok", "by": 7}"#,
        &["`/by`: expected an object, or a string, got 7"],
    );
}

#[test]
fn of_a_choice_the_branch_that_is_meant_is_told() {
    let schema = r#"{"properties": {"f": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "all"}, "n": {"type": "integer"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "one"}, "id": {"type": "string"}}, "required": ["kind", "id"]}
        ]}}, "anyOf": [{"required": ["f"]}, {"required": ["g"]}]}"#;
    says(
        schema,
        r#"{"f": {"kind": "one", "id": 7}}"#,
        &["`/f/id`: expected a string, got 7"],
    );
    says(
        schema,
        r#"{"f": {"kind": "two", "id": "7"}}"#,
        &["`/f`: expected `/kind`: \"all\", or `/kind`: \"one\", got an object of 2 properties"],
    );
    says(
        schema,
        "{}",
        &["expected the property \"f\", or the property \"g\", got an object of 0 properties"],
    );
}

#[test]
fn faults_are_bounded_in_number_and_length() {
    let check =
        SchemaCheck::new(r#"{"properties": {"a": {"items": {"type": "string", "maxLength": 1}}}}"#)
            .unwrap();
    let many = format!(r#"{{"a": [{}0]}}"#, "0, ".repeat(500));
    let faults = check.errors(&many);
    assert_eq!(faults.len(), 9);
    assert_eq!(faults[8], ArgumentError::More(92));
    let long = format!(r#"{{"a": ["{}"]}}"#, "x".repeat(100_000));
    assert!(check.errors(&long)[0].to_string().len() < 600);
}

/// Each branch would hold a copy of the array.
#[test]
fn a_large_value_that_no_branch_takes_is_refused_without_details() {
    let branches = r#"{"type":"integer"},"#.repeat(200);
    let schema = format!(
        r#"{{"properties": {{"a": {{"anyOf": [{}]}}}}}}"#,
        branches.trim_end_matches(',')
    );
    let array = |elements: usize| format!(r#"{{"a": [0{}]}}"#, ",0".repeat(elements - 1));
    says(
        &schema,
        &array(10),
        &["`/a`: expected an integer, got an array of 10 elements"],
    );
    says(
        &schema,
        &array(10_000),
        &[
            "expected what the tool's schema takes (they are too large to say what is wrong), got an object of 1 property",
        ],
    );
    // The server decides.
    says(&schema, &array(MAX_CHECKED_VALUES), &[]);
}

#[test]
fn a_schema_that_cannot_be_compiled_says_why() {
    #[track_caller]
    fn refused(schema: &str, why: &str) {
        let refused = SchemaCheck::new(schema).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    refused(
        r#"{"$ref": "https://example.com/schema.json"}"#,
        "example.com",
    );
    refused(r#"{"type": 7}"#, "");
    refused("{", "");
    refused(r##"{"$ref": "#"}"##, "too long");
    refused(
        r##"{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}"##,
        "too long",
    );
    let big = format!(r#"{{"enum": ["{}"]}}"#, "x".repeat(600_000));
    refused(&big, "more than");
}

#[test]
fn large_schemas_and_patterns_have_limits() {
    let described = |length: usize| {
        let schema = |words: &str| format!(r#"{{"description":"{words}"}}"#);
        SchemaCheck::new(&schema(&"x".repeat(length - schema("").len())))
    };
    assert!(described(524_288).is_ok());
    let error = described(524_289).unwrap_err();
    assert!(error.contains("more than 524288 bytes"), "{error}");
    let pattern = |pattern: &str| SchemaCheck::new(&format!(r#"{{"pattern":"{pattern}"}}"#));
    assert!(pattern("^[a-z0-9.]{1,64}@[a-z0-9]{1,64}$").is_ok());
    assert!(pattern("^(\\\\w{1,100}){100}$").is_err());
}

#[test]
fn what_would_take_for_ever_is_let_through() {
    let doubled: Vec<String> = (0..40)
            .map(|at| {
                let next = at + 1;
                format!(r##""d{at}": {{"allOf": [{{"$ref": "#/$defs/d{next}"}}, {{"$ref": "#/$defs/d{next}"}}]}}"##)
            })
            .collect();
    let schema = format!(
        r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d40": {{}}}}}}"##,
        doubled.join(",")
    );
    assert!(SchemaCheck::new(&schema).unwrap_err().contains("too long"));

    let recursive = r##"{"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}], "type": "object"}"##;
    let check = SchemaCheck::new(recursive).unwrap();
    let deepest = check.effort.len() - 1;
    assert!((5..40).contains(&deepest), "{deepest}");
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert!(!check.errors(&nested(3)).is_empty());
    assert!(check.errors(&nested(100)).is_empty());
}

#[test]
fn what_is_as_deep_as_can_be_checked_is_checked() {
    let schema = |keyword: &str, kind: &str| {
        let part = format!(r##"{{{keyword}: {{"$ref": "#"}}}}"##);
        format!(r#"{{"allOf": [{part}, {part}], "type": "{kind}"}}"#)
    };
    let lists = schema(r#""items""#, "array");
    let maps = schema(r#""additionalProperties""#, "object");
    for (schema, start, end) in [(lists, "[", "]"), (maps, r#"{"a":"#, "}")] {
        let check = SchemaCheck::new(&schema).unwrap();
        let nested = |depth: usize| format!("{}1{}", start.repeat(depth), end.repeat(depth));
        let deepest = check.effort.len() - 1;
        assert!(!check.errors(&nested(deepest)).is_empty());
        assert!(check.errors(&nested(deepest + 1)).is_empty());
    }
}

#[test]
fn ordinary_recursion_is_checked_as_deep_as_it_goes() {
    let schema =
        r##"{"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}"##;
    let check = SchemaCheck::new(schema).unwrap();
    assert_eq!(check.effort.len(), 129);
    let nested = format!(
        "{}{}{}",
        r#"{"next":"#.repeat(60),
        r#"{"n": "x"}"#,
        "}".repeat(60)
    );
    assert_eq!(check.errors(&nested).len(), 1);
}

#[test]
fn patterns_that_backtrack_are_given_up_on() {
    let schema = r#"{"properties": {"a": {"pattern": "^(?=(a+)+$)(a|aa)+\\1$"}}}"#;
    let check = SchemaCheck::new(schema).unwrap();
    let text = format!(r#"{{"a": "{}!"}}"#, "a".repeat(5_000));
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(check.errors(&text).len()));
    let faults = finished.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(faults, Ok(1), "the pattern is not followed for ever");
}
