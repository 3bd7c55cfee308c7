//! Configuration files: what they say, and everything that is wrong with them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod audit;
mod authentication;
mod experiments;
mod headers;
mod listener;
mod log;
mod places;
mod ranking;
mod rates;
mod reference;
mod rules;
mod server_auth;
mod store;
mod traces;
mod variables;
mod variant_edit;
mod variants;

use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_catalog::selection::client_rule::JsonContent;
use mcp_vary_config::{File, Source};
use mcp_vary_settings::config::Config;
use mcp_vary_settings::limits::Limits;
use mcp_vary_upstream::Isolation;
use mcp_vary_upstream::Processes;
use mcp_vary_upstream::Target;
use mcp_vary_view::{Dialect, ResultFields};
use proptest::prelude::{any, prop, proptest};

const SECRET: &str = "s3cret";

fn environment(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/data".to_owned()),
        "SECRET" => Some(SECRET.to_owned()),
        "TEN" => Some("10s".to_owned()),
        _ => None,
    }
}

#[track_caller]
fn read(name: &str, text: &str) -> File {
    let file = Source::new(name, text).read(&environment);
    file.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A server, which is the first line of most files here.
const SERVER: &str = "servers: {a: {command: x}}\n";

/// Reads a file with a server and `lines`, which begin in line 2.
#[track_caller]
fn read_lines(lines: &str) -> File {
    read("vary.yaml", &format!("{SERVER}{lines}"))
}

/// The configuration of the gateway for a file with a server and `lines`.
#[track_caller]
fn config_of(lines: &str) -> Config {
    config(&read_lines(lines))
}

/// What is noted of a file.
fn notes(file: &File) -> Vec<String> {
    file.notes.iter().map(ToString::to_string).collect()
}

/// What is noted of a file on a day.
fn notes_on(today: &str, text: &str) -> Vec<String> {
    let source = Source::new("vary.yaml", text).with_today(today.parse().unwrap());
    notes(&source.read(&environment).unwrap())
}

/// Reads the file and checks everything that is said of it, a line for each mistake.
#[track_caller]
fn refuses(name: &str, text: &str, expected: &str) {
    let mistakes = Source::new(name, text).read(&environment).unwrap_err();
    let reported: Vec<String> = mistakes.all.iter().map(ToString::to_string).collect();
    assert_eq!(reported, expected.lines().collect::<Vec<_>>(), "{text}");
    assert!(!format!("{mistakes:?}").contains(SECRET));
}

/// Checks what is said of a file with a server and `lines`, which begin in line 2.
#[track_caller]
fn refuses_lines(lines: &str, expected: &str) {
    refuses("vary.yaml", &format!("{SERVER}{lines}"), expected);
}

/// Checks what is said of an entry `a` of `servers`.
#[track_caller]
fn refuses_server(entry: &str, expected: &str) {
    refuses("vary.yaml", &format!("servers:\n  a: {entry}"), expected);
}

const YAML: &str = "
naming: on-collision
listen: 8800
variants: off
negotiation: on
page-size: 50
session-lifetime: 12h
limits: {body: 1 MiB, in-flight: 8, sessions: 100, read-timeout: 5s, drain: 30}
servers:
  git:
    command: uvx
    args: [mcp-server-git, --port, 8080]
    env: {LEVEL: 7, KEY: '${SECRET}', DEBUG: true}
    cwd: ${HOME}/x
    timeout: ${TEN}
    start-timeout: 2m
    ready-timeout: 500ms
    concurrency: 4
    max-message: 1 MiB
    ping: 1m
    hang-timeout: 10s
    restart: {first: 1s, longest: 1m}
    isolation: session
    forward-extensions: []
    connections: 2
  search:
    type: http
    url: https://example.com/mcp?key=${SECRET}
    headers: {Authorization: 'Bearer ${SECRET}'}
    connect-timeout: 3s
    max-body: 2 MiB
  off: {command: '${NONE}', disabled: true}
";

const TOML: &str = r#"
naming = "on-collision"
listen = 8800
variants = false
negotiation = true
page-size = 50
session-lifetime = "12h"
limits = {body = "1 MiB", in-flight = 8, sessions = 100, read-timeout = "5s", drain = 30}
[servers.git]
command = "uvx"
args = ["mcp-server-git", "--port", 8080]
env = {LEVEL = 7, KEY = "${SECRET}", DEBUG = true}
cwd = "${HOME}/x"
timeout = "${TEN}"
start-timeout = "2m"
ready-timeout = "500ms"
concurrency = 4
max-message = "1 MiB"
ping = "1m"
hang-timeout = "10s"
restart = {first = "1s", longest = "1m"}
isolation = "session"
forward-extensions = []
connections = 2
[servers.search]
type = "http"
url = "https://example.com/mcp?key=${SECRET}"
headers.Authorization = "Bearer ${SECRET}"
connect-timeout = "3s"
max-body = "2 MiB"
[servers.off]
command = "${NONE}"
disabled = true
"#;

const JSON: &str = r#"{
  "$schema": "x", "naming": "on-collision", "listen": 8800, "variants": false, "negotiation": true, "page-size": 50,
  "session-lifetime": "12h",
  "limits": {"body": "1 MiB", "in-flight": 8, "sessions": 100, "read-timeout": "5s", "drain": 30},
  "servers": {
    "git": {
      "command": "uvx", "args": ["mcp-server-git", "--port", 8080],
      "env": {"LEVEL": 7, "KEY": "${SECRET}", "DEBUG": true}, "cwd": "${HOME}/x", "timeout": "${TEN}",
      "start-timeout": "2m", "ready-timeout": 0.5, "concurrency": 4, "max-message": 1048576, "ping": 60, "hang-timeout": 10,
      "restart": {"first": 1, "longest": 60}, "isolation": "session", "forward-extensions": [], "connections": 2
    },
    "search": {
      "type": "http", "url": "https://example.com/mcp?key=${SECRET}",
      "headers": {"Authorization": "Bearer ${SECRET}"}, "connect-timeout": 3, "max-body": "2 MiB"
    },
    "off": {"command": "${NONE}", "disabled": true}
  }
}"#;

