//! Messages as clients and servers write them.

use std::fmt::Debug;

use serde_json::{Value, json};

/// The `_meta` member that selects a variant.
pub const VARIANT: &str = "io.modelcontextprotocol/server-variant";

/// The `_meta` member with the id of a subscription.
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A request whose params do not describe the client.
pub fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of revision 2026-07-28.
pub fn modern(id: Value, method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    request(id, method, params)
}

/// A notification.
pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The `initialize` request of a client.
pub fn initialize(revision: &str, capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(json!(0), "initialize", params)
}

/// The result of `initialize` from a server of 2025-11-25.
pub fn introduced(name: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "serverInfo": {"name": name, "version": "1"},
    })
}

/// The result of `server/discover` from a server of 2026-07-28.
pub fn discovered(capabilities: Value) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
    })
}

/// The capabilities of a client that declares these feature tags.
pub fn features(tags: &[&str]) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/content-negotiation": {"features": tags}}})
}

/// The capabilities of a client with these hints.
pub fn hints(hints: Value) -> Value {
    json!({"extensions": {"io.modelcontextprotocol/server-variants": {"variantHints": {"hints": hints}}}})
}

/// `params` for the variant `id`.
pub fn under(id: impl Into<Value>, mut params: Value) -> Value {
    params["_meta"][VARIANT] = id.into();
    params
}

/// The params of a call without arguments.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

/// The result of `tools/list` with these tools, which take any object.
pub fn tool_list(names: &[&str]) -> Value {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"tools": names.iter().map(tool).collect::<Vec<_>>()})
}

/// The response to a request.
pub fn response(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// The value that a cell of a table is.
pub fn cell(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The names of the tools in a `tools/list` response.
pub fn names(response: &Value) -> Vec<&str> {
    let tools = response["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// The texts in the content blocks of a result.
pub fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// The URI of the whole result, from the link in a shortened one.
pub fn link(result: &Value) -> &str {
    let mut blocks = result["content"].as_array().unwrap().iter();
    let link = blocks.find(|block| block["type"] == "resource_link");
    let uri = link.unwrap()["uri"].as_str().unwrap();
    assert!(uri.starts_with("vary://result/"), "{uri}");
    uri
}

/// What a message holds.
pub trait Has {
    /// Checks the value that a JSON pointer leads to: null, if nothing is there. A failure shows the whole message.
    fn has<T: Debug>(&self, pointer: &str, expected: T)
    where
        Value: PartialEq<T>;

    /// Checks that a pointer leads to a text with this part.
    fn contains(&self, pointer: &str, part: &str);

    /// Checks that a pointer leads to a text that starts so.
    fn starts(&self, pointer: &str, start: &str);

    /// Checks that a response is the error `code`, with a message that has this part.
    fn fails(&self, code: i64, part: &str);
}

impl Has for Value {
    #[track_caller]
    fn has<T: Debug>(&self, pointer: &str, expected: T)
    where
        Self: PartialEq<T>,
    {
        let found = self.pointer(pointer).unwrap_or(&Self::Null);
        assert!(
            *found == expected,
            "`{pointer}` is {found}, not {expected:?}, in {self}"
        );
    }

    #[track_caller]
    fn contains(&self, pointer: &str, part: &str) {
        let text = self.pointer(pointer).and_then(Self::as_str);
        let found = text.is_some_and(|text| text.contains(part));
        assert!(found, "`{pointer}` does not contain {part:?}: {self}");
    }

    #[track_caller]
    fn starts(&self, pointer: &str, start: &str) {
        let text = self.pointer(pointer).and_then(Self::as_str);
        let found = text.is_some_and(|text| text.starts_with(start));
        assert!(found, "`{pointer}` does not start with {start:?}: {self}");
    }

    #[track_caller]
    fn fails(&self, code: i64, part: &str) {
        let error = &self["error"];
        let text = error["message"].as_str();
        let found = error["code"] == code && text.is_some_and(|text| text.contains(part));
        assert!(found, "not the error {code} with {part:?}: {self}");
    }
}
