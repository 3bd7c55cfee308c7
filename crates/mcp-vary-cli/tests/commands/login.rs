//! `vary login`, `vary logout`, and the commands that use a login.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_vary_testkit::login_server::{LoginServer, Response, parameter};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::program::{Run, Server, VARY, command, file};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A server, and a user who has nothing but an empty directory.
struct User {
    server: LoginServer,
    state: PathBuf,
    /// The server runs as long as this.
    _runtime: Runtime,
}

impl User {
    fn new(name: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("login-{name}"));
        let _ = std::fs::remove_dir_all(&state);
        Self {
            server: runtime.block_on(LoginServer::start()),
            state,
            _runtime: runtime,
        }
    }

    fn url(&self) -> String {
        self.server.url("/mcp")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("XDG_STATE_HOME", &self.state);
        // The files of a test are not sealed with a key of whoever runs it.
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// Logs in by pasting the address at which the browser would end.
    fn log_in(&self, server: &[&str]) -> Run {
        let mut command = self.command(&[&["login", "--no-browser"], server].concat());
        let command = command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut shown = String::new();
        while !shown.contains("/authorize?") && stderr.read_line(&mut shown).unwrap() > 0 {}
        let url = shown
            .lines()
            .find(|line| line.contains("/authorize?"))
            .unwrap_or_default();
        let [redirect, state] = ["redirect_uri", "state"].map(|name| parameter(url, name));
        let redirect = redirect.replace("%3A", ":").replace("%2F", "/");
        let pasted = format!("{redirect}?code=c&state={state}\n");
        child
            .stdin
            .take()
            .unwrap()
            .write_all(pasted.as_bytes())
            .unwrap_or_default();
        std::io::Read::read_to_string(&mut stderr, &mut shown).unwrap();
        Run {
            stdout: String::new(),
            stderr: shown,
            code: child.wait().unwrap().code(),
        }
    }
}

#[test]
fn a_login_serves_all_commands_until_the_logout() {
    let user = User::new("commands");
    let url = user.url();
    let refused = user.run(&["call", "whoami", &url]);
    let advice = format!("log in with `vary login {url}`");
    assert!(
        refused.code == Some(2) && refused.stderr.contains(&advice),
        "{refused:?}"
    );
    let logged_in = user.log_in(&[&url]).exited(0);
    let line = format!("logged in to {url}, refreshed by itself\n");
    assert_ends(&logged_in.stderr, &line);
    let called = user.run(&["call", "whoami", &url]).data(0);
    assert_contains(&called, &["somebody with a token"]);
    for command in ["tools", "inspect"] {
        let shown = user.run(&[command, &url]).exited(0);
        assert_contains(&shown.stdout, &["whoami"]);
    }
    let listed = user.run(&["login", "--list"]).data(0);
    assert_eq!(listed, format!("{url}  refreshed by itself\n"));
    let logged_out = user.run(&["logout", &url]).notices();
    assert_eq!(
        logged_out,
        format!("logged out of {url}; the tokens are revoked\n")
    );
    assert_eq!(user.run(&["login", "--list", "--json"]).data(0), "[]\n");
    let again = user.run(&["logout", &url]).exited(1);
    assert_contains(&again.stderr, &["nobody is logged in"]);
}

/// Nobody is there who could say whether both hosts are one service.
#[test]
fn without_a_terminal_no_other_host_gets_the_token() {
    let user = User::new("hosts");
    let token = user.server.url("/token");
    let elsewhere = token.replace("127.0.0.1", "localhost");
    user.server.metadata(json!({"token_endpoint": elsewhere}));
    let refused = user.run(&["login", "--no-browser", &user.url()]);
    let expected =
        "you would authorize at `127.0.0.1`, and `localhost` would get the token for that";
    assert_contains(&refused.stderr, &[expected]);
    assert_ne!(refused.code, Some(0));
    assert!(user.server.requests("POST /token").is_empty());
}

