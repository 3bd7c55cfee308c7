//! The help of every command describes it and has an example.

use crate::program::run;

#[track_caller]
fn explains(args: &[&str]) {
    let name = [&["help"], args].concat().join("_");
    let help = run(&[args, &["--help"]].concat()).data(0);
    assert!(args.is_empty() || help.contains("Example"), "{help}");
    insta::assert_snapshot!(name, help);
}

#[test]
fn the_help_of_each_command_has_an_example() {
    explains(&[]);
    explains(&["demo"]);
    explains(&["up"]);
    explains(&["down"]);
    explains(&["serve"]);
    explains(&["inspect"]);
    explains(&["call"]);
    explains(&["tools"]);
    explains(&["check"]);
    explains(&["connect"]);
    explains(&["experiment"]);
    explains(&["completions"]);
    explains(&["config"]);
    explains(&["config", "check"]);
    explains(&["config", "import"]);
    explains(&["config", "schema"]);
    explains(&["login"]);
    explains(&["logout"]);
    explains(&["key"]);
    explains(&["key", "new"]);
    explains(&["key", "list"]);
    explains(&["invite"]);
    explains(&["access"]);
    explains(&["access", "explain"]);
    explains(&["audit"]);
    explains(&["status"]);
    explains(&["suggest"]);
    explains(&["reload"]);
    explains(&["drain"]);
    explains(&["open"]);
}
