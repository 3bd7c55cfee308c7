//! A server that answers as the test says, the gateway before it, and a client of either era.
//!
//! Messages are texts throughout: nothing here reads JSON and writes it anew.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use http::HeaderMap;
use mcp_vary_wire::headers::header_value;
use mcp_vary_wire::revision::Era;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use self::gateway::*;

#[path = "../support/mod.rs"]
mod gateway;

/// How the gateway reaches the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Behind {
    /// HTTP; an answer alone is JSON.
    Json,
    /// HTTP; every answer is a stream of events.
    Events,
    /// A process.
    Stdio,
}

/// How the client reaches the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Front {
    Http,
    Stdio,
}

/// What the server says to one request: notifications, then the `result` or `error`, as texts.
pub(crate) struct Said {
    pub(crate) before: Vec<String>,
    pub(crate) outcome: Result<String, String>,
}

pub(crate) fn result(text: impl Into<String>) -> Option<Said> {
    let outcome = Ok(text.into());
    Some(Said {
        before: Vec::new(),
        outcome,
    })
}

pub(crate) fn error(text: impl Into<String>) -> Option<Said> {
    let outcome = Err(text.into());
    Some(Said {
        before: Vec::new(),
        outcome,
    })
}

impl Said {
    pub(crate) fn after(mut self, notification: impl Into<String>) -> Self {
        self.before.push(notification.into());
        self
    }
}

/// A message as the server got it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// The text of `params`, `{}` without.
    pub(crate) params: String,
    pub(crate) headers: HeaderMap,
    id: Option<String>,
}

impl Seen {
    fn read(text: &str, headers: HeaderMap) -> Self {
        let members = members(text);
        let take = |key| members.get(key).map(|value| (*value).to_owned());
        Self {
            method: take("method").map_or_else(String::new, |method| string(&method)),
            params: take("params").unwrap_or_else(|| "{}".to_owned()),
            id: take("id"),
            headers,
        }
    }

    /// The text of a member of `params`.
    pub(crate) fn param(&self, key: &str) -> Option<&str> {
        members(&self.params).get(key).copied()
    }

    /// The text of a member of `params._meta`.
    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        members(self.param("_meta")?).get(key).copied()
    }

    pub(crate) fn meta_keys(&self) -> Vec<String> {
        let meta = self.param("_meta").map(members).unwrap_or_default();
        meta.into_keys().collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// The members of an object, each value as the text it is.
pub(crate) fn members(object: &str) -> BTreeMap<String, &str> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object).unwrap_or_default();
    let texts = members.into_iter();
    texts.map(|(key, value)| (key, value.get())).collect()
}

/// The string that a JSON text is.
pub(crate) fn string(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text} is no string: {why}"))
}

type Script = dyn Fn(&Seen) -> Option<Said> + Send + Sync;

struct Server {
    era: Era,
    behind: Behind,
    script: Box<Script>,
    seen: Mutex<Vec<Seen>>,
}

impl Server {
    /// The response to a request over HTTP.
    fn reply(&self, request: &ReceivedRequest) -> Reply {
        if request.verb != "POST" {
            return Reply::new(405, "text/plain", "");
        }
        let seen = Seen::read(&request.text, request.headers.clone());
        self.seen.lock().unwrap().push(seen.clone());
        match texts(self, &seen).as_slice() {
            [] => Reply::new(202, "text/plain", ""),
            [alone] if self.behind == Behind::Json => {
                Reply::new(200, "application/json", alone.clone())
            }
            several => Reply::events(several.iter().map(|text| event(text)).collect::<String>()),
        }
    }
}

