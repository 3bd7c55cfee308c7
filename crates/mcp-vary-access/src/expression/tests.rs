use super::*;
use crate::{Call, Claims, Item, Principal};
use mcp_vary_view::ToolHints;

const CLAIMS: &str = r#"{"groups": ["dev", "sre"], "email": "ann@example.com", "level": 3, "big": 18446744073709551615,
    "ratio": 0.5, "admin": true, "scope": "read write", "address": {"country": "CH"}, "name with space": "x"}"#;

fn evaluated(source: &str, arguments: Option<&str>) -> Result<bool, EvaluationError> {
    let principal = Principal::key("ci", Claims::from_json(CLAIMS).unwrap()).unwrap();
    let principal = principal.with_certificate("CN=laptop").unwrap();
    let call = Call {
        principal: &principal,
        item: Item::tool("git_push", "push", "git", ToolHints::default(), false),
        variant: &"compact".parse().unwrap(),
        arguments,
    };
    let expression = Expression::compile(source).unwrap_or_else(|why| panic!("{source}: {why}"));
    expression.evaluate(&CallContext::new(&call))
}

#[track_caller]
fn is(source: &str, arguments: &str, expected: bool) {
    let result = evaluated(source, Some(arguments));
    assert_eq!(result, Ok(expected), "{source} for {arguments}");
}

#[track_caller]
fn fails(source: &str, arguments: &str, expected: EvaluationError) {
    let result = evaluated(source, Some(arguments));
    assert_eq!(result, Err(expected), "{source} for {arguments}");
}

#[track_caller]
fn refused(source: &str, why: &str) {
    let error = Expression::compile(source).unwrap_err().to_string();
    assert!(error.contains(why), "{source}: {error}");
}

