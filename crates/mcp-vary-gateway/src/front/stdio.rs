//! The stdio front: one client, one message a line.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::batch;
use super::{begin, heard};
use crate::call::{carry, is_of_an_extension};
use crate::choose::Told;
use crate::client::Client;
use crate::deprecation::ClientName;
use crate::gateway::Gateway;
use crate::notify::Listener;
use crate::params::Params;
use crate::reply::{self, Failure, INVALID_REQUEST};
use crate::revision::Revision;
use crate::route::{Asked, Outcome, dispatch};
use crate::running::Step;
use crate::session::{Fixed, NO_CLASS, Place, Session};
use crate::setup::Setup;
use crate::wire::{self, Message};

/// What is said to the first request after a variant of its session was taken out of the configuration.
const BEGUN_ANEW: &str = "the variants of this session are no longer offered; it goes on as if `initialize` had just been \
     sent: list what there is now, then ask again";

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
        let (mut connection, writer) = Connection::over(self, output);
        let mut input = BufReader::new(input);
        let limits = || self.current().config.limits;
        let reading = async {
            while let Some(line) = read_line(&mut input, || limits().body).await? {
                connection.take(line).await;
            }
            Ok(())
        };
        let read = tokio::select! {
            read = reading => read,
            () = shutdown => Ok(()),
        };
        connection.finish().await;
        read.and(written(writer, limits().drain).await)
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
pub(super) struct Connection {
    gateway: Arc<Gateway>,
    /// Made by `initialize`.
    legacy: Option<Legacy>,
    /// Keeps the modern requests in flight, so that they can be cancelled.
    modern: Arc<Session>,
    /// Legacy sessions of before, of which requests are in flight.
    former: Vec<Arc<Session>>,
    lines: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    /// Where notifications of extensions are put, once there was one.
    carrying: OnceLock<mpsc::Sender<Carried>>,
    gone: CancellationToken,
    /// Cancelled when what only listens must end.
    stopping: CancellationToken,
}

/// A notification of an extension: by whom, its method and its params as written.
type Carried = (Arc<Setup>, Client, String, Option<String>);

/// Carries one after the other.
async fn carry_all(mut carried: mpsc::Receiver<Carried>) {
    while let Some((setup, client, method, written)) = carried.recv().await {
        // The params were read before, so that they can be read again.
        let params = Params::read(written.as_deref()).unwrap_or_default();
        carry(&setup, &client, &method, params).await;
    }
}

/// What `initialize` began.
struct Legacy {
    session: Arc<Session>,
    /// The params of `initialize`, to begin once more when a variant of the session is gone.
    params: String,
    /// Ends what writes what the client is told on its own.
    silent: Option<DropGuard>,
}

