//! The check of calls against the server's own schema.

use mcp_vary::json::Json;
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_view::{
    ArgumentCheck, ArgumentError, ArgumentOverride, PreparedTool, SchemaStyle, Style, ToolOverride,
};

const SEARCH: &str = r#"{"name": "search", "description": "Finds. Slowly.", "inputSchema": {"type": "object", "properties": {
    "query": {"type": "string", "description": "What"}, "dry_run": {"type": "boolean"},
    "limit": {"type": "integer", "maximum": 10}, "since": {"type": "string", "format": "date"}
}, "required": ["query"]}}"#;

fn prepared(definition: &str, change: &ToolOverride, check: ArgumentCheck) -> PreparedTool {
    let style = Style {
        schema: SchemaStyle::OnDemand,
        check,
        ..Style::default()
    };
    let (tool, mistakes) = PreparedTool::new(definition, change, style).unwrap();
    assert!(mistakes.is_empty(), "{mistakes:?}");
    tool
}

/// Checks calls, a line each: the arguments, and after an arrow the errors between bars. Without errors, the arguments
/// are sent as they were written.
#[track_caller]
fn says(tool: &PreparedTool, cases: &str) {
    for line in cases.trim().lines() {
        let (given, expected) = line.trim().split_once(" ->").unwrap();
        let errors = match tool.arguments(given) {
            Ok(sent) => {
                assert_eq!(sent, given, "what fits is sent as it was written");
                String::new()
            }
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                errors.join(" | ")
            }
        };
        assert_eq!(errors, expected.trim(), "of {given}");
    }
}

/// A tool without overrides whose calls are checked.
fn checked(definition: &str) -> PreparedTool {
    prepared(definition, &ToolOverride::default(), ArgumentCheck::On)
}

#[test]
fn a_call_that_fits_is_sent_as_it_was_written() {
    let tool = checked(SEARCH);
    says(
        &tool,
        r#"{ "query" : "\u00e9", "limit":1e0,"since":"soon" } ->"#,
    );
}

#[test]
fn a_call_that_does_not_fit_is_told_every_error() {
    let tool = checked(SEARCH);
    let cases = r#"
        {"dryRun": true, "limit": "3"} -> there is no argument `dryRun`; did you mean `dry_run`? | the argument `query` is missing | `/limit`: expected an integer, got "3"
        {"query": "x", "zebra": 1} -> there is no argument `zebra`; leave it out
        [] -> the arguments are not a JSON object
        {"query": "x", "query": "y"} -> the key "query" is given twice; give it once
    "#;
    says(&tool, cases);
}

#[test]
fn an_argument_of_a_closed_schema_is_refused_once() {
    let closed = SEARCH.replace(
        r#""required""#,
        r#""additionalProperties": false, "required""#,
    );
    let tool = checked(&closed);
    let case = r#"{"query": "x", "dryRun": true} -> there is no argument `dryRun`; did you mean `dry_run`?"#;
    says(&tool, case);
}

/// Verdicts are those of the schema where it closes a part that another part names.
#[test]
fn an_argument_that_one_part_names_and_another_refuses_is_refused() {
    let tool = r#"{"name": "x", "inputSchema": {"properties": {"a": {}}, "allOf": [
        {"properties": {"b": {}}, "additionalProperties": false}
    ]}}"#;
    let tool = checked(tool);
    let cases = r#"
        {"a": 1} -> expected no property `a`, got an object of 1 property
        {"b": 1} ->
    "#;
    says(&tool, cases);
}

#[test]
fn a_schema_that_takes_others_is_asked_alone() {
    let open = SEARCH.replace(
        r#""required""#,
        r#""additionalProperties": {"type": "integer"}, "required""#,
    );
    let tool = checked(&open);
    let cases = r#"
        {"query": "x", "dryRun": 1} ->
        {"query": "x", "dryRun": true} -> `/dryRun`: expected an integer, got true
    "#;
    says(&tool, cases);
}