#[test]
fn a_server_of_a_file_is_logged_in_to_by_its_name() {
    let user = User::new("names");
    let text = format!(
        "servers: {{notes: {{url: '{}'}}, other: {{command: x}}}}\n",
        user.url()
    );
    let path = file("login.yaml", &text);
    let refused = user.run(&["call", "whoami", &path, "--server", "notes"]);
    assert_contains(
        &refused.stderr,
        &[&format!("log in with `vary login notes --file {path}`")],
    );
    let _logged_in = user.log_in(&["notes", "--file", &path]).exited(0);
    let called = user
        .run(&["call", "whoami", &path, "--server", "notes"])
        .data(0);
    assert_contains(&called, &["somebody with a token"]);
    // The file of a client has no place for `auth`.
    let entry = format!(
        "{{\"mcpServers\": {{\"notes\": {{\"type\": \"http\", \"url\": \"{}\"}}}}}}",
        user.url()
    );
    let of_client = file("login-client.json", &entry);
    let _called = user.run(&["call", "whoami", &of_client]).exited(0);
    user.run(&["logout", "notes", "--file", &of_client])
        .notices();
    let refused = user.run(&["call", "whoami", &of_client]);
    assert_contains(
        &refused.stderr,
        &[&format!(
            "log in with `vary login notes --file {of_client}`"
        )],
    );
    user.run(&["login", "other", "--file", &path])
        .refuses(&["`other` of", "has no `url`"]);
}

/// Several people use a gateway with `auth`, and the login is that of one.
#[test]
fn a_file_with_auth_does_not_use_the_login_of_who_starts_it() {
    let user = User::new("auth");
    let _logged_in = user.log_in(&[&user.url()]).exited(0);
    let servers = format!("servers: {{notes: {{url: '{}'}}}}\n", user.url());
    let alone = file("login-alone.yaml", &servers);
    let _checked = user.run(&["config", "check", &alone]).exited(0);
    let digest = "0".repeat(64);
    let auth = format!("auth: {{keys: [{{name: ann, sha256: '{digest}'}}]}}\n");
    let shared = file("login-shared.yaml", &(servers + &auth));
    let refused = user.run(&["config", "check", &shared]).exited(1);
    let shown = refused.stdout + &refused.stderr;
    assert_contains(&shown, &["401 Unauthorized"]);
}

/// Without a restart: a gateway that runs notices what another process stores.
#[test]
fn a_server_joins_a_running_gateway_after_the_login() {
    let user = User::new("joins");
    let text = format!(
        "servers: {{notes: {{url: '{}', auth: login}}, sky: {{command: {VARY:?}, args: [weather]}}}}\n",
        user.url()
    );
    let path = file("login-joins.yaml", &text);
    let args = ["serve", "--listen", "0", "--admin", "0", &path];
    let opened = user.state.join("opened");
    let mut serve = user.command(&args);
    serve.env("BROWSER", format!("touch {}", opened.display()));
    let mut server = Server::of(&mut serve);
    let advice = &*format!("log in with `vary login notes --file {path}`");
    assert_eq!(server.said.matches(advice).count(), 1, "{}", server.said);
    assert_eq!(server.tools(), ["sky_get_weather", "sky_get_forecast"]);
    let down = user.run(&["status", &server.admin()]).exited(1);
    assert_contains(&down.stdout, &[advice]);
    let _logged_in = user.log_in(&["notes", "--file", &path]).exited(0);
    let line = server.says("`notes` is ready after");
    assert_contains(&line, &["1 tool, login refreshed by itself"]);
    let tools = server.tools();
    assert!(tools.contains(&"notes_whoami".to_owned()), "{tools:?}");
    let up = user.run(&["status", &server.admin()]).data(0);
    let login = "login at `notes`: refreshed by itself\n";
    assert_contains(&up, &[login]);
    let json = user.run(&["status", "--json", &server.admin()]).data(0);
    assert_contains(&json, &["\"refreshed\": true"]);
    for shown in [&up, &json, &server.end_with_said().1] {
        assert_lacks(shown, &["TOPSECRET"]);
    }
    assert!(!opened.exists(), "a gateway opens no browser");
}