impl Connection {
    /// One that writes to `output`, and what does so.
    pub(super) fn over<W>(gateway: &Arc<Gateway>, output: W) -> (Self, JoinHandle<io::Result<()>>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, to_write) = mpsc::channel(WAITING);
        let writer = tokio::spawn(write(output, to_write));
        (Self::new(gateway, lines), writer)
    }

    fn new(gateway: &Arc<Gateway>, lines: mpsc::Sender<Bytes>) -> Self {
        let stateless = Fixed {
            revision: Revision::LATEST_MODERN,
            features: None,
            order: Vec::new(),
            class: NO_CLASS.into(),
            client: ClientName::default(),
        };
        Self {
            gateway: Arc::clone(gateway),
            legacy: None,
            modern: gateway.lasting.sessions.open_unnamed(stateless),
            former: Vec::new(),
            lines,
            tasks: TaskTracker::new(),
            carrying: OnceLock::new(),
            gone: CancellationToken::new(),
            stopping: CancellationToken::new(),
        }
    }

    async fn take(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(limit) => {
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
            let setup = self.gateway.current();
            for session in self.sessions() {
                // Nobody else could have asked on these pipes: it is a mistake of the client, and in the log.
                let _ = heard(&setup, session, message, &params);
            }
            let method = message.method.as_deref();
            if let Some(method) = method.filter(|method| is_of_an_extension(method)) {
                self.carry(setup, method, message.params, &params);
            }
            return;
        };
        let setup = self.gateway.current();
        if method == "initialize" && !params.is_modern() {
            let written = message.params.unwrap_or_default();
            return self.initialize(&setup, id, &params, written).await;
        }
        match self.client(&setup, method, &params).await {
            Ok((client, session)) => match begin(&setup, &session, id) {
                Ok(place) => self.start(setup, client, place, message, id),
                Err(reply) => self.say(reply.body).await,
            },
            Err(failure) => self.say(failure.to_bytes(Some(id))).await,
        }
    }

    /// Carries a notification of an extension on the side, in order; of too many the last are dropped.
    fn carry(&self, setup: Arc<Setup>, method: &str, written: Option<&str>, params: &Params<'_>) {
        let client = match (params.is_modern(), &self.legacy) {
            (true, _) => setup.modern_client(method, &Told::default(), params),
            (false, Some(legacy)) => setup.legacy_client(&legacy.session, &Told::default(), params),
            (false, None) => return,
        };
        let Ok(mut client) = client else { return };
        if params.is_modern() {
            client.id = self.modern.client;
            client.connection = Some(client.id);
        }
        let (method, written) = (method.to_owned(), written.map(str::to_owned));
        let carried = self.carrying.get_or_init(|| {
            let (sender, carried) = mpsc::channel(WAITING);
            let carrying = self
                .gone
                .clone()
                .run_until_cancelled_owned(carry_all(carried));
            self.tasks.spawn(carrying);
            sender
        });
        if carried.try_send((setup, client, method, written)).is_err() {
            debug!("notifications come faster than servers take them; one was dropped");
        }
    }

    /// All whose requests may be in flight.
    fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        let legacy = self.legacy.iter().map(|legacy| &legacy.session);
        legacy.chain(&self.former).chain([&self.modern])
    }

    async fn initialize(&mut self, setup: &Setup, id: &str, params: &Params<'_>, written: &str) {
        if self.legacy.is_some() {
            let why = "`initialize` was sent before; one connection is one session";
            return self
                .say(Failure::invalid_request(why).to_bytes(Some(id)))
                .await;
        }
        match setup.initialize(&Told::default(), params).await {
            Ok((fixed, result)) => {
                self.say(reply::result(id, result.as_bytes()).body).await;
                let session = setup.lasting.sessions.open_unnamed(fixed);
                setup.admit(&session).await;
                self.legacy = Some(Legacy {
                    silent: self.pass_on(&session),
                    session,
                    params: written.to_owned(),
                });
            }
            Err(failure) => self.say(failure.to_bytes(Some(id))).await,
        }
    }

    /// Who asks: the session, or what the request says of itself.
    async fn client(
        &mut self,
        setup: &Setup,
        method: &str,
        params: &Params<'_>,
    ) -> Result<(Client, Arc<Session>), Failure> {
        if params.is_modern() {
            let mut client = setup.modern_client(method, &Told::default(), params)?;
            client.id = self.modern.client;
            client.connection = Some(client.id);
            return Ok((client, Arc::clone(&self.modern)));
        }
        if let Some(session) = self.session(setup).await? {
            let client = setup.legacy_client(&session, &Told::default(), params)?;
            return Ok((client, session));
        }
        if method == "ping" {
            let mut client = setup.legacy_client(&self.modern, &Told::default(), params)?;
            client.revision = Revision::LATEST_LEGACY;
            return Ok((client, Arc::clone(&self.modern)));
        }
        Err(Failure::invalid_params(
            "send `initialize` first, or name the protocol version and the client's capabilities in `_meta`",
        ))
    }

    /// The session that `initialize` began; none before that.
    ///
    /// # Errors
    ///
    /// When a variant of it is gone. Over HTTP the client would begin a new session; here it has no way to, so
    /// that it is told once, and from then on served as if it had.
    async fn session(&mut self, setup: &Setup) -> Result<Option<Arc<Session>>, Failure> {
        let Some(legacy) = &self.legacy else {
            return Ok(None);
        };
        if setup.order_of(&legacy.session).is_some() {
            return Ok(Some(Arc::clone(&legacy.session)));
        }
        let params = Params::read(Some(&legacy.params))?;
        let (fixed, _) = setup.initialize(&Told::default(), &params).await?;
        let session = legacy.session.anew(fixed);
        setup.admit(&session).await;
        let anew = Legacy {
            params: legacy.params.clone(),
            silent: self.pass_on(&session),
            session,
        };
        self.former.retain(|session| Arc::strong_count(session) > 1);
        let former = self.legacy.replace(anew);
        self.former.extend(former.map(|former| former.session));
        Err(Failure::invalid_request(BEGUN_ANEW))
    }

    /// Writes what the client of `session` is told on its own, until the guard is dropped.
    fn pass_on(&self, session: &Arc<Session>) -> Option<DropGuard> {
        let told = session.open_stream(1)?;
        let (silent, gone) = (CancellationToken::new(), self.gone.clone());
        let (lines, guard) = (self.lines.clone(), silent.clone().drop_guard());
        let next = async move || {
            tokio::select! {
                biased;
                message = told.next() => message,
                () = silent.cancelled() => None,
            }
        };
        self.tasks.spawn(async move {
            while let Some(message) = next().await {
                tokio::select! {
                    _ = lines.send(message) => {}
                    () = gone.cancelled() => return,
                }
            }
        });
        Some(guard)
    }

    /// Runs a request on the side; its answer is written when it comes.
    fn start(
        &self,
        gateway: Arc<Setup>,
        client: Client,
        place: Place,
        message: &Message<'_>,
        id: &str,
    ) {
        let lines = self.lines.clone();
        let method = message.method.as_deref().unwrap_or_default().to_owned();
        let params = message.params.map(str::to_owned);
        let id = id.to_owned();
        let (gone, stopping) = (self.gone.clone(), self.stopping.clone());
        self.tasks.spawn(async move {
            // The params were read before, so that they can be read again.
            let params = Params::read(params.as_deref()).unwrap_or_default();
            let asked = Asked {
                id: &id,
                method: &method,
                params,
                headers: None,
                message: None,
            };
            let answer = run(gateway, &client, asked, place, &lines, stopping);
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = answer => {}
            }
        });
    }

    async fn take_batch(&mut self, messages: Result<Vec<&str>, wire::WireError>) {
        let setup = self.gateway.current();
        match self.open_batch(&setup, messages).await {
            Ok((session, messages)) => self.start_batch(&setup, &session, &messages),
            Err(failure) => self.say(failure.to_bytes(None)).await,
        }
    }

    /// The messages of a batch, and the session that they are of.
    async fn open_batch<'a>(
        &mut self,
        setup: &Setup,
        messages: Result<Vec<&'a str>, wire::WireError>,
    ) -> Result<(Arc<Session>, Vec<&'a str>), Failure> {
        let messages = batch::readable(setup, messages)?;
        let session = self.session(setup).await?.ok_or_else(|| {
            let why = "send `initialize` first; batches exist in revision 2025-03-26 only";
            Failure::invalid_request(why)
        })?;
        let messages = batch::open(&session, messages)?;
        Ok((session, messages))
    }

    fn start_batch(&self, setup: &Arc<Setup>, session: &Arc<Session>, messages: &[&str]) {
        let mut answers = batch::run(setup, session, &Told::default(), messages);
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
    pub(super) async fn finish(mut self) {
        drop(self.legacy.as_mut().map(|legacy| legacy.silent.take()));
        self.stopping.cancel();
        drop(self.carrying.take());
        // What the client is asked now it cannot answer, and nobody waits for that.
        for session in self.sessions() {
            session.fall_silent();
            self.gateway.lasting.questions.forget(session.client);
        }
        self.tasks.close();
        let drain = self.gateway.current().config.limits.drain;
        if tokio::time::timeout(drain, self.tasks.wait())
            .await
            .is_err()
        {
            self.gone.cancel();
            for session in self.sessions() {
                session.end();
            }
            self.tasks.wait().await;
        }
        for session in self.sessions() {
            self.gateway.lasting.audience.forget(session.client);
            self.gateway.current().classes.forget(session.client);
        }
    }
}

