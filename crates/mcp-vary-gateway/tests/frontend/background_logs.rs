//! Log messages about a call that the server has already answered reach the client that made the call, or no client.

use std::collections::BTreeMap;

use mcp_vary_upstream::Isolation;

use crate::support::*;

const SECRET: &str = "SECRET-OF-A";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A process that logs in the background.
fn process() -> Config {
    config(of_script("logs.py"))
}

/// The same behind an endpoint, which logs on the stream of the `GET`.
async fn endpoint() -> (ScriptedServer, Config) {
    let state = Mutex::new(State {
        tools: ["start", "work", "after"].map(str::to_owned).to_vec(),
        sessions: BTreeMap::new(),
    });
    let peer = ScriptedServer::start(move |seen| state.lock().unwrap().reply_to(seen)).await;
    let config = config(Target::http(peer.url.clone()));
    (peer, config)
}

/// What the endpoint has.
struct State {
    tools: Vec<String>,
    sessions: BTreeMap<String, Session>,
}

/// A session of the endpoint: what it has still to log, and its streams.
#[derive(Default)]
struct Session {
    pending: Vec<Value>,
    streams: Vec<UnboundedSender<Bytes>>,
}

impl Session {
    fn send(&self, message: &Value) {
        for stream in &self.streams {
            let _ = stream.send(event(message).into());
        }
    }

    fn log(&self, data: &Value) {
        let params = json!({"level": "info", "data": data});
        self.send(&notification("notifications/message", params));
    }
}

impl State {
    fn session(&mut self, seen: &ReceivedRequest) -> &mut Session {
        let id = seen.header("mcp-session-id").unwrap_or_default();
        self.sessions.entry(id.to_owned()).or_default()
    }

    fn reply_to(&mut self, seen: &ReceivedRequest) -> Option<Reply> {
        let capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
        let result = match (seen.method(), seen.body["params"]["name"].as_str()) {
            ("initialize", _) => {
                let id = format!("s-{}", self.sessions.len());
                self.sessions.insert(id.clone(), Session::default());
                let reply = seen.answer(&introduced("logs", capabilities));
                return Some(reply.with_header("mcp-session-id", id));
            }
            ("GET", _) => {
                let (sender, reply) = Reply::stream();
                self.session(seen).streams.push(sender);
                return Some(reply);
            }
            ("tools/list", _) => {
                let tools = self.tools.iter();
                let tools =
                    tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
                json!({"tools": tools.collect::<Vec<_>>()})
            }
            ("logging/setLevel", _) => json!({}),
            ("tools/call", Some(name)) => {
                match name {
                    "start" => {
                        let data = &seen.body["params"]["arguments"]["data"];
                        self.session(seen).pending.push(data.clone());
                    }
                    "work" => {
                        let session = self.session(seen);
                        let pending = std::mem::take(&mut session.pending);
                        pending.iter().for_each(|data| session.log(data));
                    }
                    _ => {
                        self.tools.push(format!("new-{}", self.tools.len()));
                        self.session(seen).log(&json!("after the answer"));
                        let changed = notification("notifications/tools/list_changed", json!({}));
                        let sessions = self.sessions.values();
                        sessions.for_each(|session| session.send(&changed));
                    }
                }
                json!({"content": []})
            }
            _ => return None,
        };
        Some(seen.answer(&result))
    }
}

/// A client, however it comes, and all that it was sent.
enum Client {
    Session(LegacyClient, RawHttp),
    Pipe(StdioPipe),
    /// Without a session, over HTTP, with these capabilities.
    Requests(std::net::SocketAddr, Value),
}

impl Client {
    async fn with_session(gateway: &Arc<Gateway>) -> Self {
        let (address, _) = serve(gateway).await;
        let legacy = LegacyClient::at(address, "2025-11-25", &json!({})).await;
        let mut stream = RawHttp::connect(address).await;
        let get = HttpRequest::get(&legacy.session).with("accept", "text/event-stream");
        stream.open_stream(&get).await;
        Self::Session(legacy, stream)
    }

    async fn on_stdio(gateway: &Arc<Gateway>) -> Self {
        Self::Pipe(legacy_pipe(gateway, "2025-11-25", &json!({})).await)
    }

    async fn without_session(gateway: &Arc<Gateway>, capabilities: Value) -> Self {
        let (address, _) = serve(gateway).await;
        Self::Requests(address, capabilities)
    }

    /// Calls a tool, and returns the messages before the answer.
    async fn call(&mut self, name: &str, arguments: Value) -> Vec<Value> {
        let mut params = tool(name);
        params["arguments"] = arguments;
        match self {
            Self::Session(legacy, _) => {
                let answer = legacy.ask("tools/call", params).await;
                messages(&answer.text())
            }
            Self::Requests(address, capabilities) => {
                params["_meta"][LOG_LEVEL] = json!("debug");
                let call = modern(json!(1), "tools/call", params, capabilities);
                let mut http = RawHttp::connect(*address).await;
                messages(&http.ask(&HttpRequest::modern(&call)).await.text())
            }
            Self::Pipe(pipe) => {
                let call = request(json!(1), "tools/call", params);
                pipe.send(call.to_string()).await;
                let mut before = vec![pipe.receive().await];
                while before[before.len() - 1]["id"] != 1 {
                    before.push(pipe.receive().await);
                }
                let answer = before.pop().unwrap();
                assert!(answer["result"].is_object(), "{answer}");
                before
            }
        }
    }

