//! JSON keeps what was written, and refuses what two readers would read differently.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary_json::{
    Json, MAX_DEPTH, Members, ObjectReader, compact, elements, minified, skip, string, to_map,
    to_value,
};
use proptest::prelude::*;

#[track_caller]
fn same(this: &str, other: &str) {
    let (this, other) = (Json::parse(this).unwrap(), Json::parse(other).unwrap());
    assert!(
        this.is_same(&other) && other.is_same(&this),
        "{this:?} is not {other:?}"
    );
}

#[track_caller]
fn differ(this: &str, other: &str) {
    let (this, other) = (Json::parse(this).unwrap(), Json::parse(other).unwrap());
    assert!(
        !this.is_same(&other) && !other.is_same(&this),
        "{this:?} is {other:?}"
    );
}

#[test]
fn numbers_are_the_same_by_what_they_count() {
    same("1", "1.0");
    same("100", "1e2");
    same("100", "0.1E+3");
    same("-0.05", "-5e-2");
    same("0", "-0.00e9");
    let other = "123456789012345678901234567890.0";
    same("123456789012345678901234567890", other);
    differ("1", "-1");
    differ("10", "1");
    differ("0.1", "0.10000000000000001");
    differ("9007199254740993", "9007199254740992");
}

#[test]
fn exponents_beyond_counting_are_the_same_only_as_spelled() {
    same("1e99999999999999999999", "1e99999999999999999999");
    differ("1e99999999999999999999", "10e99999999999999999998");
    same("1e9223372036854775807", "1e9223372036854775807");
    differ("10e9223372036854775807", "1e9223372036854775807");
}

