//! Configuration files: what they say, and everything that is wrong with them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_vary_config::{File, Source};
use mcp_vary_gateway::{Environment, JsonContent, Limits, Naming, Target};
use mcp_vary_upstream::Isolation;
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

/// Reads the file and checks everything that is said of it.
#[track_caller]
fn refuses(name: &str, text: &str, expected: &[&str]) {
    let mistakes = Source::new(name, text).read(&environment).unwrap_err();
    let said: Vec<String> = mistakes.all.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "{text}");
    assert!(!format!("{mistakes:?}").contains(SECRET));
}

/// Checks what is said of an entry `a` of `servers`.
#[track_caller]
fn refuses_server(entry: &str, expected: &[&str]) {
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
    limits.line = 1 << 20;
    limits.ping = Duration::from_secs(60);
    limits.hang_timeout = Duration::from_secs(10);
    limits.backoff = Duration::from_secs(1);
    limits.max_backoff = Duration::from_secs(60);
    limits.connections = 2;
    limits
}

/// Nothing that the file says is lost on the way to the gateway.
#[track_caller]
fn is_all_taken(file: File) {
    let limits = format!("{:?}", file.limits);
    let config = file.into_config(Environment::new(|| 0, |bytes| bytes.fill(7)));
    assert_eq!(
        (config.servers.len(), config.naming),
        (2, Naming::OnCollision)
    );
    assert_eq!((config.variants, config.negotiation), (false, true));
    assert_eq!(config.page_size.map(NonZeroUsize::get), Some(50));
    assert_eq!(config.session_lifetime, Duration::from_secs(12 * 3600));
    assert_eq!(format!("{:?}", config.limits), limits);
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
        (
            file.naming,
            file.listen.as_deref(),
            file.variants,
            file.negotiation
        ),
        (Naming::OnCollision, Some("8800"), false, true)
    );
    assert_eq!(file.page_size.map(NonZeroUsize::get), Some(50));
    assert_eq!(file.session_lifetime, Some(Duration::from_secs(12 * 3600)));
    let limits = Limits::default().with_body(1 << 20).with_in_flight(8);
    let limits = limits
        .with_sessions(100)
        .with_read_timeout(Duration::from_secs(5));
    let limits = limits.with_drain(Duration::from_secs(30));
    assert_eq!(format!("{:?}", file.limits), format!("{limits:?}"));
    assert_eq!(file.notes, []);
    is_all_taken(file);
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
    assert!(file.variants && file.negotiation && file.listen.is_none());
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
limits: {bodies: 1, in-flight: many}
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
  d: {type: sse, url: 'http://x/'}
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
    vary.yaml:7:10: `limits.bodies` is not a known key; there are `body`, `memory`, `headers`, `connections`, `in-flight`, `sessions`, `classes`, `orphaned-requests`, `streams`, `subscriptions`, `read-timeout`, `write-timeout`, `drain`, `result-store`, `result-ttl`, `state-lifetime`, `suspended-calls`, `suspended-calls-per-principal`, `task-lifetime`, `max-rounds`, `dedicated-connections`, `pending-server-requests`, `ask-timeout`, `stream-after`, `replay-buffer`, `replay-ttl`
    vary.yaml:7:32: `limits.in-flight` is not a number that can be used here; write one from 1 to 1000000
    vary.yaml:9:3: `servers.my git!` is not a server name, which has at most 64 letters, digits, `-`, `_` and `.`; call it `my-git`
    vary.yaml:10:5: `servers.my git!.comand` is not a known key; did you mean `command`?
    vary.yaml:12:14: `servers.a.command` is not text; put it in quotes
    vary.yaml:13:11: `servers.a.args` is not a list; write ["...", "..."]
    vary.yaml:14:16: `servers.a.env.KEY` needs the variable `NONE`, which the environment does not have; set it, or write `${NONE:-default}`
    vary.yaml:14:33: `servers.a.env.LIST` is a list; write one value
    vary.yaml:15:5: `servers.a.startTimeout` is not a known key; did you mean `start-timeout`?
    vary.yaml:16:14: `servers.a.timeout` has no unit; write `5000ms` or `5000s`
    vary.yaml:17:14: `servers.a.restart` has a first pause that is longer than the longest; raise `longest`
    vary.yaml:19:10: `servers.b.url` is not the URL of an MCP server; write it like http://127.0.0.1:8800/mcp
    vary.yaml:20:24: `servers.b.headers.X Key` is not a header name; write it like `Authorization`
    vary.yaml:20:32: `servers.b.headers.Key` has characters that no header may have; look for line breaks and control characters
    vary.yaml:21:16: `servers.b.isolation` is `sesion`; did you mean `session`?
    vary.yaml:22:5: `servers.b.serverUrl` is not a known key; did you mean `url`?
    vary.yaml:23:6: `servers.c` has `command` and `url`; keep one of them
    vary.yaml:24:6: `servers.d` has the type `sse`, a transport of 2024-11-05 that is not supported; write `http` and the server's streamable HTTP address
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
            &[&format!("1:1: the file names no server; {begin}")],
        );
    }
    refuses(
        "x",
        "- a",
        &[&format!("1:1: the file is not a table of keys; {begin}")],
    );
    refuses(
        "x",
        "servers: {}",
        &["1:10: `servers` is empty; name at least one server"],
    );
    refuses(
        "x",
        "servers: {a: {command: x, disabled: yes}}",
        &["1:10: `servers` has only disabled servers; enable one of them"],
    );
    refuses(
        "x",
        "servers:\nlimits:\n",
        &[
            "1:8: `servers` is empty; write an entry for each server: {name: {command: ...}}",
            "2:7: `limits` is empty; write {connections: 1024}",
        ],
    );
    refuses(
        "x",
        "servers: [a]",
        &[
            "1:10: `servers` is not a table of keys; write an entry for each server: {name: {command: ...}}",
        ],
    );
}

