//! Configurations of several servers: `config check`, and `serve`, `inspect` and `call` with a file.

use serde_json::{Value, json};

use crate::program::{INITIALIZE, Run, Server, VARY, file, run, sky};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// Two servers that offer the same, one that is not there and one that is switched off.
fn configuration(name: &str, naming: &str, servers: &[&str]) -> String {
    let mut text = format!("naming: {naming}\nlisten: 0\nservers:\n");
    for server in servers {
        text.push_str(&match *server {
            "gone" | "lost" => format!("  {server}: {{command: no-such-program}}\n"),
            "far" => "  far: {url: 'https://me:key@example.com:8443/key/mcp?key=1'}\n".to_owned(),
            "off" => "  off: {command: no-such-program, disabled: true}\n".to_owned(),
            name => format!("  {name}: {{command: {VARY:?}, args: [weather]}}\n"),
        });
    }
    file(name, &text)
}

/// What was printed, with the file's directory left out.
fn shown(run: &Run, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap();
    run.stdout.replace(path, name)
}

#[track_caller]
fn checks(args: &[&str], path: &str, code: i32) -> String {
    let checked = run(&[&["config", "check"], args, &[path]].concat());
    checked.prints(code, "");
    shown(&checked, path)
}

#[test]
fn a_check_shows_what_the_servers_offer() {
    let path = configuration("check-fine.yaml", "as-needed", &["sky", "sea", "off"]);
    insta::assert_snapshot!(checks(&[], &path, 0), @r#"
    check-fine.yaml: 2 servers, disabled: off

    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1
    sea     up     2026-07-28      2          1          0        1

    tools are called SERVER_TOOL, as in `sky_get_weather` for `get_weather` of `sky`; `naming: on-collision` in the configuration keeps the names that only one server has

    collision  name or URI                     served by  hidden
    resource   map://features/alpine-valley-1  sky        sea

    a resource keeps its URI: the first of these servers in the file serves it; to use that of another server, write that server first

    OK
    "#);
}

#[test]
fn a_check_names_what_variants_say_of_nothing_and_fails() {
    let path = configuration("check-slips.yaml", "as-needed", &["sky"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let variants = concat!(
        "variants:\n  standard: {}\n  brief:\n    tools: ['get_*', 'git_*']\n",
        "    overrides: {tools: {get_wether: {name: weather}}}\n",
    );
    std::fs::write(&path, text + variants).unwrap();
    insta::assert_snapshot!(checks(&[], &path, 1), @"
    check-slips.yaml: 1 server

    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1

    variant   tools  a model reads  sent
    standard      2            603   871
    brief         2            603   871

    check-slips.yaml:9:25: `variants.brief.overrides.tools.get_wether` names no tool that a server has; did you mean `get_weather`?
    check-slips.yaml:8:22: `variants.brief.tools[1]` matches nothing: `git_*`; correct it, or take it out

    2 problems
    ");
}

#[test]
fn a_guard_that_matches_nothing_is_a_note_and_no_failure() {
    let path = configuration("check-guards.yaml", "as-needed", &["sky"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let guard = "variants:\n  standard: {tools: {exclude: ['*delete*', get_wether]}}\n";
    std::fs::write(&path, text + guard).unwrap();
    insta::assert_snapshot!(checks(&[], &path, 0), @"
    check-guards.yaml: 1 server

    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1

    variant   tools  a model reads  sent
    standard      2            603   871

    note: check-guards.yaml:6:32: `variants.standard.tools.exclude[0]` matches nothing now: `*delete*`; it will exclude what the servers add later
    note: check-guards.yaml:6:44: `variants.standard.tools.exclude[1]` matches nothing now: `get_wether`; did you mean `get_weather`?

    OK
    ");
    let server = Server::serve(&[&path]);
    assert_lacks(&server.said, &["matches nothing"]);
}

#[test]
fn a_name_in_access_that_fits_nothing_is_a_note() {
    let path = configuration("check-access.yaml", "always", &["sky"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let access = "access:\n  - {when: {anyone: on}, allow: [sky_get_wether, 'get_wea*', 'map://x'], deny: ['*delete*', get_weather]}\n";
    std::fs::write(&path, text + access).unwrap();
    let said = checks(&[], &path, 0);
    let (_, notes) = said.split_once("\n\nnote: ").unwrap();
    insta::assert_snapshot!(notes, @"
    check-access.yaml:6:34: `access[0].allow[0]` matches nothing now: `sky_get_wether`; did you mean `sky_get_weather`?
    note: check-access.yaml:6:50: `access[0].allow[1]` matches nothing now: `get_wea*`; did you mean `sky_get_weather`?
    note: check-access.yaml:6:81: `access[0].deny[0]` matches nothing now: `*delete*`; it will deny what the servers add later

    OK
    ");
}

/// Rules that have no effect for a reason that is not seen in them.
#[test]
fn rules_for_results_and_access_that_change_nothing_are_noted() {
    let path = configuration("check-idle.yaml", "on-collision", &["sky"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let rules = concat!(
        "access: [{when: {anyone: on}, allow: ['*'], deny: ['sky_delete*']}]\n",
        "results:\n  - {tools: [get_wether], limits: {tokens: 2000}}\n",
    );
    std::fs::write(&path, text + rules).unwrap();
    let said = checks(&[], &path, 0);
    assert_contains(
        &said,
        &[
            "`access[0].deny[0]` matches nothing now: `sky_delete*`; names have no prefix here: write `{server: sky, tools: \"delete*\"}`\n",
            "`results[0].tools[0]` matches nothing: `get_wether`; did you mean `get_weather`?\n",
            "`results[0].limits` are only for clients that declare features; for all clients, add `for: everyone`\n",
        ],
    );
}

#[test]
fn an_issuer_whose_keys_cannot_be_fetched_is_noted_and_in_the_status() {
    let text = sky("public-url: https://mcp.example\n\
         auth: {issuers: [{issuer: 'https://idp.example', jwks: 'http://127.0.0.1:1/keys', scopes: [mcp]}]}\n");
    let path = file("check-issuer.yaml", &text);
    let missing = "keys of https://idp.example not fetched: http://127.0.0.1:1/keys: connection refused; until they are, each \
                   token of this issuer is answered with 503\n";
    let checked = run(&["config", "check", &path]).exited(0);
    let note = format!("check-issuer.yaml: `auth.issuers`: {missing}");
    assert_contains(&checked.stderr, &[&note]);
    let odd = run(&["config", "check", &file("line\nbreak.yaml", &text)]).exited(0);
    assert_contains(&odd.stderr, &["line\\nbreak.yaml: `auth.issuers`: "]);
    let (_serving, mut said) = crate::starting::started(&path);
    let address = said.find_map(|line| Some(line.strip_prefix("status: vary status ")?.to_owned()));
    assert!(said.any(|line| line.starts_with("listening on ")));
    let status = run(&["status", &address.unwrap()]).data(0);
    assert_contains(&status, &[missing]);
}

#[test]
fn the_own_address_among_the_servers_is_a_problem_also_if_nothing_is_served() {
    let text = format!(
        "listen: 127.0.0.1:9219\nservers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  me: {{url: 'http://localhost:9219/mcp'}}\n"
    );
    let path = file("check-own.yaml", &text);
    let said = run(&["config", "check", "--offline", &path]).data(1);
    let problem = "check-own.yaml: `servers.me` has the address on which this file is served; take its entry out\n";
    assert_contains(&said, &[problem]);
    let said = run(&["config", "check", &path]).data(1);
    assert_contains(&said, &[problem]);
    assert_ends(&said, "\n1 problem\n");
    let usual = file(
        "check-own-usual.yaml",
        "servers: {me: {url: 'http://127.0.0.1:8800/mcp'}}\n",
    );
    let said = run(&["config", "check", "--offline", &usual]).data(1);
    let expected = "`servers.me` has the address on which this file is served";
    assert_contains(&said, &[expected]);
}

#[test]
fn a_check_names_servers_that_are_down_and_fails() {
    let path = configuration("check-down.yaml", "always", &["sky", "gone"]);
    insta::assert_snapshot!(checks(&[], &path, 1), @r#"
    check-down.yaml: 2 servers

    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1
    gone    down   -               -          -          -        -

    server `gone`: the program `no-such-program` was not found; install it, put its directory on `PATH`, or give its full path

    tools are called SERVER_TOOL, as in `sky_get_weather` for `get_weather` of `sky`

    1 problem
    "#);
}

#[test]
fn naming_on_collision_is_not_advised_where_it_is_set() {
    let path = configuration("check-on-collision.yaml", "on-collision", &["sky", "sea"]);
    let shown = checks(&[], &path, 0);
    let line = "4 tools are called SERVER_TOOL, as in `sky_get_weather`, since several servers have a `get_weather`\n";
    assert_contains(&shown, &[line]);
    assert_lacks(&shown, &["naming:"]);
}

/// SV-14
#[test]
fn a_check_names_every_collision_with_who_wins() {
    let path = configuration("check-collisions.yaml", "never", &["sky", "sea"]);
    insta::assert_snapshot!(checks(&[], &path, 0), @r#"
    check-collisions.yaml: 2 servers

    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1
    sea     up     2026-07-28      2          1          0        1

    collision  name or URI                     served by  hidden
    tool       get_weather                     sky        sea
    tool       get_forecast                    sky        sea
    resource   map://features/alpine-valley-1  sky        sea
    prompt     weather_check                   sky        sea

    with `naming: always` or `naming: on-collision` every name can be used

    a resource keeps its URI: the first of these servers in the file serves it; to use that of another server, write that server first

    OK
    "#);
}

#[test]
fn a_check_can_leave_the_servers_alone() {
    let path = configuration("check-offline.yaml", "never", &["gone", "off", "far"]);
    let shown = checks(&["--offline"], &path, 0);
    insta::assert_snapshot!(shown, @r#"
    check-offline.yaml: 2 servers, disabled: off

    gone  starts no-such-program
    far   connects to https://example.com:8443

    OK
    "#);
}

#[test]
fn a_check_says_every_mistake_as_a_place_in_the_file() {
    let text = "naming: sometimes\nservers:\n  a: {comand: x, timeout: 5000}\n  b b: {url: 'x?key=secret'}\n";
    let path = file("check-mistakes.yaml", text);
    insta::assert_snapshot!(checks(&[], &path, 1), @r#"
    check-mistakes.yaml:1:9: `naming` is `sometimes`; there are `as-needed`, `always`, `never`, `on-collision`
    check-mistakes.yaml:3:7: `servers.a.comand` is not a known key; did you mean `command`?
    check-mistakes.yaml:3:27: `servers.a.timeout` has no unit; write `5000ms` or `5000s`
    check-mistakes.yaml:4:3: `servers.b b` is not a server name, which has at most 64 ASCII letters, digits, `-`, `_` and `.`; call it `b-b`
    check-mistakes.yaml:4:14: `servers.b b.url` is not the URL of an MCP server; write it like http://127.0.0.1:8800/mcp

    5 problems
    "#);
    let served = run(&["serve", &path]);
    served.refuses(&[
        "has 5 mistakes",
        ":3:7: `servers.a.comand` is not a known key; did you mean `command`?",
    ]);
    assert_lacks(&served.stderr, &["secret"]);
    run(&["config", "check", "no-such-file"]).refuses(&["no-such-file cannot be read"]);
}

/// A program, such as an editor, reads the same.
#[test]
fn a_check_can_be_read_by_programs() {
    let text = "naming: sometimes\nservers:\n  a: {comand: x}\n";
    let path = file("check-json.yaml", text);
    insta::assert_snapshot!(checks(&["--json"], &path, 1), @r#"
    {
      "file": "check-json.yaml",
      "errors": [
        {
          "line": 1,
          "column": 9,
          "key": "naming",
          "message": "is `sometimes`",
          "fix": "there are `as-needed`, `always`, `never`, `on-collision`"
        },
        {
          "line": 3,
          "column": 7,
          "key": "servers.a.comand",
          "message": "is not a known key",
          "fix": "did you mean `command`?"
        }
      ]
    }
    "#);
    let path = configuration(
        "check-json-slips.yaml",
        "never",
        &["sky", "sea", "off", "gone"],
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let variants = "variants:\n  brief: {overrides: {tools: {get_weather: {arguments: {locatio: {hidden: on}}}}}}\n";
    std::fs::write(&path, text + variants).unwrap();
    let checked = checks(&["--json"], &path, 1);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    let servers = checked["servers"].as_array().unwrap().iter();
    let states: Vec<_> = servers
        .map(|server| (&server["name"], &server["state"]))
        .collect();
    assert_eq!(
        json!(states),
        json!([["sky", "up"], ["sea", "up"], ["gone", "down"]])
    );
    assert_eq!(checked["disabled"], json!(["off"]));
    let collision =
        json!({"list": "tools/list", "id": "get_weather", "shownFrom": "sky", "hidden": "sea"});
    assert!(
        checked["collisions"]
            .as_array()
            .unwrap()
            .contains(&collision),
        "{checked:#}"
    );
}

#[test]
fn a_check_without_the_servers_can_be_read_by_programs() {
    let path = configuration("check-json-offline.yaml", "never", &["sky"]);
    let checked = checks(&["--json", "--offline"], &path, 0);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked["servers"], json!([{"name": "sky"}]));
    assert_eq!(
        (&checked["errors"], &checked["notes"]),
        (&json!([]), &json!([]))
    );
}

/// What is wrong with a view has the place of what says it, be it in the variant that it starts from.
#[test]
fn a_slip_has_its_line() {
    let path = configuration("check-places.yaml", "as-needed", &["sky"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let variants = concat!(
        "variants:\n",
        "  base:\n",
        "    tools: {include: ['get_*'], exclude: [x, {name: 'git_*'}]}\n",
        "    overrides:\n",
        "      tools:\n",
        "        get_weather:\n",
        "          arguments: {location: {hidden: on}, locatio: {name: place}}\n",
        "  brief: {from: base, prompts: ['*wether*']}\n",
    );
    std::fs::write(&path, text + variants).unwrap();
    let checked = run(&["config", "check", "--json", &path]).json(1);
    let all = ["unmatched", "notes"].map(|key| checked[key].as_array().unwrap().iter());
    let slips = all.into_iter().flatten();
    let said = |slip: &Value| {
        let text = |key: &str| slip[key].as_str().unwrap().to_owned();
        let (variant, key, message) = (text("variant"), text("key"), text("message"));
        format!(
            "{variant} {}:{} {key} {message}; {}",
            slip["line"],
            slip["column"],
            text("fix")
        )
    };
    let said: Vec<_> = slips.map(said).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    base 11:47 variants.base.overrides.tools.get_weather.arguments.locatio is not an argument; did you mean `location`?
    base 11:34 variants.base.overrides.tools.get_weather.arguments.location.hidden hides an argument that the server requires; give it a `fixed` value or a `default`
    brief 11:47 variants.base.overrides.tools.get_weather.arguments.locatio is not an argument; did you mean `location`?
    brief 11:34 variants.base.overrides.tools.get_weather.arguments.location.hidden hides an argument that the server requires; give it a `fixed` value or a `default`
    brief 12:33 variants.brief.prompts[0] matches nothing: `*wether*`; did you mean `*weather*`?
    base 7:43 variants.base.tools.exclude[0] matches nothing now: `x`; it will exclude what the servers add later
    base 7:46 variants.base.tools.exclude[1] matches nothing now: `git_*`; it will exclude what the servers add later
    brief 7:43 variants.base.tools.exclude[0] matches nothing now: `x`; it will exclude what the servers add later
    brief 7:46 variants.base.tools.exclude[1] matches nothing now: `git_*`; it will exclude what the servers add later
    ");
}

#[test]
fn the_servers_of_other_programs_become_a_configuration() {
    let claude = file(
        "import.json",
        r#"{"mcpServers": {"sky": {"command": "x", "env": {"TOKEN": "s3cret-token"}, "autoApprove": []}}}"#,
    );
    let codex = file(
        "import.toml",
        "[mcp_servers.sky]\nurl = 'https://example.com/mcp'\n",
    );
    let (claude, codex) = (&claude, &codex);
    let imported = run(&["config", "import", claude, codex]).exited(0);
    assert_contains(&imported.stdout, &["  sky-2:\n    url: ", "s3cret-token"]);
    assert_lacks(&imported.stderr, &["s3cret"]);
    assert_contains(
        &imported.stderr,
        &[
            "note: ",
            "import.json:1:58: `mcpServers.sky.env.TOKEN` looks like a secret",
            "`sky-2` here",
        ],
    );
    let path = file("imported.yaml", &imported.stdout);
    assert_contains(&checks(&["--offline"], &path, 0), &[".yaml: 2 servers"]);
    run(&["config", "import", "--format", "codex", claude]).refuses(&["has no `mcp_servers`"]);
    run(&["config", "import", "--format", "zed", claude]).refuses(&["no format is called so"]);
}

#[test]
fn a_server_that_an_import_leaves_out_is_named_and_the_exit_code_is_1() {
    let one = r#"{"mcpServers": {"sky": {"command": "x"}, "one": {"comand": "uvx"}}}"#;
    let path = file("import-slip.json", one);
    let imported = run(&["config", "import", &path]).exited(1);
    assert_contains(&imported.stdout, &["  sky:\n"]);
    assert_contains(
        &imported.stderr,
        &[
            "import-slip.json:1:60: `mcpServers.one.comand` is not a known key, and is left out; did you mean `command`?\n",
            "\n`one` is left out\n",
        ],
    );
}

const README: &str = include_str!("../../../../README.md");

/// The block of the page that follows `heading` and is of this language.
fn block(heading: &str, language: &str) -> &'static str {
    let (_, after) = README.split_once(heading).unwrap();
    let (_, after) = after.split_once(&format!("```{language}\n")).unwrap();
    after.split("```").next().unwrap()
}

/// What a person with a `mcp.json` would write first.
#[test]
fn the_first_lines_of_the_readme_are_right() {
    let heading = "## Your own variants";
    let path = file("readme.json", block(heading, "json"));
    let imported = run(&["config", "import", &path]).data(0);
    let servers: String = imported
        .split_inclusive('\n')
        .filter(|line| !line.starts_with('#'))
        .collect();
    let shown = block(heading, "yaml");
    let own = shown.strip_prefix(&servers);
    let own = own.unwrap_or_else(|| panic!("{shown} does not begin with\n{servers}"));
    assert_eq!(own.lines().count(), 19);
    let path = file("readme.yaml", shown);
    let said = checks(&["--offline"], &path, 0);
    assert_contains(&said, &[".yaml: 2 servers"]);
    let expected = "vary config import .mcp.json > vary.yaml";
    assert_starts(block(heading, "sh"), expected);
}

#[test]
fn known_clients_are_shown_with_their_reasons() {
    insta::assert_snapshot!(run(&["config", "clients"]).data(0), @"
    client       name                      gets
    Claude Code  claude-code               result: content
    Codex        codex-mcp-client          result: content
    Copilot CLI  github-copilot-developer  result: content
    Gemini CLI   gemini-cli*               dialect: gemini

    Claude Code shows its model `structuredContent` alone, so that text and images beside it are lost
      https://github.com/anthropics/claude-code/issues/79944
    Codex shows its model `structuredContent` alone, so that text beside it is lost
      https://github.com/openai/codex/issues/38287
    Copilot CLI shows its model both fields, so that what they share is paid for twice
      https://github.com/github/copilot-cli/issues/4515
    Gemini CLI hands schemas to a model that refuses `$ref` and other keywords; one such tool fails the request
      https://github.com/google-gemini/gemini-cli/issues/13326
    ");
}

#[test]
fn the_schema_is_printed_as_it_is_committed() {
    let committed = include_str!("../../../../docs/vary.schema.json");
    assert_eq!(run(&["config", "schema"]).data(0), committed);
}

#[test]
fn several_servers_are_served_although_one_is_down() {
    let path = configuration("serve-several.yaml", "as-needed", &["sky", "gone", "sea"]);
    let server = Server::start(&["serve", &path]);
    // The report says it.
    assert_lacks(&server.said, &["two servers offer the same"]);
    // What the log says of it has a pause by chance in it.
    let said = server.said.lines().filter(|line| {
        !line.contains("Z  WARN ")
            && !line.starts_with("starting 3 servers at ")
            && !line.starts_with("ready: ")
    });
    let said = said.take_while(|line| !line.starts_with("serving at"));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r#"
    in front of 3 servers
      sky   weather 2.0.0, revision 2026-07-28, 2 tools
      gone  down: the program `no-such-program` was not found; install it, put its directory on `PATH`, or give its full path
      sea   weather 2.0.0, revision 2026-07-28, 2 tools
    tools are called SERVER_TOOL, as in `sky_get_weather` for `get_weather` of `sky`; `naming: on-collision` in the configuration keeps the names that only one server has
    1 collision of names or URIs: `map://features/alpine-valley-1` is that of `sky`, and that of `sea` is hidden; `vary config check` shows all, and what to do
    "#);
    assert_starts(&server.post(INITIALIZE), "HTTP/1.1 200 OK");
    let shown = run(&[
        "call",
        "sea_get_weather",
        r#"{"location":"Bern"}"#,
        &server.url(),
    ])
    .data(0);
    assert_contains(&shown, &["Bern"]);
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_contains(&stderr, &[r#"{"mcpServers":{"vary":"#]);
}

#[test]
fn several_servers_that_are_all_down_stop_nobody() {
    let path = configuration("serve-none.yaml", "as-needed", &["gone", "lost"]);
    let server = Server::start(&["serve", &path]);
    assert_contains(&server.said, &["  lost  down: "]);
    assert_starts(&server.post(INITIALIZE), "HTTP/1.1 200 OK");
    assert_eq!(server.end().0, Some(0));
}

/// EXT-3
#[test]
fn a_file_can_switch_both_extensions_off() {
    let text = format!(
        "variants: off\nnegotiation: off\nservers: {{sky: {{command: {VARY:?}, args: [weather]}}}}"
    );
    let path = file("serve-plain.yaml", &text);
    let server = Server::serve(&[&path]);
    let response = server.post(INITIALIZE);
    assert_contains(&response, &["serverInfo"]);
    assert_lacks(&response, &["extensions"]);
}

#[test]
fn one_server_of_several_can_be_served_alone() {
    let path = configuration("serve-one.yaml", "as-needed", &["sky", "gone"]);
    let server = Server::start(&["serve", &path, "--server", "sky"]);
    assert_contains(&server.said, &["in front of weather 2.0.0"]);
    run(&["serve", &path, "--server", "gone"])
        .refuses(&["program `no-such-program` was not found"]);
    run(&["serve", &path, "--server", "ski"])
        .refuses(&["`servers` has no server `ski`; it has `sky`, `gone`"]);
}

#[test]
fn all_servers_of_a_clients_file_are_served() {
    let entry = json!({"command": VARY, "args": ["weather"], "autoApprove": []});
    let servers = json!({"mcpServers": {"my sky": entry, "sea": entry, "off": {"command": "x", "disabled": true}}});
    let path = file("clients-file.json", &servers.to_string());
    let server = Server::serve(&[&path]);
    let said = &server.said;
    assert_contains(
        said,
        &["note: ", "is called `my-sky` here", "in front of 2 servers"],
    );
}

#[test]
fn who_serves_what_is_shown() {
    let path = configuration(
        "inspect-several.yaml",
        "on-collision",
        &["sky", "gone", "sea"],
    );
    let inspected = run(&["inspect", &path]);
    inspected.prints(0, "");
    insta::assert_snapshot!(inspected.stdout, @"
    server  state  revision    tools  resources  templates  prompts
    sky     up     2026-07-28      2          1          0        1
    gone    down   -               -          -          -        -
    sea     up     2026-07-28      2          1          0        1

    server `gone`: the program `no-such-program` was not found; install it, put its directory on `PATH`, or give its full path

    tokens               standard  compact  directory  read-only
    a model reads            1208      788        335       1208
    of standard             100 %     65 %       28 %      100 %
    sent to the client       1744      896        457       1744
    prompts                   131       91         91        131
    resources                  81       64         64         81
    instructions              130      130        130        130
    a task with 1 tool       1208      788        636       1208
    a task with 3 tools      1208      788       1192       1208
    by tool
    sky                       603      393        137        603
      sky_get_weather         276      196         82        276
      sky_get_forecast        327      197         55        327
    sea                       603      393        137        603
      sea_get_weather         276      196         82        276
      sea_get_forecast        327      197         55        327
    describe_tools              -        -         59          -
    a task reads the list; in `directory`, each tool that is used adds its schema

    collision  name or URI                     served by  hidden
    resource   map://features/alpine-valley-1  sky        sea

    a resource keeps its URI: the first of these servers in the file serves it; to use that of another server, write that server first

    variants, best first
      standard   stable · contextSize=standard
                 Everything as the server describes it: all tools, full descriptions and schemas.
      compact    stable · contextSize=compact
                 All tools in fewer words: the first sentence of each description, and from the rest
                 only what callers need. Accepts the same arguments. For small context windows and
                 execution; for planning with unfamiliar tools prefer `standard`.
      directory  stable
                 All tools with the first sentence of each description, and the names and types of
                 arguments. `describe_tools` has the rest. Calls that do not fit are answered with the
                 schema. For many tools, of which a task needs few.
      read-only  stable · accessLevel=readonly · contextSize=standard
                 Only the tools that declare that they change nothing. For analysis and review. It
                 trusts what each server declares, so it does not protect against a server.
    ");
}

#[test]
fn who_serves_what_is_in_the_json() {
    let path = configuration("inspect-json.yaml", "never", &["sky", "gone", "sea"]);
    let shown = run(&["inspect", &path, "--json"]).json(0);
    assert_eq!(shown["servers"][0]["lists"]["tools/list"], 2);
    assert_eq!(shown["servers"][0]["server"]["name"], "weather");
    let gone = &shown["servers"][1];
    assert_eq!(
        (&gone["name"], &gone["state"]),
        (&json!("gone"), &json!("down"))
    );
    assert_contains(gone["error"].as_str().unwrap(), &["no-such-program"]);
    let first = json!({"list": "tools/list", "id": "get_weather", "server": "sky", "upstreamName": "get_weather"});
    assert_eq!(shown["served"][0], first);
    let collision =
        json!({"list": "tools/list", "id": "get_weather", "shownFrom": "sky", "hidden": "sea"});
    assert_eq!(shown["collisions"][0], collision);
    assert_eq!(shown["variants"][0]["tools"][0]["server"], "sky");
}

#[test]
fn a_configuration_of_one_server_is_inspected_and_called_as_that_server() {
    let path = configuration("one-server.yaml", "as-needed", &["sky"]);
    let shown = run(&["inspect", &path]).data(0);
    assert_starts(&shown, "weather 2.0.0, revision");
    let called = run(&["call", "get_weather", r#"{"location":"Bern"}"#, &path]).data(0);
    assert_contains(&called, &["Bern"]);
}

#[test]
fn nothing_can_be_inspected_when_all_servers_are_down() {
    let path = configuration("all-down.yaml", "as-needed", &["gone"]);
    run(&["inspect", &path]).refuses(&["program `no-such-program` was not found"]);
}
