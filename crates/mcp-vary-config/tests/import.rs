//! Other programs' files as configurations of Vary.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;

use mcp_vary_config::{Format, ImportSource, Imported, Source, import};

/// Reads what is printed, as `vary config check` does, with every variable set; then shows it and its notes.
#[track_caller]
fn shown(imported: &Imported) -> String {
    let any = |name: &str| Some(format!("value-of-{name}"));
    let file = Source::new("vary.yaml", &imported.yaml).read(&any);
    let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}\n{}", imported.yaml));
    assert_eq!(file.notes, []);
    let mut out = imported.yaml.clone();
    for note in &imported.notes {
        let note = note.to_string();
        assert!(!note.contains("s3cret"), "{note}");
        write!(out, "\n--- {note}").unwrap();
    }
    out
}

#[track_caller]
fn imports(files: &[(&str, &str)]) -> String {
    let files: Vec<ImportSource<'_>> = files
        .iter()
        .map(|(name, text)| ImportSource::new(name, text))
        .collect();
    shown(&import(&files).unwrap_or_else(|mistakes| panic!("{mistakes}")))
}

macro_rules! becomes {
    ($test:ident, $file:literal) => {
        #[test]
        fn $test() {
            insta::assert_snapshot!(imports(&[($file, include_str!(concat!("import/", $file)))]));
        }
    };
}

becomes!(the_file_of_claude, "claude.json");
becomes!(the_file_of_cursor_or_windsurf, "cursor.json");
becomes!(the_settings_of_gemini, "gemini.json");
becomes!(the_proposed_mcp_json, "proposed.json");
becomes!(the_file_of_vs_code, "vscode.jsonc");
becomes!(the_configuration_of_codex, "codex.toml");
becomes!(the_configuration_of_opencode, "opencode.jsonc");
becomes!(the_configuration_of_opencode_2, "opencode-v2.jsonc");

/// Which file it is does not depend on its name.
#[test]
fn a_file_is_known_by_what_stands_in_it() {
    for text in [
        include_str!("import/vscode.jsonc"),
        include_str!("import/codex.toml"),
        include_str!("import/opencode.jsonc"),
    ] {
        assert_eq!(imports(&[("a", text)]), imports(&[("a", text)]));
        let (one, other) = (imports(&[("x.json", text)]), imports(&[("x", text)]));
        assert_eq!(one.replace("x.json", "x"), other);
    }
}

#[test]
fn several_files_become_one() {
    let one = r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}, "docs": {"command": "a"}}}"#;
    let two = "[mcp_servers.docs]\ncommand = 'b'\n[mcp_servers.git]\ncommand = 'uvx'\nargs = ['mcp-server-git']\n";
    let three = r#"{"docs": {"command": "c", "tools": ["*"]}}"#;
    insta::assert_snapshot!(imports(&[("one.json", one), ("two.toml", two), ("three", three)]), @r"
# Made by `vary config import` of one.json, two.toml, three.
servers:
  git:
    command: uvx
    args: [mcp-server-git]
  docs:
    command: a
  docs-2:
    command: b
  docs-3:
    command: c

--- two.toml:1:1: `mcp_servers.docs` is called `docs-2` here: one.json has a `docs`; this works; for other names, rename one of them
--- two.toml:3:1: `mcp_servers.git` is in one.json already; it is taken once
--- three:1:10: `docs` is called `docs-3` here: one.json has a `docs`; this works; for other names, rename one of them
");
}

/// A tool is named as its server names it, which holds when another server is enabled.
#[test]
fn what_was_allowed_is_all_that_is_shown() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "includeTools": ["find"]}}}"#;
    insta::assert_snapshot!(imports(&[("x.json", text)]), @r"
# Made by `vary config import` of x.json.
servers:
  a:
    command: x
# Which tools are shown, as the clients had it.
x-tools: &tools
  include:
    - {server: a, name: find}
variants:
  standard: {tools: *tools}
  compact: {tools: *tools}
  directory: {tools: *tools}
  read-only: {tools: *tools}
");
    let nothing = r#"{"mcpServers": {"a": {"command": "x", "tools": []}, "b": {"command": "x", "disabled": true}}}"#;
    assert!(
        imports(&[("x.json", nothing)]).contains("x-tools: &tools\n  exclude: [\"*\"]\nvariants:")
    );
    let off = r#"{"mcpServers": {"a": {"command": "x", "excludeTools": ["b"], "disabled": true}, "c": {"command": "x"}}}"#;
    let expected = "  exclude: []\n    # - {server: a, name: b}  # when it is enabled\n";
    assert!(imports(&[("x.json", off)]).contains(expected));
}

