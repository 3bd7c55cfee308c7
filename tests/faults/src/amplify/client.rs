//! Clients of the gateway, as many at once as a case needs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::message::{features, modern};
use serde_json::{Value, json};

/// Clients at one address.
#[derive(Debug)]
pub(super) struct Client {
    address: String,
    /// The address of the gateway's page, if it has one.
    page: Option<String>,
    /// The address of another replica, if there is one.
    pub(super) replica: Option<String>,
    /// The gateway's process.
    pub(super) process: u32,
}

/// A request whose answer is not read yet. Dropping it closes its connection.
#[derive(Debug)]
pub(super) struct SentRequest {
    stream: TcpStream,
    /// The beginning of the answer, as far as it was read.
    received: Vec<u8>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    head: String,
    pub(super) body: String,
}

impl Client {
    pub(super) fn new(address: &str, page: Option<String>, process: u32) -> Self {
        Self {
            address: address.to_owned(),
            page,
            replica: None,
            process,
        }
    }

    /// Clients at the address of the page.
    pub(super) fn at_page(&self) -> Result<Self, String> {
        let page = self.page.as_ref().ok_or("the gateway has no page")?;
        Ok(Self::new(page, None, self.process))
    }

    /// Clients at the other replica.
    pub(super) fn at_replica(&self) -> Result<Self, String> {
        let replica = self.replica.as_ref().ok_or("there is one gateway")?;
        Ok(Self::new(replica, None, self.process))
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        let limit = Some(LONG);
        let set = stream.set_read_timeout(limit);
        set.and_then(|()| stream.set_write_timeout(limit))
            .map_err(|error| error.to_string())?;
        Ok(stream)
    }

    /// What a request is answered, on a connection of its own.
    pub(super) fn post(&self, post: HttpRequest) -> Result<Answer, String> {
        Ok(self.send(post)?.answer())
    }

    /// Sends a request on a connection of its own.
    pub(super) fn send(&self, post: HttpRequest) -> Result<SentRequest, String> {
        let mut stream = self.connect()?;
        // Who is refused early reads the answer all the same.
        let _ = stream.write_all(&post.with("Connection", "close").bytes());
        Ok(SentRequest {
            stream,
            received: Vec::new(),
        })
    }

    /// A request of 2026-07-28, from a client with these feature tags.
    pub(super) fn modern(
        &self,
        tags: &[&str],
        method: &str,
        params: &Value,
    ) -> Result<Answer, String> {
        let message = modern(json!(1), method, params.clone(), &features(tags));
        self.post(HttpRequest::modern(&message))
    }

    /// Lists the tools.
    pub(super) fn list(&self) -> Result<Answer, String> {
        self.modern(&[], "tools/list", &json!({}))
    }

    /// The id of a new session.
    pub(super) fn session(&self, capabilities: &Value) -> Result<String, String> {
        self.open(HttpRequest::initialize(capabilities))
    }

    /// The id of the session that an `initialize` opens.
    pub(super) fn open(&self, initialize: HttpRequest) -> Result<String, String> {
        let answer = self.post(initialize)?;
        let mut lines = answer.head.lines();
        let id = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.map(str::to_owned)
            .ok_or_else(|| format!("no session: {answer:?}"))
    }

    /// Calls of a tool whose answers are not read until all of them have come, or found no room.
    pub(super) fn unread(&self, calls: usize) -> Result<String, String> {
        let params = json!({"name": "text", "arguments": {}});
        let message = modern(json!(1), "tools/call", params, &json!({}));
        let call = HttpRequest::modern(&message).bytes();
        let streams = at_once(calls, |_| {
            let mut stream = self.connect()?;
            let sent = stream.write_all(&call);
            sent.map(|()| stream).map_err(|error| error.to_string())
        })?;
        thread::sleep(UNREAD);
        let listed = self.list()?.status;
        let refused = streams.into_iter().filter_map(|mut stream| {
            let mut start = [0; 1024];
            let read = stream.read(&mut start).ok()?;
            let start = String::from_utf8_lossy(start.get(..read)?).into_owned();
            start.contains("-32603").then_some(())
        });
        let refused = refused.count();
        Ok(format!(
            "{refused} of {calls} `-32603`, a list beside them {listed}"
        ))
    }

    /// Connections with all of a body but its last byte, held until as much of it was sent as is taken.
    pub(super) fn unfinished(&self, connections: usize, bytes: usize) -> Result<String, String> {
        let head = HttpRequest::new("").with("Content-Length", bytes.to_string());
        let (head, body) = (head.head(), vec![b' '; bytes - 1]);
        let streams = at_once(connections, |_| {
            let mut stream = self.connect()?;
            let _ = stream.write_all(&head);
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

impl SentRequest {
    /// The status of the answer, once that has begun. What follows the status stays unread.
    pub(super) fn status(&mut self) -> Result<String, String> {
        let mut line = [0; "HTTP/1.1 200".len()];
        let read = self.stream.read_exact(&mut line);
        read.map_err(|error| error.to_string())?;
        self.received.extend(line);
        Ok(status_of(&String::from_utf8_lossy(&line)))
    }

    /// Reads the answer.
    pub(super) fn answer(mut self) -> Answer {
        let read = self.stream.read_to_end(&mut self.received);
        let text = String::from_utf8_lossy(&self.received).into_owned();
        match text.split_once("\r\n\r\n") {
            Some((head, body)) => Answer {
                status: status_of(head),
                head: head.to_owned(),
                body: body.to_owned(),
            },
            // The rest of a body that is not read has the connection reset.
            None => Answer {
                status: "closed".to_owned(),
                head: String::new(),
                body: read
                    .err()
                    .map_or_else(String::new, |error| error.to_string()),
            },
        }
    }
}

/// The status in the first line of a head.
fn status_of(head: &str) -> String {
    head.split(' ').nth(1).unwrap_or_default().to_owned()
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

/// Longer than an answer waits for room.
const UNREAD: Duration = Duration::from_secs(8);
/// More than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
