//! A pair of streams that clients share, and all that was ever said on them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;

/// The standard streams of a gateway.
#[derive(Debug)]
pub(crate) struct Pipe {
    input: tokio::sync::Mutex<Option<ChildStdin>>,
    received: Mutex<Heard>,
    news: Notify,
}

/// What was said, by the id that it answers.
#[derive(Debug, Default)]
struct Heard {
    answers: BTreeMap<String, Vec<Value>>,
    is_over: bool,
}

impl Pipe {
    /// Listens from now on.
    pub(crate) fn open(input: ChildStdin, output: ChildStdout) -> Arc<Self> {
        let pipe = Arc::new(Self {
            input: tokio::sync::Mutex::new(Some(input)),
            received: Mutex::default(),
            news: Notify::new(),
        });
        let listening = Arc::clone(&pipe);
        tokio::spawn(async move { listening.listen(output).await });
        pipe
    }

    async fn listen(&self, output: ChildStdout) {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if let (Some(id), None) = (message["id"].as_str(), message.get("method")) {
                let id = id.to_owned();
                self.received().answers.entry(id).or_default().push(message);
                self.news.notify_waiters();
            }
        }
        self.received().is_over = true;
        self.news.notify_waiters();
    }

    /// Sends a request and waits for its answers.
    pub(super) async fn answers_to(&self, id: &str, message: &Value) -> Result<Vec<Value>, String> {
        self.tell(message).await?;
        loop {
            // Listens before it looks, so that nothing is missed in between.
            let news = self.news.notified();
            {
                let received = self.received();
                if let Some(answers) = received.answers.get(id) {
                    return Ok(answers.clone());
                }
                if received.is_over {
                    return Err("the streams have ended".to_owned());
                }
            }
            news.await;
        }
    }

    pub(super) async fn tell(&self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let mut input = self.input.lock().await;
        let input = input.as_mut().ok_or("the input is closed")?;
        input
            .write_all(line.as_bytes())
            .await
            .map_err(|error| error.to_string())
    }

    /// Closes the client's side.
    pub(crate) async fn close(&self) {
        self.input.lock().await.take();
    }

    /// The ids that were answered more than once so far.
    pub(crate) fn answered_again(&self) -> Vec<String> {
        let received = self.received();
        let again = received
            .answers
            .iter()
            .filter(|(_, answers)| answers.len() > 1);
        again.map(|(id, _)| id.clone()).collect()
    }

    fn received(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
