use super::*;
use crate::{Claims, Expression, ItemPattern, Presence, Principal, When};
use mcp_vary_view::{Rule, ToolHints};

fn pattern(name: &str) -> ItemPattern {
    ItemPattern::any(serde_json::from_value::<Rule>(name.into()).unwrap())
}

fn anyone() -> AccessRule {
    AccessRule::new(When::anyone())
}

fn allow(name: &str) -> AccessRule {
    anyone().with_allow([pattern(name)])
}

fn deny(name: &str) -> AccessRule {
    anyone().with_deny([pattern(name)])
}

fn condition(source: &str) -> Expression {
    Expression::compile(source).unwrap()
}

fn tool(name: &str) -> Item<'_> {
    Item::tool(name, name, "s", ToolHints::default(), false)
}

fn nobody() -> Principal {
    Principal::anonymous()
}

fn scoped(scopes: &str) -> Principal {
    let claims = Claims::from_json(&format!(r#"{{"scope":"{scopes}"}}"#)).unwrap();
    Principal::token("i", "s", claims).unwrap()
}

fn policy(rules: &[AccessRule]) -> AccessPolicy {
    AccessPolicy::new(rules.iter().cloned()).unwrap()
}

/// The decision on `tool`, as one word with the rules that it names.
#[track_caller]
fn decides(rules: &[AccessRule], name: &str, expected: &str) {
    let policy = policy(rules);
    let class = policy.class_of(&Principal::anonymous());
    let positions = |rules: &[RuleIndex]| {
        let all: Vec<String> = rules.iter().map(|it| it.position().to_string()).collect();
        all.join(" ")
    };
    let both = |check: &CallCheck| {
        let [denying, allowing] = [&check.denying, &check.allowing].map(|it| positions(it));
        format!("deny [{denying}] allow [{allowing}]")
    };
    let shown = match policy.decide(&class, &tool(name)) {
        Decision::Hidden(HiddenBy::Default) => "hidden".to_owned(),
        Decision::Hidden(HiddenBy::Rule(rule)) => format!("hidden by {}", rule.position()),
        Decision::Allowed(rule) => format!("allowed by {}", rule.position()),
        Decision::NeedsScopes(check) => format!("scopes: {}", both(&check)),
        Decision::Conditional(check) => format!("if: {}", both(&check)),
    };
    assert_eq!(shown, expected);
}

const MISSING: &str = "an argument or claim that the expression reads does not exist";

/// The verdict on a call of `a`, as one word with the rule that it names.
#[track_caller]
fn calls(rules: &[AccessRule], principal: &Principal, arguments: &str, expected: &str) {
    let policy = policy(rules);
    let class = policy.class_of(principal);
    let item = tool("a");
    let call = Call {
        principal,
        item,
        variant: &"standard".parse().unwrap(),
        arguments: Some(arguments),
    };
    let verdict = policy.check(&policy.decide(&class, &item), &call);
    let position = |rule: RuleIndex| rule.position();
    let shown = match verdict {
        Verdict::Allowed(rule) => format!("allowed by {}", position(rule)),
        Verdict::NeedsScopes(rule) => format!("needs scopes of {}", position(rule)),
        Verdict::Denied(denial) => {
            let rule = denial.rule.map(|rule| format!(" by {}", position(rule)));
            let error = denial.error;
            let error = error.map(|(rule, why)| format!(", {}: {why}", position(rule)));
            let (rule, error) = (rule.unwrap_or_default(), error.unwrap_or_default());
            format!("denied{rule}{error}")
        }
    };
    assert_eq!(shown, expected, "for {arguments}");
}

/// SV-20: what no rule allows is hidden.
#[test]
fn nothing_is_allowed_by_default() {
    decides(&[], "a", "hidden");
    decides(&[allow("b")], "a", "hidden");
    let selecting = anyone().with_variant("x".parse().unwrap());
    decides(&[selecting], "a", "hidden");
    let others = When::new().with_key(Presence::of(["ci"]).unwrap()).unwrap();
    let rule = AccessRule::new(others).with_allow([pattern("*")]);
    decides(&[rule], "a", "hidden");
}

/// SV-20: a deny wins over every allow, in the same rule and in others.
#[test]
fn deny_wins_over_all_rules() {
    decides(&[allow("*")], "a", "allowed by 0");
    decides(&[allow("*"), deny("a")], "a", "hidden by 1");
    decides(&[deny("a"), allow("*")], "a", "hidden by 0");
    let both = allow("*").with_deny([pattern("a")]);
    decides(std::slice::from_ref(&both), "a", "hidden by 0");
    decides(&[both], "b", "allowed by 0");
    let others = When::new().with_key(Presence::of(["ci"]).unwrap()).unwrap();
    let rule = AccessRule::new(others).with_deny([pattern("*")]);
    decides(&[rule, allow("a")], "a", "allowed by 1");
}

#[test]
fn scopes_matter_only_if_nothing_allows_without() {
    let scoped = || allow("a*").with_scopes(["write"]);
    decides(&[scoped()], "a", "scopes: deny [] allow [0]");
    decides(&[scoped(), allow("*")], "a", "allowed by 1");
    decides(&[scoped(), deny("a")], "a", "hidden by 1");
    decides(&[scoped()], "b", "hidden");
}

#[test]
fn expressions_matter_only_if_something_depends_on_them() {
    let conditional = || allow("a*").with_condition(condition("args.x == 1"));
    decides(&[conditional()], "a", "if: deny [] allow [0]");
    decides(&[conditional(), allow("*")], "a", "allowed by 1");
    let denies = || deny("a").with_condition(condition("args.x == 1"));
    decides(&[denies(), allow("*")], "a", "if: deny [0] allow [1]");
    decides(&[denies()], "a", "hidden");
    decides(&[denies(), conditional(), deny("a")], "a", "hidden by 2");
    let scoped = conditional().with_scopes(["write"]);
    decides(&[scoped], "a", "if: deny [] allow [0]");
}

#[test]
fn a_call_without_the_scopes_is_challenged() {
    let rule = || allow("*").with_scopes(["read", "write"]);
    calls(&[rule()], &scoped("write read x"), "{}", "allowed by 0");
    calls(&[rule()], &scoped("write"), "{}", "needs scopes of 0");
    calls(&[rule()], &nobody(), "{}", "needs scopes of 0");
    let cheap = || allow("a").with_scopes(["any"]);
    calls(&[rule(), cheap()], &scoped("x"), "{}", "needs scopes of 1");
    calls(&[cheap(), rule()], &scoped("x"), "{}", "needs scopes of 0");
    calls(&[rule(), cheap()], &scoped("any"), "{}", "allowed by 1");
}

#[test]
fn a_call_is_allowed_if_the_expression_is_true() {
    let rule = || allow("*").with_condition(condition("args.x == 1"));
    calls(&[rule()], &nobody(), r#"{"x":1}"#, "allowed by 0");
    calls(&[rule()], &nobody(), r#"{"x":2}"#, "denied");
    calls(&[rule()], &nobody(), "{}", &format!("denied, 0: {MISSING}"));
    let other = || allow("a").with_condition(condition("args.y == 1"));
    calls(&[rule(), other()], &nobody(), r#"{"y":1}"#, "allowed by 1");
    let writing = || rule().with_scopes(["write"]);
    calls(&[writing()], &nobody(), r#"{"x":1}"#, "needs scopes of 0");
    calls(&[writing()], &nobody(), r#"{"x":2}"#, "denied");
    calls(&[writing()], &scoped("write"), r#"{"x":1}"#, "allowed by 0");
}

#[test]
fn a_call_is_denied_if_the_expression_is_true_or_fails() {
    let rules = [
        allow("*"),
        deny("a").with_condition(condition("args.x == 1")),
    ];
    calls(&rules, &nobody(), r#"{"x":2}"#, "allowed by 0");
    calls(&rules, &nobody(), r#"{"x":1}"#, "denied by 1");
    let expected = format!("denied by 1, 1: {MISSING}");
    calls(&rules, &nobody(), "{}", &expected);
    let malformed = "the arguments are not a JSON object with unique names and ordinary numbers";
    let repeated = r#"{"x":2,"x":1}"#;
    let expected = format!("denied by 1, 1: {malformed}");
    calls(&rules, &nobody(), repeated, &expected);
}

#[test]
fn a_call_of_what_is_hidden_is_denied() {
    calls(&[], &nobody(), "{}", "denied");
    calls(&[allow("*"), deny("a")], &nobody(), "{}", "denied by 1");
}
