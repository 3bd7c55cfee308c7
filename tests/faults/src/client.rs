//! Clients of both eras, and what they see.

mod http;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::message::{modern, notification, request};
use serde_json::{Value, json};

pub(crate) use self::stdio::Pipe;
use crate::process::LONG;
use crate::script::Era;

/// A client of one era on one transport.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) era: Era,
    link: Link,
    next: AtomicU64,
}

#[derive(Debug)]
enum Link {
    /// A connection for each request.
    Http {
        url: String,
        session: Option<String>,
    },
    /// One pair of streams, which clients share.
    Stdio(Arc<Pipe>),
}

/// What came back for one request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) said: Said,
    begun: Instant,
    pub(crate) ended: Instant,
}

impl Seen {
    /// How long it took, counted from `since` or from the request, what came later.
    pub(crate) fn after(&self, since: Instant) -> Duration {
        self.ended - self.begun.max(since).min(self.ended)
    }
}

/// An answer, or how it failed to come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Said {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// No answer; why.
    Nothing(String),
    /// Several answers, which must never be.
    Several(usize),
}

/// What a request was answered with.
type Answers = Result<Vec<Value>, String>;

impl Client {
    /// A client over HTTP that has introduced itself.
    ///
    /// # Errors
    ///
    /// What it was told instead of a welcome.
    pub(crate) async fn over_http(era: Era, url: &str) -> Result<Self, String> {
        let mut client = Self::new(
            era,
            Link::Http {
                url: url.to_owned(),
                session: None,
            },
        );
        if era == Era::Legacy {
            let body = initialize(&client.id());
            let reply = http::send(url, HttpRequest::new(body.to_string())).await?;
            if reply.session.is_none() {
                return Err(format!("no session: {:?}", reply.messages));
            }
            client.link = Link::Http {
                url: url.to_owned(),
                session: reply.session,
            };
        }
        Ok(client)
    }

    /// A client on streams that has introduced itself.
    ///
    /// # Errors
    ///
    /// What it was told instead of a welcome.
    pub(crate) async fn on_stdio(era: Era, pipe: &Arc<Pipe>) -> Result<Self, String> {
        let client = Self::new(era, Link::Stdio(Arc::clone(pipe)));
        if era == Era::Legacy {
            let id = client.id();
            let answers = pipe.answers_to(&id, &initialize(&id)).await?;
            if !answers.iter().all(|answer| answer["result"].is_object()) {
                return Err(format!("no welcome: {answers:?}"));
            }
            let sent = notification("notifications/initialized", json!({}));
            pipe.tell(&sent).await?;
        }
        Ok(client)
    }

    fn new(era: Era, link: Link) -> Self {
        Self {
            era,
            link,
            next: AtomicU64::new(1),
        }
    }

    /// An id that no other request on the same streams has.
    fn id(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.era.as_str())
    }

    /// Sends a request and waits for all that comes back.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Seen {
        let begun = Instant::now();
        let answers = tokio::time::timeout(LONG, self.answers(method, params)).await;
        let reported = match answers {
            Ok(Ok(answers)) if answers.len() == 1 => said(&answers[0]),
            Ok(Ok(answers)) => Said::Several(answers.len()),
            Ok(Err(why)) => Said::Nothing(why),
            Err(_) => Said::Nothing(format!("no answer in {} s", LONG.as_secs())),
        };
        Seen {
            said: reported,
            begun,
            ended: Instant::now(),
        }
    }

    /// Calls a tool; the server notes `call`.
    pub(crate) async fn call(&self, tool: &str, call: &str, mut arguments: Value) -> Seen {
        arguments["call"] = json!(call);
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }

    async fn answers(&self, method: &str, params: Value) -> Answers {
        let id = self.id();
        let message = match self.era {
            Era::Legacy => request(json!(id), method, params),
            Era::Modern => modern(json!(id), method, params, &json!({})),
        };
        match &self.link {
            Link::Stdio(pipe) => pipe.answers_to(&id, &message).await,
            Link::Http { url, session } => {
                let post = match session {
                    Some(session) => HttpRequest::of(session, message.to_string())
                        .with("MCP-Protocol-Version", "2025-11-25"),
                    None => HttpRequest::modern(&message),
                };
                let reply = http::send(url, post).await?;
                let mine = |message: &Value| message["id"] == id.as_str();
                let (answers, others): (Vec<_>, Vec<_>) =
                    reply.messages.into_iter().partition(mine);
                if answers.is_empty() {
                    Err(format!("HTTP {}, {others:?}", reply.status))
                } else {
                    Ok(answers)
                }
            }
        }
    }
}

impl Said {
    /// The one text of a result.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Result(result) => result["content"][0]["text"].as_str(),
            _ => None,
        }
    }
}

impl Said {
    /// Whether it is a list with the tool `name`.
    pub(crate) fn lists(&self, name: &str) -> bool {
        match self {
            Self::Result(result) => {
                let tools = result["tools"].as_array();
                tools.into_iter().flatten().any(|tool| tool["name"] == name)
            }
            _ => false,
        }
    }
}

/// As the table shows it: results short, errors verbatim.
impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self, self.text()) {
            (_, Some(_)) => f.write_str("the result"),
            (Self::Result(result), None) => {
                let names = result["tools"].as_array().into_iter().flatten();
                let names: Vec<&str> = names.filter_map(|tool| tool["name"].as_str()).collect();
                write!(f, "tools: {}", names.join(", "))
            }
            (Self::Error { code, message }, _) => write!(f, "{code} {message}"),
            (Self::Nothing(why), _) => write!(f, "no answer: {why}"),
            (Self::Several(count), _) => write!(f, "{count} answers"),
        }
    }
}

fn said(answer: &Value) -> Said {
    match answer.get("error") {
        None => Said::Result(answer["result"].clone()),
        Some(error) => Said::Error {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
        },
    }
}

fn initialize(id: &str) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "faults", "version": "1.0.0"},
    });
    request(json!(id), "initialize", params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(answer: &Value, expected: &str) {
        assert_eq!(said(answer).to_string(), expected);
    }

    #[test]
    fn results_are_shown_short_and_errors_verbatim() {
        shows(
            &json!({"result": {"content": [{"type": "text", "text": "one: 7"}]}}),
            "the result",
        );
        shows(
            &json!({"result": {"tools": [{"name": "a"}, {"name": "b"}]}}),
            "tools: a, b",
        );
        shows(
            &json!({"error": {"code": -32603, "message": "server `x` is down"}}),
            "-32603 server `x` is down",
        );
    }
}
