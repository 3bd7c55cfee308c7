//! The stdio front: one client, one message a line.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::batch;
use super::{begin, heard};
use crate::choose::Told;
use crate::client::Client;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::reply::{self, Failure, INVALID_REQUEST};
use crate::revision::Revision;
use crate::route::{Asked, Outcome, dispatch};
use crate::running::Step;
use crate::session::{Fixed, NO_CLASS, Place, Session};
use crate::wire::{self, Message};

/// Lines that wait to be written; requests wait when the client reads slowly.
const WAITING: usize = 64;

impl Gateway {
    /// Serves one client on a pair of streams until it closes its side or `shutdown`, then lets
    /// requests in flight finish.
    ///
    /// # Errors
    ///
    /// When the streams fail.
    pub async fn serve_stdio<R, W>(
        self: &Arc<Self>,
        input: R,
        output: W,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, to_write) = mpsc::channel(WAITING);
        let writer = tokio::spawn(write(output, to_write));
        let mut connection = Connection::new(self, lines);
        let mut input = BufReader::new(input);
        let limits = self.config.limits;
        let reading = async {
            while let Some(line) = read_line(&mut input, limits.body).await? {
                connection.take(line).await;
            }
            Ok(())
        };
        let read = tokio::select! {
            read = reading => read,
            () = shutdown => Ok(()),
        };
        connection.finish().await;
        read.and(written(writer, limits.drain).await)
    }
}

/// Lets a client read what was said to it, for a while.
async fn written(mut writer: JoinHandle<io::Result<()>>, drain: Duration) -> io::Result<()> {
    match tokio::time::timeout(drain, &mut writer).await {
        Ok(written) => written.unwrap_or(Ok(())),
        Err(_) => {
            writer.abort();
            let why = "the client does not read; what was still to be written is lost";
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}

/// What one client has going on.
struct Connection {
    gateway: Arc<Gateway>,
    /// Made by `initialize`.
    legacy: Option<Arc<Session>>,
    /// Keeps the modern requests in flight, so that they can be cancelled.
    modern: Arc<Session>,
    lines: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    gone: CancellationToken,
}

impl Connection {
    fn new(gateway: &Arc<Gateway>, lines: mpsc::Sender<Bytes>) -> Self {
        let stateless = Fixed {
            revision: Revision::LATEST_MODERN,
            features: None,
            order: Vec::new(),
            class: NO_CLASS.into(),
        };
        Self {
            gateway: Arc::clone(gateway),
            legacy: None,
            modern: gateway.sessions.open_unnamed(stateless),
            lines,
            tasks: TaskTracker::new(),
            gone: CancellationToken::new(),
        }
    }

    async fn take(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                let limit = self.gateway.config.limits.body;
                let why = format!("the line is longer than {limit} bytes");
                return self
                    .say(Failure::new(INVALID_REQUEST, why).to_bytes(None))
                    .await;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if let Some(messages) = wire::batch(&line) {
            return self.take_batch(messages).await;
        }
        match Message::read(&line) {
            Ok(message) => self.take_message(&message).await,
            Err(why) => {
                self.say(Failure::from(&why).to_bytes(why.id.as_deref()))
                    .await
            }
        }
    }

    async fn take_message(&mut self, message: &Message<'_>) {
        let params = match Params::read(message.params) {
            Ok(params) => params,
            // Nothing is replied to a notification (JSON-RPC 2.0, section 4.1).
            Err(_) if message.id.is_none() => return,
            Err(failure) => return self.say(failure.to_bytes(message.id)).await,
        };
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
            for session in self.legacy.iter().chain([&self.modern]) {
                heard(session, message, &params);
            }
            return;
        };
        if method == "initialize" && !params.is_modern() {
            return self.initialize(id, &params).await;
        }
        match self.client(method, &params) {
            Ok((client, session)) => match begin(&self.gateway, &session, id) {
                Ok(place) => self.start(client, place, message, id),
                Err(reply) => self.say(reply.body).await,
            },
            Err(failure) => self.say(failure.to_bytes(Some(id))).await,
        }
    }

    async fn initialize(&mut self, id: &str, params: &Params<'_>) {
        if self.legacy.is_some() {
            let why = "`initialize` was sent before; one connection is one session";
            return self
                .say(Failure::invalid_request(why).to_bytes(Some(id)))
                .await;
        }
        match self.gateway.initialize(&Told::default(), params).await {
            Ok((fixed, result)) => {
                self.legacy = Some(self.gateway.sessions.open_unnamed(fixed));
                self.say(reply::result(id, result.as_bytes()).body).await;
            }
            Err(failure) => self.say(failure.to_bytes(Some(id))).await,
        }
    }

    /// Who asks: the session, or what the request says of itself.
    fn client(&self, method: &str, params: &Params<'_>) -> Result<(Client, Arc<Session>), Failure> {
        if params.is_modern() {
            let mut client = self.gateway.modern_client(&Told::default(), params)?;
            client.id = self.modern.client;
            return Ok((client, Arc::clone(&self.modern)));
        }
        if let Some(session) = &self.legacy {
            let client = self
                .gateway
                .legacy_client(session, &Told::default(), params)?;
            return Ok((client, Arc::clone(session)));
        }
        if method == "ping" {
            let mut client = self
                .gateway
                .legacy_client(&self.modern, &Told::default(), params)?;
            client.revision = Revision::LATEST_LEGACY;
            return Ok((client, Arc::clone(&self.modern)));
        }
        Err(Failure::invalid_params(
            "send `initialize` first, or name the protocol version and the client's capabilities in `_meta`",
        ))
    }

    /// Runs a request on the side; its answer is written when it comes.
    fn start(&self, client: Client, place: Place, message: &Message<'_>, id: &str) {
        let gateway = Arc::clone(&self.gateway);
        let lines = self.lines.clone();
        let method = message.method.as_deref().unwrap_or_default().to_owned();
        let params = message.params.map(str::to_owned);
        let id = id.to_owned();
        let gone = self.gone.clone();
        self.tasks.spawn(async move {
            // The params were read before, so that they can be read again.
            let params = Params::read(params.as_deref()).unwrap_or_default();
            let asked = Asked {
                id: &id,
                method: &method,
                params,
                headers: None,
            };
            let answer = run(&gateway, &client, asked, place, &lines);
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = answer => {}
            }
        });
    }

    async fn take_batch(&self, messages: Result<Vec<&str>, wire::WireError>) {
        let messages = match batch::readable(&self.gateway, messages) {
            Ok(messages) => messages,
            Err(failure) => return self.say(failure.to_bytes(None)).await,
        };
        let Some(session) = &self.legacy else {
            let why = "send `initialize` first; batches exist in revision 2025-03-26 only";
            return self.say(Failure::invalid_request(why).to_bytes(None)).await;
        };
        let messages = match batch::open(session, messages) {
            Ok(messages) => messages,
            Err(failure) => return self.say(failure.to_bytes(None)).await,
        };
        let mut answers = batch::run(&self.gateway, session, &Told::default(), &messages);
        let lines = self.lines.clone();
        let gone = self.gone.clone();
        self.tasks.spawn(async move {
            let passing_on = async {
                while let Some(answer) = answers.recv().await {
                    let _ = lines.send(answer).await;
                }
            };
            tokio::select! {
                () = gone.cancelled() => {}
                () = passing_on => {}
            }
        });
    }

    async fn say(&self, message: Bytes) {
        let _ = self.lines.send(message).await;
    }

    /// Lets what is in flight finish, for a while.
    async fn finish(self) {
        self.tasks.close();
        let drain = self.gateway.config.limits.drain;
        if tokio::time::timeout(drain, self.tasks.wait())
            .await
            .is_err()
        {
            self.gone.cancel();
            for session in self.legacy.iter().chain([&self.modern]) {
                session.end();
            }
            self.tasks.wait().await;
        }
        for session in self.legacy.iter().chain([&self.modern]) {
            self.gateway.classes.forget(session.client);
        }
    }
}