/// The login, a refresh and a call with everything that can be logged, and the audit log of a gateway.
#[test]
fn nothing_that_is_written_has_a_token_but_the_file_of_the_login() {
    let user = User::new("written");
    let url = user.url();
    let short = json!({
        "access_token": "TOPSECRET-access-0", "refresh_token": "TOPSECRET-refresh-0", "token_type": "Bearer", "expires_in": 1,
    });
    user.server.next_token("200 OK", &short);
    let logged_in = user.log_in(&[&url, "--log", "trace"]).exited(0);
    let called = user
        .run(&["call", "whoami", &url, "--log", "trace"])
        .exited(0);
    assert_contains(&called.stderr, &["TRACE"]);
    let tokens = user.server.requests("POST /token");
    assert_eq!(parameter(&tokens[1].body, "grant_type"), "refresh_token");
    let audit = user.state.join("audit.jsonl");
    let servers = format!("servers: {{notes: {{url: '{url}'}}}}\n");
    let text = format!("{servers}audit: {{to: 'file {}'}}\n", audit.display());
    let path = file("login-written.yaml", &text);
    let server = Server::of(&mut user.command(&["serve", "--listen", "0", &path]));
    assert_eq!(server.tools(), ["whoami"]);
    let (_, said) = server.end_with_said();
    let recorded = std::fs::read_to_string(audit).unwrap();
    assert_contains(&recorded, &["tools/list"]);
    for text in [
        &logged_in.stderr,
        &called.stderr,
        &called.stdout,
        &said,
        &recorded,
    ] {
        assert_lacks(text, &["TOPSECRET"]);
    }
    let entries = std::fs::read_dir(user.state.join("vary/logins")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let has_token = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains("TOPSECRET");
    let with_tokens: Vec<_> = paths.filter(has_token).collect();
    assert_eq!(with_tokens.len(), 1);
    assert_eq!(with_tokens[0].extension().unwrap(), "login");
}

/// A gateway with `auth` serves several people: what they all use is configured.
#[test]
fn a_service_has_credentials_of_its_own() {
    let user = User::new("service");
    let digest = "0".repeat(64);
    let text = format!(
        "auth: {{keys: [{{name: ann, sha256: '{digest}'}}]}}\nservers: {{notes: {{url: '{}', auth: \
         {{client-credentials: {{client-id: robot, client-secret: '${{ROBOT}}', issuer: '{}'}}}}}}}}\n",
        user.url(),
        user.server.url("")
    );
    let path = file("login-service.yaml", &text);
    let mut check = user.command(&["config", "check", &path]);
    let checked = Run::of(check.env("ROBOT", "TOPSECRET-robot")).exited(0);
    assert_lacks(&checked.stderr, &["TOPSECRET"]);
    let requests = user.server.requests("POST /token");
    let [request] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!(parameter(&request.body, "grant_type"), "client_credentials");
    let resource = parameter(&request.body, "resource");
    let resource = resource.replace("%3A", ":").replace("%2F", "/");
    assert_eq!(resource, user.url());
    assert!(!user.state.join("vary/logins").exists());
    let mut login = user.command(&["login", "notes", "--file", &path]);
    let refused = Run::of(login.env("ROBOT", "TOPSECRET-robot"));
    refused.refuses(&["has credentials of its own in `auth`"]);
}

#[test]
fn the_keys_of_a_file_seal_its_logins() {
    let user = User::new("keys");
    let key = "0123456789abcdef0123456789abcdef";
    let text = format!(
        "keys: ['{key}']\nservers: {{notes: {{url: '{}', auth: login}}}}\n",
        user.url()
    );
    let path = file("login-keys.yaml", &text);
    let _logged_in = user.log_in(&["notes", "--file", &path]).exited(0);
    let entries = std::fs::read_dir(user.state.join("vary/logins")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut stored = paths.filter(|path| path.extension().is_some_and(|it| it == "login"));
    let stored = std::fs::read_to_string(stored.next().unwrap()).unwrap();
    assert_starts(&stored, "vary-sealed-v1 ");
    assert_eq!(user.run(&["call", "whoami", &path]).code, Some(0));
    let listed = user.run(&["login", "--list", "--file", &path]).data(0);
    assert_eq!(listed, format!("{}  refreshed by itself\n", user.url()));
    let directory = user.state.join("project");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::copy(path, directory.join("vary.yaml")).unwrap();
    let mut beside = user.command(&["login", "--list"]);
    let found = Run::of(beside.current_dir(&directory)).data(0);
    assert_eq!(found, listed, "the file of the directory has the keys, too");
    let unreadable = user.run(&["login", "--list"]).exited(1);
    assert_contains(&unreadable.stdout, &["is sealed with a key"]);
}

#[test]
fn a_check_uses_the_login() {
    let user = User::new("check");
    let url = user.url();
    let refused = user.run(&["check", &url]);
    let advice = format!("log in with `vary login {url}`");
    refused.refuses(&[&advice]);
    let _logged_in = user.log_in(&[&url]).exited(0);
    let before = user.server.requests("POST /mcp").len();
    let checked = user.run(&["check", "--only", "EXT-2", &url]);
    assert_ne!(checked.code, Some(2), "{}", checked.stderr);
    let requests = user.server.requests("POST /mcp");
    let tokens = requests[before..].iter();
    assert!(requests.len() > before);
    assert!(
        tokens
            .clone()
            .all(|it| it.head.contains(": Bearer TOPSECRET-access-"))
    );
    assert_lacks(&checked.stdout, &["TOPSECRET"]);
}

/// `vary call --login` with a browser that agrees. Returns the address that it opened last.
fn call_with_browser(user: &User) -> String {
    let script = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1])\n";
    let browser = file("browser.py", script);
    let mut call = user.command(&["call", "whoami", "--login", &user.url()]);
    call.env("BROWSER", format!("python3 {}", browser));
    let called = Run::of(&mut call).exited(0);
    assert_contains(&called.stdout, &["somebody with a token"]);
    assert_contains(&called.stderr, &["/authorize?"]);
    user.server.requests("GET /authorize").pop().unwrap().line
}

