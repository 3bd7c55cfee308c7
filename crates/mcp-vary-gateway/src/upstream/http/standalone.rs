//! The stream on which a legacy server tells what belongs to no request.
//!
//! Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server".

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, StatusCode};

use super::replies::is_stream;
use super::session::Session;
use super::stream::{Bookmark, Read, Stream};
use super::{Connection, LAST_EVENT_ID, STREAM};
use crate::upstream::frame::{self, Frame};

/// Listens until it is dropped, or until the server says that there is no such stream.
pub(in crate::upstream) async fn listen(connection: Arc<Connection>) {
    let mut generation = connection.generation.subscribe();
    let mut bookmark = Bookmark::default();
    let mut failures = 0;
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
                if generation.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Heard::Unsupported => return,
        }
        let pause = bookmark.retry.unwrap_or(PAUSE) * (1 << failures.min(6));
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
    }
}

enum Heard {
    /// The stream ended after it had told something.
    Something,
    /// The stream ended at once, or could not be opened.
    Nothing,
    /// Not in this session.
    Refused,
    /// The server offers no such stream.
    Unsupported,
}

/// Opens the stream and listens until it ends.
async fn hear(connection: &Arc<Connection>, bookmark: &mut Bookmark) -> Heard {
    let session = connection.session.load_full();
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, STREAM);
    if let Some(last_id) = bookmark.header() {
        headers.insert(LAST_EVENT_ID, last_id);
    }
    let response = connection.send(Method::GET, &session, &headers, Bytes::new());
    let Ok(response) = response.await else {
        return Heard::Nothing;
    };
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => return Heard::Unsupported,
        status if status.is_client_error() => return Heard::Refused,
        status if !status.is_success() => return Heard::Nothing,
        _ if !is_stream(response.headers()) => return Heard::Unsupported,
        _ => {}
    }
    let limit = connection.limits.line;
    let mut stream = Stream::new(response.into_body(), limit, bookmark.clone());
    let mut heard = Heard::Nothing;
    while let Ok(Read::Messages(messages)) = stream.read().await {
        for data in messages {
            heard = Heard::Something;
            for message in frame::messages(data) {
                receive(connection, &session, &message);
            }
        }
    }
    *bookmark = stream.bookmark();
    heard
}

fn receive(connection: &Arc<Connection>, session: &Arc<Session>, message: &Bytes) {
    match Frame::read(message) {
        Ok(Frame::Request { id, method }) => connection.reply(session, id, &method),
        Ok(Frame::Notification { method, params }) => {
            let method = method.into_owned();
            let rest = match method.as_str() {
                "notifications/progress" => connection.asides.deliver(params, message.clone()),
                _ => Some(message.clone()),
            };
            if let Some(message) = rest {
                connection.tell(&method, message);
            }
        }
        Ok(Frame::Answer { .. }) => {
            tracing::debug!(server = %connection.server, "answer outside its request dropped");
        }
        Err(why) => connection.skip(&why, message),
    }
}

const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
