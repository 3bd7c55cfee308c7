//! What `vary connect` refuses, before it changes anything.

use crate::connect::Home;
use crate::program::VARY;

/// `--write` over `text` is refused with each of `parts`, and changes nothing.
#[track_caller]
fn refuses_file(client: &str, file: &str, text: &str, parts: &[&str]) {
    let home = Home::new("refused");
    home.write(file, text);
    let run = home.connect(&[client, "--write", "--", VARY, "weather"]);
    run.refuses(parts);
    assert_eq!(home.read(file), text);
    let path = home.path(file);
    let beside: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    let expected = if file.contains('/') { 1 } else { 2 };
    assert_eq!(beside.len(), expected, "{beside:?}");
}

#[track_caller]
fn refuses(args: &[&str], parts: &[&str]) {
    let home = Home::new("arguments");
    home.connect(args).refuses(parts);
    assert!(!home.path(".cursor").exists() && !home.path(".codex").exists());
}

#[test]
fn a_file_that_cannot_be_edited_is_refused_with_the_place() {
    refuses_file(
        "cursor",
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": []\n}",
        &[".cursor/mcp.json:2:17: `mcpServers` is a list; servers are in an object: write `{}`\n"],
    );
    refuses_file(
        "gemini-cli",
        ".gemini/settings.json",
        "{\n  \"theme\": \"x\",\n  mcpServers: {}\n}",
        &["settings.json:3:3: is not JSON: a key has to begin with a double quotation mark"],
    );
    refuses_file(
        "codex",
        ".codex/config.toml",
        "model = x\n",
        &["config.toml:1:9: string values must be quoted"],
    );
    refuses_file(
        "codex",
        ".codex/config.toml",
        "mcp_servers = {}\n",
        &["config.toml:1:15: `mcp_servers` is written inline; write it as `[mcp_servers.NAME]`"],
    );
    refuses_file(
        "claude-code",
        ".claude.json",
        "{\"mcpServers\": {\"vary\": {\"command\": \"mine\"}}}",
        &[
            ".claude.json:1:17: `mcpServers.vary` exists already; choose another name, or take it out",
        ],
    );
}

#[test]
fn a_backup_of_somebody_else_is_not_overwritten() {
    let home = Home::new("backup");
    home.write(".cursor/mcp.json", "{}");
    home.write(".cursor/mcp.json.vary-backup", "precious");
    let run = home.connect(&["cursor", "--write", "--", VARY, "weather"]);
    run.refuses(&["mcp.json.vary-backup exists, and Vary does not know it; move it away"]);
    assert_eq!(home.read(".cursor/mcp.json.vary-backup"), "precious");
}

#[cfg(unix)]
#[test]
fn a_protected_file_a_dangling_link_and_a_directory_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("protected");
    let args = ["cursor", "--write", "--", VARY, "weather"];
    let file = home.write(".cursor/mcp.json", "{}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    home.connect(&args)
        .refuses(&["mcp.json is read-only; make it writable, or edit it by hand"]);
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(home.path("nowhere"), &file).unwrap();
    home.connect(&args)
        .refuses(&["mcp.json is a link to a file that does not exist"]);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    home.connect(&args).refuses(&["mcp.json is not a file"]);
}

#[test]
fn a_secret_is_not_written_and_not_shown() {
    let header = "Authorization: Bearer ghp_0123456789abcdef";
    for (client, syntax) in [
        ("cursor", "`${env:VARIABLE}`"),
        ("codex", "`VARIABLE`"),
        ("opencode", "`{env:VARIABLE}`"),
    ] {
        let run = Home::new("secret").connect(&[client, "--header", header, "--write"]);
        run.refuses(&[
            "the value of --header Authorization looks like a secret",
            "write 'Authorization: ${VARIABLE}'",
            syntax,
        ]);
        assert!(!run.stderr.contains("ghp_"), "{}", run.stderr);
    }
    let run = Home::new("secret").connect(&["cursor", "https://h/mcp?token=ghp_0123456789abcdef"]);
    run.refuses(&["TARGET or COMMAND has a secret"]);
    assert!(!run.stderr.contains("ghp_"), "{}", run.stderr);
    let run =
        Home::new("secret").connect(&["cursor", "--", "npx", "x", "--api-key=0123456789abcdef"]);
    run.refuses(&["put it into `headers` or `env` of a configuration as `${VARIABLE}`"]);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    refuses(
        &["emacs"],
        &[
            "error: `emacs` is not one of the clients whose files Vary writes; write one of `claude-code`, `claude-desktop`, `cursor`, ",
            "`, or give the address that `vary serve` prints to another client",
        ],
    );
    refuses(
        &[],
        &["error: CLIENT is missing; write one of `claude-code`, "],
    );
    refuses(
        &["cursor", "vary.yml"],
        &["vary.yml cannot be read: no such file in "],
    );
    refuses(
        &["cursor", "vary"],
        &["`vary` is not a file, and not an address; write a configuration, a URL"],
    );
    refuses(
        &["cursor", "ftp://h/mcp"],
        &["`ftp://h/mcp` is not the URL of an MCP server"],
    );
    refuses(
        &["cursor", "--name", "a b"],
        &["--name: `a b` cannot be the name of a server"],
    );
    refuses(&["cursor", "--move"], &["--write"]);
    refuses(&["cursor", "--write", "--remove"], &["cannot be used with"]);
    refuses(
        &["windsurf", "--project"],
        &["Windsurf has no file in a project; leave --project out"],
    );
    refuses(
        &["cursor", "--remove"],
        &["Vary has written nothing to ", ".cursor/mcp.json"],
    );
    refuses(
        &["cursor", "http://h/x", "--variant", "a"],
        &["--variant needs the address of a gateway, which ends in /mcp"],
    );
    refuses(
        &["claude-desktop", "--header", "X-Team: a"],
        &["--header is for an address"],
    );
    refuses(
        &["codex", "--header", "X-Team: a ${B}"],
        &["Codex cannot write the value of --header X-Team"],
    );
    refuses(
        &["cursor", "--write", "--move"],
        &["--move needs to know what the gateway serves; name its configuration"],
    );
}

#[test]
fn a_variant_that_the_configuration_does_not_have_is_refused_before_anything_is_written() {
    let home = Home::new("file-variant");
    let variants = "variants: {standard: {}, agent: {description: a}}";
    let text = format!("servers: {{sky: {{command: x}}}}\n{variants}\n");
    home.write("project/v.yaml", &text);
    let refuses = |args: &[&str], fix: &str| {
        let run = home.connect(&[&["cursor", "v.yaml", "--variant"], args].concat());
        run.refuses(&[&format!("error: v.yaml has no variant {fix}\n")]);
        assert!(!home.path(".cursor").exists());
    };
    refuses(&["agnet"], "`agnet`; did you mean `agent`?");
    refuses(&["agnet", "--write"], "`agnet`; did you mean `agent`?");
    refuses(&["other"], "`other`; choose one of `standard`, `agent`");
}

/// It would be empty once its servers are moved, and Vary would start itself.
#[test]
fn the_clients_own_file_is_not_served_to_it() {
    let home = Home::new("own");
    home.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
    );
    let run = home.connect(&["claude-code", "--project", ".mcp.json"]);
    run.refuses(&[
        ".mcp.json is the client's own file",
        "vary config import .mcp.json > vary.yaml",
    ]);
}
