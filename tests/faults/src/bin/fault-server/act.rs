//! The answer to a message, on either transport.

use std::path::PathBuf;
use std::time::Duration;

use faults::script::{CALLS, Era, READ_ONLY, Script, Start, TOOLS};
use serde_json::{Value, json};

use crate::log;

/// A server that has started.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) script: Script,
    /// What this start comes to.
    pub(crate) start: Start,
    pub(crate) directory: PathBuf,
}

/// What follows from a message.
#[derive(Debug)]
pub(crate) enum Act {
    /// This answer.
    Answer(Value),
    /// The kind of nonsense that the call asks for, and the right answer to it.
    Noise(String, Value),
    /// A stream that begins with this notification and stays open.
    Stream(Value),
    /// Nothing to say: it was a notification, or the server is silent.
    Nothing,
    /// The process ends.
    End(i32),
}

impl Server {
    /// What follows from `message`; waits for as long as a call asks for.
    pub(crate) async fn act(&self, message: &Value) -> Act {
        let method = message["method"].as_str().unwrap_or_default();
        if message.get("id").is_none() {
            let done = method == "notifications/initialized" && self.start == Start::Leave;
            return if done { Act::End(0) } else { Act::Nothing };
        }
        if self.start == Start::Silence {
            return Act::Nothing;
        }
        let result = match (method, self.script.era) {
            ("initialize", Era::Legacy) => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities(),
                "serverInfo": self.info(),
            }),
            ("ping", Era::Legacy) => json!({}),
            ("server/discover", Era::Modern) => self.discovered(),
            ("subscriptions/listen", Era::Modern) => return Act::Stream(acknowledged(message)),
            ("tools/list", _) if self.start == Start::Leave => return Act::End(0),
            ("tools/list", _) => self.tools(),
            ("tools/call", _) => return self.call(message).await,
            _ => return Act::Answer(refusal(message, -32601, "Method not found")),
        };
        Act::Answer(self.response(message, result))
    }

    async fn call(&self, message: &Value) -> Act {
        let arguments = &message["params"]["arguments"];
        let call = arguments["call"].as_str().unwrap_or_default();
        if let Err(error) = log::append(&self.directory, CALLS, call) {
            return Act::Answer(refusal(message, -32603, &error));
        }
        let text = format!("{}: {call}", self.script.name);
        let result = json!({"content": [{"type": "text", "text": text}]});
        let answer = self.response(message, result);
        match message["params"]["name"].as_str().unwrap_or_default() {
            "sleep" | READ_ONLY => {
                let pause = arguments["ms"].as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(pause)).await;
                Act::Answer(answer)
            }
            "hang" => Act::Nothing,
            "die" => Act::End(3),
            "noise" => {
                let kind = arguments["kind"].as_str().unwrap_or_default();
                Act::Noise(kind.to_owned(), answer)
            }
            _ => Act::Answer(answer),
        }
    }

    fn response(&self, message: &Value, mut result: Value) -> Value {
        if self.script.era == Era::Modern {
            result["resultType"] = json!("complete");
        }
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
    }

    fn info(&self) -> Value {
        json!({"name": self.script.name, "version": "1.0.0"})
    }

    fn discovered(&self) -> Value {
        json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info()},
        })
    }

    fn tools(&self) -> Value {
        let names = TOOLS
            .into_iter()
            .chain(self.script.tool.as_deref())
            .map(|name| {
                json!({
                    "name": name,
                    "inputSchema": {"type": "object"},
                    "annotations": {"readOnlyHint": name == READ_ONLY},
                })
            });
        let tools: Vec<Value> = names.collect();
        match self.script.era {
            Era::Legacy => json!({"tools": tools}),
            Era::Modern => json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}),
        }
    }
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}})
}

fn acknowledged(message: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]},
            "notifications": {"toolsListChanged": true},
        },
    })
}

fn refusal(message: &Value, code: i64, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": why}})
}
