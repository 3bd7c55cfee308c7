//! A summary of the servers of a gateway: status, what each serves, and collisions.

use mcp_vary_gateway::{Collision, Gateway, ServedItem, ServerReport};
use mcp_vary_upstream::without_server;
use serde_json::{Map, Value, json};

use crate::print::servers::{faults, is_up, reason, state, status_table, unread_lists};
use crate::print::{self, sanitize};

/// The servers of a gateway at the time when it had connected to them.
#[derive(Clone, Debug)]
pub(crate) struct ServerSummary {
    pub(crate) servers: Vec<ServerReport>,
    pub(crate) served: Vec<ServedItem>,
    pub(crate) collisions: Vec<Collision>,
}

impl ServerSummary {
    pub(crate) fn from_gateway(gateway: &Gateway) -> Self {
        Self {
            servers: gateway.servers(),
            served: gateway.served(),
            collisions: gateway.collisions(),
        }
    }

    /// One server in a line, several as a table.
    pub(crate) fn to_text(&self) -> String {
        if let [server] = &self.servers[..] {
            let revision = server
                .handshake
                .as_ref()
                .map(|handshake| handshake.revision.as_str());
            let line =
                print::server_line(server_info(server).as_ref(), revision.unwrap_or("unknown"));
            let lines = faults(server).map(|line| sanitize(&line) + "\n");
            return line + "\n" + &lines.collect::<String>();
        }
        sanitize(&status_table(&self.servers))
    }

    /// Whether one of the servers has the tool `name`.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        let mut served = self.served.iter();
        served.any(|item| item.list == "tools/list" && *item.id == *name)
    }

    /// Prints which of several servers are not up or could not be read, and why: nothing that was printed has their items.
    pub(crate) fn note_missing_servers(&self) {
        let [_, _, ..] = self.servers[..] else { return };
        let is_missing = |server: &&ServerReport| !is_up(&server.state);
        for server in self.servers.iter().filter(is_missing) {
            if let Some(reason) = reason(server) {
                let name = &server.name;
                let status = state(&server.state);
                let reason = without_server(&reason, name);
                print::notice(&sanitize(&format!(
                    "nothing of server `{name}` is shown, which is {status}: {reason}"
                )));
            }
        }
        for line in self.servers.iter().flat_map(unread_lists) {
            print::notice(&sanitize(&line));
        }
    }

    /// The handshake of a single server, or everything known about several.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        if let [server] = &self.servers[..] {
            return handshake_json(server);
        }
        let servers = self.servers.iter().map(server_json);
        let served = self.served.iter().map(|served| {
            json!({"list": served.list, "id": served.id, "server": served.server, "upstreamName": served.upstream_name})
        });
        let collisions = self.collisions.iter().map(collision_json);
        let mut all = Map::new();
        all.insert("servers".to_owned(), servers.collect());
        all.insert("served".to_owned(), served.collect());
        all.insert("collisions".to_owned(), collisions.collect());
        all
    }
}

/// The state of a server, and how many items it lists.
pub(crate) fn server_json(server: &ServerReport) -> Value {
    let mut summary = Map::new();
    summary.insert("name".to_owned(), json!(server.name));
    summary.insert("state".to_owned(), json!(state(&server.state)));
    if let Some(reason) = reason(server).filter(|_| !is_up(&server.state)) {
        summary.insert("error".to_owned(), json!(reason));
    }
    summary.extend(handshake_json(server));
    if !server.failed_lists.is_empty() {
        summary.insert("failedLists".to_owned(), json!(server.failed_lists));
    }
    let counts = server.counts.iter();
    let lists: Map<_, _> = counts
        .map(|(list, count)| ((*list).to_owned(), json!(count)))
        .collect();
    summary.insert("lists".to_owned(), json!(lists));
    if !server.upstream_variants.is_empty() {
        let ids = json!(server.upstream_variants);
        summary.insert("upstreamVariants".to_owned(), ids);
    }
    Value::Object(summary)
}

/// A name that two servers have in common.
pub(crate) fn collision_json(collision: &Collision) -> Value {
    json!({"list": collision.list, "id": collision.id, "shownFrom": collision.reachable, "hidden": collision.hidden})
}

/// What a server declared in its handshake.
fn handshake_json(server: &ServerReport) -> Map<String, Value> {
    let revision = server
        .handshake
        .as_ref()
        .map(|handshake| handshake.revision.as_str());
    let mut members = Map::new();
    members.insert("server".to_owned(), json!(server_info(server)));
    members.insert("revision".to_owned(), json!(revision));
    if !server.list_faults.is_empty() {
        members.insert("listFaults".to_owned(), json!(server.list_faults));
    }
    members
}

fn server_info(server: &ServerReport) -> Option<Value> {
    let handshake = server.handshake.as_ref()?;
    serde_json::from_str(handshake.server_info.as_deref()?).ok()
}
