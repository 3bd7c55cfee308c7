//! A gateway before a scripted server, and clients that choose every byte they send.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::Json;
use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{
    Config, Environment, Gateway, Limits, Target, UpstreamConfig, VariantConfig,
};
use mcp_vary_wire::revision::Era;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::http_peer::Peer;
use crate::server;

/// A gateway that serves HTTP, and the server behind it.
pub(crate) struct House {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) peer: Peer,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
}

impl House {
    /// With the defaults, before a legacy server.
    pub(crate) async fn start() -> Self {
        Self::with(|config| config).await
    }

    /// With another configuration, before a legacy server.
    pub(crate) async fn with(adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::before(Era::Legacy, adapt).await
    }

    /// Before a server of `era`.
    pub(crate) async fn before(era: Era, adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::behind_one(server::start(era).await, adapt).await
    }

    /// Before a server of the test's own.
    pub(crate) async fn behind_one(peer: Peer, adapt: impl FnOnce(Config) -> Config) -> Self {
        let config = config(Target::http(peer.url.clone()));
        Self::behind(peer, adapt(config)).await
    }

    /// Before the servers of `config`, of which `peer` is one.
    pub(crate) async fn behind(peer: Peer, config: Config) -> Self {
        let gateway = Gateway::start(config).await.unwrap();
        let (address, stop) = serve(&gateway).await;
        Self {
            gateway,
            peer,
            address,
            stop,
        }
    }

    /// Stops serving, in order.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn connect(&self) -> Http {
        Http::connect(self.address).await
    }

    /// The connection goes on, and so does another client of the other era.
    pub(crate) async fn is_unharmed(&self, http: &mut Http, after: &str) {
        let list = Post::modern(&modern(json!("after"), "tools/list", json!({}), &json!({})));
        let answer = http.ask(&list).await;
        assert_eq!(answer.status, 200, "the same connection, after {after}");
        assert_eq!(answer.json()["id"], "after", "{after}");
        let mut other = Legacy::open(self, "2025-11-25", &json!({})).await;
        let answer = other.ask("ping", json!({})).await;
        assert_eq!(
            answer.json()["result"],
            json!({}),
            "another client, after {after}"
        );
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The configuration of tests before `target`.
pub(crate) fn config(target: Target) -> Config {
    let outside = Environment::new(|| 1_000_000, |bytes| getrandom::fill(bytes).unwrap());
    Config::new(UpstreamConfig::new("peer", target), outside).with_limits(limits())
}

/// The configuration of tests before several servers.
pub(crate) fn before(servers: &[(&str, &Peer)]) -> Config {
    let configs = servers
        .iter()
        .map(|(name, peer)| UpstreamConfig::new(*name, Target::http(peer.url.clone())));
    let mut all = config(Target::command("none", []));
    all.servers = configs.collect();
    all
}

/// A variant of which nothing but its id matters.
pub(crate) fn variant(id: &str) -> VariantConfig {
    VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "For tests."))
}

pub(crate) fn limits() -> Limits {
    // However slow the machine, it is not the clock that makes an answer a stream.
    Limits::default()
        .with_drain(Duration::from_millis(50))
        .with_stream_after(Duration::from_secs(3_600))
}

/// Serves HTTP on a port of its own until the token is cancelled.
pub(crate) async fn serve(gateway: &Arc<Gateway>) -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let (gateway, stopped) = (Arc::clone(gateway), stop.clone().cancelled_owned());
    tokio::spawn(async move { gateway.serve_http(listener, stopped).await.unwrap() });
    (address, stop)
}

/// A bound for what should happen at once, so that a test fails rather than hangs.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, what)
        .await
        .expect("it does not happen")
}

/// A request without params that say anything about the client.
pub(crate) fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of revision 2026-07-28.
pub(crate) fn modern(id: Value, method: &str, params: Value, capabilities: &Value) -> Value {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    request(id, method, params)
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The capabilities of a client that declares these tags.
pub(crate) fn features(tags: &[&str]) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/content-negotiation": {"features": tags}}})
}

/// The capabilities of a client with these hints.
pub(crate) fn hints(hints: Value) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/server-variants": {"variantHints": {"hints": hints}}}})
}

/// `params` for the variant `id`.
pub(crate) fn under(id: impl Into<Value>, params: Value) -> Value {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/server-variant"] = id.into();
    params
}

