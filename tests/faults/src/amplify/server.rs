//! A server behind the gateway whose answers are as large as a case needs them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// What the server lists and answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    /// How many tools more it lists once it has announced them.
    pub(super) tools: usize,
    /// How many branches the argument of `choose` has.
    pub(super) branches: usize,
    /// How many bytes the text of a result has.
    pub(super) text: usize,
    /// How many variants it offers itself.
    pub(super) variants: usize,
}

/// A server that runs until this process ends.
#[derive(Debug)]
pub(super) struct Server {
    address: String,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    kind: Kind,
    /// How often the tools were listed.
    listed: AtomicUsize,
    /// Whether it has announced that its list changed, which it does once.
    is_changed: AtomicBool,
}

impl Server {
    pub(super) fn start(kind: Kind) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let state = Arc::new(State {
            kind,
            listed: AtomicUsize::new(0),
            is_changed: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.serve(stream));
            }
        });
        Ok(Self {
            address: address.to_string(),
            state,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Announces that the list of tools changed.
    pub(super) fn announce(&self) {
        self.state.is_changed.store(true, Ordering::Relaxed);
    }

    /// How often the tools were listed.
    pub(super) fn listed(&self) -> usize {
        self.state.listed.load(Ordering::Relaxed)
    }
}

impl State {
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            let mut verb = String::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                let line = line.trim_end();
                if verb.is_empty() {
                    verb = line.split(' ').next()?.to_owned();
                }
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().ok()?;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            if verb == "GET" {
                return self.stream(reader.get_mut());
            }
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let reply = match (&*verb, &message["id"]) {
                ("POST", Value::Null) => reply("202 Accepted", ""),
                ("POST", id) => reply("200 OK", &self.answer(id, &message)),
                _ => reply("405 Method Not Allowed", ""),
            };
            reader.get_mut().write_all(reply.as_bytes()).ok()?;
        }
    }

    /// The stream of what happens: one event, when the list is announced.
    fn stream(&self, stream: &mut TcpStream) -> Option<()> {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        while !self.is_changed.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
        let event = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        stream.write_all(format!("{event}\n\n").as_bytes()).ok()?;
        // The stream stays open: one that ends would be opened again.
        let _ = stream.read(&mut [0]);
        None
    }

    fn answer(&self, id: &Value, message: &Value) -> String {
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": self.capabilities(),
                "serverInfo": {"name": "s", "version": "1"},
            })
            .to_string(),
            "tools/list" => self.tools(),
            "resources/list" => r#"{"resources":[]}"#.to_owned(),
            "resources/templates/list" => r#"{"resourceTemplates":[]}"#.to_owned(),
            "tools/call" => self.call(message),
            "ping" | "resources/subscribe" | "resources/unsubscribe" => "{}".to_owned(),
            _ => {
                return format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"unknown"}}}}"#
                );
            }
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }

    fn capabilities(&self) -> Value {
        let mut capabilities =
            json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        let variants = (0..self.kind.variants).map(|at| {
            let hints: Map<_, _> = (0..8)
                .map(|hint| (format!("k{hint}"), json!("v")))
                .collect();
            json!({"id": format!("v{at}"), "description": "A variant.", "hints": hints})
        });
        let variants: Vec<_> = variants.collect();
        if !variants.is_empty() {
            capabilities["extensions"][VARIANTS] = json!({"availableVariants": variants});
        }
        capabilities
    }

    /// Few tools before they are announced, so that what the others take can be seen.
    fn tools(&self) -> String {
        let branches = vec![r#"{"type":"integer"}"#; self.kind.branches.max(1)].join(",");
        let mut tools = format!(
            r#"{{"tools":[{{"name":"text","inputSchema":{{"type":"object"}}}},{{"name":"deep","inputSchema":{{"type":"object"}}}},{{"name":"choose","inputSchema":{{"type":"object","properties":{{"a":{{"anyOf":[{branches}]}}}}}}}}"#
        );
        self.listed.fetch_add(1, Ordering::Relaxed);
        if self.is_changed.load(Ordering::Relaxed) {
            for at in 0..self.kind.tools {
                tools.push_str(&format!(r#",{{"name":"t{at}"}}"#));
            }
        }
        tools.push_str("]}");
        tools
    }

    fn call(&self, message: &Value) -> String {
        match message["params"]["name"].as_str() {
            Some("deep") => {
                let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
                format!(r#"{{"content":[],"structuredContent":{{"a":{open}{close}}}}}"#)
            }
            _ => {
                let text = "x y\\n".repeat(self.kind.text / 4);
                format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
            }
        }
    }
}

const VARIANTS: &str = "io.modelcontextprotocol/server-variants";

fn reply(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// How many arrays `deep` answers in each other.
const DEPTH: usize = 100_000;