#[test]
fn a_file_that_lacks_servers_of_others_gets_a_variant() {
    let one = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y", "disabled": true}}}"#;
    let two = r#"{"mcpServers": {"A b": {"command": "x"}, "a": {"command": "z", "disabledTools": ["t"]}}}"#;
    let sources = [("one", one), ("two", two)].map(|(name, text)| {
        let file = ImportSource::new(name, text);
        file.with_variant(name)
    });
    let imported = import(&sources).unwrap();
    let names = |at: usize| -> Vec<(&str, &str)> {
        let servers = imported.files[at].servers.iter();
        servers.map(|(from, to)| (&**from, &**to)).collect()
    };
    assert_eq!(names(0), [("a", "a")]);
    assert_eq!(names(1), [("A b", "A-b"), ("a", "a-2")]);
    let variants: Vec<_> = imported
        .files
        .iter()
        .map(|it| it.variant.as_deref())
        .collect();
    assert_eq!(variants, [Some("one"), Some("two")]);
    let printed = shown(&imported);
    assert!(
        printed.contains(
            "  two:\n    from: standard\n    servers: [A-b, a-2]\n    tools:\n      exclude:\n        - {server: a-2, name: t}\n"
        ),
        "{printed}"
    );
}

#[test]
fn a_note_is_one_line_whatever_a_server_is_called() {
    let text = r#"{"mcpServers": {"a\nnote: all is well": {"command": "x"}}}"#;
    let imported = import(&[ImportSource::new("x.json", text)]).unwrap();
    let note = imported.notes[0].to_string();
    assert!(
        note.contains("a\\nnote: all is well") && !note.contains('\n'),
        "{note}"
    );
}

#[test]
fn files_with_the_same_variant_have_it_together() {
    let files = [("one", "a"), ("two", "b"), ("one", "c")].map(|(variant, server)| {
        let text = serde_json::json!({"mcpServers": {server: {"command": server}}});
        (variant, text.to_string())
    });
    let printed = |count: usize| {
        let first = files.iter().take(count);
        let sources: Vec<ImportSource<'_>> = first
            .map(|(variant, text)| ImportSource::new("x", text).with_variant(variant))
            .collect();
        import(&sources).unwrap().yaml
    };
    assert!(!printed(1).contains("variants:"));
    let from = "    from: standard\n";
    let expected = format!("  one:\n{from}    servers: [a, c]\n  two:\n{from}    servers: [b]\n");
    let yaml = printed(3);
    assert!(yaml.ends_with(&expected), "{yaml}");
}

#[test]
fn a_server_is_taken_once_if_files_differ_in_its_tools_and_their_variants_differ() {
    let all = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let few = r#"{"mcpServers": {"a": {"command": "x", "includeTools": ["t"]}}}"#;
    let sources = [("one", all), ("two", few)].map(|(name, text)| {
        let file = ImportSource::new(name, text);
        file.with_variant(name)
    });
    for reversed in [false, true] {
        let mut files = sources;
        if reversed {
            files.reverse();
        }
        let imported = import(&files).unwrap();
        let names = imported.files.iter().map(|file| file.servers["a"].as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "a"]);
        let variants = imported.files.iter().map(|file| file.variant.as_deref());
        assert_eq!(variants.flatten().collect::<Vec<_>>(), ["two"]);
        let yaml = imported.yaml;
        let variant = "  two:\n    from: standard\n    servers: [a]\n    tools:\n      include:\n        - {server: a, name: t}\n";
        assert!(yaml.ends_with(variant), "{yaml}");
        assert!(!yaml.contains("x-tools"), "{yaml}");
    }
}