fn politely(era: Era, seen: &Seen) -> Said {
    const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{},"prompts":{},"completions":{},"logging":{}}"#;
    let reported = match (seen.method.as_str(), era) {
        ("server/discover", Era::Modern) => result(format!(
            r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{CAPABILITIES}}}"#
        )),
        ("initialize", Era::Legacy) => result(format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{CAPABILITIES},"serverInfo":{{"name":"odd","version":"1.10"}}}}"#
        )),
        ("tools/list", _) => {
            result(r#"{"tools":[{"name":"odd","inputSchema":{"type":"object"}}]}"#)
        }
        ("prompts/list", _) => result(r#"{"prompts":[{"name":"odd"}]}"#),
        ("resources/list", _) => result(r#"{"resources":[]}"#),
        ("resources/templates/list", _) => result(r#"{"resourceTemplates":[]}"#),
        ("logging/setLevel", Era::Legacy) => result("{}"),
        _ => error(r#"{"code":-32601,"message":"Method not found"}"#),
    };
    reported.unwrap()
}

/// The messages that answer one from the gateway.
fn texts(server: &Server, seen: &Seen) -> Vec<String> {
    let Some(id) = &seen.id else {
        return Vec::new();
    };
    let Said {
        mut before,
        outcome,
    } = (server.script)(seen).unwrap_or_else(|| politely(server.era, seen));
    let (key, text) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    before.push(format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{text}}}"#));
    before
}

/// The gateway before a scripted server.
pub(crate) struct Harness {
    pub(crate) gateway: Arc<Gateway>,
    server: Arc<Server>,
    address: SocketAddr,
    _peer: Option<ScriptedServer>,
    _tasks: JoinSet<()>,
}

impl Harness {
    pub(crate) async fn build(
        behind: Behind,
        era: Era,
        script: impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static,
    ) -> Self {
        Self::build_with(behind, era, |config| config, script).await
    }

    pub(crate) async fn build_with(
        behind: Behind,
        era: Era,
        configure: impl FnOnce(Config) -> Config,
        script: impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static,
    ) -> Self {
        let server = Arc::new(Server {
            era,
            behind,
            script: Box::new(script),
            seen: Mutex::new(Vec::new()),
        });
        let mut tasks = JoinSet::new();
        let serving = Arc::clone(&server);
        let (target, peer) = match behind {
            Behind::Stdio => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let port = listener.local_addr().unwrap().port().to_string();
                tasks.spawn(accept(listener, serving));
                let command = ["-c", PUMP, &port].map(String::from);
                (Target::command("bash", command), None)
            }
            Behind::Json | Behind::Events => {
                let peer = ScriptedServer::start(move |request| Some(serving.reply(request)));
                let peer = peer.await;
                (Target::http(peer.url.clone()), Some(peer))
            }
        };
        let outside = Environment::new(|| 1_800_000_000, |bytes| bytes.fill(7));
        let config = configure(Config::new(UpstreamConfig::new("odd", target), outside));
        let gateway = Gateway::start(config).await.unwrap();
        let (address, _) = serve(&gateway).await;
        Self {
            gateway,
            server,
            address,
            _peer: peer,
            _tasks: tasks,
        }
    }

    /// A client that declares nothing.
    pub(crate) async fn client(&self, front: Front, era: Era) -> Client {
        match era {
            Era::Legacy => self.legacy_client(front, "2025-11-25").await,
            Era::Modern => self.unintroduced(front, era).await,
        }
    }

    /// A client with a session of `revision`.
    pub(crate) async fn legacy_client(&self, front: Front, revision: &str) -> Client {
        let mut client = self.unintroduced(front, Era::Legacy).await;
        let params = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
        );
        client.greeting = Some(client.ask("initialize", &params).await);
        client
    }

    async fn unintroduced(&self, front: Front, era: Era) -> Client {
        let link = match front {
            Front::Http => Link::Http(RawHttp::connect(self.address).await),
            Front::Stdio => Link::Stdio(Box::new(open_pipe(&self.gateway))),
        };
        Client {
            link,
            era,
            session: None,
            headers: Vec::new(),
            capabilities: "{}".to_owned(),
            greeting: None,
            last_id: 0,
        }
    }

    /// What the server got with this method, oldest first.
    pub(crate) fn seen(&self, method: &str) -> Vec<Seen> {
        let seen = self.server.seen.lock().unwrap();
        let of_method = seen.iter().filter(|seen| seen.method == method);
        of_method.cloned().collect()
    }

    /// The newest message that the server got with this method.
    #[track_caller]
    pub(crate) fn last(&self, method: &str) -> Seen {
        let seen = self.seen(method).pop();
        seen.unwrap_or_else(|| panic!("the server got no {method}"))
    }
}

/// Copies standard streams to a socket and back: what is said on it is said by a process.
const PUMP: &str = "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & cat >&3; kill $!";

async fn accept(listener: TcpListener, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let server = Arc::clone(&server);
        connections.spawn(async move { speak_lines(stream, &server).await });
    }
}