#[test]
fn a_call_opens_the_browser_in_the_middle() {
    let user = User::new("browser");
    call_with_browser(&user);
    assert_eq!(user.server.requests("GET /authorize").len(), 1);
}

#[test]
fn a_code_is_entered_on_another_device() {
    let user = User::new("device");
    let device = json!({
        "device_code": "TOPSECRET-device", "user_code": "AB-CD", "verification_uri": user.server.url("/d"), "expires_in": 60,
        "interval": 1,
    });
    user.server
        .respond("/device", &Response::new("200 OK", &device));
    let logged_in = user.run(&["login", "--device", &user.url()]).exited(0);
    let shown = format!(
        "open {} on any device, and enter the code AB-CD",
        user.server.url("/d")
    );
    assert_contains(&logged_in.stderr, &[&shown]);
    assert_lacks(&logged_in.stderr, &["TOPSECRET"]);
    assert_eq!(user.run(&["call", "whoami", &user.url()]).code, Some(0));
}

/// The call that the server refused is sent again with the new token.
#[test]
fn a_call_opens_the_browser_for_a_missing_scope() {
    let user = User::new("scope");
    user.server.challenge("scope=read");
    let _logged_in = user.log_in(&[&user.url()]).exited(0);
    user.server.require_scope("write");
    let refused = user.run(&["call", "whoami", &user.url()]).exited(1);
    assert_contains(&refused.stdout, &["it needs another scope: write"]);
    let opened = call_with_browser(&user);
    let scope = parameter(&opened, "scope");
    let scopes: BTreeSet<_> = scope.split("%20").collect();
    assert_eq!(scopes, BTreeSet::from(["read", "write"]));
    assert_eq!(user.server.requests("GET /authorize").len(), 1);
}

#[test]
fn what_cannot_be_logged_in_to_says_why() {
    let user = User::new("refused");
    user.run(&["login"]).refuses(&["<SERVER | URL>"]);
    user.run(&["login", "ftp://a/"])
        .refuses(&["is not the URL of an MCP server"]);
    user.run(&["login", "https://user:pw@a.example/mcp"])
        .refuses(&["cannot be used"]);
    let closed = user.run(&["login", "http://127.0.0.1:1/mcp"]);
    assert_eq!(
        closed.stderr,
        "error: http://127.0.0.1:1/mcp: it cannot be reached: connection refused\n"
    );
    let url = "https://a.example/mcp";
    let mut behind = user.command(&["login", url]);
    let behind = Run::of(behind.env("HTTPS_PROXY", "http://127.0.0.1:1"));
    assert_eq!(
        behind.stderr,
        "error: https://a.example/mcp: it cannot be reached: through the proxy http://127.0.0.1:1 (`HTTPS_PROXY`): connection \
         refused\n"
    );
    let ca = user.run(&["login", url, "--ca", "/nowhere/ca.pem"]);
    let why = "`ca`: /nowhere/ca.pem cannot be read: no such file or directory";
    assert_contains(&ca.stderr, &[why]);
    let plain = user
        .run(&["login", "http://192.0.2.1/mcp?key=TOPSECRET"])
        .exited(1);
    assert_contains(&plain.stderr, &["does not begin with `https://`"]);
    assert_lacks(&plain.stderr, &["TOPSECRET"]);
    assert!(!user.state.join("vary/logins").exists());
}
