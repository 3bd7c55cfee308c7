//! `vary login`, `vary logout`, and the commands that use a login.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_vary_testkit::login_server::{LoginServer, parameter};
use tokio::runtime::Runtime;

use crate::program::{Run, command, file};

/// A server, and a user who has nothing but an empty directory.
struct User {
    server: LoginServer,
    state: PathBuf,
    runtime: Runtime,
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
            runtime,
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
    let logged_in = user.log_in(&[&url]);
    assert_eq!(logged_in.code, Some(0), "{}", logged_in.stderr);
    let line = format!("logged in to {url} refreshed by itself\n");
    assert!(logged_in.stderr.ends_with(&line), "{}", logged_in.stderr);
    let called = user.run(&["call", "whoami", &url]).data(0);
    assert!(called.contains("somebody with a token"), "{called}");
    let listed = user.run(&["login", "--list"]).data(0);
    assert_eq!(listed, format!("{url}  refreshed by itself\n"));
    let logged_out = user.run(&["logout", &url]).notices();
    assert_eq!(
        logged_out,
        format!("logged out of {url}; the tokens are revoked\n")
    );
    assert_eq!(user.run(&["login", "--list", "--json"]).data(0), "[]\n");
    let again = user.run(&["logout", &url]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(
        again.stderr.contains("nobody is logged in"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_server_of_a_file_is_logged_in_to_by_its_name() {
    let user = User::new("names");
    let text = format!(
        "servers: {{notes: {{url: '{}'}}, other: {{command: x}}}}\n",
        user.url()
    );
    let path = file("login.yaml", &text);
    let path = path.to_str().unwrap();
    let refused = user.run(&["call", "whoami", path, "--server", "notes"]);
    assert!(
        refused.stderr.contains("log in with `vary login notes`"),
        "{}",
        refused.stderr
    );
    let logged_in = user.log_in(&["notes", "--file", path]);
    assert_eq!(logged_in.code, Some(0), "{}", logged_in.stderr);
    let called = user
        .run(&["call", "whoami", path, "--server", "notes"])
        .data(0);
    assert!(called.contains("somebody with a token"), "{called}");
    user.run(&["login", "other", "--file", path])
        .refuses(&["`other` of", "has no `url`"]);
}

/// Several people use a gateway with `auth`, and the login is that of one.
#[test]
fn a_file_with_auth_does_not_use_the_login_of_who_starts_it() {
    let user = User::new("auth");
    let logged_in = user.log_in(&[&user.url()]);
    assert_eq!(logged_in.code, Some(0), "{}", logged_in.stderr);
    let servers = format!("servers: {{notes: {{url: '{}'}}}}\n", user.url());
    let alone = file("login-alone.yaml", &servers);
    let called = user.run(&["call", "whoami", alone.to_str().unwrap()]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let digest = "0".repeat(64);
    let auth = format!("auth: {{keys: [{{name: ann, sha256: '{digest}'}}]}}\n");
    let shared = file("login-shared.yaml", &(servers + &auth));
    let refused = user.run(&["call", "whoami", shared.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("401 Unauthorized"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_call_opens_the_browser_in_the_middle() {
    let user = User::new("browser");
    let script = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1])\n";
    let browser = file("browser.py", script);
    let mut call = user.command(&["call", "whoami", "--login", &user.url()]);
    call.env("BROWSER", format!("python3 {}", browser.display()));
    let called = Run::of(&mut call);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    assert!(
        called.stdout.contains("somebody with a token"),
        "{}",
        called.stdout
    );
    assert!(called.stderr.contains("/authorize?"), "{}", called.stderr);
    assert_eq!(user.server.requests("GET /authorize").len(), 1);
    drop(user.runtime);
}

#[test]
fn what_cannot_be_logged_in_to_says_why() {
    let user = User::new("refused");
    user.run(&["login"]).refuses(&["<SERVER | URL>"]);
    user.run(&["login", "ftp://a/"])
        .refuses(&["is not the URL of an MCP server"]);
    user.run(&["login", "https://user:pw@a.example/mcp"])
        .refuses(&["cannot be used"]);
    let plain = user.run(&["login", "http://192.0.2.1/mcp?key=TOPSECRET"]);
    assert_eq!(plain.code, Some(1));
    assert!(
        plain.stderr.contains("does not begin with `https://`"),
        "{}",
        plain.stderr
    );
    assert!(!plain.stderr.contains("TOPSECRET"), "{}", plain.stderr);
    assert!(!user.state.join("vary/logins").exists());
}
