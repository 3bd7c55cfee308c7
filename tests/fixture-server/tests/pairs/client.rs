//! A client of either era, over HTTP or on pipes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use mcp_vary_gateway::Gateway;
use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::stdio_pipe::StdioPipe;
use serde_json::{Value, json};

use crate::pair::Era;
use crate::wire::Answer;

/// One client, with a session if its era has them.
pub(crate) struct Client {
    pub(crate) era: Era,
    link: Link,
    session: Option<String>,
    capabilities: Value,
    /// What `initialize` or `server/discover` was answered.
    pub(crate) hello: Value,
    /// The stream of what comes beside the requests, over HTTP.
    ear: Option<Answer>,
    /// What came beside the requests, on pipes.
    told: VecDeque<Value>,
    last_id: u64,
}

/// What a client reaches the other side by.
pub(crate) enum Link {
    Http(SocketAddr),
    Stdio(StdioPipe),
}

impl Link {
    /// Pipes to Vary, as its parent has them.
    pub(crate) fn pipes_to(gateway: &Arc<Gateway>) -> Self {
        let gateway = Arc::clone(gateway);
        Self::Stdio(StdioPipe::connect(|read, write, stopped| async move {
            gateway.serve_stdio(read, write, stopped).await
        }))
    }
}

/// A request that is under way. Dropping it over HTTP is hanging up.
pub(crate) struct Sent {
    pub(crate) id: u64,
    pub(crate) answer: Option<Answer>,
    is_over: bool,
}

/// What came of a request.
pub(crate) struct Heard {
    /// The messages about it, before its answer.
    pub(crate) before: Vec<Value>,
    pub(crate) answer: Value,
}

impl Client {
    /// One that declares `capabilities`, and has begun as its era does.
    pub(crate) async fn begin(era: Era, link: Link, capabilities: Value) -> Self {
        let mut client = Self {
            era,
            link,
            session: None,
            capabilities,
            hello: Value::Null,
            ear: None,
            told: VecDeque::new(),
            last_id: 0,
        };
        client.hello = client.greet().await;
        client
    }

