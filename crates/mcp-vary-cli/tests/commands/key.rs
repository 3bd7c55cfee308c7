//! `vary key` and `vary invite`: a key is shown once, and its entry can be pasted.

use crate::connect::Home;
#[cfg(unix)]
use crate::program::Server;
use crate::program::{Run, file, run, sky, state};
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
        let (_, entry) = key_new(&[name, "--groups", name]);
        let text = format!("servers: {{a: {{command: x}}}}\nauth:\n  keys:\n    - {entry}\n");
        let path = file(&format!("key-{at}.yaml"), &text);
        let _checked = run(&["config", "check", "--offline", &path]).exited(0);
    }
}

#[test]
fn what_cannot_be_a_key_is_refused_before_one_is_shown() {
    run(&["key", "delete", "ann"])
        .refuses(&["to withdraw a key, remove its line from `auth.keys`, then: vary reload\n"]);
    run(&["invite", "ann", "--client", "gemini"])
        .refuses(&["`gemini` is not the name of a client; did you mean `gemini-cli`?\n"]);
    run(&["key", "new", ""]).refuses(&["NAME: the name of the key is empty"]);
    run(&["key", "new", &"n".repeat(65)]).refuses(&["NAME: the name has more than 64 bytes"]);
    run(&["key", "new", "a\nb"])
        .refuses(&["NAME: the name of the key contains a control character"]);
    run(&["key", "new", "ann", "--groups", "dev,"])
        .refuses(&["--groups: the name of a group is empty; write them like dev,ops"]);
    run(&["key", "new", "ann", "--groups", "a\nb"])
        .refuses(&["--groups: the claim `groups` contains a control character"]);
    run(&["key", "new", "ann", "--expires", "2020-01-31"])
        .refuses(&["--expires: 2020-01-31 is past; today is "]);
    run(&["key", "new", "ann", "--expires", "2027-02-29"])
        .refuses(&["not a date of the calendar; write it as 2027-01-31"]);
}