/// What the three files say of the server `git`.
fn limits_of_git() -> mcp_vary_upstream::Limits {
    let mut limits = mcp_vary_upstream::Limits::default();
    limits.idle = Duration::from_secs(10);
    limits.handshake = Duration::from_secs(120);
    limits.ready_timeout = Duration::from_millis(500);
    limits.concurrency = 4;
    limits.message = 1 << 20;
    limits.ping = Duration::from_secs(60);
    limits.hang_timeout = Duration::from_secs(10);
    limits.backoff = Duration::from_secs(1);
    limits.max_backoff = Duration::from_secs(60);
    limits.connections = 2;
    limits
}

/// The configuration of the gateway for this file.
fn config(file: &File) -> Config {
    let environment = Environment::new(|| 0, |bytes| bytes.fill(7));
    file.clone().into_config(environment)
}

#[track_caller]
fn says_everything(name: &str, text: &str) {
    let file = read(name, text);
    assert!(!format!("{file:?}").contains(SECRET));
    let [git, search] = &file.servers[..] else {
        panic!("not two servers: {file:?}");
    };
    let Target::Command {
        program,
        args,
        env,
        cwd,
    } = &git.target
    else {
        panic!("no command");
    };
    assert_eq!((git.name.as_str(), program.as_str()), ("git", "uvx"));
    assert_eq!(args, &["mcp-server-git", "--port", "8080"]);
    assert_eq!(
        (
            env["LEVEL"].as_str(),
            env["KEY"].as_str(),
            env["DEBUG"].as_str()
        ),
        ("7", SECRET, "true")
    );
    assert_eq!(cwd.as_deref(), Some("/data/x".as_ref()));
    let Target::Http { url, headers } = &search.target else {
        panic!("no URL");
    };
    assert_eq!(*url, "https://example.com/mcp?key=s3cret");
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert!(git.forwarded_extensions.is_empty() && git.isolation == Isolation::Session);
    assert_eq!(file.disabled, ["off"]);
    assert_eq!(
        format!("{:?}", git.limits),
        format!("{:?}", limits_of_git())
    );
    assert_eq!(
        (search.limits.connect, search.limits.body),
        (Duration::from_secs(3), 2 << 20)
    );
    assert_eq!(
        (file.program.listen.as_deref(), file.notes.len()),
        (Some("8800"), 0)
    );
    let config = config(&file);
    assert_eq!((config.servers.len(), config.key.0), (2, [7; 32]));
    assert_eq!(config.naming, Naming::OnCollision);
    assert_eq!((config.variants, config.negotiation), (false, true));
    assert_eq!(config.page_size.map(NonZeroUsize::get), Some(50));
    assert_eq!(config.session_lifetime, Duration::from_secs(12 * 3600));
    let limits = Limits::default().with_body(1 << 20).with_in_flight(8);
    let limits = limits
        .with_sessions(100)
        .with_read_timeout(Duration::from_secs(5));
    let limits = limits.with_drain(Duration::from_secs(30));
    assert_eq!(format!("{:?}", config.limits), format!("{limits:?}"));
}

