//! Every way in which a client comes and goes.

use std::pin::Pin;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::Ground;
use super::http::{Http, Legacy, initialize, modern, post, request, silent, steps};
use crate::process;

/// One of them.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// One of so many clients goes this way; 1: those that are left, in turn.
    pub(super) one_in: usize,
    pub(super) go: for<'a> fn(&'a Ground) -> Going<'a>,
}

type Going<'a> = Pin<Box<dyn Future<Output = Gone> + Send + 'a>>;

type Gone = Result<(), String>;

const fn common(name: &'static str, go: for<'a> fn(&'a Ground) -> Going<'a>) -> Way {
    let one_in = 1;
    Way { name, one_in, go }
}

const fn rare(name: &'static str, one_in: usize, go: for<'a> fn(&'a Ground) -> Going<'a>) -> Way {
    Way { name, one_in, go }
}

/// All of them.
pub(super) const WAYS: &[Way] = &[
    common("session: a list, a call, `DELETE`", |ground| {
        Box::pin(whole(ground))
    }),
    common("session: `initialize` and vanish", |ground| {
        Box::pin(vanishes(ground))
    }),
    common(
        "session: vanish before the answer to `initialize`",
        |ground| Box::pin(hasty(ground)),
    ),
    common("session: hang up while an answer is awaited", |ground| {
        Box::pin(silent_hang_up(ground))
    }),
    common(
        "session: hang up in the middle of a call's stream",
        |ground| Box::pin(hang_up(ground, false)),
    ),
    common("session: the same, then `DELETE`", |ground| {
        Box::pin(hang_up(ground, true))
    }),
    common(
        "session: lose a call's stream, come back, read to its end",
        |ground| Box::pin(resumes(ground)),
    ),
    common(
        "session: lose a call's stream, come back, hang up again",
        |ground| Box::pin(resumes_twice(ground)),
    ),
    common("session: cancel a call on its stream", |ground| {
        Box::pin(cancels(ground))
    }),
    common("session: hang up a `GET` stream", |ground| {
        Box::pin(listens(ground, ""))
    }),
    common("session: end the session of a `GET` stream", |ground| {
        Box::pin(listens_read_to_the_end(ground))
    }),
    common(
        "session: come back to a `GET` stream and hang up",
        |ground| Box::pin(listens_again(ground)),
    ),
    common("session: leave a stream unread", |ground| {
        Box::pin(does_not_read(ground))
    }),
    common("stateless: `server/discover`, a call", |ground| {
        Box::pin(stateless(ground))
    }),
    common(
        "stateless: hang up in the middle of a call's stream",
        |ground| Box::pin(stateless_hang_up(ground)),
    ),
    common("stateless: hang up while an answer is awaited", |ground| {
        Box::pin(stateless_silent(ground))
    }),
    common("half a head, then nothing", |ground| {
        Box::pin(half(ground, 40))
    }),
    common("half a body, then nothing", |ground| {
        Box::pin(half(ground, usize::MAX))
    }),
    common("no HTTP at all", |ground| Box::pin(nonsense(ground))),
    rare(
        "session: be asked by the server, answer nothing, vanish",
        199,
        |ground| Box::pin(asked(ground, false)),
    ),
    rare(
        "session: be asked by the server, answer nothing, `DELETE`",
        211,
        |ground| Box::pin(asked(ground, true)),
    ),
    rare("stdio: a call, then the input ends", 401, |ground| {
        Box::pin(pipes(ground, Leaves::Closes))
    }),
    rare(
        "stdio: gone in the middle of a call, as after `kill -9`",
        409,
        |ground| Box::pin(pipes(ground, Leaves::Vanishes)),
    ),
    rare(
        "stdio: `vary` itself is killed with `kill -9`",
        419,
        |ground| Box::pin(pipes(ground, Leaves::Kills)),
    ),
];

async fn open(ground: &Ground) -> Result<Legacy, String> {
    Legacy::open(&ground.address, &json!({})).await
}

async fn whole(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    client.send(&request(2, "tools/list", &json!({}))).await?;
    client.http.until("\"id\":2").await?;
    client.send(&steps(3)).await?;
    client.http.until("\"id\":3").await?;
    end(&mut client, ground).await
}

/// Ends the session, on a connection of its own.
async fn end(client: &mut Legacy, ground: &Ground) -> Gone {
    client.reconnect(&ground.address).await?;
    client.verb("DELETE", "").await?;
    client.http.until("200 OK").await?;
    Ok(())
}

async fn vanishes(ground: &Ground) -> Gone {
    open(ground).await.map(drop)
}

async fn hasty(ground: &Ground) -> Gone {
    let mut http = Http::connect(&ground.address).await?;
    http.send(&post("", &initialize(&json!({})))).await
}

async fn silent_hang_up(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    client.send(&silent(2)).await
}

/// Calls, and reads the first of what is said about the call; gives the id of its event.
async fn begin(client: &mut Legacy) -> Result<String, String> {
    client.send(&steps(2)).await?;
    let read = client.http.until("notifications/progress").await?;
    let id = read
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "));
    Ok(format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?))
}

async fn hang_up(ground: &Ground, ends: bool) -> Gone {
    let mut client = open(ground).await?;
    begin(&mut client).await?;
    if ends {
        end(&mut client, ground).await?;
    }
    Ok(())
}

async fn resumes(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    let last = begin(&mut client).await?;
    client.reconnect(&ground.address).await?;
    client.verb("GET", &last).await?;
    let rest = client.http.until("\"id\":2").await?;
    // Each report once: the first was read before.
    match rest.matches("notifications/progress").count() {
        2 => Ok(()),
        others => Err(format!("{others} reports instead of 2: {rest}")),
    }
}

async fn resumes_twice(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    let last = begin(&mut client).await?;
    client.reconnect(&ground.address).await?;
    client.verb("GET", &last).await?;
    client.http.until("\r\n\r\n").await.map(drop)
}

async fn cancels(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    begin(&mut client).await?;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    let mut other = Http::connect(&ground.address).await?;
    other.send(&post(&client.session, &cancel)).await?;
    other.until("202 Accepted").await?;
    client.http.until("0\r\n\r\n").await.map(drop)
}

async fn listens(ground: &Ground, last: &str) -> Gone {
    let mut client = open(ground).await?;
    client.verb("GET", last).await?;
    client.http.until("data: \n\n").await.map(drop)
}

async fn listens_read_to_the_end(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    client.verb("GET", "").await?;
    client.http.until("data: \n\n").await?;
    let mut other = Http::connect(&ground.address).await?;
    let session = &client.session;
    other
        .send(&format!(
            "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n"
        ))
        .await?;
    other.until("200 OK").await?;
    client.http.until("0\r\n\r\n").await.map(drop)
}

async fn listens_again(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    client.verb("GET", "").await?;
    let read = client.http.until("data: \n\n").await?;
    let id = read.lines().find_map(|line| line.strip_prefix("id: "));
    let last = format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?);
    client.reconnect(&ground.address).await?;
    client.verb("GET", &last).await?;
    client.http.until("data: \n\n").await.map(drop)
}