#[test]
fn the_keys_of_a_file_are_listed_with_their_groups_and_without_secrets() {
    let (_, ann) = key_new(&["ann", "--groups", "dev,ops", "--expires", "2999-01-31"]);
    let (_, ci) = key_new(&["ci"]);
    let old = format!(
        "{{name: bob, sha256: '{}', expires: 2020-01-31}}",
        "0".repeat(64)
    );
    let auth = format!("auth: {{keys: [{ci}, {old}, {ann}]}}\n");
    let unset = "servers: {a: {command: x, env: {TOKEN: '${NOT_SET_HERE}'}}}\n";
    let path = file("key-list.yaml", &format!("{unset}{auth}"));
    insta::assert_snapshot!(run(&["key", "list", &path]).data(0), @r"
    key  groups    last day
    ann  dev, ops  2999-01-31
    bob            2020-01-31, past
    ci
    ");
    let path = file("key-list-none.yaml", &sky(""));
    let note = format!("{path} has no `auth.keys`; `vary key new NAME` makes a key\n");
    run(&["key", "list", &path]).prints(0, &note);
    run(&["key", "list", "none.yaml"]).refuses(&["none.yaml cannot be read: no such file"]);
}

#[test]
fn nobody_is_invited_to_the_file_of_a_client() {
    let path = file(
        "invite.json",
        r#"{"mcpServers": {"sky": {"command": "sky"}}}"#,
    );
    run(&["invite", "ann", &path]).refuses(&[&format!(
        "{path} is a client's file, which has no keys; first: vary config import {path} > vary.yaml, serve that, then: \
         vary invite ann\n"
    )]);
}

/// What is sent to the person is on standard output, what is for the file on standard error.
#[cfg(unix)]
#[test]
fn a_person_is_invited_to_the_running_gateway() {
    let state = state("invite");
    let (_, entry) = key_new(&["ann"]);
    let path = file("invite.yaml", &sky(&format!("auth: {{keys: [{entry}]}}\n")));
    let args = ["serve", "--listen", "0", "--admin", "0", &path];
    let mut server = Server::with_state(&state, &args);
    let headers = r#""headers":{"Authorization":"Bearer ${VARY_API_KEY}"}"#;
    let said = server.says("for a client's configuration: ");
    assert_contains(&said, &[headers]);
    let invited = Run::with_state(&state, &["invite", "bob", "--groups", "dev"]).exited(0);
    let (export, connect) = invited.stdout.split_once('\n').unwrap();
    assert!(export.starts_with("export VARY_API_KEY=vary_"), "{export}");
    let header = "--header 'Authorization: Bearer ${VARY_API_KEY}'";
    let expected = format!(
        "vary connect claude-code {} {header} --write\n",
        server.url()
    );
    assert_eq!(connect, expected);
    let by_admin = Run::with_state(&state, &["invite", "bob", &server.admin()]).exited(0);
    assert_contains(&by_admin.stdout, &[connect]);
    let place =
        format!("Add this line to `auth.keys` of {path}:\n\n    - {{name: \"bob\", sha256: ");
    let note = format!(
        "note: only this machine can use {}; for others add `public-url: https://HOST` to {path}\n",
        server.url()
    );
    let groups = ", claims: {groups: [\"dev\"]}}\n";
    assert_contains(&invited.stderr, &["to `bob`", &place, groups, &note]);
    assert!(
        !invited.stderr.contains(&export[25..]),
        "{}",
        invited.stderr
    );
    let port = server.address.port().to_string();
    let known = format!("`auth.keys` of {path} has a key `ann`; choose another name");
    Run::with_state(&state, &["invite", "ann", &port]).refuses(&[&known]);
    let others = format!(
        "no gateway of yours with a configuration answers at 1; your running gateways: {}",
        server.url()
    );
    Run::with_state(&state, &["invite", "ann", "1"]).refuses(&[&others]);
}

#[test]
fn an_invitation_has_the_address_that_others_type() {
    let public = "public-url: https://mcp.acme.example\n";
    let path = file("invite-public.yaml", &sky(public));
    let invited = run(&["invite", "ann", &path, "--client", "cursor"]).exited(0);
    let connect = "\nvary connect cursor https://mcp.acme.example/mcp --header ";
    assert_contains(&invited.stdout, &[connect]);
    let open = format!(
        "Add these lines to {path}, which asks for no key so far:\n\nauth:\n  keys:\n    - {{"
    );
    let your_key = "\n\nFrom then on, your clients need a key, too: vary key new NAME\n";
    assert_contains(&invited.stderr, &[&open, your_key]);
    assert!(!invited.stderr.contains("note:"), "{}", invited.stderr);
    let path = file("invite-private.yaml", &sky(""));
    run(&["invite", "ann", &path]).refuses(&[
        "does not say by which address people reach the gateway; add `public-url: https://...`",
    ]);
    run(&["invite", "ann", "none.yaml"]).refuses(&["none.yaml cannot be read: no such file"]);
    Run::with_state(&state("invite-none"), &["invite", "ann", "1"])
        .refuses(&["found no running gateway of yours with a configuration; name the configuration, as in `vary invite ann vary.yaml`"]);
}

/// Its file has neither addresses nor headers: `--header` would be refused.
#[test]
fn a_client_without_headers_is_invited_with_commands_that_connect_it() {
    let path = file(
        "invite-desktop.yaml",
        &sky("public-url: https://mcp.acme.example\n"),
    );
    let invited = run(&["invite", "ann", &path, "--client", "claude-desktop"]).exited(0);
    let (before, after) = invited.stdout.split_once("echo '").unwrap();
    let (config, connect) = after.split_once("' > gateway.json\n").unwrap();
    assert!(before.starts_with("export VARY_API_KEY=vary_"), "{before}");
    assert_eq!(
        connect,
        "vary connect claude-desktop gateway.json --write\n"
    );
    let home = Home::new("invited");
    home.write("project/gateway.json", config);
    let mut command = home.command(&["claude-desktop", "gateway.json"]);
    let connected = Run::of(command.env("VARY_API_KEY", "k")).exited(0);
    assert_contains(&connected.stdout, &["\"--stdio\"", "gateway.json\""]);
    let note = "the configuration uses `VARY_API_KEY`, set here: Claude Desktop needs it in its environment too";
    assert_contains(&connected.stderr, &[note]);
}