/// One HTTP request, to be changed until it is as bad as the test wants it.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Post {
    /// A `POST` without session or version.
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        Self {
            line: "POST /mcp HTTP/1.1".to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            body: body.into(),
        }
    }

    pub(crate) fn of(session: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(body).with("Mcp-Session-Id", session)
    }

    /// With the headers that 2026-07-28 asks for.
    pub(crate) fn modern(message: &Value) -> Self {
        let post = Self::new(message.to_string())
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", message["method"].as_str().unwrap_or_default());
        let params = &message["params"];
        let named = ["name", "uri", "taskId"].map(|key| params[key].as_str());
        match named.into_iter().flatten().next() {
            Some(name) => post.with("Mcp-Name", name),
            None => post,
        }
    }

    pub(crate) fn line(mut self, line: &str) -> Self {
        line.clone_into(&mut self.line);
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = self.body.len().to_string();
        let mut bytes = self.clone().with("Content-Length", length).head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// One HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The answer, alone or as the last message of a stream.
    pub(crate) fn answer(&self) -> Value {
        let text = self.text();
        let last = text.rsplit("data: ").find(|part| part.starts_with('{'));
        let last = last.unwrap_or(&text);
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Status, error code and id.
    pub(crate) fn refusal(&self) -> (u16, i64, Value) {
        let message = self.json();
        let code = message["error"]["code"].as_i64();
        let code = code.unwrap_or_else(|| panic!("no error: {message}"));
        (self.status, code, message["id"].clone())
    }
}

/// A client's HTTP connection.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    events: Vec<u8>,
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self {
            stream: BufReader::new(stream),
            events: Vec::new(),
        }
    }

    /// Writes what the other side takes; it may have stopped reading for a reason.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes).await;
    }

    pub(crate) async fn close_sending(&mut self) {
        self.stream.get_mut().shutdown().await.unwrap();
    }

    pub(crate) async fn ask(&mut self, post: &Post) -> Response {
        self.send(&post.bytes()).await;
        self.response().await
    }

    /// The head of a response.
    pub(crate) async fn head(&mut self) -> Response {
        let status = self.line().await;
        let status = status
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let mut response = Response {
            status: status.expect("a status line"),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                return response;
            };
            response.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        soon(self.stream.read_line(&mut line)).await.unwrap();
        line.trim_end().to_owned()
    }

    /// A response to its end.
    pub(crate) async fn response(&mut self) -> Response {
        let mut response = self.head().await;
        if let Some(length) = response.header("content-length") {
            let length: usize = length.parse().unwrap();
            response.body = self.exactly(length).await;
        } else if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                response.body.extend(chunk);
            }
        }
        response
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        soon(self.stream.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = self.line().await;
        let length = usize::from_str_radix(&length, 16).ok()?;
        let chunk = self.exactly(length).await;
        self.line().await;
        (length > 0).then_some(chunk)
    }

    /// The next event of a stream that says something; none at its end.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            let event = self.written_event().await?;
            let data: String = event
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
                .collect();
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    /// The next event of a stream as it is written, to the empty line; none at its end.
    pub(crate) async fn written_event(&mut self) -> Option<String> {
        loop {
            let end = self.events.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = end {
                let event: Vec<u8> = self.events.drain(..end + 2).collect();
                return Some(String::from_utf8(event).unwrap());
            }
            let chunk = self.chunk().await?;
            self.events.extend(chunk);
        }
    }

    /// All events until the end of the stream.
    pub(crate) async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Whether the other side has closed the connection without a further byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = soon(self.stream.read_to_end(&mut rest)).await;
        read.is_err() || rest.is_empty()
    }
}

/// A client with a session over HTTP.
pub(crate) struct Legacy {
    pub(crate) http: Http,
    pub(crate) session: String,
    pub(crate) initialized: Value,
}

impl Legacy {
    pub(crate) async fn open(house: &House, revision: &str, capabilities: &Value) -> Self {
        Self::at(house.address, revision, capabilities).await
    }

    pub(crate) async fn at(address: SocketAddr, revision: &str, capabilities: &Value) -> Self {
        let mut http = Http::connect(address).await;
        let answer = http
            .ask(&Post::new(initialize(revision, capabilities).to_string()))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        Self {
            session: answer.header("mcp-session-id").unwrap().to_owned(),
            initialized: answer.json()["result"].clone(),
            http,
        }
    }

