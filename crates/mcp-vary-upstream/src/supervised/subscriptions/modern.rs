//! `subscriptions/listen`: one stream for all resources, and one for all tasks, replaced by another when they
//! change.
//!
//! The stream before stays open until the next one is acknowledged, and a little longer, so that nothing is
//! lost in between.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::{self, Members};
use mcp_vary_wire::server_message::Frame;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Refused, Shared, Topic};
use crate::handshake::modern_params;
use crate::list_changes::{ACKNOWLEDGED, CANCELLED, is_refusal};
use crate::message::{Event, Message, Purpose, Request};
use crate::{Exchange, Upstream, UpstreamError};

pub(super) async fn keep(topic: Topic, upstream: &Arc<Upstream>, shared: &Shared) -> Infallible {
    let mut streams = Streams {
        topic,
        upstream,
        shared,
        changes: shared.of(topic).changes.subscribe(),
        opening: None,
        open: None,
        former: None,
        failures: 0,
        again: Instant::now(),
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
    /// Until when it must be acknowledged, or may still tell something; an open one may always.
    until: Option<Instant>,
}

/// What a stream brought.
enum Heard {
    /// What the server will tell of.
    Acknowledged(BTreeSet<Arc<str>>),
    Updated(Event, Arc<str>),
    Ended(Option<Refused>),
    Nothing,
}

/// The streams of one connection for one topic: at most one is being opened, one is open, and one is about to be closed.
struct Streams<'a> {
    topic: Topic,
    upstream: &'a Arc<Upstream>,
    shared: &'a Shared,
    changes: watch::Receiver<u64>,
    opening: Option<Stream>,
    open: Option<Stream>,
    former: Option<Former>,
    failures: u32,
    /// When a stream may be opened again.
    again: Instant,
}

/// The stream before the one that is open. What it says now the next one says, too, unless the server said it
/// before it knew of that one: so it counts only if the next one says nothing of that resource.
#[derive(Debug)]
struct Former {
    stream: Stream,
    late: BTreeMap<Arc<str>, Event>,
    /// The resources of which the next one has said something: it says whatever follows.
    superseded: BTreeSet<Arc<str>>,
}

