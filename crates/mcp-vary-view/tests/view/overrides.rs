//! Overrides of tools, prompts and resources: what is listed, what a call becomes, what is a mistake.

use std::collections::BTreeMap;

use mcp_vary::json::Json;
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_view::{
    ArgumentOverride, Description, Dialect, PreparedPrompt, PreparedTool, PromptOverride,
    ResourceOverride, ResultFields, SchemaStyle, Style, ToolOverride, ViewDiagnostic,
    unknown_items,
};
use serde_json::{Map, Value, json};

use crate::trip::Trip;
use crate::{LISTS, tools, value};
use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::generate::values::Values;

/// The overrides of arguments in `{"q": {"name": "query"}, "n": {"fixed": 7}}`.
fn arguments(written: &Value) -> BTreeMap<String, ArgumentOverride> {
    let json = |value: &Value| Json::parse(&value.to_string()).unwrap().into_owned();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let one = |(name, reported): (&String, &Value)| {
        let is = |key: &str| reported.get(key) == Some(&Value::Bool(true));
        let change = ArgumentOverride {
            name: text(reported.get("name")),
            description: text(reported.get("description")),
            hidden: is("hidden"),
            fixed: reported.get("fixed").map(json),
            default: reported.get("default").map(json),
            required: is("required"),
        };
        (name.clone(), change)
    };
    written.as_object().unwrap().iter().map(one).collect()
}

fn tool(schema: &str, overrides: &Value, style: Style) -> (PreparedTool, Vec<ViewDiagnostic>) {
    let definition = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    let change = default_with::<ToolOverride>(|it| it.arguments = arguments(overrides));
    PreparedTool::new(&definition, &change, style).unwrap()
}

/// Mistakes as sentences, each of which names its key.
#[track_caller]
fn told(mistakes: &[ViewDiagnostic]) -> String {
    for mistake in mistakes {
        let named = format!("`{}", mistake.key());
        let is_named = named.len() > 1 && mistake.to_string().contains(&named);
        assert!(is_named, "{mistake:?}");
    }
    lines(mistakes)
}

fn lines<T: ToString>(all: &[T]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join("\n")
}

/// Asserts what is listed as the input schema, and what becomes of calls, a line each: the arguments, an arrow, and the
/// arguments that are sent, or the faults between bars.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is written in place")]
fn becomes(schema: &str, overrides: Value, listed: &str, calls: &str) {
    let (tool, mistakes) = tool(schema, &overrides, Style::default());
    assert_eq!(mistakes, []);
    let tool_json = tool.json().map_or(Value::Null, value);
    assert_eq!(tool_json["inputSchema"], value(listed));
    for line in calls.trim().lines() {
        let (given, expected) = line.trim().split_once(" -> ").unwrap();
        let sent = match tool.arguments(given) {
            Ok(sent) => sent.into_owned(),
            Err(faults) => format!("error: {}", lines(&faults).replace('\n', " | ")),
        };
        assert_eq!(sent, expected, "of {given}");
    }
}

/// SV-11: arguments renamed, hidden, fixed, defaulted and required, and the way back.
#[test]
fn arguments_are_listed_as_the_view_says_and_arrive_as_the_server_does() {
    let schema = r#"{"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "string"}}, "required": ["q", "o"]}"#;
    becomes(
        schema,
        json!({"q": {"name": "query", "description": "What"}}),
        r#"{"type": "object", "properties": {"query": {"type": "string", "description": "What"}, "n": {"type": "integer"}, "o": {"type": "string"}}, "required": ["query", "o"]}"#,
        r#"
            {"query": "\u00e9", "n": 1.0} -> {"q":"\u00e9","n":1.0}
            { "n": 1 } -> { "n": 1 }
            {"q": "x"} -> error: there is no argument `q`; did you mean `query`?
        "#,
    );
    becomes(
        schema,
        json!({"o": {"fixed": "acme"}, "n": {"hidden": true}}),
        r#"{"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}"#,
        r#"
            {"q": "x"} -> {"q":"x","o":"acme"}
            {"owner": "x", "number": 1} -> {"owner":"x","number":1,"o":"acme"}
            {"o": "x"} -> error: there is no argument `o`; leave it out
            [] -> error: the arguments are not a JSON object
            {"q": 1, "q": 2} -> error: the key "q" is given twice; give it once
        "#,
    );
    becomes(
        schema,
        json!({"q": {"default": "*"}, "n": {"required": true}, "o": {"default": "me", "hidden": true}}),
        r#"{"type": "object", "properties": {"q": {"type": "string", "default": "*"}, "n": {"type": "integer"}}, "required": ["n"]}"#,
        r#"
            {"n": 1} -> {"n":1,"o":"me","q":"*"}
            {"n": 1, "q": null} -> {"n":1,"q":null,"o":"me"}
            {"q": null} -> error: the argument `n` is missing
        "#,
    );
}

