//! A legacy server over HTTP with sessions that it can lose, and the ways in which servers say so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};

/// A way in which servers refuse requests in a session that they have lost.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "each way is one literal")]
pub struct LostSession {
    /// What it is called.
    pub name: &'static str,
    /// The reply to each request in the session.
    pub reply: fn(&ReceivedRequest) -> Reply,
    /// Whether it shows that the request did not run, so that it can be sent again.
    pub shows_not_run: bool,
}

/// All ways, by status.
pub const LOST_SESSIONS: &[LostSession] = &[
    way("404-json", |_| anonymous(404, -32001, "Session not found")),
    way("404-empty", |_| Reply::new(404, "text/plain", "")),
    way("404-own-id", |seen| {
        seen.refuse(404, -32001, "Session not found")
    }),
    way("400-text", |_| {
        Reply::new(
            400,
            "text/plain",
            "Bad Request: No valid session ID provided",
        )
    }),
    way("400-json", |_| {
        anonymous(400, -32000, "Bad Request: Server not initialized")
    }),
    way("400-empty", |_| Reply::new(400, "text/plain", "")),
    way("401-text", |_| {
        Reply::new(401, "text/plain", "Unauthorized: Session not found")
    }),
    way("401-challenge", |_| {
        let challenge = "Bearer error=\"invalid_token\"";
        Reply::json(401, &json!({"error": "invalid_token"}))
            .with_header("www-authenticate", challenge)
    }),
    way("403-json", |_| {
        Reply::json(403, &json!({"detail": "Forbidden"}))
    }),
    way("410-empty", |_| Reply::new(410, "text/plain", "")),
    way("422-text", |_| {
        Reply::new(422, "text/plain", "missing session id")
    }),
    uncertain("500-text", |_| {
        Reply::new(500, "text/plain", "Internal Server Error")
    }),
    uncertain("502-page", |_| {
        Reply::new(
            502,
            "text/html",
            "<html><body>Bad Gateway, your session ...</body></html>",
        )
    }),
    uncertain("200-page", |_| {
        Reply::new(200, "text/html", "<html><body>Log in</body></html>")
    }),
    uncertain("200-text", |_| Reply::new(200, "text/plain", "try later")),
    uncertain("200-empty", |_| Reply::new(200, "text/plain", "")),
    uncertain("202-empty", |_| Reply::new(202, "text/plain", "")),
    uncertain("302-login", |_| {
        Reply::new(302, "text/plain", "").with_header("location", "/login")
    }),
    way("503-json", |_| {
        anonymous(503, -32000, "Session not found; server restarted")
    }),
    way("200-32001", |seen| {
        seen.refuse(200, -32001, "Session not found")
    }),
    way("200-32002", |seen| {
        seen.refuse(200, -32002, "Server not initialized")
    }),
    way("200-32600", |_| {
        anonymous(200, -32600, "Invalid Request: unknown session")
    }),
    way("200-32000-stream", |seen| {
        in_stream(200, seen.id(), -32000, "Session expired")
    }),
    way("200-32005-stream", |_| {
        in_stream(200, &Value::Null, -32005, "Session terminated")
    }),
    way("400-stream", |_| {
        in_stream(400, &Value::Null, -32600, "Mcp-Session-Id is unknown")
    }),
];

/// Ways that do not differ from the error of a call, so that only a ping shows that the session is gone.
pub const DISGUISED_LOSSES: &[LostSession] = &[
    uncertain("500-own-id", |seen| {
        seen.refuse(500, -32603, "Internal error")
    }),
    uncertain("200-32603", |seen| {
        seen.refuse(200, -32603, "unknown connection")
    }),
    uncertain("200-32602", |seen| {
        seen.refuse(200, -32602, "Invalid request parameters")
    }),
];

const fn way(name: &'static str, reply: fn(&ReceivedRequest) -> Reply) -> LostSession {
    LostSession {
        name,
        reply,
        shows_not_run: true,
    }
}

const fn uncertain(name: &'static str, reply: fn(&ReceivedRequest) -> Reply) -> LostSession {
    LostSession {
        name,
        reply,
        shows_not_run: false,
    }
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn anonymous(status: u16, code: i32, message: &str) -> Reply {
    Reply::json(status, &error(&Value::Null, code, message))
}

fn in_stream(status: u16, id: &Value, code: i32, message: &str) -> Reply {
    Reply::new(
        status,
        "text/event-stream",
        event(&error(id, code, message)),
    )
}

/// The server: its tool `set` stores `to` in the session, `get` returns what is stored, all others count their runs by the
/// argument `call`.
#[derive(Debug)]
pub struct SessionServer {
    /// The server, with what it has received.
    pub server: ScriptedServer,
    sessions: Arc<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    opened: usize,
    open: BTreeMap<String, Value>,
    runs: BTreeMap<String, usize>,
}

impl SessionServer {
    /// Starts the server. `script` decides first; `None` is for the server itself.
    pub async fn start(
        lost: LostSession,
        script: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let sessions = Arc::<Sessions>::default();
        let shared = Arc::clone(&sessions);
        let reply = move |seen: &ReceivedRequest| script(seen).or_else(|| shared.reply(seen, lost));
        Self {
            server: ScriptedServer::start(reply).await,
            sessions,
        }
    }

    /// Loses all sessions, as a restart does.
    pub fn forget(&self) {
        self.sessions.0.lock().unwrap().open.clear();
    }

    /// How many sessions were opened.
    pub fn opened(&self) -> usize {
        self.sessions.0.lock().unwrap().opened
    }

    /// How often each call ran.
    pub fn runs(&self) -> BTreeMap<String, usize> {
        self.sessions.0.lock().unwrap().runs.clone()
    }
}

impl Sessions {
    fn reply(&self, seen: &ReceivedRequest, lost: LostSession) -> Option<Reply> {
        let mut inner = self.0.lock().unwrap();
        match seen.method() {
            "initialize" => {
                inner.opened += 1;
                let session = format!("s-{}", inner.opened);
                inner.open.insert(session.clone(), Value::Null);
                let result = json!({
                    "protocolVersion": seen.body["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "sessions", "version": "1"},
                });
                return Some(seen.open(session, &result));
            }
            "GET" | "DELETE" => return None,
            _ => {}
        }
        let Some(session) = seen.header("mcp-session-id") else {
            return Some(anonymous(400, -32000, "Bad Request: no session id"));
        };
        let Some(stored) = inner.open.get_mut(session) else {
            return Some((lost.reply)(seen));
        };
        let (name, arguments) = (
            &seen.body["params"]["name"],
            &seen.body["params"]["arguments"],
        );
        let text =
            |text: String| seen.answer(&json!({"content": [{"type": "text", "text": text}]}));
        match (seen.method(), name.as_str()) {
            ("tools/list", _) => Some(seen.answer(&json!({"tools": tools()}))),
            ("tools/call", Some("set")) => {
                *stored = arguments["to"].clone();
                Some(text("stored".to_owned()))
            }
            ("tools/call", Some("get")) => Some(text(stored.to_string())),
            ("tools/call", _) => {
                let call = arguments["call"].as_str().unwrap_or_default();
                *inner.runs.entry(call.to_owned()).or_default() += 1;
                Some(text("done".to_owned()))
            }
            _ => None,
        }
    }
}

fn tools() -> Vec<Value> {
    let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
    ["good", "set", "get"].map(tool).into()
}