#[test]
fn a_file_says_the_same_in_yaml_json_and_toml() {
    says_everything("vary.yaml", YAML);
    says_everything("vary.toml", TOML);
    says_everything("vary.json", JSON);
}

#[test]
fn what_a_file_does_not_say_stays_as_it_is() {
    let file = read("x", "servers: {b: {url: 'http://x/'}, a: {command: y}}");
    let names: Vec<&str> = file
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"]);
    let plain = format!("{:?}", mcp_vary_upstream::Limits::default());
    assert_eq!(format!("{:?}", file.servers[0].limits), plain);
    let config = config(&file);
    assert!(config.variants && config.negotiation && file.program.listen.is_none());
    assert_eq!(config.session_lifetime, Duration::from_secs(24 * 3600));
    let mirrored = ["ui", "tasks"].map(|name| format!("io.modelcontextprotocol/{name}"));
    assert_eq!(file.servers[0].forwarded_extensions, mirrored);
}

/// Whoever wrote the file sees it all after one reading.
#[test]
fn every_mistake_is_said_at_once_with_its_line_and_what_to_write() {
    let text = "
nameing: sometimes
naming: sometimes
listen: here
variants: [compact]
page-size: 0
limits: {boddys: 1, in-flight: many}
servers:
  my git!:
    comand: uvx
  a:
    command: 7
    args: -y
    env: {KEY: '${NONE}', LIST: [1]}
    startTimeout: 3
    timeout: 5000
    restart: {first: 1m, longest: 1s}
  b:
    url: example.com/mcp?key=typed-secret
    headers: {'X Key': 1, Key: \"typed-secret\\n\"}
    isolation: sesion
    serverUrl: http://x/
  c: {command: x, url: 'http://x/'}
  d: {type: sse, command: x}
  e: {type: stdio, url: 'http://x/', args: [x]}
  f: npx
";
    let mistakes = Source::new("vary.yaml", text)
        .read(&environment)
        .unwrap_err();
    insta::assert_snapshot!(mistakes, @r#"
    vary.yaml:2:1: `nameing` is not a known key; did you mean `naming`?
    vary.yaml:3:9: `naming` is `sometimes`; there are `as-needed`, `always`, `never`, `on-collision`
    vary.yaml:4:9: `listen` is not an address to listen on; write HOST:PORT, such as `127.0.0.1:8800`, or a port
    vary.yaml:5:11: `variants` is not a switch; write `on` or `off`
    vary.yaml:6:12: `page-size` is not a number that can be used here; write one from 1 to 1000000
    vary.yaml:7:10: `limits.boddys` is not a known key; did you mean `body`?
    vary.yaml:7:32: `limits.in-flight` is not a number that can be used here; write one from 1 to 1000000
    vary.yaml:9:3: `servers.my git!` is not a server name, which has at most 64 ASCII letters, digits, `-`, `_` and `.`; call it `my-git`
    vary.yaml:10:5: `servers.my git!.comand` is not a known key; did you mean `command`?
    vary.yaml:12:14: `servers.a.command` is not text; put it in quotes
    vary.yaml:13:11: `servers.a.args` is not a list; write ["...", "..."]
    vary.yaml:14:16: `servers.a.env.KEY` needs the variable `NONE`, which the environment does not have; set it, or write `${NONE:-default}`
    vary.yaml:14:33: `servers.a.env.LIST` is a list; write one value
    vary.yaml:15:5: `servers.a.startTimeout` is not a known key; did you mean `start-timeout`?
    vary.yaml:16:14: `servers.a.timeout` has no unit; write `5000ms` or `5000s`
    vary.yaml:17:14: `servers.a.restart` has a first pause that is longer than the longest; raise `longest`
    vary.yaml:19:10: `servers.b.url` is not the URL of an MCP server; write it like https://example.com/mcp
    vary.yaml:20:24: `servers.b.headers.X Key` is not a header name; write it like `Authorization`
    vary.yaml:20:32: `servers.b.headers.Key` has characters that no header may have; look for line breaks and control characters
    vary.yaml:21:16: `servers.b.isolation` is `sesion`; did you mean `session`?
    vary.yaml:22:5: `servers.b.serverUrl` is not a known key; did you mean `url`?
    vary.yaml:23:6: `servers.c` has `command` and `url`; keep one of them
    vary.yaml:24:6: `servers.d` has a `type` that does not go with `command`; write `stdio`, or leave it out
    vary.yaml:25:6: `servers.e` has a `type` that does not go with `url`; write `http`, or leave it out
    vary.yaml:25:6: `servers.e` has `args`, of no use beside `url`; leave it out
    vary.yaml:26:6: `servers.f` is not a table of keys; write {command: ...} or {url: ...}
    "#);
}

#[test]
fn a_file_without_servers_says_how_to_begin() {
    let begin = "begin with `servers: {name: {command: ...}}`";
    for text in ["", "{}", "naming: always", "# nothing"] {
        refuses(
            "x",
            text,
            &format!("1:1: the file names no server; {begin}"),
        );
    }
    refuses(
        "x",
        "- a",
        &format!("1:1: the file is not a table of keys; {begin}"),
    );
    // What is wrong comes first.
    refuses(
        "vary.yaml",
        "server: {a: {command: x}}",
        "1:1: `server` is not a known key; did you mean `servers`?",
    );
    refuses(
        "x",
        "servers: {}",
        "1:10: `servers` is empty; name at least one server",
    );
    refuses(
        "x",
        "servers: {a: {command: x, disabled: yes}}",
        "1:10: `servers` has only disabled servers; enable one of them",
    );
    refuses(
        "x",
        "servers:\nlimits:\n",
        "1:8: `servers` is empty; write an entry for each server: {name: {command: ...}}\n\
         2:7: `limits` is empty; write {connections: 1024}",
    );
    refuses(
        "x",
        "servers: [a]",
        "1:10: `servers` is not a table of keys; write an entry for each server: {name: {command: ...}}",
    );
    // The value after the colon may be secret.
    refuses(
        "x",
        "servers:\n  notes:\n    command:python3\n",
        "3:5: `servers.notes` is not a table of keys; write `command: ...`, with a space after the colon",
    );
    refuses(
        "x",
        "servers: {notes: 'https://h/mcp'}",
        "1:18: `servers.notes` is not a table of keys; write {command: ...} or {url: ...}",
    );
}

#[test]
fn no_mistake_shows_a_secret() {
    refuses_server(
        "{url: '${SECRET}/mcp?key=${SECRET}'}",
        "2:12: `servers.a.url` is not the URL of an MCP server; write it like http://127.0.0.1:8800/mcp",
    );
    refuses_server(
        "{url: 'http://x/', headers: {X-Key: \"${SECRET}\\n\"}}",
        "2:42: `servers.a.headers.X-Key` has characters that no header may have; look for line breaks and \
           control characters",
    );
    refuses_server(
        "{command: x, timeout: '${SECRET}', type: '${SECRET}', concurrency: '${SECRET}'}",
        "2:28: `servers.a.timeout` is not a duration; see what its variable stands for\n\
         2:47: `servers.a.type` is `${SECRET}`; there are `stdio`, `http`, `streamable-http`, `streamableHttp`, `sse`, `local`\n\
         2:73: `servers.a.concurrency` is not a number that can be used here; see what its variable stands for",
    );
}

/// A value for most keys.
const EVERY_VALUE: &str = "
naming: never
listen: 8801
variant: compact
strict-header: on
negotiation: off
page-size: 7
session-lifetime: 1h
limits: {body: 1 MiB, streams: 3, drain: 2s}
clients: [{name: 'a*', version: '1.*', headers: {X-A: b}, variant: other}]
servers:
  a:
    command: x
    args: [y]
    env: {A: b}
    cwd: z
    type: stdio
    disabled: off
    timeout: 3s
    ping: off
    concurrency: 9
    max-body: 2 MiB
    isolation: session
    retry: idempotent
    forward-extensions: [e]
    allow-methods: [ledger/balance]
    restart: {first: 2s, longest: 3s}
  b: {url: 'http://x/y', headers: {C: d}}
variants:
  compact:
    description: d
    hints: {useCase: u}
    priority: 3
    tools: ['t*', {name: n, server: s, readOnlyHint: absent}]
    resources: {include: ['r*'], exclude: ['q*']}
    descriptions: full
    schemas: compact
    dialect: gemini
    result: content
    features: [human]
    overrides:
      tools: {t: {name: n, title: t, description: d, annotations: {a: v}, arguments: {q: {name: p, hidden: on, fixed: [f]}}}}
  other: {from: compact, status: deprecated, deprecation: {message: m, replacement: compact, removal-date: 2027-01-31}}
";

#[test]
fn one_server_of_a_file_can_be_wanted() {
    let text =
        "servers: {a: {command: '${NONE}'}, b: {command: x, disabled: true}, d: {command: y}}";
    let wanted = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Source::new("x", text).with_only(&names).read(&environment)
    };
    let file = wanted(&["b"]).unwrap();
    assert_eq!(
        (file.servers.len(), file.servers[0].name.as_str()),
        (1, "b")
    );
    assert_eq!(
        wanted(&["b", "c"]).unwrap_err().to_string(),
        "x:1:10: `servers` has no server `c`; it has `a`, `b`, `d`"
    );
    let file = wanted(&["d", "b"]).unwrap();
    let names: Vec<_> = file.servers.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["b", "d"]);
}