#[test]
fn a_server_with_a_name_keeps_it_and_a_fixed_variant_stays() {
    let one = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let two = r#"{"mcpServers": {"b": {"command": "y"}}}"#;
    let named = ImportSource::new("one", one).with_server_name("b");
    let imported = import(&[named, ImportSource::new("two", two)]).unwrap();
    assert_eq!(imported.files[0].servers["a"], "b");
    assert_eq!(imported.files[1].servers["b"], "b-2");
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let renamed = "`mcpServers.b` is called `b-2` here: one has a `b`; this works; for other names, rename one of them";
    assert!(notes[0].ends_with(renamed), "{notes:?}");
    let alone = named.with_variant("one").with_fixed_variant();
    let yaml = import(&[alone]).unwrap().yaml;
    assert!(yaml.contains("  one:\n    from: standard\n"), "{yaml}");
}

#[test]
fn the_file_of_a_project_has_variables_for_secrets_and_its_programs_run_there() {
    let text = r#"{"mcpServers": {
        "a": {"command": "x", "args": ["--token", "s3cret-value", "."], "cwd": "${workspaceFolder}/sub",
              "env": {"API_KEY": "s3cret-value", "MODE": "fast"}},
        "b": {"command": "y"},
        "c": {"url": "https://h/mcp?key=s3cret-value", "headers": {"Authorization": "Bearer s3cret-value"}}
    }}"#;
    let imported = import(&[ImportSource::new("x.json", text).with_project("/p/${A}")]).unwrap();
    assert!(!imported.yaml.contains("s3cret"), "{}", imported.yaml);
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 4, "{notes:?}");
    let first = "`mcpServers.a.args[1]` looks like a secret, and is `${A_KEY}` here; set the variable A_KEY";
    assert!(notes[0].ends_with(first), "{notes:?}");
    let needed: Vec<&str> = imported.variables.iter().map(String::as_str).collect();
    assert_eq!(needed, ["API_KEY", "A_KEY", "C_AUTHORIZATION", "C_KEY"]);
    let any = |name: &str| Some(format!("value-of-{name}"));
    let file = Source::new("vary.yaml", &imported.yaml).read(&any).unwrap();
    let mut directories = Vec::new();
    for server in &file.servers {
        if let mcp_vary_upstream::Target::Command { cwd, .. } = &server.target {
            directories.push(cwd.as_ref().unwrap().to_str().unwrap());
        }
    }
    assert_eq!(directories, ["/p/${A}/sub", "/p/${A}"]);
}

#[test]
fn different_secrets_of_projects_are_different_variables() {
    let servers = |server: &str, args: serde_json::Value, key: &str| {
        let entry = serde_json::json!({"command": "x", "args": args, "env": {"API_KEY": key}});
        serde_json::json!({"mcpServers": {server: entry}}).to_string()
    };
    let url = "https://u:first-pw@h/mcp?token=second-value";
    let args = serde_json::json!(["--token", "first-value", "--key", "second-value", url]);
    let one = servers("a", args, "of-one-server");
    let two = servers("b", serde_json::json!([]), "of-two-servers");
    let three = servers("c", serde_json::json!([]), "of-one-server");
    let project = |name, text| ImportSource::new(name, text).with_project("/p");
    let files = [
        project("1.json", &one),
        project("2.json", &two),
        project("3.json", &three),
    ];
    let imported = import(&files).unwrap();
    for line in [
        "args: [--token, \"${A_KEY}\", --key, \"${A_KEY_2}\", \"https://${A_KEY_3}@h/mcp?token=${A_KEY_2}\"]\n",
        "  b:\n    command: x\n    env:\n      API_KEY: \"${API_KEY_2}\"\n",
        "  c:\n    command: x\n    env:\n      API_KEY: \"${API_KEY}\"\n",
    ] {
        assert!(imported.yaml.contains(line), "{line}: {}", imported.yaml);
    }
    let needed: Vec<&str> = imported.variables.iter().map(String::as_str).collect();
    assert_eq!(
        needed,
        ["API_KEY", "API_KEY_2", "A_KEY", "A_KEY_2", "A_KEY_3"]
    );
    let note = "looks like a secret, and is `${A_KEY_3}` here; set the variable A_KEY_3";
    let mut notes = imported.notes.iter();
    assert!(notes.any(|found| found.to_string().ends_with(note)));
}

