//! A client with any one fault: `conformance-client FAULT URL`, or `conformance-client FAULT COMMAND ARGUMENT...` for a
//! server on standard input and output. As `conformance-client --relay ADDRESS` it is that command.
//!
//! Without a fault, it declares both extensions, selects a variant on offer, reads all pages, subscribes, calls a tool, and
//! lists again what changes. A fault has the name of the check that must find it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a scripted client for tests"
)]

mod wire;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use wire::Wire;

const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";
const VARIANTS: &str = "io.modelcontextprotocol/server-variants";
const SELECTOR: &str = "io.modelcontextprotocol/server-variant";

/// How long it waits for changes.
const STAY: Duration = Duration::from_millis(1_300);

/// It ends without having connected.
const ABSENT: &str = "absent";

/// It sends one message after the other.
const ENDLESS: &str = "endless";

/// It stays when it is done.
const STAYING: &str = "staying";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (fault, server) = arguments.split_first().unwrap();
    if fault == "--relay" {
        mcp_vary_conformance::relay(&server[0]).unwrap();
        return;
    }
    if fault == ABSENT {
        eprintln!("the server is not known");
        std::process::exit(3);
    }
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap();
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap();
    let mut client = Client {
        fault: fault.clone(),
        is_modern: revision == "2026-07-28",
        wire: Wire::connect(server),
        selector: None,
        has_variants: false,
    };
    client.connect();
    client.list_all();
    client.subscribe();
    client.call();
    if scenario.starts_with("changed") {
        client.follow_changes();
    }
    while client.has(ENDLESS) {
        _ = client.try_request("tools/list", json!({}));
    }
    if client.has(STAYING) {
        std::thread::park();
    }
}

#[derive(Debug)]
struct Client {
    fault: String,
    is_modern: bool,
    wire: Wire,
    selector: Option<Value>,
    has_variants: bool,
}