/// SV-11: what the view requires is asked for by the view's name, and before the server hears of it.
#[test]
fn what_a_view_requires_every_call_must_give() {
    becomes(
        r#"{"properties": {"a": {}, "b": {}}}"#,
        json!({"a": {"name": "x", "required": true}, "b": {"required": true}}),
        r#"{"properties": {"x": {}, "b": {}}, "required": ["x", "b"]}"#,
        r#"
            {} -> error: the argument `x` is missing | the argument `b` is missing
            {"b":null} -> error: the argument `x` is missing
            {"y":1,"x":1,"c":1} -> error: the argument `b` is missing
            {"x":1,"b":null} -> {"a":1,"b":null}
        "#,
    );
}

#[test]
fn two_arguments_can_change_names() {
    becomes(
        r#"{"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}"#,
        json!({"a": {"name": "b"}, "b": {"name": "a"}}),
        r#"{"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["b"]}"#,
        r#"{"a":1,"b":"x"} -> {"b":1,"a":"x"}"#,
    );
}

#[test]
fn a_name_that_is_taken_is_nobody_elses() {
    let schema = r#"{"properties": {"a": {}, "b": {}, "c": {}}}"#;
    let overrides = json!({"a": {"name": "b"}, "c": {"name": "a"}});
    let (tool, mistakes) = tool(schema, &overrides, Style::default());
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert_eq!(tool.json(), None);
    assert!(tool.forwards_arguments_unchanged());
}

#[test]
fn conditions_and_references_speak_of_arguments_as_the_view_does() {
    becomes(
        r##"{"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}, "c": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}], "dependentRequired": {"a": ["b"]}}"##,
        json!({"a": {"name": "x"}}),
        r##"{"properties": {"x": {"type": "string"}, "b": {"$ref": "#/properties/x"}, "c": {}}, "anyOf": [{"required": ["x"]}, {"required": ["b", "c"]}], "dependentRequired": {"x": ["b"]}}"##,
        "",
    );
    // Of two branches that say the same both would hold.
    becomes(
        r##"{"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "if": {"required": ["a"]}, "then": {"required": ["b"]}}"##,
        json!({"a": {"hidden": true}}),
        r##"{"properties": {"b": {"$ref": "#/$defs/argument a"}}, "anyOf": [{"required": []}, {"required": ["b"]}], "$defs": {"argument a": {"type": "string"}}}"##,
        "",
    );
}

/// SV-11: a condition on what is listed stays a condition, in the view's names.
#[test]
fn conditions_on_listed_arguments_hold_as_they_did() {
    becomes(
        r#"{"properties": {"a": {}, "b": {}, "c": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "if": {"required": ["a"]}, "then": {"not": {"required": ["c"]}}}"#,
        json!({"a": {"name": "x"}}),
        r#"{"properties": {"x": {}, "b": {}, "c": {}}, "oneOf": [{"required": ["x"]}, {"required": ["b"]}], "if": {"required": ["x"]}, "then": {"not": {"required": ["c"]}}}"#,
        "",
    );
    becomes(
        r#"{"properties": {"a": {}, "b": {}, "c": {}}, "oneOf": [{"required": ["b"]}, {"required": ["c"]}], "if": {"required": ["b"]}, "then": {"required": ["c"]}}"#,
        json!({"a": {"hidden": true}}),
        r#"{"properties": {"b": {}, "c": {}}, "oneOf": [{"required": ["b"]}, {"required": ["c"]}], "if": {"required": ["b"]}, "then": {"required": ["c"]}}"#,
        "",
    );
    // A branch speaks of the same object, the schema of other members of others.
    becomes(
        r#"{"properties": {"a": {}, "b": {}, "c": {}}, "anyOf": [{"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["a", "b", "c"]}], "additionalProperties": {"properties": {"a": {}}, "required": ["a"]}}"#,
        json!({"a": {"name": "x"}, "b": {"hidden": true}}),
        r#"{"properties": {"x": {}, "c": {}}, "anyOf": [{"properties": {"x": {"const": 1}, "c": {"const": 3}}, "required": ["x", "c"]}], "additionalProperties": {"properties": {"a": {}}, "required": ["a"]}}"#,
        "",
    );
}