/// What the server `a` in the `file` needs of its client.
#[track_caller]
fn need(file: ImportSource<'_>) -> String {
    let imported = import(&[file]).unwrap();
    let need = imported.files[0].client_needs.get("a");
    need.map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_disabled_server_needs_nothing_else() {
    for (entry, key) in [
        (
            r#"{"command": "x", "args": ["."], "disabled": true}"#,
            "disabled",
        ),
        (r#"{"command": "x", "enabled": false}"#, "enabled"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        let expected = format!("it is disabled there (`{key}`)");
        assert_eq!(need(ImportSource::new("x.json", &text)), expected);
    }
}

#[test]
fn a_server_needs_the_folder_that_its_client_has_open_wherever_its_entry_refers_to_it() {
    for case in [
        r#"{"command": "x", "args": ["--root", "${workspaceFolder}/src"]} => ${workspaceFolder}"#,
        r#"{"command": "x", "args": ["${workspaceFolder:api}"]} => ${workspaceFolder}"#,
        r#"{"command": "x", "args": ["${workspaceFolderBasename}"]} => ${workspaceFolderBasename}"#,
        r#"{"command": "x", "args": ["${CLAUDE_PROJECT_DIR:-/x}"]} => ${CLAUDE_PROJECT_DIR}"#,
        r#"{"command": "x", "env": {"ROOT": "${workspaceRoot}"}} => ${workspaceRoot}"#,
        r#"{"command": "${cwd}/x"} => ${cwd}"#,
        r#"{"command": "x", "cwd": "${env:PWD}"} => ${PWD}"#,
        r#"{"command": "sh", "args": ["-c", "x $(pwd)"]} => $(pwd)"#,
        r#"{"url": "https://h/mcp?root=${workspaceFolder}"} => ${workspaceFolder}"#,
        r#"{"url": "https://h/mcp", "headers": {"Root": "${workspaceFolder}"}} => ${workspaceFolder}"#,
        r#"{"command": "x", "args": ["-y", "."]} => ."#,
        r#"{"command": "x", "args": ["../s3cret"]} => ../"#,
        r#"{"command": "x", "args": ["--root=./s3cret"]} => ./"#,
        r#"{"command": "x", "args": ["-v", ".:/data"]} => ."#,
        r#"{"command": "x", "args": ["${ROOT:-.}"]} => ."#,
        r#"{"command": "x", "env": {"ROOT": ".."}} => .."#,
        r#"{"command": "./x"} => ./"#,
        r#"{"command": "bin/x"} => command"#,
        r#"{"command": "x", "cwd": "sub"} => cwd"#,
        r#"{"command": "x", "cwd": "."} => cwd"#,
    ] {
        let (entry, reference) = case.split_once(" => ").unwrap();
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        let file = ImportSource::new("x.json", &text);
        let expected = format!("it uses the folder that the client has open (`{reference}`)");
        assert_eq!(need(file), expected, "{entry}");
        // The program of a project's server runs there.
        assert_eq!(need(file.with_project("/p")), "", "{entry}");
    }
    let toml = "[mcp_servers.a]\ncommand = 'x'\ncwd = 'sub'\n";
    assert!(need(ImportSource::new("x.toml", toml)).ends_with("(`cwd`)"));
    let opencode = r#"{"mcp": {"a": {"type": "local", "command": ["x", "{env:PWD}"]}}}"#;
    assert!(need(ImportSource::new("x.json", opencode)).ends_with("(`${PWD}`)"));
}

#[test]
fn a_server_needs_nothing_of_its_client_if_its_paths_are_the_same_in_each_folder() {
    for entry in [
        r#"{"command": "npx", "args": ["-y", "@a/b@1.0", "/data", "--", "...", ".env", "${userHome}/x"]}"#,
        r#"{"command": "/bin/x", "args": ["./x"], "cwd": "/srv"}"#,
        r#"{"command": "./x", "cwd": "${userHome}/srv"}"#,
        r#"{"command": "${env:TOOLS}/x", "env": {"URL": "http://127.0.0.1:80/"}}"#,
        r#"{"command": "x", "dev": {"watch": "${workspaceFolder}/**"}}"#,
        r#"{"url": "https://h/mcp/../x"}"#,
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        assert_eq!(need(ImportSource::new("x.json", &text)), "", "{entry}");
    }
}

#[test]
fn a_server_needs_its_client_to_read_a_file_of_variables() {
    for key in ["envFile", "env_file"] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "{key}": "/s3cret"}}}}}}"#);
        let file = ImportSource::new("x.json", &text);
        let expected = format!("it reads its variables from a file (`{key}`), which Vary does not");
        assert_eq!(need(file), expected);
        assert_eq!(need(file.with_project("/p")), expected);
    }
}