async fn speak_lines(stream: TcpStream, server: &Server) {
    let (input, mut output) = stream.into_split();
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let seen = Seen::read(&line, HeaderMap::new());
        server.seen.lock().unwrap().push(seen.clone());
        for text in texts(server, &seen) {
            if output
                .write_all(format!("{text}\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

fn event(text: &str) -> String {
    format!("data: {}\n\n", text.replace('\n', "\ndata: "))
}

enum Link {
    Http(RawHttp),
    Stdio(Box<StdioPipe>),
}

/// A client of the gateway.
pub(crate) struct Client {
    link: Link,
    era: Era,
    session: Option<String>,
    /// Headers that a modern request carries beside the standard ones.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What a modern client says it can do.
    pub(crate) capabilities: String,
    /// The answer to `initialize`.
    pub(crate) greeting: Option<Heard>,
    last_id: u64,
}

/// What a client gets for one request.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    /// The notifications, as sent.
    pub(crate) before: Vec<String>,
    /// The answer, as sent.
    answer: String,
    id: u64,
}

impl Heard {
    /// The text of `result`, cut out of the answer.
    #[track_caller]
    pub(crate) fn result(&self) -> &str {
        self.cut("result")
    }

    /// The text of `error`, cut out of the answer.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        self.cut("error")
    }

    #[track_caller]
    fn cut(&self, key: &str) -> &str {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"{key}":"#, self.id);
        let remaining = self.answer.strip_prefix(&head);
        remaining
            .and_then(|remaining| remaining.strip_suffix('}'))
            .unwrap_or_else(|| panic!("no {key}: {}", self.answer))
    }
}

impl Client {
    /// Sends a request and waits for its answer; `params` is the text of an object.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> Heard {
        self.last_id += 1;
        let id = self.last_id;
        let params = match self.era {
            Era::Legacy => params.to_owned(),
            Era::Modern => with_protocol_meta(params, &self.capabilities),
        };
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let post = self.post(method, &params, &text);
        let (status, mut messages) = match &mut self.link {
            Link::Stdio(pipe) => {
                pipe.send(text).await;
                (200, read_lines(pipe, id).await)
            }
            Link::Http(http) => {
                let response = http.ask(&post).await;
                if let Some(session) = response.header("mcp-session-id") {
                    self.session = Some(session.to_owned());
                }
                let is_json = response.header("content-type") == Some("application/json");
                (response.status, read_body(is_json, response.text()))
            }
        };
        let answer = messages.pop().expect("an answer");
        Heard {
            status,
            before: messages,
            answer,
            id,
        }
    }

    /// The HTTP request of a message, with the headers of its era.
    fn post(&self, method: &str, params: &str, text: &str) -> HttpRequest {
        let mut post = HttpRequest::new(text);
        if let Some(session) = &self.session {
            post = post.with("Mcp-Session-Id", session);
        }
        if self.era == Era::Modern {
            post = modern_headers(post, method, params);
            for (name, value) in &self.headers {
                post = with_header(post, name, value);
            }
        }
        post
    }
}

fn with_header(post: HttpRequest, name: &str, value: &str) -> HttpRequest {
    post.with_another(name, header_value(value).to_str().unwrap())
}

/// Puts what each modern request says into `_meta`, before what is there.
fn with_protocol_meta(params: &str, capabilities: &str) -> String {
    let protocol = format!(
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
    );
    if let Some(meta) = members(params).get("_meta") {
        let at = meta.as_ptr() as usize - params.as_ptr() as usize + 1;
        let comma = if meta.len() == 2 { "" } else { "," };
        return format!("{}{protocol}{comma}{}", &params[..at], &params[at..]);
    }
    let remaining = params.trim_start().strip_prefix('{').unwrap();
    let comma = if remaining.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    format!(r#"{{"_meta":{{{protocol}}}{comma}{remaining}"#)
}

fn modern_headers(post: HttpRequest, method: &str, params: &str) -> HttpRequest {
    let params = members(params);
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    let post = post
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", method);
    match name {
        Some(name) => with_header(post, "Mcp-Name", &string(name)),
        None => post,
    }
}

async fn read_lines(pipe: &mut StdioPipe, id: u64) -> Vec<String> {
    let mut messages = Vec::new();
    loop {
        let line = pipe.line().await;
        let is_last = line.contains(&format!(r#","id":{id},"#));
        messages.push(line);
        if is_last {
            return messages;
        }
    }
}

fn read_body(is_json: bool, body: String) -> Vec<String> {
    if is_json {
        return vec![body];
    }
    let events = body.split("\n\n").map(|event| {
        let data = event.lines().filter_map(|line| line.strip_prefix("data: "));
        data.collect::<Vec<_>>().join("\n")
    });
    events.filter(|data| !data.is_empty()).collect()
}
