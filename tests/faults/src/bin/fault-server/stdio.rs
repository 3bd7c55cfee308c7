//! The server on its standard streams.

use std::process;
use std::sync::Arc;

use faults::script::Start;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdout};
use tokio::sync::Mutex;

use crate::act::{Act, Server};

/// Serves until the input closes.
///
/// # Errors
///
/// When the input cannot be read.
pub(crate) async fn serve(server: &Arc<Server>) -> Result<(), String> {
    let output = Arc::new(Mutex::new(tokio::io::stdout()));
    if server.start == Start::Garbage {
        write(&output, b"Welcome to the faulty shell 1.0\n$ \n").await;
    }
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = input.next_line().await.map_err(|error| error.to_string())? {
        if server.start == Start::Garbage {
            write(&output, b"bash: syntax error near unexpected token\n").await;
            continue;
        }
        let (server, output) = (Arc::clone(server), Arc::clone(&output));
        tokio::spawn(async move { take(&server, &output, &line).await });
    }
    if server.script.stubborn {
        std::future::pending::<()>().await;
    }
    // What still sleeps has nobody to answer to.
    end(0)
}

async fn take(server: &Server, output: &Mutex<Stdout>, line: &str) {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return;
    };
    match server.act(&message).await {
        Act::Answer(message) | Act::Stream(message) => say(output, &message).await,
        Act::Noise(kind, answer) => noise(output, &kind, &answer).await,
        Act::Nothing => {}
        Act::End(code) => end(code),
    }
}

async fn noise(output: &Mutex<Stdout>, kind: &str, answer: &Value) {
    match kind {
        "text" => {
            write(
                output,
                b"connecting to the database...\n\n{\"level\":\"info\"}\n",
            )
            .await
        }
        "binary" => write(output, b"\xff\xfe\x00\x01\x1b[2J\n").await,
        "another's answer" => {
            let mut other = answer.clone();
            other["id"] = "nobody".into();
            say(output, &other).await;
        }
        "answer twice" => say(output, answer).await,
        "half an answer" => {
            let text = answer.to_string();
            write(output, format!("{}\n", &text[..text.len() / 2]).as_bytes()).await;
            return;
        }
        "endless line" => {
            // In one piece, so that no other message ends it early.
            let mut long = vec![b'x'; 17 << 20];
            long.push(b'\n');
            write(output, &long).await;
            return;
        }
        _ => {}
    }
    say(output, answer).await;
}

async fn say(output: &Mutex<Stdout>, message: &Value) {
    write(output, format!("{message}\n").as_bytes()).await;
}

/// Writes as long as somebody reads.
async fn write(output: &Mutex<Stdout>, bytes: &[u8]) {
    let mut output = output.lock().await;
    let _ = output.write_all(bytes).await;
    let _ = output.flush().await;
}

#[expect(clippy::exit, reason = "that the process ends is what was asked for")]
pub(crate) fn end(code: i32) -> ! {
    if code != 0 {
        let terms = b"fault-server: out of memory\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), terms);
    }
    process::exit(code)
}
