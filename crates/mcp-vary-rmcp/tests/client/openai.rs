//! A model behind an endpoint for chat completions; the tests are the endpoint.

use std::convert::Infallible;
use std::sync::Arc;

use crate::prelude::*;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcp_vary_rmcp::client::{ChatCompletions, Model as _};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An endpoint with a fixed answer that records each request: path, authorization and body.
struct Endpoint {
    base: String,
    asked: Arc<Mutex<Vec<(String, String, Value)>>>,
    _stop: DropGuard,
}

impl Endpoint {
    async fn answering(status: u16, answer: impl Into<Bytes>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requested = Arc::new(Mutex::new(Vec::new()));
        let (answer, received) = (answer.into(), Arc::clone(&requested));
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let receive = |request| hear(request, &received, status, answer.clone());
                let (io, service) = (TokioIo::new(stream), service_fn(receive));
                let mut builder = http1::Builder::new();
                let builder = builder.keep_alive(false);
                let _ = builder.serve_connection(io, service).await;
            }
        }));
        let _stop = stop.drop_guard();
        Self {
            base,
            asked: requested,
            _stop,
        }
    }

    /// A chat completion with `content`.
    async fn saying(content: &str) -> Self {
        let message = json!({"role": "assistant", "content": content});
        Self::answering(200, json!({"choices": [{"message": message}]}).to_string()).await
    }

    fn model(&self) -> ChatCompletions {
        ChatCompletions::new(&self.base, "small").unwrap()
    }
}

async fn hear(
    request: Request<Incoming>,
    received: &Mutex<Vec<(String, String, Value)>>,
    status: u16,
    answer: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let name = concat!("vary/", env!("CARGO_PKG_VERSION"));
    assert_eq!(request.headers()["user-agent"], name);
    let key = request.headers().get("authorization");
    let key = key.map_or_else(String::new, |key| key.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap();
    received.lock().unwrap().push((path, key, body));
    let response = Response::builder().status(status);
    Ok(response.body(Full::new(answer)).unwrap())
}

/// SV-19: the request follows the endpoint's protocol, and its answer chooses.
#[tokio::test]
async fn a_model_behind_an_endpoint_chooses() {
    let endpoint = Endpoint::saying(r#"{"selected": "compact", "reasoning": "short"}"#).await;
    let model = endpoint.model().with_key("secret").unwrap();
    let connected = Connected::new(WAYS[0], Scripted::with_variants()).await;
    let context = TaskContext::new().with_phase("planning");
    let view = connected.client.choose_with(&model, &context).await;
    let expected = "`compact`: chosen by the model: short";
    assert_eq!(view.choice().to_string(), expected);

    let asked = endpoint.asked.lock().unwrap().clone();
    let [(path, key, body)] = &asked[..] else {
        panic!("asked {} times", asked.len())
    };
    let expected = ("/v1/chat/completions", "Bearer secret");
    assert_eq!((path.as_str(), key.as_str()), expected);
    assert_eq!(body["model"], "small");
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!(body["messages"][0]["role"], "user");
    let content = body["messages"][0]["content"].as_str();
    assert!(content.unwrap().contains(r#""phase":"planning""#));
}

/// Features that a model server lacks can be left out.
#[tokio::test]
async fn json_is_not_asked_for_where_it_is_refused() {
    let endpoint = Endpoint::saying("{}").await;
    let model = endpoint.model().without_json_mode();
    model.complete("hello").await.unwrap();
    let asked = endpoint.asked.lock().unwrap();
    let (_, key, body) = &asked[0];
    assert!(body.get("response_format").is_none() && key.is_empty());
}

/// SV-19: any failure of the endpoint is an error with a reason, and the rules choose.
#[tokio::test]
async fn an_endpoint_that_fails_says_why() {
    let unreadable = "did not answer with a chat completion";
    let empty = r#"{"choices": [{"message": {"content": null}}]}"#;
    let long = "x".repeat(1024 * 1024 + 1);
    for (status, answer, expected) in [
        (
            429,
            "slow\ndown",
            r"answered 429 Too Many Requests: slow\ndown",
        ),
        (302, "", "answered 302 Found: "),
        (200, "<html>", unreadable),
        (200, r#"{"choices": []}"#, unreadable),
        (200, empty, unreadable),
        (200, &long, unreadable),
    ] {
        let endpoint = Endpoint::answering(status, answer.to_owned()).await;
        let error = endpoint.model().complete("hello").await.unwrap_err();
        let expected = format!("the model's server {expected}");
        assert_eq!(error.to_string(), expected);
    }
    let gone = Endpoint::saying("").await.base;
    let model = ChatCompletions::new(&gone, "small").unwrap();
    let connected = Connected::new(WAYS[0], Scripted::with_variants()).await;
    let context = TaskContext::new();
    let view = connected.client.choose_with(&model, &context).await;
    let expected = "`standard`: the server's default; the model gave no usable choice: it failed: the model cannot be reached: ";
    let choice = view.choice().to_string();
    assert!(choice.starts_with(expected), "{choice}");
}

/// An invalid URL, and a key that must not be sent, are rejected at once.
#[test]
fn mistakes_are_named_when_they_are_made() {
    let error = |base: &str| ChatCompletions::new(base, "small").unwrap_err().to_string();
    let ftp = "ftp://models.example.com";
    for base in ["", "models.example.com", ftp, "http://", "http://h/?a=b"] {
        let expected = format!("`{base}` is not an HTTP URL; write it as `https://host/v1`");
        assert_eq!(error(base), expected);
    }
    let key = |base: &str, key| ChatCompletions::new(base, "small").unwrap().with_key(key);
    assert!(key("http://localhost:1/v1", "secret").is_ok());
    let plain = key("http://models.example.com/v1", "secret").unwrap_err();
    assert_eq!(
        plain.to_string(),
        "a key is sent only over `https` or to this machine; `http://models.example.com/v1/chat/completions` is neither",
    );
    let odd = key("http://127.0.0.1:1/v1", "a\nb").unwrap_err();
    let expected = "the key contains characters that are not allowed in a header";
    assert_eq!(odd.to_string(), expected);
}
