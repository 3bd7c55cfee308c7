//! `subscriptions/listen`: one stream for all resources and one for all tasks, replaced when the subscriptions change.
//!
//! The previous stream stays open until the next one is acknowledged, and a little longer, so that no update is lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use mcp_vary::json::{self, Members};
use mcp_vary_wire::server_message::ServerMessage;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{activate, refusal};
use crate::connection::UpstreamConnection;
use crate::error::{UpstreamError, is_rejection};
use crate::handshake::modern_params;
use crate::list_changes::{ACKNOWLEDGED, CANCELLED};
use crate::message::{Event, Message, Request, RequestKind};
use crate::supervised::shared::Shared;
use crate::supervised::subscriptions::SubscribeError;
use crate::supervised::topic::Topic;
use crate::transport::Exchange;

pub(super) async fn maintain(
    topic: Topic,
    upstream: &Arc<UpstreamConnection>,
    shared: &Shared,
) -> Infallible {
    let mut streams = Streams {
        topic,
        upstream,
        shared,
        changes: shared.subscriptions(topic).changes(),
        opening: None,
        open: None,
        previous: VecDeque::new(),
        failures: 0,
        retry_at: Instant::now(),
    };
    loop {
        streams.step().await;
    }
}

/// A stream for some resources or tasks.
#[derive(Debug)]
struct Stream {
    topic: Topic,
    uris: BTreeSet<Arc<str>>,
    exchange: Exchange,
    /// When it must be acknowledged, or when it is closed; none for the open stream.
    until: Option<Instant>,
}

/// One event of a stream.
enum StreamEvent {
    /// The accepted URIs or task ids.
    Acknowledged(BTreeSet<Arc<str>>),
    Updated(Event, Arc<str>),
    Ended(Option<SubscribeError>),
    Ignored,
}

/// The streams of one connection for one topic: at most one that is opening, one that is open, and some that are closing.
struct Streams<'a> {
    topic: Topic,
    upstream: &'a Arc<UpstreamConnection>,
    shared: &'a Shared,
    changes: watch::Receiver<u64>,
    opening: Option<Stream>,
    open: Option<Stream>,
    /// At most [`MAX_PREVIOUS`], the oldest first.
    previous: VecDeque<Previous>,
    failures: u32,
    /// When a stream may be opened again.
    retry_at: Instant,
}

/// A stream before the open one. Newer streams repeat its updates, except those that the server sent before it received
/// the new request. So an update counts only if no newer stream has one of the same resource.
#[derive(Debug)]
struct Previous {
    stream: Stream,
    replaced_at: Instant,
    /// The updates that no newer stream has repeated yet, each with the time when it counts.
    late: BTreeMap<Arc<str>, (Event, Instant)>,
    /// The resources that were updated on a newer stream, which then sends all later updates.
    superseded: BTreeSet<Arc<str>>,
}

impl Previous {
    /// The stream that was replaced just now.
    fn new(mut stream: Stream) -> Self {
        let replaced_at = Instant::now();
        stream.until = Some(replaced_at + OVERLAP);
        Self {
            stream,
            replaced_at,
            late: BTreeMap::new(),
            superseded: BTreeSet::new(),
        }
    }

    fn supersede(&mut self, uri: &Arc<str>) {
        self.late.remove(uri);
        self.superseded.insert(Arc::clone(uri));
    }
}

