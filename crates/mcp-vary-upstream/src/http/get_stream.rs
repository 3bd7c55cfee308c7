//! The stream on which a legacy server tells what belongs to no request.
//!
//! Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server".

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::body::Incoming;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, Frame};
use mcp_vary_wire::sse::TooLarge;
use tokio::time::Instant;

use super::session::Session;
use super::stream::{Bookmark, Read, Stream};
use super::{Connection, LAST_EVENT_ID, STREAM};
use crate::http::response::is_stream;
use crate::list_changes::may_pass;
use crate::message::{Event, LOG_MESSAGE};

impl Connection {
    /// Tells a notification that names no call to the client that it must be for; `false` when nobody can tell.
    fn told_to_one(&self, message: &Bytes) -> bool {
        let one = self.callers.only_one();
        if let Some(one) = &one {
            one.receive(message);
        }
        one.is_some()
    }
}

/// Listens until it is dropped, or until the server says that there is no such stream.
pub(crate) async fn listen(connection: Arc<Connection>) {
    let mut generation = connection.generation.subscribe();
    let mut bookmark = Bookmark::default();
    let mut failures: u32 = 0;
    loop {
        generation.borrow_and_update();
        let heard = tokio::select! {
            heard = hear(&connection, &mut bookmark) => heard,
            // Another session has another stream.
            _ = generation.changed() => {
                bookmark = Bookmark::default();
                continue;
            }
        };
        match heard {
            Heard::Something => failures = 0,
            Heard::Nothing => failures += 1,
            Heard::Refused => {
                bookmark = Bookmark::default();
                if *connection.hearings.borrow() > 0 {
                    // It was heard before: perhaps it has forgotten the session.
                    connection.life.suspect();
                }
                if generation.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Heard::Unsupported => return,
        }
        let pause = bookmark.retry.unwrap_or(PAUSE);
        let pause = pause.saturating_mul(1 << failures.min(6));
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
    }
}

impl Connection {
    /// Waits until the stream of the session is open or refused, where one client has the connection alone.
    ///
    /// What a server asks while nobody listens is lost, and with it the call for which it asks.
    pub(crate) async fn listened(&self) {
        let session = self.session.load_full();
        if !self.is_held || session.era == Era::Modern {
            return;
        }
        let mut listened = self.listened.subscribe();
        let opened = listened.wait_for(|latest| *latest >= session.generation);
        // Some servers do not begin to answer until they have something to say.
        let _ = tokio::time::timeout(self.limits.probe.min(OPENING), opened).await;
    }
}

enum Heard {
    /// The stream held for long, or told something and can be resumed.
    Something,
    /// The stream ended soon, or could not be opened this time.
    Nothing,
    /// Not in this session.
    Refused,
    /// The server offers no such stream.
    Unsupported,
}

/// Opens the stream and listens until it ends.
///
/// A stream that does not go on where one was left begins with telling all lists: what changed before,
/// from the first list that was read or since the last stream broke, was told nowhere.
async fn hear(connection: &Arc<Connection>, bookmark: &mut Bookmark) -> Heard {
    let session = connection.session.load_full();
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, STREAM);
    let last_id = bookmark.header();
    let is_resumed = last_id.is_some();
    if let Some(last_id) = last_id {
        headers.insert(LAST_EVENT_ID, last_id);
    }
    let response = connection.send(Method::GET, &session, &headers, Bytes::new());
    let response = response.await;
    connection.listened.send_replace(session.generation);
    let Ok(response) = response else {
        connection.life.suspect();
        return Heard::Nothing;
    };
    if let Some(refused) = refused(&response, is_resumed) {
        if is_resumed && !may_pass(response.status()) {
            // Perhaps it does not know the event any more.
            bookmark.last_id = None;
        }
        return refused;
    }
    if !is_resumed {
        for kind in Kind::ALL {
            connection.tell(Event::ListMayHaveChanged(kind));
        }
        connection.hearings.send_modify(|hearings| *hearings += 1);
    }
    let began = Instant::now();
    let limit = connection.limits.line;
    let mut stream = Stream::new(response.into_body(), limit, bookmark.clone());
    let (told_something, end) = listen_to(connection, &session, &mut stream).await;
    *bookmark = stream.bookmark();
    if end.is_err() {
        // To resume would bring the same event again.
        bookmark.last_id = None;
    }
    // One that ends at once and cannot be resumed shall not have all lists read again and again.
    if began.elapsed() >= LONGEST_PAUSE || (told_something && bookmark.last_id.is_some()) {
        Heard::Something
    } else {
        Heard::Nothing
    }
}

/// What a reply means that opens no stream.
fn refused(response: &Response<Incoming>, is_resumed: bool) -> Option<Heard> {
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Some(Heard::Unsupported),
        status if status.is_client_error() && !may_pass(status) && !is_resumed => {
            Some(Heard::Refused)
        }
        status if !status.is_success() => Some(Heard::Nothing),
        _ if !is_stream(response.headers()) => Some(Heard::Unsupported),
        _ => None,
    }
}

/// Takes in what the stream brings; whether that was something, and how it ended.
async fn listen_to(
    connection: &Arc<Connection>,
    session: &Arc<Session>,
    stream: &mut Stream,
) -> (bool, Result<(), TooLarge>) {
    let mut told_something = false;
    loop {
        let messages = match stream.read().await {
            Ok(Read::Messages(messages)) => {
                connection.life.touch();
                messages
            }
            Ok(Read::End(_)) => return (told_something, Ok(())),
            Err(too_large) => return (told_something, Err(too_large)),
        };
        for data in messages {
            told_something = true;
            for message in server_message::messages(data) {
                receive(connection, session, &message);
            }
        }
    }
}

fn receive(connection: &Arc<Connection>, session: &Arc<Session>, message: &Bytes) {
    match Frame::read(message) {
        Ok(Frame::Request { id, method, params }) => {
            let asked = connection.asked(session, (id, &*method, params), message);
            // With nobody there it is dropped, and thereby answered.
            if let Some(request) = asked.and_then(|request| connection.asides.ask(request)) {
                connection.tell(Event::ServerRequest(request));
            }
        }
        Ok(Frame::Notification { method, params }) => {
            connection.asking.on_notification(&method, params);
            let is_taken = match (Kind::changed_by(&method), &*method) {
                (Some(kind), _) => {
                    connection.tell(Event::ListChanged(kind));
                    true
                }
                (None, "notifications/progress") => connection.asides.deliver(params, message),
                (None, "notifications/cancelled") => false,
                (None, method) => match Event::from_notification(method, params) {
                    Some(event) => {
                        connection.tell(event);
                        true
                    }
                    None => connection.told_to_one(message),
                },
            };
            // On a connection that requests have by turns, a log may be about an earlier one.
            let is_log = method == LOG_MESSAGE;
            let is_certain = !(is_log && connection.by_turns) || connection.callers.is_sole();
            let is_taken = is_taken || (is_certain && connection.asides.tell(message));
            if !is_taken && is_certain && connection.is_held {
                connection.tell(Event::Notification(Bytes::copy_from_slice(message)));
            } else if !is_taken {
                if is_log {
                    connection.counters.increment(Counter::DroppedLogs);
                }
                let method = excerpt(method.as_bytes(), 60);
                tracing::debug!(server = %connection.server, method, "notification that belongs to no call dropped");
            }
        }
        Ok(Frame::Answer { .. } | Frame::TooDeep { .. }) => {
            tracing::debug!(server = %connection.server, "answer outside its request dropped");
        }
        Err(why) => connection.skip(&why, message),
    }
}

const OPENING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