/// Runs one request to its end, writing what comes on the way.
async fn run(
    gateway: &Arc<Gateway>,
    client: &Client,
    asked: Asked<'_>,
    place: Place,
    lines: &mpsc::Sender<Bytes>,
) {
    let mut running = match dispatch(gateway, client, asked).await {
        Outcome::Done(reply) => return drop(lines.send(reply.body).await),
        Outcome::Running(running) => running,
    };
    running.hold(place);
    loop {
        match running.next().await {
            Step::Notification(notification) => drop(lines.send(notification).await),
            Step::Done(reply) => return drop(lines.send(reply.body).await),
            Step::Cancelled => return,
        }
    }
}

/// A line of a client.
enum Line {
    Whole(Vec<u8>),
    /// Longer than allowed; its bytes were passed over.
    TooLong,
}

/// The next line without its end; none at the end of the input.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            let nothing = line.is_empty() && !too_long;
            return Ok((!nothing).then(|| whole(line, too_long)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        too_long |= line.len() + part.len() > limit;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(whole(line, too_long)));
        }
    }
}

fn whole(line: Vec<u8>, too_long: bool) -> Line {
    if too_long {
        Line::TooLong
    } else {
        Line::Whole(line)
    }
}

/// Writes lines until nobody has any more; what is ready goes out in one flush.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&on_one_line(&line)).await?;
        while let Ok(line) = lines.try_recv() {
            output.write_all(&on_one_line(&line)).await?;
        }
        output.flush().await?;
    }
    Ok(())
}

/// > Messages are delimited by newlines, and MUST NOT contain embedded newlines. (MCP, transports/stdio)
///
/// Between the tokens of JSON a line break is a space; inside a string it cannot stand.
fn on_one_line(message: &[u8]) -> Vec<u8> {
    let mut line = message.to_vec();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_does_not_hurt_the_next() {
        let mut input = BufReader::with_capacity(3, &b"abcdefgh\nab\n\nlast"[..]);
        let mut seen = Vec::new();
        while let Some(line) = read_line(&mut input, 4).await.unwrap() {
            seen.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(seen, ["too long", "ab", "", "last"]);
    }

    #[test]
    fn a_message_is_written_on_one_line() {
        assert_eq!(on_one_line(b"{\n\"a\":1\r\n}"), b"{ \"a\":1  }\n");
    }
}
