//! The changes of the lists: when they happen, and on which streams the client receives them.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::era::Era;
use crate::extension::SELECTOR;
use crate::json::at;
use crate::observation::{Event, Scenario};

/// Where a stream of notifications goes.
pub(super) type Sink = mpsc::Sender<Value>;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A list that changes.
#[derive(Debug)]
struct ChangingList {
    notification: &'static str,
    /// The member of the filter of `subscriptions/listen`.
    filter_member: &'static str,
}

const TOOLS: ChangingList = ChangingList {
    notification: "notifications/tools/list_changed",
    filter_member: "toolsListChanged",
};

const RESOURCES: ChangingList = ChangingList {
    notification: "notifications/resources/list_changed",
    filter_member: "resourcesListChanged",
};

/// The streams that are open, and the changes that wait for one.
#[derive(Debug, Default)]
pub(super) struct Changes {
    streams: Vec<Stream>,
    waiting: Vec<Change>,
    /// Lists that have changed once: they do not change again.
    changed: Vec<&'static str>,
}

#[derive(Debug)]
struct Stream {
    /// The id of the request that listens, and what it asked for. None is a session.
    listener: Option<(Value, Value)>,
    sink: Sink,
}

#[derive(Clone, Debug)]
struct Change {
    list: &'static ChangingList,
    variant: Option<Value>,
}

impl Changes {
    /// Records what a message of the client means for changes.
    pub(super) fn record_message(
        &mut self,
        scenario: Scenario,
        era: Era,
        event: &Event,
        sink: Option<&Sink>,
    ) {
        match (event.method(), sink) {
            ("subscriptions/listen", Some(sink)) => self.listen(event, sink),
            ("notifications/initialized", Some(sink)) if era == Era::Legacy => {
                self.open_session_stream(sink);
            }
            _ => {}
        }
        let is_last_page = event
            .result()
            .is_some_and(|result| result.get("nextCursor").is_none());
        let list = match (scenario, event.method()) {
            (Scenario::ChangedLists | Scenario::ChangedVariant, "tools/list") => &TOOLS,
            (Scenario::ChangedLists, "resources/list") => &RESOURCES,
            _ => return,
        };
        // A list without a selector is that of the default.
        let variant = (scenario == Scenario::ChangedVariant)
            .then(|| event.selector().cloned().unwrap_or("standard".into()));
        if is_last_page && !self.changed.contains(&list.notification) {
            self.changed.push(list.notification);
            self.waiting.push(Change { list, variant });
        }
    }

    fn listen(&mut self, event: &Event, sink: &Sink) {
        let id = event
            .message
            .as_ref()
            .and_then(|message| message.get("id"))
            .cloned();
        let Some((id, filter)) = id.zip(event.param(&["notifications"])) else {
            return;
        };
        let params = json!({"notifications": filter, "_meta": {SUBSCRIPTION: id}});
        let method = "notifications/subscriptions/acknowledged";
        let acknowledgement = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if sink.try_send(acknowledgement).is_ok() {
            self.streams.push(Stream {
                listener: Some((id, filter.clone())),
                sink: sink.clone(),
            });
        }
    }

    /// Adds the stream of a session.
    pub(super) fn open_session_stream(&mut self, sink: &Sink) {
        self.streams.push(Stream {
            listener: None,
            sink: sink.clone(),
        });
    }

    /// Sends the changes that wait to each stream that asked for them; one that nobody receives waits on. The outcome is
    /// what was sent.
    pub(super) fn send(&mut self) -> Vec<Value> {
        let mut sent = Vec::new();
        self.streams.retain(|stream| !stream.sink.is_closed());
        let streams = &self.streams;
        self.waiting.retain(|change| {
            let before = sent.len();
            for stream in streams {
                let notification = stream.notification(change);
                let is_sent = |message: &Value| stream.sink.try_send(message.clone()).is_ok();
                sent.extend(notification.filter(is_sent));
            }
            sent.len() == before
        });
        sent
    }
}

impl Stream {
    /// `change` as this stream has it, if it asked for it.
    fn notification(&self, change: &Change) -> Option<Value> {
        let mut meta = json!({});
        if let Some((id, filter)) = &self.listener {
            let asks = at(filter, &[change.list.filter_member]).and_then(Value::as_bool);
            if asks != Some(true) {
                return None;
            }
            meta[SUBSCRIPTION] = id.clone();
        }
        if let Some(variant) = &change.variant {
            meta[SELECTOR] = variant.clone();
        }
        Some(
            json!({"jsonrpc": "2.0", "method": change.list.notification, "params": {"_meta": meta}}),
        )
    }
}
