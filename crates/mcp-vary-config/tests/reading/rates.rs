//! `rates`: limits are read whole, and every mistake is at its place.

use super::reference::blocks;
use super::*;

const SERVERS: &str = "servers: {git: {command: x}, web: {command: y}}\n";

const AUTH: &str = "auth: {anonymous: on}\n";

/// The names of the limits that a gateway with this file has.
#[track_caller]
fn names_limits(remaining: &str, expected: &str) {
    let file = read("vary.yaml", &format!("{SERVERS}{remaining}"));
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    assert_eq!(
        format!("{:?}", config.rates),
        format!("RateLimits({expected})")
    );
    assert_eq!(config.rates.is_empty(), expected == "[]");
}

/// Checks what is wrong with limits, which begin in line 2.
#[track_caller]
fn refuses_rates(remaining: &str, expected: &str) {
    refuses("vary.yaml", &format!("{SERVERS}{remaining}"), expected);
}

/// Checks what is wrong with one limit, which begins at 2:9.
#[track_caller]
fn refuses_limit(limit: &str, expected: &str) {
    refuses_rates(&format!("rates: [{limit}]"), expected);
}

#[test]
fn limits_are_read_with_all_their_keys() {
    names_limits(
        "rates:
  - {name: calls, rate: 600/min, burst: 60}
  - {per: tool, tools: \"search_*\", server: git, rate: \" 10/min \"}
  - {per: key, rate: 5/h}
  - {per: server, rate: 1000/day}
  - {name: changes, per: address, counts: variant-changes, rate: 1/s}
  - {name: wrong, counts: authentication-failures, rate: 1/s}
",
        r#"["calls", "changes", "rates[1]", "rates[2]", "rates[3]", "wrong"]"#,
    );
}

#[test]
fn without_rates_and_auth_nothing_is_limited() {
    names_limits("", "[]");
    names_limits("rates: []", "[]");
}

#[test]
fn with_auth_wrong_credentials_are_limited() {
    names_limits(AUTH, r#"["authentication-failures"]"#);
    let calls = "rates: [{name: calls, rate: 1/s}]\n";
    names_limits(
        &format!("{AUTH}{calls}"),
        r#"["authentication-failures", "calls"]"#,
    );
    let wrong = "rates: [{name: wrong, counts: authentication-failures, rate: 1000/s}]\n";
    names_limits(&format!("{AUTH}{wrong}"), r#"["wrong"]"#);
    refuses_rates(
        &format!("{AUTH}rates: [{{name: authentication-failures, rate: 1/s}}]"),
        "3:8: `rates` has a limit `authentication-failures` that does not count them; rename it: the limit that belongs to `auth` has this name",
    );
}

#[test]
fn a_limit_has_a_rate() {
    refuses_limit(
        "{}",
        "2:9: `rates[0]` has no `rate`; add `rate: COUNT/PERIOD`, such as `rate: 600/min`",
    );
    refuses_limit(
        "{raet: 1/s}",
        "2:10: `rates[0].raet` is not a known key; did you mean `rate`?",
    );
    let form = "2:16: `rates[0].rate` cannot be used: it is not a rate; write `COUNT/PERIOD` with `s`, `min`, `h` or `day`, such as `600/min`";
    for rate in ["600", "600/m", "-1/s", "1.5/s", "fast"] {
        refuses_limit(&format!("{{rate: {rate}}}"), form);
    }
    let range = "2:16: `rates[0].rate` cannot be used: its count is out of range; write one from 1 to 1000000";
    for rate in ["0/s", "1000001/s", "99999999999999999999/day"] {
        refuses_limit(&format!("{{rate: {rate}}}"), range);
    }
    refuses_limit(
        "fast",
        "2:9: `rates[0]` is not a table of keys; write {per: principal, rate: 600/min}",
    );
}

#[test]
fn a_burst_is_a_number_that_becomes_available_again() {
    refuses_limit(
        "{rate: 1/s, burst: 0}",
        "2:28: `rates[0].burst` is not a number that can be used here; write one from 1 to 1000000",
    );
    refuses_limit(
        "{rate: 1/day, burst: 367}",
        "2:30: `rates[0].burst` cannot be used: a burst of 367 would take 367 days to become available again; at most 366 are allowed; write a smaller one, or a higher rate",
    );
}

#[test]
fn a_limit_counts_something() {
    refuses_limit(
        "{rate: 1/s, per: tool, counts: variant-changes}",
        "2:26: `rates[0].per` is `tool`, which cannot count switches; write `principal` or `address`, or `counts: calls`",
    );
    refuses_limit(
        "{rate: 1/s, per: key, counts: authentication-failures}",
        "2:26: `rates[0].per` is `key`, which cannot count refused credentials; write `principal` or `address`, or `counts: calls`",
    );
    for key in ["tools", "server"] {
        let column = 2 + "rates: [{rate: 1/s, counts: variant-changes, ".len() + key.len() + 1;
        refuses_limit(
            &format!("{{rate: 1/s, counts: variant-changes, {key}: git}}"),
            &format!(
                "2:{column}: `rates[0].{key}` applies to limits that count calls; leave it out, or write `counts: calls`"
            ),
        );
    }
    refuses_limit(
        "{rate: 1/s, per: user, counts: reads}",
        "2:26: `rates[0].per` is `user`; there are `principal`, `key`, `address`, `tool`, `server`\n\
         2:40: `rates[0].counts` is `reads`; there are `calls`, `variant-changes`, `authentication-failures`",
    );
}

#[test]
fn a_limit_is_of_a_server_that_exists() {
    refuses_limit(
        "{rate: 1/s, server: gti}",
        "2:29: `rates[0].server` is not a server; did you mean `git`?",
    );
    refuses_limit(
        "{rate: 1/s, server: database}, {rate: 1/s, server: web}",
        "2:29: `rates[0].server` is not a server; there are `git`, `web`",
    );
    // One that is disabled may come back.
    let file = "servers: {a: {command: x}, b: {command: y, disabled: true}}\nrates: [{rate: 1/s, server: b}]\n";
    assert_eq!(read("vary.yaml", file).notes, []);
}

#[test]
fn patterns_and_names_are_checked() {
    refuses_limit(
        "{rate: 1/s, tools: \"{a\"}",
        "2:28: `rates[0].tools` cannot be used: the pattern cannot be read: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
    );
    refuses_limit(
        "{rate: 1/s, tools: \"\"}",
        "2:28: `rates[0].tools` cannot be used: the pattern must have 1 to 512 bytes; write `*` for all tools",
    );
    refuses_limit(
        "{rate: 1/s, name: \"ü\"}",
        "2:27: `rates[0].name` is not a name that clients can be shown; write 1 to 64 ASCII letters, digits and ` -_./:[]*`",
    );
    refuses_rates(
        "rates:\n  - {name: a, rate: 1/s}\n  - {name: a, rate: 2/s}\n",
        "4:12: `rates[1].name` is the name of the limit in line 3; give each limit its own name, or none",
    );
}

#[test]
fn there_are_at_most_63_limits() {
    let limits = |count: usize| format!("rates: [{}]\n", vec!["{rate: 1/s}"; count].join(", "));
    refuses_rates(&limits(64), "2:8: `rates` has 64 entries; 63 is the most");
    // With the one of `auth` there are 64.
    read("vary.yaml", &format!("{SERVERS}{AUTH}{}", limits(63)));
    refuses_rates(
        "rates: {rate: 1/s}",
        "2:8: `rates` is not a list; write [{per: principal, rate: 600/min}]",
    );
}

#[test]
fn every_example_of_the_guide_can_be_read() {
    let examples = blocks(
        include_str!("../../../../docs/reference/rate-limits.md"),
        "yaml",
    );
    assert_eq!(examples.len(), 2);
    for text in examples {
        let file = read("x.yaml", text);
        assert_eq!(file.notes, [], "{text}");
    }
}
