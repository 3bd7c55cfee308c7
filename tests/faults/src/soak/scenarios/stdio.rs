//! Clients that start `vary` themselves, over stdio.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::super::client_run::ClientRun;
use super::super::http::{initialize, modern_message, notification, request};
use super::{Scenario, ScenarioResult};
use crate::process;

scenarios! {
    "stdio: a call, then the input ends" one in 401 => |run| calls(run, Disconnect::Closes);
    "stdio: gone in the middle of a call, as after `kill -9`" one in 409 => |run| calls(run, Disconnect::Vanishes);
    "stdio: `vary` itself is killed with `kill -9`" one in 419 => |run| calls(run, Disconnect::Kills);
    "stdio: a first line that is no JSON, then a call" one in 421 => |run| garbage(run);
    "stdio: be asked, then the input ends" one in 431 => |run| server_request(run);
    "stdio: `subscriptions/listen`, cancelled; another, then the input ends" one in 433 => |run| listens(run);
}

/// A client and its gateway.
struct Pipes {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    fn start(run: ClientRun<'_>) -> Result<Self, String> {
        let mut command = process::command(&run.deployment.vary);
        command
            .args(["serve", "--stdio"])
            .arg(&run.deployment.config);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no output")?;
        let output = BufReader::new(output);
        Ok(Self { child, output })
    }

    async fn open(run: ClientRun<'_>, capabilities: &Value) -> Result<Self, String> {
        let mut pipes = Self::start(run)?;
        let message = initialize("2025-11-25", capabilities);
        pipes.send(&message.to_string()).await?;
        pipes.read_until("\"id\":1").await?;
        Ok(pipes)
    }

    async fn send(&mut self, line: &str) -> ScenarioResult {
        let input = self.child.stdin.as_mut().ok_or("no input")?;
        let written = input.write_all(format!("{line}\n").as_bytes()).await;
        written.map_err(|error| error.to_string())
    }

    async fn read_until(&mut self, text: &str) -> ScenarioResult {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err(format!("it ended without `{text}`"));
            }
            if line.contains(text) {
                return Ok(());
            }
        }
    }

    fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until `vary` has ended. The last measurement finds its servers if they still run.
    async fn ended(mut self) -> ScenarioResult {
        self.close();
        let ended = self.child.wait().await;
        ended.map(drop).map_err(|error| error.to_string())
    }
}

/// How a client disconnects.
#[derive(Clone, Copy)]
enum Disconnect {
    Closes,
    Vanishes,
    Kills,
}

async fn calls(run: ClientRun<'_>, disconnect: Disconnect) -> ScenarioResult {
    let mut pipes = Pipes::open(run, &json!({})).await?;
    pipes.send(&run.steps(2).to_string()).await?;
    pipes.read_until("notifications/progress").await?;
    match disconnect {
        Disconnect::Closes => pipes.read_until("\"id\":2").await?,
        Disconnect::Vanishes => {
            let Pipes { mut child, output } = pipes;
            drop((output, child.stdin.take()));
            return child
                .wait()
                .await
                .map(drop)
                .map_err(|error| error.to_string());
        }
        Disconnect::Kills => {
            let process = pipes.child.id().ok_or("it ended at once")?;
            process::signal(process, Signal::KILL)?;
        }
    }
    pipes.ended().await
}

async fn garbage(run: ClientRun<'_>) -> ScenarioResult {
    let mut pipes = Pipes::start(run)?;
    pipes.send("HTTP/1.1 GET {").await?;
    pipes.read_until("-32700").await?;
    let call = modern_message(run.silent(2), &json!({}));
    pipes.send(&call.to_string()).await?;
    pipes.read_until("\"id\":2").await?;
    pipes.ended().await
}

/// The call gets a result although the client does not answer the server request.
async fn server_request(run: ClientRun<'_>) -> ScenarioResult {
    let mut pipes = Pipes::open(run, &json!({"elicitation": {}})).await?;
    let call = run.call(2, "test_elicitation", &json!({"message": "who?"}));
    pipes.send(&call.to_string()).await?;
    pipes.read_until("elicitation/create").await?;
    pipes.close();
    pipes.read_until("\"id\":2").await?;
    pipes.ended().await
}

async fn listens(run: ClientRun<'_>) -> ScenarioResult {
    let mut pipes = Pipes::start(run)?;
    for id in [2, 3] {
        let listen = request(id, "subscriptions/listen", &run.wanted());
        let listen = modern_message(listen, &json!({}));
        pipes.send(&listen.to_string()).await?;
        pipes.read_until("acknowledged").await?;
        if id == 2 {
            let cancel = notification("notifications/cancelled", &json!({"requestId": id}));
            pipes.send(&cancel.to_string()).await?;
        }
    }
    pipes.close();
    // The gateway answers a stream that it ends.
    pipes.read_until("\"id\":3").await?;
    pipes.ended().await
}