#[test]
fn the_open_folder_of_a_project_is_its_directory_wherever_its_program_runs() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "cwd": "${userHome}",
        "args": ["${workspaceFolder}/src", "${cwd}", "${env:PWD}", "${CLAUDE_PROJECT_DIR:-.}"]}}}"#;
    let file = ImportSource::new("x.json", text);
    let project = import(&[file.with_project("/p")]).unwrap().yaml;
    let args = "    args: [/p/src, /p, /p, /p]\n";
    assert!(project.contains(args), "{project}");
    let other = import(&[file]).unwrap().yaml;
    assert!(other.contains("./src"), "{other}");
}

#[track_caller]
fn refuses(file: ImportSource<'_>, expected: &str) {
    assert_eq!(import(&[file]).unwrap_err().to_string(), expected);
}

#[test]
fn a_configuration_of_vary_has_a_setting_beside_its_servers() {
    let setting = |text| ImportSource::new("vary.yaml", text).setting_of_vary();
    let variants = "servers: {a: {command: x}}\nvariants: {agent: {}}\n";
    assert_eq!(setting(variants).as_deref(), Some("variants"));
    assert_eq!(setting("servers: {a: {command: x}}"), None);
    assert_eq!(setting("servers: {a: {command: x}}\ninputs: []"), None);
    assert_eq!(setting("mcpServers: {a: {command: x}}"), None);
    assert_eq!(setting("a: ["), None);
}