#[test]
fn no_mistake_shows_a_secret() {
    refuses_server(
        "{url: '${SECRET}/mcp?key=${SECRET}'}",
        &[
            "2:12: `servers.a.url` is not the URL of an MCP server; write it like http://127.0.0.1:8800/mcp",
        ],
    );
    refuses_server(
        "{url: 'http://x/', headers: {X-Key: \"${SECRET}\\n\"}}",
        &[
            "2:42: `servers.a.headers.X-Key` has characters that no header may have; look for line breaks and \
           control characters",
        ],
    );
    refuses_server(
        "{command: x, timeout: '${SECRET}', type: '${SECRET}', concurrency: '${SECRET}'}",
        &[
            "2:28: `servers.a.timeout` is not a duration; see what its variable stands for",
            "2:47: `servers.a.type` is `${SECRET}`; there are `stdio`, `http`, `streamable-http`, `streamableHttp`, `sse`",
            "2:73: `servers.a.concurrency` is not a number that can be used here; see what its variable stands for",
        ],
    );
}

/// Each form of a variable stands for the text in the place of every text, number, switch and choice.
#[test]
fn a_variable_can_stand_in_every_value() {
    let plain = "
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
    let expected = read("vary.yaml", plain);
    let shown = |file: &File| {
        let config = format!("{file:?}");
        // The places are those of the text.
        let servers = file.servers.iter().map(|server| match &server.target {
            Target::Command { args, env, cwd, .. } => format!("{args:?} {env:?} {cwd:?}"),
            Target::Http { url, headers } => format!("{url} {:?}", headers["c"].to_str()),
        });
        let servers: Vec<_> = servers.collect();
        (config.split("places: ").next().unwrap().to_owned(), servers)
    };
    for form in ["${V_%}", "${env:V_%}", "${NONE:-%}", "${env:NONE:-%}"] {
        let (text, values) = with_variables(plain, form);
        assert!(values.len() > 50, "{values:?}");
        let variable = |name: &str| {
            values
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        let file = Source::new("vary.yaml", &text).read(&variable);
        let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        assert_eq!(shown(&file), shown(&expected), "{form}");
    }
}

/// The file with a variable in place of each value, and what the variables stand for.
fn with_variables(plain: &str, form: &str) -> (String, Vec<(String, String)>) {
    let mut values = Vec::new();
    let mut out = String::new();
    let mut word = String::new();
    // A value stands between these; what stands before a colon is a key.
    let is_end = |c: char| matches!(c, '{' | '}' | '[' | ']' | ',' | '\n');
    for c in plain.chars() {
        if c == ':' && !word.contains('\'') {
            out.push_str(&word);
            out.push(c);
            word.clear();
        } else if is_end(c) {
            let value = word.trim();
            if value.is_empty() {
                out.push_str(&word);
            } else {
                let value = value.trim_matches('\'').to_owned();
                let name = format!("{}", values.len());
                let inner = if form.contains(":-") { &value } else { &name };
                out.push_str(&format!(" '{}'", form.replace('%', inner)));
                values.push((format!("V_{name}"), value));
            }
            word.clear();
            out.push(c);
        } else {
            word.push(c);
        }
    }
    (out, values)
}

#[test]
fn one_server_of_a_file_can_be_wanted() {
    let text = "servers: {a: {command: '${NONE}'}, b: {command: x, disabled: true}}";
    let wanted = |name| Source::new("x", text).with_only(name).read(&environment);
    let file = wanted("b").unwrap();
    assert_eq!(
        (file.servers.len(), file.servers[0].name.as_str()),
        (1, "b")
    );
    assert_eq!(
        wanted("c").unwrap_err().to_string(),
        "x:1:10: `servers` has no server `c`; it has `a`, `b`"
    );
}

#[test]
fn a_name_that_tools_cannot_carry_is_refused_with_a_better_one() {
    let name = |name: &str| format!("servers: {{\"{name}\": {{command: x}}}}");
    let limits = "is not a server name, which has at most 64 letters, digits, `-`, `_` and `.`";
    let said =
        |name: &str, better: &str| format!("1:11: `servers.{name}` {limits}; call it `{better}`");
    refuses("x", &name("my git!"), &[&said("my git!", "my-git")]);
    refuses("x", &name("größe"), &[&said("größe", "gr-e")]);
    refuses("x", &name(""), &[&said("", "server")]);
    let long = "x".repeat(65);
    refuses("x", &name(&long), &[&said(&long, &long[..64])]);
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
    let notes: Vec<String> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "1:24: `listen` is ignored in the file of a client; settings of Vary need a file with `servers` of its own",
            "2:9: `mcpServers.Git Hub` is called `Git-Hub` here; names of tools can have no other characters",
            "2:101: `mcpServers.Git Hub.timeout` is ignored in the file of a client; settings of Vary need a file with \
             `servers` of its own",
        ]
    );
    let code = r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "x", "gallery": true, "dev": {}}}}"#;
    assert_eq!(read("mcp.json", code).servers.len(), 1);
    refuses(
        "mcp.json",
        r#"{"inputs": [], "servers": {"a": {"command": "x", "env": {"KEY": "${input:key}"}}}}"#,
        &[
            "1:65: `servers.a.env.KEY` has `${input:key}`, which cannot be replaced; only variables of the environment \
           can; for the characters themselves write `$${`",
        ],
    );
    // One entry that cannot be used leaves out that server only.
    let twice = r#"{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#;
    let file = read("mcp.json", twice);
    assert_eq!((file.servers.len(), &*file.left_out[0].name), (1, "a-b"));
    assert_eq!(
        file.left_out[0].mistakes[0].to_string(),
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

const PAGE: &str = include_str!("../../../../docs/configuration.md");
const README: &str = include_str!("../../../../README.md");

/// The blocks of one language on a page.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let starts = page
        .split(&format!("```{language}\n"))
        .skip(1)
        .collect::<Vec<_>>();
    let blocks = starts
        .iter()
        .filter_map(|start| start.split("\n```").next());
    blocks.collect()
}