    async fn greet(&mut self) -> Value {
        if self.era == Era::Modern {
            return self.ask("server/discover", json!({})).await.answer;
        }
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": {"name": "pairs", "version": "1"},
        });
        let mut sent = self.send("initialize", params).await;
        let session = sent.answer.as_ref();
        let session = session.and_then(|answer| answer.header("mcp-session-id"));
        self.session = session.map(str::to_owned);
        let handshake = self.finish(&mut sent).await.answer;
        self.notify("notifications/initialized", json!({})).await;
        handshake
    }

    /// Sends a request, as clients of the era do.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> Sent {
        self.last_id += 1;
        let id = self.last_id;
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "pairs", "version": "1"});
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Sent {
            id,
            answer: self.write(&message).await,
            is_over: false,
        }
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let answer = self.write(&message).await;
        assert!(answer.is_none_or(|answer| answer.status == 202), "{method}");
    }

    /// Answers a request of the server's.
    pub(crate) async fn reply(&mut self, requested: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": requested["id"], "result": result});
        let answer = self.write(&message).await;
        assert!(
            answer.is_none_or(|answer| answer.status == 202),
            "{requested}"
        );
    }

    async fn write(&mut self, message: &Value) -> Option<Answer> {
        let post = self.post(message);
        match &mut self.link {
            Link::Http(address) => Some(Answer::to(*address, &post).await),
            Link::Stdio(pipes) => {
                pipes.send(message.to_string()).await;
                None
            }
        }
    }

    fn post(&self, message: &Value) -> HttpRequest {
        match (self.era, &self.session) {
            (Era::Modern, _) => HttpRequest::modern(message),
            (Era::Legacy, None) => HttpRequest::new(message.to_string()),
            (Era::Legacy, Some(session)) => HttpRequest::of(session, message.to_string())
                .with("MCP-Protocol-Version", "2025-11-25"),
        }
    }

    /// The next message about a request; none after the answer, or when its stream ends without one.
    pub(crate) async fn hear(&mut self, sent: &mut Sent) -> Option<Value> {
        if sent.is_over {
            return None;
        }
        let message = match (&mut sent.answer, &mut self.link) {
            (Some(answer), _) => answer.message().await,
            (None, Link::Stdio(pipes)) => loop {
                let message = pipes.receive().await;
                if !is_of_changes(&message) {
                    break Some(message);
                }
                self.told.push_back(message);
            },
            (None, Link::Http(_)) => None,
        };
        sent.is_over = message
            .as_ref()
            .is_none_or(|received| received["id"] == sent.id && received.get("method").is_none());
        message
    }

    /// All that comes of a request.
    pub(crate) async fn finish(&mut self, sent: &mut Sent) -> Heard {
        let mut before = Vec::new();
        while let Some(message) = self.hear(sent).await {
            if sent.is_over {
                return Heard {
                    before,
                    answer: message,
                };
            }
            before.push(message);
        }
        panic!("no answer, only {before:?}");
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Heard {
        let mut sent = self.send(method, params).await;
        let received = self.finish(&mut sent).await;
        self.check_form(method, &received.answer);
        received
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut answer = self.ask("tools/call", params).await.answer;
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].take()
    }

    /// Every result has what the client's revision requires of it.
    fn check_form(&self, method: &str, answer: &Value) {
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        let result = &answer["result"];
        if self.era == Era::Modern && result.is_object() {
            assert!(result["resultType"].is_string(), "{method}: {answer}");
            let is_cacheable = method.ends_with("/list")
                || method == "server/discover"
                || method == "resources/read";
            if is_cacheable && result["resultType"] == "complete" {
                assert!(result["ttlMs"].is_u64(), "{method}: {answer}");
                assert!(result["cacheScope"].is_string(), "{method}: {answer}");
            }
        }
    }

    /// Cancels, as clients of this era do on this transport, and waits until nothing more comes of the request.
    pub(crate) async fn cancel(&mut self, mut sent: Sent) -> Option<Value> {
        if let (Era::Modern, Link::Http(_)) = (self.era, &self.link) {
            drop(sent);
            return None;
        }
        let params = json!({"requestId": sent.id, "reason": "changed my mind"});
        self.notify("notifications/cancelled", params).await;
        match &self.link {
            Link::Http(_) => self.hear(&mut sent).await,
            // What is answered next is the next request.
            Link::Stdio(_) => {
                let mut next = self.send("tools/list", json!({})).await;
                let received = self.finish(&mut next).await;
                received.before.into_iter().next()
            }
        }
    }

    /// Ends what the answer to a request comes by, without a word: its connection, or the pipes with everything.
    pub(crate) async fn hang_up(self, sent: Sent) {
        drop(sent);
        if let Link::Stdio(pipes) = self.link {
            pipes.close().await;
        }
    }

    /// Comes back to the stream of a request after its last event.
    pub(crate) async fn come_back(&mut self, sent: &mut Sent) {
        let last = sent.answer.take().and_then(|answer| answer.last_event);
        let last = last.expect("events of a session have ids");
        let answer = self.get(Some(last)).await;
        sent.answer = Some(answer);
    }

    /// Hears from now on what comes beside the requests: what `filter` asks for where one has to ask.
    pub(crate) async fn listen(&mut self, filter: Value) {
        match (self.era, &self.link) {
            (Era::Modern, _) => {
                let params = json!({"notifications": filter});
                let sent = self.send("subscriptions/listen", params).await;
                self.ear = sent.answer;
                let notified = self.received().await;
                assert_eq!(
                    notified["method"],
                    "notifications/subscriptions/acknowledged"
                );
            }
            (Era::Legacy, Link::Http(_)) => self.ear = Some(self.get(None).await),
            (Era::Legacy, Link::Stdio(_)) => {}
        }
    }

    /// The next message beside the requests.
    pub(crate) async fn received(&mut self) -> Value {
        if let Some(sent) = self.told.pop_front() {
            return sent;
        }
        match (&mut self.ear, &mut self.link) {
            (Some(listener), _) => listener.message().await.expect("the stream goes on"),
            (None, Link::Stdio(pipes)) => pipes.receive().await,
            (None, Link::Http(_)) => panic!("nobody listens"),
        }
    }

    async fn get(&self, last_event: Option<String>) -> Answer {
        let Link::Http(address) = &self.link else {
            panic!("pipes have no streams");
        };
        let session = self.session.as_deref().expect("a session");
        let mut get = HttpRequest::of(session, "")
            .line("GET /mcp HTTP/1.1")
            .without("Content-Type")
            .with("Accept", "text/event-stream")
            .with("MCP-Protocol-Version", "2025-11-25");
        if let Some(id) = last_event {
            get = get.with("Last-Event-ID", id);
        }
        let answer = Answer::to(*address, &get).await;
        assert_eq!(answer.status, 200);
        answer
    }
}

impl Heard {
    /// The messages of this method, their params.
    pub(crate) fn of(&self, method: &str) -> Vec<&Value> {
        let of = self
            .before
            .iter()
            .filter(|message| message["method"] == method);
        of.map(|message| &message["params"]).collect()
    }
}

/// Whether a message is of those that belong to no request but a subscription.
fn is_of_changes(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    method.ends_with("/list_changed")
        || method == "notifications/resources/updated"
        || method == "notifications/subscriptions/acknowledged"
}
