//! Clients of the gateway, as many at once as a case needs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Clients at one address.
#[derive(Debug)]
pub(super) struct Client {
    address: String,
    /// The gateway's process.
    pub(super) process: u32,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    head: String,
    pub(super) body: String,
}

impl Client {
    pub(super) fn new(address: &str, process: u32) -> Self {
        Self {
            address: address.to_owned(),
            process,
        }
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        let limit = Some(LONG);
        let set = stream.set_read_timeout(limit);
        set.and_then(|()| stream.set_write_timeout(limit))
            .map_err(|error| error.to_string())?;
        Ok(stream)
    }

    /// What a message is answered, on a connection of its own.
    pub(super) fn post(&self, headers: &str, body: &str) -> Result<Answer, String> {
        let mut stream = self.connect()?;
        // Who is refused early reads the answer all the same.
        let _ = stream.write_all(head(headers, body.len()).as_bytes());
        let _ = stream.write_all(body.as_bytes());
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.split_once("\r\n\r\n") {
            Some((head, body)) => Ok(Answer {
                status: head.split(' ').nth(1).unwrap_or_default().to_owned(),
                head: head.to_owned(),
                body: body.to_owned(),
            }),
            // The rest of a body that is not read has the connection reset.
            None => Ok(Answer {
                status: "closed".to_owned(),
                head: String::new(),
                body: read
                    .err()
                    .map_or_else(String::new, |error| error.to_string()),
            }),
        }
    }

    /// A request of 2026-07-28.
    pub(super) fn modern(
        &self,
        features: &str,
        method: &str,
        params: &Value,
    ) -> Result<Answer, String> {
        self.modern_text(features, method, &params.to_string())
    }

    /// The same with the params as text: an object that is not empty.
    pub(super) fn modern_text(
        &self,
        features: &str,
        method: &str,
        params: &str,
    ) -> Result<Answer, String> {
        let capabilities = match features {
            "" => json!({}),
            tag => {
                json!({"extensions": {"io.modelcontextprotocol/content-negotiation": {"features": [tag]}}})
            }
        };
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let open = params.strip_suffix('}').unwrap_or(params);
        let comma = if open == "{" { "" } else { "," };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{open}{comma}"_meta":{meta}}}}}"#
        );
        let name = params
            .split_once(r#""name":""#)
            .and_then(|(_, remaining)| remaining.split_once('"'));
        let name = name.map_or(String::new(), |(name, _)| format!("Mcp-Name: {name}\r\n"));
        let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
        self.post(&headers, &body)
    }

    /// Lists the tools.
    pub(super) fn list(&self) -> Result<Answer, String> {
        self.modern("", "tools/list", &json!({}))
    }

    /// The header of a new session.
    pub(super) fn session(&self, capabilities: &Value) -> Result<String, String> {
        let answer = self.post("", &initialize(&capabilities.to_string()))?;
        let id = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.ok_or_else(|| format!("no session: {answer:?}"))?;
        Ok(format!("Mcp-Session-Id: {id}\r\n"))
    }

    /// Connections with all of a body but its last byte, held until as much of it was sent as is taken.
    pub(super) fn unfinished(&self, connections: usize, bytes: usize) -> Result<String, String> {
        let body = vec![b' '; bytes - 1];
        let streams = at_once(connections, |_| {
            let mut stream = self.connect()?;
            let _ = stream.write_all(head("", bytes).as_bytes());
            let is_taken = stream.write_all(&body).is_ok();
            Ok((stream, is_taken))
        })?;
        thread::sleep(Duration::from_millis(500));
        let refused = streams.into_iter().filter_map(|(mut stream, is_taken)| {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
            let mut start = [0; 16];
            let read = stream.read(&mut start);
            let is_answered = read.is_ok_and(|read| read > 0);
            (is_answered || !is_taken).then_some(())
        });
        Ok(format!("{} of {connections} refused", refused.count()))
    }
}

/// `initialize` of a client with these capabilities, JSON text.
pub(super) fn initialize(capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","clientInfo":{{"name":"a","version":"1"}},"capabilities":{capabilities}}}}}"#
    )
}

/// What each of so many does at the same time.
pub(super) fn at_once<T: Send>(
    count: usize,
    each: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = (0..count).map(|at| scope.spawn(move || each(at))).collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a client panicked".to_owned()))
        });
        ended.collect()
    })
}

impl Answer {
    /// Status and code of an error, or the beginning of what is answered.
    pub(super) fn in_short(&self) -> String {
        let error = self.body.split_once(r#""error":{"code":"#);
        match error.and_then(|(_, remaining)| remaining.split_once(',')) {
            Some((code, _)) => format!("{} `{code}`", self.status),
            None if self.body.contains(r#""isError":true"#) => format!("{} `isError`", self.status),
            None => self.status.clone(),
        }
    }
}

fn head(headers: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n"
    )
}

/// More than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