impl Streams<'_> {
    async fn step(&mut self) {
        self.changes.borrow_and_update();
        self.open_another().await;
        let waits = self.again > Instant::now() && self.opening.is_none();
        tokio::select! {
            _ = self.changes.changed() => {}
            heard = heard(self.opening.as_mut()) => self.hear_opening(heard),
            heard = heard(self.open.as_mut()) => self.hear_open(heard),
            heard = heard(self.former.as_mut().map(|it| &mut it.stream)) => self.hear_former(heard),
            () = tokio::time::sleep_until(self.again), if waits => {}
        }
    }

    /// Opens a stream for what is wanted, unless there is one for exactly that.
    async fn open_another(&mut self) {
        let wanted = self.shared.of(self.topic).wanted();
        let current = self.open.as_ref().map(|stream| &stream.uris);
        if wanted.is_empty() {
            (self.opening, self.open, self.former) = (None, None, None);
            return;
        }
        if current == Some(&wanted) || self.opening.is_some() || self.again > Instant::now() {
            return;
        }
        let request = request(self.topic, &self.upstream.config.capabilities, &wanted);
        match self.upstream.open(request, Purpose::Subscription).await {
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

    fn hear_opening(&mut self, heard: Heard) {
        match heard {
            Heard::Acknowledged(accepted) => {
                if let Some(stream) = self.opening.take() {
                    self.begin(stream, &accepted);
                }
            }
            Heard::Updated(event, _) => self.shared.tell(event),
            Heard::Ended(why) => {
                let opening = self.opening.take();
                match (opening, why) {
                    (Some(stream), Some(why)) => self.refused(&stream, &why),
                    _ => self.failed(),
                }
            }
            Heard::Nothing => {}
        }
    }

    /// The server does not tell of what the stream that is open has not.
    fn refused(&self, stream: &Stream, why: &Refused) {
        let is_held = |uri: &Arc<str>| {
            let open = self.open.as_ref();
            open.is_some_and(|open| open.uris.contains(uri))
        };
        for uri in stream.uris.iter().filter(|uri| !is_held(uri)) {
            self.shared.of(self.topic).refuse(uri, why.clone());
        }
    }

    /// The server tells by `stream` from now on, of those resources that it `accepted`.
    ///
    /// > Notification types the server does not support are omitted.
    /// > (MCP 2026-07-28, basic/patterns/subscriptions, "Acknowledgment")
    fn begin(&mut self, mut stream: Stream, accepted: &BTreeSet<Arc<str>>) {
        let is_gapless = self.open.is_some();
        for uri in &stream.uris {
            if !accepted.contains(uri) {
                let subscriptions = self.shared.of(self.topic);
                subscriptions.refuse(uri, Refused::NotOffered);
            } else if is_gapless {
                self.shared.of(self.topic).hold(uri);
            } else {
                self.shared.hold(self.topic, self.upstream, uri);
            }
        }
        stream.uris.retain(|uri| accepted.contains(uri));
        stream.until = None;
        let former = self.open.replace(stream);
        self.former = former.map(|mut stream| {
            stream.until = Some(Instant::now() + OVERLAP);
            Former {
                stream,
                late: BTreeMap::new(),
                superseded: BTreeSet::new(),
            }
        });
        self.again = Instant::now();
    }

    fn hear_open(&mut self, heard: Heard) {
        match heard {
            Heard::Updated(event, uri) => {
                if let Some(former) = &mut self.former {
                    former.late.remove(&uri);
                    former.superseded.insert(uri);
                }
                self.failures = 0;
                self.shared.tell(event);
            }
            Heard::Ended(_) => {
                self.open = None;
                self.failed();
            }
            Heard::Acknowledged(_) | Heard::Nothing => {}
        }
    }

    fn hear_former(&mut self, heard: Heard) {
        match (heard, &mut self.former) {
            (Heard::Updated(event, uri), Some(former)) if !former.superseded.contains(&uri) => {
                former.late.insert(uri, event);
            }
            (Heard::Ended(_), _) => {
                let former = self.former.take();
                for event in former
                    .into_iter()
                    .flat_map(|former| former.late.into_values())
                {
                    self.shared.tell(event);
                }
            }
            _ => {}
        }
    }

    /// No stream for a while.
    fn failed(&mut self) {
        self.again = Instant::now() + PAUSE * (1 << self.failures.min(6));
        self.failures += 1;
    }
}

fn request(topic: Topic, capabilities: &str, uris: &BTreeSet<Arc<str>>) -> Request {
    let uris: Vec<_> = uris.iter().map(|uri| json::string(uri)).collect();
    let filter = format!(r#"{{"{}":[{}]}}"#, topic.filter(), uris.join(","));
    let capabilities = topic.declared_with(capabilities);
    let params = modern_params(&capabilities, &[("notifications", filter)]);
    Request::new("subscriptions/listen", Some(params))
}

/// What comes next on a stream. Safe to drop while it waits.
async fn heard(stream: Option<&mut Stream>) -> Heard {
    let Some(stream) = stream else {
        return std::future::pending().await;
    };
    let topic = stream.topic;
    let next = stream.exchange.next();
    match stream.until {
        None => read(topic, next.await),
        Some(until) => match tokio::time::timeout_at(until, next).await {
            Ok(message) => read(topic, message),
            Err(_elapsed) => Heard::Ended(None),
        },
    }
}

fn read(topic: Topic, message: Result<Message, UpstreamError>) -> Heard {
    let message = match message {
        Ok(Message::Notification(message)) => message,
        Ok(Message::Answer(answer)) => {
            let error = answer.outcome().err().filter(|error| is_refusal(error));
            return Heard::Ended(error.map(|error| Refused::Answered(error.into())));
        }
        // It asks nothing on a stream that the client only listens to.
        Ok(Message::Request(_)) => return Heard::Nothing,
        Err(_) => return Heard::Ended(None),
    };
    let Ok(Frame::Notification { method, params }) = Frame::read(&message) else {
        return Heard::Nothing;
    };
    match &*method {
        ACKNOWLEDGED => Heard::Acknowledged(accepted(topic, params.unwrap_or("{}"))),
        CANCELLED => Heard::Ended(None),
        method => {
            let changed = Event::changed_by(method, params);
            let changed = changed.and_then(|event| Some((topic.of(&event)?, event)));
            changed.map_or(Heard::Nothing, |(uri, event)| Heard::Updated(event, uri))
        }
    }
}

/// What an acknowledgement promises.
fn accepted(topic: Topic, params: &str) -> BTreeSet<Arc<str>> {
    let params = Members::parse(params).unwrap_or_default();
    let filter = Members::parse(params.get("notifications").unwrap_or("{}")).unwrap_or_default();
    let uris = json::elements(filter.get(topic.filter()).unwrap_or("[]"));
    let uris = uris.unwrap_or_default().into_iter();
    let uris = uris.filter_map(|uri| serde_json::from_str::<String>(uri).ok());
    uris.map(Arc::from).collect()
}

/// How long the stream before may still bring what was on its way.
const OVERLAP: Duration = Duration::from_millis(250);
/// A stream that ended or could not be opened is opened again after this long, at first.
const PAUSE: Duration = Duration::from_secs(1);