#[test]
fn members_are_the_same_in_any_order_and_elements_in_theirs() {
    let other = r#"{"c":"\u00e9","a":[1.0,{"b":null}]}"#;
    same(r#"{"a": [1, {"b": null}], "c": "é"}"#, other);
    differ("[1, 2]", "[2, 1]");
    differ(r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#);
    differ(r#"{"a": null}"#, "{}");
    differ(r#""1""#, "1");
    differ("[]", "{}");
}

#[track_caller]
fn refused(text: &str) {
    let error = Json::parse(text).unwrap_err().to_string();
    assert!(error.contains("at byte"), "{error}");
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let without_spaces = r#"nul truely tru 01 - +1 .5 1. 1e 1e+ 0x1 NaN 'a' " "\ "\x" "\u12" "\ud800"
        [ [1 [1, [1,] [,] { {1:2} {"a" {"a": {"a":1,} []] [1é é "\é""#;
    let others = [
        "",
        " ",
        "\"\n\"",
        r#"{"a" 1}"#,
        "1 2",
        "\u{feff}1",
        "{'a': 1}",
    ];
    for text in without_spaces.split_whitespace().chain(others) {
        refused(text);
    }
}

#[test]
fn a_repeated_key_is_refused_among_few_and_among_many() {
    refused(r#"{"a": 1, "\u0061": 2}"#);
    refused(r#"[{"b": {"a": 1, "c": 0, "a": 2}}]"#);
    let many: Vec<_> = (0..50_000).map(|at| format!(r#""k{at}":{at}"#)).collect();
    let wide = format!("{{{}}}", many.join(","));
    assert_eq!(Json::parse(&wide).unwrap().to_json(), wide);
    assert_eq!(Members::parse(&wide).unwrap().to_json(), wide);
    let repeated = format!(r#"{{{},"k0":1}}"#, many.join(","));
    refused(&repeated);
    let error = Members::parse(&repeated).unwrap_err().to_string();
    assert!(error.contains(r#"the key "k0" is given twice"#), "{error}");
}

#[test]
fn a_peers_key_is_cut_in_the_error_about_it() {
    let key = "k".repeat(10_000);
    let text = format!(r#"{{"{key}":1,"{key}":2}}"#);
    assert!(Json::parse(&text).unwrap_err().to_string().len() < 200);
    assert!(Members::parse(&text).unwrap_err().to_string().len() < 200);
}

#[test]
fn nesting_ends_at_its_bound_and_one_level_is_opened_at_any_depth() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Json::parse(&nested(MAX_DEPTH)).is_ok());
    refused(&nested(MAX_DEPTH + 1));
    refused(&"[".repeat(1_000_000));
    assert_eq!(elements(&nested(100_000)).unwrap(), [nested(99_999)]);
    let deep = format!(r#"{{"a":{}}}"#, nested(100_000));
    assert_eq!(Members::parse(&deep).unwrap().to_json(), deep);
}

#[test]
fn members_change_where_they_stand() {
    let mut members = Members::parse(r#" { "a" : 1.10 , "b" : [ 1, 2 ] } "#).unwrap();
    members.set("a", "2");
    members.set("c", "null");
    assert_eq!(members.remove("b").as_deref(), Some("[ 1, 2 ]"));
    assert_eq!(members.remove("b"), None);
    assert_eq!(members.to_json(), r#"{"a":2,"c":null}"#);
    assert_eq!(members.get_str("a"), None);
}

/// Checks that the object is read as an object, as every parser but `serde_json` reads it.
#[track_caller]
fn is_an_object(text: &str) {
    let read = to_value(text).unwrap();
    let inner = read.pointer("/a/0").unwrap_or(&read);
    let (key, value) = inner.as_object().unwrap().iter().next().unwrap();
    assert!(key.starts_with("$serde_json::private::"), "{key}");
    assert_eq!(value, "[7]", "{text}");
}

#[test]
fn an_object_is_not_replaced_by_the_value_in_its_text() {
    for key in ["RawValue", "Number"] {
        is_an_object(&format!(r#"{{"$serde_json::private::{key}": "[7]"}}"#));
        is_an_object(&format!(
            r#"{{"\u0024serde_json::private::{key}": "\u005b7]"}}"#
        ));
        is_an_object(&format!(
            r#"{{"a": [{{"$serde_json::private::{key}": "[7]"}}]}}"#
        ));
    }
    let text = r#"{"$serde_json::private::RawValue":7,"b":1}"#;
    assert_eq!(to_value(text).unwrap().to_string(), text);
}

#[test]
fn a_value_is_read_with_its_numbers_and_the_last_of_equal_keys() {
    let value =
        to_value(r#" {"b": 1, "a": [1.50, -0, 1e2, 18446744073709551615], "\u0062": "\n"} "#);
    assert_eq!(
        value.unwrap().to_string(),
        r#"{"b":"\n","a":[1.5,-0.0,100.0,18446744073709551615]}"#
    );
    for (text, error) in [
        ("[1e999]", "a number out of range at byte 6"),
        ("[1] 2", "text after the value at byte 4"),
        (r#"{"a" 1}"#, "expected `:` at byte 5"),
    ] {
        assert_eq!(to_value(text).unwrap_err().to_string(), error, "{text}");
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(to_value(&nested(MAX_DEPTH)).is_ok());
    assert!(to_value(&nested(MAX_DEPTH + 1)).is_err());
}

#[test]
fn the_members_of_an_object_are_a_map() {
    assert_eq!(to_map(r#"{"a": 1}"#).unwrap()["a"], 1);
    let expected = "it must be an object";
    assert_eq!(to_map("[]").unwrap_err().to_string(), expected);
}

/// Text that is often JSON and often nearly.
fn nearly_json() -> impl Strategy<Value = String> {
    let written = r#"{ } [ ] : , "a" "\u00e9\n" "b" 1 -0.5e+1 true false null " \ é 0 e"#;
    let tokens: Vec<_> = written.split(' ').chain([" ", "\t"]).collect();
    let token = prop::sample::select(tokens);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

/// A value as text, with keys that are often the same.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        any::<String>().prop_map(|text| string(&text)),
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec(("[a-z]", inner), 0..4).prop_map(|all| {
                let members = all
                    .iter()
                    .map(|(key, value)| format!(" {} :{value}", string(key)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

/// A string as it may be spelled, or nearly.
fn quoted() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z é]{1,9}",
        4 => prop::sample::select(vec![
            r#"\""#, r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u00e9", r"\ud83d\ude00",
        ])
        .prop_map(str::to_owned),
        1 => prop::sample::select(vec![r"\", r"\x", r"\é", r"\ud83d", r"\u12", "\n", "\u{1}", "\""])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

/// JSON text without the white space outside of its strings, a character at a time.
fn outside_of_strings(text: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let mut out = String::new();
    for c in text.chars() {
        if in_string || !c.is_ascii_whitespace() {
            out.push(c);
        }
        in_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    out
}

#[track_caller]
fn skips(text: &str, whole: bool) {
    let found = skip(text, 0, MAX_DEPTH) == Some(text.len());
    assert_eq!(found, whole, "{text}");
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text);
    assert_eq!(theirs.is_ok(), whole, "{text}");
}

#[test]
fn only_whole_values_are_skipped() {
    let whole =
        r#"null true -0 0.10 1e5 1E-05 "" [] {} [[],{}] [{"a":[1]},"b"] "\"" "\u00e9\ud800\\""#;
    let with_spaces = [
        r#"{"a" : {"b":[ ] } }"#,
        r#"{"a":1 , "b":2,"c":3}"#,
        r#""eight bytes and more, é""#,
    ];
    for text in whole.split(' ').chain(with_spaces) {
        skips(text, true);
    }
    let broken =
        r#"nul - 01 1. 1e +1 " "\x" "\u12" [ [1,] [,1] [} {] {"a"} {"a":} {"a":1,} {1:2} ] [1]]"#;
    let others = ["", "\"tab\t\"", "\"a long text, then\n\"", "[1 2]"];
    for text in broken.split(' ').chain(others) {
        skips(text, false);
    }
}

#[test]
fn skipping_ends_where_containers_nest_too_deep() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(skip(&nested(MAX_DEPTH), 0, usize::MAX), Some(2 * MAX_DEPTH));
    assert_eq!(skip(&nested(MAX_DEPTH + 1), 0, usize::MAX), None);
    let object = format!("{{\"a\":{}}}", nested(2));
    let read = |depth| ObjectReader::open(&object, depth).map(|mut reader| reader.member().is_ok());
    let found = [0, 1, 2, 3].map(read);
    assert_eq!(found, [None, Some(false), Some(false), Some(true)]);
}

/// What an [`ObjectReader`] makes of `text`, when it is an object as a whole.
fn members_of(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut reader = ObjectReader::open(text, MAX_DEPTH)?;
    let mut all = Vec::new();
    while let Some(member) = reader.member().ok()? {
        all.push(member);
    }
    reader.is_at_end().then_some(all)
}

#[test]
fn the_members_of_an_object_are_read_one_by_one() {
    assert_eq!(members_of("{}"), Some(vec![]));
    assert_eq!(members_of(" { } "), Some(vec![]));
    assert_eq!(members_of(r#"{"a":1}"#), Some(vec![("a", "1")]));
    assert_eq!(
        members_of(" { \"a\" : [1, 2] ,\n\"\\u0061\":{\"}\":null} }\t"),
        Some(vec![("a", "[1, 2]"), ("\\u0061", "{\"}\":null}")]),
    );
}

#[test]
fn what_is_no_object_has_no_members() {
    let tight = r#"[] { {,} {"a":1 {"a":1,} {,"a":1} {"a":1] {"a"} {"a":1}}"#;
    let others = ["", r#"{"a":1 "b":2}"#, r#"{"a":1} 2"#];
    for text in tight.split(' ').chain(others) {
        assert_eq!(members_of(text), None, "{text}");
        assert!(Members::parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_error_says_what_was_expected() {
    for (text, expected) in [
        ("[]", "it must be an object"),
        ("5", "it must be an object"),
        ("{", "it is not JSON: it ends too early"),
        (
            "{\n5}",
            "it is not JSON: the mistake is at line 2, column 1",
        ),
    ] {
        assert_eq!(Members::parse(text).unwrap_err().to_string(), expected);
    }
    let array = elements("{}").unwrap_err().to_string();
    assert_eq!(array, "it must be an array");
}

#[test]
fn an_object_without_members_is_empty() {
    let mut members = Members::parse("{}").unwrap();
    assert!(members.is_empty());
    members.set("a", "1");
    assert!(!members.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_is_what_serde_json_accepts(text in nearly_json()) {
        // As text: as a value, `1e400` is out of its range.
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        match Json::parse(&text) {
            Ok(_) => prop_assert!(theirs.is_ok()),
            Err(error) => prop_assert!(theirs.is_err() || error.to_string().contains("twice")),
        }
    }

    #[test]
    fn a_value_is_the_one_that_serde_json_reads(text in prop_oneof![json(), nearly_json()]) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(to_value(&text).ok(), theirs.ok());
    }

    #[test]
    fn what_is_skipped_is_what_serde_json_accepts(text in nearly_json()) {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        let end = skip(&text, 0, MAX_DEPTH).map(|end| text[end..].trim_matches([' ', '\t', '\n', '\r']));
        prop_assert_eq!(end == Some(""), theirs.is_ok());
    }

    #[test]
    fn what_was_read_is_written_and_read_the_same(text in json()) {
        let Ok(value) = Json::parse(&text) else {
            return Ok(());
        };
        let written = value.to_json();
        prop_assert_eq!(value.json_len(), written.len());
        let again = Json::parse(&written).unwrap();
        prop_assert_eq!(&again, &value);
        prop_assert!(again.is_same(&value));
        prop_assert_eq!(again.to_json(), written);
    }

    #[test]
    fn the_compact_spelling_is_that_of_the_tree(text in prop_oneof![json(), nearly_json(), quoted()]) {
        prop_assert_eq!(compact(&text), Json::parse(&text).map(|value| value.to_json()));
    }

    #[test]
    fn minified_text_lacks_white_space_between_tokens_and_nothing_else(
        text in prop_oneof![json(), nearly_json(), quoted()], around in "[ \t\r\n]{0,3}",
    ) {
        let text = format!("{around}{text}{around}");
        let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        let expected = outside_of_strings(&text);
        let expected = Some(expected).filter(|expected| is_json && *expected != text);
        prop_assert_eq!(minified(&text), expected);
    }

    #[test]
    fn strings_are_read_as_serde_json_reads_them(text in quoted()) {
        let ours = Json::parse(&text).ok().and_then(|value| value.as_str().map(str::to_owned));
        prop_assert_eq!(ours, serde_json::from_str::<String>(&text).ok());
    }

    #[test]
    fn one_level_and_the_whole_tree_agree(text in json()) {
        if let Ok(Json::Object(all)) = Json::parse(&text) {
            let members = Members::parse(&text).unwrap();
            prop_assert_eq!(members.len(), all.len());
            for ((key, value), (name, tree)) in members.iter().zip(&all) {
                prop_assert_eq!(key, name);
                prop_assert_eq!(&Json::parse(value).unwrap(), tree);
            }
        }
        if let Ok(Json::Array(all)) = Json::parse(&text) {
            let parts = elements(&text).unwrap();
            prop_assert_eq!(parts.len(), all.len());
            for (part, tree) in parts.iter().zip(&all) {
                prop_assert_eq!(&Json::parse(part).unwrap(), tree);
            }
        }
    }

    #[test]
    fn strings_are_written_as_serde_json_reads_them(text in any::<String>()) {
        prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).unwrap(), text);
    }
}

#[test]
fn a_value_is_found_by_its_key_in_every_form() {
    let mut members = Members::parse(r#"{"a": "x\ny", "b": "plain", "c": 1.0}"#).unwrap();
    assert_eq!(members.get_str("a").as_deref(), Some("x\ny"));
    assert_eq!(members.get_text("a").as_deref(), Some("x\ny"));
    assert!(matches!(
        members.get_text("b"),
        Some(std::borrow::Cow::Borrowed("plain"))
    ));
    assert_eq!(members.get_str("c"), None);
    assert_eq!(members.get_text("c"), None);
    assert_eq!(members.get_text("d"), None);
    assert!(members.contains("c"));
    assert!(!members.contains("d"));
    assert_eq!(members.get_written("c"), Some("1.0"));
    members.set("c", "2.0".to_owned());
    assert_eq!(members.get("c"), Some("2.0"));
    assert_eq!(members.get_written("c"), None);
}

#[test]
fn the_error_about_a_repeated_key_has_the_key() {
    let repeated = Members::parse(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap_err();
    assert_eq!(repeated.duplicate_key(), Some("a"));
    assert_eq!(repeated.to_string(), r#"the key "a" is given twice"#);
    let other = Members::parse("[]").unwrap_err();
    assert_eq!(other.duplicate_key(), None);
}