#[test]
fn every_example_of_the_reference_can_be_read() {
    let any = |name: &str| Some(name.to_owned());
    let (yaml, toml) = (blocks(PAGE, "yaml"), blocks(PAGE, "toml"));
    let first = blocks(README, "yaml");
    assert!(yaml.len() >= 5 && !toml.is_empty() && !first.is_empty());
    let files = yaml.iter().chain(&first).map(|text| ("x.yaml", *text));
    for (name, text) in files.chain(toml.iter().map(|text| ("x.toml", *text))) {
        if let Err(mistakes) = Source::new(name, text).read(&any) {
            panic!("{mistakes}\n{text}");
        }
    }
}

/// The rows of the table under a heading: key and default.
fn rows(after: &str) -> Vec<(&'static str, Option<&'static str>)> {
    let (_, rest) = PAGE.split_once(after).unwrap();
    let table = rest.split("|---|---|---|\n").nth(1).unwrap();
    let lines = table.lines().take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let mut cells = line
                .split('|')
                .skip(1)
                .map(|cell| cell.trim().trim_matches('`'));
            let (key, default) = (cells.next().unwrap(), cells.next().unwrap());
            (key, Some(default).filter(|default| !default.is_empty()))
        })
        .collect()
}

/// A file that says at one place what the page calls the default.
fn file_with(place: &str, key: &str, default: &str) -> String {
    let server = "a: {command: x";
    match place {
        "top" => format!("servers: {{{server}}}}}\n{key}: {default}"),
        "limits" => format!("servers: {{{server}}}}}\nlimits: {{{key}: {default}}}"),
        "ranking" => format!("servers: {{{server}}}}}\nranking: {{{key}: {default}}}"),
        "weight" => {
            format!(
                "servers: {{{server}}}}}\nranking: {{weights: {{useCase: {{{key}: {default}}}}}}}"
            )
        }
        "rule" => {
            format!("servers: {{{server}}}}}\nclients: [{{variant: compact, {key}: {default}}}]")
        }
        "variant" => {
            format!("servers: {{{server}}}}}\nvariants: {{standard: {{{key}: {default}}}}}")
        }
        "condition" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{tools: [{{{key}: {default}}}]}}}}"
        ),
        "deprecation" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{}}, old: {{deprecation: {{message: m, {key}: {default}}}}}}}"
        ),
        "argument" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{overrides: {{tools: {{t: {{arguments: {{a: {{{key}: {default}}}}}}}}}}}}}}}"
        ),
        "restart" => format!("servers: {{{server}, restart: {{{key}: {default}}}}}}}"),
        _ => format!("servers: {{{server}, {key}: {default}}}}}"),
    }
}

#[test]
fn every_default_of_the_reference_is_the_programs() {
    let plain = format!("{:?}", read("x", "servers: {a: {command: x}}"));
    let tables = [
        ("top", "## Top level"),
        ("server", "## A server"),
        ("restart", "| key of `restart`"),
        ("ranking", "## `ranking`"),
        ("limits", "## `limits`"),
    ];
    for (place, heading) in tables {
        for (key, default) in rows(heading) {
            let Some(default) = default else { continue };
            let mut file = read("x", &file_with(place, key, default));
            // Only a file that says an address has a place for it.
            file.addresses_at.clear();
            let mut said = format!("{file:?}");
            // Where nothing is said, the program has its own.
            said = said.replace("listen: Some(\"127.0.0.1:8800\")", "listen: None");
            said = said.replace("session_lifetime: Some(86400s)", "session_lifetime: None");
            said = said.replace("start_wait: Some(3s)", "start_wait: None");
            assert_eq!(said, plain, "{place}: {key}: {default}");
        }
    }
}