/// SV-11: each name is changed once, so that two can be exchanged wherever they stand.
#[test]
fn two_arguments_can_change_names_in_conditions() {
    becomes(
        r#"{"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"], "anyOf": [{"required": ["a"]}]}"#,
        json!({"a": {"name": "b"}, "b": {"name": "a"}}),
        r#"{"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["b"], "anyOf": [{"required": ["b"]}]}"#,
        r#"{"b":"x","a":1} -> {"a":"x","b":1}"#,
    );
}

/// SV-11: references are followed to where an argument went; what only looks like one stays.
#[test]
fn references_lead_to_where_an_argument_went() {
    becomes(
        r##"{"properties": {"a": {"type": "string"}, "b": {"anyOf": [{"$ref": "#/properties/a"}, {"const": "#/properties/a"}]}}}"##,
        json!({"a": {"name": "x"}}),
        r##"{"properties": {"x": {"type": "string"}, "b": {"anyOf": [{"$ref": "#/properties/x"}, {"const": "#/properties/a"}]}}}"##,
        "",
    );
    becomes(
        r##"{"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#/$defs/C"}}, "$defs": {"C": {"minimum": 1}}}"##,
        json!({"a": {"hidden": true}}),
        r##"{"properties": {"b": {"$ref": "#/$defs/argument a"}, "c": {"$ref": "#/$defs/C"}}, "$defs": {"C": {"minimum": 1}, "argument a": {"type": "string"}}}"##,
        "",
    );
}

