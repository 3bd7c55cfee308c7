//! A stand-in for a model behind an OpenAI-compatible endpoint, which answers as a test wants and records what it is
//! sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::raw_request::{RawRequest, last_response};

/// What the endpoint does with a request.
#[derive(Clone, Debug)]
pub enum ModelBehavior {
    /// A chat completion with this content.
    Says(String),
    /// This status line without the version, further headers each with a line end, and this body.
    Responds(String, String),
    /// No answer, and the connection stays open.
    Silent,
    /// A chat completion with this content, a byte in a while.
    Drips(String),
    /// The connection is closed.
    Closes,
}

/// A request as it arrived: the head, in lower case, and the body.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl ModelRequest {
    /// What the model is told: the content of the last message, JSON.
    pub fn question(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let content = messages.last().unwrap()["content"].as_str().unwrap();
        serde_json::from_str(content).unwrap()
    }
}

/// An endpoint on a free port.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    behavior: Arc<Mutex<ModelBehavior>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    serving: JoinHandle<()>,
}

impl ModelServer {
    /// Starts an endpoint that behaves like this.
    pub async fn start(behavior: ModelBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behavior = Arc::new(Mutex::new(behavior));
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let (shared, record) = (Arc::clone(&behavior), Arc::clone(&requests));
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (shared, record) = (Arc::clone(&shared), Arc::clone(&record));
                tokio::spawn(async move {
                    let _ = serve(socket, &shared, &record).await;
                });
            }
        });
        Self {
            address,
            behavior,
            requests,
            serving,
        }
    }

    /// The address of the endpoint, as `https://host/v1` is one.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Behaves like this from now on.
    pub fn behave(&self, behavior: ModelBehavior) {
        *self.behavior.lock().unwrap() = behavior;
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A chat completion with this content.
pub fn completion(content: &str) -> String {
    let message = json!({"role": "assistant", "content": content});
    json!({"choices": [{"index": 0, "message": message}]}).to_string()
}

async fn serve(
    mut socket: TcpStream,
    behavior: &Mutex<ModelBehavior>,
    requests: &Mutex<Vec<ModelRequest>>,
) -> std::io::Result<()> {
    let Some(RawRequest { head, body }) = RawRequest::read(&mut socket).await else {
        return Ok(());
    };
    let head = head.to_lowercase();
    requests.lock().unwrap().push(ModelRequest { head, body });
    let behavior = behavior.lock().unwrap().clone();
    match behavior {
        ModelBehavior::Says(content) => {
            let response = last_response("200 OK", &completion(&content));
            socket.write_all(response.as_bytes()).await
        }
        ModelBehavior::Responds(status, body) => {
            let response = last_response(status.trim_end(), &body);
            socket.write_all(response.as_bytes()).await
        }
        ModelBehavior::Silent => {
            // Until the client gives up.
            socket.read(&mut [0]).await.map(drop)
        }
        ModelBehavior::Drips(content) => {
            for byte in last_response("200 OK", &completion(&content)).bytes() {
                socket.write_all(&[byte]).await?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        }
        ModelBehavior::Closes => Ok(()),
    }
}
