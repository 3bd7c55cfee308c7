//! A server whose lists and resources change when a test says so, and clients of every kind that hear of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp_vary_wire::revision::Era;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::http_peer::{Peer, Reply, Seen, event};
use crate::support::{House, Http, Legacy, Pipe, Post, Way, modern, notification, request, soon};

pub(crate) const VARIANT: &str = "io.modelcontextprotocol/server-variant";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What the server has, and who listens to it.
#[derive(Clone)]
pub(crate) struct Stage {
    era: Era,
    state: Arc<Mutex<State>>,
}

struct State {
    tools: Vec<Value>,
    resources: Vec<&'static str>,
    templates: Vec<&'static str>,
    prompts: Vec<&'static str>,
    /// What is answered to a subscription to any resource of these.
    refused: Vec<&'static str>,
    capabilities: Value,
    streams: Vec<Stream>,
    /// How often it was started; sessions of before are unknown.
    life: usize,
}

struct Stream {
    /// The id of the subscription; none for the stream of a `GET`.
    id: Value,
    filter: Value,
    sender: UnboundedSender<Bytes>,
}

impl Stage {
    pub(crate) fn new(era: Era) -> Self {
        let state = State {
            tools: vec![tool("first")],
            resources: vec!["note:a", "note:b"],
            templates: vec!["note:all/{name}"],
            prompts: vec!["greet"],
            refused: Vec::new(),
            capabilities: json!({
                "tools": {"listChanged": true},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
            }),
            streams: Vec::new(),
            life: 1,
        };
        Self {
            era,
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub(crate) async fn peer(&self) -> Peer {
        let stage = self.clone();
        Peer::start(move |seen| stage.answer(seen)).await
    }

    /// The server once more where it was before, on new streams.
    pub(crate) async fn again(&self, address: std::net::SocketAddr) -> Peer {
        self.with(|state| {
            state.streams.clear();
            state.life += 1;
        });
        let stage = self.clone();
        Peer::start_at(address, move |seen| stage.answer(seen)).await
    }

    /// Behind a gateway with the defaults; the server is listened to.
    pub(crate) async fn house(&self) -> House {
        self.house_with(|config| config).await
    }

    pub(crate) async fn house_with(
        &self,
        adapt: impl FnOnce(mcp_vary_gateway::Config) -> mcp_vary_gateway::Config,
    ) -> House {
        let house = House::behind_one(self.peer().await, adapt).await;
        self.is_heard().await;
        house
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    /// Declares other capabilities from the next connection on.
    pub(crate) fn declare(&self, capabilities: Value) {
        self.with(|state| state.capabilities = capabilities);
    }

    pub(crate) fn refuse(&self, uris: &[&'static str]) {
        self.with(|state| state.refused = uris.to_vec());
    }

    /// Waits until somebody listens to list changes.
    pub(crate) async fn is_heard(&self) {
        let hears =
            |stream: &Stream| stream.id.is_null() || stream.filter["toolsListChanged"] == true;
        self.until(|state| state.streams.iter().any(hears)).await;
    }

    /// Waits until the server was asked to tell of exactly these resources, by whatever streams are open.
    pub(crate) async fn tells_of(&self, uris: &[&str]) {
        let of = |stream: &Stream| stream.filter["resourceSubscriptions"].clone();
        self.until(|state| {
            let open = state
                .streams
                .iter()
                .filter(|stream| !stream.sender.is_closed());
            let told: Vec<_> = open.map(of).filter(|uris| !uris.is_null()).collect();
            match uris {
                [] => told.is_empty(),
                uris => told == [json!(uris)],
            }
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        soon(async {
            while !self.with(|state| holds(state)) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) fn set_tools(&self, tools: &[&str]) {
        self.with(|state| state.tools = tools.iter().map(|name| tool(name)).collect());
    }

    pub(crate) fn set_resources(&self, uris: &[&'static str]) {
        self.with(|state| state.resources = uris.to_vec());
    }

    pub(crate) fn set_prompts(&self, names: &[&'static str]) {
        self.with(|state| state.prompts = names.to_vec());
    }

    /// Says that a list changed: `tools`, `resources` or `prompts`.
    pub(crate) fn say_changed(&self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        let asked = format!("{list}ListChanged");
        self.say(&method, &json!({}), |filter| filter[&asked] == true);
    }

    /// Says that a resource changed.
    pub(crate) fn say_updated(&self, uri: &str) {
        let params = json!({"uri": uri, "x-vendor": {"n": 1.0}});
        self.say("notifications/resources/updated", &params, |filter| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.contains(&json!(uri)))
        });
    }

    fn say(&self, method: &str, params: &Value, is_asked: impl Fn(&Value) -> bool) {
        self.with(|state| {
            state.streams.retain(|stream| !stream.sender.is_closed());
            for stream in &state.streams {
                let mut params = params.clone();
                if !stream.id.is_null() {
                    if !is_asked(&stream.filter) {
                        continue;
                    }
                    params["_meta"][SUBSCRIPTION] = stream.id.clone();
                }
                let _ = stream
                    .sender
                    .send(event(&notification(method, params)).into());
            }
        });
    }

    fn answer(&self, seen: &Seen) -> Option<Reply> {
        let params = &seen.body["params"];
        let session = self.session();
        if self.era == Era::Legacy
            && !matches!(seen.method(), "initialize" | "server/discover")
            && seen.header("mcp-session-id") != Some(&session)
        {
            return Some(seen.refuse(404, -32001, "Session not found"));
        }
        let result = match (seen.method(), self.era) {
            ("initialize", Era::Legacy) => return Some(self.initialize(seen)),
            ("server/discover", Era::Modern) => self.with(|state| {
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": state.capabilities,
                })
            }),
            ("GET", Era::Legacy) => return Some(self.listen(&Value::Null, &json!({}))),
            ("subscriptions/listen", Era::Modern) => {
                return Some(self.listen(seen.id(), &params["notifications"]));
            }
            ("resources/subscribe", Era::Legacy) => {
                let refused = self.with(|state| state.refused.clone());
                if refused.iter().any(|uri| params["uri"] == *uri) {
                    return Some(seen.refuse(200, -32002, "no such note"));
                }
                json!({})
            }
            ("resources/unsubscribe", Era::Legacy) => json!({}),
            ("tools/list", _) => self.with(|state| json!({"tools": state.tools})),
            ("resources/list", _) => self.with(|state| {
                let resource = |uri| json!({"uri": uri, "name": uri});
                let all: Vec<_> = state.resources.iter().map(resource).collect();
                json!({"resources": all})
            }),
            ("resources/templates/list", _) => self.with(|state| {
                let template = |uri| json!({"uriTemplate": uri, "name": uri});
                let all: Vec<_> = state.templates.iter().map(template).collect();
                json!({"resourceTemplates": all})
            }),
            ("prompts/list", _) => self.with(|state| {
                let all: Vec<_> = state
                    .prompts
                    .iter()
                    .map(|name| json!({"name": name}))
                    .collect();
                json!({"prompts": all})
            }),
            _ => return None,
        };
        Some(seen.answer(&result))
    }

    fn initialize(&self, seen: &Seen) -> Reply {
        let capabilities = self.with(|state| state.capabilities.clone());
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "stage", "version": "1"},
        });
        seen.answer(&result)
            .with_header("mcp-session-id", self.session())
    }

    fn session(&self) -> String {
        self.with(|state| format!("s-{}", state.life))
    }

    fn listen(&self, id: &Value, filter: &Value) -> Reply {
        let (sender, reply) = Reply::stream();
        self.with(|state| {
            if !id.is_null() {
                let mut filter = filter.clone();
                if let Some(uris) = filter["resourceSubscriptions"].as_array_mut() {
                    uris.retain(|uri| !state.refused.iter().any(|refused| uri == *refused));
                }
                let params = json!({"notifications": filter, "_meta": {SUBSCRIPTION: id}});
                let method = "notifications/subscriptions/acknowledged";
                let _ = sender.send(event(&notification(method, params)).into());
            }
            let (id, filter) = (id.clone(), filter.clone());
            state.streams.push(Stream { id, filter, sender });
        });
        reply
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool. It has two sentences.", "inputSchema": {"type": "object"}})
}

/// A client that hears of changes, the way that it came by.
pub(crate) struct Ear {
    way: Way,
    capabilities: Value,
    address: std::net::SocketAddr,
    legacy: Option<Legacy>,
    stream: Option<Http>,
    pipe: Option<Pipe>,
    /// What was heard while something else was waited for.
    heard: VecDeque<Value>,
    next: u64,
}

impl Ear {
    /// A session with a stream, or a modern client that listens to what `filter` asks for in `variant`.
    pub(crate) async fn open(
        house: &House,
        way: Way,
        filter: Value,
        variant: Option<&str>,
    ) -> Self {
        Self::open_as(house, way, (filter, variant), &json!({})).await
    }

    /// The same for a client of these capabilities.
    pub(crate) async fn open_as(
        house: &House,
        way: Way,
        (filter, variant): (Value, Option<&str>),
        capabilities: &Value,
    ) -> Self {
        let mut ear = Self {
            way,
            capabilities: capabilities.clone(),
            address: house.address,
            legacy: None,
            stream: None,
            pipe: None,
            heard: VecDeque::new(),
            next: 10,
        };
        match way {
            Way::HttpLegacy => {
                let legacy = Legacy::open(house, "2025-11-25", capabilities).await;
                ear.stream = Some(stream_of(house, &legacy).await);
                ear.legacy = Some(legacy);
            }
            Way::StdioLegacy => {
                let pipe = Pipe::legacy(&house.gateway, "2025-11-25", capabilities).await;
                ear.pipe = Some(pipe);
            }
            Way::HttpModern => {
                let mut http = house.connect().await;
                let listen = listen(&filter, variant, capabilities);
                http.send(&Post::modern(&listen).bytes()).await;
                assert_eq!(http.head().await.status, 200);
                ear.stream = Some(http);
            }
            Way::StdioModern => {
                let mut pipe = Pipe::open(&house.gateway);
                let listen = listen(&filter, variant, capabilities);
                pipe.say(listen.to_string()).await;
                ear.pipe = Some(pipe);
            }
        }
        ear
    }

    /// The same, past the acknowledgement of a modern one.
    pub(crate) async fn listening(
        house: &House,
        way: Way,
        filter: Value,
        variant: Option<&str>,
    ) -> Self {
        Self::listening_as(house, way, (filter, variant), &json!({})).await
    }

    /// The same for a client of these capabilities.
    pub(crate) async fn listening_as(
        house: &House,
        way: Way,
        what: (Value, Option<&str>),
        capabilities: &Value,
    ) -> Self {
        let mut ear = Self::open_as(house, way, what, capabilities).await;
        if way.is_modern() {
            let told = ear.hear().await;
            assert_eq!(
                told["method"], "notifications/subscriptions/acknowledged",
                "{told}"
            );
        }
        ear
    }

    /// The next message that was not asked for; none at the end.
    pub(crate) async fn hear_or_end(&mut self) -> Option<Value> {
        if let Some(heard) = self.heard.pop_front() {
            return Some(heard);
        }
        match (&mut self.stream, &mut self.pipe) {
            (Some(stream), _) => soon(stream.event()).await,
            (None, Some(pipe)) => Some(pipe.hear().await),
            (None, None) => None,
        }
    }

    pub(crate) async fn hear(&mut self) -> Value {
        self.hear_or_end().await.expect("something is told")
    }

    /// Method, variant and URI of the next one.
    pub(crate) async fn told(&mut self) -> Told {
        let told = self.hear().await;
        assert_eq!(told["jsonrpc"], "2.0");
        assert!(told.get("id").is_none(), "{told}");
        let (params, meta) = (&told["params"], &told["params"]["_meta"]);
        if self.way.is_modern() {
            assert_eq!(meta[SUBSCRIPTION], "listen", "{told}");
        } else {
            assert!(meta.get(SUBSCRIPTION).is_none(), "{told}");
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let method = text(&told["method"]).unwrap();
        (
            method.strip_prefix("notifications/").unwrap().to_owned(),
            text(&meta[VARIANT]),
            text(&params["uri"]),
        )
    }

    /// What it is answered.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let asked = match self.way.is_modern() {
            true => modern(json!(self.next), method, params, &self.capabilities),
            false => request(json!(self.next), method, params),
        };
        if self.way == Way::HttpModern {
            let mut http = Http::connect(self.address).await;
            return http.ask(&Post::modern(&asked)).await.answer();
        }
        if let Some(legacy) = &mut self.legacy {
            let post = legacy.post(&asked);
            return legacy.http.ask(&post).await.answer();
        }
        let pipe = self.pipe.as_mut().unwrap();
        pipe.say(asked.to_string()).await;
        loop {
            let message = pipe.hear().await;
            if message["id"] == self.next {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    /// Closes the stream of its session, which goes on.
    pub(crate) fn close_stream(&mut self) {
        self.stream = None;
    }

    /// Opens another stream for its session.
    pub(crate) async fn open_stream(&mut self, house: &House) {
        self.stream = Some(stream_of(house, self.legacy.as_ref().unwrap()).await);
    }

    /// Closes what it hears by.
    pub(crate) fn close(self) {
        drop((self.stream, self.pipe));
    }

    pub(crate) fn pipe(&mut self) -> &mut Pipe {
        self.pipe.as_mut().unwrap()
    }
}

/// Method without its prefix, variant, URI.
pub(crate) type Told = (String, Option<String>, Option<String>);

pub(crate) fn changed(list: &str, variant: &str) -> Told {
    (
        format!("{list}/list_changed"),
        Some(variant.to_owned()),
        None,
    )
}

pub(crate) fn updated(uri: &str, variant: &str) -> Told {
    let told = "resources/updated".to_owned();
    (told, Some(variant.to_owned()), Some(uri.to_owned()))
}

fn listen(filter: &Value, variant: Option<&str>, capabilities: &Value) -> Value {
    let mut params = json!({"notifications": filter});
    if let Some(variant) = variant {
        params["_meta"][VARIANT] = json!(variant);
    }
    modern(
        json!("listen"),
        "subscriptions/listen",
        params,
        capabilities,
    )
}

/// The stream of a `GET`.
pub(crate) async fn stream_of(house: &House, legacy: &Legacy) -> Http {
    let mut http = house.connect().await;
    let get = Post::of(&legacy.session, "")
        .line("GET /mcp HTTP/1.1")
        .without("Content-Type")
        .with("Accept", "text/event-stream");
    http.send(&get.head()).await;
    assert_eq!(http.head().await.status, 200);
    http
}

/// What listens to every list, and to these resources.
pub(crate) fn everything(uris: &[&str]) -> Value {
    json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": uris,
    })
}

impl Ear {
    /// The id of its session.
    pub(crate) fn legacy_session(&self) -> String {
        self.legacy.as_ref().unwrap().session.clone()
    }
}

/// A modern client that listens to these tasks; what is acknowledged.
pub(crate) async fn listening_to_tasks(
    house: &House,
    capabilities: &Value,
    ids: &[&str],
) -> (Http, Value) {
    let mut http = house.connect().await;
    let params = json!({"notifications": {"taskIds": ids}});
    let listen = modern(
        json!("listen"),
        "subscriptions/listen",
        params,
        capabilities,
    );
    http.send(&Post::modern(&listen).bytes()).await;
    assert_eq!(http.head().await.status, 200);
    let told = soon(http.event()).await.unwrap();
    assert_eq!(
        told["method"], "notifications/subscriptions/acknowledged",
        "{told}"
    );
    assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "listen");
    (http, told["params"]["notifications"].clone())
}
