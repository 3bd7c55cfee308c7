//! A server that needs a login and its authorization server, both scripted, on one free port; and a person with a browser.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use mcp_vary_login::user_agent::{DeviceCode, UserAgent};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Method and target.
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What is answered to a request for a path.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// The status, after which headers may follow.
    pub(crate) status: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn new(status: &str, body: &Value) -> Self {
        Self {
            status: status.to_owned(),
            body: body.to_string(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    /// Each answer of the token endpoint waits for a permit while it is withheld.
    release: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Script {
    responses: BTreeMap<String, Response>,
    /// Answers of the token endpoint, before those that are made up.
    tokens: VecDeque<Response>,
    issued: usize,
    requests: Vec<Recorded>,
    is_withheld: bool,
}

impl Peer {
    /// A server and its authorization server as the specification wants them.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Self {
            address: listener.local_addr().unwrap(),
            script: Arc::default(),
            release: Arc::default(),
        };
        peer.challenge("");
        peer.resource(json!({}));
        peer.metadata(json!({}));
        peer.respond(
            "/register",
            &Response::new("201 Created", &json!({"client_id": "registered"})),
        );
        peer.respond("/revoke", &Response::new("200 OK", &json!({})));
        let (script, release) = (Arc::clone(&peer.script), Arc::clone(&peer.release));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, Arc::clone(&script), Arc::clone(&release)));
            }
        });
        peer
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn respond(&self, path: &str, response: &Response) {
        let mut script = self.script.lock().unwrap();
        script.responses.insert(path.to_owned(), response.clone());
    }

    /// The server refuses with a challenge that has these parameters.
    pub(crate) fn challenge(&self, parameters: &str) {
        let status = format!("401 Unauthorized\r\nwww-authenticate: Bearer {parameters}");
        self.respond(
            "/mcp",
            &Response::new(&status, &json!({"TOPSECRET": "of the server"})),
        );
    }

    /// The metadata of the resource, with `changes`.
    pub(crate) fn resource(&self, changes: Value) {
        let document =
            json!({"resource": self.url("/mcp"), "authorization_servers": [self.url("")]});
        let response = Response::new("200 OK", &changed(document, changes));
        self.respond("/.well-known/oauth-protected-resource/mcp", &response);
    }

    /// The metadata of the authorization server, with `changes`.
    pub(crate) fn metadata(&self, changes: Value) {
        let document = json!({
            "issuer": self.url(""),
            "authorization_endpoint": self.url("/authorize"),
            "token_endpoint": self.url("/token"),
            "registration_endpoint": self.url("/register"),
            "device_authorization_endpoint": self.url("/device"),
            "revocation_endpoint": self.url("/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        });
        let response = Response::new("200 OK", &changed(document, changes));
        self.respond("/.well-known/oauth-authorization-server", &response);
    }

    /// The next answer of the token endpoint.
    pub(crate) fn next_token(&self, status: &str, body: &Value) {
        let response = Response::new(status, body);
        self.script.lock().unwrap().tokens.push_back(response);
    }

    /// Lets requests of the token endpoint wait until `release`.
    pub(crate) fn withhold(&self) {
        self.script.lock().unwrap().is_withheld = true;
    }

    pub(crate) fn release(&self) {
        self.script.lock().unwrap().is_withheld = false;
        self.release.notify_waiters();
    }

    /// The method and target of each request so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        script
            .requests
            .iter()
            .map(|request| request.line.clone())
            .collect()
    }

    /// The requests for a target that starts with `path`.
    pub(crate) fn requests(&self, line: &str) -> Vec<Recorded> {
        let script = self.script.lock().unwrap();
        let requests = script.requests.iter();
        requests
            .filter(|request| request.line.starts_with(line))
            .cloned()
            .collect()
    }
}

fn changed(mut document: Value, mut changes: Value) -> Value {
    let members = document.as_object_mut().unwrap();
    members.append(changes.as_object_mut().unwrap());
    members.retain(|_, value| !value.is_null());
    document
}

async fn serve(mut socket: TcpStream, script: Arc<Mutex<Script>>, release: Arc<Notify>) {
    let Some(request) = read(&mut socket).await else {
        return;
    };
    let path = request
        .line
        .split(' ')
        .nth(1)
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    script.lock().unwrap().requests.push(request);
    loop {
        let notified = release.notified();
        if path != "/token" || !script.lock().unwrap().is_withheld {
            break;
        }
        notified.await;
    }
    let response = script.lock().unwrap().response(&path);
    let answer = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}",
        response.status,
        response.body.len(),
        response.body
    );
    let _ = socket.write_all(answer.as_bytes()).await;
}

async fn read(socket: &mut TcpStream) -> Option<Recorded> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let lower = head.to_lowercase();
            let length = lower.split("content-length: ").nth(1);
            let length = length.map_or(0, |text| text.lines().next().unwrap().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                let line = head
                    .lines()
                    .next()?
                    .trim_end_matches(" HTTP/1.1")
                    .to_owned();
                return Some(Recorded { line, head, body });
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

impl Script {
    fn response(&mut self, path: &str) -> Response {
        if path == "/token" {
            if let Some(response) = self.tokens.pop_front() {
                return response;
            }
            self.issued += 1;
            let number = self.issued;
            let tokens = json!({
                "access_token": format!("TOPSECRET-access-{number}"),
                "refresh_token": format!("TOPSECRET-refresh-{number}"),
                "token_type": "Bearer",
                "expires_in": 100,
            });
            return Response::new("200 OK", &tokens);
        }
        let missing = || Response::new("404 Not Found", &json!({}));
        self.responses.get(path).cloned().unwrap_or_else(missing)
    }
}

/// A person whose browser is redirected at once.
#[derive(Debug, Default)]
pub(crate) struct Person {
    /// The address that the person opened.
    pub(crate) opened: Mutex<Vec<String>>,
    pub(crate) device_codes: Mutex<Vec<DeviceCode>>,
    /// What is added to the query of the redirect instead of a code.
    pub(crate) answer: Option<String>,
    /// Whether the person pastes the address instead.
    pub(crate) is_pasting: bool,
}

impl UserAgent for Person {
    fn authorize<'a>(
        &'a self,
        url: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>> {
        Box::pin(async move {
            self.opened.lock().unwrap().push(url.to_owned());
            let redirect = parameter(url, "redirect_uri")
                .replace("%3A", ":")
                .replace("%2F", "/");
            let answer = self.answer.as_deref().unwrap_or("code=TOPSECRET-code");
            let target = format!("{redirect}?{answer}&state={}", parameter(url, "state"));
            if self.is_pasting {
                return Ok(target);
            }
            let (_, address) = target.split_once("http://").unwrap();
            let (authority, path) = address.split_once('/').unwrap();
            let mut socket = TcpStream::connect(authority).await.unwrap();
            let request = format!("GET /{path} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
            socket.write_all(request.as_bytes()).await.unwrap();
            std::future::pending().await
        })
    }

    fn show_device_code(&self, code: &DeviceCode) {
        self.device_codes.lock().unwrap().push(code.clone());
    }
}

/// The value of a parameter as it was sent.
pub(crate) fn parameter(form: &str, name: &str) -> String {
    let (_, query) = form.split_once('?').unwrap_or(("", form));
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}