/// What a mistake lists as known is what the page has.
#[test]
fn every_setting_is_in_the_reference() {
    for (place, heading) in [
        ("top", "## Top level"),
        ("server", "## A server"),
        ("restart", "| key of `restart`"),
        ("rule", "| key of a rule"),
        ("variant", "| key of a variant"),
        ("condition", "| key of a condition"),
        ("deprecation", "| key of `deprecation`"),
        ("argument", "| key of an argument"),
        ("ranking", "## `ranking`"),
        ("weight", "| key of a weight"),
        ("limits", "## `limits`"),
    ] {
        let text = file_with(place, "zzzzzz", "1");
        let mistakes = Source::new("x", &text).read(&environment).unwrap_err();
        let fix = mistakes.all[0].fix.clone().unwrap();
        let known = fix.trim_start_matches("there are ").split(", ");
        let mut known: Vec<&str> = known.map(|key| key.trim_matches('`')).collect();
        let mut documented: Vec<&str> = rows(heading).into_iter().map(|(key, _)| key).collect();
        known.sort_unstable();
        documented.sort_unstable();
        assert_eq!(known, documented, "{place}");
    }
}

#[test]
fn rules_for_clients_are_read_and_their_mistakes_said_at_once() {
    let file = read(
        "x",
        r#"{"servers": {"a": {"command": "x"}}, "variant": "compact", "strict-header": true,
            "clients": [{"name": "claude*", "headers": {"X-Team": "a?"}, "variant": "read-only"}]}"#,
    );
    let choosing = &file.choosing;
    assert!(choosing.strict_header);
    assert_eq!(choosing.default.as_ref().unwrap().as_str(), "compact");
    let rule = &choosing.rules[0];
    assert_eq!(rule.variant.as_ref().unwrap().as_str(), "read-only");
    assert!(rule.name.as_ref().unwrap().matches("Claude Code"));
    assert!(rule.version.is_none() && rule.headers[0].1.matches("ab"));
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nvariant: compcat\nclients: [{name: 'a{b'}, {variant: none, headers: {'a b': x}}, 7]\n",
        &[
            "2:10: `variant` is not a variant; did you mean `compact`?",
            "3:11: `clients[0]` does not say what clients get; add `variant: ...`, `result`, `dialect`, `features`, `json-content` or `lift-json-text`",
            "3:18: `clients[0].name` is not a pattern: unclosed alternate group; missing '}' \
             (maybe escape '{' with '[{]'?); write `*` for anything, `{a,b}` for one of several",
            "3:36: `clients[1].variant` is not a variant; there are `standard`, `compact`, `read-only`",
            "3:59: `clients[1].headers.a b` is not a header name; write one, such as `X-Team`",
            "3:64: `clients[2]` is not a table of keys; write {name: ..., variant: ...}",
        ],
    );
}

/// CN-9, CN-12: both switches stand at the top of a file, and under a rule for some clients.
#[test]
fn where_json_goes_is_said_for_all_and_for_some() {
    let first = "servers: {a: {command: x}}\n";
    let file = read("vary.yaml", first);
    assert_eq!(file.json_content, JsonContent::Strict);
    assert!(file.lift_json_text);
    let file = read(
        "vary.yaml",
        &format!(
            "{first}json-content: both\nlift-json-text: off\nclients: \
             [{{json-content: strict}}, {{name: a, lift-json-text: on}}]\n"
        ),
    );
    assert_eq!(file.json_content, JsonContent::Both);
    assert!(!file.lift_json_text);
    let [one, two] = file.choosing.rules.as_slice() else {
        panic!("{:?}", file.choosing);
    };
    assert_eq!(one.json_content, Some(JsonContent::Strict));
    assert_eq!(one.lift_json_text, None);
    assert_eq!((two.json_content, two.lift_json_text), (None, Some(true)));
    refuses(
        "vary.yaml",
        &format!("{first}json-content: one\nlift-json-text: maybe\n"),
        &[
            "2:15: `json-content` is `one`; there are `strict`, `both`",
            "3:17: `lift-json-text` is not a switch; write `on` or `off`",
        ],
    );
}

#[test]
fn rules_say_how_variants_are_shown() {
    let file = read(
        "vary.yaml",
        "servers: {a: {command: x}}\nknown-clients: on\nclients: [{result: content}, {dialect: none}, \
         {dialect: gemini, features: [human]}]\n",
    );
    let choosing = &file.choosing;
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
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nknown-clients: some\nclients: [{result: none}, {varient: compact}, {features: [a=b=c]}]\n",
        &[
            "2:16: `known-clients` is not a switch; write `on` or `off`",
            "3:20: `clients[0].result` is `none`; there are `both`, `content`, `structured`",
            "3:28: `clients[1].varient` is not a known key; did you mean `variant`?",
            "3:59: `clients[2].features[0]` is not a tag: a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '='; \
             write tags such as `human` or `format=markdown`",
        ],
    );
}