    pub(crate) fn post(&self, message: &Value) -> Post {
        Post::of(&self.session, message.to_string())
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Response {
        let post = self.post(&request(json!(1), method, params));
        self.http.ask(&post).await
    }
}

pub(crate) fn initialize(revision: &str, capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(json!(0), "initialize", params)
}

/// A client on a pair of pipes.
pub(crate) struct Pipe {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    pub(crate) served: tokio::task::JoinHandle<std::io::Result<()>>,
    pub(crate) stop: CancellationToken,
}

impl Pipe {
    pub(crate) fn open(gateway: &Arc<Gateway>) -> Self {
        let (input, read) = tokio::io::duplex(1 << 16);
        let (write, output) = tokio::io::duplex(1 << 16);
        let gateway = Arc::clone(gateway);
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let served = tokio::spawn(async move { gateway.serve_stdio(read, write, stopped).await });
        Self {
            input,
            output: BufReader::new(output).lines(),
            served,
            stop,
        }
    }

    /// One that has initialized.
    pub(crate) async fn legacy(
        gateway: &Arc<Gateway>,
        revision: &str,
        capabilities: &Value,
    ) -> Self {
        let mut pipe = Self::open(gateway);
        let answer = pipe.ask(&initialize(revision, capabilities)).await;
        assert!(answer["result"].is_object(), "{answer}");
        pipe
    }

    pub(crate) async fn say(&mut self, line: impl AsRef<[u8]>) {
        soon(self.input.write_all(line.as_ref())).await.unwrap();
        soon(self.input.write_all(b"\n")).await.unwrap();
    }

    /// The next line.
    pub(crate) async fn line(&mut self) -> String {
        soon(self.output.next_line())
            .await
            .unwrap()
            .expect("a line")
    }

    pub(crate) async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    /// What is answered; that a list changed may be told before.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.say(message.to_string()).await;
        loop {
            let heard = self.hear().await;
            let method = heard["method"].as_str().unwrap_or_default();
            if !method.ends_with("/list_changed") {
                return heard;
            }
        }
    }

    /// Closes the input, and returns what still comes.
    pub(crate) async fn close(mut self) -> Vec<String> {
        drop(self.input);
        let mut rest = Vec::new();
        while let Some(line) = soon(self.output.next_line()).await.unwrap() {
            rest.push(line);
        }
        soon(self.served).await.unwrap().unwrap();
        rest
    }
}

/// The ways to reach a gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    HttpLegacy,
    HttpModern,
    StdioLegacy,
    StdioModern,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self::HttpLegacy,
        Self::HttpModern,
        Self::StdioLegacy,
        Self::StdioModern,
    ];

    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::HttpModern | Self::StdioModern)
    }

    /// What a client of these capabilities, which comes this way, is answered: the message as sent.
    pub(crate) async fn text(
        self,
        house: &House,
        capabilities: &Value,
        method: &str,
        params: Value,
    ) -> String {
        let id = json!(1);
        match self {
            Self::HttpLegacy => {
                let mut client = Legacy::open(house, "2025-11-25", capabilities).await;
                client.ask(method, params).await.text()
            }
            Self::HttpModern => {
                let post = Post::modern(&modern(id, method, params, capabilities));
                house.connect().await.ask(&post).await.text()
            }
            Self::StdioLegacy => {
                let mut pipe = Pipe::legacy(&house.gateway, "2025-11-25", capabilities).await;
                pipe.say(request(id, method, params).to_string()).await;
                pipe.line().await
            }
            Self::StdioModern => {
                let mut pipe = Pipe::open(&house.gateway);
                pipe.say(modern(id, method, params, capabilities).to_string())
                    .await;
                pipe.line().await
            }
        }
    }

    /// The same as JSON.
    pub(crate) async fn ask(
        self,
        house: &House,
        capabilities: &Value,
        method: &str,
        params: Value,
    ) -> Value {
        let text = self.text(house, capabilities, method, params).await;
        serde_json::from_str(&text).unwrap()
    }
}

/// A call of a tool without arguments.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

/// The names of what a list holds.
pub(crate) fn names(message: &Value) -> Vec<&str> {
    let items = message["result"]["tools"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

/// What a server of 2025-11-25 says to `initialize`.
pub(crate) fn introduced(name: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "serverInfo": {"name": name, "version": "1"},
    })
}

/// The texts in the blocks of a result.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// The URI of the whole, from the link in a result.
pub(crate) fn link(result: &Value) -> &str {
    let mut blocks = result["content"].as_array().unwrap().iter();
    let link = blocks.find(|block| block["type"] == "resource_link");
    let uri = link.unwrap()["uri"].as_str().unwrap();
    assert!(uri.starts_with("vary://result/"), "{uri}");
    uri
}

/// A text, as a variant has it put in the place of a value.
pub(crate) fn json_text(value: &'static str) -> Option<Json<'static>> {
    Some(Json::String(value.into()))
}