    /// The messages outside of its calls, up to the notification that a list changed.
    async fn until_a_list_changed(&mut self) -> Vec<Value> {
        let mut before = Vec::new();
        loop {
            let sent = match self {
                Self::Session(_, stream) => soon(stream.event()).await.expect("it goes on"),
                Self::Pipe(pipe) => pipe.receive().await,
                Self::Requests(..) => return before,
            };
            if sent["method"] == "notifications/tools/list_changed" {
                return before;
            }
            before.push(sent);
        }
    }
}

/// The messages of a response before the last, which is an answer.
fn messages(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| line.trim_start_matches("data: "));
    let data = lines.filter_map(|data| serde_json::from_str(data).ok());
    let mut all: Vec<Value> = data.collect();
    let answer = all.pop().unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    all
}

fn data(messages: &[Value]) -> Vec<&str> {
    let logs = messages.iter();
    let logs = logs.filter(|message| message["method"] == "notifications/message");
    let data = logs.filter_map(|log| log["params"]["data"].as_str());
    data.collect()
}

/// The messages that `other` is sent while the server works for it, after a call of `first` about which it still logs.
async fn sent_to_other(first: &mut Client, other: &mut Client) -> Vec<Value> {
    first.call("start", json!({"data": SECRET})).await;
    // For so long the gateway took what an endpoint logs to be about the call before.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut sent = other.call("work", json!({})).await;
    // Notifications arrive in order, so that none follows this one.
    sent.extend(other.call("after", json!({})).await);
    sent.extend(other.until_a_list_changed().await);
    sent
}

async fn is_sent_to_nobody(first: &mut Client, other: &mut Client) {
    let sent = sent_to_other(first, other).await;
    assert_eq!(data(&sent), [""; 0], "{sent:?}");
}

/// Waits until the gateway has dropped `count` log messages.
async fn has_dropped(gateway: &Gateway, count: u64) {
    until(async || gateway.status().counters.get("dropped-logs") == Some(&count)).await;
}

/// Checks that each kind of client gets nothing of what the server of `config` logs of another's call after its answer.
async fn reaches_no_other_client(config: Config) {
    let gateway = Gateway::start(config).await.unwrap();
    let mut first = Client::with_session(&gateway).await;
    let mut other = Client::with_session(&gateway).await;
    is_sent_to_nobody(&mut first, &mut other).await;
    let mut pipe = Client::on_stdio(&gateway).await;
    is_sent_to_nobody(&mut other, &mut pipe).await;
    let mut requests = Client::without_session(&gateway, json!({})).await;
    is_sent_to_nobody(&mut pipe, &mut requests).await;
    has_dropped(&gateway, 6).await;
}

#[tokio::test]
async fn what_a_process_logs_of_a_call_after_its_answer_reaches_no_other_client() {
    reaches_no_other_client(process()).await;
}

#[tokio::test]
async fn what_an_endpoint_logs_of_a_call_after_its_answer_reaches_no_other_client() {
    let (_peer, config) = endpoint().await;
    reaches_no_other_client(config).await;
}

/// Clients that can be asked have connections alone, requests without a session by turns.
#[tokio::test]
async fn nor_does_it_reach_the_next_request_on_a_connection_that_requests_have_by_turns() {
    let (_peer, endpoint) = endpoint().await;
    for config in [process(), endpoint] {
        let gateway = Gateway::start(config).await.unwrap();
        let mut first = Client::without_session(&gateway, json!({"elicitation": {}})).await;
        let mut other = Client::without_session(&gateway, json!({"elicitation": {}})).await;
        let sent = sent_to_other(&mut first, &mut other).await;
        // If the connection of `first` is not free again yet, `other` has one alone, and gets the logs of its own calls.
        assert!(!data(&sent).contains(&SECRET), "{sent:?}");
    }
}

#[tokio::test]
async fn a_client_that_is_the_only_one_is_sent_all_that_is_logged() {
    let (_peer, endpoint) = endpoint().await;
    for config in [process(), endpoint] {
        let gateway = Gateway::start(config).await.unwrap();
        let mut lone = Client::with_session(&gateway).await;
        lone.call("start", json!({"data": SECRET})).await;
        let mut sent = lone.call("work", json!({})).await;
        sent.extend(lone.call("after", json!({})).await);
        sent.extend(lone.until_a_list_changed().await);
        assert_eq!(data(&sent), [SECRET, "after the answer"], "{sent:?}");
    }
}

/// Where sessions share nothing, each is sent what is logged on its connection, also between its calls.
#[tokio::test]
async fn with_a_connection_for_each_session_all_that_is_logged_arrives() {
    let (_peer, endpoint) = endpoint().await;
    for mut config in [process(), endpoint] {
        config.servers[0].isolation = Isolation::Session;
        let gateway = Gateway::start(config).await.unwrap();
        let mut first = Client::with_session(&gateway).await;
        let mut other = Client::on_stdio(&gateway).await;
        first.call("start", json!({"data": SECRET})).await;
        let mut sent = other.call("after", json!({})).await;
        sent.extend(other.until_a_list_changed().await);
        assert_eq!(data(&sent), ["after the answer"], "{sent:?}");
    }
}
