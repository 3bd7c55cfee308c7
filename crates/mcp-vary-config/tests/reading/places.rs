//! Settings in the wrong place, and paths that no program would find.

use crate::{notes, read, refuses, refuses_lines, refuses_server};

#[test]
fn a_server_is_always_verified() {
    let verified = "Vary always verifies the certificate of a server; name the file of its authority in `ca` of the server";
    for (key, value) in [
        ("insecure", "true"),
        ("ssl", "no"),
        ("tls", "{verify: no}"),
        ("verify-ssl", "false"),
        ("InsecureSkip_verify", "true"),
    ] {
        refuses_server(
            &format!("{{url: 'https://a.example/mcp', {key}: {value}}}"),
            &format!("2:37: `servers.a.{key}` is not a known key; {verified}"),
        );
    }
    refuses_lines(
        "insecure: true",
        &format!("2:1: `insecure` is not a known key; {verified}"),
    );
}

#[test]
fn what_stands_in_the_wrong_place_is_sent_to_the_right_one() {
    refuses(
        "x",
        "servers:\n  w:\n  command: x\n  args: [y]\n",
        "2:4: `servers.w` is empty; indent its settings by two spaces more than its name",
    );
    refuses(
        "x",
        "servers:\n  timeout: 3s\n  w: {command: x}\n",
        "2:12: `servers.timeout` is a setting of a server; indent it below the name of its server",
    );
    let beside = |entry: &str, fix: &str| {
        refuses_lines(entry, &format!("2:1: {fix}"));
    };
    beside(
        "git: {command: y}",
        "`git` is not a known key; a server belongs under `servers`: write `servers: {git: {...}}`",
    );
    beside(
        "safe: {tools: [a]}",
        "`safe` is not a known key; a variant belongs under `variants`: write `variants: {safe: {...}}`",
    );
    beside(
        "overrides: {tools: {a: {name: b}}}",
        "`overrides` is not a known key; it belongs in a variant: write `variants: {NAME: {overrides: {...}}}`",
    );
    beside(
        "timeout: 3s",
        "`timeout` is not a known key; a server has it: write it in `servers.NAME`",
    );
    beside(
        "zzzzzz: 1",
        "`zzzzzz` is not a known key; `vary config schema` describes the 48 keys",
    );
    for (key, value, example) in [
        ("variants", "{safe: {}}", "{...}"),
        ("clients", "[]", "[...]"),
        ("naming", "never", "..."),
    ] {
        let text = format!("servers:\n  a:\n    command: x\n    {key}: {value}\n");
        let what = format!(
            "4:5: `servers.a.{key}` is not a known key; it belongs at the top level, beside `servers` (in YAML without indentation), \
             as in `{{servers: {{...}}, {key}: {example}}}`"
        );
        refuses("x", &text, &what);
    }
    refuses_lines(
        "variants: {safe: {exclude: ['*delete*']}}",
        "2:19: `variants.safe.exclude` is not a known key; write `tools: {exclude: [...]}`",
    );
    refuses_lines(
        "variants: {safe: {tools: ['!*delete*']}}",
        "2:27: `variants.safe.tools[0]` begins with `!`, which patterns do not have; to leave something out, write \
             `{exclude: [...]}`, and `deny` in `access`",
    );
}

#[test]
fn a_path_that_no_program_would_find_is_refused() {
    let home = "begins with `~`, which only shells replace; write the whole path, or `${HOME}` in its place";
    let control = "contains a control character; write `\\\\` for each backslash, or put the path into single quotes in YAML";
    for (entry, at, what) in [
        ("{command: ~/bin/x}", "2:16: `servers.a.command`", home),
        ("{command: x, cwd: '~'}", "2:24: `servers.a.cwd`", home),
        (
            r#"{command: "C:\temp\new"}"#,
            "2:16: `servers.a.command`",
            control,
        ),
        (
            r#"{command: x, args: [a, "C:\temp"]}"#,
            "2:29: `servers.a.args[1]`",
            control,
        ),
        (
            r#"{url: 'https://x/', ca: "C:\new"}"#,
            "2:30: `servers.a.ca`",
            control,
        ),
    ] {
        refuses_server(entry, &format!("{at} {what}"));
    }
    refuses(
        "x",
        r#"servers: {a: {command: "C:\Users\x"}}"#,
        "1:24: while parsing a quoted scalar, did not find expected hexadecimal number; in double quotes, `\\` begins an \
             escape: use single quotes, as in 'C:\\Users'",
    );
}

/// A tool that the client's file hides is shown here, which is said.
#[test]
fn the_selection_of_tools_in_the_file_of_a_client_is_not_dropped_in_silence() {
    let gemini = r#"{"mcpServers": {"a": {"command": "x", "includeTools": ["b"], "trust": true}}}"#;
    assert_eq!(
        notes(&read("settings.json", gemini)),
        [
            "1:39: `mcpServers.a.includeTools` is ignored here: it changes what the server has or gets; \
             `vary config import settings.json > vary.yaml` takes over what can be"
        ]
    );
}

/// `npx` alone starts a shell, which runs the messages that it gets.
#[test]
fn a_runner_without_a_package_is_noted() {
    for (server, runner, args) in [
        ("{command: npx}", "npx", "[-y, PACKAGE]"),
        ("{command: npx, args: [-y]}", "npx", "[-y, PACKAGE]"),
        ("{command: uvx}", "uvx", "[PACKAGE]"),
        ("{command: pipx, args: [run]}", "pipx", "[run, PACKAGE]"),
    ] {
        let file = read("vary.yaml", &format!("servers:\n  a: {server}\n"));
        let note = format!(
            "2:16: `servers.a.command` starts `{runner}`, which got no package to run; add it: `args: {args}`"
        );
        assert_eq!(notes(&file), [note]);
    }
    let complete = read(
        "vary.yaml",
        "servers:\n  a: {command: npx, args: [-y, b]}\n",
    );
    assert_eq!(notes(&complete), Vec::<String>::new());
}
