//! A stream of events, and the point at which it can be resumed.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http_body_util::BodyExt as _;
use mcp_vary_http_client::body::{Incoming, ReadError};
use mcp_vary_wire::sse::{EventTooLarge, Parser, SseEvent};

/// An open stream.
#[derive(Debug)]
pub(super) struct Stream {
    body: Incoming,
    parser: Parser,
    /// Where the previous stream ended.
    resumed_from: ResumePoint,
}

/// Where a stream ended, and when to resume it.
#[derive(Clone, Debug, Default)]
pub(super) struct ResumePoint {
    pub(super) last_id: Option<String>,
    pub(super) retry: Option<Duration>,
}

impl ResumePoint {
    /// The value of `Last-Event-ID`.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_bytes(self.last_id.as_deref()?.as_bytes()).ok()
    }
}

/// The result of one read.
#[derive(Debug)]
pub(super) enum Read {
    /// The data of events with messages; may be empty.
    Messages(Vec<Bytes>),
    /// The stream ended; with an error if it broke.
    End(Option<ReadError>),
}

impl Stream {
    pub(super) fn new(body: Incoming, limit: usize, resumed_from: ResumePoint) -> Self {
        Self {
            body,
            parser: Parser::new(limit),
            resumed_from,
        }
    }

    /// Reads the next piece. Safe to drop while it waits.
    pub(super) async fn read(&mut self) -> Result<Read, EventTooLarge> {
        match self.body.frame().await {
            None => Ok(Read::End(None)),
            Some(Err(error)) => Ok(Read::End(Some(error))),
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                let events = self.parser.feed(&piece)?;
                let messages: Vec<Bytes> = events.into_iter().filter_map(data_of_message).collect();
                let checked = messages.iter().map(|data| self.body.check_charset(data));
                match checked.collect::<Result<(), ReadError>>() {
                    Ok(()) => Ok(Read::Messages(messages)),
                    Err(error) => Ok(Read::End(Some(error))),
                }
            }
        }
    }

    /// The bytes of the event that is read now.
    pub(super) fn unfinished(&self) -> usize {
        self.parser.unfinished()
    }

    /// Reads the next piece, with events of all kinds; `None` at the end. Safe to drop while it waits.
    pub(super) async fn read_events(&mut self) -> Result<Option<Vec<SseEvent>>, EventTooLarge> {
        match self.body.frame().await {
            None | Some(Err(_)) => Ok(None),
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                self.parser.feed(&piece).map(Some)
            }
        }
    }

    /// Where to resume if it ends now.
    pub(super) fn resume_point(&self) -> ResumePoint {
        let last_id = self.parser.last_id().map(str::to_owned);
        ResumePoint {
            last_id: last_id.or_else(|| self.resumed_from.last_id.clone()),
            retry: self.parser.retry().or(self.resumed_from.retry),
        }
    }

    pub(super) fn into_body(self) -> Incoming {
        self.body
    }
}

/// The data of an event, if it has messages.
pub(super) fn data_of_message(event: SseEvent) -> Option<Bytes> {
    matches!(event.kind.as_str(), "" | "message").then_some(event.data)
}
