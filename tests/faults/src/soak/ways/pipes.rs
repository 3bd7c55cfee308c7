//! Clients that start `vary` themselves, over stdio.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::super::http::{initialize, modern_message, notification, request};
use super::super::visit::Visit;
use super::{Gone, Way, rare};
use crate::process;

pub(super) const WAYS: &[Way] = &[
    rare("stdio: a call, then the input ends", 401, |visit| {
        Box::pin(calls(visit, Leaves::Closes))
    }),
    rare(
        "stdio: gone in the middle of a call, as after `kill -9`",
        409,
        |visit| Box::pin(calls(visit, Leaves::Vanishes)),
    ),
    rare(
        "stdio: `vary` itself is killed with `kill -9`",
        419,
        |visit| Box::pin(calls(visit, Leaves::Kills)),
    ),
    rare(
        "stdio: a first line that is no JSON, then a call",
        421,
        |visit| Box::pin(garbage(visit)),
    ),
    rare("stdio: be asked, then the input ends", 431, |visit| {
        Box::pin(asked(visit))
    }),
    rare(
        "stdio: `subscriptions/listen`, cancelled; another, then the input ends",
        433,
        |visit| Box::pin(listens(visit)),
    ),
];

/// A client and its gateway.
struct Pipes {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    fn start(visit: Visit<'_>) -> Result<Self, String> {
        let mut command = process::command(&visit.ground.vary);
        command.args(["serve", "--stdio"]).arg(&visit.ground.config);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no output")?;
        let output = BufReader::new(output);
        Ok(Self { child, output })
    }

    async fn open(visit: Visit<'_>, capabilities: &Value) -> Result<Self, String> {
        let mut pipes = Self::start(visit)?;
        let message = initialize("2025-11-25", capabilities);
        pipes.say(&message.to_string()).await?;
        pipes.hear("\"id\":1").await?;
        Ok(pipes)
    }

    async fn say(&mut self, line: &str) -> Gone {
        let input = self.child.stdin.as_mut().ok_or("no input")?;
        let written = input.write_all(format!("{line}\n").as_bytes()).await;
        written.map_err(|error| error.to_string())
    }

    async fn hear(&mut self, what: &str) -> Gone {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err(format!("it ended without `{what}`"));
            }
            if line.contains(what) {
                return Ok(());
            }
        }
    }

    fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it started is looked for at the end.
    async fn ended(mut self) -> Gone {
        self.close();
        let ended = self.child.wait().await;
        ended.map(drop).map_err(|error| error.to_string())
    }
}

/// How a client goes.
#[derive(Clone, Copy)]
enum Leaves {
    Closes,
    Vanishes,
    Kills,
}

async fn calls(visit: Visit<'_>, leaves: Leaves) -> Gone {
    let mut pipes = Pipes::open(visit, &json!({})).await?;
    pipes.say(&visit.steps(2).to_string()).await?;
    pipes.hear("notifications/progress").await?;
    match leaves {
        Leaves::Closes => pipes.hear("\"id\":2").await?,
        Leaves::Vanishes => {
            let Pipes { mut child, output } = pipes;
            drop((output, child.stdin.take()));
            return child
                .wait()
                .await
                .map(drop)
                .map_err(|error| error.to_string());
        }
        Leaves::Kills => {
            let process = pipes.child.id().ok_or("it ended at once")?;
            process::signal(process, Signal::KILL)?;
        }
    }
    pipes.ended().await
}

async fn garbage(visit: Visit<'_>) -> Gone {
    let mut pipes = Pipes::start(visit)?;
    pipes.say("HTTP/1.1 GET {").await?;
    pipes.hear("-32700").await?;
    let call = modern_message(visit.silent(2), &json!({}));
    pipes.say(&call.to_string()).await?;
    pipes.hear("\"id\":2").await?;
    pipes.ended().await
}

/// The call is answered although the question is not.
async fn asked(visit: Visit<'_>) -> Gone {
    let mut pipes = Pipes::open(visit, &json!({"elicitation": {}})).await?;
    let call = visit.call(2, "test_elicitation", &json!({"message": "who?"}));
    pipes.say(&call.to_string()).await?;
    pipes.hear("elicitation/create").await?;
    pipes.close();
    pipes.hear("\"id\":2").await?;
    pipes.ended().await
}

async fn listens(visit: Visit<'_>) -> Gone {
    let mut pipes = Pipes::start(visit)?;
    for id in [2, 3] {
        let listen = request(id, "subscriptions/listen", &visit.wanted());
        let listen = modern_message(listen, &json!({}));
        pipes.say(&listen.to_string()).await?;
        pipes.hear("acknowledged").await?;
        if id == 2 {
            let cancel = notification("notifications/cancelled", &json!({"requestId": id}));
            pipes.say(&cancel.to_string()).await?;
        }
    }
    pipes.close();
    // A stream that the gateway ends is answered.
    pipes.hear("\"id\":3").await?;
    pipes.ended().await
}