#[test]
fn a_name_that_tools_cannot_carry_is_refused_with_a_better_one() {
    let name = |name: &str| format!("servers: {{\"{name}\": {{command: x}}}}");
    let limits =
        "is not a server name, which has at most 64 ASCII letters, digits, `-`, `_` and `.`";
    let said =
        |name: &str, better: &str| format!("1:11: `servers.{name}` {limits}; call it `{better}`");
    refuses("x", &name("my git!"), &said("my git!", "my-git"));
    refuses("x", &name("größe"), &said("größe", "gr-e"));
    refuses("x", &name(""), &said("", "server"));
    let long = "x".repeat(65);
    refuses("x", &name(&long), &said(&long, &long[..64]));
    assert_eq!(read("x", &name("a-B_3.c")).servers[0].name, "a-B_3.c");
}

/// Claude's, Cursor's and VS Code's files are read as they are.
#[test]
fn the_file_of_a_client_is_read_as_it_is() {
    let claude = r#"{"globalShortcut": "", "listen": 1, "mcpServers": {
        "Git Hub": {"type": "http", "url": "http://x/", "args": [], "env": {"A": "b"}, "cwd": null, "timeout": 60000, "autoApprove": []},
        "b": {"type": "stdio", "command": "npx", "args": ["-y", "${HOME}"], "env": {"K": "${NONE:-v}"}}}}"#;
    let file = read("claude_desktop_config.json", claude);
    let names: Vec<&str> = file
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["Git-Hub", "b"]);
    assert_eq!(file.servers[0].limits.idle, Duration::from_secs(600));
    assert_eq!(
        notes(&file),
        [
            "1:24: `listen` is ignored in the file of a client; settings of Vary need a file with `servers` of its own",
            "2:9: `mcpServers.Git Hub` is called `Git-Hub` here; names of tools can have no other characters",
            "2:101: `mcpServers.Git Hub.timeout` is ignored in the file of a client; settings of Vary need a file with \
             `servers` of its own",
        ]
    );
    let copilot = r#"{"mcpServers": {"notes": {"type": "local", "command": "notes-server", "args": ["--stdio"], "tools": ["*"]}}}"#;
    assert_eq!(read("mcp-config.json", copilot).servers[0].name, "notes");
    let code = r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "x", "gallery": true, "dev": {}}}}"#;
    assert_eq!(read("mcp.json", code).servers.len(), 1);
    refuses(
        "mcp.json",
        r#"{"inputs": [], "servers": {"a": {"command": "x", "env": {"KEY": "${input:key}"}}}}"#,
        "1:65: `servers.a.env.KEY` has `${input:key}`, which VS Code asks its user for; write `${KEY}` and set it; \
             `vary config import mcp.json > vary.yaml` makes a file in which all of them are written so, and names what to set",
    );
    for key in ["serverUrl", "httpUrl"] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"{key}": "https://h.example/mcp"}}}}}}"#);
        let file = read("mcp.json", &text);
        assert_eq!(
            file.servers[0].target,
            Target::http("https://h.example/mcp".parse().unwrap())
        );
    }
    let misspelled = r#"{"mcpServers": {"a": {"command": "x", "arg": ["y"]}}}"#;
    let expected =
        "1:39: `mcpServers.a.arg` is not a known key, and is ignored; did you mean `args`?";
    assert_eq!(notes(&read("mcp.json", misspelled)), [expected]);
    // One entry that cannot be used leaves out that server only.
    let twice = r#"{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#;
    let file = read("mcp.json", twice);
    assert_eq!((file.servers.len(), &*file.left_out[0].name), (1, "a-b"));
    assert_eq!(
        file.left_out[0].diagnostics[0].to_string(),
        "1:49: `mcpServers.a-b` would be called `a-b` like another one; rename one of them"
    );
}

