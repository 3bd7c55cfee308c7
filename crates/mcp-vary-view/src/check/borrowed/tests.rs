use std::fs;
use std::path::Path;

use mcp_vary_testkit::generate::mutants::mutants;
use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::generate::schemas;
use mcp_vary_testkit::generate::values::Values;

use super::super::compile::{Format, has_too_many_values};
use super::super::{MAX_CHECKED_VALUES, SchemaCheck};
use super::*;

/// A schema as calls are checked against it, and as `jsonschema` checks its own representation of values.
struct Checks {
    check: SchemaCheck,
    plain: jsonschema::Validator,
}

impl Checks {
    /// `None` if values cannot be checked against the schema.
    fn new(schema: &str) -> Option<Self> {
        let check = SchemaCheck::new(schema).ok()?;
        let schema = to_value(schema).unwrap();
        let plain = jsonschema::options().offline().build(&schema).unwrap();
        Some(Self { check, plain })
    }

    /// Whether the schema accepts the arguments.
    #[track_caller]
    fn accept(&self, arguments: &str) -> bool {
        let accepts = self.check.accepts_arguments(arguments);
        let errors = self.check.errors(arguments);
        assert_eq!(accepts, errors.is_empty(), "{errors:?} in {arguments}");
        // Others are refused, or accepted, before they are validated.
        if let Some(value) = BorrowedValue::read(arguments)
            && value.depth() < self.check.effort.len()
            && !has_too_many_values(arguments)
        {
            let value = to_value(arguments).unwrap();
            assert_eq!(accepts, self.plain.is_valid(&value), "{arguments}");
            assert_eq!(accepts, self.check.accepts_value(&value), "{arguments}");
            assert_eq!(accepts, self.check.accepts(arguments), "{arguments}");
        }
        accepts
    }
}

#[track_caller]
fn accepts(schema: &str, arguments: &[&str]) {
    let checks = Checks::new(schema).unwrap();
    for arguments in arguments {
        assert!(checks.accept(arguments), "{arguments} under {schema}");
    }
}

#[track_caller]
fn refuses(schema: &str, arguments: &[&str]) {
    let checks = Checks::new(schema).unwrap();
    for arguments in arguments {
        assert!(!checks.accept(arguments), "{arguments} under {schema}");
    }
}

