//! How the scripted client reaches its server: over HTTP, or over the standard streams of a command.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Wire {
    server: Server,
    last_id: u64,
    responses: Receiver<Value>,
    notifications: Receiver<Value>,
    /// What the streams of events write to.
    sink: Sender<Value>,
}

#[derive(Debug)]
enum Server {
    /// `host:port`.
    Http(String),
    Command(Child),
}

impl Wire {
    pub(crate) fn connect(server: &[String]) -> Self {
        let (response, responses) = channel();
        let (sink, notifications) = channel();
        let server = match server {
            [url] => {
                let address = url.strip_prefix("http://").unwrap();
                Server::Http(address.strip_suffix("/mcp").unwrap().to_owned())
            }
            terms => {
                let mut command = Command::new(&terms[0]);
                command.args(&terms[1..]);
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut child = command.spawn().unwrap();
                let output = BufReader::new(child.stdout.take().unwrap());
                let sink = sink.clone();
                thread::spawn(move || {
                    for line in output.lines() {
                        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
                        // Nobody waits for it when the client ends.
                        _ = match message.get("method") {
                            Some(_) => sink.send(message),
                            None => response.send(message),
                        };
                    }
                });
                Server::Command(child)
            }
        };
        Self {
            server,
            last_id: 0,
            responses,
            notifications,
            sink,
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        if let Server::Http(address) = &self.server {
            let mut body = String::new();
            let mut stream = send(address, "POST", &request.to_string());
            stream.read_to_string(&mut body).unwrap();
            let (_, body) = body.split_once("\r\n\r\n").unwrap();
            return serde_json::from_str(body).unwrap_or(json!({"error": {"message": body}}));
        }
        self.notify(&request);
        self.responses.recv().unwrap()
    }

    pub(crate) fn notify(&mut self, message: &Value) {
        match &mut self.server {
            Server::Http(address) => {
                let mut stream = send(address, "POST", &message.to_string());
                stream.read_to_end(&mut Vec::new()).unwrap();
            }
            Server::Command(child) => {
                let input = child.stdin.as_mut().unwrap();
                writeln!(input, "{message}").unwrap();
            }
        }
    }

    /// Sends a request that a stream of events answers.
    pub(crate) fn listen(&mut self, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": "listen", "method": method, "params": params});
        match &self.server {
            Server::Http(address) => self.follow(send(address, "POST", &request.to_string())),
            Server::Command(_) => self.notify(&request),
        }
    }

    /// Opens the stream of a session. A command needs none.
    pub(crate) fn open_session_stream(&self) {
        if let Server::Http(address) = &self.server {
            self.follow(send(address, "GET", ""));
        }
    }

    fn follow(&self, stream: TcpStream) {
        let sink = self.sink.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(data) = line.strip_prefix("data: ") {
                    _ = sink.send(serde_json::from_str(data).unwrap());
                }
            }
        });
    }

    /// The next notification, if one comes in time.
    pub(crate) fn notification(&self, limit: Duration) -> Option<Value> {
        self.notifications.recv_timeout(limit).ok()
    }
}

fn send(address: &str, method: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}