/// What reads like "none" would show everything.
#[test]
fn a_selection_that_is_empty_is_not_what_it_looks_like() {
    let empty = "is empty; leave it out for all, or write {exclude: [\"*\"]} for none";
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nvariants: {standard: {tools: []}, b: {prompts: {include: []}}}\n",
        &[
            &format!("2:30: `variants.standard.tools` {empty}"),
            &format!("2:58: `variants.b.prompts.include` {empty}"),
        ],
    );
    for all in [
        "tools: {exclude: []}",
        "tools: {exclude: ['*']}",
        "tools: {}",
    ] {
        read(
            "vary.yaml",
            &format!("servers: {{a: {{command: x}}}}\nvariants: {{standard: {{{all}}}}}\n"),
        );
    }
}

/// SV-5
#[test]
fn weights_are_read_and_what_counts_nothing_is_said() {
    let text = concat!(
        "servers: {a: {command: x}}\n",
        "ranking:\n",
        "  any: 0\n",
        "  deprecated: -7\n",
        "  advertised: 2\n",
        "  weights:\n",
        "    useCase: 300\n",
        "    region: {first: 30, step: 1}\n",
        "    contextSize: {step: 2}\n",
        "    regoin: 3\n",
        "    modelFamily: 0\n",
        "variants: {standard: {hints: {region: eu, useCase: x, contextSize: y, modelFamily: any}}}\n",
    );
    let file = read("vary.yaml", text);
    let of = |key: &str| {
        let weight = file.weights.hints[key];
        (weight.first, weight.step)
    };
    assert_eq!((of("useCase"), of("region")), ((300, 10), (30, 1)));
    assert_eq!((of("contextSize"), of("regoin")), ((40, 2), (3, 10)));
    assert_eq!((of("modelFamily"), of("accessLevel")), ((0, 10), (80, 10)));
    assert_eq!((file.weights.any, file.weights.stable), (0, 20));
    assert_eq!((file.weights.deprecated, file.advertised), (-7, 2));
    let notes: Vec<_> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "10:5: `ranking.weights.regoin` counts nothing: no variant has such a hint; did you mean `region`?"
        ]
    );
}

/// SV-5: a hint without a weight decides nothing, which is noted once for each key.
#[test]
fn a_hint_without_a_weight_is_noted_at_its_line() {
    let text = concat!(
        "servers: {a: {command: x}}\n",
        "ranking: {weights: {audience: 0}}\n",
        "variants:\n",
        "  a: {hints: {domain: code, useCase: x, audience: y}}\n",
        "  b: {hints: {domain: security, com.acme/risk: low}}\n",
        "  c: {from: b}\n",
    );
    let file = read("vary.yaml", text);
    let notes: Vec<_> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "4:23: `variants.a.hints.domain` does not count in the ranking: the hint has no weight; add `ranking: \
             {weights: {domain: 60}}`",
            "5:48: `variants.b.hints.com.acme/risk` does not count in the ranking: the hint has no weight; add \
             `ranking: {weights: {com.acme/risk: 60}}`",
        ]
    );
}

/// SV-5
#[test]
fn every_mistake_of_a_ranking_is_said_at_once() {
    refuses(
        "vary.yaml",
        concat!(
            "servers: {a: {command: x}}\n",
            "ranking:\n",
            "  advertised: 6\n",
            "  deprecated: 100\n",
            "  stabel: 1\n",
            "  any: many\n",
            "  weights: {a: 1001, b: {frist: 1}, c: {first: -1}, d: [1], e: }\n",
        ),
        &[
            "3:15: `ranking.advertised` is not a number that can be used here; write one from 2 to 5",
            "4:15: `ranking.deprecated` is not a number that can be used here; write one from -1000 to 0",
            "5:3: `ranking.stabel` is not a known key; did you mean `stable`?",
            "6:8: `ranking.any` is not a number that can be used here; write one from 0 to 1000",
            "7:16: `ranking.weights.a` is not a number that can be used here; write one from 0 to 1000",
            "7:26: `ranking.weights.b.frist` is not a known key; did you mean `first`?",
            "7:48: `ranking.weights.c.first` is not a number that can be used here; write one from 0 to 1000",
            "7:56: `ranking.weights.d` is a list; write one value",
            "7:62: `ranking.weights.e` is empty; write a value, or leave the key out",
        ],
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nranking: {weights: {region: {step: 1}}}\n",
        &["2:29: `ranking.weights.region` has no points; add `first: 40`"],
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nranking: on\n",
        &[
            "2:10: `ranking` is not a table of keys; write {weights: {useCase: 80, region: {first: 40, step: 5}}}",
        ],
    );
}

/// The variants of a file, as their configuration shows itself.
fn variants_of(text: &str) -> String {
    let text = format!("servers: {{a: {{command: x}}}}\nvariants:\n{text}");
    format!("{:?}", read("vary.yaml", &text))
}