impl Streams<'_> {
    async fn step(&mut self) {
        self.changes.borrow_and_update();
        self.open_stream().await;
        let waits = self.retry_at > Instant::now() && self.opening.is_none();
        let events = self.previous.iter().flat_map(|former| former.late.values());
        let late = events.map(|(_, counts_at)| *counts_at).min();
        tokio::select! {
            _ = self.changes.changed() => {}
            () = tokio::time::sleep_until(late.unwrap_or(self.retry_at)), if late.is_some() => self.publish_late(),
            event = next_event(self.opening.as_mut()) => self.on_opening(event),
            event = next_event(self.open.as_mut()) => self.on_open(event),
            (at, event) = next_of_previous(&mut self.previous) => self.on_previous(at, event),
            () = tokio::time::sleep_until(self.retry_at), if waits => {}
        }
    }

    /// Opens a stream for the current subscriptions, unless there is one for exactly these.
    async fn open_stream(&mut self) {
        let wanted = self.shared.subscriptions(self.topic).wanted();
        let current = self.open.as_ref().map(|stream| &stream.uris);
        if wanted.is_empty() {
            (self.opening, self.open) = (None, None);
            return self.previous.clear();
        }
        if current == Some(&wanted) {
            let subscriptions = self.shared.subscriptions(self.topic);
            for uri in subscriptions.pending_of(&wanted) {
                activate(self.shared, self.topic, self.upstream, &uri);
            }
            return;
        }
        if self.opening.is_some() || self.retry_at > Instant::now() {
            return;
        }
        if self.previous.len() >= MAX_PREVIOUS {
            // The oldest one makes room.
            if let Some(oldest) = self.previous.front_mut() {
                oldest.stream.until = Some(oldest.replaced_at + MIN_OVERLAP);
            }
            return;
        }
        let listen = request(self.topic, &self.upstream.config.capabilities, &wanted);
        match self.upstream.send(listen, RequestKind::Subscription).await {
            Ok(exchange) => {
                self.opening = Some(Stream {
                    topic: self.topic,
                    uris: wanted,
                    exchange,
                    until: Some(Instant::now() + self.upstream.config.limits.handshake),
                });
            }
            Err(_) => self.failed(),
        }
    }

    fn on_opening(&mut self, stream_event: StreamEvent) {
        match stream_event {
            StreamEvent::Acknowledged(accepted) => {
                if let Some(stream) = self.opening.take() {
                    self.switch_to(stream, &accepted);
                }
            }
            StreamEvent::Updated(event, _) => self.shared.publish(event),
            StreamEvent::Ended(why) => {
                let opening = self.opening.take();
                match (opening, why) {
                    (Some(stream), Some(why)) => self.reject(&stream, &why),
                    _ => self.failed(),
                }
            }
            StreamEvent::Ignored => {}
        }
    }

    /// Rejects the subscriptions that are not on the open stream.
    fn reject(&self, stream: &Stream, why: &SubscribeError) {
        let is_held = |uri: &Arc<str>| {
            let open = self.open.as_ref();
            open.is_some_and(|open| open.uris.contains(uri))
        };
        for uri in stream.uris.iter().filter(|uri| !is_held(uri)) {
            self.shared
                .subscriptions(self.topic)
                .reject(uri, why.clone());
        }
    }

    /// Makes `stream` the open one, for the resources that the server `accepted`.
    ///
    /// > Notification types the server does not support are omitted.
    /// > (MCP 2026-07-28, basic/patterns/subscriptions, "Acknowledgment")
    fn switch_to(&mut self, mut stream: Stream, accepted: &BTreeSet<Arc<str>>) {
        let is_gapless = self.open.is_some();
        for uri in &stream.uris {
            if !accepted.contains(uri) {
                let subscriptions = self.shared.subscriptions(self.topic);
                subscriptions.reject(uri, SubscribeError::NotOffered);
            } else if is_gapless {
                self.shared.subscriptions(self.topic).activate(uri);
            } else {
                activate(self.shared, self.topic, self.upstream, uri);
            }
        }
        stream.uris.retain(|uri| accepted.contains(uri));
        stream.until = None;
        if let Some(replaced) = self.open.replace(stream) {
            self.previous.push_back(Previous::new(replaced));
        }
        self.retry_at = Instant::now();
    }

    fn on_open(&mut self, stream_event: StreamEvent) {
        match stream_event {
            StreamEvent::Updated(event, uri) => {
                for former in &mut self.previous {
                    former.supersede(&uri);
                }
                self.failures = 0;
                self.shared.publish(event);
            }
            StreamEvent::Ended(_) => {
                self.open = None;
                self.failed();
            }
            StreamEvent::Acknowledged(_) | StreamEvent::Ignored => {}
        }
    }

    /// Handles an event of the previous stream at this position.
    fn on_previous(&mut self, at: usize, stream_event: StreamEvent) {
        match stream_event {
            StreamEvent::Updated(event, uri) => {
                for older in self.previous.iter_mut().take(at) {
                    older.supersede(&uri);
                }
                let former = self.previous.get_mut(at);
                if let Some(former) = former.filter(|former| !former.superseded.contains(&uri)) {
                    let counts_at = Instant::now() + REPEAT_TIME;
                    former.late.insert(uri, (event, counts_at));
                }
            }
            StreamEvent::Ended(_) => {
                let former = self.previous.remove(at).into_iter();
                for (event, _) in former.flat_map(|former| former.late.into_values()) {
                    self.shared.publish(event);
                }
            }
            StreamEvent::Acknowledged(_) | StreamEvent::Ignored => {}
        }
    }

    /// Publishes the updates of previous streams that no newer stream has repeated in time.
    fn publish_late(&mut self) {
        let now = Instant::now();
        for former in &mut self.previous {
            let counts = |_: &Arc<str>, late: &mut (Event, Instant)| late.1 <= now;
            for (_, (event, _)) in former.late.extract_if(.., counts) {
                self.shared.publish(event);
            }
        }
    }

    /// Waits before the next attempt.
    fn failed(&mut self) {
        self.retry_at = Instant::now() + PAUSE * (1 << self.failures.min(6));
        self.failures += 1;
    }
}