#[cfg(test)]
impl Connection {
    pub(super) async fn take_line(&mut self, line: &str) {
        self.take(Line::Whole(line.into())).await;
    }

    pub(super) fn legacy_session(&self) -> Option<Arc<Session>> {
        let legacy = self.legacy.as_ref()?;
        Some(Arc::clone(&legacy.session))
    }
}

/// Runs one request to its end, writing what comes on the way.
async fn run(
    gateway: Arc<Setup>,
    client: &Client,
    asked: Asked<'_>,
    place: Place,
    lines: &mpsc::Sender<Bytes>,
    stopping: CancellationToken,
) {
    let outcome = dispatch(&gateway, client, asked).await;
    // What the server works on needs nothing more of a configuration that may be replaced.
    drop(gateway);
    let mut running = match outcome {
        Outcome::Done(reply) => return drop(lines.send(reply.body).await),
        Outcome::Running(running) => running,
        Outcome::Listening(listener) => {
            return hear(listener.until(stopping), &place, lines).await;
        }
    };
    running.hold(place);
    loop {
        match running.next().await {
            Step::Message(message) => drop(lines.send(message).await),
            Step::Done(reply) => return drop(lines.send(reply.body).await),
            Step::Cancelled => return,
        }
    }
}

/// Writes what a client hears of, until it withdraws or the stream ends.
async fn hear(mut listener: Box<Listener>, place: &Place, lines: &mpsc::Sender<Bytes>) {
    loop {
        let message = tokio::select! {
            biased;
            // > Servers receiving cancellation notifications SHOULD not send a response for the cancelled
            // > request. (MCP 2026-07-28, basic/patterns/cancellation)
            () = place.withdrawn() => return,
            message = listener.next() => message,
        };
        match message {
            Some(message) => drop(lines.send(message).await),
            None => return,
        }
    }
}

/// A line of a client.
enum Line {
    Whole(Vec<u8>),
    /// Longer than so many bytes; they were passed over.
    TooLong(usize),
}

/// The next line without its end; none at the end of the input.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    limit: impl Fn() -> usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut too_long = None;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            let nothing = line.is_empty() && too_long.is_none();
            return Ok((!nothing).then(|| whole(line, too_long)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let limit = limit();
        if too_long.is_none() && line.len() + part.len() > limit {
            too_long = Some(limit);
        }
        if too_long.is_some() {
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

fn whole(line: Vec<u8>, too_long: Option<usize>) -> Line {
    too_long.map_or(Line::Whole(line), Line::TooLong)
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
        while let Some(line) = read_line(&mut input, || 4).await.unwrap() {
            seen.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong(_) => "too long".to_owned(),
            });
        }
        assert_eq!(seen, ["too long", "ab", "", "last"]);
    }

    #[test]
    fn a_message_is_written_on_one_line() {
        assert_eq!(on_one_line(b"{\n\"a\":1\r\n}"), b"{ \"a\":1  }\n");
    }
}