#[test]
fn what_cannot_be_imported_says_why() {
    refuses(
        ImportSource::new("a.json", r#"{"model": "x"}"#),
        "a.json:1:1: no servers are found; they stand under `mcpServers`, `servers`, `mcp_servers` or `mcp`; name the \
         format with `--format`",
    );
    refuses(
        ImportSource::new("a.json", r#"{"mcpservers": {"a": {"command": "x"}}}"#),
        "a.json:1:2: `mcpservers` is not a known key; did you mean `mcpServers`?",
    );
    refuses(
        ImportSource::new("vary.yaml", "naming: always\nservers: {a: {command: x}}"),
        "vary.yaml:1:1: is a configuration of Vary already: it has `naming`; use it as it is: `vary serve FILE`",
    );
    refuses(
        ImportSource::new(
            "a.json",
            r#"{"mcpServers": {"a": {"comand": "x"}, "b": 3}}"#,
        ),
        "a.json:1:16: `mcpServers` has no server that can be used; name at least one with `command` or `url`\n\
         a.json:1:22: `mcpServers.a` has neither a command nor an address; it is left out\n\
         a.json:1:33: `mcpServers.a.comand` is not a known key, and is left out; did you mean `command`?\n\
         a.json:1:44: `mcpServers.b` is not a server; it is left out",
    );
    refuses(
        ImportSource::new("a.json", "{\"mcpServers\": }"),
        "a.json:1:16: is not JSON: expected value; look for a comma, colon, quote or bracket that is missing just before",
    );
    refuses(
        ImportSource::new("a.json", r#"{"mcpServers": {}}"#).with_format(Format::Codex),
        "a.json:1:1: has no `mcp_servers`, in which the format codex has its servers; choose another with `--format`, \
         or leave it out",
    );
}

#[test]
fn the_servers_of_zed_are_imported() {
    let zed = r#"{"theme": "One", "context_servers": {"a": {"source": "custom", "command": "x", "args": ["y"]}}}"#;
    let imported = imports(&[("settings.json", zed)]);
    assert!(
        imported.contains("servers:\n  a:\n    command: x\n    args: [\"y\"]\n"),
        "{imported}"
    );
    let refused = Source::new("settings.json", zed).read(&|_| None);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "settings.json:1:18: `context_servers` has servers as Zed writes them, which Vary has to import; run `vary config \
         import settings.json > vary.yaml`, and name vary.yaml instead"
    );
}

#[test]
fn every_format_has_a_name() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    let error = "claude".parse::<Format>().unwrap_err().to_string();
    assert!(
        Format::ALL
            .iter()
            .all(|format| error.contains(format.as_str()))
    );
}

#[test]
fn the_templates_of_continue_become_variables() {
    for case in [
        "${{ secrets.TOKEN }} => ${SECRETS_TOKEN}",
        "${{secrets.TOKEN}} => ${SECRETS_TOKEN}",
        "${{ inputs.user-name }} => ${INPUTS_USER_NAME}",
        "${{ secrets.org/pkg/KEY }} => ${SECRETS_ORG_PKG_KEY}",
        "Bearer ${{ secrets.A }}:${{ inputs.B }}! => Bearer ${SECRETS_A}:${INPUTS_B}!",
        "${{ vars.X }} ${HOME} => ${VARS_X} ${HOME}",
        "${{ secrets.A || 'x' }} => ${SECRETS_A_X}",
        "${{ secrets.TOKEN => $${{ secrets.TOKEN",
        "${{ secrets.TOKEN } => $${{ secrets.TOKEN }",
        "${{ secrets.A } ${{ secrets.B }} => $${{ secrets.A } ${SECRETS_B}",
        "$${{ secrets.A }} => $${{ secrets.A }}",
        "{{ secrets.A }} => {{ secrets.A }}",
    ] {
        let (written, expected) = case.split_once(" => ").unwrap();
        let text = serde_json::json!({"mcpServers": [{"name": "x", "command": "run", "env": {"T": written}}]});
        let imported = import(&[ImportSource::new("x.json", &text.to_string())]).unwrap();
        let line = format!("T: {}", serde_json::json!(expected));
        assert!(
            shown(&imported).contains(&line),
            "{written}: {}",
            imported.yaml
        );
        let is_noted = written.contains("vars.") || written.contains("||");
        assert_eq!(!imported.notes.is_empty(), is_noted, "{written}");
    }
}

/// Texts that YAML would take for something else.
#[test]
fn every_text_is_read_as_it_was() {
    let texts = r##"[
        "no", "on", "~", "", " ", "1.10", "0x1", "a: b", "# a", "a # b", "- a", "-", "--", "---", "[a]",
        "{a}", "*a", "&a", "!a", "%a", "@a", "`a`", "'a'", "\"a\"", "a\nb", "\t", "\u0001", "ü", "\u2028",
        "${A}", "\\", ",", "?", "<<", "=", "2027-01-31", "null", "Yes", "-y", "--flag", "a,b", "$", "$$"
    ]"##;
    let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": {texts}}}}}}}"#);
    let imported = import(&[ImportSource::new("x.json", &text)]).unwrap();
    let any = |name: &str| Some(format!("${{{name}}}"));
    let file = Source::new("x.yaml", &imported.yaml).read(&any).unwrap();
    let mcp_vary_upstream::Target::Command { args, .. } = &file.servers[0].target else {
        panic!("no command");
    };
    assert_eq!(*args, serde_json::from_str::<Vec<String>>(texts).unwrap());
}

/// What a reader does not see may be a trap: it is shown as an escape, and stays the text that it was.
#[test]
fn what_nobody_sees_is_escaped_and_reads_as_before() {
    let odd = "a\u{7f}\u{9b}\u{ad}\u{200b}\u{202e}\u{3164}\u{fe0f}\u{e0041}b";
    let text = serde_json::json!({"mcpServers": {"x": {
        "command": "run", "args": [odd], "env": {"NAME": odd}, "description": odd, "title": odd,
    }}});
    let text = text.to_string();
    let imported = import(&[ImportSource::new("x.json", &text)]).unwrap();
    let is_seen = |c: char| c == '\n' || !mcp_vary::text::is_invisible(c);
    assert!(
        imported.yaml.chars().all(is_seen),
        "{}",
        imported.yaml.escape_debug()
    );
    let file = Source::new("vary.yaml", &imported.yaml)
        .read(&|_: &str| None)
        .unwrap();
    let mcp_vary_upstream::Target::Command { args, env, .. } = &file.servers[0].target else {
        panic!("it is a command");
    };
    assert_eq!((args[0].as_str(), env["NAME"].as_str()), (odd, odd));
}
