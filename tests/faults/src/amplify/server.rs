//! A server behind the gateway whose answers are as large as a case needs them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcp_vary_testkit::message::{introduced, notification};
use mcp_vary_testkit::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};
use serde_json::{Map, Value, json};

use crate::process::LONG;

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

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    scripted: ScriptedServer,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    kind: Kind,
    /// How often the tools were listed.
    listed: AtomicUsize,
    /// How many connections the gateway has opened.
    connected: AtomicUsize,
    /// Whether it has announced that its list changed, which it does once.
    is_changed: AtomicBool,
    /// The streams that are told. They stay open: one that ends would be opened again.
    streams: Mutex<Vec<Stream>>,
    /// The calls of `wait` that are not answered yet.
    waiting: Mutex<Vec<WaitingCall>>,
}

#[derive(Debug)]
struct WaitingCall {
    stream: Stream,
    answer: Value,
}

impl Server {
    pub(super) async fn start(kind: Kind) -> Self {
        let state = Arc::new(State {
            kind,
            listed: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
            is_changed: AtomicBool::new(false),
            streams: Mutex::default(),
            waiting: Mutex::default(),
        });
        let script = Arc::clone(&state);
        Self {
            scripted: ScriptedServer::start(move |seen| Some(script.reply(seen))).await,
            state,
        }
    }

    pub(super) fn url(&self) -> String {
        self.scripted.url.to_string()
    }

    /// Announces that the list of tools changed.
    pub(super) fn announce(&self) {
        let streams = self.state.streams();
        self.state.is_changed.store(true, Ordering::Relaxed);
        streams.iter().for_each(announce);
    }

    /// How often the tools were listed.
    pub(super) fn listed(&self) -> usize {
        self.state.listed.load(Ordering::Relaxed)
    }

    /// How many connections the gateway has opened: how often it sent `initialize`.
    pub(super) fn connected(&self) -> usize {
        self.state.connected.load(Ordering::Relaxed)
    }

    /// Waits until so many calls of `wait` have arrived.
    pub(super) fn until_waiting(&self, count: usize) -> Result<(), String> {
        let begun = Instant::now();
        while self.state.waiting().len() < count {
            if begun.elapsed() > LONG {
                return Err(format!("fewer than {count} calls of `wait` have arrived"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Answers the calls of `wait`.
    pub(super) fn answer_waiting(&self) {
        for call in self.state.waiting().drain(..) {
            let _ = call.stream.send(event(&call.answer).into());
        }
    }
}

type Stream = tokio::sync::mpsc::UnboundedSender<bytes::Bytes>;

fn announce(stream: &Stream) {
    let changed = notification("notifications/tools/list_changed", json!({}));
    let _ = stream.send(event(&changed).into());
}

impl State {
    fn streams(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, seen: &ReceivedRequest) -> Reply {
        let text = match seen.method() {
            "GET" => return self.stream(),
            _ if seen.id().is_null() => return Reply::new(202, "text/plain", ""),
            "initialize" => {
                self.connected.fetch_add(1, Ordering::Relaxed);
                introduced("s", self.capabilities()).to_string()
            }
            "tools/list" => self.tools(),
            "resources/list" => r#"{"resources":[]}"#.to_owned(),
            "resources/templates/list" => r#"{"resourceTemplates":[]}"#.to_owned(),
            "tools/call" if seen.body["params"]["name"] == "wait" => return self.wait(seen),
            "tools/call" => self.call(&seen.body),
            "ping" | "resources/subscribe" | "resources/unsubscribe" => "{}".to_owned(),
            _ => return seen.refuse(200, -32601, "unknown"),
        };
        let id = seen.id();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#);
        Reply::new(200, "application/json", body)
    }

    /// The stream of what happens: one event, when the list is announced.
    fn stream(&self) -> Reply {
        let (sender, reply) = Reply::stream();
        let mut streams = self.streams();
        if self.is_changed.load(Ordering::Relaxed) {
            announce(&sender);
        }
        streams.push(sender);
        reply
    }

    /// The stream of a call, which is answered later.
    fn wait(&self, seen: &ReceivedRequest) -> Reply {
        let (stream, reply) = Reply::stream();
        let content = json!([{"type": "text", "text": "waited"}]);
        let answer = seen.message(&json!({"content": content}));
        self.waiting().push(WaitingCall { stream, answer });
        reply
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
            r#"{{"tools":[{{"name":"text","inputSchema":{{"type":"object"}}}},{{"name":"deep","inputSchema":{{"type":"object"}}}},{{"name":"wait","inputSchema":{{"type":"object"}}}},{{"name":"choose","inputSchema":{{"type":"object","properties":{{"a":{{"anyOf":[{branches}]}}}}}}}}"#
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

/// How many arrays `deep` answers in each other.
const DEPTH: usize = 100_000;

const POLL: Duration = Duration::from_millis(20);