/// SV-11: what a view hides nobody can give, though nothing else is changed.
#[test]
fn a_hidden_argument_cannot_be_given() {
    becomes(
        r#"{"properties": {"q": {}, "n": {}}}"#,
        json!({"n": {"hidden": true}}),
        r#"{"properties": {"q": {}}}"#,
        r#"
            {"q": 1} -> {"q": 1}
            {"n": 1} -> error: there is no argument `n`; leave it out
        "#,
    );
    let described = json!({"n": {"description": "How many"}});
    let (tool, _) = tool(r#"{"properties": {"n": {}}}"#, &described, Style::default());
    assert!(tool.forwards_arguments_unchanged());
}

/// SV-11: what a view fixes or hides is so where the server lists no such argument, or no longer.
#[test]
fn a_limit_holds_for_an_argument_that_the_server_does_not_list() {
    #[track_caller]
    fn limits(schema: &str) {
        let overrides = json!({
            "owner": {"fixed": "acme"}, "n": {"hidden": true}, "o": {"hidden": true, "default": 1},
        });
        let (tool, mistakes) = tool(schema, &overrides, Style::default());
        let told = told(&mistakes);
        assert_eq!(told.matches("is not an argument").count(), 3, "{told}");
        assert!(tool.json().is_none_or(|json| !json.contains("owner")));
        assert!(!tool.forwards_arguments_unchanged());
        let sent = tool.arguments(r#"{"q": 1}"#).unwrap();
        assert_eq!(sent, r#"{"q":1,"o":1,"owner":"acme"}"#);
        for (given, name) in [
            (r#"{"owner": "evil"}"#, "owner"),
            (r#"{"\u006fwner": "evil"}"#, "owner"),
            (r#"{"n": 1}"#, "n"),
            (r#"{"o": 2}"#, "o"),
        ] {
            let faults = tool.arguments(given).unwrap_err();
            let expected = format!("there is no argument `{name}`; leave it out");
            assert_eq!(lines(&faults), expected, "of {given}");
            assert_eq!(tool.upstream_argument(name), None);
        }
    }
    limits(r#"{"type": "object"}"#);
    limits(r#"{"type": "object", "additionalProperties": true}"#);
    limits(
        r#"{"properties": {"query": {}}, "anyOf": [{"required": ["owner"]}, {"required": ["query"]}]}"#,
    );
}

/// SV-11: the same of a prompt.
#[test]
fn a_limit_holds_for_an_argument_that_a_prompt_does_not_list() {
    let change = default_with::<PromptOverride>(|it| {
        it.arguments = arguments(&json!({"owner": {"fixed": "acme"}}))
    });
    let (prompt, mistakes) =
        PreparedPrompt::new(r#"{"name": "p"}"#, &change, Style::default()).unwrap();
    assert_eq!(mistakes.len(), 1);
    assert_eq!(prompt.arguments("{}").unwrap(), r#"{"owner":"acme"}"#);
    assert!(prompt.arguments(r#"{"owner": "evil"}"#).is_err());
}

/// SV-11: what a view fixes is in no log.
#[test]
fn a_given_value_is_not_printed() {
    let overrides =
        arguments(&json!({"q": {"fixed": "s3cret"}, "n": {"default": "s3cret", "name": "m"}}));
    let printed = format!("{overrides:?}");
    assert!(!printed.contains("s3cret"), "{printed}");
    for kind in ["fixed: Some", "default: Some"] {
        assert!(printed.contains(kind), "{printed}");
    }
}

/// SV-11: names, descriptions, annotations and `outputSchema` are the view's.
#[test]
fn a_tool_is_named_described_and_annotated_as_the_view_says() {
    #[track_caller]
    fn listed(change: &ToolOverride, style: Style, expected: &str) {
        let definition = r#"{"name": "read", "description": "Reads. Slowly.", "annotations": {"readOnlyHint": true, "x": 1.0}, "inputSchema": {"type": "object",  "description": "In"}, "outputSchema": {"type": "object"}, "_meta": {"a":  1}}"#;
        let (tool, mistakes) = PreparedTool::new(definition, change, style).unwrap();
        assert_eq!(mistakes, []);
        assert_eq!(tool.json(), Some(expected));
        let name = change.name.as_deref().unwrap_or("read");
        assert_eq!((tool.upstream_name(), tool.name()), ("read", name));
        assert!(tool.forwards_arguments_unchanged());
    }
    let plain = ToolOverride::default();
    let annotations = [("openWorldHint", Json::Bool(false)), ("x", Json::Null)];
    let change = ToolOverride {
        name: Some("lire".into()),
        title: Some("Lire".into()),
        description: Some("Lit. Lentement.".into()),
        annotations: annotations
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        ..ToolOverride::default()
    };
    let short = default_with::<Style>(|it| it.description = Description::FirstSentence);
    listed(
        &change,
        short,
        r#"{"name":"lire","description":"Lit. Lentement.","annotations":{"readOnlyHint":true,"x":null,"openWorldHint":false},"inputSchema":{"type": "object",  "description": "In"},"outputSchema":{"type": "object"},"_meta":{"a":  1},"title":"Lire"}"#,
    );
    listed(
        &plain,
        short,
        r#"{"name":"read","description":"Reads.","annotations":{"readOnlyHint": true, "x": 1.0},"inputSchema":{"type": "object",  "description": "In"},"outputSchema":{"type": "object"},"_meta":{"a":  1}}"#,
    );
    let compact = Style {
        schema: SchemaStyle::Compact,
        result: ResultFields::Content,
        ..Style::default()
    };
    listed(
        &plain,
        compact,
        r#"{"name":"read","description":"Reads. Slowly.","annotations":{"readOnlyHint": true, "x": 1.0},"inputSchema":{"type":"object"},"_meta":{"a":  1}}"#,
    );
}

/// SV-11: prompts and their arguments, by which they are also completed.
#[test]
fn a_prompt_is_listed_and_asked_for_as_the_view_says() {
    let definition = r#"{"name": "plan", "description": "Plans. Well.", "arguments": [{"name": "for", "description": "Who. Whom.", "required": true}, {"name": "by"}, {"name": "in", "title":  "In"}, 7]}"#;
    let overrides = json!({"for": {"name": "whom", "default": "all"}, "by": {"fixed": "me"}});
    let change = PromptOverride {
        name: Some("design".into()),
        arguments: arguments(&overrides),
        ..PromptOverride::default()
    };
    let style = default_with::<Style>(|it| it.description = Description::FirstSentence);
    let (prompt, mistakes) = PreparedPrompt::new(definition, &change, style).unwrap();
    assert_eq!(mistakes, []);
    let listed = r#"{"name":"design","description":"Plans.","arguments":[{"name":"whom","description":"Who. Default: \"all\"."},{"name": "in", "title":  "In"},7]}"#;
    assert_eq!(prompt.json(), Some(listed));
    let sent = |given| prompt.arguments(given).map(|sent| sent.into_owned());
    let us = sent(r#"{"whom":"us"}"#).unwrap();
    assert_eq!(us, r#"{"for":"us","by":"me"}"#);
    assert_eq!(sent("{}").unwrap(), r#"{"by":"me","for":"all"}"#);
    assert!(sent(r#"{"by":"you"}"#).is_err());
    assert_eq!((prompt.upstream_name(), prompt.name()), ("plan", "design"));
    assert_eq!(prompt.renamed().collect::<Vec<_>>(), [("for", "whom")]);
    assert_eq!(prompt.upstream_argument("whom"), Some("for"));
    assert_eq!(prompt.upstream_argument("for"), None);
    assert_eq!(prompt.upstream_argument("by"), None);
    assert_eq!(prompt.upstream_argument("in"), Some("in"));

    let change = default_with::<PromptOverride>(|it| {
        it.arguments = arguments(&json!({"by": {"hidden": true}, "in": {"required": true}}))
    });
    let (prompt, mistakes) = PreparedPrompt::new(definition, &change, Style::default()).unwrap();
    assert_eq!(mistakes, []);
    let listed = json!([{"name": "for", "description": "Who. Whom.", "required": true}, {"name": "in", "title": "In", "required": true}, 7]);
    assert_eq!(value(prompt.json().unwrap())["arguments"], listed);

    let plain = PromptOverride::default();
    let (prompt, _) = PreparedPrompt::new(definition, &plain, Style::default()).unwrap();
    assert_eq!(prompt.json(), None);
}

/// SV-11: a resource is named, described, typed and found as the view says.
#[test]
fn a_resource_is_listed_as_the_view_says() {
    let change = ResourceOverride {
        name: Some("guide".into()),
        annotations: [("priority".to_owned(), Json::parse("1.0").unwrap())].into(),
        ..ResourceOverride::default()
    };
    let resource = r#"{"uri": "docs://a", "name": "a", "size": 1e3}"#;
    let listed = |change: &ResourceOverride, resource| {
        let listed = change.prepare(resource, Style::default()).unwrap();
        listed.unwrap_or_else(|| "as it was".into())
    };
    assert_eq!(
        listed(&change, resource),
        r#"{"uri":"docs://a","name":"guide","size":1e3,"annotations":{"priority":1.0}}"#
    );
    let change = ResourceOverride {
        uri: Some("guide:{+path}".into()),
        mime_type: Some("text/markdown".into()),
        ..ResourceOverride::default()
    };
    let template = r#"{"uriTemplate":"docs://{+path}","mimeType":"text/plain"}"#;
    let expected = r#"{"uriTemplate":"guide:{+path}","mimeType":"text/markdown"}"#;
    assert_eq!(listed(&change, template), expected);
    let same = r#"{"mimeType":"text/markdown", "uri":"guide:{+path}"}"#;
    assert_eq!(listed(&change, same), "as it was");
}

/// SV-11: with a dialect, overrides come first, and faults are told in the view's names.
#[test]
fn a_dialect_is_about_the_arguments_of_the_view() {
    let schema = r#"{"type": "object", "properties": {"q": {"type": "string", "maxLength": 3}, "n": {"type": "integer", "default": 5}, "f": {"type": "object"}}, "required": ["q"]}"#;
    let style = default_with::<Style>(|it| it.dialect = Some(Dialect::OpenaiStrict));
    let overrides = json!({"q": {"name": "query"}, "n": {"default": 7}});
    let (tool, mistakes) = tool(schema, &overrides, style);
    assert_eq!(mistakes, []);
    let listed = value(tool.json().unwrap());
    let required = &listed["inputSchema"]["required"];
    assert_eq!(*required, json!(["query", "n", "f"]));
    assert_eq!(tool.upstream_argument("query"), Some("q"));
    assert_eq!(tool.renamed().collect::<Vec<_>>(), [("q", "query")]);
    assert_eq!(tool.unchecked_reason(), None);
    assert_eq!(tool.upstream_argument("q"), None);
    assert_eq!(tool.upstream_argument("f"), Some("f"));
    let sent = tool.arguments(r#"{"query": "abc", "n": null, "f": "{\"a\": 1}"}"#);
    assert_eq!(sent.unwrap(), r#"{"q":"abc","f":{"a":1},"n":7}"#);
    let faults = tool.arguments(r#"{"query": "abcd", "n": 1, "f": null}"#);
    let expected = "`/query`: expected at most 3 characters, got \"abcd\"";
    assert_eq!(lines(&faults.unwrap_err()), expected);
}

/// SV-11: a schema that cannot be checked says why, and lets everything through.
#[test]
fn what_is_not_checked_says_why() {
    let style = default_with::<Style>(|it| it.dialect = Some(Dialect::Gemini));
    let endless = r##"{"type": "object", "properties": {"q": {"type": "string"}}, "allOf": [{"$ref": "#"}]}"##;
    let (tool, _) = tool(endless, &json!({}), style);
    let why = "it takes too long to check values against it";
    assert_eq!(tool.unchecked_reason(), Some(why));
    assert!(tool.arguments(r#"{"q": 1}"#).is_ok());
}

/// SV-11: what a view fixes is not told to who calls, nor in a mistake.
#[test]
fn what_is_fixed_stays_a_secret() {
    let schema = r#"{"type": "object", "properties": {"key": {"type": "string", "pattern": "^k"}, "n": {"type": "integer"}}}"#;
    let style = default_with::<Style>(|it| it.dialect = Some(Dialect::Gemini));
    let (tool, mistakes) = tool(schema, &json!({"key": {"fixed": "s3cret"}}), style);
    let mistake = "`tools.t.arguments.key.fixed` is not accepted by the server: expected a text that matches ^k; write a value that it accepts";
    assert_eq!(lines(&mistakes), mistake);
    let faults = lines(&tool.arguments(r#"{"n": 1}"#).unwrap_err());
    let refusal =
        "the server does not accept a value that is fixed here; only the operator can change it";
    assert_eq!(faults, refusal);
    assert!(!lines(&tool.arguments(r#"{"key": "x"}"#).unwrap_err()).contains("s3cret"));
    assert!(!format!("{tool:?}").contains("s3cret"));
}

/// SV-11: everything that is wrong with overrides is told at once, with the key and the fix.
#[test]
fn mistakes_are_told_at_once() {
    let schema = r#"{"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 9}, "sort": {}}, "required": ["query"]}"#;
    let overrides = json!({
        "querry": {"name": "q"},
        "query": {"hidden": true},
        "limit": {"fixed": 10, "default": 1, "name": "max"},
        "sort": {"default": 1, "required": true},
    });
    let (_, mistakes) = tool(schema, &overrides, Style::default());
    insta::assert_snapshot!(told(&mistakes), @r#"
    `tools.t.arguments.limit` has `fixed` and `default`; take out one of them
    `tools.t.arguments.limit` has `fixed` and `name`; take out one of them
    `tools.t.arguments.querry` is not an argument; did you mean `query`?
    `tools.t.arguments.query.hidden` hides an argument that the server requires; give it a `fixed` value or a `default`
    `tools.t.arguments.sort` has `default` and `required`; take out one of them
    `tools.t.arguments.limit.fixed` is not accepted by the server: expected at most 9; write a value that it accepts
    "#);
    let taken = json!({"sort": {"name": "query"}});
    let (_, mistakes) = tool(schema, &taken, Style::default());
    insta::assert_snapshot!(told(&mistakes), @"`tools.t.arguments.sort.name` is `query`, which is the name of another argument; choose another name, or rename or hide that one");

    let change = default_with::<ToolOverride>(|it| it.name = Some("a b".into()));
    let style = default_with::<Style>(|it| it.dialect = Some(Dialect::Gemini));
    let (_, mistakes) = PreparedTool::new(r#"{"name": "t"}"#, &change, style).unwrap();
    insta::assert_snapshot!(told(&mistakes), @"`tools.t.name` is not a valid name in the dialect `gemini`; write `a_b`");
    let unknown = unknown_items("tools", ["serach_all", "x.y"], &["search_all", "read"]);
    insta::assert_snapshot!(told(&unknown), @r#"
    `tools.serach_all` names no tool that a server has; did you mean `search_all`?
    `tools.x.y` names no tool that a server has; take it out
    "#);
    let taken = unknown_items(
        "tools",
        ["tickets_close_issue", "tickets_create_issue"],
        &["tickets_create_issue"],
    );
    insta::assert_snapshot!(told(&taken), @"`tools.tickets_close_issue` names no tool that a server has; take it out");

    let prompt = r#"{"name": "p", "arguments": [{"name": "n"}]}"#;
    let change =
        default_with::<PromptOverride>(|it| it.arguments = arguments(&json!({"n": {"fixed": 1}})));
    let (_, mistakes) = PreparedPrompt::new(prompt, &change, Style::default()).unwrap();
    insta::assert_snapshot!(told(&mistakes), @"`prompts.p.arguments.n.fixed` is not accepted by the server: the arguments of prompts are strings; put it in quotation marks; write a value that it accepts");
}

/// SV-11: a view with a dialect and other names for arguments takes what the server takes, and it arrives unchanged.
#[test]
fn renamed_arguments_of_every_recorded_list_arrive_from_every_dialect() {
    let mut made = 0;
    for (seed, (name, _)) in (0..).zip(LISTS) {
        let mut random = Random(seed);
        for definition in tools(name) {
            let original = value(&definition)["inputSchema"].clone();
            let none = Map::new();
            let properties = original["properties"].as_object().unwrap_or(&none);
            let renamed = properties.keys().filter(|_| random.chance(50));
            let names = renamed.map(|name| (name.clone(), format!("{name}_here")));
            let names: BTreeMap<String, String> = names.collect();
            for dialect in Dialect::ALL {
                let trip = Trip::with_names(&definition, dialect, names.clone()).unwrap();
                let mut values = Values::new(&original, seed);
                made += (0..20).filter(|_| trip.makes(values.value())).count();
            }
        }
    }
    assert!(made > 2_000, "{made}");
}

/// SV-11: whichever arguments are renamed, what the view takes is what the server takes.
#[test]
fn renamed_arguments_of_every_recorded_list_arrive() {
    let mut calls = 0;
    for (seed, (name, _)) in (0..).zip(LISTS) {
        let mut random = Random(seed);
        for definition in tools(name) {
            let original = value(&definition)["inputSchema"].clone();
            let none = Map::new();
            let properties = original["properties"].as_object().unwrap_or(&none);
            let mut change = ToolOverride::default();
            for name in properties.keys().filter(|_| random.chance(50)) {
                let renamed = default_with::<ArgumentOverride>(|it| {
                    it.name = Some(format!("{name} \u{2603}"))
                });
                change.arguments.insert(name.clone(), renamed);
            }
            let (tool, mistakes) =
                PreparedTool::new(&definition, &change, Style::default()).unwrap();
            assert_eq!(mistakes, []);
            let listed = value(tool.json().unwrap_or(&definition))["inputSchema"].clone();
            let server = jsonschema::validator_for(&original).unwrap();
            let view = jsonschema::validator_for(&listed).unwrap();
            let mut values = Values::new(&listed, seed);
            for _ in 0..20 {
                let given = values.value();
                let given_text = given.to_string();
                // By chance, what the server calls an argument that has another name here.
                let Ok(sent) = tool.arguments(&given_text) else {
                    continue;
                };
                let taken = server.is_valid(&value(&sent));
                assert_eq!(view.is_valid(&given), taken, "{given} as {sent}");
                calls += 1;
            }
        }
    }
    assert!(calls > 2_000, "{calls}");
}