#[test]
fn what_several_servers_share_is_written_once() {
    let text = "
x-shared: &slow
  ping: off
  timeout: 20m
  env: {LEVEL: debug}
servers:
  a: {<<: *slow, command: x}
  b: {<<: *slow, command: y, timeout: 1m}
";
    let file = read("x", text);
    let timeouts = file
        .servers
        .iter()
        .map(|server| server.limits.idle.as_secs());
    assert_eq!(timeouts.collect::<Vec<_>>(), [1200, 60]);
    assert_eq!(file.servers[1].limits.ping, Duration::ZERO);
}

proptest! {
    /// Whatever stands in a file, there is a value or a list of mistakes.
    #[test]
    fn no_text_ends_the_program(text in "\\PC*", name in "x\\.(json|toml|yaml)") {
        drop(Source::new(&name, &text).read(&environment));
    }

    /// What is nearly a configuration gets further.
    #[test]
    fn no_change_of_a_file_ends_the_program(
        which in 0..3_usize,
        at in any::<prop::sample::Index>(),
        length in 0..20_usize,
        insert in "[\\[\\]{}:,&*!'\"\n \\-<$a1é]{0,5}",
    ) {
        let (name, text) = [("x.yaml", YAML), ("x.toml", TOML), ("x.json", JSON)][which];
        let start = at.index(text.len());
        let end = (start + length).min(text.len());
        let mut text = text.to_owned();
        text.replace_range(start..end, &insert);
        if let Err(mistakes) = Source::new(name, &text).read(&environment) {
            assert!(!mistakes.all.is_empty());
            // Whoever reads of a mistake reads what to write.
            assert!(mistakes.all.iter().all(|mistake| mistake.fix.is_some()), "{mistakes}");
        }
    }
}

