//! A scripted server that a test describes method by method.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::era::Era;
use crate::message::{SUBSCRIPTION, discovered, introduced, notification, tool_list};
use crate::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};

/// What a server of one era declares, and what answers each method.
///
/// The last row of a method counts. A method without a row gets the reply of an ordinary server.
pub struct Script {
    era: Era,
    name: &'static str,
    capabilities: Value,
    rows: Vec<(String, Row)>,
}

/// What answers a method.
type Row = Box<dyn Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync>;

impl Script {
    /// A server of `era` without capabilities.
    pub fn new(era: Era, name: &'static str) -> Self {
        Self {
            era,
            name,
            capabilities: json!({}),
            rows: Vec::new(),
        }
    }

    /// A server of 2025-11-25 without capabilities.
    pub fn legacy(name: &'static str) -> Self {
        Self::new(Era::Legacy, name)
    }

    /// Declares these capabilities, too.
    pub fn declares(mut self, capabilities: Value) -> Self {
        for (name, value) in capabilities.as_object().unwrap() {
            self.capabilities[name] = value.clone();
        }
        self
    }

    /// Lists these items, by the member that has them, such as `tools`, and declares what it lists.
    pub fn lists(mut self, lists: Value) -> Self {
        for (member, items) in lists.as_object().unwrap() {
            let (method, capability) = match member.as_str() {
                "tools" => ("tools/list", "tools"),
                "prompts" => ("prompts/list", "prompts"),
                "resources" => ("resources/list", "resources"),
                "resourceTemplates" => ("resources/templates/list", "resources"),
                member => panic!("servers do not list {member}"),
            };
            if self.capabilities[capability].is_null() {
                self.capabilities[capability] = json!({});
            }
            self = self.result(method, json!({member.as_str(): items}));
        }
        self
    }

    /// Lists these tools, which take any object.
    pub fn tools(self, names: &[&str]) -> Self {
        self.lists(tool_list(names))
    }

    /// The results of requests, by their methods.
    pub fn results(self, results: Value) -> Self {
        let results = results.as_object().unwrap().clone().into_iter();
        results.fold(self, |script, (method, result)| {
            script.result(&method, result)
        })
    }

    /// The result of each request with this method.
    pub fn result(self, method: &str, result: Value) -> Self {
        self.reply(method, move |seen| seen.answer(&result))
    }

    /// The result of a request with this method, by its `params`.
    pub fn on(
        self,
        method: &str,
        result: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        self.reply(method, move |seen| {
            seen.answer(&result(&seen.body["params"]))
        })
    }

    /// The result of a call, by its `params`.
    pub fn on_call(self, result: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.on("tools/call", result)
    }

    /// The reply to a request with this method, which may be `GET`.
    pub fn reply(
        self,
        method: &str,
        reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.may_reply(method, move |seen| Some(reply(seen)))
    }

    /// The reply to some requests with this method; `None` leaves a request to the row before.
    pub fn may_reply(
        mut self,
        method: &str,
        reply: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.rows.push((method.to_owned(), Box::new(reply)));
        self
    }

    /// Introduces itself with what it declares, whatever a row before says.
    pub fn introduces(self) -> Self {
        let result = discovered(self.capabilities.clone());
        self.result("server/discover", result)
    }

    /// Opens a session with this id at each `initialize`, if the server has sessions.
    pub fn in_sessions(
        self,
        id: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
    ) -> Self {
        if self.era == Era::Modern {
            return self;
        }
        let result = introduced(self.name, self.capabilities.clone());
        self.reply("initialize", move |seen| seen.open(id(seen), &result))
    }

    /// Opens the streams of clients that listen, as its era does.
    pub fn notifies(self, streams: &Streams) -> Self {
        let streams = streams.clone();
        match self.era {
            Era::Legacy => self.reply("GET", move |_| streams.open(&Value::Null, &json!({}))),
            Era::Modern => self.reply("subscriptions/listen", move |seen| {
                streams.open(seen.id(), &seen.body["params"]["notifications"])
            }),
        }
    }

    /// The reply to a request; `None` for that of an ordinary server.
    pub fn reply_to(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let rows = self.rows.iter().rev();
        let mut rows = rows.filter(|(method, _)| *method == seen.method());
        if let Some(reply) = rows.find_map(|(_, row)| row(seen)) {
            return Some(reply);
        }
        let capabilities = self.capabilities.clone();
        match (seen.method(), self.era) {
            ("initialize", Era::Legacy) => Some(seen.answer(&introduced(self.name, capabilities))),
            ("server/discover", Era::Modern) => Some(seen.answer(&discovered(capabilities))),
            _ => None,
        }
    }

    /// Starts the server on a free port.
    pub async fn start(self) -> ScriptedServer {
        ScriptedServer::start(move |seen| self.reply_to(seen)).await
    }
}

/// The open streams of a server, on which it notifies.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<Mutex<Vec<OpenStream>>>);

/// The stream of a client that listens.
#[derive(Clone, Debug)]
pub struct OpenStream {
    /// The id of its subscription; null for that of a `GET`.
    pub id: Value,
    /// What the client subscribed to.
    pub filter: Value,
    /// Where events are written.
    pub sender: UnboundedSender<Bytes>,
}

impl Streams {
    fn open(&self, id: &Value, filter: &Value) -> Reply {
        let (sender, reply) = Reply::subscription(id, filter);
        let (id, filter) = (id.clone(), filter.clone());
        let stream = OpenStream { id, filter, sender };
        self.0.lock().unwrap().push(stream);
        reply
    }

    /// The streams whose clients are still there.
    pub fn all(&self) -> Vec<OpenStream> {
        let mut streams = self.0.lock().unwrap();
        streams.retain(|stream| !stream.sender.is_closed());
        streams.clone()
    }

    /// Sends a notification on each stream, and returns on how many.
    pub fn notify(&self, method: &str, params: &Value) -> usize {
        let streams = self.all();
        for stream in &streams {
            stream.notify(method, params.clone());
        }
        streams.len()
    }
}

impl OpenStream {
    /// Sends a notification, of its subscription if it has one.
    pub fn notify(&self, method: &str, mut params: Value) {
        if !self.id.is_null() {
            params["_meta"][SUBSCRIPTION] = self.id.clone();
        }
        // The client may be gone.
        let _ = self
            .sender
            .send(event(&notification(method, params)).into());
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut script = formatter.debug_struct("Script");
        script.field("name", &self.name).finish_non_exhaustive()
    }
}
