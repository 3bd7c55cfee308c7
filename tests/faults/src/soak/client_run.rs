//! One client of a soak, and the requests that it sends.

use serde_json::{Value, json};

use super::deployment::{Deployment, Server};
use super::http::request;

/// One client, and the server that it calls.
#[derive(Clone, Copy)]
pub(super) struct ClientRun<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) server: &'static Server,
    /// Tells clients apart.
    pub(super) number: usize,
}

impl ClientRun<'_> {
    pub(super) fn address(&self) -> &str {
        &self.deployment.address
    }

    /// A call of the server's tool `name`.
    pub(super) fn call(self, id: u32, name: &str, arguments: &Value) -> Value {
        let name = format!("{}_{name}", self.server.name);
        let params = json!({"name": name, "arguments": arguments});
        request(id, "tools/call", &params)
    }

    /// A call of the tool that reports three times and then answers.
    pub(super) fn steps(self, id: u32) -> Value {
        let mut call = self.silent(id);
        call["params"]["_meta"] = json!({"progressToken": id});
        call
    }

    /// The same without reports.
    pub(super) fn silent(self, id: u32) -> Value {
        self.call(id, "test_tool_with_progress", &json!({}))
    }

    /// A resource of the server.
    pub(super) fn resource(self) -> String {
        format!("{}://watched-resource", self.server.name)
    }

    /// A call that has the resource change.
    pub(super) fn change(self, id: u32) -> Value {
        self.call(id, "update_resource", &json!({"uri": self.resource()}))
    }

    /// The changes that a client subscribes to.
    pub(super) fn wanted(self) -> Value {
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [self.resource()]}})
    }
}