#[test]
fn rules_for_clients_are_read_and_their_mistakes_said_at_once() {
    let file = read(
        "x",
        r#"{"servers": {"a": {"command": "x"}}, "variant": "compact", "strict-header": true,
            "clients": [{"name": "claude*", "headers": {"X-Team": "a?"}, "variant": "read-only"}]}"#,
    );
    let choosing = config(&file).selection;
    assert!(choosing.strict_header);
    assert_eq!(choosing.default.as_ref().unwrap().as_str(), "compact");
    let rule = &choosing.rules[0];
    assert_eq!(rule.variant.as_ref().unwrap().as_str(), "read-only");
    assert!(rule.name.as_ref().unwrap().matches("Claude Code"));
    assert!(rule.version.is_none() && rule.headers[0].1.matches("ab"));
    refuses_lines(
        "variant: compcat\nclients: [{name: 'a{b'}, {variant: none, headers: {'a b': x}}, 7]\n",
        "2:10: `variant` is not a variant: `compcat`; did you mean `compact`?\n\
         3:11: `clients[0]` does not say what clients get; add `variant: ...`, `result`, `dialect`, `features`, `json-content` or `lift-json-text`\n\
         3:18: `clients[0].name` is not a pattern: unclosed alternate group; missing '}' \
             (maybe escape '{' with '[{]'?); write `*` for anything, `{a,b}` for one of several\n\
         3:36: `clients[1].variant` is not a variant: `none`; there are `standard`, `compact`, `directory`, `read-only`\n\
         3:59: `clients[1].headers.a b` is not a header name; write one, such as `X-Team`\n\
         3:64: `clients[2]` is not a table of keys; write {name: ..., variant: ...}",
    );
}

