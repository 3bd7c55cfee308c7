use super::*;

fn read(json: &str) -> Claims {
    Claims::from_json(json).unwrap()
}

#[track_caller]
fn refused(json: &str, why: &str) {
    let error = Claims::from_json(json).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn each_kind_of_json_is_a_claim_of_its_kind() {
    let claims = read(
        r#" {"text": "a\u0062 c", "list": ["x", "y"], "number": 1.10, "yes": true, "no": false,
            "null": null, "none": [], "object": {"a": [1, "2"]}, "mixed": ["a", 1]} "#,
    );
    let claim = |name| claims.get(name).unwrap().clone();
    assert!(claim("text") == Claim::Text("ab c".into()));
    assert!(claim("list") == Claim::List(["x".into(), "y".into()].into()));
    assert!(claim("number") == Claim::Number("1.10".into()));
    assert!(claim("yes") == Claim::Bool(true) && claim("no") == Claim::Bool(false));
    assert!(claim("none").is_empty_list());
    let json = |json: &str, texts: &[&str]| Claim::Json {
        json: json.into(),
        texts: texts.iter().map(|text| Box::from(*text)).collect(),
    };
    assert!(claim("object") == json(r#"{"a":[1,"2"]}"#, &[]));
    assert!(claim("mixed") == json(r#"["a",1]"#, &["a", "1"]));
    assert!(claims.get("null").is_none());
    assert_eq!(claims.iter().count(), 8);
    let names: Vec<&str> = claims.iter().map(|(name, _)| name).collect();
    assert!(names.is_sorted());
}

#[test]
fn rules_compare_the_elements_of_lists_and_the_spelling_of_scalars() {
    #[track_caller]
    fn texts(json: &str, all: &[&str], single: Option<&str>) {
        let claims = read(&format!(r#"{{"c": {json}}}"#));
        let claim = claims.get("c").unwrap();
        assert_eq!(claim.texts().collect::<Vec<_>>(), all, "{json}");
        assert_eq!(claim.as_text().as_deref(), single, "{json}");
    }
    texts(r#""a b""#, &["a b"], Some("a b"));
    texts(r#"["a", "b c"]"#, &["a", "b c"], None);
    texts(r#"["a"]"#, &["a"], Some("a"));
    texts("[]", &[], None);
    texts("1e3", &["1e3"], Some("1e3"));
    texts("true", &["true"], Some("true"));
    texts(r#"{"a": "b"}"#, &[], None);
    let json = r#"[1, null, "b", {"c": "d"}, true]"#;
    texts(json, &["1", "b", "true"], None);
}

#[test]
fn scopes_are_split_at_spaces_and_nothing_else_is() {
    let claims = read(r#"{"scope": "write read  read", "groups": "dev sre"}"#);
    assert_eq!(claims.scopes().collect::<Vec<_>>(), ["read", "write"]);
    assert!(claims.has_scope("read") && !claims.has_scope("rea"));
    assert_eq!(claims.get("groups").unwrap().as_text().unwrap(), "dev sre");
    let claims = read(r#"{"scope": ["b c", "a"]}"#);
    assert_eq!(claims.scopes().collect::<Vec<_>>(), ["a", "b c"]);
    assert_eq!(read(r#"{"scope": null}"#).scopes().count(), 0);
    refused(r#"{"scope": 1}"#, "`scope` is neither a string nor a list");
    refused(r#"{"scope": {"read": true}}"#, "`scope` is neither");
}

#[test]
fn what_is_too_large_is_refused_as_a_whole() {
    let list = |count| format!(r#"{{"groups":[{}"x"]}}"#, r#""x","#.repeat(count - 1));
    assert!(Claims::from_json(&list(MAX_CLAIM_VALUES)).is_ok());
    let why = "`groups` has more than 1000 values";
    refused(&list(MAX_CLAIM_VALUES + 1), why);
    refused(&list(10_000), "`groups` has more than 1000 values");
    refused(&list(100_000), "more than 65536 bytes");
    let text = |bytes| format!(r#"{{"t":"{}"}}"#, "x".repeat(bytes));
    assert!(Claims::from_json(&text(MAX_CLAIM_VALUE)).is_ok());
    let why = "`t` has a value of more than 4096 bytes";
    refused(&text(MAX_CLAIM_VALUE + 1), why);
    refused(&text(1 << 20), "more than 65536 bytes");
    let json = format!(r#"{{"t":["a","{}"]}}"#, "x".repeat(5000));
    refused(&json, "`t` has a value");
    refused(&format!(r#"{{"t":{}}}"#, "1".repeat(65)), "`t` has a value");
    let many = |count| {
        let all: Vec<_> = (0..count).map(|at| format!(r#""c{at}":1"#)).collect();
        format!("{{{}}}", all.join(","))
    };
    assert!(Claims::from_json(&many(MAX_CLAIMS)).is_ok());
    refused(&many(MAX_CLAIMS + 1), "more than 64 claims");
    let deep = |depth| {
        format!(
            r#"{{"a":{}{}}}"#,
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        )
    };
    assert!(Claims::from_json(&deep(MAX_CLAIMS_DEPTH)).is_ok());
    refused(&deep(MAX_CLAIMS_DEPTH + 1), "deeper than 8 levels");
    refused(&deep(1000), "not a JSON object");
    let scopes: String = (0..=MAX_CLAIM_VALUES).map(|at| format!("{at} ")).collect();
    let scopes = format!(r#"{{"scope":"{scopes}"}}"#);
    refused(&scopes, "`scope` has more than 1000 values");
}

#[test]
fn what_is_malformed_is_refused_without_showing_it() {
    for json in ["", "[]", "null", "{", "{}x", r#"{"a":01}"#, "\u{feff}{}"] {
        refused(json, "the claims are not a JSON object");
    }
    refused(r#"{"a":1,"\u0061":2}"#, "repeats a name");
    refused(r#"{"a":{"b":1,"b":2}}"#, "repeats a name");
    refused(r#"{"a":"x\u0000y"}"#, "`a` contains a control character");
    refused(r#"{"a":["x\ny"]}"#, "`a` contains a control character");
    refused(r#"{"a":"\ud800"}"#, "or is not valid Unicode");
    refused(r#"{"":1}"#, "the name of a claim is empty");
    refused(r#"{"a\nb":1}"#, "the name of a claim");
    refused(
        &format!(r#"{{"{}":1}}"#, "n".repeat(257)),
        "the name of a claim",
    );
    assert!(Claims::from_json(r#"{"a":"caf\u00e9 \ud83d\ude00"}"#).is_ok());
}

#[test]
fn debug_shows_no_value() {
    let claims = read(r#"{"a":"hidden","b":["hidden"],"c":{"x":"hidden"}}"#);
    let values: Vec<_> = claims.iter().collect();
    let shown = format!("{claims:?} {values:?} {claims:#?}");
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(shown.starts_with("Claims(3)"), "{shown}");
}