async fn does_not_read(ground: &Ground) -> Gone {
    let mut client = open(ground).await?;
    client.send(&steps(2)).await?;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    Ok(())
}

async fn stateless(ground: &Ground) -> Gone {
    let mut http = Http::connect(&ground.address).await?;
    http.send(&modern(request(1, "server/discover", &json!({}))))
        .await?;
    http.until("\"id\":1").await?;
    http.send(&modern(steps(2))).await?;
    http.until("\"id\":2").await.map(drop)
}

async fn stateless_hang_up(ground: &Ground) -> Gone {
    let mut http = Http::connect(&ground.address).await?;
    http.send(&modern(steps(2))).await?;
    http.until("notifications/progress").await.map(drop)
}

async fn stateless_silent(ground: &Ground) -> Gone {
    let mut http = Http::connect(&ground.address).await?;
    http.send(&modern(silent(2))).await
}

/// The first bytes of a request, without the last.
async fn half(ground: &Ground, bytes: usize) -> Gone {
    let whole = post("", &initialize(&json!({})));
    let mut http = Http::connect(&ground.address).await?;
    http.send(&whole[..bytes.min(whole.len() - 1)]).await
}

async fn nonsense(ground: &Ground) -> Gone {
    let mut http = Http::connect(&ground.address).await?;
    http.send("\u{16}\u{3}\u{1} hello\r\n\r\n").await?;
    http.read_to_the_end().await.map(drop)
}

/// What only a client can be asked that declared it: it has a connection to the server of its own.
async fn asked(ground: &Ground, ends: bool) -> Gone {
    let mut client = Legacy::open(&ground.address, &json!({"elicitation": {}})).await?;
    let params = json!({"name": "test_elicitation", "arguments": {"message": "who?"}});
    client.send(&request(2, "tools/call", &params)).await?;
    client.http.until("elicitation/create").await?;
    if ends {
        end(&mut client, ground).await?;
    }
    Ok(())
}

/// How a client on stdio goes.
#[derive(Clone, Copy)]
enum Leaves {
    Closes,
    Vanishes,
    Kills,
}

async fn pipes(ground: &Ground, leaves: Leaves) -> Gone {
    let mut command = process::command(&ground.vary);
    command
        .args(["serve", "--stdio", "--config"])
        .arg(&ground.config);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut output = BufReader::new(output);
    say(&mut child, &initialize(&json!({}))).await?;
    hear(&mut output, "\"id\":1").await?;
    say(&mut child, &steps(2)).await?;
    hear(&mut output, "notifications/progress").await?;
    match leaves {
        Leaves::Closes => hear(&mut output, "\"id\":2").await?,
        Leaves::Vanishes => drop(output),
        Leaves::Kills => {
            let process = child.id().ok_or("it ended at once")?;
            process::signal(process, Signal::KILL)?;
        }
    }
    drop(child.stdin.take());
    // What it started is looked for at the end.
    child
        .wait()
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

async fn say(child: &mut Child, message: &serde_json::Value) -> Gone {
    let input = child.stdin.as_mut().ok_or("no input")?;
    let written = input.write_all(format!("{message}\n").as_bytes()).await;
    written.map_err(|error| error.to_string())
}

async fn hear(output: &mut BufReader<ChildStdout>, what: &str) -> Gone {
    loop {
        let mut line = String::new();
        let read = output.read_line(&mut line).await;
        if read.map_err(|error| error.to_string())? == 0 {
            return Err(format!("it ended without `{what}`"));
        }
        if line.contains(what) {
            return Ok(());
        }
    }
}
