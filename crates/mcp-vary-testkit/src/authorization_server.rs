//! An authorization server for tests: its metadata, its keys, and the tokens that it signs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::raw_request::{RawRequest, last_response};

/// An authorization server on a free port, which signs with Ed25519.
#[derive(Debug)]
pub struct AuthorizationServer {
    address: SocketAddr,
    key: Arc<Mutex<u8>>,
    key_set_requests: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    responses: Responses,
    serving: Option<JoinHandle<()>>,
}

/// By path: the status line after the version, with further headers, and the body.
type Responses = Arc<Mutex<BTreeMap<String, (String, String)>>>;

impl AuthorizationServer {
    /// Starts the server.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Self {
            address,
            key: Arc::new(Mutex::new(1)),
            key_set_requests: Arc::default(),
            requests: Arc::default(),
            responses: Arc::default(),
            serving: None,
        };
        server.serve(listener);
        server
    }

    /// Its identifier.
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often its keys were asked for.
    pub fn key_set_requests(&self) -> usize {
        self.key_set_requests.load(Ordering::Relaxed)
    }

    /// How often it was asked for anything.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Answers requests for `path` with this status, after which further headers may follow, and this body from now on.
    pub fn respond(&self, path: &str, status: &str, body: &str) {
        let response = (status.to_owned(), body.to_owned());
        let mut responses = self.responses.lock().unwrap();
        responses.insert(path.to_owned(), response);
    }

    /// Signs with a new key from now on; the old one is no longer published.
    pub fn rotate(&self) {
        *self.key.lock().unwrap() += 1;
    }

    /// Dies: connections are refused from now on.
    pub async fn die(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
    }

    /// Serves again at its address.
    pub async fn restart(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    /// A token with these `claims` and the server's `iss`.
    pub fn sign(&self, claims: Value) -> String {
        let number = *self.key.lock().unwrap();
        self.sign_with(number, &key_id(number), claims)
    }

    /// A token that names the key `id`, which the server does not have.
    pub fn sign_as(&self, id: &str, claims: Value) -> String {
        self.sign_with(99, id, claims)
    }

    fn sign_with(&self, number: u8, id: &str, mut claims: Value) -> String {
        claims["iss"] = self.issuer().into();
        let header = json!({"typ": "at+jwt", "alg": "EdDSA", "kid": id});
        let message = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = message.join(".");
        let signature = key_pair(number).sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn serve(&mut self, listener: TcpListener) {
        let (issuer, key) = (self.issuer(), Arc::clone(&self.key));
        let key_set_requests = Arc::clone(&self.key_set_requests);
        let (requests, responses) = (Arc::clone(&self.requests), Arc::clone(&self.responses));
        self.serving = Some(tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let Some(request) = RawRequest::read(&mut socket).await else {
                    continue;
                };
                let path = request.target();
                requests.fetch_add(1, Ordering::Relaxed);
                let ok = |body: Value| ("200 OK".to_owned(), body.to_string());
                let chosen = responses.lock().unwrap().get(path).cloned();
                let (status, body) = match (chosen, path) {
                    (Some(chosen), _) => chosen,
                    (None, "/.well-known/oauth-authorization-server") => {
                        ok(json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}))
                    }
                    (None, "/keys") => {
                        key_set_requests.fetch_add(1, Ordering::Relaxed);
                        ok(json!({"keys": [public_key(*key.lock().unwrap())]}))
                    }
                    _ => ("404 Not Found".to_owned(), String::new()),
                };
                let answer = last_response(&status, &body);
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        }));
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }
}

fn key_pair(number: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap()
}

fn key_id(number: u8) -> String {
    format!("key-{number}")
}

fn public_key(number: u8) -> Value {
    let x = URL_SAFE_NO_PAD.encode(key_pair(number).public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": key_id(number), "x": x})
}
