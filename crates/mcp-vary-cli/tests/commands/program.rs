//! Starts the program and reads what it says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};

use crate::text::assert_contains;

/// The program under test.
pub(crate) const VARY: &str = env!("CARGO_BIN_EXE_vary");

/// What follows `--` to put the weather server behind.
pub(crate) const WEATHER: [&str; 3] = ["--", VARY, "weather"];

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// The program with `args`, apart from the terminal and the environment's log level.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(VARY);
    command
        .args(args)
        .env_remove("VARY_LOG")
        .env(
            "XDG_STATE_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/state"),
        )
        .stdin(Stdio::null());
    command
}

/// Runs the program to its end.
#[track_caller]
pub(crate) fn run(args: &[&str]) -> Run {
    Run::of(&mut command(args))
}

/// Runs the program in front of the weather server.
#[track_caller]
pub(crate) fn with_weather(args: &[&str]) -> Run {
    run(&[args, &WEATHER].concat())
}

impl Run {
    /// Runs `command` to its end.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// Runs the program with `args` and a state directory to its end.
    #[track_caller]
    pub(crate) fn with_state(state: &Path, args: &[&str]) -> Self {
        Self::of(&mut command_with_state(state, args))
    }

    /// Checks that it ended with `code` and printed exactly `messages` besides data.
    #[track_caller]
    pub(crate) fn prints(&self, code: i32, messages: &str) {
        let printed = (self.code, self.stderr.as_str());
        assert_eq!(printed, (Some(code), messages), "{}", self.stdout);
    }

    /// The run itself, which ended with `code`.
    #[track_caller]
    pub(crate) fn exited(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    /// The data, of a run that ended with `code` and had nothing to say.
    #[track_caller]
    pub(crate) fn data(self, code: i32) -> String {
        self.prints(code, "");
        self.stdout
    }

    /// The JSON, of a run that ended with `code` and had nothing to say.
    #[track_caller]
    pub(crate) fn json(self, code: i32) -> Value {
        serde_json::from_str(&self.data(code)).unwrap()
    }

    /// The notices, of a run that ended well.
    #[track_caller]
    pub(crate) fn notices(self) -> String {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(0), ""),
            "{}",
            self.stderr
        );
        self.stderr
    }

    /// The data, of a run that ended with `code` and noted something of its configuration, one note with each of `parts`.
    #[track_caller]
    pub(crate) fn data_with_note(self, code: i32, parts: &[&str]) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("note: "), "{}", self.stderr);
        assert_eq!(self.stderr.matches("note: ").count(), 1, "{}", self.stderr);
        assert_contains(&self.stderr, parts);
        self.stdout
    }

    /// Checks that the command could not be carried out, and says each of `parts`.
    #[track_caller]
    pub(crate) fn refuses(&self, parts: &[&str]) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(2), ""),
            "{}",
            self.stderr
        );
        assert_contains(&self.stderr, parts);
    }
}

/// The path of a file that is written for one test.
pub(crate) fn file(name: &str, text: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, text).unwrap();
    path
}

/// The empty state directory of one test.
pub(crate) fn state(name: &str) -> PathBuf {
    let state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&state);
    state
}

/// The program with `args` and a state directory, and without a token of the operator.
pub(crate) fn command_with_state(state: &Path, args: &[&str]) -> Command {
    let mut command = command(args);
    command
        .env("XDG_STATE_HOME", state)
        .env_remove("VARY_ADMIN_TOKEN");
    command
}

/// The text of a configuration with the weather server `sky` and the lines `more`.
pub(crate) fn sky(more: &str) -> String {
    format!("servers: {{sky: {{command: {VARY:?}, args: [weather]}}}}\n{more}")
}

/// Sends the signal `name` to a process.
#[cfg(unix)]
#[track_caller]
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// A program that serves, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
    /// What it said until it served.
    pub(crate) said: String,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts the program and waits until it says where it serves.
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// Starts to serve `args` at any free port.
    #[track_caller]
    pub(crate) fn serve(args: &[&str]) -> Self {
        Self::start(&[&["serve", "--listen", "0"], args].concat())
    }

    /// Starts to serve in front of the weather server.
    #[track_caller]
    pub(crate) fn with_weather(args: &[&str]) -> Self {
        Self::serve(&[args, &WEATHER].concat())
    }

    /// The same as `start` with further variables in its environment.
    #[track_caller]
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::of(command(args).envs(variables.iter().copied()))
    }

    /// The same as `start` with a state directory.
    #[track_caller]
    pub(crate) fn with_state(state: &Path, args: &[&str]) -> Self {
        Self::of(&mut command_with_state(state, args))
    }

    /// Starts `command` and waits until it says where it serves.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut printed = String::new();
        let address = loop {
            let start = printed.len();
            assert_ne!(
                stderr.read_line(&mut printed).unwrap(),
                0,
                "it ended: {printed}"
            );
            let address = printed[start..].trim().strip_prefix("serving at http://");
            if let Some(address) = address.and_then(|url| url.strip_suffix("/mcp")) {
                break address.parse().unwrap();
            }
        };
        let server = Self {
            child,
            stderr,
            said: printed,
            address,
        };
        // Tests run at the same time, and another program may have the port.
        assert_ne!(server.address.port(), 8800, "serve with `--listen 0`");
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The address that it said it answers its operator at.
    #[track_caller]
    pub(crate) fn admin(&self) -> String {
        self.printed("status: vary status ")
    }

    /// The rest of the line that it began so.
    #[track_caller]
    pub(crate) fn printed(&self, begin: &str) -> String {
        let lines = self.said.lines();
        let mut found = lines.filter_map(|line| line.strip_prefix(begin));
        found
            .next()
            .unwrap_or_else(|| panic!("{begin}: {}", self.said))
            .to_owned()
    }

    /// Posts a message and returns the whole HTTP response.
    pub(crate) fn post(&self, body: &str) -> String {
        self.post_with(body, "")
    }

    /// The same with further headers, a line each.
    pub(crate) fn post_with(&self, body: &str, headers: &str) -> String {
        let mut socket = TcpStream::connect(self.address).unwrap();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }

    /// The names of the tools that it lists to a client of 2026-07-28.
    pub(crate) fn tools(&self) -> Vec<String> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let list =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
        let answer = self.post_with(&list.to_string(), head);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let tools = body["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What it says until and with the line that has `part`.
    #[track_caller]
    pub(crate) fn says(&mut self, part: &str) -> String {
        let mut text = String::new();
        loop {
            let start = text.len();
            assert_ne!(self.stderr.read_line(&mut text).unwrap(), 0, "{text}");
            if text[start..].contains(part) {
                return text;
            }
        }
    }

    /// Asks it to end, and returns how it did and what it still said.
    #[cfg(unix)]
    pub(crate) fn end(self) -> (Option<i32>, String) {
        signal("TERM", self.child.id());
        self.ended()
    }

    /// The same with what it said before.
    #[cfg(unix)]
    pub(crate) fn end_with_said(self) -> (Option<i32>, String) {
        let before = self.said.clone();
        let (code, text) = self.end();
        (code, before + &text)
    }

    /// Waits until it has ended, and returns how it did and what it still said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole HTTP response to a `GET`.
pub(crate) fn get(address: &str, path: &str) -> String {
    answer(address, "GET", path, "")
}

/// What a server answers to a request with this token, as text; without a token, if that is empty.
pub(crate) fn answer(address: &str, method: &str, path: &str, token: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let credential = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{credential}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

/// The first message of a client.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