fn request(topic: Topic, capabilities: &str, uris: &BTreeSet<Arc<str>>) -> Request {
    let quoted: Vec<_> = uris.iter().map(|uri| json::string(uri)).collect();
    let wanted = format!("[{}]", quoted.join(","));
    let filter = Members::from_iter([(topic.filter(), wanted)]).to_json();
    let capabilities = topic.declared_with(capabilities);
    let params = modern_params(&capabilities, &[("notifications", filter)]);
    Request::new("subscriptions/listen", Some(params))
}

/// Reads the next event of a stream. Safe to drop while it waits.
async fn next_event(stream: Option<&mut Stream>) -> StreamEvent {
    let Some(stream) = stream else {
        return std::future::pending().await;
    };
    let topic = stream.topic;
    let next = stream.exchange.next();
    match stream.until {
        None => classify(topic, next.await),
        Some(until) => match tokio::time::timeout_at(until, next).await {
            Ok(message) => classify(topic, message),
            Err(_elapsed) => StreamEvent::Ended(None),
        },
    }
}

/// Reads the next event of one of the previous streams, with the position of the stream. Safe to drop while it waits.
async fn next_of_previous(previous: &mut VecDeque<Previous>) -> (usize, StreamEvent) {
    if previous.is_empty() {
        return std::future::pending().await;
    }
    let events = previous
        .iter_mut()
        .map(|former| Box::pin(next_event(Some(&mut former.stream))));
    let (event, at, _) = select_all(events).await;
    (at, event)
}

fn classify(topic: Topic, message: Result<Message, UpstreamError>) -> StreamEvent {
    let message = match message {
        Ok(Message::Notification(message)) => message,
        Ok(Message::Answer(answer)) => {
            let error = answer.outcome().err().filter(|error| is_rejection(error));
            return StreamEvent::Ended(error.map(|error| SubscribeError::Rejected(error.into())));
        }
        // Servers send no requests on a subscription stream.
        Ok(Message::Request(_)) => return StreamEvent::Ignored,
        Err(error) => return StreamEvent::Ended(refusal(&error)),
    };
    let Ok(ServerMessage::Notification { method, params, .. }) = ServerMessage::read(&message)
    else {
        return StreamEvent::Ignored;
    };
    match &*method {
        ACKNOWLEDGED => StreamEvent::Acknowledged(accepted(topic, params.unwrap_or("{}"))),
        CANCELLED => StreamEvent::Ended(None),
        method => {
            let changed = Event::from_notification(method, params);
            let keyed = changed.and_then(|event| Some((topic.key(&event)?, event)));
            keyed.map_or(StreamEvent::Ignored, |(uri, event)| {
                StreamEvent::Updated(event, uri)
            })
        }
    }
}

/// The URIs or task ids of an acknowledgement.
fn accepted(topic: Topic, params: &str) -> BTreeSet<Arc<str>> {
    let params = Members::parse(params).unwrap_or_default();
    let filter = Members::parse(params.get("notifications").unwrap_or("{}")).unwrap_or_default();
    let listed = json::elements(filter.get(topic.filter()).unwrap_or("[]"));
    let written = listed.unwrap_or_default().into_iter();
    let uris = written.filter_map(|uri| serde_json::from_str::<String>(uri).ok());
    uris.map(Arc::from).collect()
}

/// How long a replaced stream is still read. What the server sent on it can take this long where packets are lost or the
/// machine is busy; the acknowledgement that replaced the stream came on another connection.
const OVERLAP: Duration = Duration::from_secs(2);
/// The same if another stream needs the place.
const MIN_OVERLAP: Duration = Duration::from_millis(250);
/// How long a newer stream has to repeat an update of a replaced one.
const REPEAT_TIME: Duration = Duration::from_millis(250);
/// The replaced streams that are still read. Further changes of the subscriptions wait until one is closed.
const MAX_PREVIOUS: usize = 16;
/// The pause before a stream that ended or could not be opened is opened again.
const PAUSE: Duration = Duration::from_secs(1);