#[test]
fn without_types_a_text_may_spell_a_scalar() {
    let tool = prepared(SEARCH, &ToolOverride::default(), ArgumentCheck::TypesOff);
    let cases = r#"
        {"query": "x", "limit": "3", "dry_run": "True"} ->
        {"query": "x", "limit": "30"} -> `/limit`: expected at most 10, got 30
        {"query": "x", "limit": "many"} -> `/limit`: expected an integer, got "many"
        {"query": 3, "dry_run": [true]} -> `/query`: expected a string, got 3 | `/dry_run`: expected a boolean, got an array of 1 element
    "#;
    says(&tool, cases);
}

#[test]
fn without_a_check_everything_passes() {
    let tool = prepared(SEARCH, &ToolOverride::default(), ArgumentCheck::Off);
    assert!(tool.forwards_arguments_unchanged());
    says(&tool, r#"{"dryRun": true} ->"#);
    assert_eq!(tool.schema_for_errors(&[]), None);
}

#[test]
fn a_schema_that_cannot_be_compiled_is_not_checked_and_says_why() {
    for (schema, why) in [
        (
            r#"{"$schema": "https://example.com/mine", "properties": {"a": {"type": "string"}}}"#,
            "unknown draft",
        ),
        (
            r#"{"properties": {"a": {"$ref": "https://example.com/a.json"}}}"#,
            "example.com",
        ),
        (r#"{"properties": {"a": {"type": "strings"}}}"#, "strings"),
    ] {
        let definition = format!(r#"{{"name": "x", "inputSchema": {schema}}}"#);
        let tool = checked(&definition);
        let reason = tool.unchecked_reason().unwrap();
        assert!(reason.contains(why), "{reason}");
        says(&tool, r#"{"a": 1, "b": 2} ->"#);
    }
    assert_eq!(checked(SEARCH).unchecked_reason(), None);
}

#[test]
fn twenty_errors_are_named_and_the_others_counted() {
    let tool = checked(SEARCH);
    let given: Vec<_> = (0..30).map(|at| format!(r#""argument{at}": 1"#)).collect();
    let errors = tool
        .arguments(&format!("{{{}}}", given.join(",")))
        .unwrap_err();
    assert_eq!(errors.len(), 21);
    assert_eq!(errors[20].to_string(), "and 11 more");
}

fn renamed() -> ToolOverride {
    let mut change = ToolOverride::default();
    let rename = default_with::<ArgumentOverride>(|it| it.name = Some("text".into()));
    change.arguments.insert("query".into(), rename);
    let fix = default_with::<ArgumentOverride>(|it| it.fixed = Some(Json::Bool(true)));
    change.arguments.insert("dry_run".into(), fix);
    change
}

#[test]
fn errors_and_schemas_have_the_names_of_the_view() {
    let tool = prepared(SEARCH, &renamed(), ArgumentCheck::On);
    let cases = r#"
        {} -> the argument `text` is missing
        {"query": "x"} -> there is no argument `query`; did you mean `text`?
        {"text": 1} -> `/text`: expected a string, got 1
    "#;
    says(&tool, cases);
    let errors = tool.arguments(r#"{"text": "x", "dryRun": 1}"#).unwrap_err();
    let unknown = "there is no argument `dryRun`; leave it out";
    assert_eq!(errors[0].to_string(), unknown);
    let expected = r#"{"type":"object","properties":{"text":{"type":"string"},"limit":{"type":"integer","maximum":10},"since":{"type":"string","format":"date"}},"required":["text"]}"#;
    assert_eq!(tool.schema_for_errors(&[]).as_deref(), Some(expected));
    assert_eq!(
        tool.describe(SEARCH).unwrap(),
        format!(r#"{{"name":"search","description":"Finds. Slowly.","inputSchema":{expected}}}"#)
    );
    let listed = tool.json().unwrap();
    let properties = r#""properties":{"text":{"type":"string"},"limit":{"type":"integer"},"since":{"type":"string"}}"#;
    assert!(listed.contains(properties), "{listed}");
}

#[test]
fn the_answer_to_errors_has_a_short_schema_whole_and_the_wrong_parts_of_a_long_one() {
    let many: Vec<_> = (0..400)
        .map(|at| format!(r#""a{at}": {{"type": "string", "maxLength": {at}}}"#))
        .collect();
    let long = format!(
        r#"{{"name": "x", "inputSchema": {{"properties": {{{}}}}}}}"#,
        many.join(",")
    );
    let tool = checked(&long);
    let errors = tool
        .arguments(r#"{"a1": "long", "a2": 2, "a3": "x"}"#)
        .unwrap_err();
    assert_eq!(
        tool.schema_for_errors(&errors).as_deref(),
        Some(
            r#"{"type":"object","properties":{"a1":{"type":"string","maxLength":1},"a2":{"type":"string","maxLength":2}}}"#
        )
    );
    let errors = tool.arguments(r#"{"zebra": 1}"#).unwrap_err();
    assert_eq!(tool.schema_for_errors(&errors), None);
}

#[test]
fn what_nobody_sees_is_escaped_in_a_description() {
    let tool = SEARCH.replace("Slowly", "Slo\u{200b}wly\u{e0041}");
    let prepared = checked(&tool);
    let described = prepared.describe(&tool).unwrap();
    let escaped = r"Slo\u200bwly\udb40\udc41.";
    assert!(described.contains(escaped), "{described}");
}

#[test]
fn a_bare_list_has_the_names_in_the_description() {
    let style = default_with::<Style>(|it| it.schema = SchemaStyle::OnDemandBare);
    let (tool, _) = PreparedTool::new(SEARCH, &renamed(), style).unwrap();
    assert_eq!(
        tool.json(),
        Some(
            r#"{"name":"search","description":"Finds. Slowly. Arguments: text, limit, since.","inputSchema":{"type":"object","properties":{},"additionalProperties":true}}"#
        )
    );
}

/// Objects that `serde_json` by itself reads as the value in their text.
fn objects_read_as(text: &str) -> [String; 4] {
    ["RawValue", "Number"]
        .map(|kind| {
            [
                format!(r#"{{"$serde_json::private::{kind}": "{text}"}}"#),
                format!(r#"{{"\u0024serde_json::private::{kind}": "{text}"}}"#),
            ]
        })
        .concat()
        .try_into()
        .unwrap()
}

/// The parser of the gateway has no keys of its own: the server reads these as objects.
#[test]
fn an_object_does_not_pass_as_the_value_in_its_text() {
    for check in [ArgumentCheck::On, ArgumentCheck::TypesOff] {
        let tool = prepared(SEARCH, &ToolOverride::default(), check);
        for object in objects_read_as("3") {
            let cases = format!(
                r#"
                {{"query": "x", "limit": {object}}} -> `/limit`: expected an integer, got an object of 1 property
                {{"query": {{"a": 1, "a": {object}}}}} -> the key "a" is given twice; give it once
            "#
            );
            says(&tool, &cases);
        }
        for object in objects_read_as(r#"{\"query\": \"x\"}"#) {
            let name = "$serde_json::private::";
            let errors = tool.arguments(&object).unwrap_err();
            let ArgumentError::UnknownArgument { name: unknown, .. } = &errors[0] else {
                panic!("{errors:?}");
            };
            assert!(unknown.starts_with(name), "{errors:?}");
            assert_eq!(errors[1].to_string(), "the argument `query` is missing");
        }
    }
}

#[test]
fn an_object_inside_of_an_argument_does_not_pass_as_the_value_in_its_text() {
    let nested = r#"{"name": "add", "inputSchema": {"type": "object", "properties": {
        "all": {"type": "array", "items": {"type": "object", "properties": {"count": {"type": "integer"}}}}
    }}}"#;
    let tool = checked(nested);
    for object in objects_read_as("3") {
        let cases = format!(
            r#"
            {{"all": [{{"count": 1}}, {{"count": {object}}}]}} -> `/all/1/count`: expected an integer, got an object of 1 property
            {{"all": [{{"count": 1, "count": {object}}}]}} -> the key "count" is given twice; give it once
        "#
        );
        says(&tool, &cases);
    }
    for object in objects_read_as("[]") {
        let case = format!(
            r#"{{"all": {object}}} -> `/all`: expected an array, got an object of 1 property"#
        );
        says(&tool, &case);
    }
}

/// The cost of a schema is computed for the schema that is compiled.
#[test]
fn a_schema_is_compiled_as_it_is_written() {
    let schema = r#"{"name": "add", "inputSchema": {"type": "object", "properties": {
        "a": {"$serde_json::private::RawValue": "{\"type\": \"integer\"}"}
    }}}"#;
    let tool = checked(schema);
    says(&tool, r#"{"a": "x"} ->"#);
}

/// What the view sends besides what was given is checked as well.
#[test]
fn a_value_that_the_view_adds_and_the_server_does_not_take_is_refused() {
    let closed = SEARCH.replace(
        r#""required""#,
        r#""additionalProperties": false, "required""#,
    );
    let fix = default_with::<ArgumentOverride>(|it| it.fixed = Some(Json::Bool(true)));
    let change =
        default_with::<ToolOverride>(|it| it.arguments = [("owner".to_owned(), fix)].into());
    let style = default_with::<Style>(|it| it.check = ArgumentCheck::On);
    let (tool, _) = PreparedTool::new(&closed, &change, style).unwrap();
    let case = r#"{"query": "x"} -> the server does not accept a value that is fixed here; only the operator can change it"#;
    says(&tool, case);
}

/// What models send whose schemas list every argument as required, as those of OpenAI's strict mode do.
#[test]
fn a_null_counts_as_left_out_where_the_schema_rejects_it() {
    let definition = r##"{"name": "plan", "inputSchema": {"type": "object", "properties": {
        "to": {"type": "string"}, "via": {"$ref": "#/$defs/places"}, "mode": {"type": "string", "enum": ["foot", "car"]},
        "note": {"type": ["string", "null"]}, "at": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "stops": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "wait": {"type": "integer"}}, "required": ["name"]}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}}
    }, "required": ["to", "note"], "$defs": {"places": {"type": "array", "items": {"type": "string"}}}}}"##;
    for check in [ArgumentCheck::On, ArgumentCheck::TypesOff] {
        let tool = prepared(definition, &ToolOverride::default(), check);
        let arguments = r#"{"to": "Bern", "note": null, "via": null, "mode" : null, "at": null, "stops": [{"name": "a", "wait": null}]}"#;
        let cases = format!(
            r#"
            {arguments} ->
            {{"to": null, "note": null, "mode": "ship"}} -> the argument `to` is missing | `/mode`: expected one of "foot", "car", got "ship"
            {{"to": "Bern"}} -> the argument `note` is missing
            {{"to": "Bern", "note": null, "via": [null], "labels": {{"a": null}}}} -> `/via/0`: expected a string, got null | `/labels/a`: expected a string, got null
            {{"to": "Bern", "note": null, "stops": [{{"name": null}}]}} -> `/stops/0`: expected the property "name", got nothing
            {{"to": "Bern", "note": null, "from": null}} -> there is no argument `from`; leave it out
        "#
        );
        says(&tool, &cases);
    }
}

#[test]
fn arguments_that_parsers_read_in_different_ways_are_refused() {
    let definition = r#"{"name": "put", "inputSchema": {"properties": {
        "n": {"type": "number", "maximum": 10}, "o": {"properties": {"x": {"type": "integer"}}}
    }}}"#;
    for check in [ArgumentCheck::On, ArgumentCheck::TypesOff] {
        let tool = prepared(definition, &ToolOverride::default(), check);
        let cases = r#"
            {"n": 5, "o": {"x": "q", "x": 1}} -> the key "x" is given twice; give it once
            {"n": 5, "o": {"y": [{"a": {"k": 1, "\u006b": 1}}]}} -> the key "k" is given twice; give it once
        "#;
        says(&tool, cases);
        let beyond = "expected a number that 64-bit floating point can hold";
        let cases = format!(
            r#"
            {{"n": 1e400}} -> `/n`: {beyond}, got 1e400
            {{"o": {{"a/b": [1, -1E+999]}}, "n": 99}} -> `/o/a~1b/1`: {beyond}, got -1E+999
            {{"n": 1e-400, "o": {{"y": 123456789012345678901234567890}}}} ->
        "#
        );
        says(&tool, &cases);
        let [error] = &tool.arguments(r#"{"o": "\ud800"}"#).unwrap_err()[..] else {
            panic!("one error");
        };
        let (error, start) = (
            error.to_string(),
            "expected JSON that every parser reads alike, got ",
        );
        assert!(error.starts_with(start), "{error}");
    }
}