/// CN-9, CN-12: both switches stand at the top of a file, and under a rule for some clients.
#[test]
fn where_json_goes_is_said_for_all_and_for_some() {
    let plain = config_of("");
    assert!(plain.json_content == JsonContent::Strict && plain.lift_json_text);
    let config = config_of(
        "json-content: both\nlift-json-text: off\n\
         clients: [{json-content: texts}, {name: a, lift-json-text: on}]\n",
    );
    assert!(config.json_content == JsonContent::Both && !config.lift_json_text);
    let [one, two] = config.selection.rules.as_slice() else {
        panic!("{:?}", config.selection);
    };
    assert_eq!(one.json_content, Some(JsonContent::Texts));
    assert_eq!(one.lift_json_text, None);
    assert_eq!((two.json_content, two.lift_json_text), (None, Some(true)));
    refuses_lines(
        "json-content: one\nlift-json-text: maybe\n",
        "2:15: `json-content` is `one`; there are `strict`, `texts`, `both`\n\
         3:17: `lift-json-text` is not a switch; write `on` or `off`",
    );
}

#[test]
fn rules_say_how_variants_are_shown() {
    let choosing = config_of(
        "known-clients: on\nclients: [{result: content}, {dialect: none}, {dialect: gemini, features: [human]}]\n",
    )
    .selection;
    assert!(choosing.known_clients);
    let [one, two, three] = choosing.rules.as_slice() else {
        panic!("{choosing:?}");
    };
    assert_eq!(
        (one.result, one.dialect),
        (Some(ResultFields::Content), None)
    );
    // That it says `none` is not the same as saying nothing.
    assert_eq!((two.result, two.dialect), (None, Some(None)));
    assert_eq!(three.dialect, Some(Some(Dialect::Gemini)));
    assert!(three.features.is_some() && three.variant.is_none());
    refuses_lines(
        "known-clients: some\nclients: [{result: none}, {varient: compact}, {features: [a=b=c]}]\n",
        "2:16: `known-clients` is not a switch; write `on` or `off`\n\
         3:20: `clients[0].result` is `none`; there are `both`, `content`, `structured`\n\
         3:28: `clients[1].varient` is not a known key; did you mean `variant`?\n\
         3:59: `clients[2].features[0]` is not a tag: a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '='; \
             write tags such as `human` or `format=markdown`",
    );
}

