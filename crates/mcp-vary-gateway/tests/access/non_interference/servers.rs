//! The servers of a case: two behind each gateway, which have all items or those that the rules show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use super::case::{Case, Declares, Item, Items, Kind, SERVERS, mark};
use crate::support::*;

/// The header that says for which gateway a server is asked.
pub(super) const GATEWAY: &str = "x-gateway";

/// The header that says which server is asked.
pub(super) const SERVER: &str = "x-server";

/// The servers of all gateways of a case.
#[derive(Clone)]
pub(super) struct Servers {
    era: Era,
    /// The number of servers.
    count: usize,
    declares: [Declares; 2],
    /// By gateway.
    state: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

/// The servers of one gateway.
#[derive(Default)]
pub(super) struct State {
    pub(super) items: Items,
    /// The servers that declare nothing and have nothing.
    absent: BTreeSet<usize>,
    streams: Vec<Stream>,
    subscribed: Vec<String>,
    /// The lists that were announced as changed and not read since then.
    announced: BTreeSet<(usize, &'static str)>,
}

struct Stream {
    server: usize,
    open: OpenStream,
}

impl Servers {
    pub(super) fn new(case: &Case, [restricted, unrestricted]: [&'static str; 2]) -> Self {
        let with_rules = default_with::<State>(|it| it.items = case.items.clone());
        let without_hidden = State {
            items: case.visible(&case.items),
            absent: (0..case.servers)
                .filter(|at| !case.shows_server(*at))
                .collect(),
            ..State::default()
        };
        let state = [(restricted, with_rules), (unrestricted, without_hidden)];
        Self {
            era: case.server_era,
            count: case.servers,
            declares: case.declares,
            state: Arc::new(Mutex::new(state.into())),
        }
    }

    pub(super) async fn start(&self) -> ScriptedServer {
        let servers = self.clone();
        ScriptedServer::start(move |seen| servers.reply_to(seen)).await
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.state.lock().unwrap()
    }

    /// Acts on the servers of a gateway.
    pub(super) fn with<T>(&self, gateway: &str, act: impl FnOnce(&mut State) -> T) -> T {
        act(self.lock().get_mut(gateway).unwrap())
    }

    /// Waits until the gateway will hear of all marks.
    pub(super) async fn wait_until_subscribed(&self, gateway: &str) {
        let era = self.era;
        let is_subscribed = |state: &State, server: usize| {
            let mark = mark(server);
            let mut streams = state.streams.iter().filter(|it| it.server == server);
            match era {
                Era::Legacy => streams.next().is_some() && state.subscribed.contains(&mark),
                Era::Modern => streams.any(|stream| {
                    let uris = stream.open.filter["resourceSubscriptions"].as_array();
                    uris.is_some_and(|uris| uris.contains(&json!(mark)))
                }),
            }
        };
        soon(async {
            let all = |state: &mut State| (0..self.count).all(|at| is_subscribed(state, at));
            while !self.with(gateway, all) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Waits until the gateway reads the lists that were announced. What servers send from then on comes after the
    /// change, on whichever stream they send it.
    pub(super) async fn wait_until_read(&self, gateway: &str) {
        let is_read = |state: &mut State| state.announced.is_empty();
        soon(async {
            while !self.with(gateway, is_read) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    fn reply_to(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let server = SERVERS
            .iter()
            .position(|name| seen.header(SERVER) == Some(name))?;
        let mut gateways = self.lock();
        let state = gateways.get_mut(seen.header(GATEWAY)?)?;
        let params = &seen.body["params"];
        let is_absent = state.absent.contains(&server);
        let instructions = if is_absent { "" } else { SERVERS[server] };
        let capabilities = || {
            if is_absent {
                json!({})
            } else {
                self.declares[server].capabilities(SERVERS[server])
            }
        };
        let result = match (seen.method(), self.era) {
            ("initialize", Era::Legacy) => {
                let mut result = introduced(SERVERS[server], capabilities());
                result["instructions"] = json!(instructions);
                let reply = seen.answer(&result);
                return Some(reply.with_header("mcp-session-id", SERVERS[server]));
            }
            ("server/discover", Era::Modern) => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities(), "instructions": instructions,
            }),
            (method, _)
                if !seen.id().is_null()
                    && (is_absent || !self.declares[server].has_method(method)) =>
            {
                return Some(seen.refuse(200, -32601, "the server does not have the method"));
            }
            ("GET", Era::Legacy) => return Some(state.listen(server, &Value::Null, &json!({}))),
            ("subscriptions/listen", Era::Modern) => {
                return Some(state.listen(server, seen.id(), &params["notifications"]));
            }
            ("resources/subscribe", Era::Legacy) => {
                let uri = params["uri"].as_str().unwrap();
                state.subscribed.push(uri.to_owned());
                json!({})
            }
            ("resources/unsubscribe" | "logging/setLevel", Era::Legacy) => json!({}),
            (method, _) => match state.listed(server, method) {
                Some(result) => {
                    state.announced.retain(|list| *list != (server, method));
                    result
                }
                None => return state.used(server, seen),
            },
        };
        Some(seen.answer(&result))
    }
}

impl Declares {
    /// A method that is not declared is refused: whether a server has it follows from its first answer in a second, so that an
    /// answer would depend on time.
    fn has_method(self, method: &str) -> bool {
        match method {
            "logging/setLevel" => self.others,
            method => self.resources || !method.starts_with("resources/"),
        }
    }

    fn capabilities(self, server: &str) -> Value {
        let mut all = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}});
        if self.resources {
            all["resources"] = json!({"listChanged": true, "subscribe": true});
        }
        if self.others {
            all["completions"] = json!({});
            all["logging"] = json!({});
            all["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            all["extensions"] = json!({format!("com.example/{server}"): {"x": 1}});
            all["experimental"] = json!({format!("com.example/{server}-too"): {}});
        }
        all
    }
}

impl State {
    fn of(&self, server: usize) -> impl Iterator<Item = (&Item, &usize)> {
        self.items
            .iter()
            .filter(move |(item, _)| item.server == server)
    }

    /// The result of a method that lists.
    fn listed(&self, server: usize, method: &str) -> Option<Value> {
        let all = |is_listed: &dyn Fn(Kind) -> bool, list: fn(&Item, String) -> Value| {
            let items = self.of(server).filter(|(item, _)| is_listed(item.kind));
            let described = |count: &usize| format!("Does it {count} times. Well.");
            let items = items.map(|(item, count)| list(item, described(count)));
            items.collect::<Vec<_>>()
        };
        Some(match method {
            "tools/list" => {
                json!({"tools": all(&|kind| kind == Kind::Tool, |item, description| json!({
                    "name": item.upstream_name(), "description": description,
                    "inputSchema": {"type": "object"},
                    "annotations": {"readOnlyHint": item.name.ends_with('a')},
                }))})
            }
            "prompts/list" => {
                json!({"prompts": all(&|kind| kind == Kind::Prompt, |item, description| {
                    json!({"name": item.upstream_name(), "description": description})
                })})
            }
            "resources/list" => {
                let is_listed = |kind| matches!(kind, Kind::Resource | Kind::Shared | Kind::Mark);
                json!({"resources": all(&is_listed, |item, description| {
                    json!({"uri": item.upstream_name(), "name": "r", "description": description})
                })})
            }
            "resources/templates/list" => {
                let is_listed = |kind| kind == Kind::Template;
                json!({"resourceTemplates": all(&is_listed, |item, description| {
                    json!({"uriTemplate": item.upstream_name(), "name": "u", "description": description})
                })})
            }
            _ => return None,
        })
    }

    /// The reply to a request that uses an item. What the server does not have it refuses in its own words, so that a
    /// request for what is hidden would be seen.
    fn used(&self, server: usize, seen: &ReceivedRequest) -> Option<Reply> {
        let params = &seen.body["params"];
        let reference = &params["ref"];
        let names = [
            &params["name"],
            &params["uri"],
            &reference["name"],
            &reference["uri"],
        ];
        let named = names.into_iter().find_map(Value::as_str)?;
        let is_named = |item: &Item| item.upstream_name() == named || item.uri() == named;
        if !self.of(server).any(|(item, _)| is_named(item)) {
            return Some(seen.refuse(200, -32602, "the server does not have it"));
        }
        let reported = format!("{} {named}", SERVERS[server]);
        let result = match seen.method() {
            "tools/call" => return Some(called(seen, &reported)),
            "prompts/get" => json!({"messages": [], "said": reported}),
            "resources/read" => json!({"contents": [], "said": reported}),
            "completion/complete" => json!({"completion": {"values": []}, "said": reported}),
            _ => return None,
        };
        Some(seen.answer(&result))
    }

    fn listen(&mut self, server: usize, id: &Value, filter: &Value) -> Reply {
        let (sender, reply) = Reply::subscription(id, filter);
        let (id, filter) = (id.clone(), filter.clone());
        let open = OpenStream { id, filter, sender };
        self.streams.push(Stream { server, open });
        reply
    }

    /// Announces that a list of a server changed.
    pub(super) fn announce(&mut self, server: usize, list: &str) {
        let lists: &[_] = match list {
            "tools" => &["tools/list"],
            "prompts" => &["prompts/list"],
            _ => &["resources/list", "resources/templates/list"],
        };
        self.announced
            .extend(lists.iter().map(|list| (server, *list)));
        let key = format!("{list}ListChanged");
        let method = format!("notifications/{list}/list_changed");
        self.notify(server, &method, &json!({}), |filter| filter[&key] == true);
    }

    /// The streams of a server, for an error: the id and the filter of each, and whether it is closed.
    pub(super) fn streams_of(&self, server: usize) -> Vec<String> {
        let streams = self.streams.iter().filter(|it| it.server == server);
        let described = streams.map(|Stream { open, .. }| {
            let is_closed = open.sender.is_closed();
            format!("{} {} closed: {is_closed}", open.id, open.filter)
        });
        described.collect()
    }

    /// Notifies that a resource changed.
    pub(super) fn update(&mut self, server: usize, uri: &str, step: usize) {
        let params = json!({"uri": uri, "x-step": step});
        let is_subscribed = |filter: &Value| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.contains(&json!(uri)))
        };
        self.notify(
            server,
            "notifications/resources/updated",
            &params,
            is_subscribed,
        );
    }

    fn notify(
        &mut self,
        server: usize,
        method: &str,
        params: &Value,
        is_wanted: impl Fn(&Value) -> bool,
    ) {
        self.streams
            .retain(|stream| !stream.open.sender.is_closed());
        for Stream { open, .. } in self.streams.iter().filter(|it| it.server == server) {
            if open.id.is_null() || is_wanted(&open.filter) {
                open.notify(method, params.clone());
            }
        }
    }
}

/// The progress, the log and the result of a call.
fn called(seen: &ReceivedRequest, reported: &str) -> Reply {
    let token = &seen.body["params"]["_meta"]["progressToken"];
    let progress = json!({"progressToken": token, "progress": 1, "message": reported});
    let log = json!({"level": "error", "data": reported});
    let result = json!({"content": [], "said": reported});
    let messages = [
        notification("notifications/progress", progress),
        notification("notifications/message", log),
        seen.message(&result),
    ];
    Reply::events(messages.iter().map(event).collect::<String>())
}
