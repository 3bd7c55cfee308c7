//! A scripted server whose lists and resources a test can change.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::era::Era;
use crate::script::OpenStream;
use crate::scripted_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::wait::soon;

/// The server with its lists, and the streams of its subscribers.
#[derive(Clone, Debug)]
pub struct ChangingServer {
    era: Era,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    tools: Vec<Value>,
    resources: Vec<&'static str>,
    templates: Vec<&'static str>,
    prompts: Vec<&'static str>,
    /// The resources that clients cannot subscribe to.
    refused: Vec<&'static str>,
    capabilities: Value,
    instructions: String,
    streams: Vec<OpenStream>,
    /// The number of starts. Each start removes the sessions.
    life: usize,
}

impl ChangingServer {
    /// A server of `era` with something in every list.
    pub fn new(era: Era) -> Self {
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
            instructions: "Be careful.".to_owned(),
            streams: Vec::new(),
            life: 1,
        };
        Self {
            era,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Starts it on a free port.
    pub async fn start(&self) -> ScriptedServer {
        let server = self.clone();
        ScriptedServer::start(move |seen| server.reply_to(seen)).await
    }

    /// Starts it again at `address`, without its streams and sessions.
    pub async fn restart_at(&self, address: SocketAddr) -> ScriptedServer {
        self.with(|state| {
            state.streams.clear();
            state.life += 1;
        });
        let server = self.clone();
        ScriptedServer::start_at(address, move |seen| server.reply_to(seen)).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    /// Declares other capabilities from the next connection on.
    pub fn declare(&self, capabilities: Value) {
        self.with(|state| state.capabilities = capabilities);
    }

    /// Refuses subscriptions to these resources.
    pub fn refuse(&self, uris: &[&'static str]) {
        self.with(|state| state.refused = uris.to_vec());
    }

    /// Waits until a client listens to list changes.
    pub async fn wait_for_listener(&self) {
        let listens =
            |stream: &OpenStream| stream.id.is_null() || stream.filter["toolsListChanged"] == true;
        self.until(|state| state.streams.iter().any(listens)).await;
    }

    /// Waits until the open streams are subscribed to exactly these resources.
    pub async fn wait_for_subscriptions(&self, uris: &[&str]) {
        let of = |stream: &OpenStream| stream.filter["resourceSubscriptions"].clone();
        self.until(|state| {
            let open = state
                .streams
                .iter()
                .filter(|stream| !stream.sender.is_closed());
            let subscribed: Vec<_> = open.map(of).filter(|uris| !uris.is_null()).collect();
            match uris {
                [] => subscribed.is_empty(),
                uris => subscribed == [json!(uris)],
            }
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        soon(async {
            while !self.with(|state| holds(state)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Replaces the list of tools, without a notification.
    pub fn set_tools(&self, tools: &[&str]) {
        self.with(|state| state.tools = tools.iter().map(|name| tool(name)).collect());
    }

    /// Replaces the definitions of tools, without a notification.
    pub fn define_tools(&self, tools: &[Value]) {
        self.with(|state| state.tools = tools.to_vec());
    }

    /// Replaces the instructions from the next connection on.
    pub fn instruct(&self, instructions: &str) {
        self.with(|state| state.instructions = instructions.to_owned());
    }

    /// Replaces the list of resources, without a notification.
    pub fn set_resources(&self, uris: &[&'static str]) {
        self.with(|state| state.resources = uris.to_vec());
    }

    /// Replaces the list of prompts, without a notification.
    pub fn set_prompts(&self, names: &[&'static str]) {
        self.with(|state| state.prompts = names.to_vec());
    }

    /// Notifies that a list changed: `tools`, `resources` or `prompts`.
    pub fn notify_list_changed(&self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        let key = format!("{list}ListChanged");
        self.notify(&method, &json!({}), |filter| filter[&key] == true);
    }

    /// Notifies that a resource changed.
    pub fn notify_updated(&self, uri: &str) {
        let params = json!({"uri": uri, "x-vendor": {"n": 1.0}});
        self.notify("notifications/resources/updated", &params, |filter| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.contains(&json!(uri)))
        });
    }

    /// Sends a notification on each stream, whatever its client subscribed to.
    pub fn notify_all(&self, method: &str, params: &Value) {
        self.notify(method, params, |_| true);
    }

    fn notify(&self, method: &str, params: &Value, is_wanted: impl Fn(&Value) -> bool) {
        self.with(|state| {
            state.streams.retain(|stream| !stream.sender.is_closed());
            for stream in &state.streams {
                if stream.id.is_null() || is_wanted(&stream.filter) {
                    stream.notify(method, params.clone());
                }
            }
        });
    }

    fn reply_to(&self, seen: &ReceivedRequest) -> Option<Reply> {
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
                    "capabilities": state.capabilities, "instructions": state.instructions,
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
            ("resources/read", _) => {
                let is_there =
                    |state: &State| state.resources.iter().any(|uri| params["uri"] == *uri);
                if !self.with(|state| is_there(state)) {
                    return Some(seen.refuse(200, -32002, "no such note"));
                }
                json!({"contents": [{"uri": params["uri"], "text": "a note"}]})
            }
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

    fn initialize(&self, seen: &ReceivedRequest) -> Reply {
        let (capabilities, instructions) =
            self.with(|state| (state.capabilities.clone(), state.instructions.clone()));
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "instructions": instructions,
            "serverInfo": {"name": "stage", "version": "1"},
        });
        seen.answer(&result)
            .with_header("mcp-session-id", self.session())
    }

    fn session(&self) -> String {
        self.with(|state| format!("s-{}", state.life))
    }

    fn listen(&self, id: &Value, filter: &Value) -> Reply {
        self.with(|state| {
            let mut acknowledged = filter.clone();
            if let Some(uris) = acknowledged["resourceSubscriptions"].as_array_mut() {
                uris.retain(|uri| !state.refused.iter().any(|refused| uri == *refused));
            }
            let (sender, reply) = Reply::subscription(id, &acknowledged);
            let (id, filter) = (id.clone(), filter.clone());
            state.streams.push(OpenStream { id, filter, sender });
            reply
        })
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool. It has two sentences.", "inputSchema": {"type": "object"}})
}