/// What reads like "none" would show everything.
#[test]
fn a_selection_that_is_empty_is_not_what_it_looks_like() {
    let empty = "is empty; leave it out for all, or write {exclude: [\"*\"]} for none";
    refuses_lines(
        "variants: {standard: {tools: []}, b: {prompts: {include: []}}}\n",
        &[
            format!("2:30: `variants.standard.tools` {empty}"),
            format!("2:58: `variants.b.prompts.include` {empty}"),
        ]
        .join("\n"),
    );
    for all in [
        "tools: {exclude: []}",
        "tools: {exclude: ['*']}",
        "tools: {}",
    ] {
        read_lines(&format!("variants: {{standard: {{{all}}}}}\n"));
    }
}

/// EXT-4: what is required is said by our names for it, or by its identifier.
#[test]
fn what_is_required_is_named() {
    let required = |text: &str| {
        let config = config_of(text);
        let ids = config.required.iter().map(ToString::to_string);
        ids.collect::<Vec<_>>()
    };
    let negotiation = "io.modelcontextprotocol/content-negotiation";
    let variants = "io.modelcontextprotocol/server-variants";
    assert_eq!(required(""), [""; 0]);
    assert_eq!(required("require: []"), [""; 0]);
    assert_eq!(
        required("require: [variants, negotiation, com.example/units]"),
        [variants, negotiation, "com.example/units"]
    );
    let read = required(&format!("require: [{negotiation}]"));
    assert_eq!(read, [negotiation]);
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}
require: [negotiating, content-negotiation, server-variants, ui, 1/x, '']
variants: off",
        "2:11: `require[0]` is not an extension; did you mean `negotiation`?\n\
         2:24: `require[1]` is not an extension; did you mean `negotiation`?\n\
         2:45: `require[2]` is not an extension; did you mean `variants`?\n\
         2:62: `require[3]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`\n\
         2:66: `require[4]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`\n\
         2:71: `require[5]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`",
    );
    refuses_lines(
        "negotiation: off\nvariants: off\nrequire: [negotiation, variants]",
        "4:11: `require[0]` is required and switched off; leave it out, or remove `negotiation: off`\n\
         4:24: `require[1]` is required and switched off; leave it out, or remove `variants: off`",
    );
}

/// A program of which only one process can run has no other for a user.
#[test]
fn one_process_is_for_programs_whose_users_may_share_it() {
    for isolation in ["", "isolation: automatic, ", "isolation: shared, "] {
        let text = format!("servers: {{a: {{command: x, {isolation}processes: one}}}}");
        let file = Source::new("vary.yaml", &text).read(&environment).unwrap();
        assert_eq!(file.servers[0].processes, Processes::One, "{text}");
    }
    for isolation in ["principal", "session"] {
        let entry = format!("{{command: x, processes: one, isolation: {isolation}}}");
        let what = "2:30: `servers.a.processes` is `one`, but with this `isolation` users or sessions have processes of \
                    their own; keep one of them";
        refuses_server(&entry, what);
    }
    refuses_server(
        "{url: 'http://x/', processes: one}",
        "2:36: `servers.a.processes` is for programs, and the server has a `url`; leave it out",
    );
}

/// What was read, without the digest of its text.
fn shown(file: &File) -> String {
    let text = format!("{file:?}");
    let (before, digest) = text.split_once("common_digest: ").unwrap();
    let (_, after) = digest.split_once(')').unwrap();
    format!("{before}{after}")
}
