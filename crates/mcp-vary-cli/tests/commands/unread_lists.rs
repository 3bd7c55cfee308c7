//! Servers that are up and do not list their tools: what commands say instead of "no tools".

use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Server, VARY, file, run};
use crate::text::{assert_contains, assert_lacks};

/// A server that refuses to list its tools until the file `$0` exists, and never does if `$0` is `mute`. It declares no
/// prompts, and resources that it does not have.
const LOCKED: &str = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        case $line in
            *'"initialize"'*) say='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"lock","version":"1"}}';;
            *'"tools/list"'*)
                test "$0" = mute && continue
                if test -e "$0"; then say='"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}'
                else say='"error":{"code":-32603,"message":"database is locked for '$API_TOKEN'"}'; fi;;
            *'"ping"'*) say='"result":{}';;
            *) say='"error":{"code":-32601,"message":"Method not found"}';;
        esac
        test -z "$id" || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
    done"#;

const TOKEN: &str = "swordfish-0123456789";

/// A configuration of the server, and the weather server beside it.
fn configuration(name: &str, flag: &str) -> String {
    let text = json!({"servers": {
        "lh": {"command": "sh", "args": ["-c", LOCKED, flag], "env": {"API_TOKEN": TOKEN}, "start-timeout": "4s", "list-ttl": "1s"},
        "sky": {"command": VARY, "args": ["weather"]},
    }});
    file(name, &text.to_string())
}

const LOCKED_REASON: &str =
    "server `lh`: its tools could not be read: database is locked for ***\n";

#[test]
fn a_check_says_why_tools_could_not_be_read_and_fails() {
    let path = configuration("unread-check.json", "/nowhere");
    let checked = run(&["config", "check", &path]).exited(1);
    let rows = "lh      up     2025-11-25      -          -          -        -\n";
    let end = format!("\n\n{LOCKED_REASON}\n");
    assert_contains(&checked.stdout, &[rows, &end, "\n1 problem\n"]);
    assert_lacks(&checked.stdout, &[TOKEN]);
    let json = run(&["config", "check", "--json", &path]).json(1);
    let expected = json!({"tools/list": "database is locked for ***"});
    assert_eq!(json["servers"][0]["failedLists"], expected);
    assert_eq!(json["servers"][1]["failedLists"], Value::Null);
    let path = configuration("unread-mute.json", "mute");
    let checked = run(&["config", "check", &path]).exited(1);
    let expected =
        "server `lh`: its tools could not be read: it did not respond to tools/list within 4 s\n";
    assert_contains(&checked.stdout, &[expected, "\n1 problem\n"]);
}

#[test]
fn tools_that_could_not_be_read_are_named_where_others_are_shown() {
    let path = configuration("unread-inspect.json", "/nowhere");
    let inspected = run(&["inspect", "--summary", &path]);
    inspected.prints(0, "");
    assert_contains(&inspected.stdout, &[LOCKED_REASON]);
    let listed = run(&["tools", &path]).exited(0);
    assert_contains(&listed.stderr, &[LOCKED_REASON]);
}

#[test]
fn a_start_that_requires_all_servers_fails_where_tools_cannot_be_read() {
    let path = configuration("unread-all.json", "/nowhere");
    let started = run(&["serve", "--listen", "0", "--require-all", &path]);
    started.refuses(&[&format!("error: {LOCKED_REASON}")]);
    let text = json!({"servers": {
        "lh": {"command": "sh", "args": ["-c", LOCKED, "/nowhere"], "env": {"API_TOKEN": TOKEN}},
        "gone": {"command": "no-such-program"},
    }});
    let path = file("unread-gone.json", &text.to_string());
    let started = run(&["serve", "--listen", "0", "--require-all", &path]);
    let gone = "error: server `gone`: the program `no-such-program` was not found";
    started.refuses(&[gone, &format!("\n{LOCKED_REASON}")]);
}

#[test]
fn a_running_gateway_says_why_tools_could_not_be_read_until_they_are() {
    let flag = file("unread-serve.flag", "");
    std::fs::remove_file(&flag).unwrap();
    let path = configuration("unread-serve.json", &flag);
    let server = Server::serve(&["--admin", "0", &path]);
    let expected = "  lh   lock 1, revision 2025-11-25, its tools could not be read: database is locked for ***\n";
    assert_contains(&server.said, &[expected]);
    assert_lacks(&server.said, &[TOKEN]);
    let status = || run(&["status", &server.admin()]).data(0);
    let reason = LOCKED_REASON.trim_end();
    let expected =
        format!("\n  {reason}; it is read again with the next request of a client\nsky ");
    assert_contains(&status(), &[&expected]);
    std::fs::write(&flag, "").unwrap();
    let is_read = || server.tools().iter().any(|name| name == "lh_a");
    let waits = (0..300).map(|_| std::thread::sleep(Duration::from_millis(100)));
    assert!(
        waits.into_iter().any(|()| is_read()),
        "the tools were not read again"
    );
    assert_lacks(&status(), &["could not be read"]);
}