#[test]
fn every_type_is_the_type_that_it_is() {
    let values = ["null", "true", "7", "1.5", r#""a""#, "[7]", r#"{"a": 7}"#];
    let types = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    for (at, kind) in types.iter().enumerate() {
        let checks = Checks::new(&format!(r#"{{"type": "{kind}"}}"#)).unwrap();
        for (of, value) in values.iter().enumerate() {
            // An integer is a number.
            let is_of_type = at == of || (*kind == "number" && *value == "7");
            assert_eq!(checks.accept(value), is_of_type, "{value} as {kind}");
        }
    }
}

#[test]
fn numbers_are_compared_by_value() {
    let integer = r#"{"type": "integer"}"#;
    accepts(
        integer,
        &["1.0", "-0", "1e2", "18446744073709551615", "1e300"],
    );
    refuses(integer, &["1.5", "1e-1"]);
    accepts(r#"{"const": 1}"#, &["1", "1.0", "10e-1"]);
    refuses(r#"{"const": 1}"#, &["true", r#""1""#, "1.1"]);
    let unsigned = r#"{"maximum": 18446744073709551614}"#;
    accepts(unsigned, &["-9223372036854775808", "18446744073709551614"]);
    refuses(unsigned, &["18446744073709551615", "1e300"]);
    accepts(r#"{"multipleOf": 0.1}"#, &["0.3", "7"]);
    refuses(r#"{"multipleOf": 0.1}"#, &["0.35"]);
    refuses("true", &["1e400", "-1e400", r#"{"a": [1e400]}"#]);
    accepts("true", &["1e-400", "123456789012345678901234567890"]);
}

#[test]
fn an_object_is_an_object_whatever_its_keys() {
    for key in ["RawValue", "Number"] {
        let object = format!(r#"{{"$serde_json::private::{key}": "7"}}"#);
        let escaped = object.replace('$', r"\u0024");
        accepts(
            r#"{"minProperties": 1, "type": "object"}"#,
            &[&object, &escaped],
        );
        refuses(r#"{"type": "integer"}"#, &[&object, &escaped]);
        let nested = [&object, &escaped].map(|it| format!(r#"[{{"a": 1, "b": {it}}}]"#));
        let twice = [&object, &escaped].map(|it| format!(r#"[{{"b": {it}, "b": 1}}]"#));
        let schema = r#"{"items": {"properties": {"b": {"type": "integer"}}}}"#;
        refuses(schema, &[&nested[0], &nested[1], &twice[0], &twice[1]]);
        let constant = format!(r#"{{"const": {object}}}"#);
        accepts(&constant, &[&object, &escaped]);
        refuses(&constant, &["7"]);
    }
}

#[test]
fn texts_are_compared_as_what_they_spell() {
    accepts(r#"{"const": "é\n"}"#, &[r#""é\n""#, r#""\u00e9\u000a""#]);
    accepts(r#"{"maxLength": 2}"#, &[r#""東京""#, r#""\ud83d\ude00é""#]);
    refuses(r#"{"maxLength": 2}"#, &[r#""東京都""#]);
    let named = r#"{"properties": {"é": {"type": "string"}}, "additionalProperties": false}"#;
    accepts(named, &[r#"{"é": "a"}"#, r#"{"\u00e9": "a"}"#]);
    refuses(named, &[r#"{"\u00e9": 1}"#, r#"{"e": "a"}"#]);
    let names = r#"{"propertyNames": {"maxLength": 2, "pattern": "^[a-z]+$"}}"#;
    accepts(names, &[r#"{"ab": 1, "c": {"DEF": 2}}"#]);
    refuses(names, &[r#"{"abc": 1}"#, r#"{"\u0041": 1}"#]);
    // Parsers disagree about half of a character.
    refuses("true", &[r#""\ud800""#]);
}

#[test]
fn constants_are_compared_as_a_whole() {
    let schema = r#"{"enum": [null, {"a": [1, {"b": "c"}], "d": true}, [1, 2], "x"]}"#;
    let same = r#"{"d": true, "a": [1.0, {"b": "\u0063"}]}"#;
    accepts(schema, &["null", same, "[1, 2.0]", r#""x""#]);
    refuses(
        schema,
        &[
            "false",
            "[2, 1]",
            "[1]",
            r#"{"a": [1, {"b": "c"}]}"#,
            r#"{"a": [1, {"b": "d"}], "d": true}"#,
            r#"{"a": [1, {"b": "c"}], "e": true}"#,
            r#"{"a": [1, {"b": "c"}], "d": true, "e": 1}"#,
        ],
    );
    let unique = r#"{"uniqueItems": true}"#;
    accepts(unique, &["[1, true, \"1\", [1], {\"a\": 1}]"]);
    refuses(
        unique,
        &[r#"[{"a": 1, "b": [2]}, 3, {"b": [2.0], "a": 1}]"#],
    );
}

/// Members are found by comparison in a small object, and by their order in a large one.
#[test]
fn members_are_found_in_objects_of_all_sizes() {
    let member = |at: usize| format!(r#""m{}""#, (at * 7) % 40);
    for size in 1..40 {
        let names: Vec<String> = (0..size).map(member).collect();
        let values = |kind: &str| {
            let values: Vec<_> = names.iter().map(|it| format!("{it}: {kind}")).collect();
            format!("{{{}}}", values.join(", "))
        };
        let schema = format!(
            r#"{{"properties": {}, "required": [{}], "additionalProperties": false}}"#,
            values(r#"{"type": "integer"}"#),
            names.join(", ")
        );
        let all = values("1");
        accepts(&schema, &[&all]);
        let other = all.replace(&member(size - 1), r#""other""#);
        let of_other_type = all.replacen("1}", "\"1\"}", 1);
        refuses(&schema, &[&other, &of_other_type]);
        let constant = format!(r#"{{"const": {}}}"#, values("1.0"));
        accepts(&constant, &[&all]);
        refuses(&constant, &[&other]);
    }
}

#[test]
fn an_object_that_repeats_a_key_is_refused() {
    let many: Vec<_> = (0..29).map(|at| format!(r#""m{at}": 1"#)).collect();
    let many = many.join(", ");
    for others in ["", &format!("{many}, ")] {
        let repeated = format!(r#"{{"a": 1, {others}"\u0061": 1}}"#);
        refuses(
            "true",
            &[&repeated, &format!(r#"[0, {{"b": {repeated}}}]"#)],
        );
        accepts("true", &[&repeated.replace("u0061", "u0062")]);
    }
}

#[test]
fn what_is_not_checked_is_accepted() {
    let string = r#"{"type": "string"}"#;
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    refuses(string, &[&nested(127)]);
    refuses(string, &[&nested(200), "{", "", "[1,]"]);
    let recursive =
        r##"{"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}], "type": "array"}"##;
    let within = |depth: usize| nested(depth).replace("[]", "[1]");
    refuses(recursive, &[&within(3)]);
    accepts(recursive, &[&within(100), &nested(3)]);
    let many = |elements: usize| format!("[0{}]", ",0".repeat(elements - 1));
    refuses(string, &[&many(MAX_CHECKED_VALUES - 2)]);
    accepts(string, &[&many(MAX_CHECKED_VALUES)]);
}

#[test]
fn formats_are_asserted_where_they_are_assertions() {
    // Later drafts make it an annotation by default.
    let schema = r#"{"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}"#;
    let accepts = |format| {
        let check = SchemaCheck::with_format(schema, format).unwrap();
        ["\"2026-07-28\"", "\"today\""].map(|text| check.accepts_arguments(text))
    };
    assert_eq!(accepts(Format::Assertion), [true, false]);
    assert_eq!(accepts(Format::Annotation), [true, true]);
}

/// Arguments that fit the schema, ones of which one constraint is broken, and others.
fn arguments(schema: &Value, seed: u64, turns: usize) -> Vec<String> {
    let mut values = Values::new(schema, seed);
    let mut all = Vec::new();
    for turn in 0..turns {
        values.optional = [100, 50, 10, 400][turn % 4];
        let value = match turn % 5 {
            4 => values.anything(0),
            _ => values.value(),
        };
        let broken = mutants(schema, &value).into_iter().take(40);
        all.extend(broken.map(|mutant| mutant.value.to_string()));
        all.push(value.to_string());
    }
    all
}

/// The verdicts on the arguments of one schema: how many were accepted, and how many refused.
fn judged(schema: &Value, arguments: &[String]) -> [usize; 2] {
    let Some(checks) = Checks::new(&schema.to_string()) else {
        return [0, 0];
    };
    let accepted = arguments.iter().filter(|it| checks.accept(it)).count();
    [accepted, arguments.len() - accepted]
}

fn sum(all: impl Iterator<Item = [usize; 2]>) -> [usize; 2] {
    all.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
}

#[test]
fn both_checks_agree_on_calls_of_every_recorded_tool() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let lists = fs::read_dir(folder).unwrap().map(|file| {
        let list = fs::read_to_string(file.unwrap().path()).unwrap();
        serde_json::from_str::<Value>(&list).unwrap()["tools"].clone()
    });
    let verdicts = lists.flat_map(|list| {
        let tools = list.as_array().cloned().unwrap_or_default();
        tools.into_iter().map(|tool| {
            let schema = &tool["inputSchema"];
            judged(schema, &arguments(schema, 3, 10))
        })
    });
    let [accepted, refused] = sum(verdicts);
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} {refused}");
}

#[test]
fn both_checks_agree_whatever_the_schema() {
    let verdicts = (0..1_000).map(|seed| {
        let schema = schemas::schema(&mut Random(seed));
        judged(&schema, &arguments(&schema, seed, 5))
    });
    let [accepted, refused] = sum(verdicts);
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} {refused}");
}