#[test]
fn an_expression_reads_arguments() {
    let source = r#"args.environment != "production" || "sre" in claims.groups"#;
    is(source, r#"{"environment": "production"}"#, true);
    is(source, r#"{"environment": "test"}"#, true);
    for (count, expected) in [("9", true), ("10.5", false), ("9.99e0", true)] {
        let arguments = format!(r#"{{"count": {count}}}"#);
        is("args.count < 10", &arguments, expected);
    }
    for (wanted, id, expected) in [
        ("9007199254740993", "9007199254740993", true),
        ("9007199254740993", "9007199254740992", false),
        ("18446744073709551615u", "18446744073709551615", true),
    ] {
        let source = format!("args.id == {wanted}");
        is(&source, &format!(r#"{{"id": {id}}}"#), expected);
    }
    is("args.none == null", r#"{"none": null}"#, true);
    let dry_run = "has(args.dry_run) && args.dry_run";
    is(dry_run, r#"{"dry_run": true}"#, true);
    is(dry_run, "{}", false);
    let nested = r#"{"a b": {"c": [0, "\u0078"]}}"#;
    is(r#"args["a b"].c[1] == "x""#, nested, true);
    let all = "args.paths.all(p, p.startsWith('/srv/'))";
    is(all, r#"{"paths": ["/srv/a", "/srv/b"]}"#, true);
    is(all, r#"{"paths": ["/srv/a", "/etc"]}"#, false);
    let exists = "args.paths.exists(p, p.contains('..'))";
    is(exists, r#"{"paths": ["a", "b/../c"]}"#, true);
    let exists_one = "args.paths.exists_one(p, p.endsWith('c'))";
    is(exists_one, r#"{"paths": ["ac", "bc"]}"#, false);
    is("args.exists(k, k == 'a')", r#"{"a": 1}"#, true);
    is("size(args.text) <= 3", r#"{"text": "äöü"}"#, true);
    assert_eq!(evaluated("size(args) == 0", None), Ok(true));
}

/// The language defines that one side decides if it can.
#[test]
fn one_side_decides_though_the_other_fails() {
    is("args.missing == 1 || args.x == 1", r#"{"x": 1}"#, true);
    is("args.missing == 1 && args.x == 2", r#"{"x": 1}"#, false);
    let missing = EvaluationError::Missing;
    fails("args.missing == 1 || args.x == 2", r#"{"x": 1}"#, missing);
    fails("args.missing == 1 && args.x == 1", r#"{"x": 1}"#, missing);
}

#[test]
fn an_expression_reads_claims_and_the_call() {
    for source in [
        "'sre' in claims.groups && !('ops' in claims.groups)",
        "claims.email.endsWith('@example.com')",
        "claims.level > 2 && claims.ratio < 1.0 && claims.big > 1u && claims.admin",
        "'write' in claims.scope",
        "claims.address.country == 'CH'",
        "claims['name with space'] == 'x'",
        "!has(claims.other)",
        "principal.kind == 'key' && principal.key == 'ci' && principal.client == 'CN=laptop'",
        "size(principal.id) == 22",
        "kind == 'tool' && name == 'git_push' && tool == 'git_push' && server == 'git'",
        "variant == 'compact'",
        "args.groups.all(claims, claims == 'a')",
    ] {
        is(source, r#"{"groups": ["a"]}"#, true);
    }
}

/// What fails must never count as true.
#[test]
fn what_fails_is_an_error_of_its_kind() {
    use EvaluationError::{Arguments, ArgumentsTooLarge, Failed, Missing, NotBoolean, Type};
    fails("args.a == 1", "{}", Missing);
    fails("claims.other == 1", "{}", Missing);
    fails("args.a[3] == 1", r#"{"a": []}"#, Missing);
    fails("args.a.b == 1", r#"{"a": 1}"#, Type);
    fails("args.a + 1 == 2", r#"{"a": "1"}"#, Type);
    fails("args.a.startsWith('x')", r#"{"a": 1}"#, Type);
    fails("args.a", r#"{"a": "true"}"#, NotBoolean);
    fails("args.a", r#"{"a": 1}"#, NotBoolean);
    fails("1 / args.a == 1", r#"{"a": 0}"#, Failed);
    fails("args.a * 2 > 0", r#"{"a": 9223372036854775807}"#, Failed);
    let repeated = [r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":2}}"#];
    for arguments in ["", "[]", "null", "{"].into_iter().chain(repeated) {
        fails("args.a == 1", arguments, Arguments);
    }
    for number in ["1e400", "123456789012345678901", "-9223372036854775809"] {
        fails("args.a > 0", &format!(r#"{{"a":{number}}}"#), Arguments);
    }
    let large = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    is("args.a != ''", &large(MAX_ARGUMENTS), true);
    fails("args.a != ''", &large(MAX_ARGUMENTS + 1), ArgumentsTooLarge);
    // Arguments that nobody reads have no limit.
    is("variant == 'compact'", &large(MAX_ARGUMENTS + 1), true);
}

#[test]
fn no_error_shows_an_argument_or_a_claim() {
    let arguments = r#"{"a": "confidential", "b": 1}"#;
    for source in [
        "args.a > 1",
        "args.a",
        "args.a.x == 1",
        "args[args.a] == 1",
        "claims.email + 1 == 2",
        "args.a - args.b == 2",
        "args.b.contains(args.a)",
        "int(args.a) == 1",
    ] {
        let error = evaluated(source, Some(arguments)).unwrap_err();
        let shown = format!("{error} {error:?}");
        let is_shown = ["confidential", "ann@"]
            .iter()
            .any(|text| shown.contains(text));
        assert!(!is_shown, "{shown}");
    }
}

#[test]
fn work_is_bounded_before_it_is_done() {
    let list = |count: usize| format!(r#"{{"a":[{}1]}}"#, "1,".repeat(count - 1));
    is("args.a.all(x, x == 1)", &list(10_000), true);
    is("args.a.all(x, args.a.exists(y, y == x))", &list(50), true);
    let quadratic = "args.a.all(x, args.a.exists(y, y == x))";
    fails(quadratic, &list(10_000), EvaluationError::TooMuchWork);
    // Each text doubles: 60,000 bytes would become 7 MB.
    let doubled = (0..7).fold("args.a".to_owned(), |text, _| format!("({text} + {text})"));
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(60_000));
    let size = format!("size({doubled}) > 0");
    fails(&size, &text, EvaluationError::TooMuchWork);
    is(&format!("size({doubled}) == 128"), r#"{"a":"x"}"#, true);
}

#[test]
fn an_expression_that_could_never_work_is_refused_at_once() {
    refused("", "is not an expression in CEL");
    refused("a ==", "is not an expression in CEL");
    refused("args.a == 'x' args.b", "is not an expression in CEL");
    refused("arg.a == 1", "uses `arg`, which does not exist");
    refused("args.a.all(x, y == 1)", "uses `y`, which does not exist");
    refused("args.a.all(x, x == 1) && x == 2", "uses `x`");
    refused("args.a.matches('x+')", "calls `matches`");
    refused("timestamp(args.a) == args.b", "calls `timestamp`");
    refused("foo(1)", "calls `foo`");
    refused("args.a.map(x, x + x) == []", "`map` or `filter`");
    refused("args.a.filter(x, x > 1) == []", "`map` or `filter`");
    refused("claims.exists(c, c == 'a')", "`claims` without a name");
    refused("'groups' in claims", "`claims` without a name");
    refused("claims[args.a] == 1", "`claims` without a name");
    refused("principal.email == 'a'", "uses `principal.email`");
    refused("'text'", "not a condition");
    refused("1", "not a condition");
    refused("[true]", "not a condition");
    refused("{'a': true}", "not a condition");
    refused("Message{a: 1} == 1", "does not exist");
    refused("args.?a == 1", "is not an expression in CEL");
}

#[test]
fn texts_of_expressions_are_bounded() {
    let at = |bytes: usize| format!("'{}' == ''", "x".repeat(bytes - 8));
    assert!(Expression::compile(&at(MAX_EXPRESSION)).is_ok());
    refused(&at(MAX_EXPRESSION + 1), "more than 4096 bytes");
    let nested = |depth| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::compile(&nested(MAX_EXPRESSION_BRACKETS)).is_ok());
    let too_deep = "deeper than 8 brackets";
    refused(&nested(MAX_EXPRESSION_BRACKETS + 1), too_deep);
    refused(&"[".repeat(4000), too_deep);
    let too_many = "deeper than 32 operations, or 4 macros";
    refused(&format!("args{} == 1", ".a".repeat(40)), too_many);
    let within = |inner: String| format!("args.a.all(x, {inner})");
    let loops = |count| (0..count).fold("true".to_owned(), |inner, _| within(inner));
    assert!(Expression::compile(&loops(4)).is_ok());
    refused(&loops(5), too_many);
    let many: Vec<String> = (0..200).map(|at| format!("args.a == {at}")).collect();
    assert!(Expression::compile(&many.join(" || ")).is_ok());
}

/// The parser is foreign code: whatever an operator writes, the process goes on.
#[test]
fn no_text_ends_the_process() {
    for part in [
        "!", "-", "a?b:", "a?", "(", "a.", "a&&", "1+", "'", "\"", "\\", "r'", "b\"\\x", "\u{0}",
        "é", "//", "0x", "1e", "{", "a[", "in ",
    ] {
        for times in [1, 10, 100, 1000] {
            let text = part.repeat(times);
            let inner = format!("{}{text}true{}", "[(".repeat(4), ")]".repeat(4));
            let (before, after) = (format!("{text}true"), format!("true{text}"));
            for source in [text, before, after, inner] {
                if let Ok(expression) = Expression::compile(&source) {
                    assert!(source.len() <= MAX_EXPRESSION, "{expression}");
                }
            }
        }
    }
}

#[test]
fn an_expression_is_shown_as_it_was_written() {
    let source = "args.a  == 1";
    let expression = Expression::compile(source).unwrap();
    assert_eq!(expression.as_str(), source);
    assert_eq!(expression.to_string(), source);
    assert_eq!(format!("{expression:?}"), r#"Expression("args.a  == 1")"#);
}