#[test]
fn what_a_variant_does_not_say_is_as_where_it_starts_from() {
    // The order of the file does not matter, and a start may have a start.
    let said = variants_of(
        "  c: {from: b, tools: [x]}\n  b: {from: read-only, result: content, description: d}\n  standard: {}\n",
    );
    let c = said.split("VariantConfig {").nth(1).unwrap();
    for expected in ["base: ReadOnly", "result: Content", "description: \"d\""] {
        assert!(c.contains(expected), "{expected}: {c}");
    }
    assert!(said.contains("Everything as the server describes it"));
}

/// What is shown of the variant that is declared at `index`.
fn variant_of(text: &str, index: usize) -> String {
    let said = variants_of(text);
    let one = said.split("VariantConfig {").nth(index + 1).unwrap();
    one.to_owned()
}

#[track_caller]
fn says(said: &str, expected: &[&str]) {
    for part in expected {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// SV-11: a description more is not a limit less.
#[test]
fn what_is_said_of_an_item_is_added_to_what_the_start_says() {
    let start = concat!(
        "  base: {overrides: {tools: {t: {name: find, description: old, annotations: {a: 1, b: 1}, ",
        "arguments: {owner: {fixed: acme}, n: {hidden: on}, q: {name: query, default: x}}}}, ",
        "prompts: {p: {title: kept, arguments: {a: {hidden: on}}}}, resources: {u: {name: kept, title: old}}}}\n",
        "  standard: {}\n",
    );
    let child = |said: &str| {
        variant_of(
            &format!("  c: {{from: base, overrides: {said}}}\n{start}"),
            0,
        )
    };
    let c = child(concat!(
        "{tools: {t: {description: new, annotations: {b: 2}, arguments: {q: {description: what}}}}, ",
        "prompts: {p: {description: new}}, resources: {u: {title: new}}}",
    ));
    says(
        &c,
        &[
            r#"name: Some("find"), title: None, description: Some("new"), annotations: {"a": Number("1"), "b": Number("2")}"#,
            r#""n": ArgumentOverride { name: None, description: None, hidden: true"#,
            r#""owner": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("#,
            r#""q": ArgumentOverride { name: Some("query"), description: Some("what"), hidden: false, fixed: None, default: Some("#,
            r#"title: Some("kept"), description: Some("new"), arguments: {"a": ArgumentOverride { name: None, description: None, hidden: true"#,
            r#"name: Some("kept"), title: Some("new")"#,
        ],
    );
    // What is said replaces what cannot hold beside it.
    let c =
        child("{tools: {t: {arguments: {n: {hidden: off}, q: {fixed: 1}, owner: {default: me}}}}}");
    says(
        &c,
        &[
            r#""n": ArgumentOverride { name: None, description: None, hidden: false"#,
            r#""q": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("…"), default: None"#,
            r#""owner": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("#,
        ],
    );
}

#[test]
fn what_is_full_again_is_no_longer_compact() {
    #[track_caller]
    fn is(said: &str, expected: &[&str]) {
        says(
            &variant_of(
                &format!("  c: {{from: compact{said}}}\n  standard: {{}}\n"),
                0,
            ),
            expected,
        );
    }
    let short = "description: FirstSentence, schema: Full";
    is("", &["base: Compact", "contextSize"]);
    is(", schemas: compact", &["base: Compact"]);
    is(", schemas: full", &["base: Standard", short]);
    is(
        ", descriptions: full",
        &["base: Standard", "description: Full, schema: Compact"],
    );
    let full = ", descriptions: full, schemas: full";
    is(
        full,
        &[
            "base: Standard",
            "description: Full, schema: Full",
            "hints: {}",
        ],
    );
}

/// SV-5: a variant is ranked by what somebody said of it, and by what it starts from.
#[test]
fn a_variant_claims_no_hint_that_nobody_gave_it() {
    #[track_caller]
    fn is(id: &str, said: &str, expected: &str) {
        let text = format!("  {id}: {{{said}}}\n  last: {{}}\n");
        says(&variant_of(&text, 0), &[&format!("hints: {expected}")]);
    }
    is("few", "tools: [a]", "{}");
    is("standard", "tools: [a]", r#"{"contextSize": "standard"}"#);
    is("few", "from: compact", r#"{"contextSize": "compact"}"#);
    is("few", "from: last", "{}");
    is("few", "hints: {useCase: u}", r#"{"useCase": "u"}"#);
    is("few", "from: read-only, hints: {}", "{}");
    is(
        "few",
        "from: read-only",
        r#"{"accessLevel": "readonly", "contextSize": "standard"}"#,
    );
}

/// Models choose by it: a variant is not described as one that shows more.
#[test]
fn a_variant_without_a_description_says_what_it_shows() {
    #[track_caller]
    fn is(id: &str, said: &str, expected: &str) {
        let text = format!("  {id}: {{{said}}}\n  last: {{}}\n");
        says(
            &variant_of(&text, 0),
            &[&format!("description: {expected:?}, ")],
        );
    }
    let standard =
        "Everything as the server describes it: all tools, full descriptions and schemas.";
    is("standard", "", standard);
    is("few", "", standard);
    is("few", "description: d, tools: [a]", "d");
    is(
        "few",
        "tools: [a, {name: b*, server: s}]",
        "Some of the tools: a; b*, server: s.",
    );
    is(
        "standard",
        "tools: {exclude: [secret]}",
        "Some of the tools.",
    );
    is("few", "prompts: [a]", "All tools. Some of the prompts: a.");
    is("few", "overrides: {tools: {a: {name: b}}}", "All tools.");
    is(
        "few",
        "schemas: compact",
        "All tools. Schemas without prose.",
    );
    is(
        "few",
        "from: compact, tools: [a]",
        "Some of the tools: a. The first sentence of each description, schemas without prose.",
    );
    is(
        "few",
        "from: read-only, tools: [a]",
        "Some of the tools: a. Only those that declare that they change nothing. \
         A selection by the server's own word, no protection against the server.",
    );
    is(
        "few",
        "tools: [a, b, c, d, e, f, g, h, i]",
        "Some of the tools: a; b; c; d; e; f; g; h and more.",
    );
}

#[test]
fn every_mistake_of_a_variant_is_said_at_once() {
    refuses(
        "vary.yaml",
        concat!(
            "servers: {a: {command: x}}\n",
            "variant: revewer\n",
            "variants:\n",
            "  reviewer:\n",
            "    form: read-only\n",
            "    status: stabel\n",
            "    tools: [\"a{b\", {readOnlyHint: maybe}]\n",
            "    features: [\"=x\"]\n",
            "    deprecation: {replacement: x}\n",
            "    overrides: {tools: {t: {arguments: {a: {hiden: true}}}}}\n",
            "  other: {from: revewer}\n",
            "  one: {from: two}\n",
            "  two: {from: one}\n",
        ),
        &[
            "2:10: `variant` is not a variant; did you mean `reviewer`?",
            "5:5: `variants.reviewer.form` is not a known key; did you mean `from`?",
            "6:13: `variants.reviewer.status` is `stabel`; did you mean `stable`?",
            "7:13: `variants.reviewer.tools[0]` is not a pattern: the pattern `a{b` cannot be read: unclosed alternate group; \
             missing '}' (maybe escape '{' with '[{]'?); write `*` for anything, `{a,b}` for one of several",
            "7:35: `variants.reviewer.tools[1].readOnlyHint` is `maybe`; there are `true`, `false`, `absent`",
            "8:16: `variants.reviewer.features[0]` is not a tag: a key is missing before `=` or after `!`; write tags such as \
             `human` or `format=markdown`",
            "9:18: `variants.reviewer.deprecation` has no `message`; add `message: ...`",
            "9:32: `variants.reviewer.deprecation.replacement` is not a variant; there are `reviewer`, `other`, `one`, `two`",
            "10:45: `variants.reviewer.overrides.tools.t.arguments.a.hiden` is not a known key; did you mean `hidden`?",
            "11:17: `variants.other.from` is not a variant; did you mean `reviewer`?",
            "12:15: `variants.one.from` leads back to the variant itself; take out one `from`",
            "13:15: `variants.two.from` leads back to the variant itself; take out one `from`",
        ],
    );
}

/// SV-11: what a variant cannot call a resource is said before any server is asked.
#[test]
fn a_uri_that_no_resource_can_have_is_a_mistake() {
    refuses(
        "vary.yaml",
        concat!(
            "servers: {a: {command: x}}\n",
            "variants:\n",
            "  v:\n",
            "    overrides:\n",
            "      resources:\n",
            "        doc:a: {uri: guide, mimeType: markdown}\n",
            "        \"doc:{name}\": {uri: \"guide:{title}\"}\n",
            "        \"doc:{a}/{b}\": {uri: \"guide:{a}{b}\"}\n",
            "        doc:b: {uri: \"vary://result/1\", mime-type: text/plain}\n",
            "        doc:c: {uriTemplate: doc:d}\n",
        ),
        &[
            "6:22: `variants.v.overrides.resources.doc:a.uri` is not a URI; begin with a scheme, such as `docs:`, and leave \
             out white space",
            "6:39: `variants.v.overrides.resources.doc:a.mimeType` is not a media type; write one like `text/markdown`",
            "7:29: `variants.v.overrides.resources.doc:{name}.uri` has `{title}` instead of `{name}` of the server's \
             template; write the same expressions in the same order, and change only the text around them",
            "8:30: `variants.v.overrides.resources.doc:{a}/{b}.uri` has nothing between `{a}` and `{b}`, so it is \
             ambiguous where one ends; put something between them",
            "9:22: `variants.v.overrides.resources.doc:b.uri` is a URI of the gateway's own; begin with another scheme",
            "9:41: `variants.v.overrides.resources.doc:b.mime-type` is not a known key; did you mean `mimeType`?",
            "10:17: `variants.v.overrides.resources.doc:c.uriTemplate` is not a known key; did you mean `uri`?",
        ],
    );
}

#[test]
fn what_is_likely_not_meant_is_noted() {
    let text =
        "servers: {a: {command: x}}\nvariants:\n  a: {status: stable, deprecation: {message: m}}\n";
    let notes: Vec<String> = read("vary.yaml", text)
        .notes
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        notes,
        [
            "3:36: `variants.a.deprecation` has no effect, since the variant is not deprecated; remove `status`, or this"
        ]
    );
}

/// SV-1: a removal date that is past is noted at its line, and the variant is still read.
#[test]
fn a_past_removal_date_is_noted_at_its_line() {
    let text = "servers: {a: {command: x}}\nvariants:\n  a: {}\n  b:\n    deprecation:\n      message: m\n      \
                removal-date: 2026-06-01\n";
    let notes = |today: &str| {
        let source = Source::new("vary.yaml", text).with_today(today.parse().unwrap());
        let file = source.read(&|_| None).unwrap();
        file.notes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(notes("2026-06-01"), [""; 0]);
    assert_eq!(
        notes("2026-06-02"),
        [
            "7:21: `variants.b.deprecation.removal-date` is past: `b` was to be removed on 2026-06-01 and is still \
             served; remove the variant, or move the date"
        ]
    );
}

/// What is wrong with variants that can be read one by one has its place, too.
#[test]
fn every_mistake_of_the_variants_together_has_its_line() {
    let variants = |text: &str| format!("servers: {a}\nvariants:\n{text}", a = "{a: {command: x}}");
    let refuses = |text: &str, expected: &[&str]| refuses("vary.yaml", &variants(text), expected);
    refuses(
        "  a: {status: experimental}\n",
        &[
            "3:3: `variants` has no stable variant; clients that choose none get the first stable one; mark one as \
           `status: stable`",
        ],
    );
    refuses(
        concat!(
            "  standard: {}\n",
            "  a:\n    deprecation: {message: m, replacement: a}\n",
            "  b:\n    deprecation: {message: m, replacement: standrd}\n",
            "  c:\n    deprecation: {message: m, removal-date: next year}\n",
        ),
        &[
            "5:44: `variants.a.deprecation.replacement` is the variant itself; name another, or leave it out",
            "7:44: `variants.b.deprecation.replacement` is not a variant; did you mean `standard`?",
            "9:45: `variants.c.deprecation.removal-date` is not a day of the calendar; write it as `2027-01-31`",
        ],
    );
    // Nor does what is wrong with one of them hide what is wrong with all.
    refuses(
        concat!(
            "  a: {colour: red, deprecation: {message: m, replacement: bb}}\n",
            "  b: {status: experimental, deprecation: {message: m, removal-date: 2027-02-30}}\n",
        ),
        &[
            "3:3: `variants` has no stable variant; clients that choose none get the first stable one; mark one as \
             `status: stable`",
            "3:7: `variants.a.colour` is not a known key; there are `from`, `description`, `hints`, `status`, `deprecation`, \
             `priority`, `tools`, `resources`, `prompts`, `descriptions`, `schemas`, `dialect`, `result`, `features`, \
             `overrides`",
            "3:59: `variants.a.deprecation.replacement` is not a variant; there are `a`, `b`",
            "4:69: `variants.b.deprecation.removal-date` is not a day of the calendar; write it as `2027-01-31`",
        ],
    );
    // Whether one is stable is not known while the name or the status of one is wrong.
    refuses(
        "  a: {status: stabel, deprecation: {message: m}}\n",
        &["3:15: `variants.a.status` is `stabel`; did you mean `stable`?"],
    );
    refuses(
        "  \"\": {}\n",
        &[
            "3:3: `variants.` is not a variant id: the identifier of a variant is empty; rename it, `reviewer` for \
           example",
        ],
    );
    refuses(
        "  {}\n",
        &[
            "3:3: `variants` is empty; write {reviewer: {description: \"For code review\", tools: [\"git_*\"]}}, or off",
        ],
    );
}

/// EXT-4: what is required is said by our names for it, or by its identifier.
#[test]
fn what_is_required_is_named() {
    let required = |text: &str| {
        let file = read(
            "vary.yaml",
            &format!("servers: {{a: {{command: x}}}}\n{text}"),
        );
        let config = file.into_config(Environment::new(|| 0, |bytes| bytes.fill(7)));
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
    assert_eq!(
        required(&format!("require: [{negotiation}]")),
        [negotiation]
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}
require: [negotiating, content-negotiation, server-variants, ui, 1/x, '']
variants: off",
        &[
            "2:11: `require[0]` is not an extension; did you mean `negotiation`?",
            "2:24: `require[1]` is not an extension; did you mean `negotiation`?",
            "2:45: `require[2]` is not an extension; did you mean `variants`?",
            "2:62: `require[3]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`",
            "2:66: `require[4]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`",
            "2:71: `require[5]` is not an extension; write `negotiation`, `variants`, or an identifier such as `com.example/units`",
        ],
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nnegotiation: off\nvariants: off\nrequire: [negotiation, variants]",
        &[
            "4:11: `require[0]` is required and switched off; leave it out, or remove `negotiation: off`",
            "4:24: `require[1]` is required and switched off; leave it out, or remove `variants: off`",
        ],
    );
}
