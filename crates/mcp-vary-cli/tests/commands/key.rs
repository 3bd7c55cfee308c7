//! `vary key`: a key is shown once, and its entry can be pasted.

use crate::program::{Run, file, run};
use crate::text::assert_contains;

/// The key on standard output and the entry on standard error.
#[track_caller]
fn key_new(args: &[&str]) -> (String, String) {
    let Run {
        stdout,
        stderr,
        code,
    } = run(&[&["key", "new"], args].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let entry = stderr.lines().find_map(|line| line.strip_prefix("    - "));
    (stdout, entry.unwrap().to_owned())
}

#[test]
fn the_key_is_the_only_line_on_standard_output_and_nowhere_else() {
    let run = run(&["key", "new", "ann", "--expires", "2999-01-31"]);
    let key = run.stdout.strip_suffix('\n').unwrap();
    assert_eq!((key.len(), &key[..5]), (48, "vary_"));
    assert!(!run.stderr.contains(&key[5..]), "{}", run.stderr);
    assert_contains(
        &run.stderr,
        &[
            "not stored",
            r#"{name: "ann", sha256: "#,
            ", expires: 2999-01-31}",
        ],
    );
}

#[test]
fn two_keys_are_different() {
    assert_ne!(key_new(&["ann"]), key_new(&["ann"]));
}

/// Names that YAML would read as something else are quoted.
#[test]
fn the_entry_can_be_pasted_into_a_configuration() {
    for (at, name) in ["ann", "on", "a: b", "\"x\" # {y}", "ü"]
        .into_iter()
        .enumerate()
    {
        let (_, entry) = key_new(&[name]);
        let text = format!("servers: {{a: {{command: x}}}}\nauth:\n  keys:\n    - {entry}\n");
        let path = file(&format!("key-{at}.yaml"), &text);
        let _checked = run(&["config", "check", "--offline", &path]).exited(0);
    }
}

#[test]
fn what_cannot_be_a_key_is_refused_before_one_is_shown() {
    run(&["key", "new", ""]).refuses(&["NAME: the name of the key is empty"]);
    run(&["key", "new", &"n".repeat(65)]).refuses(&["NAME: the name has more than 64 bytes"]);
    run(&["key", "new", "a\nb"])
        .refuses(&["NAME: the name of the key contains a control character"]);
    run(&["key", "new", "ann", "--expires", "2020-01-31"])
        .refuses(&["--expires: 2020-01-31 is past; today is "]);
    run(&["key", "new", "ann", "--expires", "2027-02-29"])
        .refuses(&["not a date of the calendar; write it as 2027-01-31"]);
}
