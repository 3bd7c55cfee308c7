//! A model behind an endpoint for chat completions; the tests are the endpoint.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcp_vary_rmcp::client::{ChatCompletions, Model as _, TaskContext};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::scripted::{Connected, Scripted, WAYS};

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
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, received) = (answer.into(), Arc::clone(&asked));
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service =
                    service_fn(|request| hear(request, &received, status, answer.clone()));
                let io = TokioIo::new(stream);
                let _ = http1::Builder::new()
                    .keep_alive(false)
                    .serve_connection(io, service)
                    .await;
            }
        }));
        let _stop = stop.drop_guard();
        Self { base, asked, _stop }
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
    let key = request.headers().get("authorization");
    let key = key.map_or_else(String::new, |key| key.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap();
    received.lock().unwrap().push((path, key, body));
    Ok(Response::builder()
        .status(status)
        .body(Full::new(answer))
        .unwrap())
}

/// SV-19: the request follows the endpoint's protocol, and its answer chooses.
#[tokio::test]
async fn a_model_behind_an_endpoint_chooses() {
    let endpoint = Endpoint::saying(r#"{"selected": "compact", "reasoning": "short"}"#).await;
    let model = endpoint.model().with_key("secret").unwrap();
    let connected = Connected::new(WAYS[0], Scripted::with_variants()).await;
    let context = TaskContext::new().with_phase("planning");
    let view = connected.client.choose_with(&model, &context).await;
    assert_eq!(
        view.choice().to_string(),
        "`compact`: chosen by the model: short"
    );

    let asked = endpoint.asked.lock().unwrap().clone();
    let [(path, key, body)] = &asked[..] else {
        panic!("asked {} times", asked.len())
    };
    assert_eq!(
        (path.as_str(), key.as_str()),
        ("/v1/chat/completions", "Bearer secret")
    );
    assert_eq!(body["model"], "small");
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!(body["messages"][0]["role"], "user");
    assert!(
        body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains(r#""phase":"planning""#)
    );
}

/// Features that a model server lacks can be left out.
#[tokio::test]
async fn json_is_not_asked_for_where_it_is_refused() {
    let endpoint = Endpoint::saying("{}").await;
    endpoint
        .model()
        .without_json_mode()
        .complete("hello")
        .await
        .unwrap();
    let asked = endpoint.asked.lock().unwrap();
    let (_, key, body) = &asked[0];
    assert!(body.get("response_format").is_none() && key.is_empty());
}

/// SV-19: any failure of the endpoint is an error with a reason, and the rules choose.
#[tokio::test]
async fn an_endpoint_that_fails_says_why() {
    let unreadable = "the model's server did not answer with a chat completion";
    for (status, answer, expected) in [
        (
            429,
            "slow\ndown".to_owned(),
            r"the model's server answered 429 Too Many Requests: slow\ndown",
        ),
        (
            302,
            String::new(),
            "the model's server answered 302 Found: ",
        ),
        (200, "<html>".to_owned(), unreadable),
        (200, r#"{"choices": []}"#.to_owned(), unreadable),
        (
            200,
            r#"{"choices": [{"message": {"content": null}}]}"#.to_owned(),
            unreadable,
        ),
        (200, "x".repeat(1024 * 1024 + 1), unreadable),
    ] {
        let endpoint = Endpoint::answering(status, answer).await;
        let error = endpoint.model().complete("hello").await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let gone = Endpoint::saying("").await.base;
    let model = ChatCompletions::new(&gone, "small").unwrap();
    let connected = Connected::new(WAYS[0], Scripted::with_variants()).await;
    let view = connected
        .client
        .choose_with(&model, &TaskContext::new())
        .await;
    let expected = "`standard`: the server's default; the model gave no usable choice: it failed: the model cannot be reached: ";
    assert!(
        view.choice().to_string().starts_with(expected),
        "{}",
        view.choice()
    );
}

/// An invalid URL, and a key that must not be sent, are rejected at once.
#[test]
fn mistakes_are_named_when_they_are_made() {
    let error = |base: &str| ChatCompletions::new(base, "small").unwrap_err().to_string();
    for base in [
        "",
        "models.example.com",
        "ftp://models.example.com",
        "http://",
        "http://h/?a=b",
    ] {
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
    assert_eq!(
        odd.to_string(),
        "the key contains characters that are not allowed in a header"
    );
}