impl Client {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn connect(&mut self) {
        let result = if self.is_modern {
            self.try_request("server/discover", json!({}))
        } else {
            let result = self.try_request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities("initialize"),
                    "clientInfo": {"name": "conformance-client", "version": "1"},
                }),
            );
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            self.wire.notify(&initialized);
            result
        };
        let result = result.unwrap_or_else(|error| fail(&error));
        let extensions = &result["capabilities"]["extensions"];
        let is_known = extensions.get(VARIANTS).is_some();
        let offered = extensions[VARIANTS]["availableVariants"].as_array();
        for variant in offered.into_iter().flatten() {
            self.select(variant);
        }
        let without_list = is_known && offered.is_none();
        if (self.has("SV-2/client-takes-no-list-as-no-variants") && without_list)
            || (self.has("EXT-4/client-reverts-to-core") && extensions.is_null())
        {
            self.selector = Some("compact".into());
        }
        if self.is_modern {
            let filter = json!({"toolsListChanged": true, "resourcesListChanged": true});
            let params =
                self.with_metadata("subscriptions/listen", json!({"notifications": filter}));
            self.wire.listen("subscriptions/listen", &params);
        } else {
            self.wire.open_session_stream();
        }
    }

    /// Looks at a variant on offer, and selects it if it is the compact one.
    fn select(&mut self, variant: &Value) {
        if self.has("SV-1/client-ignores-unknown-hints") && variant["hints"]["unknownHint"] == "yes"
        {
            fail(&json!("unknown hint"));
        }
        if self.has("EXT-5/client-survives-bad-settings") && !variant["id"].is_string() {
            fail(&json!("no id"));
        }
        self.has_variants |= variant["id"].is_string();
        let declares = !self.has("EXT-2/client-extensions-are-a-map");
        if variant["id"] == "compact" && declares {
            self.selector = Some(match &*self.fault {
                "SV-8/client-selector-is-text" => json!(7),
                "SV-8/client-selects-what-is-offered" => json!("unknown"),
                _ => json!("compact"),
            });
        }
    }

    fn list_all(&mut self) {
        let mut cursor = None;
        loop {
            let mut params = json!({});
            let selector = self.selector.clone();
            if let Some(cursor) = &cursor {
                params["cursor"] = Value::clone(cursor);
                match &*self.fault {
                    "SV-13/client-cursors-are-opaque" => params["cursor"] = json!("2"),
                    "SV-13/client-keeps-cursors-with-their-variant" => self.selector = None,
                    _ => {}
                }
            }
            let page = self.request("tools/list", &params);
            if cursor.is_some() && page.is_none() {
                self.selector = selector;
                break;
            }
            cursor = page.unwrap_or_default().get("nextCursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        self.request("resources/list", &json!({}));
    }

    /// Subscribes to a resource, and then in another variant. Only sessions have subscriptions.
    fn subscribe(&mut self) {
        if self.is_modern {
            return;
        }
        let note = || json!({"uri": "file:///notes"});
        self.request("resources/subscribe", &note());
        if let (Some(selector), true) = (self.selector.clone(), self.has_variants) {
            if !self.has("SV-14/client-unsubscribes-before-another-variant") {
                self.request("resources/unsubscribe", &note());
            }
            self.selector = Some("standard".into());
            self.request("resources/subscribe", &note());
            self.selector = Some(selector);
        }
    }

    fn call(&mut self) {
        let arguments = json!({"a": 5, "b": 3});
        let params = json!({"name": "add_numbers", "arguments": arguments});
        let Some(result) = self.request("tools/call", &params) else {
            return;
        };
        let structure = &result["structuredContent"];
        if self.has("CN-7/client-assumes-no-negotiation") && structure.is_null() {
            fail(&json!("no structure"));
        }
        match structure {
            Value::Null => println!("{}", result["content"]),
            structure => println!("{structure}"),
        }
        if self.has("TR-1/client-forwards-one-field") {
            println!("{}", result["content"]);
        }
    }

    fn follow_changes(&mut self) {
        let end = Instant::now() + STAY;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let Some(change) = self.wire.notification(left) else {
                continue;
            };
            let is_named = change["params"]["_meta"].get(SELECTOR).is_some();
            match change["method"].as_str() {
                Some("notifications/tools/list_changed") => {
                    let fault = if is_named {
                        "SV-16/client-lists-its-variant-again"
                    } else {
                        "SV-16/client-lists-again"
                    };
                    if !self.has(fault) {
                        self.request("tools/list", &json!({}));
                    }
                }
                Some("notifications/resources/list_changed")
                    if !self.has("SV-14/client-revalidates-subscriptions") =>
                {
                    self.request("resources/list", &json!({}));
                }
                _ => {}
            }
        }
    }

    /// The result of a request, sent again once without its selector if that is refused. None if it is an error of another
    /// kind.
    fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        let error = match self.try_request(method, params.clone()) {
            Ok(result) => return Some(result),
            Err(error) => error,
        };
        let message = error["message"].as_str().unwrap();
        if !matches!(
            message,
            "Invalid server variant" | "Server variants not supported"
        ) {
            return None;
        }
        if self.has("SV-19/client-falls-back-to-the-default") {
            fail(&error);
        }
        self.selector = None;
        let retries_often = self.has("SV-19/client-retries-once");
        let tries = if retries_often { 3 } else { 1 };
        for _ in 0..tries {
            if let Ok(result) = self.try_request(method, params.clone()) {
                return Some(result);
            }
        }
        fail(&error)
    }

    fn try_request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let params = self.with_metadata(method, params);
        let response = self.wire.request(method, &params);
        match response.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(response["error"].clone()),
        }
    }

    /// `params` with the selector, and with what a modern client says in each request.
    fn with_metadata(&self, method: &str, mut params: Value) -> Value {
        let is_handshake = matches!(
            method,
            "initialize" | "server/discover" | "subscriptions/listen"
        );
        if let (Some(selector), false) = (&self.selector, is_handshake) {
            params["_meta"][SELECTOR] = selector.clone();
        }
        if self.is_modern {
            let name = |member| format!("io.modelcontextprotocol/{member}");
            let meta = &mut params["_meta"];
            meta[name("protocolVersion")] = "2026-07-28".into();
            meta[name("clientInfo")] = json!({"name": "conformance-client", "version": "1"});
            meta[name("clientCapabilities")] = self.capabilities(method);
        }
        params
    }

    fn capabilities(&self, method: &str) -> Value {
        let mut capabilities = json!({"sampling": {}, "extensions": {
            NEGOTIATION: {"version": "1.0", "features": ["agent", "sampling", "!interactive", "format=json"]},
            VARIANTS: {"variantHints": {"description": "A test.", "hints": {"contextSize": ["compact", "standard"]}}},
        }});
        let extensions = &mut capabilities["extensions"];
        match &*self.fault {
            "EXT-1/client-prefixed-identifiers" => extensions["noprefix"] = json!({}),
            "EXT-2/client-extensions-are-a-map" => *extensions = json!([]),
            "EXT-2/client-settings-are-objects" => extensions["com.example/flag"] = json!(true),
            "CN-17/client-version-is-text" => extensions[NEGOTIATION]["version"] = json!(1),
            "CN-17/client-features-are-texts" => {
                extensions[NEGOTIATION]["features"] = json!("agent");
                capabilities.as_object_mut().unwrap().remove("sampling");
            }
            "CN-17/client-mirrors-sampling" => {
                extensions[NEGOTIATION]["features"] = json!(["agent"]);
            }
            "CN-1/client-tags-are-well-formed" => {
                extensions[NEGOTIATION]["features"] = json!(["sampling", "format==json"]);
            }
            "CN-18/client-declares-with-every-request" if method == "tools/call" => {
                extensions[NEGOTIATION]["features"] = json!([]);
            }
            "SV-4/client-description-is-text" => {
                extensions[VARIANTS]["variantHints"]["description"] = json!(["A test."]);
            }
            "SV-4/client-hints-are-texts-or-arrays" => {
                extensions[VARIANTS]["variantHints"]["hints"]["contextSize"] = json!(7);
            }
            "SV-2/client-declares-variants" => {
                extensions.as_object_mut().unwrap().remove(VARIANTS);
            }
            _ => {}
        }
        capabilities
    }
}

/// Ends with an error that a person can read.
fn fail(error: &Value) -> ! {
    eprintln!("{error}");
    std::process::exit(1);
}
