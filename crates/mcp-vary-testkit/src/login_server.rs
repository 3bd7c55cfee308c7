//! A server that needs a login and its authorization server, both scripted, on one free port.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::raw_request::{RawRequest, last_response};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Method and target.
    pub line: String,
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// What is answered to a request for a path.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, after which headers may follow.
    pub status: String,
    /// The body.
    pub body: String,
}

impl Response {
    /// A response with a JSON body.
    pub fn new(status: &str, body: &Value) -> Self {
        Self {
            status: status.to_owned(),
            body: body.to_string(),
        }
    }

    /// A response with this body.
    pub fn text(status: &str, body: String) -> Self {
        let status = status.to_owned();
        Self { status, body }
    }
}

/// A server on a free port that refuses requests without a token, and the authorization server that issues them.
#[derive(Debug)]
pub struct LoginServer {
    /// Where both listen.
    pub address: SocketAddr,
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
    /// The scope that calls need, and the number of tokens that do not have it.
    missing_scope: Option<(String, usize)>,
    requests: Vec<RecordedRequest>,
    is_withheld: bool,
    keeps_access_tokens: bool,
}

impl LoginServer {
    /// A server and its authorization server as the specification wants them.
    pub async fn start() -> Self {
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

    /// The URL of `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers requests for `path` with `response` from now on.
    pub fn respond(&self, path: &str, response: &Response) {
        let mut script = self.script.lock().unwrap();
        script.responses.insert(path.to_owned(), response.clone());
    }

    /// The server refuses with a challenge that has these parameters.
    pub fn challenge(&self, parameters: &str) {
        let status = format!("401 Unauthorized\r\nwww-authenticate: Bearer {parameters}");
        self.respond(
            "/mcp",
            &Response::new(&status, &json!({"TOPSECRET": "of the server"})),
        );
    }

    /// Access tokens cannot be revoked, as where they are JWTs.
    pub fn keep_access_tokens(&self) {
        self.script.lock().unwrap().keeps_access_tokens = true;
    }

    /// Calls need a token that is issued from now on, with this scope.
    pub fn require_scope(&self, scope: &str) {
        let mut script = self.script.lock().unwrap();
        script.missing_scope = Some((scope.to_owned(), script.issued));
    }

    /// The metadata of the resource, with `changes`.
    pub fn resource(&self, changes: Value) {
        let document =
            json!({"resource": self.url("/mcp"), "authorization_servers": [self.url("")]});
        let response = Response::new("200 OK", &changed(document, changes));
        self.respond("/.well-known/oauth-protected-resource/mcp", &response);
    }

    /// The metadata of the authorization server, with `changes`.
    pub fn metadata(&self, changes: Value) {
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
    pub fn next_token(&self, status: &str, body: &Value) {
        let response = Response::new(status, body);
        self.script.lock().unwrap().tokens.push_back(response);
    }

    /// Lets requests of the token endpoint wait until `release`.
    pub fn withhold(&self) {
        self.script.lock().unwrap().is_withheld = true;
    }

    /// Answers what was withheld, and all that follows.
    pub fn release(&self) {
        self.script.lock().unwrap().is_withheld = false;
        self.release.notify_waiters();
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.script.lock().unwrap().requests.clear();
    }

    /// The method and target of each request so far.
    pub fn lines(&self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        script
            .requests
            .iter()
            .map(|request| request.line.clone())
            .collect()
    }

    /// The requests whose method and target start with `line`.
    pub fn requests(&self, line: &str) -> Vec<RecordedRequest> {
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
    let Some(raw) = RawRequest::read(&mut socket).await else {
        return;
    };
    let path = raw.target().split('?').next().unwrap().to_owned();
    let line = raw.head.lines().next().unwrap();
    let request = RecordedRequest {
        line: line.trim_end_matches(" HTTP/1.1").to_owned(),
        head: raw.head,
        body: raw.body,
    };
    script.lock().unwrap().requests.push(request.clone());
    loop {
        let notified = release.notified();
        if path != "/token" || !script.lock().unwrap().is_withheld {
            break;
        }
        notified.await;
    }
    let response = response_to(&request, &path, &script);
    let answer = last_response(&response.status, &response.body);
    let _ = socket.write_all(answer.as_bytes()).await;
}

fn response_to(request: &RecordedRequest, path: &str, script: &Mutex<Script>) -> Response {
    if path == "/authorize" {
        let redirect = parameter(&request.line, "redirect_uri");
        let redirect = redirect.replace("%3A", ":").replace("%2F", "/");
        let state = parameter(&request.line, "state");
        let status = format!("302 Found\r\nlocation: {redirect}?code=c&state={state}");
        return Response::new(&status, &json!({}));
    }
    let mut script = script.lock().unwrap();
    let is_kept = path == "/revoke" && parameter(&request.body, "token").contains("-access-");
    if is_kept && script.keeps_access_tokens {
        let error = json!({"error": "unsupported_token_type"});
        return Response::new("400 Bad Request", &error);
    }
    let is_authorized = request.head.contains(": Bearer TOPSECRET-access-");
    if path == "/mcp" && is_authorized {
        let missing = script.insufficient_scope(request);
        missing.unwrap_or_else(|| message(&request.body))
    } else {
        script.response(path)
    }
}

/// The answer of a server of 2025-11-25 that has one tool.
fn message(body: &str) -> Response {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "behind a login", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "somebody with a token"}]}),
        "ping" => json!({}),
        _ if message["id"].is_null() => return Response::new("202 Accepted", &json!({})),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Response::new("200 OK", &answer);
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Response::new("200 OK", &answer)
}

impl Script {
    /// The refusal of a call whose token lacks a scope.
    fn insufficient_scope(&self, request: &RecordedRequest) -> Option<Response> {
        let (scope, last) = self.missing_scope.as_ref()?;
        let (_, token) = request.head.split_once("TOPSECRET-access-")?;
        let number: usize = token.lines().next()?.parse().ok()?;
        let is_missing = number <= *last && request.body.contains("tools/call");
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        let status = format!("403 Forbidden\r\nwww-authenticate: {challenge}");
        is_missing.then(|| Response::new(&status, &json!({"TOPSECRET": "of the server"})))
    }

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

/// The value of a parameter as it was sent.
pub fn parameter(form: &str, name: &str) -> String {
    let (_, query) = form.split_once('?').unwrap_or(("", form));
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}
